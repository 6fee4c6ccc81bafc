#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What make dist makes of a commit is the same for everybody, its digests and bill of materials are
# true of it, and it can be signed as .github/CONTRIBUTING.md says. A clone is made of this one, with
# tests/release and pages as they are here, committed or not.
# shellcheck source=tests/support/verdicts.sh disable=SC2154,SC2319,SC2016
set -u
. tests/support/verdicts.sh
build=${BUILD:-build}
case $build in /*) ;; *) build=$(pwd)/$build ;; esac
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD WERROR GZIP
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost
if [ ! -e .git ]; then
  echo "skip dist: not a clone"
  exit 0
fi
version=$(sed -n 's/^.define FAIRLOCK_VERSION *"\(.*\)"$/\1/p' lock/fairlock.h)
one=$folder/one
names="fairlock-$version.tar.gz fairlock-$version.tar.gz.sha256 fairlock-$version.spdx"
chmod 755 "$folder"

git clone -q . "$one" 2>"$folder/log" && cp -R tests/release tests/interop "$one/tests/" && cp .github/*.md "$one/.github" &&
  cp Makefile "$one" && git -C "$one" add -A && git -C "$one" commit -q --allow-empty -m 'Test' >>"$folder/log" 2>&1
verdict "dist: a clone" [ $? -eq 0 ]
make -s --no-print-directory -C "$one" dist >"$folder/log" 2>&1
verdict "dist: make dist" [ $? -eq 0 ]

# Somebody else, elsewhere, later, whose git is set up in other ways.
other="$folder/elsewhere/another name"
mkdir -p "$folder/elsewhere" "$folder/home"
git clone -q "$one" "$other"
cat >"$folder/home/.gitconfig" <<END
[tar]
	umask = 0077
[core]
	autocrlf = true
	eol = crlf
	attributesFile = $folder/home/attributes
[safe]
	directory = *
END
printf '%s\n' 'tests/** export-ignore' '*.md export-subst text eol=crlf' >"$folder/home/attributes"
echo 'README.md export-ignore' >"$other/.git/info/attributes"
git -C "$other" replace HEAD:README.md HEAD:LICENSE
git -C "$other" config tar.umask 0027
find "$other" -exec touch -d 2001-02-03 {} +
as=
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chown -R 65534:65534 "$other" "$folder/home"
  as="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
# shellcheck disable=SC2086
(umask 077 && HOME=$folder/home TZ=Pacific/Chatham LC_ALL=C.UTF-8 GZIP=-1 \
  $as make -s --no-print-directory -C "$other" dist) >"$folder/log" 2>&1
verdict "dist: make dist elsewhere${as:+, by another user}" [ $? -eq 0 ]
for name in $names; do
  cmp "$one/build/$name" "$other/build/$name" >"$folder/log" 2>&1
  verdict "dist: the same bytes: $name" [ $? -eq 0 ]
done
(cd "$other" && git -c core.attributesFile="$folder/home/attributes" archive HEAD | tar -tf - | grep -q '^tests/release/') \
  >"$folder/log" 2>&1
verdict "dist: git archive alone would have followed those settings" [ $? -ne 0 ]

# A change makes another one.
echo >>"$other/README.md"
HOME=$folder/home git -C "$other" commit -qam 'Change' 2>"$folder/log"
HOME=$folder/home make -s --no-print-directory -C "$other" dist >"$folder/log" 2>&1
! cmp -s "$one/build/fairlock-$version.tar.gz" "$other/build/fairlock-$version.tar.gz"
verdict "dist: another commit, other bytes" [ $? -eq 0 ]

# Digests.
cd "$one/build" || exit 1
sha256sum -c "fairlock-$version.tar.gz.sha256" >"$folder/log" 2>&1
verdict "dist: sha256sum -c" [ $? -eq 0 ]
verdict "dist: of both files" [ "$(grep -c ': OK$' "$folder/log")" = 2 ]
mkdir "$folder/damaged"
for name in $names; do cp "$name" "$folder/damaged"; done
printf x | dd of="$folder/damaged/fairlock-$version.tar.gz" bs=1 seek=1000 conv=notrunc 2>/dev/null
! (cd "$folder/damaged" && sha256sum -c "fairlock-$version.tar.gz.sha256") >"$folder/log" 2>&1
verdict "dist: a changed byte is noticed" [ $? -eq 0 ]

# The bill of materials: read apart from the script that wrote it.
bom=$one/build/fairlock-$version.spdx
mkdir "$folder/unpacked"
tar -xzf "fairlock-$version.tar.gz" -C "$folder/unpacked"
cd "$folder/unpacked/fairlock-$version" || exit 1
# files ALGORITHM: as sha1sum and sha256sum read them
files() {
  awk -v algorithm="$1:" '/^FileName: / { name = $2 } $1 == "FileChecksum:" && $2 == algorithm { print $3 "  " name }' "$bom"
}
files SHA1 >"$folder/sha1"
files SHA256 >"$folder/sha256"
tar -tzf "$one/build/fairlock-$version.tar.gz" | grep -v '/$' | sed "s|^fairlock-$version/|./|" | sort >"$folder/packed"
git -C "$one" ls-tree -r --name-only HEAD | sed 's|^|./|' | sort | diff - "$folder/packed" >"$folder/log"
verdict "bom: all that is committed is packed" [ $? -eq 0 ]
sed -n 's/^FileName: //p' "$bom" | sort | diff "$folder/packed" - >"$folder/log"
verdict "bom: it lists each file of the tarball, and no other" [ $? -eq 0 ]
{ sha1sum --quiet -c "$folder/sha1" && sha256sum --quiet -c "$folder/sha256"; } >"$folder/log" 2>&1 &&
  [ "$(cat "$folder/sha1" "$folder/sha256" | wc -l)" = "$(cat "$folder/packed" "$folder/packed" | wc -l)" ]
verdict "bom: with its digests" [ $? -eq 0 ]
grep -qx "PackageChecksum: SHA256: $(sha256sum <"$one/build/fairlock-$version.tar.gz" | cut -d ' ' -f 1)" "$bom"
verdict "bom: and that of the tarball" [ $? -eq 0 ]
python3 - "$bom" >"$folder/log" 2>&1 <<'END'
import hashlib, os, sys
digests = []
for folder, _, names in os.walk("."):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            digests.append(hashlib.sha1(file.read()).hexdigest())
code = hashlib.sha1("".join(sorted(digests)).encode()).hexdigest()
sys.exit(f"PackageVerificationCode: {code}\n" not in open(sys.argv[1]))
END
verdict "bom: and the verification code that SPDX defines" [ $? -eq 0 ]
created=$(TZ=UTC git -C "$one" log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
verdict "bom: its time is the commit's" grep -qx "Created: $created" "$bom"
grep -q 'Apache License' LICENSE && ! grep -e '^PackageLicense' -e '^LicenseConcluded' "$bom" | grep -v ' Apache-2\.0$' >"$folder/log"
verdict "bom: its licence is that of the project" [ $? -eq 0 ]
echo >>resp/resp.h
! sha256sum --quiet -c "$folder/sha256" >"$folder/log" 2>&1 && grep -q resp.h "$folder/log"
verdict "bom: a file that has changed is noticed" [ $? -eq 0 ]
cd "$folder" || exit 1
TZ=Asia/Tokyo LC_ALL=C.UTF-8 sh "$one/tests/release/bom.sh" "$one/build/fairlock-$version.tar.gz" 2>"$folder/log" |
  cmp - "$bom" >>"$folder/log" 2>&1
verdict "bom: anybody can make it of the tarball" [ $? -eq 0 ]

# refuses WHAT: a tarball of what is in $folder/unpacked now
refuses() {
  tar -czf "$folder/fairlock-$version.tar.gz" -C "$folder/unpacked" "fairlock-$version"
  ! sh "$one/tests/release/bom.sh" "$folder/fairlock-$version.tar.gz" >"$folder/out" 2>"$folder/log" && grep -q foreign "$folder/log"
  verdict "bom: it stops at $1" [ $? -eq 0 ]
  rm "$folder/unpacked/fairlock-$version/resp"/foreign*
}
cd "$folder/unpacked/fairlock-$version" || exit 1
printf '/* %s (c) 2001 Somebody Else */\n' Copyright >resp/foreign.c
refuses "somebody's notice"
printf '// %s: MIT\n' SPDX-License-Identifier >resp/foreign.c
refuses "a licence of its own"
ln -s ../LICENSE resp/foreign
refuses "a link"
: >"resp/foreign name"
refuses "an odd name"

# As others read it.
spdx() {
  PYTHONPATH=$build/spdx-tools python3 "$one/tests/release/spdx.py" -i "$1" >"$folder/log" 2>&1
}
spdx "$bom"
verdict "bom: pyspdxtools finds it valid" [ $? -eq 0 ]
sed 's/^LicenseConcluded: .*/LicenseConcluded: Apache-2/' "$bom" >"$folder/wrong.spdx"
! spdx "$folder/wrong.spdx"
verdict "bom: but not with a licence that there is not" [ $? -eq 0 ]
sed '/^DocumentNamespace/d' "$bom" >"$folder/wrong.spdx"
! spdx "$folder/wrong.spdx"
verdict "bom: nor without a name of its own" [ $? -eq 0 ]

# Signing, by the lines of the page, with keys that are thrown away.
cd "$one" || exit 1
# lines PAGE PATTERN: those of its commands
lines() {
  awk -v want=commands -f tests/release/pages.awk "$1" | grep -e "$2"
}
export GNUPGHOME="$folder/gnupg" HOME="$folder/keys"
mkdir -m 700 "$GNUPGHOME" "$HOME"
gpg -q --batch --passphrase '' --quick-generate-key 'test <test@localhost>' ed25519 sign never 2>"$folder/log"
verdict "sign: a key of gpg" [ $? -eq 0 ]
{
  lines .github/CONTRIBUTING.md '^version='
  lines .github/CONTRIBUTING.md '^git tag '
  lines .github/CONTRIBUTING.md '^gpg '
} | sed "s/^version=.*/version=$version/" >"$folder/sign.sh"
git tag -d "v$version" >/dev/null 2>&1
sh -e "$folder/sign.sh" >"$folder/log" 2>&1
verdict "sign: tag and digests by gpg" [ $? -eq 0 ]
git verify-tag "v$version" >"$folder/log" 2>&1 && [ "$(git rev-parse "v$version^{commit}")" = "$(git rev-parse HEAD)" ]
verdict "sign: git verify-tag" [ $? -eq 0 ]

# checked BY PATTERN PATTERN: what who downloads them does, by two lines of SECURITY.md
checked() {
  {
    echo 'cd build'
    lines .github/SECURITY.md "$2"
    lines .github/SECURITY.md "$3"
  } | sed "s/1\.0\.0/$version/g" >"$folder/verify.sh"
  verdict "sign: two lines to check a release by $1" [ "$(wc -l <"$folder/verify.sh")" = 3 ]
  sh -e "$folder/verify.sh" >"$folder/log" 2>&1
  verdict "sign: a release is checked by $1" [ $? -eq 0 ]
  echo >>"build/fairlock-$version.tar.gz.sha256"
  ! sh -e "$folder/verify.sh" >"$folder/log" 2>&1
  verdict "sign: changed digests are not those that were signed by $1" [ $? -eq 0 ]
}

checked gpg '^gpg --verify' '^sha256sum '
rm "build/fairlock-$version.tar.gz.sha256.asc"
gpg -q --batch --passphrase '' --quick-generate-key 'other <other@localhost>' ed25519 sign never 2>"$folder/log"
gpg -q --batch -u other@localhost --armor --detach-sign "build/fairlock-$version.tar.gz.sha256" 2>"$folder/log"
gpg -q --batch --yes --delete-secret-and-public-key "$(gpg --list-keys --with-colons other@localhost | awk -F : '/^fpr/ { print $10; exit }')" \
  2>"$folder/log"
! sh -e "$folder/verify.sh" >"$folder/log" 2>&1 && grep -q -i 'no public key' "$folder/log"
verdict "sign: nor is what somebody else has signed by gpg" [ $? -eq 0 ]
gpgconf --kill gpg-agent

ssh-keygen -q -t ed25519 -N '' -f "$HOME/key" >"$folder/log" 2>&1
{
  echo "version=$version"
  lines .github/CONTRIBUTING.md '^git -c gpg.format=ssh'
  lines .github/CONTRIBUTING.md '^ssh-keygen -Y sign'
} | sed "s|~/.ssh/id_ed25519|$HOME/key|" >"$folder/sign.sh"
git tag -d "v$version" >/dev/null
sh -e "$folder/sign.sh" >"$folder/log" 2>&1
verdict "sign: tag and digests by ssh" [ $? -eq 0 ]
echo "test@localhost $(cat "$HOME/key.pub")" >"$folder/signers"
git -c gpg.ssh.allowedSignersFile="$folder/signers" verify-tag "v$version" >"$folder/log" 2>&1
verdict "sign: git verify-tag by ssh" [ $? -eq 0 ]
cp "$HOME/key.pub" build/release-key.pub
checked ssh '^sed .*release-key' '^ssh-keygen -Y verify'
ssh-keygen -q -t ed25519 -N '' -f "$HOME/other" >"$folder/log" 2>&1
rm "build/fairlock-$version.tar.gz.sha256.sig"
ssh-keygen -q -Y sign -n file -f "$HOME/other" "build/fairlock-$version.tar.gz.sha256" 2>"$folder/log"
! sh -e "$folder/verify.sh" >"$folder/log" 2>&1 && grep -q -i 'could not verify' "$folder/log"
verdict "sign: nor is what somebody else has signed by ssh" [ $? -eq 0 ]
exit $failed
