/* The launch path: nothing but launches, and graphs that stay right when sequences grow. */
#include "edges.h"
#include <string.h>

/* Everything on the device, a workspace included, for launches by hand. */
typedef struct stage {
  scene scene;
  tensors on_device;
  int64_t dims[DIM_COUNT];
} stage;

static const verify_case growing = {
    .name = "edge", .kv_heads = 1, .length_count = 3, .lengths = {{0, 6, 5}, {0, 0, 3}, {0, 9, 0}}};

static bool stage_init(stage *t, edge *e, int64_t splits) {
  session *s = e->session;
  diags d;
  *t = (stage){0};
  if (!scene_init(&t->scene, e, edge_shuffled, &growing) || !scene_write(&t->scene)) return false;
  diags_init(&d);
  hd_status status = bind_dims(&t->scene.contract, OPERATION_DECODE, &t->scene.data.decode, t->dims, &d);
  t->dims[DIM_SPLITS] = splits;
  if (status == HD_OK)
    status =
        session_upload(s, &t->scene.contract, OPERATION_DECODE, &t->scene.data.decode, &t->on_device, &d);
  int64_t bytes = descriptor_workspace_bytes(t->scene.decode.descriptor, t->dims);
  tensor *workspace = &t->on_device.by_name[TENSOR_WORKSPACE];
  if (status == HD_OK)
    status = s->device->vtable->allocate(s->device, (size_t)bytes + 1, &workspace->data, &d);
  if (status == HD_OK) t->on_device.present[TENSOR_WORKSPACE] = true;
  EXPECT(e, status == HD_OK, "staging: %s", d.count ? d.items[0].message : "failed");
  diags_finish(&d);
  return status == HD_OK;
}

static void stage_finish(stage *t) {
  session_release(t->scene.edge->session, &t->on_device);
  scene_finish(&t->scene);
}

static hd_status stage_launch(stage *t, device_stream *stream, diags *d) {
  session_kernel *k = &t->scene.decode;
  return launch_operation(t->scene.edge->session->device, stream, k->descriptor, k->functions, &t->on_device,
                          t->dims, (float)t->scene.scale, d);
}

static bool stage_fetch(stage *t, diags *d) {
  session *s = t->scene.edge->session;
  return session_download(s, &t->on_device, &t->scene.data.decode, TENSOR_OUT, d) == HD_OK &&
         session_download(s, &t->on_device, &t->scene.data.decode, TENSOR_LSE, d) == HD_OK;
}

/* Sequences of up to `longest` tokens, on the device and for the oracle. */
static bool set_lengths(stage *t, const int32_t lengths[3], diags *d) {
  session *s = t->scene.edge->session;
  memcpy(t->scene.data.memory[TENSOR_LENGTHS], lengths, 3 * sizeof lengths[0]);
  return s->device->vtable->copy_in(s->device, NULL, t->on_device.by_name[TENSOR_LENGTHS].data, lengths,
                                    3 * sizeof lengths[0], d) == HD_OK;
}

/* A graph captured with the split count of short sequences, replayed when they have grown. */
static void graph_keeps_its_split(edge *e) {
  const device_vtable *v = e->session->device->vtable;
  device *on = e->session->device;
  device_stream *stream = NULL;
  device_graph *graph = NULL;
  stage t;
  diags d;
  diags_init(&d);
  int64_t splits = 2;
  if (stage_init(&t, e, splits)) {
    int32_t grown[3], early[3] = {5, 1, 17};
    memcpy(grown, t.scene.data.memory[TENSOR_LENGTHS], sizeof grown);
    bool good = set_lengths(&t, early, &d) && v->stream_create(on, &stream, &d) == HD_OK &&
                v->capture_begin(on, stream, &d) == HD_OK && stage_launch(&t, stream, &d) == HD_OK &&
                v->capture_end(on, stream, &graph, &d) == HD_OK;
    for (int round = 0; good && round < 3; round++) {
      const int32_t *lengths = round == 1 ? grown : early;
      good = set_lengths(&t, lengths, &d) && v->graph_launch(on, graph, stream, &d) == HD_OK &&
             v->synchronize(on, stream, &d) == HD_OK && stage_fetch(&t, &d);
      /* The oracle reads its lengths from the same tensor; the data's own idea of them is only for sampling.
       */
      if (good) good = scene_is_right(&t.scene, round == 1 ? "grown" : "short");
    }
    EXPECT(e, good, "graph: %s", d.count ? d.items[0].message : "failed");
    if (graph) v->graph_destroy(on, graph);
    if (stream) v->stream_destroy(on, stream);
  }
  stage_finish(&t);
  diags_finish(&d);
}

static hd_status refuse_allocate(device *d, size_t bytes, device_pointer *out, diags *errors) {
  (void)d, (void)out;
  diags_errorf(errors, "test", NULL, "the launch allocates %zu bytes", bytes);
  return HD_INTERNAL;
}

static hd_status refuse_load(device *d, const void *code, size_t bytes, device_module **out, diags *errors) {
  (void)d, (void)code, (void)bytes, (void)out;
  diags_errorf(errors, "test", NULL, "the launch loads a module");
  return HD_INTERNAL;
}

static hd_status refuse_synchronize(device *d, device_stream *s, diags *errors) {
  (void)d, (void)s;
  diags_errorf(errors, "test", NULL, "the launch waits");
  return HD_INTERNAL;
}

/* A launch, captured or not, allocates nothing, loads nothing and never waits. */
static void launch_only_launches(edge *e) {
  device *on = e->session->device;
  const device_vtable *real = on->vtable;
  device_vtable strict = *real;
  device_stream *stream = NULL;
  device_graph *graph = NULL;
  stage t;
  diags d;
  diags_init(&d);
  strict.allocate = refuse_allocate;
  strict.load = refuse_load;
  strict.synchronize = refuse_synchronize;
  if (stage_init(&t, e, 3) && EXPECT(e, real->stream_create(on, &stream, &d) == HD_OK, "no stream")) {
    on->vtable = &strict;
    bool good = stage_launch(&t, stream, &d) == HD_OK && real->capture_begin(on, stream, &d) == HD_OK;
    good =
        good && stage_launch(&t, stream, &d) == HD_OK && real->capture_end(on, stream, &graph, &d) == HD_OK;
    on->vtable = real;
    good = good && real->graph_launch(on, graph, stream, &d) == HD_OK &&
           real->synchronize(on, stream, &d) == HD_OK && stage_fetch(&t, &d);
    if (EXPECT(e, good, "%s", d.count ? d.items[0].message : "failed")) scene_is_right(&t.scene, "captured");
    if (graph) real->graph_destroy(on, graph);
    real->stream_destroy(on, stream);
  }
  stage_finish(&t);
  diags_finish(&d);
}

const edge_test edges_of_launches[] = {
    {"graph-keeps-its-split", graph_keeps_its_split},
    {"launch-only-launches", launch_only_launches},
    {NULL, NULL},
};
