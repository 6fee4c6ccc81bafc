#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the certificates that the tests of TLS need, by the openssl command: certificates.sh FOLDER.
# ca signs all but stranger, which is a client's of another CA, and moved, a server's of that. All
# servers are localhost and 127.0.0.1, but for elsewhere, which is redis.example.
set -eu
folder=$1
rm -rf "$folder"
mkdir -p "$folder/database" "$folder/hashed"
cd "$folder"
exec 2>log

cat >conf <<'END'
[req]
distinguished_name = name
prompt = no
[name]
commonName = test
[ca]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
[issue]
database = database/index
new_certs_dir = database
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
[any]
commonName = supplied
[server]
subjectAltName = DNS:localhost, IP:127.0.0.1
[elsewhere]
subjectAltName = DNS:redis.example
[client]
extendedKeyUsage = clientAuth
END
: >database/index

# key NAME ALGORITHM OPTION
key() {
  openssl genpkey -algorithm "$2" -pkeyopt "$3" -out "$1.key"
}

# authority NAME
authority() {
  key "$1" EC ec_paramgen_curve:P-256
  openssl req -x509 -config conf -extensions ca -subj "/CN=$1" -key "$1.key" -days 3650 -out "$1.crt"
}

# certificate NAME CA KIND BEGIN END: of NAME.key
certificate() {
  openssl req -new -config conf -subj "/CN=$1" -key "$1.key" -out "$1.csr"
  openssl ca -batch -notext -config conf -name issue -cert "$2.crt" -keyfile "$2.key" -extensions "$3" \
    -startdate "$4" -enddate "$5" -in "$1.csr" -out "$1.crt"
}

authority ca
authority others
for name in server elsewhere expired future client stranger moved; do
  key $name EC ec_paramgen_curve:P-256
done
key rsa RSA rsa_keygen_bits:2048
long_ago=20200101000000Z
some_day=20480101000000Z
certificate server ca server $long_ago $some_day
certificate rsa ca server $long_ago $some_day
certificate elsewhere ca elsewhere $long_ago $some_day
certificate expired ca server $long_ago 20210101000000Z
certificate future ca server 20470101000000Z $some_day
certificate client ca client $long_ago $some_day
certificate stranger others client $long_ago $some_day
certificate moved others server $long_ago $some_day
cat client.crt client.key >client.both
openssl pkey -in client.key -aes128 -passout pass:secret -out client.locked
cp ca.crt "hashed/$(openssl x509 -hash -noout -in ca.crt).0"
touch made
