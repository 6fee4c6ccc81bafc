#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets what checks the examples for operators: tests/release/get_tools.sh FOLDER Leaves there
# Prometheus's promtool and PostgreSQL (postgres/root), unpacked, because their packages would start a
# service where they are installed, and kubernetes.json, the schemas of Kubernetes' objects, out of a
# wheel that pip checks.
set -eu
tools=$(cd "$(dirname "$0")/../tools" && pwd)
rm -rf "$1" && mkdir -p "$1" && cd "$1"
if command -v promtool >/dev/null; then
  ln -s "$(command -v promtool)" promtool
else
  sh "$tools/unpack.sh" bookworm . prometheus >/dev/null # it needs no library but the system's C
  mv root/usr/bin/promtool .
  rm -rf root
fi

# All libraries but the C library, which the system's loader brings.
sh "$tools/unpack.sh" bookworm postgres postgresql-15 postgresql-client-15 libaudit1 libcap-ng0 libcap2 libcom-err2 \
  libffi8 libgcc-s1 libgcrypt20 libgmp10 libgnutls30 libgpg-error0 libgssapi-krb5-2 libhogweed6 libicu72 libidn2-0 \
  libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libldap-2.5-0 liblz4-1 liblzma5 libnettle8 libp11-kit0 libpam0g \
  libpq5 libreadline8 libsasl2-2 libssl3 libstdc++6 libsystemd0 libtasn1-6 libtinfo6 libunistring2 libxml2 libzstd1 \
  zlib1g >/dev/null
rm -rf postgres/root/usr/share/doc postgres/root/usr/share/locale postgres/root/usr/share/man

version=1.37.0
checksum=85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9
echo "kubernetes-validate==$version --hash=sha256:$checksum" >wheel.txt
python3 -m pip -q download --no-deps --require-hashes --only-binary :all: -r wheel.txt
python3 -m zipfile -e ./*.whl wheel
mv "wheel/kubernetes_validate/kubernetes-json-schema/v$version-local-strict/_definitions.json" kubernetes.json
rm -rf wheel ./*.whl wheel.txt
