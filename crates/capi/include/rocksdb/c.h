/* The part of RocksDB's C API that Outcrop provides, with the same names, ownership and errors.
 *
 * Objects from a create or open function are freed by the matching destroy or close function; strings and
 * values without one are freed by rocksdb_free. A function with an errptr stores a malloc'ed message there
 * on failure; *errptr must be NULL or such a message before the call.
 */
#ifndef OUTCROP_ROCKSDB_C_H
#define OUTCROP_ROCKSDB_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_compactoptions_t rocksdb_compactoptions_t;
typedef struct rocksdb_universal_compaction_options_t rocksdb_universal_compaction_options_t;
typedef struct rocksdb_fifo_compaction_options_t rocksdb_fifo_compaction_options_t;
typedef struct rocksdb_env_t rocksdb_env_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinnableslice_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_snapshot_t rocksdb_snapshot_t;
typedef struct rocksdb_comparator_t rocksdb_comparator_t;
typedef struct rocksdb_mergeoperator_t rocksdb_mergeoperator_t;
typedef struct rocksdb_compactionfilter_t rocksdb_compactionfilter_t;
typedef struct rocksdb_compactionfilterfactory_t rocksdb_compactionfilterfactory_t;
typedef struct rocksdb_compactionfiltercontext_t rocksdb_compactionfiltercontext_t;
typedef struct rocksdb_checkpoint_t rocksdb_checkpoint_t;
typedef struct rocksdb_envoptions_t rocksdb_envoptions_t;
typedef struct rocksdb_sstfilewriter_t rocksdb_sstfilewriter_t;
typedef struct rocksdb_ingestexternalfileoptions_t rocksdb_ingestexternalfileoptions_t;
typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_wait_for_compact_options_t rocksdb_wait_for_compact_options_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;

/* Options */

extern rocksdb_options_t* rocksdb_options_create(void);
extern rocksdb_options_t* rocksdb_options_create_copy(rocksdb_options_t* options);
extern void rocksdb_options_destroy(rocksdb_options_t* options);
extern void rocksdb_options_set_compression_per_level(
    rocksdb_options_t* options,
    const int* levels,
    size_t count);
extern void rocksdb_options_set_wal_dir(rocksdb_options_t* options, const char* dir);
extern void rocksdb_options_set_block_based_table_factory(
    rocksdb_options_t* options,
    rocksdb_block_based_table_options_t* table);
extern void rocksdb_options_set_memtable_vector_rep(rocksdb_options_t* options);
extern void rocksdb_options_set_allow_concurrent_memtable_write(
    rocksdb_options_t* options,
    unsigned char value);
extern void rocksdb_options_set_enable_pipelined_write(
    rocksdb_options_t* options,
    unsigned char value);
extern void rocksdb_options_set_info_log_level(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_allow_ingest_behind(rocksdb_options_t* options, unsigned char value);
extern void rocksdb_options_set_stats_dump_period_sec(
    rocksdb_options_t* options,
    unsigned int value);
extern void rocksdb_options_set_uint64add_merge_operator(rocksdb_options_t* options);
extern void rocksdb_get_options_from_string(
    const rocksdb_options_t* base,
    const char* string,
    rocksdb_options_t* new_options,
    char** errptr);
extern void rocksdb_options_set_create_if_missing(rocksdb_options_t* options, unsigned char value);
extern void rocksdb_options_set_create_missing_column_families(
    rocksdb_options_t* options,
    unsigned char value);
extern void rocksdb_options_set_error_if_exists(rocksdb_options_t* options, unsigned char value);
extern void rocksdb_options_set_paranoid_checks(rocksdb_options_t* options, unsigned char value);
extern void rocksdb_options_set_max_open_files(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_max_manifest_file_size(rocksdb_options_t* options, size_t value);
extern void rocksdb_options_set_max_total_wal_size(rocksdb_options_t* options, uint64_t value);
extern void rocksdb_options_set_max_background_jobs(rocksdb_options_t* options, int value);
extern void rocksdb_options_increase_parallelism(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
extern void rocksdb_options_set_wal_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
extern void rocksdb_options_set_use_fsync(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_use_direct_reads(rocksdb_options_t* options, unsigned char value);
extern void rocksdb_options_set_use_direct_io_for_flush_and_compaction(
    rocksdb_options_t* options,
    unsigned char value);
extern void rocksdb_options_set_delayed_write_rate(rocksdb_options_t* options, uint64_t value);
extern void rocksdb_options_set_manual_wal_flush(rocksdb_options_t* options, unsigned char value);
extern void rocksdb_options_set_keep_log_file_num(rocksdb_options_t* options, size_t value);
extern void rocksdb_options_set_db_write_buffer_size(rocksdb_options_t* options, size_t value);
extern void rocksdb_options_compaction_readahead_size(rocksdb_options_t* options, size_t value);
extern void rocksdb_options_set_writable_file_max_buffer_size(
    rocksdb_options_t* options,
    uint64_t value);
extern void rocksdb_options_set_avoid_flush_during_shutdown(
    rocksdb_options_t* options,
    unsigned char value);
extern void rocksdb_options_set_wal_recovery_mode(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_write_buffer_size(rocksdb_options_t* options, size_t value);
extern void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_min_write_buffer_number_to_merge(
    rocksdb_options_t* options,
    int value);
extern void rocksdb_options_set_num_levels(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_level0_file_num_compaction_trigger(
    rocksdb_options_t* options,
    int value);
extern void rocksdb_options_set_level0_slowdown_writes_trigger(
    rocksdb_options_t* options,
    int value);
extern void rocksdb_options_set_level0_stop_writes_trigger(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_target_file_size_base(rocksdb_options_t* options, uint64_t value);
extern void rocksdb_options_set_target_file_size_multiplier(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_max_bytes_for_level_base(
    rocksdb_options_t* options,
    uint64_t value);
extern void rocksdb_options_set_max_bytes_for_level_multiplier(
    rocksdb_options_t* options,
    double value);
extern void rocksdb_options_set_level_compaction_dynamic_level_bytes(
    rocksdb_options_t* options,
    unsigned char value);
extern void rocksdb_options_set_max_compaction_bytes(rocksdb_options_t* options, uint64_t value);
extern void rocksdb_options_set_soft_pending_compaction_bytes_limit(
    rocksdb_options_t* options,
    size_t value);
extern void rocksdb_options_set_hard_pending_compaction_bytes_limit(
    rocksdb_options_t* options,
    size_t value);
extern void rocksdb_options_set_disable_auto_compactions(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_optimize_filters_for_hits(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_compression(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_bottommost_compression(rocksdb_options_t* options, int value);
extern void rocksdb_options_set_env(rocksdb_options_t* options, rocksdb_env_t* value);

/* Environments */

extern rocksdb_env_t* rocksdb_create_default_env(void);
extern rocksdb_env_t* rocksdb_create_mem_env(void);
extern void rocksdb_env_destroy(rocksdb_env_t* env);

/* Caches */

extern rocksdb_cache_t* rocksdb_cache_create_lru(size_t capacity);
extern rocksdb_cache_t* rocksdb_cache_create_hyper_clock(
    size_t capacity,
    size_t estimated_entry_charge);
extern void rocksdb_cache_destroy(rocksdb_cache_t* cache);
extern void rocksdb_cache_set_capacity(rocksdb_cache_t* cache, size_t capacity);
extern size_t rocksdb_cache_get_capacity(const rocksdb_cache_t* cache);
extern size_t rocksdb_cache_get_usage(const rocksdb_cache_t* cache);
extern size_t rocksdb_cache_get_pinned_usage(const rocksdb_cache_t* cache);

/* Table options and filters */

extern rocksdb_block_based_table_options_t* rocksdb_block_based_options_create(void);
extern void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t* options);
extern void rocksdb_block_based_options_set_checksum(
    rocksdb_block_based_table_options_t* options,
    char checksum);
extern void rocksdb_block_based_options_set_block_cache(
    rocksdb_block_based_table_options_t* options,
    rocksdb_cache_t* cache);
extern void rocksdb_block_based_options_set_filter_policy(
    rocksdb_block_based_table_options_t* options,
    rocksdb_filterpolicy_t* policy);
extern rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom(double bits_per_key);
extern rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom_full(double bits_per_key);
extern void rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_t* policy);
extern void rocksdb_block_based_options_set_block_size(
    rocksdb_block_based_table_options_t* options,
    size_t value);
extern void rocksdb_block_based_options_set_block_size_deviation(
    rocksdb_block_based_table_options_t* options,
    int value);
extern void rocksdb_block_based_options_set_block_restart_interval(
    rocksdb_block_based_table_options_t* options,
    int value);
extern void rocksdb_block_based_options_set_index_block_restart_interval(
    rocksdb_block_based_table_options_t* options,
    int value);
extern void rocksdb_block_based_options_set_no_block_cache(
    rocksdb_block_based_table_options_t* options,
    unsigned char value);
extern void rocksdb_block_based_options_set_whole_key_filtering(
    rocksdb_block_based_table_options_t* options,
    unsigned char value);
extern void rocksdb_block_based_options_set_format_version(
    rocksdb_block_based_table_options_t* options,
    int value);
extern void rocksdb_block_based_options_set_cache_index_and_filter_blocks(
    rocksdb_block_based_table_options_t* options,
    unsigned char value);
extern void rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
    rocksdb_block_based_table_options_t* options,
    unsigned char value);

/* Options of single operations */

extern void rocksdb_readoptions_set_verify_checksums(
    rocksdb_readoptions_t* options,
    unsigned char value);
extern void rocksdb_readoptions_set_iterate_upper_bound(
    rocksdb_readoptions_t* options,
    const char* key,
    size_t len);
extern void rocksdb_readoptions_set_iterate_lower_bound(
    rocksdb_readoptions_t* options,
    const char* key,
    size_t len);
extern rocksdb_readoptions_t* rocksdb_readoptions_create(void);
extern void rocksdb_readoptions_destroy(rocksdb_readoptions_t* options);
extern rocksdb_writeoptions_t* rocksdb_writeoptions_create(void);
extern void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t* options);
extern rocksdb_flushoptions_t* rocksdb_flushoptions_create(void);
extern void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t* options);
extern rocksdb_compactoptions_t* rocksdb_compactoptions_create(void);
extern void rocksdb_compactoptions_destroy(rocksdb_compactoptions_t* options);
extern rocksdb_wait_for_compact_options_t* rocksdb_wait_for_compact_options_create(void);
extern void rocksdb_wait_for_compact_options_destroy(rocksdb_wait_for_compact_options_t* options);
extern void rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t* options, unsigned char value);
extern void rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t* options, size_t value);
extern void rocksdb_readoptions_set_snapshot(
    rocksdb_readoptions_t* options,
    const rocksdb_snapshot_t* value);
extern void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t* options, unsigned char value);
extern void rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t* options, int value);
extern void rocksdb_writeoptions_set_no_slowdown(
    rocksdb_writeoptions_t* options,
    unsigned char value);
extern void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t* options, unsigned char value);
extern void rocksdb_wait_for_compact_options_set_abort_on_pause(
    rocksdb_wait_for_compact_options_t* options,
    unsigned char value);
extern void rocksdb_wait_for_compact_options_set_flush(
    rocksdb_wait_for_compact_options_t* options,
    unsigned char value);
extern void rocksdb_wait_for_compact_options_set_timeout(
    rocksdb_wait_for_compact_options_t* options,
    uint64_t value);

/* Compaction styles, and compactions on request */
enum {
  rocksdb_level_compaction = 0,
  rocksdb_universal_compaction = 1,
  rocksdb_fifo_compaction = 2
};
enum {
  rocksdb_similar_size_compaction_stop_style = 0,
  rocksdb_total_size_compaction_stop_style = 1
};
extern rocksdb_universal_compaction_options_t* rocksdb_universal_compaction_options_create(void);
extern void rocksdb_universal_compaction_options_destroy(
    rocksdb_universal_compaction_options_t* options);
extern rocksdb_fifo_compaction_options_t* rocksdb_fifo_compaction_options_create(void);
extern void rocksdb_fifo_compaction_options_destroy(rocksdb_fifo_compaction_options_t* options);
extern void rocksdb_universal_compaction_options_set_size_ratio(
    rocksdb_universal_compaction_options_t* options,
    int value);
extern int rocksdb_universal_compaction_options_get_size_ratio(
    rocksdb_universal_compaction_options_t* options);
extern void rocksdb_universal_compaction_options_set_min_merge_width(
    rocksdb_universal_compaction_options_t* options,
    int value);
extern int rocksdb_universal_compaction_options_get_min_merge_width(
    rocksdb_universal_compaction_options_t* options);
extern void rocksdb_universal_compaction_options_set_max_merge_width(
    rocksdb_universal_compaction_options_t* options,
    int value);
extern int rocksdb_universal_compaction_options_get_max_merge_width(
    rocksdb_universal_compaction_options_t* options);
extern void rocksdb_universal_compaction_options_set_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t* options,
    int value);
extern int rocksdb_universal_compaction_options_get_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t* options);
extern void rocksdb_universal_compaction_options_set_compression_size_percent(
    rocksdb_universal_compaction_options_t* options,
    int value);
extern int rocksdb_universal_compaction_options_get_compression_size_percent(
    rocksdb_universal_compaction_options_t* options);
extern void rocksdb_universal_compaction_options_set_stop_style(
    rocksdb_universal_compaction_options_t* options,
    int value);
extern int rocksdb_universal_compaction_options_get_stop_style(
    rocksdb_universal_compaction_options_t* options);
extern void rocksdb_fifo_compaction_options_set_max_table_files_size(
    rocksdb_fifo_compaction_options_t* options,
    uint64_t value);
extern uint64_t rocksdb_fifo_compaction_options_get_max_table_files_size(
    rocksdb_fifo_compaction_options_t* options);
extern void rocksdb_fifo_compaction_options_set_allow_compaction(
    rocksdb_fifo_compaction_options_t* options,
    unsigned char value);
extern unsigned char rocksdb_fifo_compaction_options_get_allow_compaction(
    rocksdb_fifo_compaction_options_t* options);
extern void rocksdb_options_set_compaction_style(rocksdb_options_t* options, int value);
extern int rocksdb_options_get_compaction_style(rocksdb_options_t* options);
extern void rocksdb_options_set_ttl(rocksdb_options_t* options, uint64_t value);
extern uint64_t rocksdb_options_get_ttl(rocksdb_options_t* options);
extern void rocksdb_options_set_periodic_compaction_seconds(
    rocksdb_options_t* options,
    uint64_t value);
extern uint64_t rocksdb_options_get_periodic_compaction_seconds(rocksdb_options_t* options);
extern void rocksdb_options_set_max_subcompactions(rocksdb_options_t* options, uint32_t value);
extern uint32_t rocksdb_options_get_max_subcompactions(rocksdb_options_t* options);
extern void rocksdb_options_set_universal_compaction_options(
    rocksdb_options_t* options,
    rocksdb_universal_compaction_options_t* universal);
extern void rocksdb_options_set_fifo_compaction_options(
    rocksdb_options_t* options,
    rocksdb_fifo_compaction_options_t* fifo);
extern void rocksdb_compactoptions_set_exclusive_manual_compaction(
    rocksdb_compactoptions_t* options,
    unsigned char value);
extern unsigned char rocksdb_compactoptions_get_exclusive_manual_compaction(
    rocksdb_compactoptions_t* options);
extern void rocksdb_compactoptions_set_bottommost_level_compaction(
    rocksdb_compactoptions_t* options,
    unsigned char value);
extern unsigned char rocksdb_compactoptions_get_bottommost_level_compaction(
    rocksdb_compactoptions_t* options);
extern void rocksdb_compactoptions_set_change_level(
    rocksdb_compactoptions_t* options,
    unsigned char value);
extern unsigned char rocksdb_compactoptions_get_change_level(rocksdb_compactoptions_t* options);
extern void rocksdb_compactoptions_set_target_level(rocksdb_compactoptions_t* options, int value);
extern int rocksdb_compactoptions_get_target_level(rocksdb_compactoptions_t* options);
extern void rocksdb_compactoptions_set_max_subcompactions(
    rocksdb_compactoptions_t* options,
    int value);
extern int rocksdb_compactoptions_get_max_subcompactions(rocksdb_compactoptions_t* options);
extern void rocksdb_delete_file_in_range(
    rocksdb_t* db,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len,
    char** errptr);
extern void rocksdb_delete_file_in_range_cf(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len,
    char** errptr);
extern void rocksdb_suggest_compact_range(
    rocksdb_t* db,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len,
    char** errptr);
extern void rocksdb_suggest_compact_range_cf(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len,
    char** errptr);

/* Write batches */

extern rocksdb_writebatch_t* rocksdb_writebatch_create(void);
extern void rocksdb_writebatch_destroy(rocksdb_writebatch_t* batch);
extern void rocksdb_writebatch_clear(rocksdb_writebatch_t* batch);
extern int rocksdb_writebatch_count(rocksdb_writebatch_t* batch);
extern const char* rocksdb_writebatch_data(rocksdb_writebatch_t* batch, size_t* len);
extern void rocksdb_writebatch_put(
    rocksdb_writebatch_t* batch,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len);
extern void rocksdb_writebatch_put_cf(
    rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len);
extern void rocksdb_writebatch_merge(
    rocksdb_writebatch_t* batch,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len);
extern void rocksdb_writebatch_merge_cf(
    rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len);
extern void rocksdb_writebatch_delete(rocksdb_writebatch_t* batch, const char* key, size_t key_len);
extern void rocksdb_writebatch_delete_cf(
    rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len);
extern void rocksdb_writebatch_singledelete(
    rocksdb_writebatch_t* batch,
    const char* key,
    size_t key_len);
extern void rocksdb_writebatch_singledelete_cf(
    rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len);
extern void rocksdb_writebatch_delete_range(
    rocksdb_writebatch_t* batch,
    const char* start_key,
    size_t start_key_len,
    const char* end_key,
    size_t end_key_len);
extern void rocksdb_writebatch_delete_range_cf(
    rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* column_family,
    const char* start_key,
    size_t start_key_len,
    const char* end_key,
    size_t end_key_len);

/* Comparators, merge operators, compaction filters */

extern rocksdb_comparator_t* rocksdb_comparator_create(
    void* state,
    void (*destructor)(void*),
    int (*compare)(void*, const char* a, size_t alen, const char* b, size_t blen),
    const char* (*name)(void*));
extern void rocksdb_comparator_destroy(rocksdb_comparator_t* comparator);
extern void rocksdb_options_set_comparator(rocksdb_options_t* options, rocksdb_comparator_t* comparator);
extern rocksdb_mergeoperator_t* rocksdb_mergeoperator_create(
    void* state,
    void (*destructor)(void*),
    char* (*full_merge)(void*, const char* key, size_t key_length, const char* existing_value,
                        size_t existing_value_length, const char* const* operands_list,
                        const size_t* operands_list_length, int num_operands, unsigned char* success,
                        size_t* new_value_length),
    char* (*partial_merge)(void*, const char* key, size_t key_length, const char* const* operands_list,
                           const size_t* operands_list_length, int num_operands, unsigned char* success,
                           size_t* new_value_length),
    void (*delete_value)(void*, const char* value, size_t value_length),
    const char* (*name)(void*));
extern void rocksdb_mergeoperator_destroy(rocksdb_mergeoperator_t* merge_operator);
extern void rocksdb_options_set_merge_operator(
    rocksdb_options_t* options,
    rocksdb_mergeoperator_t* merge_operator);
extern rocksdb_compactionfilter_t* rocksdb_compactionfilter_create(
    void* state,
    void (*destructor)(void*),
    unsigned char (*filter)(void*, int level, const char* key, size_t key_length, const char* existing_value,
                            size_t value_length, char** new_value, size_t* new_value_length,
                            unsigned char* value_changed),
    const char* (*name)(void*));
extern void rocksdb_compactionfilter_set_ignore_snapshots(
    rocksdb_compactionfilter_t* filter,
    unsigned char ignore);
extern void rocksdb_compactionfilter_destroy(rocksdb_compactionfilter_t* filter);
extern void rocksdb_options_set_compaction_filter(
    rocksdb_options_t* options,
    rocksdb_compactionfilter_t* filter);
extern rocksdb_compactionfilterfactory_t* rocksdb_compactionfilterfactory_create(
    void* state,
    void (*destructor)(void*),
    rocksdb_compactionfilter_t* (*create_compaction_filter)(void*, rocksdb_compactionfiltercontext_t* context),
    const char* (*name)(void*));
extern void rocksdb_compactionfilterfactory_destroy(rocksdb_compactionfilterfactory_t* factory);
extern void rocksdb_options_set_compaction_filter_factory(
    rocksdb_options_t* options,
    rocksdb_compactionfilterfactory_t* factory);
extern unsigned char rocksdb_compactionfiltercontext_is_full_compaction(
    rocksdb_compactionfiltercontext_t* context);
extern unsigned char rocksdb_compactionfiltercontext_is_manual_compaction(
    rocksdb_compactionfiltercontext_t* context);

/* Read-only databases, secondaries, checkpoints */

extern rocksdb_t* rocksdb_open_for_read_only(
    const rocksdb_options_t* options,
    const char* name,
    unsigned char error_if_wal_file_exists,
    char** errptr);
extern rocksdb_t* rocksdb_open_for_read_only_column_families(
    const rocksdb_options_t* options,
    const char* name,
    int num_column_families,
    const char* const* column_family_names,
    const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles,
    unsigned char error_if_wal_file_exists,
    char** errptr);
extern rocksdb_t* rocksdb_open_as_secondary(
    const rocksdb_options_t* options,
    const char* name,
    const char* secondary_path,
    char** errptr);
extern rocksdb_t* rocksdb_open_as_secondary_column_families(
    const rocksdb_options_t* options,
    const char* name,
    const char* secondary_path,
    int num_column_families,
    const char* const* column_family_names,
    const rocksdb_options_t* const* column_family_options,
    rocksdb_column_family_handle_t** column_family_handles,
    char** errptr);
extern void rocksdb_try_catch_up_with_primary(rocksdb_t* db, char** errptr);
extern rocksdb_checkpoint_t* rocksdb_checkpoint_object_create(rocksdb_t* db, char** errptr);
extern void rocksdb_checkpoint_create(
    rocksdb_checkpoint_t* checkpoint,
    const char* checkpoint_dir,
    uint64_t log_size_for_flush,
    char** errptr);
extern void rocksdb_checkpoint_object_destroy(rocksdb_checkpoint_t* checkpoint);

/* External table files */

extern rocksdb_envoptions_t* rocksdb_envoptions_create(void);
extern void rocksdb_envoptions_destroy(rocksdb_envoptions_t* options);
extern rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create(
    const rocksdb_envoptions_t* env,
    const rocksdb_options_t* io_options);
extern void rocksdb_sstfilewriter_open(rocksdb_sstfilewriter_t* writer, const char* name, char** errptr);
extern void rocksdb_sstfilewriter_put(
    rocksdb_sstfilewriter_t* writer,
    const char* key,
    size_t keylen,
    const char* val,
    size_t vallen,
    char** errptr);
extern void rocksdb_sstfilewriter_add(
    rocksdb_sstfilewriter_t* writer,
    const char* key,
    size_t keylen,
    const char* val,
    size_t vallen,
    char** errptr);
extern void rocksdb_sstfilewriter_merge(
    rocksdb_sstfilewriter_t* writer,
    const char* key,
    size_t keylen,
    const char* val,
    size_t vallen,
    char** errptr);
extern void rocksdb_sstfilewriter_delete(
    rocksdb_sstfilewriter_t* writer,
    const char* key,
    size_t keylen,
    char** errptr);
extern void rocksdb_sstfilewriter_delete_range(
    rocksdb_sstfilewriter_t* writer,
    const char* begin_key,
    size_t begin_keylen,
    const char* end_key,
    size_t end_keylen,
    char** errptr);
extern void rocksdb_sstfilewriter_finish(rocksdb_sstfilewriter_t* writer, char** errptr);
extern void rocksdb_sstfilewriter_file_size(rocksdb_sstfilewriter_t* writer, uint64_t* file_size);
extern void rocksdb_sstfilewriter_destroy(rocksdb_sstfilewriter_t* writer);
extern rocksdb_ingestexternalfileoptions_t* rocksdb_ingestexternalfileoptions_create(void);
extern void rocksdb_ingestexternalfileoptions_destroy(rocksdb_ingestexternalfileoptions_t* options);
extern void rocksdb_ingestexternalfileoptions_set_move_files(
    rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
extern void rocksdb_ingestexternalfileoptions_set_snapshot_consistency(
    rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
extern void rocksdb_ingestexternalfileoptions_set_allow_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
extern void rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(
    rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
extern void rocksdb_ingestexternalfileoptions_set_ingest_behind(
    rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
extern void rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level(
    rocksdb_ingestexternalfileoptions_t* options,
    unsigned char value);
extern void rocksdb_ingest_external_file(
    rocksdb_t* db,
    const char* const* file_list,
    size_t list_len,
    const rocksdb_ingestexternalfileoptions_t* options,
    char** errptr);
extern void rocksdb_ingest_external_file_cf(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* handle,
    const char* const* file_list,
    size_t list_len,
    const rocksdb_ingestexternalfileoptions_t* options,
    char** errptr);

/* Iterators */

extern void rocksdb_iter_destroy(rocksdb_iterator_t* iter);
extern unsigned char rocksdb_iter_valid(const rocksdb_iterator_t* iter);
extern void rocksdb_iter_get_error(const rocksdb_iterator_t* iter, char** errptr);
extern void rocksdb_iter_seek_to_first(rocksdb_iterator_t* iter);
extern void rocksdb_iter_seek_to_last(rocksdb_iterator_t* iter);
extern void rocksdb_iter_next(rocksdb_iterator_t* iter);
extern void rocksdb_iter_prev(rocksdb_iterator_t* iter);
extern void rocksdb_iter_seek(rocksdb_iterator_t* iter, const char* key, size_t key_len);
extern void rocksdb_iter_seek_for_prev(rocksdb_iterator_t* iter, const char* key, size_t key_len);
extern const char* rocksdb_iter_key(const rocksdb_iterator_t* iter, size_t* len);
extern const char* rocksdb_iter_value(const rocksdb_iterator_t* iter, size_t* len);

/* Databases */

extern rocksdb_t* rocksdb_open(const rocksdb_options_t* options, const char* name, char** errptr);
extern rocksdb_t* rocksdb_open_column_families(
    const rocksdb_options_t* options,
    const char* name,
    int count,
    const char* const* names,
    const rocksdb_options_t* const* cf_options,
    rocksdb_column_family_handle_t** handles,
    char** errptr);
extern void rocksdb_close(rocksdb_t* db);
extern void rocksdb_destroy_db(const rocksdb_options_t* options, const char* name, char** errptr);
extern char** rocksdb_list_column_families(
    const rocksdb_options_t* options,
    const char* name,
    size_t* count,
    char** errptr);
extern void rocksdb_list_column_families_destroy(char** list, size_t count);
extern rocksdb_column_family_handle_t* rocksdb_create_column_family(
    rocksdb_t* db,
    const rocksdb_options_t* options,
    const char* name,
    char** errptr);
extern void rocksdb_drop_column_family(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    char** errptr);
extern void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t* cf);
extern uint32_t rocksdb_column_family_handle_get_id(rocksdb_column_family_handle_t* cf);
extern char* rocksdb_column_family_handle_get_name(rocksdb_column_family_handle_t* cf, size_t* len);
extern rocksdb_column_family_handle_t* rocksdb_get_default_column_family_handle(rocksdb_t* db);
extern void rocksdb_write(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    rocksdb_writebatch_t* batch,
    char** errptr);
extern char* rocksdb_get(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    const char* key,
    size_t key_len,
    size_t* value_len,
    char** errptr);
extern char* rocksdb_get_cf(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* cf,
    const char* key,
    size_t key_len,
    size_t* value_len,
    char** errptr);
extern rocksdb_pinnableslice_t* rocksdb_get_pinned(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    const char* key,
    size_t key_len,
    char** errptr);
extern rocksdb_pinnableslice_t* rocksdb_get_pinned_cf(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* cf,
    const char* key,
    size_t key_len,
    char** errptr);
extern void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t* value);
extern const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t* value, size_t* len);
extern void rocksdb_multi_get(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    size_t count,
    const char* const* keys,
    const size_t* key_lens,
    char** values,
    size_t* value_lens,
    char** errs);
extern void rocksdb_multi_get_cf(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    const rocksdb_column_family_handle_t* const* cfs,
    size_t count,
    const char* const* keys,
    const size_t* key_lens,
    char** values,
    size_t* value_lens,
    char** errs);
extern void rocksdb_batched_multi_get_cf(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* cf,
    size_t count,
    const char* const* keys,
    const size_t* key_lens,
    rocksdb_pinnableslice_t** values,
    char** errs,
    unsigned char sorted_input);
extern rocksdb_iterator_t* rocksdb_create_iterator(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options);
extern rocksdb_iterator_t* rocksdb_create_iterator_cf(
    rocksdb_t* db,
    const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* cf);
extern const rocksdb_snapshot_t* rocksdb_create_snapshot(rocksdb_t* db);
extern void rocksdb_release_snapshot(rocksdb_t* db, const rocksdb_snapshot_t* snapshot);
extern uint64_t rocksdb_snapshot_get_sequence_number(const rocksdb_snapshot_t* snapshot);
extern uint64_t rocksdb_get_latest_sequence_number(rocksdb_t* db);
extern void rocksdb_flush(rocksdb_t* db, const rocksdb_flushoptions_t* options, char** errptr);
extern void rocksdb_flush_cf(
    rocksdb_t* db,
    const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t* cf,
    char** errptr);
extern void rocksdb_flush_wal(rocksdb_t* db, unsigned char sync, char** errptr);
extern void rocksdb_compact_range(
    rocksdb_t* db,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len);
extern void rocksdb_compact_range_cf(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len);
extern void rocksdb_compact_range_opt(
    rocksdb_t* db,
    rocksdb_compactoptions_t* options,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len);
extern void rocksdb_compact_range_cf_opt(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    rocksdb_compactoptions_t* options,
    const char* begin,
    size_t begin_len,
    const char* end,
    size_t end_len);
extern void rocksdb_wait_for_compact(
    rocksdb_t* db,
    rocksdb_wait_for_compact_options_t* options,
    char** errptr);
extern void rocksdb_cancel_all_background_work(rocksdb_t* db, unsigned char wait);
extern void rocksdb_disable_file_deletions(rocksdb_t* db, char** errptr);
extern void rocksdb_enable_file_deletions(rocksdb_t* db, char** errptr);
extern char* rocksdb_property_value(rocksdb_t* db, const char* name);
extern char* rocksdb_property_value_cf(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    const char* name);
extern int rocksdb_property_int(rocksdb_t* db, const char* name, uint64_t* out);
extern int rocksdb_property_int_cf(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    const char* name,
    uint64_t* out);
extern void rocksdb_set_options(
    rocksdb_t* db,
    int count,
    const char* const* names,
    const char* const* values,
    char** errptr);
extern void rocksdb_set_options_cf(
    rocksdb_t* db,
    rocksdb_column_family_handle_t* cf,
    int count,
    const char* const* names,
    const char* const* values,
    char** errptr);
extern void rocksdb_put(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len,
    char** errptr);
extern void rocksdb_put_cf(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len,
    char** errptr);
extern void rocksdb_merge(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len,
    char** errptr);
extern void rocksdb_merge_cf(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len,
    const char* value,
    size_t value_len,
    char** errptr);
extern void rocksdb_delete(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    const char* key,
    size_t key_len,
    char** errptr);
extern void rocksdb_delete_cf(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len,
    char** errptr);
extern void rocksdb_delete_range_cf(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family,
    const char* start_key,
    size_t start_key_len,
    const char* end_key,
    size_t end_key_len,
    char** errptr);
extern void rocksdb_singledelete(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    const char* key,
    size_t key_len,
    char** errptr);
extern void rocksdb_singledelete_cf(
    rocksdb_t* db,
    const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* column_family,
    const char* key,
    size_t key_len,
    char** errptr);

/* Memory */

extern void rocksdb_free(void* memory);

#ifdef __cplusplus
}
#endif

#endif /* OUTCROP_ROCKSDB_C_H */
