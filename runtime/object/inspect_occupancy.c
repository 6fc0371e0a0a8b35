#include "../../generator/target.h"
#include "inspect.h"

static int least(int a, int b) {
  return a < b ? a : b;
}

bool inspect_occupancy(const char *target_name, int vgprs, int lds, int threads, int *out_waves,
                       int *out_workgroups, const char **out_limit) {
  const target *t = target_find(target_name);
  if (!t || t->unit_workgroups == 0) return false;
  int granule = t->vgpr_granule, simds = t->unit_simds;
  int taken = ((vgprs > 0 ? vgprs : 1) + granule - 1) / granule * granule;
  int by_registers = t->simd_vgprs / taken;
  int waves = (threads + t->wave - 1) / t->wave;
  if (waves < 1) waves = 1;
  /* Waves of a workgroup are spread over the SIMDs. */
  int a_simd = (waves + simds - 1) / simds;
  int workgroups = least(by_registers, t->simd_waves) / a_simd;
  if (waves < simds) workgroups = least(by_registers, t->simd_waves) * simds / waves;
  const char *limit = by_registers < t->simd_waves ? "registers" : "waves";
  if (lds > 0 && t->unit_lds / lds < workgroups) {
    workgroups = t->unit_lds / lds;
    limit = "LDS";
  }
  workgroups = least(workgroups, t->unit_workgroups);
  *out_workgroups = workgroups;
  *out_waves = workgroups * waves / simds;
  if (workgroups > 0 && *out_waves == 0) *out_waves = 1;
  *out_limit = limit;
  return true;
}
