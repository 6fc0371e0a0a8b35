#!/bin/sh
# Draws the pictures of docs/pictures.md again, each by the command that stands there.
set -e
cd "$(dirname "$0")/.."
export HEDDLE_TUNED_DIR=/nowhere # whatever records lie beside the specs
heddle="${HEDDLE_BUILD_DIR:-build}/heddle"
grep '^build/heddle .*--svg' docs/pictures.md | while read -r _ words; do
  # shellcheck disable=SC2086 # words of a command
  "$heddle" $words > /dev/null
done
