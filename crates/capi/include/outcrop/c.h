/* Functions of Outcrop's own, beside those of RocksDB's C API in rocksdb/c.h: same ownership, same errors.
 *
 * A program that is to run on RocksDB's library, too, looks for these by dlsym.
 */
#ifndef OUTCROP_C_H
#define OUTCROP_C_H

#include <stdint.h>

#include "rocksdb/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory budget: one limit, in bytes, for the memory of all databases that are opened under options that have it: that of their
 * blocks, indexes, filters, memtables, open tables, iterators, flushes and compactions together. The resident memory of the process
 * grows by no more than 1.1 times the limit. The databases share one block cache, which the budget makes: opening fails with
 * InvalidArgument if the options have a block cache, a write buffer manager or db_write_buffer_size beside it.
 *
 * At the limit blocks make room first; writers wait for flushes; then iterators and writes fail with "Operation aborted".
 */
typedef struct outcrop_memory_budget_t outcrop_memory_budget_t;

/* At least 16 MiB; null and an error otherwise. */
extern outcrop_memory_budget_t* outcrop_memory_budget_create(uint64_t bytes, char** errptr);
/* Options and databases that have it keep it. */
extern void outcrop_memory_budget_destroy(outcrop_memory_budget_t* budget);
/* Null takes it away. */
extern void outcrop_options_set_memory_budget(rocksdb_options_t* options, outcrop_memory_budget_t* budget);

/* The budget that the environment variable OUTCROP_MEMORY_BUDGET (bytes, or a number with K, M or G behind it) gives all databases of
 * the process; null if it is not set. Block caches, write buffer managers and db_write_buffer_size that their options have are then not
 * used. It is to be destroyed as others. An error if the variable says no size, or less than 16 MiB; databases do not open then.
 */
extern outcrop_memory_budget_t* outcrop_memory_budget_of_process(char** errptr);

/* The limit. */
extern uint64_t outcrop_memory_budget_bytes(const outcrop_memory_budget_t* budget);
/* The bytes in use: all of them, and each part. */
extern uint64_t outcrop_memory_budget_usage(const outcrop_memory_budget_t* budget);
extern uint64_t outcrop_memory_budget_usage_of_blocks(const outcrop_memory_budget_t* budget);
extern uint64_t outcrop_memory_budget_usage_of_memtables(const outcrop_memory_budget_t* budget);
extern uint64_t outcrop_memory_budget_usage_of_tables(const outcrop_memory_budget_t* budget);
extern uint64_t outcrop_memory_budget_usage_of_iterators(const outcrop_memory_budget_t* budget);
extern uint64_t outcrop_memory_budget_usage_of_jobs(const outcrop_memory_budget_t* budget);

#ifdef __cplusplus
}
#endif

#endif
