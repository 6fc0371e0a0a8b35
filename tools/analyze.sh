#!/usr/bin/env bash
# Static analysis of generator and runtime: gcc -fanalyzer, cppcheck and clang-tidy (.clang-tidy). Exits 1 when one of them says
# anything that isn't in tools/analyze/*.txt with its reason.
#
#   tools/analyze.sh [gcc|cppcheck|clang-tidy]... [FILE.c]...     default: all three, on all files
#
# Needs a configured build folder (tools/test.sh makes one), and Debian's gcc, cppcheck and clang-tidy. Minutes.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

case ${1:-} in -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
tools=() files=()
for argument in "$@"; do
  case $argument in
    gcc | cppcheck | clang-tidy) tools+=("$argument") ;;
    *.c) files+=("$argument") ;;
    *) say "usage: tools/analyze.sh [gcc|cppcheck|clang-tidy]... [FILE.c]..." >&2; exit 2 ;;
  esac
done
[ ${#tools[@]} -gt 0 ] || tools=(gcc cppcheck clang-tidy)
[ -e "$build/compile_commands.json" ] || fail "$build is no build folder" "what to do: tools/test.sh, or meson setup $build"
cd "$root"
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files 'generator/*.c' 'runtime/*.c')
mkdir -p "$logs"
jobs=${ANALYZE_JOBS:-$(nproc)}

# "FILE FLAGS" for each file that is built, without what only writes files or sets warnings.
flags_of() {
  python3 - "$build" "$@" <<'PYTHON'
import json, os, shlex, sys
build, wanted = sys.argv[1], {os.path.realpath(path): path for path in sys.argv[2:]}
for entry in json.load(open(os.path.join(build, "compile_commands.json"))):
    path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
    if path not in wanted:
        continue
    words, flags = shlex.split(entry["command"]), []
    for at, word in enumerate(words):
        if word.startswith("-I") and not os.path.isabs(word[2:]):
            flags.append("-I" + os.path.join(entry["directory"], word[2:]))
        elif word == "-isystem":
            flags += [word, words[at + 1]]
        elif word.startswith(("-D", "-std", "-I", "-pthread")):
            flags.append(word)
    print(wanted.pop(path), *map(shlex.quote, flags))
PYTHON
}

# What is said, without what a list has: lines "FILE WORDS", each under a comment with the reason.
new_ones() {
  local log=$1 list=$root/tools/analyze/$2.txt line file words hidden
  while IFS= read -r line; do
    hidden=false
    while read -r file words; do
      [[ -n $file && $file != \#* && $line == *"$file"* && $line == *"$words"* ]] && hidden=true
    done <"$list"
    $hidden || printf '%s\n' "$line"
  done < <(grep -E ': (error|warning|portability|style|performance): ' "$log" | sed "s|$root/||; s|^\(\./\)*||" | sort -u)
}

run_gcc() { # O2 follows calls that O0 doesn't
  flags_of "${files[@]}" | xargs -P "$jobs" -d '\n' -I LINE sh -c 'set -- LINE; file=$1; shift; gcc "$@" -O2 -fanalyzer -Wno-analyzer-too-complex -c "$file" -o /dev/null' 2>&1
}
run_cppcheck() {
  cppcheck -j "$jobs" --quiet --std=c11 --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem --template=gcc \
    -Igenerator -Iruntime "${files[@]}" 2>&1
}
run_clang_tidy() {
  flags_of "${files[@]}" | xargs -P "$jobs" -d '\n' -I LINE sh -c 'set -- LINE; file=$1; shift; clang-tidy --quiet "$file" -- "$@"' 2>&1
}

failed=false
for tool in "${tools[@]}"; do
  command -v "$tool" >/dev/null || fail "there is no $tool" "what to do: apt-get install $tool"
  began=$SECONDS
  "run_${tool//-/_}" >"$logs/analyze-$tool.log" || true
  found=$(new_ones "$logs/analyze-$tool.log" "$tool")
  count=$(printf '%s' "$found" | grep -c . || true)
  say "  $tool: ${#files[@]} files, $count new findings ($((SECONDS - began)) s; all: ${logs#"$root"/}/analyze-$tool.log)"
  [ "$count" = 0 ] || { failed=true; printf '%s\n' "$found" | sed 's/^/    | /'; }
done
! $failed
