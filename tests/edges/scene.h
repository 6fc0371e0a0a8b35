/* A spec, a batch and a device: what a test of an edge plays on. */
#ifndef HEDDLE_EDGES_SCENE_H
#define HEDDLE_EDGES_SCENE_H

#include "../../generator/spec.h"
#include "../../runtime/session.h"
#include "../../runtime/verify/verify_data.h"

/* One test. */
typedef struct edge {
  session *session;
  variant variant; /* of decode */
  bool failed;
  char problem[400]; /* the first */
} edge;

/* Notes the first problem; false, so that a test can return. */
bool edge_fail(edge *e, const char *format, ...) HD_PRINTF(2, 3);
#define EXPECT(e, condition, ...) ((condition) ? true : edge_fail((e), __VA_ARGS__))

typedef struct scene {
  edge *edge;
  contract contract;
  session_kernel write, decode;
  verify_data data; /* host memory; after scene_write as the device left it */
  double scale;     /* of the logits */
} scene;

/* Builds the kernels of a spec and generates the batch. scene_finish also after a failure. */
bool scene_init(scene *s, edge *e, const char *yaml, const verify_case *from);
void scene_finish(scene *s);

/* Writes on the device and holds caches and scales against the oracle's, bit for bit. */
bool scene_write(scene *s);
/* The same without looking at the result. */
bool scene_launch_write(scene *s);
/* Decodes on the device: out and lse come back. */
bool scene_decode(scene *s, int64_t splits);
/* Whether they are what the oracle makes of the stored bytes. */
bool scene_is_right(scene *s, const char *what);
/* Init, write, decode with each number of splits (0 ends the list), all right. */
bool scene_plays(edge *e, const char *yaml, const verify_case *from, const int *splits);

int64_t scene_rows(const scene *s); /* of out: sequences * rows * query heads */
double scene_out(const scene *s, int64_t row, int64_t channel);
double scene_lse(const scene *s, int64_t row);
/* A copy of out's bytes, to be freed, and whether out still has them. */
void *scene_keep(const scene *s);
bool scene_same(scene *s, const void *kept, const char *what);

/* Bytes of page, head, slot and channel in a cache or scale array. */
unsigned char *scene_at(scene *s, tensor_name name, int64_t page, int64_t head, int64_t slot,
                        int64_t channel);
/* Sets every slot that no token has to these bytes, and its scales to `value`. */
void scene_spoil(scene *s, unsigned char byte, double value);

#endif
