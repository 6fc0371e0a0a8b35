#!/bin/sh
# Makes one static library of several, in which hidden symbols are local: localize.sh FOLDER OUTPUT LIBRARY...
# The bytes depend on the libraries alone.
set -eu
folder=$1 output=$2
shift 2
mkdir -p "$folder"
ld -r -o "$folder/heddle.o" --whole-archive "$@"
objcopy --localize-hidden "$folder/heddle.o"
rm -f "$output"
ar rcsD "$output" "$folder/heddle.o"
