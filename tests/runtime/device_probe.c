/* Opens a device by name and says what came of it, on one line: "status code: message". Run by test_device.c,
 * also under another dynamic loader.
 *
 *   device_probe DEVICE               opens it
 *   device_probe DEVICE CODE-OBJECT   also runs sample_scale of data/sample_kernels.hip: copies, a stream,
 * events, a launch and a graph. Needs only the device's own sources, so that it builds anywhere: cc -std=c17
 * -D_GNU_SOURCE -o device_probe tests/runtime/device_probe.c runtime/device*.c generator/{diag,text,status}.c -ldl
 */
#include "../../runtime/device/device.h"
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1000, STRIDE = 3, FLOATS = ROWS * STRIDE };

/* The arguments of sample_scale: out[row * stride] *= factor for row < count. */
typedef struct scale_arguments {
  device_pointer out;
  int64_t stride;
  int32_t count;
  float factor;
} scale_arguments;

#define STEP(call)                                                                                           \
  if (status == HD_OK) status = (call)

static hd_status run(device *d, const void *code_object, size_t size, float *numbers, double *out_ms,
                     diags *errors) {
  const device_vtable *v = d->vtable;
  scale_arguments arguments = {.stride = STRIDE, .count = ROWS, .factor = 2.0f};
  device_launch launch = {
      .grid = {ROWS, 1, 1}, .block = {1, 1, 1}, .arguments = &arguments, .arguments_size = sizeof arguments};
  device_module *module = NULL;
  device_function *function = NULL;
  device_stream *stream = NULL;
  device_event *from = NULL, *to = NULL;
  device_graph *graph = NULL;
  hd_status status = v->load(d, code_object, size, &module, errors);
  STEP(v->function(d, module, "sample_scale", 0, &function, errors));
  STEP(v->allocate(d, FLOATS * sizeof *numbers, &arguments.out, errors));
  STEP(v->stream_create(d, &stream, errors));
  STEP(v->event_create(d, &from, errors));
  STEP(v->event_create(d, &to, errors));
  STEP(v->copy_in(d, stream, arguments.out, numbers, FLOATS * sizeof *numbers, errors));
  STEP(v->event_record(d, from, stream, errors));
  STEP(v->launch(d, stream, function, &launch, errors));
  STEP(v->event_record(d, to, stream, errors));
  STEP(v->event_elapsed(d, from, to, out_ms, errors));
  /* A captured launch runs once a graph launch, with the arguments it was captured with. */
  STEP(v->capture_begin(d, stream, errors));
  STEP(v->launch(d, stream, function, &launch, errors));
  STEP(v->capture_end(d, stream, &graph, errors));
  arguments.factor = 100.0f;
  STEP(v->graph_launch(d, graph, stream, errors));
  STEP(v->graph_launch(d, graph, stream, errors));
  STEP(v->synchronize(d, stream, errors));
  STEP(v->copy_out(d, stream, numbers, arguments.out, FLOATS * sizeof *numbers, errors));
  v->graph_destroy(d, graph);
  v->event_destroy(d, from);
  v->event_destroy(d, to);
  v->stream_destroy(d, stream);
  v->unload(d, module);
  hd_status released = v->release(d, arguments.out, errors);
  return status != HD_OK ? status : released;
}

static void run_sample(device *d, const char *path) {
  static unsigned char bytes[1 << 16];
  static float numbers[FLOATS];
  diags errors;
  double ms = 0;
  int wrong = 0;
  FILE *file = fopen(path, "rb");
  size_t size = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file != NULL) fclose(file);
  for (int i = 0; i < FLOATS; i++)
    numbers[i] = (float)i;
  diags_init(&errors);
  hd_status status = run(d, bytes, size, numbers, &ms, &errors);
  for (int i = 0; i < FLOATS; i++) /* one launch and two of the graph: times 8, every third number */
    wrong += numbers[i] != (float)i * (i % STRIDE == 0 ? 8.0f : 1.0f);
  if (status == HD_OK)
    printf("ok device.run: %d numbers wrong, the launch took %g ms\n", wrong, ms);
  else
    printf("%s %s: %s\n", hd_status_text(status), errors.count > 0 ? errors.items[0].code : "",
           errors.count > 0 ? errors.items[0].message : "");
  diags_finish(&errors);
}

int main(int count, char **arguments) {
  device *d = NULL;
  diags errors;
  device_facts facts = {0};
  if (count != 2 && count != 3) return 2;
  diags_init(&errors);
  hd_status status = device_open(arguments[1], &d, &errors);
  if (status == HD_OK) d->vtable->facts(d, &facts);
  if (status == HD_OK && count == 3)
    run_sample(d, arguments[2]);
  else if (status == HD_OK)
    printf("ok device.open: %s, %s, %d compute units, %d lanes, %d bytes of LDS, %lld bytes of memory, %g "
           "bytes/s\n",
           facts.name, facts.target, facts.compute_units, facts.wave, facts.lds_bytes_per_workgroup,
           (long long)facts.memory_bytes, facts.peak_bytes_per_s);
  else
    printf("%s %s: %s\n", hd_status_text(status), errors.count > 0 ? errors.items[0].code : "",
           errors.count > 0 ? errors.items[0].message : "");
  device_close(d);
  diags_finish(&errors);
  return 0;
}
