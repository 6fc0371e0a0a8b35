#!/usr/bin/env bash
# From nothing to an installed heddle that works, in Debian 12 systems of their own: tarball, Debian packages, meson install, removal.
#
#   tools/test_packages.sh FOLDER [STEP]...     FOLDER: outside the sources; the bare system, tarball and packages stay there for the next run
#                                               STEP: tarball, build, packages, source, fresh; default: all, in this order
#
#   tarball    meson dist from two clones in different places: the same bytes
#   build      the packages, from the tarball, in a bare Debian 12 with what packaging/debian/control names and nothing else; lintian
#   packages   the packages installed in another bare Debian 12, used (tests/install/use.sh), removed
#   source     meson install from the tarball in another, used, uninstalled; the tarball as a subproject of a Meson project
#   fresh      the demo and the tests from a clone in a bare Debian 12 that has nothing but git, timed
#
# As root, with the network of apt. Needs debootstrap, git, meson, lintian; some 6 GB. A ROCm that tools/fetch-rocm.sh fetched here, or HEDDLE_ROCM, is shared with
# those systems, but not with `fresh`. Nothing stays mounted: mounts are made in a namespace that ends with the command.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in '' | -*) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
case $folder/ in "$root"/*) echo "the folder has to be outside the sources: $folder" >&2; exit 2 ;; esac
steps=("$@")
[ $# -gt 0 ] || steps=(tarball build packages source fresh)
rocm=${HEDDLE_ROCM:-${XDG_CACHE_HOME:-$HOME/.cache}/heddle/rocm}
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
tarball=$folder/heddle-$version.tar.xz
began=$SECONDS

say() { printf '%4d s  %s\n' $((SECONDS - began)) "$*"; }
fail() { say "FAILED: $*"; exit 1; }

# The bare system, once; apt there goes where apt goes here.
base() {
  [ -e "$folder/base/ready" ] && return
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)|$(ORIGIN)|$(LABEL)' 'Created-By: Packages' | sed -n 's#/*|Debian|Debian$##p' | sed -n 1p)
  rm -rf "$folder/base"
  debootstrap --variant=minbase bookworm "$folder/base" "${mirror:?no Debian mirror in the apt sources}" >"$folder/debootstrap.log" 2>&1 || fail "debootstrap: $folder/debootstrap.log"
  printf 'deb %s bookworm main\ndeb %s bookworm-updates main\ndeb %s-security bookworm-security main\n' "$mirror" "$mirror" "$mirror" >"$folder/base/etc/apt/sources.list"
  printf 'APT::Install-Recommends "false";\nAPT::Keep-Downloaded-Packages "true";\nAcquire::Check-Valid-Until "false";\nAcquire::Check-Date "false";\n' >"$folder/base/etc/apt/apt.conf.d/90test"
  apt-config dump | grep -iE '^Acquire::https?::Proxy' >>"$folder/base/etc/apt/apt.conf.d/90test" || true
  touch "$folder/base/ready"
  say "a bare Debian 12: $folder/base"
}

# system NAME: a copy of the bare system.
system() {
  rm -rf "${folder:?}/$1"
  cp -a --reflink=auto "$folder/base" "$folder/$1"
  mkdir -p "$folder/archives/partial" "$folder/$1/work" "$folder/$1/rocm" "$folder/$1/sources"
}

# inside NAME COMMAND...: as root in that system, with /proc, /dev, the shared folder of downloaded packages and ROCm.
inside() {
  local name=$1
  shift
  unshare --mount --propagation private bash -euc '
    system=$1 archives=$2 rocm=$3
    shift 3
    mount -t proc proc "$system/proc"
    mount --rbind /dev "$system/dev"
    cp /etc/resolv.conf "$system/etc/resolv.conf"
    mount --bind "$archives" "$system/var/cache/apt/archives"
    [ ! -e "$rocm" ] || [ ! -e "$system/rocm" ] || mount --bind -o ro "$rocm" "$system/rocm"
    shared=
    [ ! -e "$system/rocm/stamp" ] && [ ! -e "$system/rocm/lib" ] || shared=HEDDLE_ROCM=/rocm
    exec chroot "$system" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      ${http_proxy:+http_proxy="$http_proxy"} ${CI:+CI="$CI"} $shared "$@"
  ' sh "$folder/$name" "$folder/archives" "$rocm" "$@"
}

apt_inside() { # NAME WHAT...
  local name=$1
  shift
  inside "$name" sh -ec 'apt-get -qq update; apt-get -qq -y install "$@"' sh "$@" >"$folder/$name.apt.log" 2>&1 || fail "apt-get install in $name: $folder/$name.apt.log"
}

# Every name in a system, but for what apt and logs keep.
names() { # NAME
  (cd "$folder/$1" && find . -xdev \( -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./tmp -o -path ./work -o -path ./root \
    -o -path ./proc -o -path ./dev \) -prune -o -print | grep -v __pycache__ | LC_ALL=C sort)
}

use_it() { # NAME
  inside "$1" /sources/tests/install/use.sh /sources /work/use >"$folder/$1.use.log" 2>&1 || { cat "$folder/$1.use.log"; fail "using heddle in $1"; }
  cat "$folder/$1.use.log"
}

unpack() { # NAME
  tar -C "$folder/$1/sources" --strip-components=1 -xf "$tarball"
}

user_packages=(gcc libc6-dev pkg-config cmake make meson man-db python3-numpy clang-22 lld-22 libyaml-dev)

step_tarball() {
  local place hash first= commit
  commit=$(git -C "$root" rev-parse HEAD)
  for place in "$folder/clone" "$folder/another/place/of/the clone"; do
    rm -rf "$place"
    git clone -q "$root" "$place"
    git -C "$place" checkout -q --detach "$commit"
    (umask "$([ -n "$first" ] && echo 077 || echo 022)" && cd "$place" && unshare --net meson setup build -Dtests=disabled && unshare --net meson dist -C build --no-tests) >"$folder/dist.log" 2>&1 || fail "meson dist: $folder/dist.log"
    hash=$(sha256sum <"$place/build/meson-dist/heddle-$version.tar.xz")
    say "tarball of $(git -C "$place" rev-parse --short HEAD): ${hash%% *}"
    : "${first:=$hash}"
  done
  [ "$first" = "$hash" ] || fail "two clones gave two tarballs"
  cp "$folder/clone/build/meson-dist/heddle-$version.tar.xz" "$tarball"
  rm -rf "$folder/clone" "$folder/another"
}

step_build() {
  system build
  unpack build
  apt_inside build build-essential $(dpkg-parse "$root/packaging/debian/control")
  cp "$tarball" "$folder/build/work/"
  say "the packages that the build needs are there"
  inside build /sources/tools/build_deb.sh /work/deb "/work/heddle-$version.tar.xz" >"$folder/build.log" 2>&1 || { tail -n 30 "$folder/build.log"; fail "building: $folder/build/work/deb/build.log"; }
  rm -rf "$folder/deb"
  cp -r "$folder/build/work/deb" "$folder/deb"
  rm -rf "$folder/build"
  say "packages: $(cd "$folder/deb" && ls ./*.deb | tr '\n' ' ')"
  # No bug of Debian's asks for these packages.
  lintian --allow-root --suppress-tags initial-upload-closes-no-bugs --fail-on error,warning "$folder"/deb/heddle_"$version"-*.changes || fail "lintian"
  say "lintian has nothing to say"
}

# What Build-Depends lists, without versions.
dpkg-parse() { sed -n '/^Build-Depends:/,/^[A-Z]/s/^ \([a-z0-9.+-]*\).*,$/\1/p' "$1" | sed 's/^debhelper-compat$/debhelper/'; }

step_packages() {
  system packages
  unpack packages
  cp "$folder"/deb/*.deb "$folder/packages/work/"
  inside packages sh -ec 'rm -f /work/*-dbgsym_*; apt-get -qq update; apt-get -qq -y install /work/*.deb' >"$folder/packages.apt.log" 2>&1 || fail "apt-get install of the packages: $folder/packages.apt.log"
  say "the packages are installed in the bare system; what they brought along: $(sed -n 's/^Setting up \([^ :]*\).*/\1/p' "$folder/packages.apt.log" | grep -v heddle | tr '\n' ' ')"
  inside packages heddle check nhd-fp16 >"$folder/packages.log" || fail "the command needs more than its package says"
  inside packages heddle doctor --json >"$folder/packages.doctor.json" || true # 1: no compiler yet
  grep -q 'emu:gfx950.*"found": true' "$folder/packages.doctor.json" || fail "the devices need more than their package says: $folder/packages.doctor.json"
  [ -e "$folder/packages/rocm/stamp" ] || inside packages env -u HEDDLE_ROCM heddle doctor | grep -q 'next: /usr/share/heddle/fetch-rocm.sh' || fail "doctor doesn't name the installed script"
  apt_inside packages "${user_packages[@]}"
  use_it packages
  inside packages sh -ec 'apt-get -qq -y purge $(dpkg-query -W -f "\${Package}\n" | grep heddle); apt-get -qq -y autoremove --purge' >"$folder/packages.purge.log" 2>&1 || fail "removing: $folder/packages.purge.log"
  names packages | grep heddle >"$folder/packages.left" || true
  [ ! -s "$folder/packages.left" ] || { cat "$folder/packages.left"; fail "the packages left something"; }
  say "removed; nothing is left"
  rm -rf "$folder/packages"
}

step_source() {
  system source
  unpack source
  apt_inside source "${user_packages[@]}" llvm-22-dev
  names source >"$folder/source.before"
  inside source sh -ec 'cd /sources; meson setup /work/build --libdir=lib/x86_64-linux-gnu --buildtype=release -Dtests=disabled -Demu=enabled; meson install -C /work/build; ldconfig' >"$folder/source.log" 2>&1 || { tail "$folder/source.log"; fail "meson install: $folder/source.log"; }
  mv "$folder/source/work/build" "$folder/source/work/away" # nothing of the build is needed from here on
  say "meson install from the tarball"
  use_it source
  mv "$folder/source/work/away" "$folder/source/work/build"
  inside source sh -ec 'ninja -C /work/build uninstall; ldconfig' >>"$folder/source.log" 2>&1 || fail "uninstall: $folder/source.log"
  names source | LC_ALL=C comm -13 "$folder/source.before" - >"$folder/source.left"
  [ ! -s "$folder/source.left" ] || { cat "$folder/source.left"; fail "uninstall left something"; }
  say "uninstalled; nothing is left"
  cp "$tarball" "$folder/source/work/"
  inside source sh -ec '
    mkdir -p /work/sub/subprojects/packagecache
    cd /work/sub
    cp "$1" subprojects/packagecache/
    cp /sources/examples/launch.c .
    name=$(basename "$1")
    printf "[wrap-file]\ndirectory = %s\nsource_url = https://heddle.invalid/%s\nsource_filename = %s\nsource_hash = %s\n\n[provide]\nheddle = heddle_dep\nprogram_names = heddle\n" \
      "${name%.tar.xz}" "$name" "$name" "$(sha256sum <"$1" | cut -d " " -f 1)" >subprojects/heddle.wrap
    echo "project(\"user\", \"c\", default_options: [\"c_std=c17\"])
executable(\"program\", \"launch.c\", dependencies: [dependency(\"heddle\", version: \">=0.1\", default_options: [\"tests=disabled\", \"emu=enabled\"]), meson.get_compiler(\"c\").find_library(\"m\")])" | tr "\"" "\047" >meson.build
    meson setup b
    ninja -C b
    HEDDLE_EMU_LIBRARY=$(find /work/sub/b -name libheddle-emu.so) b/program emu:gfx950' sh "/work/heddle-$version.tar.xz" >"$folder/subproject.log" 2>&1 || { tail "$folder/subproject.log"; fail "subproject: $folder/subproject.log"; }
  say "as a subproject, out of the package cache, without a network"
  rm -rf "$folder/source"
}

step_fresh() {
  system fresh
  rmdir "$folder/fresh/rocm"
  rm -rf "$folder/fresh/sources"
  git clone -q "$root" "$folder/fresh/sources"
  local command from
  for command in tools/demo.sh tools/demo.sh .ci/run; do
    from=$SECONDS
    inside fresh sh -ec "cd /sources && $command" >"$folder/fresh.log" 2>&1 || { tail "$folder/fresh.log"; fail "$command: $folder/fresh.log"; }
    say "$command: $((SECONDS - from)) s ($(tail -n 1 "$folder/fresh.log")); load $(cut -d ' ' -f 1 /proc/loadavg)"
  done
  rm -rf "$folder/fresh"
}

for step in "${steps[@]}"; do
  case $step in tarball | build | packages | source | fresh) ;; *) fail "there is no step $step" ;; esac
  base
  [ "$step" = tarball ] || [ "$step" = fresh ] || [ -e "$tarball" ] || fail "step $step needs the tarball: run the step tarball first"
  say "step $step"
  "step_$step"
done
say "all is well: ${steps[*]}"
