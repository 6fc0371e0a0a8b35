#!/usr/bin/env bash
# The whole of heddle on a machine without a GPU: a spec becomes source, source becomes code objects, and the gfx950 code objects run on
# the CPU, producer to consumer, against a float64 oracle. Sets everything up itself. Takes about a minute on two cores, the first
# run longer (packages, ROCm runtime, compilation of heddle).
#
#   tools/demo.sh [--installed]      --installed: with the heddle on PATH, building nothing
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

installed=false
case ${1:-} in
  '') ;;
  --installed) installed=true ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) say "usage: tools/demo.sh [--installed]" >&2; exit 2 ;;
esac

device=emu:gfx950
logits_scale=0.08838834764831845 # 1/sqrt(128)
began=$SECONDS

# show COMMAND...: runs a command as a user would type it, prints it and what it says; failing explains and exits.
show() {
  local rc=0 from
  printf '\n$ %s\n' "$(shown "$@" | folded)"
  from=$(date +%s%N)
  "$@" >"$demo/last.log" 2>&1 || rc=$?
  sed "s|$root/||g; s/^/  /" "$demo/last.log"
  printf '  (%d ms)\n' $((($(date +%s%N) - from) / 1000000))
  [ $rc -eq 0 ] ||
    fail "the demo stopped: this command ended with exit code $rc" "command: $(shown "$@")" \
      "what to do: $(relative "$heddle") doctor says what was found on this machine and what is missing;" \
      "            exit code 1 is a decline or a difference, 2 is usage, 3 a failure"
}
relative() { printf '%s' "${1//"$root/"/}"; }
shown() { relative "$*"; }
# A long command over several lines, broken before options.
folded() {
  awk '{
    line = $1
    for (i = 2; i <= NF; i++) {
      pair = $i
      if ($i ~ /^--/ && i < NF) pair = pair " " $(++i)
      if (length(line) + length(pair) > 116) { print line " \\"; line = "   " }
      line = line " " pair
    }
    print line
  }'
}
note() { printf '\n== %s\n' "$*"; }

say "Setting up"
setup_folders
if $installed; then
  heddle=$(command -v heddle) || fail "there is no heddle on PATH" "what to do: docs/install.md; or run tools/demo.sh without --installed"
  needs=("python3|command -v python3|python3" "clang 22|have_clang|clang-22" "lld 22|command -v ld.lld-22|lld-22" "numpy|have_numpy|python3-numpy")
else
  heddle=$build/heddle
fi
setup_packages
setup_rocm
if ! $installed; then
  say "Building"
  setup_meson "$build" -Dtests=enabled -Demu=enabled
  setup_compile "$build" product
fi

demo=$build/demo
spec=$root/specs/minimax-m3-dense-fp8.yaml
mkdir -p "$demo"
cd "$root"

note "1. The spec, and the contract it means"
show "$heddle" check "$spec"
show "$heddle" key "$spec"

readarray -t all_targets < <("$heddle" targets | awk 'NR > 1 {print $1}')
readarray -t amd_targets < <(printf '%s\n' "${all_targets[@]}" | grep ^gfx)

note "2. HIP source and launch descriptors for every target"
targets=()
for target in "${all_targets[@]}"; do targets+=(--target "$target"); done
show "$heddle" emit "$spec" "${targets[@]}" -o "$demo/source"

note "3. Code objects, by contract key, into the cache"
targets=()
for target in "${amd_targets[@]}"; do targets+=(--target "$target"); done
if [ $rocm_state = found ]; then
  show "$heddle" build "$spec" "${targets[@]}" --compiler hiprtc
  compiler=hiprtc
else
  say "  No hiprtc on this machine and none to be had (see above): going on with clang and lld alone."
  compiler=llvm
fi
show "$heddle" build "$spec" "${targets[@]}" --compiler llvm
show "$heddle" cache path
show "$heddle" cache verify

note "4. Producer: bf16 k and v through the generated cache writer, on $device (compiled by $compiler)"
in=$demo/in dev=$demo/device ref=$demo/oracle
mkdir -p "$dev" "$ref"
show python3 "$root/tools/demo_inputs.py" "$in"
write_in=()
for name in k v slot_mapping k_cache v_cache k_scale v_scale; do write_in+=(--in "$name=$in/$name.npy"); done
outputs() { # FOLDER NAME...
  local folder=$1 name
  shift
  for name in "$@"; do printf '%s\n' --out "$name=$folder/$name.npy"; done
}
stored=(k_cache v_cache k_scale v_scale)
mapfile -t write_out < <(outputs "$dev" "${stored[@]}")
show "$heddle" run "$spec" --kernel write --device "$device" --compiler "$compiler" "${write_in[@]}" "${write_out[@]}"
mapfile -t write_out < <(outputs "$ref" "${stored[@]}")
show "$heddle" reference "$spec" --kernel write --target gfx950 "${write_in[@]}" "${write_out[@]}"
say ""
say "  Stored codes and scales, device against oracle:"
verdict=0
for name in "${stored[@]}"; do
  printf '    '
  python3 "$root/tools/demo_compare.py" same "$dev/$name.npy" "$ref/$name.npy" "$name" || verdict=1
done

note "5. Consumer: the generated split-K decode reads that cache, on $device"
decode_in=(--in "q=$in/q.npy" --in "page_table=$in/page_table.npy" --in "lengths=$in/lengths.npy")
for name in "${stored[@]}"; do decode_in+=(--in "$name=$dev/$name.npy"); done
show "$heddle" run "$spec" --kernel decode --device "$device" --compiler "$compiler" --split 4 --set "logits_scale=$logits_scale" \
  "${decode_in[@]}" --out "out=$dev/out.npy"
show "$heddle" reference "$spec" --kernel decode --target gfx950 --set "logits_scale=$logits_scale" \
  "${decode_in[@]}" --out "out=$ref/out.npy"
say ""
say "  Output of the decode against"
compare() { # LABEL MODE ARGUMENT...
  printf '    %-58s ' "$1:"
  shift
  python3 "$root/tools/demo_compare.py" "$@" || verdict=1
}
compare "heddle reference (rounded to bf16 as well)" close "$dev/out.npy" "$ref/out.npy" 2.5e-3
compare "float64 attention over the stored bytes, read in Python" stored "$in" "$dev" "$dev/out.npy" "$logits_scale" 2.5e-3
compare "float64 attention over the unquantised k and v" unquantised "$in" "$dev/out.npy" "$logits_scale" 0.999

note "Where things lie"
say "  command      $(relative "$heddle")"
say "  source       $(relative "$demo")/source"
say "  code objects $("$heddle" cache path)"
say "  tensors      $(relative "$in"), $(relative "$dev"), $(relative "$ref")"
say ""
if [ $verdict -ne 0 ]; then
  fail "the demo ran, but a result is off (see the lines above)" "what to do: this is a bug of heddle; please report it with this output"
fi
say "Done in $((SECONDS - began)) s: the generated writer and the split-K decode agree with the oracle (simulated: $device)."
