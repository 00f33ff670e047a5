/* A program that knows nothing of budgets, with caches and a write buffer manager of its own: OUTCROP_MEMORY_BUDGET gives its databases one. */
#include <outcrop/c.h>
#include "check.h"
#include <string.h>

int main(int count, char** arguments) {
    CHECK(count == 2);
    const char* variable = getenv("OUTCROP_MEMORY_BUDGET");
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_db_write_buffer_size(options, 64 << 20);
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(64 << 20);
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_write_buffer_manager_t* manager = rocksdb_write_buffer_manager_create(64 << 20, 0);
    rocksdb_options_set_write_buffer_manager(options, manager);

    char path[4096];
    snprintf(path, sizeof path, "%s/one", arguments[1]);
    if (variable != NULL && strcmp(variable, "a lot") == 0) {
        CHECK(rocksdb_open(options, path, &err) == NULL && strstr(err, "OUTCROP_MEMORY_BUDGET=a lot: use bytes"));
        rocksdb_free(err);
        err = NULL;
        CHECK(outcrop_memory_budget_of_process(&err) == NULL && strstr(err, "OUTCROP_MEMORY_BUDGET"));
        puts("all good");
        return 0;
    }
    rocksdb_t* one = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    snprintf(path, sizeof path, "%s/two", arguments[1]);
    rocksdb_t* two = rocksdb_open(options, path, &err);
    CHECK(err == NULL);
    rocksdb_column_family_handle_t* family = rocksdb_create_column_family(two, options, "more", &err);
    CHECK(err == NULL);
    outcrop_memory_budget_t* budget = outcrop_memory_budget_of_process(&err);
    CHECK(err == NULL && (budget != NULL) == (variable != NULL));

    char value[1000];
    memset(value, 'v', sizeof value);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    uint64_t most = 0;
    for (int key = 0; key < 40000; key++) {
        /* More than the budget, in three column families. */
        if (key % 3 == 0) {
            rocksdb_put(one, write, (char*)&key, sizeof key, value, sizeof value, &err);
        } else if (key % 3 == 1) {
            rocksdb_put(two, write, (char*)&key, sizeof key, value, sizeof value, &err);
        } else {
            rocksdb_put_cf(two, write, family, (char*)&key, sizeof key, value, sizeof value, &err);
        }
        CHECK(err == NULL);
        if (budget != NULL && outcrop_memory_budget_usage(budget) > most) most = outcrop_memory_budget_usage(budget);
    }
    rocksdb_flush(one, flush, &err);
    CHECK(err == NULL);
    for (int key = 0; key < 40000; key += 3) {
        size_t length = 0;
        char* found = rocksdb_get(one, read, (char*)&key, sizeof key, &length, &err);
        CHECK(err == NULL && found != NULL && length == sizeof value);
        rocksdb_free(found);
        if (budget != NULL && outcrop_memory_budget_usage(budget) > most) most = outcrop_memory_budget_usage(budget);
    }
    if (budget != NULL) {
        CHECK(outcrop_memory_budget_bytes(budget) == 32 << 20);
        CHECK(most > 4 << 20 && most <= 32 << 20);
        CHECK(outcrop_memory_budget_usage_of_blocks(budget) > 0);
        CHECK(rocksdb_cache_get_usage(cache) == 0 && rocksdb_write_buffer_manager_memory_usage(manager) == 0);
    } else {
        CHECK(rocksdb_cache_get_usage(cache) > 0 && rocksdb_write_buffer_manager_memory_usage(manager) > 0);
    }
    rocksdb_column_family_handle_destroy(family);
    rocksdb_close(one);
    rocksdb_close(two);
    if (budget != NULL) outcrop_memory_budget_destroy(budget);
    rocksdb_write_buffer_manager_destroy(manager);
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_options_destroy(options);
    puts("all good");
    return 0;
}
