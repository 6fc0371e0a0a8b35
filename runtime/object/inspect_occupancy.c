#include "inspect.h"
#include <string.h>

/* Of a compute unit (gfx942, gfx950) or of a work-group processor (gfx1201): CDNA3, CDNA4 and RDNA4 ISA
 * documents. Nothing public says it for gfx1250. */
static const struct {
  const char *target;
  int registers, granule, most_waves; /* a lane of a SIMD; waves of a SIMD */
  int lds, simds, wave, most_workgroups;
} units[] = {
    {"gfx942", 512, 8, 8, 65536, 4, 64, 32},
    {"gfx950", 512, 8, 8, 163840, 4, 64, 32},
    {"gfx1201", 1536, 24, 16, 131072, 4, 32, 32},
};

static int least(int a, int b) {
  return a < b ? a : b;
}

bool inspect_occupancy(const char *target_name, int vgprs, int lds, int threads, int *out_waves,
                       int *out_workgroups, const char **out_limit) {
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(units[i].target, target_name) != 0) continue;
    int granule = units[i].granule, simds = units[i].simds;
    int taken = ((vgprs > 0 ? vgprs : 1) + granule - 1) / granule * granule;
    int by_registers = units[i].registers / taken;
    int waves = (threads + units[i].wave - 1) / units[i].wave;
    if (waves < 1) waves = 1;
    /* Waves of a workgroup are spread over the SIMDs. */
    int a_simd = (waves + simds - 1) / simds;
    int workgroups = least(by_registers, units[i].most_waves) / a_simd;
    if (waves < simds) workgroups = least(by_registers, units[i].most_waves) * simds / waves;
    const char *limit = by_registers < units[i].most_waves ? "registers" : "waves";
    if (lds > 0 && units[i].lds / lds < workgroups) {
      workgroups = units[i].lds / lds;
      limit = "LDS";
    }
    workgroups = least(workgroups, units[i].most_workgroups);
    *out_workgroups = workgroups;
    *out_waves = workgroups * waves / simds;
    if (workgroups > 0 && *out_waves == 0) *out_waves = 1;
    *out_limit = limit;
    return true;
  }
  return false;
}
