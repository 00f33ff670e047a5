/* Two databases within one budget of memory, by the header of Outcrop's own functions. */
#include <outcrop/c.h>
#include "check.h"
#include <string.h>

int main(int count, char** arguments) {
    CHECK(count == 2);
    CHECK(outcrop_memory_budget_create(1 << 20, &err) == NULL && strstr(err, "memory_budget"));
    rocksdb_free(err);
    err = NULL;
    outcrop_memory_budget_t* budget = outcrop_memory_budget_create(32 << 20, &err);
    CHECK(budget != NULL && outcrop_memory_budget_bytes(budget) == 32 << 20);
    CHECK(outcrop_memory_budget_usage(budget) == 0);

    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    outcrop_options_set_memory_budget(options, budget);
    rocksdb_t* databases[2];
    char path[4096];
    char value[1000];
    memset(value, 'v', sizeof value);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/budget-%d", arguments[1], i);
        databases[i] = rocksdb_open(options, path, &err);
        CHECK(err == NULL);
        uint64_t before = outcrop_memory_budget_usage_of_memtables(budget);
        for (int key = 0; key < 1000; key++) {
            rocksdb_put(databases[i], write, (char*)&key, sizeof key, value, sizeof value, &err);
            CHECK(err == NULL);
        }
        CHECK(outcrop_memory_budget_usage_of_memtables(budget) >= before + 1000 * sizeof value);
        rocksdb_flush(databases[i], flush, &err);
        CHECK(err == NULL);
        rocksdb_iterator_t* rows = rocksdb_create_iterator(databases[i], read);
        int found = 0;
        for (rocksdb_iter_seek_to_first(rows); rocksdb_iter_valid(rows); rocksdb_iter_next(rows)) {
            found++;
            CHECK(outcrop_memory_budget_usage_of_iterators(budget) > 0);
        }
        CHECK(found == 1000 && outcrop_memory_budget_usage_of_blocks(budget) > 0);
        rocksdb_iter_destroy(rows);
        CHECK(outcrop_memory_budget_usage_of_iterators(budget) == 0);
        CHECK(outcrop_memory_budget_usage_of_tables(budget) > 0);
    }
    CHECK(outcrop_memory_budget_usage(budget) <= outcrop_memory_budget_bytes(budget));
    CHECK(outcrop_memory_budget_usage_of_jobs(budget) <= outcrop_memory_budget_usage(budget));

    /* What contradicts it is refused. */
    rocksdb_write_buffer_manager_t* manager = rocksdb_write_buffer_manager_create(1 << 20, 0);
    rocksdb_options_set_write_buffer_manager(options, manager);
    snprintf(path, sizeof path, "%s/budget-2", arguments[1]);
    CHECK(rocksdb_open(options, path, &err) == NULL && strstr(err, "contradicts memory_budget"));
    rocksdb_free(err);
    err = NULL;
    outcrop_options_set_memory_budget(options, NULL);
    rocksdb_close(rocksdb_open(options, path, &err));
    CHECK(err == NULL);

    for (int i = 0; i < 2; i++) rocksdb_close(databases[i]);
    CHECK(outcrop_memory_budget_usage_of_memtables(budget) == 0);
    rocksdb_write_buffer_manager_destroy(manager);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(write);
    rocksdb_readoptions_destroy(read);
    rocksdb_flushoptions_destroy(flush);
    outcrop_memory_budget_destroy(budget);
    puts("all good");
    return 0;
}
