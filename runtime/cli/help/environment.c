#include "environment.h"
#include "../cli.h"

const environment_row environment_rows[] = {
    {"HEDDLE_CACHE_DIR", "the cache of code objects (default: $XDG_CACHE_HOME/heddle or ~/.cache/heddle)",
     ENV_CACHE},
    {"HEDDLE_CACHE_MAX_BYTES", "the most it holds; what was of use longest ago goes first", ENV_CACHE},
    {"HEDDLE_PACKS", "read-only packs to look into first, with : between them", ENV_CACHE},
    {"HEDDLE_CACHE_URL", "a cache that machines share, by HTTP", ENV_CACHE},
    {"HEDDLE_CACHE_HEADER", "a file with one line to send along with each request to it", ENV_CACHE},
    {"HEDDLE_CACHE_TIMEOUT", "seconds that one request to it may take (default: 5)", ENV_CACHE},
    {"HEDDLE_CURL_LIBRARY", "libcurl, for HEDDLE_CACHE_URL", ENV_CACHE},
    {"HEDDLE_NO_JIT", "1: nothing is compiled; what the cache lacks is an error", ENV_COMPILERS},
    {"HEDDLE_ROCM", "a ROCm installation; wins over ROCM_PATH and /opt/rocm", ENV_COMPILERS},
    {"HEDDLE_CLANG", "the clang for --compiler llvm", ENV_COMPILERS},
    {"HEDDLE_WORKER", "the compile worker (default: beside the command)", ENV_COMPILERS},
    {"HEDDLE_TEMPLATES", "a folder whose templates win over those built in", ENV_TEMPLATES},
    {"HEDDLE_TUNED_DIR", "tuned records (default: tuned/ beside the spec)", ENV_TUNED},
    {"HEDDLE_EMU_LIBRARY", "the emulated device's plug-in", ENV_DEVICES},
    {"HEDDLE_CUDA_LIBRARY", "libcuda", ENV_DEVICES},
    {"HEDDLE_HIP_LIBRARY", "libamdhip64", ENV_DEVICES},
    {"HEDDLE_EMU_THREADS", "threads of an emulated device (default: all cores)", ENV_DEVICES},
    {"HEDDLE_EMU_BUDGET", "instructions that a wave may take before it counts as hung", ENV_DEVICES},
    {"HEDDLE_EMU_WATCH", "0: an emulated device doesn't check what kernels do", ENV_DEVICES},
    {"NO_COLOR", "set: no colour, unless --color asks for it", 0},
    {0},
};
