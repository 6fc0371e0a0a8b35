/* The cache as the command's verbs use it: opened with its warnings said, and written into packs. */
#ifndef HEDDLE_CLI_STORE_H
#define HEDDLE_CLI_STORE_H

#include "../cache/cache.h"
#include "../cache/pack_file.h"
#include "cli.h"

/* Opens the user's cache; what goes wrong with it, now or later, is said on standard error. On failure `d`
 * has diagnostics. */
hd_status cli_open_cache(const cli *c, cache **out_cache, diags *d);

/* The same for the cache of a session that is open. */
void cli_log_cache(const cli *c, cache *store);

/* Writes a pack, and next to it PATH.sha256, which `sha256sum -c` takes; says so on standard output. */
hd_status cli_write_pack(const cli *c, const char *path, const pack_item *items, size_t count, diags *d);
/* A pack of every entry that the cache holds for the --target options, or for all targets, each checked. The
 * exit code. */
int cli_pack_cache(cli *c, cache *store);

/* What `heddle build` does; `heddle pack` with specs is that, and then a pack. */
int cli_build(cli *c);
/* heddle cache explain SPEC... */
int cli_explain(cli *c, cache *store);

#endif
