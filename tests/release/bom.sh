#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the bill of materials of a tarball, in SPDX 2.3 (tag-value): tests/release/bom.sh TARBALL. It
# lists each file with its digests and licence. All that it says is read from the tarball, and the
# times are that of its commit, so anybody can make it again from the tarball, byte by byte.
#
# All files are the project's own and have its licence; sources say so in their first lines. A file that
# has another notice came from elsewhere, so this stops there: say here what it is under before it is packed.
set -eu
tarball=$1
name=$(basename "$tarball" .tar.gz)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
LC_ALL=C
export LC_ALL

tar -xzf "$tarball" -C "$folder"
cd "$folder/$name"
time=$(date -u -r LICENSE +%Y-%m-%dT%H:%M:%SZ)
find . ! -type d ! -type f >"$folder/others"
find . -type f -name '*[!A-Za-z0-9._/+-]*' >>"$folder/others"
if [ -s "$folder/others" ]; then
  echo "bom: neither files nor folders, or with odd names: $(cat "$folder/others")" >&2
  exit 1
fi
notice='SPDX-License-Identifier: [A-Z]|Copyright (\(c\)|©|[0-9])|Licensed under [A-Z]'
ours='SPDX-License-Identifier: [A]pache-2\.0($|[^A-Za-z0-9 +.-]| \*/)'
if grep -rIE "$notice" . | grep -vE "$ours" >"$folder/others"; then
  echo "bom: files with a notice of their own: $(cut -d : -f 1 "$folder/others" | sort -u)" >&2
  exit 1
fi
grep -rIlE "^[^ ]* $ours" . | sed 's/$/ says/' >"$folder/said"
digests() {
  find . -type f -exec "$1" {} + | sort -k 2 | sed 's/ [ *]/ /'
}
digests sha1sum >"$folder/sha1"
digests sha256sum >"$folder/sha256"
verification=$(cut -d ' ' -f 1 "$folder/sha1" | sort | tr -d '\n' | sha1sum | cut -d ' ' -f 1)
cd - >/dev/null
digest=$(sha256sum <"$tarball" | cut -d ' ' -f 1)
cat <<END
SPDXVersion: SPDX-2.3
DataLicense: CC0-1.0
SPDXID: SPDXRef-DOCUMENT
DocumentName: $name
DocumentNamespace: https://spdx.org/spdxdocs/$name-$digest
Creator: Tool: tests/release/bom.sh
Created: $time
Relationship: SPDXRef-DOCUMENT DESCRIBES SPDXRef-Package

PackageName: fairlock
SPDXID: SPDXRef-Package
PackageVersion: ${name#fairlock-}
PackageFileName: $name.tar.gz
PackageDownloadLocation: NOASSERTION
FilesAnalyzed: true
PackageVerificationCode: $verification
PackageChecksum: SHA256: $digest
PackageLicenseConcluded: Apache-2.0
PackageLicenseInfoFromFiles: Apache-2.0
PackageLicenseDeclared: Apache-2.0
PackageCopyrightText: NOASSERTION
PackageComment: <text>Nothing of other projects is in the tarball. The library uses the C library
alone, and OpenSSL where it is built with TLS=openssl. What boards, tests and benchmarks need besides
is fetched when they are run.</text>
END
join -1 2 -2 2 "$folder/sha1" "$folder/sha256" | awk '
  FNR == NR { says[$1]; next }
  { licence = $1 == "./LICENSE" || $1 in says ? "Apache-2.0" : "NONE"
    print "\nFileName: " $1 "\nSPDXID: SPDXRef-File-" FNR "\nFileChecksum: SHA1: " $2 "\nFileChecksum: SHA256: " $3
    print "LicenseConcluded: Apache-2.0\nLicenseInfoInFile: " licence "\nFileCopyrightText: NONE" }' "$folder/said" -
