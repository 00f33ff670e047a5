/* A tour of the C API as a program would use it. Every step checks what it gets; what is printed is the same for
 * every library that provides the API, so that two of them can be compared. */
#include "rocksdb/c.h"

#include <inttypes.h>
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

/* Prints the kind of an error, which is the same for all engines, and frees it. */
static void show_error(const char* what, char** error) {
  check(*error != NULL, what);
  printf("%s: %.*s\n", what, (int)strcspn(*error, ":"), *error);
  rocksdb_free(*error);
  *error = NULL;
}

static void show(const char* what, const char* bytes, size_t len) {
  if (bytes == NULL) {
    printf("%s: nothing\n", what);
  } else {
    printf("%s: %.*s\n", what, (int)len, bytes);
  }
}

static void show_key(const char* what, const rocksdb_iterator_t* iter) {
  size_t len = 0;
  const char* key = rocksdb_iter_key(iter, &len);
  show(what, key, len);
}

static void show_get(rocksdb_t* db, rocksdb_readoptions_t* read, const char* key) {
  char* error = NULL;
  size_t len = 0;
  char* value = rocksdb_get(db, read, key, strlen(key), &len, &error);
  check_no_error(error, "get");
  show(key, value, len);
  rocksdb_free(value);
}

static void put(rocksdb_t* db, rocksdb_writeoptions_t* write, const char* key, const char* value) {
  char* error = NULL;
  rocksdb_put(db, write, key, strlen(key), value, strlen(value), &error);
  check_no_error(error, key);
}

static void show_all(rocksdb_t* db, rocksdb_readoptions_t* read) {
  char* error = NULL;
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    rocksdb_slice_t key = rocksdb_iter_key_slice(iter);
    rocksdb_slice_t value = rocksdb_iter_value_slice(iter);
    printf("  %.*s = %.*s\n", (int)key.size, key.data, (int)value.size, value.data);
  }
  rocksdb_iter_get_error(iter, &error);
  check_no_error(error, "scan");
  rocksdb_iter_destroy(iter);
}

/* The parts that every stop of the tour needs. */
typedef struct {
  const char* dir;
  rocksdb_options_t* options;
  rocksdb_writeoptions_t* write;
  rocksdb_readoptions_t* read;
  rocksdb_flushoptions_t* flush;
} tour_t;

static rocksdb_t* open_db(const tour_t* tour, const char* name, rocksdb_options_t* options) {
  char path[1024];
  char* error = NULL;
  snprintf(path, sizeof path, "%s/%s", tour->dir, name);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  check_no_error(error, name);
  return db;
}

static void opening(const tour_t* tour) {
  char path[1024];
  char* error = NULL;
  snprintf(path, sizeof path, "%s/none", tour->dir);
  rocksdb_options_t* options = rocksdb_options_create();
  check(rocksdb_open(options, path, &error) == NULL, "opening what does not exist fails");
  show_error("opening what does not exist", &error);
  rocksdb_options_destroy(options);
}

static void reading_and_writing(const tour_t* tour) {
  char* error = NULL;
  size_t len = 0;
  rocksdb_t* db = open_db(tour, "basic", tour->options);
  put(db, tour->write, "apple", "red");
  put(db, tour->write, "banana", "yellow");
  rocksdb_delete(db, tour->write, "cherry", 6, &error);
  check_no_error(error, "delete");
  show_get(db, tour->read, "apple");
  show_get(db, tour->read, "nothing");

  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  put(db, tour->write, "apple", "green");
  rocksdb_readoptions_set_snapshot(tour->read, snapshot);
  rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, tour->read, "apple", 5, &error);
  const char* bytes = rocksdb_pinnableslice_value(pinned, &len);
  show("apple at the snapshot", bytes, len);
  rocksdb_pinnableslice_destroy(pinned);
  rocksdb_readoptions_set_snapshot(tour->read, NULL);
  printf("sequence numbers: %" PRIu64 " %" PRIu64 "\n", rocksdb_snapshot_get_sequence_number(snapshot),
         rocksdb_get_latest_sequence_number(db));
  rocksdb_release_snapshot(db, snapshot);

  uint64_t one = 1;
  for (int i = 0; i < 3; i++) {
    rocksdb_merge(db, tour->write, "count", 5, (const char*)&one, sizeof one, &error);
    check_no_error(error, "merge");
  }
  char buffer[8];
  unsigned char found = 0;
  check(rocksdb_get_into_buffer(db, tour->read, "count", 5, buffer, sizeof buffer, &len, &found, &error) == 1,
        "the value fits");
  printf("count: %d in %d bytes\n", buffer[0], (int)len);
  check(rocksdb_get_into_buffer(db, tour->read, "banana", 6, buffer, 3, &len, &found, &error) == 0 && found,
        "the value does not fit");
  printf("banana needs %d bytes\n", (int)len);

  const char* keys[] = {"apple", "absent", "banana"};
  size_t key_lens[] = {5, 6, 6};
  char* values[3];
  size_t value_lens[3];
  char* errors[3];
  rocksdb_multi_get(db, tour->read, 3, keys, key_lens, values, value_lens, errors);
  for (int i = 0; i < 3; i++) {
    check_no_error(errors[i], "multi_get");
    show(keys[i], values[i], value_lens[i]);
    rocksdb_free(values[i]);
  }
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_pinnableslice_t* slices[3];
  rocksdb_slice_t key_slices[] = {{"apple", 5}, {"absent", 6}, {"banana", 6}};
  rocksdb_batched_multi_get_cf_slice(db, tour->read, cf, 3, key_slices, slices, errors, false);
  for (int i = 0; i < 3; i++) {
    bytes = rocksdb_pinnableslice_value(slices[i], &len);
    show(keys[i], bytes, len);
    rocksdb_pinnableslice_destroy(slices[i]);
  }
  rocksdb_column_family_handle_destroy(cf);

  char* value = NULL;
  printf("may exist: %d", rocksdb_key_may_exist(db, tour->read, "apple", 5, &value, &len, NULL, 0, &found));
  printf(" found %d %.*s\n", found, (int)len, value);
  rocksdb_free(value);
  rocksdb_close(db);
}

static void deletions_and_ranges(const tour_t* tour) {
  char* error = NULL;
  rocksdb_t* db = open_db(tour, "ranges", tour->options);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  char key[16];
  for (int i = 0; i < 100; i++) {
    snprintf(key, sizeof key, "k%02d", i);
    put(db, tour->write, key, "v");
  }
  rocksdb_delete_range_cf(db, tour->write, cf, "k05", 3, "k95", 3, &error);
  check_no_error(error, "delete range");
  rocksdb_singledelete(db, tour->write, "k99", 3, &error);
  check_no_error(error, "single delete");
  show_all(db, tour->read);
  rocksdb_flush(db, tour->flush, &error);
  check_no_error(error, "flush");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  show_all(db, tour->read);

  rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iterate_lower_bound(bounded, "k01", 3);
  rocksdb_readoptions_set_iterate_upper_bound(bounded, "k03", 3);
  printf("within bounds:\n");
  show_all(db, bounded);
  rocksdb_readoptions_destroy(bounded);

  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, tour->read);
  rocksdb_iter_seek(iter, "k05", 3);
  show_key("seek", iter);
  rocksdb_iter_prev(iter);
  show_key("prev", iter);
  rocksdb_iter_seek_for_prev(iter, "k90", 3);
  show_key("seek for prev", iter);
  rocksdb_iter_seek_to_last(iter);
  show_key("last", iter);
  put(db, tour->write, "m", "later");
  rocksdb_iter_seek(iter, "m", 1);
  printf("a later write is seen: %d\n", rocksdb_iter_valid(iter));
  rocksdb_iter_refresh(iter, &error);
  check_no_error(error, "refresh");
  rocksdb_iter_seek(iter, "m", 1);
  printf("and after a refresh: %d\n", rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);

  rocksdb_readoptions_t* tailing = rocksdb_readoptions_create();
  rocksdb_readoptions_set_tailing(tailing, 1);
  iter = rocksdb_create_iterator(db, tailing);
  rocksdb_iter_seek(iter, "m", 1);
  put(db, tour->write, "n", "later still");
  rocksdb_iter_next(iter);
  show_key("a tailing iterator goes on", iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(tailing);

  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
}

static void on_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  printf("%s put %.*s = %.*s\n", (const char*)state, (int)klen, k, (int)vlen, v);
}

static void on_delete(void* state, const char* k, size_t klen) {
  printf("%s delete %.*s\n", (const char*)state, (int)klen, k);
}

static void on_put_cf(void* state, uint32_t cf, const char* k, size_t klen, const char* v, size_t vlen) {
  printf("%s put %u %.*s = %.*s\n", (const char*)state, cf, (int)klen, k, (int)vlen, v);
}

static void on_delete_cf(void* state, uint32_t cf, const char* k, size_t klen) {
  printf("%s delete %u %.*s\n", (const char*)state, cf, (int)klen, k);
}

static void on_merge_cf(void* state, uint32_t cf, const char* k, size_t klen, const char* v, size_t vlen) {
  printf("%s merge %u %.*s + %.*s\n", (const char*)state, cf, (int)klen, k, (int)vlen, v);
}

static void on_log_data(void* state, const char* data, size_t len) {
  printf("%s log data %.*s\n", (const char*)state, (int)len, data);
}

static void batches(const tour_t* tour) {
  char* error = NULL;
  rocksdb_t* db = open_db(tour, "batches", tour->options);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_put_log_data(batch, "note", 4);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put(batch, "b", 1, "2", 1);
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  check_no_error(error, "rollback");
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  show_error("a rollback too many", &error);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_pop_save_point(batch, &error);
  check_no_error(error, "pop");
  rocksdb_writebatch_pop_save_point(batch, &error);
  show_error("a pop too many", &error);
  const char* key_parts[] = {"long", "er"};
  const char* value_parts[] = {"in ", "parts"};
  const size_t key_lens[] = {4, 2};
  const size_t value_lens[] = {3, 5};
  rocksdb_writebatch_putv(batch, 2, key_parts, key_lens, 2, value_parts, value_lens);
  rocksdb_writebatch_delete(batch, "c", 1);
  printf("count %d\n", rocksdb_writebatch_count(batch));
  rocksdb_writebatch_iterate(batch, "plain", on_put, on_delete);
  rocksdb_writebatch_iterate_ld(batch, "with log data", on_put, on_delete, on_log_data);
  rocksdb_writebatch_iterate_cf_ld(batch, "families", on_put_cf, on_delete_cf, on_merge_cf, on_log_data);

  size_t len = 0;
  const char* data = rocksdb_writebatch_data(batch, &len);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  rocksdb_write(db, tour->write, copy, &error);
  check_no_error(error, "write");
  show_all(db, tour->read);
  rocksdb_writebatch_clear(copy);
  printf("cleared: %d\n", rocksdb_writebatch_count(copy));
  rocksdb_writebatch_destroy(copy);
  rocksdb_writebatch_destroy(batch);

  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(db, 0, NULL, &error);
  check_no_error(error, "updates");
  for (; rocksdb_wal_iter_valid(updates); rocksdb_wal_iter_next(updates)) {
    uint64_t seq = 0;
    rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(updates, &seq);
    printf("update %" PRIu64 " of %d\n", seq, rocksdb_writebatch_count(batch));
    rocksdb_writebatch_destroy(batch);
  }
  rocksdb_wal_iter_status(updates, &error);
  check_no_error(error, "end of updates");
  rocksdb_wal_iter_destroy(updates);
  rocksdb_close(db);
}

static void column_families(const tour_t* tour) {
  char* error = NULL;
  char path[1024];
  size_t count = 0;
  rocksdb_t* db = open_db(tour, "families", tour->options);
  const char* names[] = {"one", "two"};
  rocksdb_column_family_handle_t** made =
      rocksdb_create_column_families(db, tour->options, 2, names, &count, &error);
  check_no_error(error, "create column families");
  for (size_t i = 0; i < count; i++) {
    size_t len = 0;
    char* name = rocksdb_column_family_handle_get_name(made[i], &len);
    printf("family %u %.*s\n", rocksdb_column_family_handle_get_id(made[i]), (int)len, name);
    rocksdb_free(name);
    rocksdb_put_cf(db, tour->write, made[i], "k", 1, names[i], 3, &error);
    check_no_error(error, "put in a family");
  }
  rocksdb_flush_cfs(db, tour->flush, made, 2, &error);
  check_no_error(error, "flush families");
  rocksdb_iterator_t* iters[2];
  rocksdb_create_iterators(db, tour->read, made, iters, 2, &error);
  check_no_error(error, "iterators");
  for (int i = 0; i < 2; i++) {
    size_t len = 0;
    rocksdb_iter_seek_to_first(iters[i]);
    const char* value = rocksdb_iter_value(iters[i], &len);
    show("iterator", value, len);
    rocksdb_iter_destroy(iters[i]);
  }
  rocksdb_drop_column_family(db, made[1], &error);
  check_no_error(error, "drop");
  for (size_t i = 0; i < count; i++) rocksdb_column_family_handle_destroy(made[i]);
  rocksdb_create_column_families_destroy(made);
  rocksdb_close(db);

  snprintf(path, sizeof path, "%s/families", tour->dir);
  char** listed = rocksdb_list_column_families(tour->options, path, &count, &error);
  check_no_error(error, "list");
  for (size_t i = 0; i < count; i++) printf("listed %s\n", listed[i]);
  rocksdb_list_column_families_destroy(listed, count);
  db = rocksdb_open(tour->options, path, &error);
  check(db == NULL, "all families must be named");
  show_error("opening without a family", &error);
}

/* The names of all tables, and how many there are; freed with `free_names`. */
static size_t table_names(rocksdb_t* db, char** names, size_t room) {
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  const size_t count = (size_t)rocksdb_livefiles_count(files);
  check(count <= room, "room for all tables");
  for (size_t i = 0; i < count; i++) {
    const char* name = rocksdb_livefiles_name(files, (int)i);
    names[i] = malloc(strlen(name) + 1);
    strcpy(names[i], name);
  }
  rocksdb_livefiles_destroy(files);
  return count;
}

static void free_names(char** names, size_t count) {
  for (size_t i = 0; i < count; i++) free(names[i]);
}

static void show_tables(rocksdb_t* db) {
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  for (int i = 0; i < rocksdb_livefiles_count(files); i++) {
    printf("a table of %" PRIu64 " entries on level %d\n", rocksdb_livefiles_entries(files, i),
           rocksdb_livefiles_level(files, i));
  }
  rocksdb_livefiles_destroy(files);
}

static void chosen_compactions(const tour_t* tour) {
  char* error = NULL;
  rocksdb_options_t* still = rocksdb_options_create_copy(tour->options);
  rocksdb_options_set_disable_auto_compactions(still, 1);
  rocksdb_t* db = open_db(tour, "chosen", still);
  for (int round = 0; round < 2; round++) {
    put(db, tour->write, "a", round == 0 ? "0" : "1");
    put(db, tour->write, round == 0 ? "b" : "c", "2");
    rocksdb_flush(db, tour->flush, &error);
    check_no_error(error, "flush");
  }
  rocksdb_compaction_options_t* options = rocksdb_compaction_options_create();
  unsigned char* canceled = rocksdb_compaction_options_canceled_create();
  rocksdb_compaction_options_set_canceled(options, canceled);
  char* names[4];
  size_t count = table_names(db, names, 4);
  const char* const* inputs = (const char* const*)names;
  char** outputs = NULL;
  size_t output_count = 0;
  rocksdb_compact_files(db, options, inputs, 0, 1, 0, &outputs, &output_count, NULL, &error);
  show_error("compacting nothing", &error);
  rocksdb_compact_files(db, options, inputs, count, 99, 0, &outputs, &output_count, NULL, &error);
  show_error("compacting to a level that is not there", &error);
  const char* missing[] = {"/999999.sst"};
  rocksdb_compact_files(db, options, missing, 1, 1, 0, &outputs, &output_count, NULL, &error);
  show_error("compacting a table that is not there", &error);
  rocksdb_compaction_options_canceled_set(canceled, 1);
  rocksdb_compact_files(db, options, inputs, count, 3, 0, &outputs, &output_count, NULL, &error);
  show_error("compacting what is canceled", &error);
  rocksdb_compaction_options_canceled_set(canceled, 0);
  show_tables(db);

  rocksdb_compact_files(db, options, inputs, count, 3, 0, &outputs, &output_count, NULL, &error);
  check_no_error(error, "compact files");
  const size_t dir_len = strlen(tour->dir);
  for (size_t i = 0; i < output_count; i++) {
    check(strncmp(outputs[i], tour->dir, dir_len) == 0, "the path of a new table");
    printf("written: %.8s\n", outputs[i] + dir_len);
  }
  show_tables(db);
  show_all(db, tour->read);
  free_names(names, count);

  rocksdb_compaction_options_set_allow_trivial_move(options, 1);
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_compact_files_cf(db, family, options, (const char* const*)outputs, output_count, 4, -1, NULL, NULL, NULL,
                           &error);
  check_no_error(error, "move files");
  rocksdb_column_family_handle_destroy(family);
  count = table_names(db, names, 4);
  check(count == output_count, "as many tables as before");
  for (size_t i = 0; i < count; i++) check(strstr(outputs[i], names[i]) != NULL, "a table is moved as it is");
  show_tables(db);
  free_names(names, count);
  rocksdb_compact_files_output_file_names_destroy(outputs, output_count);
  rocksdb_compaction_options_canceled_destroy(canceled);
  rocksdb_compaction_options_destroy(options);
  rocksdb_close(db);
  rocksdb_options_destroy(still);
}

static void metadata(const tour_t* tour) {
  char* error = NULL;
  size_t len = 0;
  rocksdb_t* db = open_db(tour, "metadata", tour->options);
  char key[16];
  char value[100];
  memset(value, 'x', sizeof value);
  for (int i = 0; i < 1000; i++) {
    snprintf(key, sizeof key, "k%04d", i);
    rocksdb_put(db, tour->write, key, 5, value, sizeof value, &error);
    check_no_error(error, "put");
  }
  rocksdb_delete(db, tour->write, "k0000", 5, &error);
  rocksdb_flush(db, tour->flush, &error);
  check_no_error(error, "flush");

  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  printf("live files: %d\n", rocksdb_livefiles_count(files));
  printf("family %s level %d entries %" PRIu64 " deletions %" PRIu64 " seqnos %" PRIu64 "-%" PRIu64 "\n",
         rocksdb_livefiles_column_family_name(files, 0), rocksdb_livefiles_level(files, 0),
         rocksdb_livefiles_entries(files, 0), rocksdb_livefiles_deletions(files, 0),
         rocksdb_livefiles_smallest_seqno(files, 0), rocksdb_livefiles_largest_seqno(files, 0));
  const char* bound = rocksdb_livefiles_smallestkey(files, 0, &len);
  show("smallest", bound, len);
  bound = rocksdb_livefiles_largestkey(files, 0, &len);
  show("largest", bound, len);
  const char* name = rocksdb_livefiles_name(files, 0);
  printf("name starts with %c, ends with %s\n", name[0], name + strlen(name) - 4);
  rocksdb_livefiles_destroy(files);

  rocksdb_column_family_metadata_t* family = rocksdb_get_column_family_metadata(db);
  printf("files %d levels %d\n", (int)rocksdb_column_family_metadata_get_file_count(family),
         (int)rocksdb_column_family_metadata_get_level_count(family));
  rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(family, 0);
  printf("level %d files %d\n", rocksdb_level_metadata_get_level(level),
         (int)rocksdb_level_metadata_get_file_count(level));
  rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(level, 0);
  char* text = rocksdb_sst_file_metadata_get_largestkey(file, &len);
  show("largest key", text, len);
  rocksdb_free(text);
  text = rocksdb_sst_file_metadata_get_relative_filename(file);
  printf("relative name has %d characters\n", (int)strlen(text));
  rocksdb_free(text);
  rocksdb_sst_file_metadata_destroy(file);
  rocksdb_level_metadata_destroy(level);
  rocksdb_column_family_metadata_destroy(family);

  const char* starts[] = {"k0000", "k0000", "x"};
  const char* limits[] = {"k9999", "k0500", "y"};
  const size_t lens[] = {5, 5, 1};
  uint64_t sizes[3];
  rocksdb_approximate_sizes(db, 3, starts, lens, limits, lens, sizes, &error);
  check_no_error(error, "sizes");
  printf("sizes: all over half %d, nothing %" PRIu64 "\n", sizes[0] > sizes[1] && sizes[1] > 0, sizes[2]);

  uint64_t number = 99;
  printf("property %d", rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number));
  printf(" %" PRIu64 "\n", number);
  printf("unknown property %d\n", rocksdb_property_int(db, "rocksdb.no-such", &number));
  text = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  printf("files at level 0: %s\n", text);
  rocksdb_free(text);
  text = rocksdb_get_db_identity(db, &len);
  printf("identity of %d characters\n", (int)len);
  rocksdb_free(text);
  rocksdb_verify_checksum(db, &error);
  check_no_error(error, "verify");
  rocksdb_close(db);
}

static char* full_merge(void* state, const char* key, size_t key_len, const char* existing, size_t existing_len,
                        const char* const* operands, const size_t* lens, int count, unsigned char* success,
                        size_t* new_len) {
  (void)state, (void)key, (void)key_len;
  size_t total = existing == NULL ? 0 : existing_len;
  for (int i = 0; i < count; i++) total += lens[i];
  char* merged = malloc(total + 1);
  size_t at = 0;
  if (existing != NULL) memcpy(merged, existing, at = existing_len);
  for (int i = 0; i < count; i++) {
    memcpy(merged + at, operands[i], lens[i]);
    at += lens[i];
  }
  *success = 1;
  *new_len = total;
  return merged;
}

static char* partial_merge(void* state, const char* key, size_t key_len, const char* const* operands,
                           const size_t* lens, int count, unsigned char* success, size_t* new_len) {
  return full_merge(state, key, key_len, NULL, 0, operands, lens, count, success, new_len);
}

static const char* object_name(void* state) {
  (void)state;
  return "tour";
}

static void nothing(void* state) { (void)state; }

static int backwards(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  (void)state;
  int order = memcmp(b, a, a_len < b_len ? a_len : b_len);
  return order != 0 ? order : (int)b_len - (int)a_len;
}

static unsigned char drop_temporary(void* state, int level, const char* key, size_t key_len, const char* value,
                                    size_t value_len, char** new_value, size_t* new_len, unsigned char* changed) {
  (void)state, (void)level, (void)value, (void)value_len, (void)new_value, (void)new_len;
  *changed = 0;
  return key_len > 3 && memcmp(key, "tmp", 3) == 0;
}

static void callbacks(const tour_t* tour) {
  char* error = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_comparator_t* comparator = rocksdb_comparator_create(NULL, nothing, backwards, object_name);
  rocksdb_options_set_comparator(options, comparator);
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(NULL, nothing, full_merge, partial_merge, NULL, object_name));
  rocksdb_compactionfilter_t* filter =
      rocksdb_compactionfilter_create(NULL, nothing, drop_temporary, object_name);
  rocksdb_options_set_compaction_filter(options, filter);
  rocksdb_t* db = open_db(tour, "callbacks", options);
  put(db, tour->write, "first", "1");
  put(db, tour->write, "second", "2");
  put(db, tour->write, "tmp1", "3");
  rocksdb_merge(db, tour->write, "first", 5, "+more", 5, &error);
  rocksdb_merge(db, tour->write, "first", 5, "+yet", 4, &error);
  check_no_error(error, "merge");
  show_all(db, tour->read);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  printf("compacted:\n");
  show_all(db, tour->read);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(comparator);
  rocksdb_compactionfilter_destroy(filter);
}

static void prefixes(const tour_t* tour) {
  rocksdb_options_t* options = rocksdb_options_create_copy(tour->options);
  rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(2));
  rocksdb_t* db = open_db(tour, "prefixes", options);
  put(db, tour->write, "aa1", "1");
  put(db, tour->write, "aa2", "2");
  put(db, tour->write, "ab1", "3");
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_readoptions_set_prefix_same_as_start(read, 1);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
  int seen = 0;
  for (rocksdb_iter_seek(iter, "aa", 2); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) seen++;
  printf("keys of the prefix: %d\n", seen);
  seen = 0;
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) seen++;
  printf("keys of the first prefix: %d\n", seen);
  seen = 0;
  for (rocksdb_iter_seek_to_last(iter); rocksdb_iter_valid(iter); rocksdb_iter_prev(iter)) seen++;
  printf("keys of the last prefix: %d\n", seen);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(read);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void files(const tour_t* tour) {
  char* error = NULL;
  char path[1024];
  rocksdb_t* db = open_db(tour, "files", tour->options);
  put(db, tour->write, "old", "kept");
  rocksdb_envoptions_t* env_options = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env_options, tour->options);
  snprintf(path, sizeof path, "%s/new.sst", tour->dir);
  rocksdb_sstfilewriter_open(writer, path, &error);
  check_no_error(error, "open file");
  rocksdb_sstfilewriter_put(writer, "new1", 4, "1", 1, &error);
  rocksdb_sstfilewriter_put(writer, "new2", 4, "2", 1, &error);
  check_no_error(error, "put in file");
  rocksdb_sstfilewriter_put(writer, "new0", 4, "0", 1, &error);
  show_error("keys out of order", &error);
  rocksdb_sstfilewriter_finish(writer, &error);
  check_no_error(error, "finish");
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env_options);
  const char* paths[] = {path};
  rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingest_external_file(db, paths, 1, ingest, &error);
  check_no_error(error, "ingest");
  rocksdb_ingestexternalfileoptions_destroy(ingest);

  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
  snprintf(path, sizeof path, "%s/checkpoint", tour->dir);
  rocksdb_checkpoint_create(checkpoint, path, 0, &error);
  check_no_error(error, "checkpoint");
  rocksdb_checkpoint_object_destroy(checkpoint);
  put(db, tour->write, "old", "changed");
  rocksdb_close(db);
  db = rocksdb_open_for_read_only(tour->options, path, 0, &error);
  check_no_error(error, "open read-only");
  show_all(db, tour->read);
  rocksdb_put(db, tour->write, "k", 1, "v", 1, &error);
  show_error("a write to it", &error);
  rocksdb_close(db);
}

int main(int argc, char** argv) {
  check(argc == 2, "usage: example DIRECTORY");
  tour_t tour = {argv[1], rocksdb_options_create(), rocksdb_writeoptions_create(), rocksdb_readoptions_create(),
                 rocksdb_flushoptions_create()};
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(8 << 20);
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_ribbon(10));
  rocksdb_options_set_block_based_table_factory(tour.options, table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_options_set_create_if_missing(tour.options, 1);
  rocksdb_options_set_uint64add_merge_operator(tour.options);
  rocksdb_options_set_compression(tour.options, rocksdb_no_compression);

  opening(&tour);
  reading_and_writing(&tour);
  deletions_and_ranges(&tour);
  batches(&tour);
  column_families(&tour);
  metadata(&tour);
  chosen_compactions(&tour);
  callbacks(&tour);
  prefixes(&tour);
  files(&tour);

  rocksdb_flushoptions_destroy(tour.flush);
  rocksdb_readoptions_destroy(tour.read);
  rocksdb_writeoptions_destroy(tour.write);
  rocksdb_cache_destroy(cache);
  rocksdb_options_destroy(tour.options);
  printf("all good\n");
  return 0;
}
