#!/usr/bin/env bash
# Sets up what heddle needs: the packages, the ROCm runtime, and a configured build folder.
#
# tools/demo.sh and tools/test.sh source this file and call the functions below; run by itself it does the packages and the
# ROCm runtime and stops there ("tools/setup.sh find-hiprtc" only prints where hiprtc is, if it is anywhere). Every step is skipped when its result is already there, so a second run needs no network.
#
# Environment: HEDDLE_BUILD_DIR  the build folder (default: build)
#              HEDDLE_ROCM       a ROCm installation to use; none is looked for or fetched then

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${HEDDLE_BUILD_DIR:-$root/build}
case $build in /*) ;; *) build=$root/$build ;; esac
logs=$build/logs

# What is needed, how to tell that it is there, and the Debian package that brings it.
needs=(
  "python3|command -v python3|python3"
  "meson|command -v meson|meson"
  "ninja|command -v ninja|ninja-build"
  "a C compiler|have_c_compiler|gcc"
  "the C library's headers|have_c_compiler|libc6-dev"
  "pkg-config|command -v pkg-config|pkg-config"
  "libyaml|pkg-config --exists yaml-0.1|libyaml-dev"
  "Criterion|pkg-config --exists criterion|libcriterion-dev"
  "CMake, for a test|command -v cmake|cmake"
  "clang 22|have_clang|clang-22"
  "lld 22|command -v ld.lld-22 || test -x /usr/lib/llvm-22/bin/ld.lld|lld-22"
  "numpy|have_numpy|python3-numpy"
  "LLVM-C 22|test -e /usr/lib/llvm-22/include/llvm-c/Disassembler.h|llvm-22-dev"
)

# What only the tests need: a server for the shared cache, shells that read their completion scripts, and what builds Debian packages. (Where systemd runs, Debian starts it on port 80 when it is installed.)
test_needs=(
  "nginx with WebDAV|have_nginx|nginx-light"
  "libcurl|have_curl|libcurl4"
  "openssl|command -v openssl|openssl"
  "zsh, for completion|command -v zsh|zsh"
  "fish, for completion|command -v fish|fish"
  "locales|test -e /usr/share/i18n/locales/de_DE|locales"
  "dpkg-dev, for packages|command -v dpkg-buildpackage|dpkg-dev"
  "debhelper|command -v dh|debhelper"
  "dh-python|command -v dh_python3|dh-python"
)

have_c_compiler() { echo '#include <stdio.h>' | "${CC:-cc}" -E - ; }
have_numpy() { python3 -c 'import numpy' || /usr/bin/python3 -c 'import numpy'; }
have_nginx() { [[ $(PATH=$PATH:/usr/sbin nginx -V 2>&1) == *http_dav_module* ]]; }
have_curl() { compgen -G '/usr/lib*/libcurl.so.4' || compgen -G '/usr/lib/*/libcurl.so.4'; }
have_clang() { command -v "${HEDDLE_CLANG:-clang-22}" || test -x /usr/lib/llvm-22/bin/clang; }

say() { printf '%s\n' "$*"; }

# fail WHAT [LINE]...: an error with what to do about it, and exit 1.
fail() {
  printf '\nerror: %s\n' "$1" >&2
  shift
  local line
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# The lines of a log that say what went wrong, then its end.
show_end() {
  { grep -nE '(error|ERROR|FAILED|undefined reference|E:)[: ]' "$1" | head -n 20 || true
    printf '%s\n' "..."
    tail -n 8 "$1"
  } | cut -c 1-240 | sed 's/^/    | /' >&2
}

# step LABEL COMMAND...: runs the command with its output in a log. On failure shows the step, the command, the end of the log and
# $hint, and exits.
step() {
  local label=$1 log start=$SECONDS rc=0
  shift
  log=$logs/$(printf '%s' "$label" | tr -cs 'a-zA-Z0-9\n' '-').log
  printf '  %-58s ' "$label"
  "$@" >"$log" 2>&1 || rc=$?
  if [ $rc -eq 0 ]; then
    printf 'ok (%d s)\n' $((SECONDS - start))
    return
  fi
  printf 'FAILED\n\n'
  show_end "$log"
  fail "step \"$label\" failed (exit code $rc)" "command: $*" "whole log: $log" ${hint:+"what to do: $hint"}
}

setup_folders() {
  mkdir -p "$logs" 2>/dev/null && [ -w "$build" ] && [ -w "$logs" ] ||
    fail "can't write to the build folder $build" \
      "what to do: if an earlier run as root made it, run this script as root again, or remove it (sudo rm -r $build)" \
      "            and start over; or set HEDDLE_BUILD_DIR to another folder"
}

missing_packages() {
  local need what check package
  for need in "${needs[@]}"; do
    what=${need%%|*} package=${need##*|}
    check=${need#*|} check=${check%|*}
    eval "$check" >/dev/null 2>&1 || printf '%s\n' "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

can_be_root() {
  [ "$(id -u)" = 0 ] && return 0
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null || [ -t 0 ]
}

# Debian 12's security suite has clang-22. A machine whose sources lack that suite gets it for this one call, from its own mirror and from
# a list of our own; the machine's apt configuration stays as it is.
apt_options=()
add_security_suite() {
  local list=$build/debian-security.list mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | sed -n 's|/debian/*$|/debian|p' | sed -n 1p)
  [ -n "$mirror" ] || return 0
  { cat /etc/apt/sources.list 2>/dev/null || true
    say "deb $mirror-security bookworm-security main"
  } >"$list"
  apt_options=(-o "Dir::Etc::sourcelist=$list")
}

# Of these packages those that apt could not install.
without_candidate() {
  local package policy
  for package in "$@"; do
    policy=$(LC_ALL=C apt-cache "${apt_options[@]}" policy "$package" 2>/dev/null) || true
    [[ $policy == *"Candidate: "[!\(]* ]] || printf '%s ' "$package"
  done
}

setup_packages() {
  local missing absent
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} -eq 0 ]; then
    say "  packages: all there"
    return
  fi
  say "  packages missing: ${missing[*]}"
  local by_hand="needed (Debian 12 names): ${missing[*]}"
  command -v apt-get >/dev/null ||
    fail "this machine has no apt-get, so the packages can't be installed from here" "$by_hand" \
      "what to do: install them with this system's own tools, then run this script again"
  can_be_root ||
    fail "installing packages needs root, and sudo is not there or asks for a password without a terminal" "$by_hand" \
      "what to do: sudo apt-get update && sudo apt-get install ${missing[*]}"
  local network="apt needs the network once; check it, or a proxy (http_proxy), and that another apt is not running"
  hint=$network step "apt-get update" as_root apt-get update
  if [ -n "$(without_candidate "${missing[@]}")" ] && grep -qs '^VERSION_ID="12"' /etc/os-release; then
    add_security_suite
    [ ${#apt_options[@]} -eq 0 ] ||
      hint=$network step "apt-get update with Debian's security suite" as_root apt-get "${apt_options[@]}" update
  fi
  absent=$(without_candidate "${missing[@]}")
  [ -z "$absent" ] ||
    fail "apt knows no package named: $absent" "$by_hand" \
      "what to do: on Debian 12 the suite bookworm-security has clang-22, lld-22 and llvm-22-dev; elsewhere see apt.llvm.org"
  hint=$network step "apt-get install" as_root apt-get "${apt_options[@]}" install -y --no-install-recommends "${missing[@]}"
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] ||
    fail "still missing after the installation: ${missing[*]}" "what to do: see $logs/apt-get-install.log"
}

installed_hiprtc() {
  local folder library
  for folder in ${HEDDLE_ROCM:+"$HEDDLE_ROCM"} ${ROCM_PATH:+"$ROCM_PATH"} /opt/rocm /opt/rocm-* /usr; do
    for library in "$folder"/{lib,lib64,lib/x86_64-linux-gnu,usr/lib/x86_64-linux-gnu}/libhiprtc.so*; do
      if [ -e "$library" ]; then
        say "$library"
        return 0
      fi
    done
  done
  return 1
}

fetched_hiprtc() {
  local folder=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/heddle/rocm
  [ -e "$folder/stamp" ] && ls "$folder"/usr/lib/*/libhiprtc.so.[0-9] 2>/dev/null | head -n 1
}

# hiprtc: an installed ROCm, else the one an earlier run fetched, else fetched now. Sets rocm_state to "found" or "missing".
rocm_state=missing
setup_rocm() {
  local log=$logs/rocm-runtime.log where
  if where=$(installed_hiprtc) || where=$("$root/tools/fetch-rocm.sh" 2>"$log" | tail -n 1); then
    rocm_state=found
    say "  ROCm runtime (hiprtc): $where"
    return
  fi
  say "  ROCm runtime (hiprtc): not installed, and it can't be fetched:"
  tail -n 6 "$log" | sed 's/^/    | /'
  say "    command: tools/fetch-rocm.sh (whole log: $log)"
  say "    what to do: install ROCm, or set HEDDLE_ROCM to one, or run tools/fetch-rocm.sh where a Debian mirror can be reached"
}

# setup_meson FOLDER [OPTION]...: configures the folder when it isn't, or is with other options.
setup_meson() {
  local folder=$1 stamp=$1/heddle-options
  shift
  local how="the log says what meson misses; tools/setup.sh installs everything on Debian 12"
  if [ ! -e "$folder/build.ninja" ]; then
    hint=$how step "meson setup ${folder#"$root"/}" meson setup "$folder" "$root" "$@"
  elif [ "$(cat "$stamp" 2>/dev/null)" != "$*" ]; then
    hint=$how step "meson configure ${folder#"$root"/}" meson configure "$folder" "$@"
  fi
  printf '%s\n' "$*" >"$stamp"
}

# setup_compile FOLDER [TARGET]...
setup_compile() {
  local folder=$1
  shift
  hint="a compiler error in a clean checkout is a bug of heddle: please report it with the log" \
    step "compile ${folder#"$root"/}" ninja -C "$folder" "$@"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  if [ "${1:-}" = find-hiprtc ]; then
    installed_hiprtc || fetched_hiprtc || true
    exit 0
  fi
  say "Setting up heddle in $root"
  needs+=("${test_needs[@]}")
  setup_folders
  setup_packages
  setup_rocm
fi
