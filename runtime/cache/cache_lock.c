/* One lock file a key, held with flock: the kernel drops it when its holder dies, however it dies, so there
 * is no such thing as a stale lock. A lock file that was left behind is only a file. */
#include "../../generator/sha256.h"
#include "cache_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct cache_lock {
  int fd;
  int folder; /* the cache's, which outlives the lock */
  char key[65];
};

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Whether `fd` is still the file of that name: its last holder removes it. */
static bool is_current(const cache *c, const char *key, int fd) {
  struct stat held, named;
  return fstat(fd, &held) == 0 && fstatat(c->folders[CACHE_LOCKS], key, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

typedef enum attempt { ATTEMPT_HELD, ATTEMPT_BUSY, ATTEMPT_BROKEN } attempt;

/* Of a broken one errno says why. */
static attempt try_lock(const cache *c, const char *key, int *out_fd) {
  int fd = openat(c->folders[CACHE_LOCKS], key, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ATTEMPT_BROKEN;
  attempt result = ATTEMPT_HELD;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0)
    result = errno == EWOULDBLOCK || errno == EINTR ? ATTEMPT_BUSY : ATTEMPT_BROKEN;
  else if (!is_current(c, key, fd))
    result = ATTEMPT_BUSY; /* we locked a file that its holder was about to remove */
  int error = errno;
  if (result == ATTEMPT_HELD)
    *out_fd = fd;
  else
    close(fd);
  errno = error;
  return result;
}

static bool entry_exists(const cache *c, const char *key) {
  char path[CACHE_PATH];
  cache_entry_path(key, path);
  return faccessat(c->folders[CACHE_OBJECTS], path, R_OK, AT_EACCESS) == 0;
}

static hd_status lock_taken(cache *c, const char *key, int fd, cache_lock **out_lock) {
  cache_lock *lock = malloc(sizeof *lock);
  if (lock == NULL) {
    close(fd);
    return HD_OUT_OF_MEMORY;
  }
  *lock = (cache_lock){.fd = fd, .folder = c->folders[CACHE_LOCKS]};
  memcpy(lock->key, key, sizeof lock->key);
  if (entry_exists(c, key)) { /* stored between the caller's look and now */
    cache_unlock(lock);
    return HD_DECLINED;
  }
  *out_lock = lock;
  return HD_OK;
}

/* Of a file system without locks once, of a holder that takes too long each time. errno says why. */
static void say_unlocked(cache *c, const char *key, bool broken) {
  if (!broken)
    cache_say(c, "cache.lock", "entry %.12s is compiled without its lock: who holds it takes too long", key);
  else if (!atomic_exchange(&c->locks_broken, true))
    cache_say(c, "cache.lock", "kernels are compiled without locks in %s: %s", c->directory, strerror(errno));
}

hd_status cache_lock_key(cache *c, const char *key_text, double seconds, cache_lock **out_lock) {
  char key[65];
  double end = seconds_now() + seconds;
  long pause_ns = 1000000;
  if (!c->writable) {
    *out_lock = NULL;
    return HD_OK;
  }
  sha256_hex(key_text, strlen(key_text), key);
  for (;;) {
    int fd = -1;
    attempt a = try_lock(c, key, &fd);
    if (a == ATTEMPT_HELD) return lock_taken(c, key, fd, out_lock);
    if (a == ATTEMPT_BUSY && seconds <= 0) return HD_UNAVAILABLE;
    if (a == ATTEMPT_BROKEN || seconds_now() >= end) {
      say_unlocked(c, key, a == ATTEMPT_BROKEN);
      *out_lock = NULL;
      return HD_OK;
    }
    struct timespec pause = {.tv_nsec = pause_ns};
    nanosleep(&pause, NULL);
    if (pause_ns < 20000000) pause_ns *= 2;
  }
}

void cache_unlock(cache_lock *lock) {
  if (lock == NULL) return;
  unlinkat(lock->folder, lock->key,
           0); /* while it is held: whoever opened it meanwhile sees that and opens anew */
  close(lock->fd);
  free(lock);
}
