#!/bin/sh
# Uses an installed heddle as its users do: use.sh SOURCES SCRATCH
#
# SOURCES: a source tree, of which only examples, the demo's scripts and the Python tests are taken. SCRATCH: a folder for what is made. The command is the one on PATH.
# Needs a C compiler, pkg-config, cmake, meson, man and python3-numpy. Prints one line a claim, and ends at the first that doesn't hold.
set -eu
sources=$(cd "$1" && pwd)
mkdir -p "$2"
scratch=$(cd "$2" && pwd)
cd /
export HEDDLE_CACHE_DIR="$scratch/cache"
device=emu:gfx950
log=$scratch/log
claim() { # WHAT COMMAND...
  what=$1
  shift
  if "$@" >"$log" 2>&1; then echo "  $what"; else echo "  NOT: $what ($*)"; tail -n 20 "$log"; exit 1; fi
}
says() { # TEXT COMMAND...
  text=$1
  shift
  "$@" >"$scratch/said" 2>&1 || { cat "$scratch/said"; return 1; }
  grep -qF -- "$text" "$scratch/said" || { cat "$scratch/said"; return 1; }
}

command=$(readlink -f "$(command -v heddle)")
share=${command%/bin/heddle}/share
case $command in "$sources"/*) echo "  NOT: the command is installed: $command"; exit 1 ;; esac
version=$(heddle version | cut -d ' ' -f 2)

claim "the command runs, and knows its specs by name" heddle check nhd-fp16
claim "man heddle-verify" says "hold kernels on a device" env MANPAGER=cat man heddle-verify
claim "completion for bash" bash -c '. "$1" && complete -p heddle' sh "$share/bash-completion/completions/heddle"
claim "completion for zsh and fish lies in its place" sh -c 'ls "$1"/zsh/*/_heddle "$1"/fish/vendor_completions.d/heddle.fish' sh "$share"
claim "verify on $device with clang and lld" says ", 0 bad;" heddle verify nhd-fp16 --device $device --compiler llvm
claim "verify on $device with the compiler that is found first" says ", 0 bad;" heddle verify nhd-fp16 --device $device
claim "tune keeps a record of an installed spec" heddle tune "$share/heddle/specs/nhd-fp16.yaml" --device $device --shape 1x64x1 --out "$scratch/tuned"
claim "and the record is found" says nhd-fp16 env HEDDLE_TUNED_DIR="$scratch/tuned" heddle tune explain "$share/heddle/specs/nhd-fp16.yaml" --target gfx950 --shape 1x64x1

mkdir "$scratch/programs"
cd "$scratch/programs"
claim "pkg-config knows version $version" pkg-config --exists "heddle = $version"
claim "a program through pkg-config is compiled" sh -c 'cc "$1" $(pkg-config --cflags --libs heddle) -lm -o shared' sh "$sources/examples/launch.c"
claim "and runs" says "compiled" ./shared $device
claim "one with the static library" sh -c 'cc "$1" $(pkg-config --cflags heddle) "$(pkg-config --variable=libdir heddle)"/libheddle.a -lyaml -lm -lpthread -o static' sh "$sources/examples/launch.c"
# Nothing of heddle lies around such a program.
claim "runs too, when told where worker and devices are" says "largest error" env HEDDLE_WORKER="${command%/bin/heddle}/libexec/heddle/heddle-compile-worker" \
  HEDDLE_EMU_LIBRARY="$(pkg-config --variable=libdir heddle)/heddle/libheddle-emu.so" ./static $device
mkdir cmake meson
cat >cmake/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(heddle $version REQUIRED)
add_executable(program $sources/examples/launch.c)
target_link_libraries(program PRIVATE heddle::heddle m)
END
cat >meson/meson.build <<END
project('user', 'c', default_options: ['c_std=c17'])
executable('program', 'launch.c', dependencies: [dependency('heddle', version: '>=$version'), meson.get_compiler('c').find_library('m')])
END
cp "$sources/examples/launch.c" meson/
mkdir meson/subprojects
printf '[wrap-file]\ndirectory = heddle-%s\nsource_url = https://heddle.invalid/heddle.tar.xz\nsource_filename = heddle.tar.xz\nsource_hash = 0\n\n[provide]\nheddle = heddle_dep\n' "$version" >meson/subprojects/heddle.wrap
claim "find_package(heddle) in CMake" sh -c 'cmake -S cmake -B cmake/b && cmake --build cmake/b'
claim "runs" says "largest error" cmake/b/program $device
claim "dependency('heddle') in Meson, before a subproject" sh -c 'meson setup meson/b meson && ninja -C meson/b'
claim "runs" says "largest error" meson/b/program $device
cp -r "$sources/examples" examples
claim "kernels embedded by CMake" sh -c 'cmake -S examples/cmake -B e1 && cmake --build e1'
claim "run without a compiler" says embedded env HEDDLE_NO_JIT=1 e1/program $device
claim "kernels embedded by Meson" sh -c 'meson setup e2 examples/meson && ninja -C e2'
claim "run without a compiler" says embedded env HEDDLE_NO_JIT=1 e2/program $device
cd /

claim "the demo, with the installed command" says "agree with the oracle" env HEDDLE_BUILD_DIR="$scratch/demo" "$sources/tools/demo.sh" --installed
if python3 -c 'import heddle' 2>/dev/null; then
  for name in native package numpy; do
    claim "Python package: tests/python/test_$name.py" env HEDDLE_SOURCE="$sources" python3 "$sources/tests/python/test_$name.py"
  done
fi
