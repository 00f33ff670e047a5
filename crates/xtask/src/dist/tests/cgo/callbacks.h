/* What Go cannot hand to C by itself: functions that are called back. */
#include <rocksdb/c.h>

#include <stdlib.h>
#include <string.h>

static int compare_backwards(void* state, const char* a, size_t a_len, const char* b, size_t b_len) {
  int order = memcmp(b, a, a_len < b_len ? a_len : b_len);
  return order != 0 ? order : (a_len < b_len) - (a_len > b_len);
}

static const char* named(void* state) { return (const char*)state; }

static void nothing(void* state) {}

static rocksdb_comparator_t* backwards(void) {
  return rocksdb_comparator_create("cgo.backwards", nothing, compare_backwards, named);
}

/* Appends the operands. */
static char* full_merge(void* state, const char* key, size_t key_len, const char* existing, size_t existing_len,
                        const char* const* operands, const size_t* lens, int count, unsigned char* success,
                        size_t* len) {
  *len = existing == NULL ? 0 : existing_len;
  for (int i = 0; i < count; i++) *len += lens[i];
  char* merged = malloc(*len + 1);
  char* end = merged;
  if (existing != NULL) end = (char*)memcpy(end, existing, existing_len) + existing_len;
  for (int i = 0; i < count; i++) end = (char*)memcpy(end, operands[i], lens[i]) + lens[i];
  *success = 1;
  return merged;
}

static char* partial_merge(void* state, const char* key, size_t key_len, const char* const* operands,
                           const size_t* lens, int count, unsigned char* success, size_t* len) {
  *success = 0;
  *len = 0;
  return NULL;
}

static void free_value(void* state, const char* value, size_t len) { free((void*)value); }

static rocksdb_mergeoperator_t* append(void) {
  return rocksdb_mergeoperator_create("cgo.append", nothing, full_merge, partial_merge, free_value, named);
}

static rocksdb_eventlistener_t* listener(void) {
  return rocksdb_eventlistener_create(NULL, nothing, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}

/* Counts the records of a batch. */
static void count_put(void* state, const char* key, size_t key_len, const char* value, size_t value_len) {
  ++*(int*)state;
}

static void count_deleted(void* state, const char* key, size_t key_len) { ++*(int*)state; }

static int records(rocksdb_writebatch_t* batch) {
  int count = 0;
  rocksdb_writebatch_iterate(batch, &count, count_put, count_deleted);
  return count;
}
