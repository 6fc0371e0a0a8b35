#!/usr/bin/env bash
# Builds the Debian packages of packaging/debian from a source tarball.
#
#   tools/build_deb.sh OUT [TARBALL]     OUT: a folder, made if need be, that gets packages, source package and log
#                                        TARBALL: of `meson dist`; default: one of this checkout's last commit is made
#
# Needs dpkg-dev, what `Build-Depends` in packaging/debian/control lists, and no root. HEDDLE_DEB_BUILD: options for dpkg-buildpackage
# (default: -us -uc, source and binary packages that nobody signed; -b: binary ones alone).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in '' | -*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
tarball=${2:-}
if [ -z "$tarball" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  meson setup -Dtests=disabled "$folder/build" "$root" >"$out/dist.log"
  meson dist -C "$folder/build" --no-tests >>"$out/dist.log" 2>&1 || { tail "$out/dist.log" >&2; exit 1; }
  tarball=$folder/build/meson-dist/heddle-$version.tar.xz
fi
cp "$tarball" "$out/heddle_$version.orig.tar.xz"
rm -rf "$out/heddle-$version"
tar -C "$out" -xf "$tarball"
cp -r "$out/heddle-$version/packaging/debian" "$out/heddle-$version/debian"
cd "$out/heddle-$version"
dpkg-buildpackage ${HEDDLE_DEB_BUILD:--us -uc} >"$out/build.log" 2>&1 || { tail -n 30 "$out/build.log" >&2; exit 1; }
ls "$out"/*.deb
