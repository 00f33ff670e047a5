/* A program that has functions of RocksDB's names itself: calls within the library do not reach them. */
#include <rocksdb/c.h>
#include "check.h"

static int reached = 0;

/* In place of the library's: `rocksdb_transactiondb_flush` does there what this name does. */
void rocksdb_flush(rocksdb_t* db, const rocksdb_flushoptions_t* options, char** errptr) {
    (void)db;
    (void)options;
    (void)errptr;
    reached++;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/db", arguments[1]);
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_transactiondb_options_t* of_transactions = rocksdb_transactiondb_options_create();
    rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, of_transactions, path, &err);
    CHECK(err == NULL);
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_transactiondb_put(db, write, "key", 3, "value", 5, &err);
    CHECK(err == NULL);
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(flush, 1);
    rocksdb_transactiondb_flush(db, flush, &err);
    CHECK(err == NULL && reached == 0);
    char* tables = rocksdb_transactiondb_property_value(db, "rocksdb.num-files-at-level0");
    CHECK(tables != NULL && tables[0] == '1');
    rocksdb_free(tables);
    rocksdb_flush(NULL, flush, &err);
    CHECK(reached == 1);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    rocksdb_transactiondb_close(db);
    rocksdb_transactiondb_options_destroy(of_transactions);
    rocksdb_options_destroy(options);
    puts("all good");
    return 0;
}
