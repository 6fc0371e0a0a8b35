#!/usr/bin/env bash
# Sets everything up, builds heddle and runs all tests. The last line it prints is "N passed, N failed".
#
#   tools/test.sh [--sanitize[=thread]] [SUITE]...     SUITE: names as meson test knows them ("layout"); default: all
#
#   --sanitize          build with AddressSanitizer and UndefinedBehaviorSanitizer, in a build folder of its own
#   --sanitize=thread   build with ThreadSanitizer, in another; default: the suites of what has threads
#
# With CI=true warnings are errors, a skipped test is a failed one, and a missing hiprtc fails the run.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

sanitize=none
suites=()
for argument in "$@"; do
  case $argument in
    --sanitize) sanitize=address ;;
    --sanitize=thread) sanitize=thread ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) say "usage: tools/test.sh [--sanitize[=thread]] [SUITE]..." >&2; exit 2 ;;
    *) suites+=("$argument") ;;
  esac
done
in_ci=false
case ${CI:-} in 1 | true | yes) in_ci=true ;; esac

began=$SECONDS
say "Setting up"
needs+=("${test_needs[@]}")
setup_folders
setup_packages
setup_rocm
if $in_ci && [ $rocm_state = missing ]; then
  fail "no hiprtc, and this is a CI run (CI=$CI): the tests of the real compiler would not run"
fi

say "Building"
folder=$build
options=(-Dtests=enabled -Demu=enabled -Dwerror=$in_ci)
if [ $sanitize = thread ]; then
  folder=$build-thread
  options+=(-Db_sanitize=thread -Db_lundef=false)
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
  # Several workgroups at a time, whatever the machine: emulated kernels, the HIP library, verify and the cache.
  export HEDDLE_EMU_THREADS=4
  [ ${#suites[@]} -gt 0 ] || suites=(emu emu_arithmetic emu_count emu_hip verify device cache api-threads api-seen)
elif [ $sanitize = address ]; then
  folder=$build-sanitize
  options+=(-Db_sanitize=address,undefined -Db_lundef=false)
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
  export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$root/tests/lsan.supp:print_suppressions=0}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
fi
setup_meson "$folder" "${options[@]}"
setup_compile "$folder"

say "Testing"
rm -f "$folder/meson-logs/testlog.json"
export HEDDLE_CACHE_DIR=$folder/test-cache # the user's own cache is none of the tests' business
rc=0
meson test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier "$([ $sanitize = none ] && echo 2 || echo 4)" "${suites[@]}" \
  >"$logs/meson-test.log" 2>&1 || rc=$?
[ -e "$folder/meson-logs/testlog.json" ] ||
  fail "meson test ran nothing (exit code $rc)" "$(tail -n 5 "$logs/meson-test.log")" "whole log: $logs/meson-test.log"
say "  whole log: $folder/meson-logs/testlog.txt; time so far: $((SECONDS - began)) s"
summary=0
python3 "$root/tools/test_summary.py" "$folder" $($in_ci && echo --no-skips) || summary=$?
[ $rc -eq 0 ] && [ $summary -eq 0 ]
