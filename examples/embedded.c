/* A program that carries its kernels: built from a spec by the build system (meson/, cmake/), it needs no
 * compiler, no cache and no file at run time. It checks that; the launch itself is examples/launch.c's
 * matter.
 *
 * The device is its argument, or an emulated one. Exit code 0: the kernels came out of the program. */
#include <heddle.h>
#include <stdio.h>
#include <string.h>

extern const hd_embedded example_kernels;

static int fail(const char *what, hd_status status, hd_diagnostics *why) {
  fprintf(stderr, "%s: %s\n%s", what, hd_status_text(status), hd_diagnostics_text(why));
  return 1;
}

int main(int argc, char **argv) {
  hd_diagnostics *why = NULL;
  hd_context_options options;
  hd_context *context = NULL;
  hd_contract *contract = NULL;
  hd_kernel *kernels[2] = {NULL, NULL};
  hd_status statuses[2], status;
  hd_job jobs[2];
  int good = 1;
  memset(&options, 0, sizeof options);
  memset(jobs, 0, sizeof jobs);
  if (hd_diagnostics_create(&why) != HD_OK) return 1;
  options.size = sizeof options;
  options.device = argc > 1 ? argv[1] : "emu:gfx950";
  options.cache_directory = ""; /* none is needed */
  status = hd_context_create(&options, &context, why);
  if (status == HD_OK) status = hd_context_add_embedded(context, &example_kernels, why);
  if (status == HD_OK) status = hd_contract_embedded(&example_kernels, "example", &contract, why);
  if (status != HD_OK) return fail(options.device, status, why);
  for (int i = 0; i < 2; i++) {
    jobs[i].size = sizeof jobs[i];
    jobs[i].contract = contract;
    jobs[i].operation = i == 0 ? HD_WRITE : HD_DECODE;
  }
  status = hd_prepare_many(context, jobs, 2, NULL, NULL, kernels, statuses, why);
  if (status != HD_OK) return fail("preparing", status, why);
  for (int i = 0; i < 2; i++) {
    hd_kernel_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    if (hd_kernel_get_info(kernels[i], &info) != HD_OK) return 1;
    printf("%s/%s for %s: %s, %zu bytes\n", info.contract_name, info.operation, info.target, info.origin,
           info.code_object_bytes);
    good &= strcmp(info.origin, "embedded") == 0;
    hd_kernel_release(kernels[i]);
  }
  hd_contract_destroy(contract);
  hd_context_destroy(context);
  hd_diagnostics_destroy(why);
  return good ? 0 : 1;
}
