/* Exercises the shared library as a C program would: every step checks what it gets. */
#include "rocksdb/c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int condition, const char* what) {
  if (!condition) {
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
  }
}

static void check_no_error(char* error, const char* what) {
  if (error != NULL) {
    fprintf(stderr, "failed: %s: %s\n", what, error);
    exit(1);
  }
}

static void check_value(const char* value, size_t len, const char* expected) {
  check(value != NULL, "a value is there");
  check(len == strlen(expected) && memcmp(value, expected, len) == 0, expected);
}

/* Opens the database under another compaction style, and asks for work of all kinds. */
static void use_compaction_options(const char* path, const rocksdb_options_t* base) {
  char* error = NULL;
  rocksdb_options_t* options = rocksdb_options_create_copy((rocksdb_options_t*)base);
  rocksdb_universal_compaction_options_t* universal = rocksdb_universal_compaction_options_create();
  check(rocksdb_universal_compaction_options_get_size_ratio(universal) == 1, "default size ratio");
  check(rocksdb_universal_compaction_options_get_max_merge_width(universal) == -1, "no limit");
  rocksdb_universal_compaction_options_set_min_merge_width(universal, 3);
  rocksdb_universal_compaction_options_set_stop_style(
      universal, rocksdb_similar_size_compaction_stop_style);
  check(rocksdb_universal_compaction_options_get_stop_style(universal) == 0, "stop style");
  rocksdb_options_set_universal_compaction_options(options, universal);
  rocksdb_universal_compaction_options_destroy(universal);
  rocksdb_fifo_compaction_options_t* fifo = rocksdb_fifo_compaction_options_create();
  check(rocksdb_fifo_compaction_options_get_max_table_files_size(fifo) == 1 << 30, "1 GiB");
  rocksdb_fifo_compaction_options_set_allow_compaction(fifo, 1);
  rocksdb_options_set_fifo_compaction_options(options, fifo);
  rocksdb_fifo_compaction_options_destroy(fifo);
  rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
  check(rocksdb_options_get_compaction_style(options) == 1, "style");
  check(rocksdb_options_get_ttl(options) == UINT64_MAX - 1, "the ttl follows the style");
  rocksdb_options_set_periodic_compaction_seconds(options, 3600);
  rocksdb_options_set_max_subcompactions(options, 2);
  check(rocksdb_options_get_max_subcompactions(options) == 2, "subcompactions");

  const char* names[] = {"default", "other"};
  const rocksdb_options_t* both[] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  rocksdb_t* db = rocksdb_open_column_families(options, path, 2, names, both, handles, &error);
  check_no_error(error, "open under universal compaction");
  rocksdb_compactoptions_t* compact = rocksdb_compactoptions_create();
  check(rocksdb_compactoptions_get_target_level(compact) == -1, "default target level");
  check(rocksdb_compactoptions_get_bottommost_level_compaction(compact) == 1, "default bottommost");
  rocksdb_compactoptions_set_exclusive_manual_compaction(compact, 1);
  rocksdb_compactoptions_set_max_subcompactions(compact, 4);
  rocksdb_compact_range_cf_opt(db, handles[0], compact, NULL, 0, NULL, 0);
  rocksdb_compactoptions_destroy(compact);
  rocksdb_suggest_compact_range(db, "a", 1, "z", 1, &error);
  check_no_error(error, "suggest");
  rocksdb_suggest_compact_range_cf(db, handles[1], NULL, 0, NULL, 0, &error);
  check_no_error(error, "suggest in a column family");
  rocksdb_delete_file_in_range(db, "x", 1, "z", 1, &error);
  check_no_error(error, "delete files that do not exist");
  uint64_t bytes = 0;
  rocksdb_property_int_cf(db, handles[0], "rocksdb.total-sst-files-size", &bytes);
  check(bytes > 0, "there are tables");
  rocksdb_delete_file_in_range_cf(db, handles[0], NULL, 0, NULL, 0, &error);
  check_no_error(error, "delete all files");
  rocksdb_property_int_cf(db, handles[0], "rocksdb.total-sst-files-size", &bytes);
  check(bytes == 0, "they are gone");
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
  check(argc == 2, "usage: example DIRECTORY");
  const char* path = argv[1];
  char* error = NULL;
  size_t len = 0;

  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = rocksdb_open(options, path, &error);
  check(db == NULL && error != NULL, "opening what does not exist fails");
  check(strncmp(error, "Invalid argument: ", 18) == 0, error);
  rocksdb_free(error);
  error = NULL;

  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(8 << 20);
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_options_set_uint64add_merge_operator(options);
  db = rocksdb_open(options, path, &error);
  check_no_error(error, "open");

  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_put(db, write, "apple", 5, "red", 3, &error);
  check_no_error(error, "put");
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "banana", 6, "yellow", 6);
  rocksdb_writebatch_delete(batch, "cherry", 6);
  check(rocksdb_writebatch_count(batch) == 2, "the batch counts");
  rocksdb_write(db, write, batch, &error);
  check_no_error(error, "write");
  rocksdb_writebatch_destroy(batch);

  char* value = rocksdb_get(db, read, "apple", 5, &len, &error);
  check_no_error(error, "get");
  check_value(value, len, "red");
  rocksdb_free(value);
  check(rocksdb_get(db, read, "nothing", 7, &len, &error) == NULL && error == NULL, "absent is no error");

  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  rocksdb_put(db, write, "apple", 5, "green", 5, &error);
  rocksdb_readoptions_set_snapshot(read, snapshot);
  rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, read, "apple", 5, &error);
  const char* bytes = rocksdb_pinnableslice_value(pinned, &len);
  check_value(bytes, len, "red");
  rocksdb_pinnableslice_destroy(pinned);
  rocksdb_readoptions_set_snapshot(read, NULL);
  rocksdb_release_snapshot(db, snapshot);

  uint64_t one = 1;
  for (int i = 0; i < 3; i++) {
    rocksdb_merge(db, write, "count", 5, (const char*)&one, sizeof one, &error);
    check_no_error(error, "merge");
  }
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  check_no_error(error, "flush");
  rocksdb_flushoptions_destroy(flush);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);

  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
  const char* expected[] = {"apple", "banana", "count"};
  int seen = 0;
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    const char* key = rocksdb_iter_key(iter, &len);
    check(seen < 3, "there are three keys");
    check_value(key, len, expected[seen++]);
  }
  rocksdb_iter_get_error(iter, &error);
  check_no_error(error, "scan");
  check(seen == 3, "all keys are seen");
  rocksdb_iter_seek_for_prev(iter, "b", 1);
  bytes = rocksdb_iter_value(iter, &len);
  check_value(bytes, len, "green");
  rocksdb_iter_destroy(iter);

  const char* keys[] = {"apple", "absent", "count"};
  size_t key_lens[] = {5, 6, 5};
  char* values[3];
  size_t value_lens[3];
  char* errors[3];
  rocksdb_multi_get(db, read, 3, keys, key_lens, values, value_lens, errors);
  check(values[1] == NULL && errors[1] == NULL, "absent keys give null");
  check(value_lens[2] == 8 && values[2][0] == 3, "merge operands were added up");
  for (int i = 0; i < 3; i++) rocksdb_free(values[i]);

  uint64_t number = 99;
  check(rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number) == 0 && number == 3, "property");
  check(rocksdb_property_int(db, "rocksdb.no-such", &number) == -1, "unknown property");
  char* stats = rocksdb_property_value(db, "rocksdb.stats");
  check(stats != NULL && strstr(stats, "Cumulative writes") != NULL, "statistics");
  rocksdb_free(stats);

  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "other", &error);
  check_no_error(error, "create column family");
  rocksdb_put_cf(db, write, cf, "k", 1, "v", 1, &error);
  check_no_error(error, "put in column family");
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);

  size_t count = 0;
  char** names = rocksdb_list_column_families(options, path, &count, &error);
  check_no_error(error, "list column families");
  check(count == 2 && strcmp(names[1], "other") == 0, "both column families are listed");
  rocksdb_list_column_families_destroy(names, count);

  const char* cf_names[] = {"default", "other"};
  const rocksdb_options_t* cf_options[] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  db = rocksdb_open_column_families(options, path, 2, cf_names, cf_options, handles, &error);
  check_no_error(error, "open column families");
  value = rocksdb_get_cf(db, read, handles[1], "k", 1, &len, &error);
  check_value(value, len, "v");
  rocksdb_free(value);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);

  use_compaction_options(path, options);
  rocksdb_destroy_db(options, path, &error);
  check_no_error(error, "destroy");
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_cache_destroy(cache);
  rocksdb_options_destroy(options);
  printf("all good\n");
  return 0;
}
