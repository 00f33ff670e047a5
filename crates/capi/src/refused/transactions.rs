//! Refused: transactions.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others
//! say so on standard error, once each. Iterators are made, never valid, and keep the error.

use crate::memory::copy_out_text;
use crate::settings::{Fate, Flag, Note, refusal};
use libc::{c_char, c_int, c_void, size_t};

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

kept_object! {
    rocksdb_optimistictransaction_options_t, OPTIMISTICTRANSACTION_OPTIONS_OBJECT:
    rocksdb_optimistictransaction_options_create, rocksdb_optimistictransaction_options_destroy,
    "transactions are not supported; what takes these options fails"
}

kept_settings! { rocksdb_optimistictransaction_options_t, OPTIMISTICTRANSACTION_OPTIONS_NOTES:
    Accepted "transactions are not supported; what takes these options fails" {
        "set_snapshot" Flag = Flag(0);
            set rocksdb_optimistictransaction_options_set_set_snapshot get rocksdb_optimistictransaction_options_get_set_snapshot -> Flag;
    }
}

kept_object! {
    rocksdb_optimistictransactiondb_options_t, OPTIMISTICTRANSACTIONDB_OPTIONS_OBJECT:
    rocksdb_optimistictransactiondb_options_create, rocksdb_optimistictransactiondb_options_destroy,
    "transactions are not supported; what takes these options fails"
}

kept_settings! { rocksdb_optimistictransactiondb_options_t, OPTIMISTICTRANSACTIONDB_OPTIONS_NOTES:
    Accepted "transactions are not supported; what takes these options fails" {
        "occ_lock_buckets" u32 = 1048576;
            set rocksdb_optimistictransactiondb_options_set_occ_lock_buckets get rocksdb_optimistictransactiondb_options_get_occ_lock_buckets -> u32;
        "validate_policy" c_int = 1;
            set rocksdb_optimistictransactiondb_options_set_validate_policy get rocksdb_optimistictransactiondb_options_get_validate_policy -> c_int;
    }
}

kept_object! {
    rocksdb_transaction_options_t, TRANSACTION_OPTIONS_OBJECT:
    rocksdb_transaction_options_create, rocksdb_transaction_options_destroy,
    "transactions are not supported; what takes these options fails"
}

kept_settings! { rocksdb_transaction_options_t, TRANSACTION_OPTIONS_NOTES:
    Accepted "transactions are not supported; what takes these options fails" {
        "commit_bypass_memtable" Flag = Flag(0);
            set rocksdb_transaction_options_set_commit_bypass_memtable get rocksdb_transaction_options_get_commit_bypass_memtable -> Flag;
        "deadlock_detect" Flag = Flag(0);
            set rocksdb_transaction_options_set_deadlock_detect get rocksdb_transaction_options_get_deadlock_detect -> Flag;
        "deadlock_detect_depth" i64 = 50;
            set rocksdb_transaction_options_set_deadlock_detect_depth get rocksdb_transaction_options_get_deadlock_detect_depth -> i64;
        "deadlock_timeout_us" i64 = 500;
            set rocksdb_transaction_options_set_deadlock_timeout_us get rocksdb_transaction_options_get_deadlock_timeout_us -> i64;
        "expiration" i64 = -1;
            set rocksdb_transaction_options_set_expiration get rocksdb_transaction_options_get_expiration -> i64;
        "large_txn_commit_optimize_byte_threshold" u64 = 0;
            set rocksdb_transaction_options_set_large_txn_commit_optimize_byte_threshold get rocksdb_transaction_options_get_large_txn_commit_optimize_byte_threshold -> u64;
        "large_txn_commit_optimize_threshold" u32 = 0;
            set rocksdb_transaction_options_set_large_txn_commit_optimize_threshold get rocksdb_transaction_options_get_large_txn_commit_optimize_threshold -> u32;
        "lock_timeout" i64 = -1;
            set rocksdb_transaction_options_set_lock_timeout get rocksdb_transaction_options_get_lock_timeout -> i64;
        "max_write_batch_size" size_t = 0;
            set rocksdb_transaction_options_set_max_write_batch_size get rocksdb_transaction_options_get_max_write_batch_size -> size_t;
        "set_snapshot" Flag = Flag(0);
            set rocksdb_transaction_options_set_set_snapshot get rocksdb_transaction_options_get_set_snapshot -> Flag;
        "skip_concurrency_control" Flag = Flag(0);
            set rocksdb_transaction_options_set_skip_concurrency_control get rocksdb_transaction_options_get_skip_concurrency_control -> Flag;
        "skip_prepare" Flag = Flag(1);
            set rocksdb_transaction_options_set_skip_prepare get rocksdb_transaction_options_get_skip_prepare -> Flag;
        "use_only_the_last_commit_time_batch_for_recovery" Flag = Flag(0);
            set rocksdb_transaction_options_set_use_only_the_last_commit_time_batch_for_recovery get rocksdb_transaction_options_get_use_only_the_last_commit_time_batch_for_recovery -> Flag;
        "write_batch_flush_threshold" i64 = -1;
            set rocksdb_transaction_options_set_write_batch_flush_threshold get rocksdb_transaction_options_get_write_batch_flush_threshold -> i64;
        "write_batch_track_timestamp_size" Flag = Flag(0);
            set rocksdb_transaction_options_set_write_batch_track_timestamp_size get rocksdb_transaction_options_get_write_batch_track_timestamp_size -> Flag;
    }
}

kept_object! {
    rocksdb_transactiondb_options_t, TRANSACTIONDB_OPTIONS_OBJECT:
    rocksdb_transactiondb_options_create, rocksdb_transactiondb_options_destroy,
    "transactions are not supported; what takes these options fails"
}

kept_settings! { rocksdb_transactiondb_options_t, TRANSACTIONDB_OPTIONS_NOTES:
    Accepted "transactions are not supported; what takes these options fails" {
        "default_lock_timeout" i64 = 1000;
            set rocksdb_transactiondb_options_set_default_lock_timeout get rocksdb_transactiondb_options_get_default_lock_timeout -> i64;
        "default_write_batch_flush_threshold" i64 = 0;
            set rocksdb_transactiondb_options_set_default_write_batch_flush_threshold get rocksdb_transactiondb_options_get_default_write_batch_flush_threshold -> i64;
        "enable_udt_validation" Flag = Flag(1);
            set rocksdb_transactiondb_options_set_enable_udt_validation get rocksdb_transactiondb_options_get_enable_udt_validation -> Flag;
        "max_num_deadlocks" u32 = 5;
            set rocksdb_transactiondb_options_set_max_num_deadlocks get rocksdb_transactiondb_options_get_max_num_deadlocks -> u32;
        "max_num_locks" i64 = -1;
            set rocksdb_transactiondb_options_set_max_num_locks get rocksdb_transactiondb_options_get_max_num_locks -> i64;
        "num_stripes" size_t = 16;
            set rocksdb_transactiondb_options_set_num_stripes get rocksdb_transactiondb_options_get_num_stripes -> size_t;
        "rollback_merge_operands" Flag = Flag(0);
            set rocksdb_transactiondb_options_set_rollback_merge_operands get rocksdb_transactiondb_options_get_rollback_merge_operands -> Flag;
        "skip_concurrency_control" Flag = Flag(0);
            set rocksdb_transactiondb_options_set_skip_concurrency_control get rocksdb_transactiondb_options_get_skip_concurrency_control -> Flag;
        "transaction_lock_timeout" i64 = 1000;
            set rocksdb_transactiondb_options_set_transaction_lock_timeout get rocksdb_transactiondb_options_get_transaction_lock_timeout -> i64;
        "txn_commit_bypass_memtable_threshold" u32 = u32::MAX;
            set rocksdb_transactiondb_options_set_txn_commit_bypass_memtable_threshold get rocksdb_transactiondb_options_get_txn_commit_bypass_memtable_threshold -> u32;
        "use_per_key_point_lock_mgr" Flag = Flag(0);
            set rocksdb_transactiondb_options_set_use_per_key_point_lock_mgr get rocksdb_transactiondb_options_get_use_per_key_point_lock_mgr -> Flag;
        "write_policy" c_int = 0;
            set rocksdb_transactiondb_options_set_write_policy get rocksdb_transactiondb_options_get_write_policy -> c_int;
    }
}

refused! { TRANSACTIONS_REFUSED:
    "transactions are not supported" {
        rocksdb_optimistictransaction_begin(Ptr, Ptr, Ptr, Ptr) -> Ptr;
        rocksdb_optimistictransactiondb_checkpoint_object_create(Ptr) @ errptr -> Ptr;
        rocksdb_optimistictransactiondb_close(Ptr);
        rocksdb_optimistictransactiondb_close_base_db(Ptr);
        rocksdb_optimistictransactiondb_get_base_db(Ptr) -> Ptr;
        rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(Ptr) -> size_t;
        rocksdb_optimistictransactiondb_lock_buckets_create(size_t, Flag) -> Ptr;
        rocksdb_optimistictransactiondb_lock_buckets_destroy(Ptr);
        rocksdb_optimistictransactiondb_open(Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_optimistictransactiondb_open_column_families(Ptr, Ptr, c_int, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
            Ptr, Ptr, Ptr, c_int, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_optimistictransactiondb_open_with_otxn_db_options(Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(Ptr, Ptr);
        rocksdb_optimistictransactiondb_property_int(Ptr, Ptr, Ptr) -> c_int;
        rocksdb_optimistictransactiondb_property_value(Ptr, Ptr) -> Ptr;
        rocksdb_optimistictransactiondb_write(Ptr, Ptr, Ptr) @ errptr;
        rocksdb_transaction_begin(Ptr, Ptr, Ptr, Ptr) -> Ptr;
        rocksdb_transaction_commit(Ptr) @ errptr;
        rocksdb_transaction_delete(Ptr, Ptr, size_t) @ errptr;
        rocksdb_transaction_delete_cf(Ptr, Ptr, Ptr, size_t) @ errptr;
        rocksdb_transaction_destroy(Ptr);
        rocksdb_transaction_get(Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_transaction_get_cf(Ptr, Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_transaction_get_for_update(Ptr, Ptr, Ptr, size_t, Ptr, Flag) @ errptr -> Ptr;
        rocksdb_transaction_get_for_update_cf(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, Flag) @ errptr -> Ptr;
        rocksdb_transaction_get_name(Ptr, Ptr) -> Ptr;
        rocksdb_transaction_get_pinned(Ptr, Ptr, Ptr, size_t) @ errptr -> Ptr;
        rocksdb_transaction_get_pinned_cf(Ptr, Ptr, Ptr, Ptr, size_t) @ errptr -> Ptr;
        rocksdb_transaction_get_pinned_for_update(Ptr, Ptr, Ptr, size_t, Flag) @ errptr -> Ptr;
        rocksdb_transaction_get_pinned_for_update_cf(Ptr, Ptr, Ptr, Ptr, size_t, Flag) @ errptr -> Ptr;
        rocksdb_transaction_get_snapshot(Ptr) -> Ptr;
        rocksdb_transaction_get_writebatch_wi(Ptr) -> Ptr;
        rocksdb_transaction_merge(Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transaction_merge_cf(Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transaction_prepare(Ptr) @ errptr;
        rocksdb_transaction_put(Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transaction_put_cf(Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transaction_put_log_data(Ptr, Ptr, size_t);
        rocksdb_transaction_rebuild_from_writebatch(Ptr, Ptr) @ errptr;
        rocksdb_transaction_rebuild_from_writebatch_wi(Ptr, Ptr) @ errptr;
        rocksdb_transaction_rollback(Ptr) @ errptr;
        rocksdb_transaction_rollback_to_savepoint(Ptr) @ errptr;
        rocksdb_transaction_set_commit_timestamp(Ptr, u64);
        rocksdb_transaction_set_name(Ptr, Ptr, size_t) @ errptr;
        rocksdb_transaction_set_read_timestamp_for_validation(Ptr, u64);
        rocksdb_transaction_set_savepoint(Ptr);
        rocksdb_transactiondb_checkpoint_object_create(Ptr) @ errptr -> Ptr;
        rocksdb_transactiondb_close(Ptr);
        rocksdb_transactiondb_close_base_db(Ptr);
        rocksdb_transactiondb_create_column_family(Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_transactiondb_create_snapshot(Ptr) -> Ptr;
        rocksdb_transactiondb_delete(Ptr, Ptr, Ptr, size_t) @ errptr;
        rocksdb_transactiondb_delete_cf(Ptr, Ptr, Ptr, Ptr, size_t) @ errptr;
        rocksdb_transactiondb_flush(Ptr, Ptr) @ errptr;
        rocksdb_transactiondb_flush_cf(Ptr, Ptr, Ptr) @ errptr;
        rocksdb_transactiondb_flush_cfs(Ptr, Ptr, Ptr, c_int) @ errptr;
        rocksdb_transactiondb_flush_wal(Ptr, Flag) @ errptr;
        rocksdb_transactiondb_flush_wal_with_options(Ptr, Ptr) @ errptr;
        rocksdb_transactiondb_get(Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_transactiondb_get_base_db(Ptr) -> Ptr;
        rocksdb_transactiondb_get_cf(Ptr, Ptr, Ptr, Ptr, size_t, Ptr) @ errptr -> Ptr;
        rocksdb_transactiondb_get_pinned(Ptr, Ptr, Ptr, size_t) @ errptr -> Ptr;
        rocksdb_transactiondb_get_pinned_cf(Ptr, Ptr, Ptr, Ptr, size_t) @ errptr -> Ptr;
        rocksdb_transactiondb_get_prepared_transactions(Ptr, Ptr) -> Ptr;
        rocksdb_transactiondb_merge(Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transactiondb_merge_cf(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transactiondb_open(Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_transactiondb_open_column_families(Ptr, Ptr, Ptr, c_int, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_transactiondb_property_int(Ptr, Ptr, Ptr) -> c_int;
        rocksdb_transactiondb_property_value(Ptr, Ptr) -> Ptr;
        rocksdb_transactiondb_put(Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transactiondb_put_cf(Ptr, Ptr, Ptr, Ptr, size_t, Ptr, size_t) @ errptr;
        rocksdb_transactiondb_release_snapshot(Ptr, Ptr);
        rocksdb_transactiondb_write(Ptr, Ptr, Ptr) @ errptr;
    }
}

refused_iterators! { TRANSACTION_ITERATORS: "transactions are not supported";
    rocksdb_transaction_create_iterator(_transaction: Ptr, _options: Ptr);
    rocksdb_transaction_create_iterator_cf(_transaction: Ptr, _options: Ptr, _cf: Ptr);
    rocksdb_transactiondb_create_iterator(_db: Ptr, _options: Ptr);
    rocksdb_transactiondb_create_iterator_cf(_db: Ptr, _options: Ptr, _cf: Ptr);
}

/// Reads of several keys: each has the error.
macro_rules! multi_gets {
    ($($name:ident($($object:ident),*);)*) => {
        pub(crate) const TRANSACTION_READS: &[Note] = &[$(
            Note { function: stringify!($name), fate: Fate::Refused, why: "transactions are not supported" },
        )*];

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                $($object: Ptr,)*
                count: size_t,
                _keys: Ptr,
                _key_lens: Ptr,
                values: *mut *mut c_char,
                value_lens: *mut size_t,
                errs: *mut *mut c_char,
            ) {
                boundary!({
                    let error = refusal(stringify!($name), "transactions are not supported");
                    for i in 0..count {
                        *values.add(i) = std::ptr::null_mut();
                        *value_lens.add(i) = 0;
                        *errs.add(i) = copy_out_text(&error.to_string());
                    }
                })
            }
        )*
    };
}

multi_gets! {
    rocksdb_transaction_multi_get(_transaction, _options);
    rocksdb_transaction_multi_get_cf(_transaction, _options, _cfs);
    rocksdb_transaction_multi_get_for_update(_transaction, _options);
    rocksdb_transaction_multi_get_for_update_cf(_transaction, _options, _cfs);
    rocksdb_transactiondb_multi_get(_db, _options);
    rocksdb_transactiondb_multi_get_cf(_db, _options, _cfs);
}
