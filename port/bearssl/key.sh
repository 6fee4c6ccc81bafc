#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints a certificate, or what BearSSL needs of it, as C: port/bearssl/key.sh NAME CERTIFICATE [KEY]
# The files are PEM. Without KEY: a trust anchor, which holds the subject and the public key, for
# port_bearssl_ca (NAME) and for port_bearssl_pinned (&NAME[0].pkey). With the private KEY, on P-256:
# the client's own certificates (NAME) and key (NAME_KEY). Needs openssl.
set -eu
name=${1-} certificate=${2-} key=${3-}
case $name in
  '' | [0-9]* | *[!A-Za-z0-9_]*) certificate= ;; # no name in C
esac
if [ -z "$certificate" ] || [ $# -gt 3 ]; then
  echo "usage: key.sh NAME CERTIFICATE [KEY], NAME being one that C takes" >&2
  exit 64
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

# array NAME FILE: its bytes
array() {
  echo "static const unsigned char $1[] = {"
  od -An -v -tx1 "$2" | sed 's/ *\([0-9a-f][0-9a-f]\)/ 0x\1,/g; s/^ /    /'
  echo "};"
}

# bytes HEX FILE
bytes() {
  # shellcheck disable=SC2059 # octal escapes are the point
  printf "$(echo "$1" | fold -w 2 | while read -r byte; do printf '\\%03o' "0x$byte"; done)" >"$2"
}

# The element of the certificate that openssl lists as number $1 of those at depth 2, in DER.
part() {
  openssl x509 -in "$certificate" -outform DER -out "$folder/der"
  openssl asn1parse -inform DER -in "$folder/der" | awk -F: -v wanted="$1" '
    $2 ~ /^d=2 / && ++seen == wanted {
      split($2, word, /[ =]+/)
      for (i in word) { if (word[i] == "hl") header = word[i + 1]; if (word[i] == "l") size = word[i + 1] }
      print $1 + 0, header + size
    }' >"$folder/place"
  read -r start size <"$folder/place"
  tail -c +$((start + 1)) "$folder/der" | head -c "$size"
}

trust_anchor() {
  part 6 >"$folder/subject"
  openssl x509 -in "$certificate" -noout -pubkey >"$folder/public"
  array "${name}_SUBJECT" "$folder/subject"
  kind=$(openssl pkey -pubin -in "$folder/public" -noout -text)
  case $kind in
    *prime256v1*)
      openssl pkey -pubin -in "$folder/public" -outform DER | tail -c 65 >"$folder/point"
      array "${name}_POINT" "$folder/point"
      public="BR_KEYTYPE_EC, {.ec = {BR_EC_secp256r1, (unsigned char *)${name}_POINT, sizeof ${name}_POINT}}"
      ;;
    *Modulus:*)
      modulus=$(openssl rsa -pubin -in "$folder/public" -noout -modulus)
      bytes "${modulus#*=}" "$folder/modulus"
      exponent=$(echo "$kind" | sed -n 's/^Exponent: .*(0x\(.*\))$/\1/p')
      [ $((${#exponent} % 2)) = 0 ] || exponent=0$exponent
      bytes "$exponent" "$folder/exponent"
      array "${name}_MODULUS" "$folder/modulus"
      array "${name}_EXPONENT" "$folder/exponent"
      public="BR_KEYTYPE_RSA, {.rsa = {(unsigned char *)${name}_MODULUS, sizeof ${name}_MODULUS,
                               (unsigned char *)${name}_EXPONENT, sizeof ${name}_EXPONENT}}"
      ;;
    *)
      echo "$certificate: the key is neither on P-256 nor RSA" >&2
      exit 1
      ;;
  esac
  cat <<END
static const br_x509_trust_anchor ${name}[1] = {{
    {(unsigned char *)${name}_SUBJECT, sizeof ${name}_SUBJECT}, BR_X509_TA_CA,
    {$public}}};
END
}

# The certificates of the file, one after the other, the client's own first, and its key.
chain() {
  awk -v folder="$folder" '/BEGIN CERTIFICATE/ { n++ } n { print >(folder "/chain" n) }' "$certificate"
  number=1
  list=
  while [ -e "$folder/chain$number" ]; do
    openssl x509 -in "$folder/chain$number" -outform DER -out "$folder/der"
    array "${name}_$number" "$folder/der"
    list="$list
    {(unsigned char *)${name}_$number, sizeof ${name}_$number},"
    number=$((number + 1))
  done
  echo "static const br_x509_certificate ${name}[] = {$list"
  echo "};"
  openssl pkey -in "$key" -noout -text >"$folder/text"
  grep -q prime256v1 "$folder/text" || {
    echo "$key: not on P-256" >&2
    exit 1
  }
  openssl pkey -in "$key" -pubout >"$folder/of_key"
  openssl x509 -in "$folder/chain1" -noout -pubkey >"$folder/of_certificate"
  cmp -s "$folder/of_key" "$folder/of_certificate" || {
    echo "$key: not the key of $certificate" >&2
    exit 1
  }
  scalar=$(sed -n '/^priv:/,/^pub:/p' "$folder/text" | sed '/:$/!s/$/:/; /^[a-z]*:$/d' | tr -d ' :\n')
  bytes "$scalar" "$folder/scalar"
  array "${name}_SCALAR" "$folder/scalar"
  echo "static const br_ec_private_key ${name}_KEY = {BR_EC_secp256r1, (unsigned char *)${name}_SCALAR,
                                             sizeof ${name}_SCALAR};"
}

# All of it or nothing.
{
  echo "/* From $(basename "$certificate"), by port/bearssl/key.sh. */"
  echo '#include <bearssl.h>'
  if [ -n "$key" ]; then chain; else trust_anchor; fi
} >"$folder/out"
cat "$folder/out"
