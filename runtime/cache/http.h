/* GET and PUT of small files, through libcurl, which is loaded when the first one is opened. Redirects are
 * not followed, certificates are checked, and only http and https are spoken. For one thread at a time. */
#ifndef HEDDLE_HTTP_H
#define HEDDLE_HTTP_H

#include "../../generator/diag.h"
#include "../../generator/text.h"

typedef struct http http;

/* `header`: one more line of each request, "Authorization: Bearer …"; NULL: none. `seconds`: that a request
 * may take, from the look-up of the name to its last byte. HD_UNAVAILABLE with "cache.tier": libcurl isn't
 * there; lists what was tried. */
hd_status http_create(const char *header, double seconds, http **out_http, diags *errors);
void http_destroy(http *h); /* NULL is fine */

/* "libcurl/7.88.1 …", which also says whether it can be had at all. */
hd_status http_version(text *out, diags *errors);

/* HD_OK: code 200, the body in *out_bytes (the caller's, of at most `most` bytes). HD_DECLINED: there is none
 * (404, 410). HD_UNAVAILABLE: anything else; `problem` says what. */
enum { HTTP_PROBLEM = 256 };
hd_status http_get(http *h, const char *url, size_t most, char **out_bytes, size_t *out_size,
                   char problem[HTTP_PROBLEM]);
/* HD_OK: any code of success. HD_DECLINED: it takes nothing from us (401, 403, 405). HD_UNAVAILABLE: anything
 * else. */
hd_status http_put(http *h, const char *url, const void *bytes, size_t size, char problem[HTTP_PROBLEM]);

#endif
