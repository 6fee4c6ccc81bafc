#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Python package.
#   sh boards/python/package.sh FOLDER VERSION PYTHON       an sdist, with the sources in C in it
#   sh boards/python/package.sh FOLDER VERSION PYTHON ZIG   wheels of it
# PYTHON has setuptools and cffi (requirements.txt). ZIG is a C compiler for any processor and any
# glibc. VERSION is the library's; Python writes 1.0.0-rc3 as 1.0.0rc3.
#
# The same files, by the same tools, give the same bytes: each has the same date, and nothing says
# when, where or by whom it was made.
set -eu
absolute() {
  case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac
}
folder=$(absolute "$1") python=$(absolute "$3") zig=${4:+$(absolute "$4")}
version=$(echo "$2" | tr -d -)
here=$(dirname "$0")
name=fairlock-$version
tree=$folder/$name
# 1980, where a zip begins
export SOURCE_DATE_EPOCH=315532800 PYTHONDONTWRITEBYTECODE=1
export ZIG_GLOBAL_CACHE_DIR="${ZIG_CACHE:-$folder/zig}" ZIG_LOCAL_CACHE_DIR="${ZIG_CACHE:-$folder/zig}"

lay_out() {
  mkdir -p "$tree"
  for part in resp lock port/posix port/openssl boards/service; do
    mkdir -p "$tree/c/${part#boards/}"
    cp "$part"/*.[ch] "$tree/c/${part#boards/}/"
  done
  cp port/port.h port/port_flash.h "$tree/c/port/"
  cp -R "$here/src" "$here/setup.py" "$here/build_fairlock.py" LICENSE "$tree/"
  find "$tree" -name __pycache__ -prune -exec rm -r {} +
  for file in README.md pyproject.toml; do
    sed "s/@VERSION@/$version/" "$here/$file" >"$tree/$file"
  done
  # a page that is shown alone, as an index does, can link to no other one
  sed -i '/(MIGRATING\.md)$/d' "$tree/README.md"
  sed 's/^# /## /' "$here/MIGRATING.md" >>"$tree/README.md"
  printf '%s\n' 'include build_fairlock.py LICENSE *.md' 'graft c' 'global-exclude *.py[co]' >"$tree/MANIFEST.in"
  chmod -R u=rwX,go=rX "$tree"
}

# build WHAT ARGUMENT: by setuptools, as pip has it
build() {
  (cd "$tree" && "$python" -c "from setuptools import build_meta; build_meta.$1('..', $2)") >"$folder/log" 2>&1 ||
    { cat "$folder/log" >&2 && exit 1; }
  rm -rf "$tree/build" "$tree"/src/*.egg-info
}

unpack() {
  rm -rf "$1" && mkdir "$1" && tar -xzf "$folder/$name.tar.gz" -C "$1"
}

# What setuptools packs says when, and by whom.
make_sdist() {
  rm -f "$folder"/fairlock-*.tar.gz
  build build_sdist None
  unpack "$folder/sdist"
  tar -cf "$folder/sdist.tar" -C "$folder/sdist" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" "$name"
  env -u GZIP gzip -9 -n -c "$folder/sdist.tar" >"$tree.tar.gz"
  rm -rf "$folder/sdist" "$folder/sdist.tar" "$tree"
}

# Python's headers for both processors. Debian's pyconfig.h names that of the processor, which is
# there for this one alone; those of 64 bits do not differ in what an extension uses.
take_headers() {
  "$python" - "$folder/include" <<'END'
import pathlib, re, shutil, sys, sysconfig
target, include = pathlib.Path(sys.argv[1]), pathlib.Path(sysconfig.get_path("include"))
shutil.copytree(include, target)
config = pathlib.Path(sysconfig.get_config_h_filename())
named = re.findall(r"include <(\S+/pyconfig.h)>", config.read_text())
if named:
    machine = sysconfig.get_config_var("MULTIARCH")
    config = next(include.parent / name for name in named if name.startswith(machine + "/"))
shutil.copy(config, target / "pyconfig.h")
END
  echo '#include <openssl/ssl.h>' | ${CC:-cc} -E - | sed -n 's|^# [0-9]* "\(.*\)/openssl/[^/]*\.h".*|\1|p' | sort -u |
    while read -r root; do cp -R "$root/openssl" "$folder/include/"; done
}

# stand_in PROCESSOR: for the two libraries of OpenSSL 3, which are looked for where the wheel is used
stand_in() {
  mkdir -p "$folder/libraries/$1"
  for library in ssl crypto; do
    echo 'extern int stands_in;' |
      "$zig" cc -target "$1-linux-gnu.2.17" -shared -o "$folder/libraries/$1/lib$library.so" "-Wl,-soname,lib$library.so.3" -x c -
  done
}

# make_wheel PROCESSOR: of manylinux2014, which has glibc 2.17
make_wheel() {
  stand_in "$1"
  export FAIRLOCK_TLS=both FAIRLOCK_INCLUDE="$folder/include" FAIRLOCK_LIBRARIES="$folder/libraries/$1"
  export FAIRLOCK_COMPILER="$zig cc -target $1-linux-gnu.2.17 -Wl,--no-as-needed"
  build build_wheel "{'--build-option': ['--plat-name=manylinux2014_$1']}"
}

mkdir -p "$folder"
rm -rf "$tree"
if [ -z "$zig" ]; then
  lay_out
  make_sdist
  exit
fi
rm -rf "$folder"/fairlock-*.whl "$folder/include" "$folder/libraries"
unpack "$tree.unpacked"
mv "$tree.unpacked/$name" "$tree"
take_headers
for processor in x86_64 aarch64; do make_wheel $processor; done
rm -rf "$tree" "$tree.unpacked" "$folder/include" "$folder/libraries"
