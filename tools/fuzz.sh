#!/usr/bin/env bash
# Fuzzes what reads bytes that others wrote: specs, layouts, .npy files, cache entries, packs, a server's answers, tuned records,
# timings, match descriptions, launch descriptors, code objects (docs/security.md).
#
#   tools/fuzz.sh [SECONDS] [TARGET]...     SECONDS: of each target, default 60; TARGET: "spec", default: all
#
# Builds with clang, libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer in build-fuzz (CC chooses the clang, default
# clang-22, with Debian's libclang-rt-22-dev), and runs as many targets at a time as there are cores (FUZZ_JOBS: others). What was
# learnt stays in build-fuzz/corpus and is begun with next time; inputs that failed are in build-fuzz/findings. Exits 1 when
# there are any. One that is mended goes to tests/fuzz/corpus/TARGET, which every test run replays.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

case ${1:-} in -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
folder=$build-fuzz
logs=$folder/logs
export CC=${CC:-clang-22}

say "Building"
build=$folder setup_folders
printf 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n);\nint LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return p && n > 9 ? 0 : 0; }\n' >"$logs/probe.c"
$CC -fsanitize=fuzzer,address "$logs/probe.c" -o "$logs/probe" 2>"$logs/probe.log" ||
  fail "$CC has no libFuzzer" "$(tail -n 2 "$logs/probe.log")" "what to do: apt-get install libclang-rt-22-dev, or set CC to another clang"
setup_meson "$folder" -Dfuzz=enabled -Dtests=disabled -Db_sanitize=address,undefined -Db_lundef=false
setup_compile "$folder" fuzz

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for program in "$folder"/tests/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] && [[ $program != *_seeds ]] && targets+=("${program##*/fuzz_}")
  done
fi

dictionary() {
  local words=$root/tests/fuzz
  case $1 in
    spec | tune_record) say "-dict=$words/yaml.dict" ;;
    match | descriptor) say "-dict=$words/json.dict" ;;
    layout | npy | timings) say "-dict=$words/$1.dict" ;;
  esac
}

# One target for its time. A finding ends libFuzzer, which then goes on with what is left; after ten it has shown enough.
fuzz_one() {
  local target=$1 began=$SECONDS found=0 left corpus=$folder/corpus/$1
  local seeds=$folder/tests/fuzz/seeds/$target kept=$root/tests/fuzz/corpus/$target folders=("$corpus")
  mkdir -p "$corpus" "$folder/findings"
  [ ! -d "$seeds" ] || folders+=("$seeds")
  [ ! -d "$kept" ] || folders+=("$kept")
  : >"$logs/$target.log"
  while left=$((seconds - SECONDS + began)) && [ $left -gt 0 ] && [ $found -lt 10 ]; do
    # shellcheck disable=SC2046
    "$folder/tests/fuzz/fuzz_$target" $(dictionary "$target") -max_total_time=$left -max_len=65536 -timeout=20 -rss_limit_mb=3000 \
      -malloc_limit_mb=1500 -print_final_stats=1 -use_value_profile=1 -artifact_prefix="$folder/findings/$target-" "${folders[@]}" \
      >>"$logs/$target.log" 2>&1 || found=$((found + 1))
  done
  awk -v target="$target" -v seconds=$((SECONDS - began)) -v found=$found '
    /^stat::number_of_executed_units:/ { runs += $2 }
    / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
    END { printf "  %-12s %6d s %12d executions %7d edges %4d findings\n", target, seconds, runs, edges, found }' "$logs/$target.log"
  [ $found -eq 0 ] || grep -hE '^(SUMMARY|==[0-9]+== ERROR|.*does not hold|Test unit written)' "$logs/$target.log" | sort | uniq -c | head -n 20 | sed 's/^/    | /'
  [ $found -eq 0 ]
}

say "Fuzzing, $seconds s each; logs: ${logs#"$root"/}"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
jobs=${FUZZ_JOBS:-$(nproc)}
failed=0 running=0
for target in "${targets[@]}"; do
  if [ $running -ge "$jobs" ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz_one "$target" &
  running=$((running + 1))
done
while [ $running -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
[ $failed -eq 0 ] || fail "there are findings" "inputs: $folder/findings" "once mended, keep each: tests/fuzz/corpus/TARGET/NAME"
