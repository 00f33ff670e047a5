/* SplinterDB behind the part of RocksDB's C API that the lab drives.
 *
 *   lab -> rocksdb_write(...) -> this file -> splinterdb_insert(...) -> the user's own libsplinterdb.so
 *
 * It is compiled against the headers of the library it is used with, because their structures change between
 * versions (`outcrop lab engines adapt splinterdb --headers DIR --library FILE`).
 *
 * Differences that remain: SplinterDB syncs nothing, has a log only for the whole database (use_log), one file of a size
 * that is fixed when it is made (disk_size), no compression, no compaction settings, no block size and no bloom bits
 * to choose, and does not say whether background work is due. Builds without splinterdb_iterator_prev cannot go
 * backwards: range queries in reverse fail by name.
 *
 * Concurrency: threads register with the library at their first call, and leave it when they end. The thread that
 * opened the database is registered by that and must be the one that closes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "splinterdb/splinterdb.h"
#include "splinterdb/default_data_config.h"

#define EXPORTED __attribute__((visibility("default")))

/* Present in newer versions only; null where it is not. */
#pragma weak splinterdb_iterator_prev
void splinterdb_iterator_prev(splinterdb_iterator *iter);

/* Longest key: what every version takes. */
#define MAX_KEY 100

typedef struct {
  uint64_t cache_size, disk_size, memtable_capacity, normal_threads, memtable_threads;
  int create_if_missing, use_log;
} options_t;

typedef struct {
  uint64_t size;
} cache_t;

typedef struct {
  splinterdb *kvs;
  data_config data;
  pthread_t opener;
  uint64_t generation;
} db_t;

typedef struct {
  db_t *db;
  splinterdb_iterator *iter;
  int error;
  const char *failure;
} iterator_t;

/* The state of a thread: the database it is registered with, and the result of its last lookup. */
typedef struct {
  db_t *db;
  uint64_t generation;
  int registered, has_result;
  splinterdb_lookup_result result;
} thread_t;

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static uint64_t generations;
static uint64_t live_generation;

static char *message(const char *what, int code) {
  char *text = NULL;
  if (asprintf(&text, "SplinterDB: %s: %s", what, strerror(code)) < 0)
    return strdup("SplinterDB: out of memory");
  return text;
}

static void fail(char **errptr, const char *what, int code) {
  free(*errptr);
  *errptr = message(what, code);
}

static void leave(thread_t *own) {
  if (__atomic_load_n(&live_generation, __ATOMIC_ACQUIRE) != own->generation)
    return;
  if (own->has_result)
    splinterdb_lookup_result_deinit(&own->result);
  if (own->registered)
    splinterdb_deregister_thread(own->db->kvs);
  own->has_result = own->registered = 0;
}

static void thread_ends(void *pointer) {
  leave(pointer);
  free(pointer);
}

static void make_key(void) { pthread_key_create(&thread_key, thread_ends); }

/* The calling thread's own, registered with `db`. */
static thread_t *own_thread(db_t *db) {
  thread_t *own = pthread_getspecific(thread_key);
  if (own && own->generation == db->generation)
    return own;
  if (!own) {
    own = calloc(1, sizeof *own);
    if (!own)
      abort();
    pthread_setspecific(thread_key, own);
  }
  memset(own, 0, sizeof *own);
  own->db = db;
  own->generation = db->generation;
  if (!pthread_equal(pthread_self(), db->opener)) {
    splinterdb_register_thread(db->kvs);
    own->registered = 1;
  }
  splinterdb_lookup_result_init(db->kvs, &own->result, 0, NULL);
  own->has_result = 1;
  return own;
}

/* Options */

EXPORTED void *rocksdb_options_create(void) {
  options_t *options = calloc(1, sizeof *options);
  options->disk_size = 64ULL << 30;
  return options;
}

EXPORTED void rocksdb_options_destroy(void *options) { free(options); }

EXPORTED void rocksdb_options_set_create_if_missing(void *options, unsigned char value) {
  ((options_t *)options)->create_if_missing = value;
}

EXPORTED void rocksdb_options_set_write_buffer_size(void *options, size_t size) {
  ((options_t *)options)->memtable_capacity = size;
}

EXPORTED void rocksdb_options_set_max_background_jobs(void *options, int jobs) {
  options_t *own = options;
  own->memtable_threads = 1;
  own->normal_threads = jobs > 1 ? (uint64_t)jobs - 1 : 1;
}

static int set_by_name(options_t *options, const char *name, uint64_t value) {
  if (strcmp(name, "disk_size") == 0)
    options->disk_size = value;
  else if (strcmp(name, "memtable_capacity") == 0)
    options->memtable_capacity = value;
  else if (strcmp(name, "num_normal_bg_threads") == 0)
    options->normal_threads = value;
  else if (strcmp(name, "num_memtable_bg_threads") == 0)
    options->memtable_threads = value;
  else if (strcmp(name, "use_log") == 0)
    options->use_log = value != 0;
  else
    return 0;
  return 1;
}

EXPORTED void rocksdb_get_options_from_string(const void *base, const char *text, void *result, char **errptr) {
  if (base != result)
    memcpy(result, base, sizeof(options_t));
  char *copy = strdup(text), *rest = copy, *word;
  while (copy && (word = strsep(&rest, ";"))) {
    char *value = strchr(word, '='), *end = NULL;
    if (*word == 0)
      continue;
    if (value)
      *value++ = 0;
    unsigned long long number = value ? strtoull(value, &end, 10) : 0;
    if (!value || end == value || *end || !set_by_name(result, word, number)) {
      free(*errptr);
      if (asprintf(errptr, "Invalid argument: %s: SplinterDB takes disk_size, memtable_capacity, "
                           "num_normal_bg_threads, num_memtable_bg_threads and use_log, each =NUMBER", word) < 0)
        *errptr = NULL;
      break;
    }
  }
  free(copy);
}

/* Settings without a counterpart. Integers and pointers travel alike; the one with a double has its own. */
#define IGNORED(name) \
  EXPORTED void name(void *object, uint64_t value) { (void)object, (void)value; }
IGNORED(rocksdb_options_set_max_write_buffer_number)
IGNORED(rocksdb_options_set_target_file_size_base)
IGNORED(rocksdb_options_set_max_bytes_for_level_base)
IGNORED(rocksdb_options_set_num_levels)
IGNORED(rocksdb_options_set_level0_file_num_compaction_trigger)
IGNORED(rocksdb_options_set_level0_slowdown_writes_trigger)
IGNORED(rocksdb_options_set_level0_stop_writes_trigger)
IGNORED(rocksdb_options_set_level_compaction_dynamic_level_bytes)
IGNORED(rocksdb_options_set_compression)
IGNORED(rocksdb_options_set_bytes_per_sync)
IGNORED(rocksdb_options_set_use_direct_reads)
IGNORED(rocksdb_options_set_use_direct_io_for_flush_and_compaction)
IGNORED(rocksdb_options_set_allow_concurrent_memtable_write)
IGNORED(rocksdb_options_set_memtable_vector_rep)
IGNORED(rocksdb_block_based_options_set_block_size)
IGNORED(rocksdb_block_based_options_set_filter_policy)
IGNORED(rocksdb_block_based_options_set_cache_index_and_filter_blocks)
IGNORED(rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)
IGNORED(rocksdb_writeoptions_set_sync)
IGNORED(rocksdb_writeoptions_disable_WAL)
EXPORTED void rocksdb_options_set_max_bytes_for_level_multiplier(void *options, double value) {
  (void)options, (void)value;
}

/* Objects that hold nothing still have an address. */
static char nothing;
#define OBJECT(make, destroy)                \
  EXPORTED void *make(void) { return &nothing; } \
  EXPORTED void destroy(void *object) { (void)object; }
OBJECT(rocksdb_writeoptions_create, rocksdb_writeoptions_destroy)
OBJECT(rocksdb_readoptions_create, rocksdb_readoptions_destroy)
OBJECT(rocksdb_flushoptions_create, rocksdb_flushoptions_destroy)

EXPORTED void *rocksdb_filterpolicy_create_bloom_full(int bits, double exact) {
  (void)bits, (void)exact;
  return &nothing;
}

EXPORTED void *rocksdb_cache_create_lru(size_t size) {
  cache_t *cache = calloc(1, sizeof *cache);
  cache->size = size;
  return cache;
}
EXPORTED void rocksdb_cache_destroy(void *cache) { free(cache); }

EXPORTED void *rocksdb_block_based_options_create(void) { return calloc(1, sizeof(cache_t)); }
EXPORTED void rocksdb_block_based_options_destroy(void *table) { free(table); }
EXPORTED void rocksdb_block_based_options_set_block_cache(void *table, void *cache) {
  ((cache_t *)table)->size = ((cache_t *)cache)->size;
}
EXPORTED void rocksdb_options_set_block_based_table_factory(void *options, void *table) {
  ((options_t *)options)->cache_size = ((cache_t *)table)->size;
}

/* Databases */

/* Writes the version and the options of an opened database where the lab looks for them. */
static void describe(const char *dir, const options_t *options) {
  char path[4096];
  snprintf(path, sizeof path, "%s/LOG", dir);
  FILE *log = fopen(path, "w");
  if (log) {
    fprintf(log, "RocksDB version: SplinterDB-%s\n", splinterdb_get_version());
    fclose(log);
  }
  snprintf(path, sizeof path, "%s/OPTIONS-000001", dir);
  FILE *file = fopen(path, "w");
  if (file) {
    fprintf(file,
            "[SplinterDB]\n  cache_size=%llu\n  disk_size=%llu\n  memtable_capacity=%llu\n"
            "  num_normal_bg_threads=%llu\n  num_memtable_bg_threads=%llu\n  use_log=%d\n",
            (unsigned long long)options->cache_size, (unsigned long long)options->disk_size,
            (unsigned long long)options->memtable_capacity, (unsigned long long)options->normal_threads,
            (unsigned long long)options->memtable_threads, options->use_log);
    fclose(file);
  }
}

EXPORTED void *rocksdb_open(const void *opaque, const char *dir, char **errptr) {
  const options_t *options = opaque;
  char file[4096];
  if ((size_t)snprintf(file, sizeof file, "%s/splinterdb", dir) >= sizeof file) {
    fail(errptr, "open", ENAMETOOLONG);
    return NULL;
  }
  if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
    fail(errptr, dir, errno);
    return NULL;
  }
  int exists = access(file, F_OK) == 0;
  if (!exists && !options->create_if_missing) {
    fail(errptr, file, ENOENT);
    return NULL;
  }
  pthread_once(&thread_once, make_key);
  db_t *db = calloc(1, sizeof *db);
  splinterdb_config config;
  memset(&config, 0, sizeof config);
  default_data_config_init(MAX_KEY, &db->data);
  config.filename = file;
  config.cache_size = options->cache_size;
  config.disk_size = options->disk_size;
  config.data_cfg = &db->data;
  config.num_normal_bg_threads = options->normal_threads;
  config.num_memtable_bg_threads = options->memtable_threads;
  config.memtable_capacity = options->memtable_capacity;
  config.use_log = options->use_log;
  int code = exists ? splinterdb_open(&config, &db->kvs) : splinterdb_create(&config, &db->kvs);
  if (code != 0) {
    fail(errptr, exists ? "open" : "create", code);
    free(db);
    return NULL;
  }
  db->opener = pthread_self();
  db->generation = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&live_generation, db->generation, __ATOMIC_RELEASE);
  describe(dir, options);
  return db;
}

EXPORTED void rocksdb_close(void *opaque) {
  db_t *db = opaque;
  thread_t *own = pthread_getspecific(thread_key);
  if (own && own->generation == db->generation)
    leave(own);
  __atomic_store_n(&live_generation, 0, __ATOMIC_RELEASE);
  splinterdb_close(&db->kvs);
  free(db);
}

EXPORTED void rocksdb_destroy_db(const void *options, const char *dir, char **errptr) {
  (void)options;
  char file[4096];
  snprintf(file, sizeof file, "%s/splinterdb", dir);
  if (unlink(file) != 0 && errno != ENOENT)
    fail(errptr, file, errno);
}

static void put(void *opaque, const void *options, const char *key, size_t key_len, const char *value,
                          size_t value_len, char **errptr) {
  db_t *db = opaque;
  (void)options;
  own_thread(db);
  int code = splinterdb_insert(db->kvs, slice_create(key_len, key), slice_create(value_len, value));
  if (code != 0)
    fail(errptr, "insert", code);
}

EXPORTED void rocksdb_delete(void *opaque, const void *options, const char *key, size_t key_len, char **errptr) {
  db_t *db = opaque;
  (void)options;
  own_thread(db);
  int code = splinterdb_delete(db->kvs, slice_create(key_len, key));
  if (code != 0)
    fail(errptr, "delete", code);
}

/* SplinterDB writes one pair at a time: a batch is the pairs, written one by one, and not atomic. */
typedef struct {
  char *bytes; /* per pair: two lengths, key, value */
  size_t len, capacity;
  int failed; /* memory ran out */
} batch_t;

EXPORTED void *rocksdb_writebatch_create(void) { return calloc(1, sizeof(batch_t)); }
EXPORTED void rocksdb_writebatch_destroy(void *opaque) {
  batch_t *batch = opaque;
  free(batch->bytes);
  free(batch);
}
EXPORTED void rocksdb_writebatch_clear(void *opaque) {
  batch_t *batch = opaque;
  batch->len = 0;
  batch->failed = 0;
}
EXPORTED void rocksdb_writebatch_put(void *opaque, const char *key, size_t key_len, const char *value,
                                     size_t value_len) {
  batch_t *batch = opaque;
  size_t lens[2] = {key_len, value_len};
  size_t wanted = batch->len + sizeof lens + key_len + value_len;
  if (wanted > batch->capacity) {
    char *bytes = realloc(batch->bytes, 2 * wanted);
    if (bytes == NULL) {
      batch->failed = 1;
      return;
    }
    batch->bytes = bytes;
    batch->capacity = 2 * wanted;
  }
  char *at = batch->bytes + batch->len;
  memcpy(at, lens, sizeof lens);
  memcpy(at + sizeof lens, key, key_len);
  memcpy(at + sizeof lens + key_len, value, value_len);
  batch->len = wanted;
}
EXPORTED void rocksdb_write(void *opaque, const void *options, void *opaque_batch, char **errptr) {
  batch_t *batch = opaque_batch;
  if (batch->failed) {
    fail(errptr, "batch", ENOMEM);
    return;
  }
  for (size_t at = 0; at < batch->len;) {
    size_t lens[2];
    memcpy(lens, batch->bytes + at, sizeof lens);
    const char *key = batch->bytes + at + sizeof lens;
    put(opaque, options, key, lens[0], key + lens[0], lens[1], errptr);
    if (*errptr != NULL)
      return;
    at += sizeof lens + lens[0] + lens[1];
  }
}

/* A pinned value is the thread's own result: one at a time, until its next lookup. */
EXPORTED void *rocksdb_get_pinned(void *opaque, const void *options, const char *key, size_t key_len, char **errptr) {
  db_t *db = opaque;
  (void)options;
  thread_t *own = own_thread(db);
  int code = splinterdb_lookup(db->kvs, slice_create(key_len, key), &own->result);
  if (code != 0) {
    fail(errptr, "lookup", code);
    return NULL;
  }
  return splinterdb_lookup_found(&own->result) ? &own->result : NULL;
}

EXPORTED const char *rocksdb_pinnableslice_value(const void *pinned, size_t *len) {
  slice value;
  if (splinterdb_lookup_result_value(pinned, &value) != 0) {
    *len = 0;
    return NULL;
  }
  *len = slice_length(value);
  return slice_data(value);
}

EXPORTED void rocksdb_pinnableslice_destroy(void *pinned) { (void)pinned; }

/* Iterators are made where they are placed: SplinterDB has no seek. */
EXPORTED void *rocksdb_create_iterator(void *db, const void *options) {
  (void)options;
  iterator_t *own = calloc(1, sizeof *own);
  own->db = db;
  own_thread(db);
  return own;
}

static void place(iterator_t *own, slice start) {
  if (own->iter)
    splinterdb_iterator_deinit(own->iter);
  own->iter = NULL;
  own->error = splinterdb_iterator_init(own->db->kvs, &own->iter, start);
  own->failure = own->error ? "iterator" : NULL;
  if (own->error)
    own->iter = NULL;
}

EXPORTED void rocksdb_iter_seek(void *iter, const char *key, size_t len) { place(iter, slice_create(len, key)); }
EXPORTED void rocksdb_iter_seek_to_first(void *iter) { place(iter, NULL_SLICE); }

EXPORTED void rocksdb_iter_destroy(void *opaque) {
  iterator_t *own = opaque;
  if (own->iter)
    splinterdb_iterator_deinit(own->iter);
  free(own);
}

EXPORTED unsigned char rocksdb_iter_valid(const void *opaque) {
  const iterator_t *own = opaque;
  return own->iter && !own->failure && splinterdb_iterator_valid(own->iter);
}

EXPORTED void rocksdb_iter_next(void *opaque) { splinterdb_iterator_next(((iterator_t *)opaque)->iter); }

EXPORTED void rocksdb_iter_prev(void *opaque) {
  iterator_t *own = opaque;
  if (splinterdb_iterator_prev) {
    splinterdb_iterator_prev(own->iter);
  } else {
    own->error = ENOTSUP;
    own->failure = "this build has no splinterdb_iterator_prev";
  }
}

EXPORTED const char *rocksdb_iter_key(const void *opaque, size_t *len) {
  slice key, value;
  splinterdb_iterator_get_current(((const iterator_t *)opaque)->iter, &key, &value);
  *len = slice_length(key);
  return slice_data(key);
}

EXPORTED const char *rocksdb_iter_value(const void *opaque, size_t *len) {
  slice key, value;
  splinterdb_iterator_get_current(((const iterator_t *)opaque)->iter, &key, &value);
  *len = slice_length(value);
  return slice_data(value);
}

EXPORTED void rocksdb_iter_get_error(const void *opaque, char **errptr) {
  const iterator_t *own = opaque;
  if (own->failure)
    fail(errptr, own->failure, own->error);
  else if (own->iter && splinterdb_iterator_status(own->iter) != 0)
    fail(errptr, "iterator", splinterdb_iterator_status(own->iter));
}

/* Nothing of this can be asked for. */
EXPORTED void rocksdb_flush(void *db, const void *options, char **errptr) { (void)db, (void)options, (void)errptr; }
EXPORTED void rocksdb_compact_range(void *db, const char *from, size_t from_len, const char *to, size_t to_len) {
  (void)db, (void)from, (void)from_len, (void)to, (void)to_len;
}
EXPORTED char *rocksdb_property_value(void *db, const char *name) {
  (void)db, (void)name;
  return NULL;
}
EXPORTED int rocksdb_property_int(void *db, const char *name, uint64_t *number) {
  (void)db, (void)name, (void)number;
  return 1;
}
EXPORTED void rocksdb_free(void *pointer) { free(pointer); }
EXPORTED const char *outcrop_lab_adapter(void) { return "SplinterDB"; }
