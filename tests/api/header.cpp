// heddle.h as C++ sees it: every type can be made, every function can be called by its C name.
#include <heddle.h>
#include <cstdio>
#include <type_traits>

static_assert(std::is_trivial<hd_arguments>::value && std::is_standard_layout<hd_arguments>::value,
              "structs are plain data");
static_assert(!std::is_convertible<hd_context *, hd_kernel *>::value, "types are different");

int main() {
  hd_diagnostics *why = nullptr;
  hd_contract *contract = nullptr;
  hd_context *context = nullptr;
  hd_context_options options = {};
  if (hd_diagnostics_create(&why) != HD_OK) return 1;
  if (hd_contract_parse("heddle: 2", 9, &contract, why) != HD_DECLINED) return 2;
  if (hd_diagnostics_count(why) == 0) return 3;
  options.size = sizeof options;
  options.device = "nowhere:0";
  if (hd_context_create(&options, &context, why) != HD_INVALID || context != nullptr) return 4;
  std::printf("%s: %s", hd_version_text(), hd_diagnostics_text(why));
  hd_diagnostics_destroy(why);
  return 0;
}
