#!/usr/bin/env bash
# Builds the Python wheel, installs it with PyTorch in a virtual environment, and runs the tests that need PyTorch. Not part of
# tools/test.sh: PyTorch is some gigabytes. The last line it prints is unittest's.
#
#   tools/test_torch.sh [FOLDER]      FOLDER: of the virtual environment (default: build/torch); kept for the next run
#
# Environment: HEDDLE_TEST_DEVICE  what to run on (default: emu:gfx950)
#              HEDDLE_TORCH        what pip is to install (default: torch transformers)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

case ${1:-} in -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
folder=${1:-$build/torch}
setup_folders
[ -x "$folder/bin/python" ] || step "virtual environment" python3 -m venv "$folder"
"$folder/bin/python" -c 'import numpy, torch, transformers' 2>"$logs/torch-import.log" ||
  step "install PyTorch" "$folder/bin/pip" install ${HEDDLE_TORCH:-torch transformers} numpy
rm -rf "$folder/wheel"
step "build the wheel" "$folder/bin/pip" wheel --no-deps -w "$folder/wheel" "$root"
step "install the wheel" "$folder/bin/pip" install --no-deps --force-reinstall "$folder"/wheel/heddle-*.whl
export HEDDLE_SOURCE=$root HEDDLE_CACHE_DIR=$folder/cache
cd "$folder" # so that the package is the wheel's
for name in package numpy torch transformers vllm; do
  "$folder/bin/python" "$root/tests/python/test_$name.py" -v
done
