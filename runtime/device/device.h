/* Devices: one small interface, implemented by hip (libamdhip64), cuda (libcuda) and emu (AMD code objects
 * executed on the CPU). Each lives behind dlopen or a plug-in; opening one that is not there is an answer
 * (HD_UNAVAILABLE with diagnostics that list what was tried), never an abort.
 *
 * Threads: a device may be used from several threads; a stream from one at a time. */
#ifndef HEDDLE_DEVICE_H
#define HEDDLE_DEVICE_H

#include "../../generator/diag.h"
#include "counts.h"
#include <stdint.h>

typedef struct device device;
typedef struct device_module device_module;
typedef struct device_stream device_stream;
typedef struct device_event device_event;
typedef struct device_graph device_graph;
typedef struct device_function device_function; /* owned by its module */
typedef uint64_t device_pointer;                /* an address in the device's memory; 0 is null */

typedef struct device_facts {
  char name[128];  /* "NVIDIA H200", "gfx950 emulated" */
  char target[16]; /* heddle's target name: "gfx950", "sm_90" */
  int compute_units;
  int wave;
  int lds_bytes_per_workgroup;
  int64_t memory_bytes, l2_bytes;
  double peak_bytes_per_s; /* from clock and bus width where the driver tells, else 0 */
  bool emulated;
} device_facts;

typedef struct device_launch {
  uint32_t grid[3];      /* workgroups, not threads */
  uint32_t block[3];     /* threads */
  uint32_t lds_bytes;    /* dynamic */
  bool waits_itself;     /* the kernel waits for the one before it, so it may be started before that ends */
  const void *arguments; /* packed as the kernel's C struct of arguments */
  size_t arguments_size;
} device_launch;

typedef struct device_vtable {
  void (*close)(device *d);
  void (*facts)(device *d, device_facts *out_facts);
  hd_status (*allocate)(device *d, size_t bytes, device_pointer *out_pointer, diags *diags);
  hd_status (*release)(device *d, device_pointer pointer, diags *diags);
  /* Synchronous with respect to the host; ordered after earlier work of `stream` (NULL: the default stream).
   */
  hd_status (*copy_in)(device *d, device_stream *s, device_pointer to, const void *from, size_t bytes,
                       diags *diags);
  hd_status (*copy_out)(device *d, device_stream *s, void *to, device_pointer from, size_t bytes,
                        diags *diags);
  hd_status (*fill)(device *d, device_stream *s, device_pointer to, unsigned char value, size_t bytes,
                    diags *diags);
  hd_status (*load)(device *d, const void *code_object, size_t bytes, device_module **out_module,
                    diags *diags);
  void (*unload)(device *d, device_module *m);
  /* `dynamic_lds`: the most bytes a launch of it will ask for. */
  hd_status (*function)(device *d, device_module *m, const char *symbol, size_t dynamic_lds,
                        device_function **out_function, diags *diags);
  hd_status (*launch)(device *d, device_stream *s, device_function *f, const device_launch *launch,
                      diags *diags);
  hd_status (*stream_create)(device *d, device_stream **out_stream, diags *diags);
  void (*stream_destroy)(device *d, device_stream *s);
  hd_status (*synchronize)(device *d, device_stream *s, diags *diags); /* NULL: the whole device */
  hd_status (*event_create)(device *d, device_event **out_event, diags *diags);
  void (*event_destroy)(device *d, device_event *e);
  hd_status (*event_record)(device *d, device_event *e, device_stream *s, diags *diags);
  /* Waits for `stop`; milliseconds between the two. */
  hd_status (*event_elapsed)(device *d, device_event *start, device_event *stop, double *out_ms,
                             diags *diags);
  hd_status (*capture_begin)(device *d, device_stream *s, diags *diags);
  hd_status (*capture_end)(device *d, device_stream *s, device_graph **out_graph, diags *diags);
  /* Whether what is launched on the stream now is recorded into a graph, by whoever began it. */
  hd_status (*capturing)(device *d, device_stream *s, bool *out_capturing, diags *diags);
  hd_status (*graph_launch)(device *d, device_graph *g, device_stream *s, diags *diags);
  void (*graph_destroy)(device *d, device_graph *g);
  /* Counting what launches execute. NULL where a device can't: ask device_counts_launches. Launches that
   * start between begin and end are counted, at a price in speed; end gives them and turns it off. */
  hd_status (*count_begin)(device *d, diags *diags);
  hd_status (*count_end)(device *d, counts *out_counts, diags *diags);
} device_vtable;

/* Every implementation's struct begins with this. */
struct device {
  const device_vtable *vtable;
};

/* `name`: "emu:gfx950", "cuda:0", "hip:0"; an ordinal may be left out. */
hd_status device_open(const char *name, device **out_device, diags *diags);
void device_close(device *d); /* NULL is fine */
bool device_counts_launches(const device *d);

/* Implementations. `rest` is what follows the colon, "" when nothing does. */
hd_status device_cuda_open(const char *rest, device **out_device, diags *diags);
hd_status device_hip_open(const char *rest, device **out_device, diags *diags);
/* The plug-in's single exported symbol, found by device_open in libheddle-emu.so: HEDDLE_EMU_LIBRARY, beside
 * the executable or library, then the library path. */
typedef hd_status (*device_emu_open_function)(const char *rest, device **out_device, diags *diags);
#define DEVICE_EMU_SYMBOL "heddle_emu_open"

/* AMD machine code as text, by the disassembler that the emulated device has: the core itself links none. One
 * call of `line` an instruction, in order; `text` lives until it returns. Needs the plug-in: HD_UNAVAILABLE
 * without. */
typedef void (*device_disassembly)(void *user, uint64_t address, size_t bytes, const char *text);
hd_status device_disassemble(const char *target_name, const void *code, size_t bytes, uint64_t address,
                             device_disassembly line, void *user, diags *diags);
typedef hd_status (*device_disassemble_function)(const char *target_name, const void *code, size_t bytes,
                                                 uint64_t address, device_disassembly line, void *user,
                                                 diags *diags);
#define DEVICE_DISASSEMBLE_SYMBOL "heddle_emu_disassemble"

#endif
