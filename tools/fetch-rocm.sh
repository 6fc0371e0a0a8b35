#!/bin/sh
# Gets the real hiprtc, comgr and HIP runtime as Debian packages into a folder of their own, without installing anything.
#
#   tools/fetch-rocm.sh [DIR]      DIR: default $XDG_CACHE_HOME/heddle/rocm, else ~/.cache/heddle/rocm
#
# For machines without ROCm. Needs apt, dpkg and a Debian mirror in the machine's apt sources; no root. The packages come from the
# newest of Debian's suites that has libhiprtc, and want a newer C library than Debian 12 has: the folder therefore holds its own C
# library and dynamic loader, and heddle starts its compile worker under them (docs/compile.md). A second run finds the stamp
# and does nothing. The folder's path is the last line of the output.
set -eu

suites='experimental unstable testing'
# Regular expressions: the number is the library's ABI version, 6 or 7 at the time of writing.
packages='libhiprtc[0-9]+ libhiprtc-builtins[0-9]+ libamdhip64-[0-9]+ libamd-comgr[0-9]+ libamdhip64-dev'
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
stamp_version=1

say() { printf '%s\n' "fetch-rocm: $*" >&2; }
fail() { say "$@"; exit 1; }

if [ $# -gt 1 ]; then fail "usage: tools/fetch-rocm.sh [DIR]"; fi
if [ $# -eq 1 ]; then
  case $1 in -*) fail "usage: tools/fetch-rocm.sh [DIR]" ;; esac
  directory=$1
elif [ -n "${XDG_CACHE_HOME:-}" ]; then
  directory=$XDG_CACHE_HOME/heddle/rocm
elif [ -n "${HOME:-}" ]; then
  directory=$HOME/.cache/heddle/rocm
else
  fail "neither XDG_CACHE_HOME nor HOME is set: name a folder, tools/fetch-rocm.sh DIR"
fi

umask 077
mkdir -p "$directory" || fail "can't make $directory"
directory=$(cd "$directory" && pwd)
stamp=$directory/stamp

finished() { [ -f "$stamp" ] && [ "$(sed -n 1p "$stamp")" = "heddle-rocm $stamp_version" ]; }
report() { sed -n 2p "$stamp" >&2; printf '%s\n' "$directory"; }

if finished; then report; exit 0; fi

machine=$(dpkg --print-architecture 2>/dev/null) || fail "dpkg is missing: this needs Debian or a relative of it; elsewhere install ROCm"
[ "$machine" = amd64 ] || fail "Debian has hiprtc for amd64 only, this machine is $machine"
for tool in apt-get apt-cache dpkg flock; do
  command -v "$tool" >/dev/null || fail "$tool is missing: this needs Debian or a relative of it; elsewhere install ROCm"
done
[ -r "$keyring" ] || fail "$keyring is missing: install the package debian-archive-keyring"

# One fetch at a time; who waited finds the stamp.
exec 9>"$directory/lock"
flock -w 900 9 || fail "another fetch into $directory has been running for 15 minutes: stop it, or name another folder"
if finished; then report; exit 0; fi

# The machine's own mirror, out of its own apt sources. With lists downloaded apt knows which archive calls itself Debian; without
# (fresh container) the path says it.
targets=$(apt-get indextargets --format '$(REPO_URI)|$(ORIGIN)|$(LABEL)' 'Created-By: Packages' 2>/dev/null) || targets=
mirror=$(printf '%s\n' "$targets" | sed -n 's/|Debian|Debian$//p' | sed -n 1p)
[ -n "$mirror" ] || mirror=$(printf '%s\n' "$targets" | sed -n 's/|.*//; /\/debian\/*$/p' | sed -n 1p)
[ -n "$mirror" ] || fail "no Debian mirror in the apt sources of this machine: add one, or install ROCm"

work=$directory/partial
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root" "$work/empty"
: >"$work/status"
# ROCm's own packages from the suite in question; what they need from outside ROCm (the C library first of all) not from experimental.
cat >"$work/preferences" <<CONF
Package: /^(lib)?(hip|amd|hsa|roc)/
Pin: release a=experimental
Pin-Priority: 990
CONF
# Read after the machine's own settings, so that a proxy set there holds; hooks of the machine (which may need root) don't.
cat >"$work/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "$work/empty";
Dir::Etc::preferences "$work/preferences";
Dir::Etc::preferencesparts "$work/empty";
Dir::State "$work";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Cache::archives "$work/archives";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Log "$work";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Update::Error-Mode "any";
APT::Get::List-Cleanup "false";
APT::Keep-Downloaded-Packages "true";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::Check-Valid-Until "false";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
CONF
settings="-c $work/apt.conf"
case $work in *[\ \"\;]*) fail "the folder's path has a blank, a quote or a semicolon in it, which apt's settings can't hold: $directory" ;; esac

found=
log=$work/log
for suite in $suites; do
  say "looking for libhiprtc in $suite at the machine's Debian mirror"
  {
    echo "deb [signed-by=$keyring] $mirror $suite main"
    # experimental builds on unstable and is no suite of its own.
    if [ "$suite" = experimental ]; then echo "deb [signed-by=$keyring] $mirror unstable main"; fi
  } >"$work/sources.list"
  if ! apt-get $settings -qq update >"$log" 2>&1; then
    say "the package list of $suite can't be read:"
    sed 's/^/  /' "$log" >&2
    continue
  fi
  names=
  complete=yes
  for package in $packages; do
    # Of several ABI versions the highest that this very suite has.
    name=$(apt-cache $settings pkgnames lib | grep -E -x "$package" | sort -V -r | while read -r candidate; do
      if apt-cache $settings madison "$candidate" | grep -q " $suite/main "; then echo "$candidate"; break; fi
    done)
    if [ -z "$name" ]; then complete=no; break; fi
    names="$names $name"
  done
  if [ "$complete" = yes ]; then found=$suite; break; fi
done
[ -n "$found" ] || fail "none of the suites ($suites) could be read and has libhiprtc: check the network and the apt sources, or install ROCm"

say "downloading$names and what they need"
if ! apt-get $settings -qq -y --download-only --no-install-recommends install $names >"$log" 2>&1; then
  sed 's/^/  /' "$log" >&2
  fail "the packages can't be downloaded from $found"
fi

count=0
for archive in "$work"/archives/*.deb; do
  dpkg -x "$archive" "$work/root" || fail "$archive can't be unpacked (disk full?)"
  count=$((count + 1))
done
libraries=$work/root/usr/lib/x86_64-linux-gnu
for needed in ld-linux-x86-64.so.2 libc.so.6; do
  [ -e "$libraries/$needed" ] || fail "the packages of $found hold no $needed: their layout has changed"
done
set -- "$libraries"/libhiprtc.so.[0-9]
[ -e "$1" ] || fail "the packages of $found hold no libhiprtc.so.N: their layout has changed"
version=$(dpkg-deb -f "$(ls "$work"/archives/libhiprtc[0-9]*.deb)" Version)

rm -rf "$directory/usr" "$directory/etc" "$directory/lib64" "$directory/var"
mv "$work"/root/* "$directory"/
printf 'heddle-rocm %s\n%s\n' "$stamp_version" "fetch-rocm: hiprtc $version from Debian $found, $count packages" >"$work/stamp"
mv "$work/stamp" "$stamp"
report
