#!/usr/bin/env bash
# Hours of many threads and processes on one cache: they prepare, launch, prune, tune and are killed (tests/endurance). Not part of
# tools/test.sh, which runs twelve seconds of it. Prints figures; fails on a wrong answer, a failed call, a standstill, growing memory or
# a cache that isn't whole.
#
#   tools/endurance.sh [SECONDS] [--processes N] [--threads N] [--seed N] [--json FILE]      default: an hour, 8 processes of 2 threads
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

case ${1:-} in -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
needs+=("${test_needs[@]}")
setup_folders
setup_packages
setup_rocm
[ -d "$build" ] || step "configure" meson setup "$build" "$root" -Dtests=enabled -Demu=enabled
step "build" ninja -C "$build" heddle heddle-compile-worker tests/endurance/endurance_worker
HEDDLE=$build/heddle HEDDLE_ENDURANCE_WORKER=$build/tests/endurance/endurance_worker exec python3 "$root/tests/endurance/run.py" "$@"
