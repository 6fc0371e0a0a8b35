/* Copies that go to LDS without passing registers, and transposed LDS reads: what each target has. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int int2v __attribute__((ext_vector_type(2)));
typedef int int4v __attribute__((ext_vector_type(4)));
typedef int int8v __attribute__((ext_vector_type(8)));
typedef short short4v __attribute__((ext_vector_type(4)));

#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define GLOBAL_SPACE __attribute__((address_space(1)))
#define LDS_SPACE __attribute__((address_space(3)))

DEVICE static inline int thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE static inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/* Each thread copies 16 bytes through LDS, written by itself and read by its mirror image. */
KERNEL void through_lds(int4v *in, int4v *out) {
  SHARED static int4v slab[128];
  int t = thread_x();
#if defined(__gfx950__)
  int first = t & ~63;
  __builtin_amdgcn_global_load_lds((GLOBAL_SPACE void *)(in + t), (LDS_SPACE void *)(slab + first), 16, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
#elif defined(__gfx942__)
  int first = t & ~63;
  for (int n = 0; n < 4; ++n) /* words: slab as [wave][word of 4][lane] */
    __builtin_amdgcn_global_load_lds((GLOBAL_SPACE void *)((int *)in + 4 * first + 64 * n + (t & 63)),
                                     (LDS_SPACE void *)((int *)slab + 4 * first + 64 * n), 4, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
#elif defined(__gfx1250__)
  __builtin_amdgcn_global_load_async_to_lds_b128((GLOBAL_SPACE int4v *)(in + t), (LDS_SPACE int4v *)(slab + t), 0, 0);
  __builtin_amdgcn_s_wait_asynccnt(0);
#else
  slab[t] = in[t];
#endif
  barrier();
  out[t] = slab[127 - t];
}

#if defined(__gfx950__)
/* A matrix of 16 columns in LDS, rows of `in`; lane t of each 16 gets column t of the rows its group addresses. */
KERNEL void transposed_16(const u16 *in, short4v *out) { /* 16 rows x 16 columns: four rows for each 16 lanes */
  SHARED static u16 m[16][16];
  int t = thread_x();
  for (int n = 0; n < 4; ++n) m[t / 4][t % 4 * 4 + n] = in[t * 4 + n];
  barrier();
  out[t] = __builtin_amdgcn_ds_read_tr16_b64_v4i16((LDS_SPACE short4v *)&m[t / 4][t % 4 * 4]);
}
KERNEL void transposed_8(const u8 *in, int2v *out) { /* 32 rows x 16 columns */
  SHARED static u8 m[32][16];
  int t = thread_x();
  for (int n = 0; n < 8; ++n) m[t / 2][t % 2 * 8 + n] = in[t * 8 + n];
  barrier();
  out[t] = __builtin_amdgcn_ds_read_tr8_b64_v2i32((LDS_SPACE int2v *)&m[t / 2][t % 2 * 8]);
}
#endif

#if defined(__gfx1250__)
/* A tile of 8 rows x 20 halfwords from a tensor of 6 x 17 valid elements, rows padded by 4 bytes after every 16. */
KERNEL void tensor_copy(const u16 *in, u16 *out, int stride, int rows, int columns) {
  SHARED static u16 tile[256];
  for (int n = thread_x(); n < 256; n += 32) tile[n] = 0; /* paddings stay what they were */
  barrier();
  u64 from = (u64)in;
  int4v where = {1, (int)(u32)(u64)(LDS_SPACE u16 *)tile, (int)(u32)from, (int)((u32)(from >> 32) & 0x01ffffff) | (int)0x80000000};
  int8v what = {1 << 16 | 1 << 20 | 1 << 22, columns << 16, rows << 16, 20 << 16, 8, stride, 0, 0};
  int4v none = {0, 0, 0, 0};
  __builtin_amdgcn_tensor_load_to_lds(where, what, none, none, 0);
  __builtin_amdgcn_s_wait_tensorcnt(0);
  barrier();
  for (int n = thread_x(); n < 200; n += 32) out[n] = tile[n];
}
#endif
