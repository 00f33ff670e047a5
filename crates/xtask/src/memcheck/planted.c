/* The control of `cargo xtask memcheck`: the library reads a batch that it has freed, as its caller asks for. Memcheck has to report it. */
#include <stddef.h>
#include <stdio.h>

typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
rocksdb_writebatch_t* rocksdb_writebatch_create(void);
void rocksdb_writebatch_put(rocksdb_writebatch_t*, const char*, size_t, const char*, size_t);
int rocksdb_writebatch_count(rocksdb_writebatch_t*);
void rocksdb_writebatch_destroy(rocksdb_writebatch_t*);

int main(void) {
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "key", 3, "value", 5);
  rocksdb_writebatch_destroy(batch);
  printf("%d\n", rocksdb_writebatch_count(batch));
  return 0;
}
