//! `rocksdb_transactiondb_options_*`, `rocksdb_transaction_options_*` and their like of optimistic transactions.

use crate::memory::{give_back, hand_out};
use crate::settings::{Field, Flag, Settings};
use libc::{c_int, size_t};
use outcrop::{
    LockBuckets, OptimisticTransactionDbOptions, Result, TakeSnapshot, TransactionDbOptions,
    TransactionOptions, ValidatePolicy, WritePolicy,
};
use std::sync::Arc;

macro_rules! objects {
    ($($object:ident { $($field:ident: $type:ty),* } $create:ident $destroy:ident;)*) => {$(
        #[derive(Default)]
        pub struct $object {
            $($field: $type,)*
            settings: Settings,
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut $object {
            boundary!(hand_out($object::default()))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(options: *mut $object) {
            boundary!(give_back(options))
        }
    )*};
}

objects! {
    rocksdb_transactiondb_options_t { options: TransactionDbOptions }
        rocksdb_transactiondb_options_create rocksdb_transactiondb_options_destroy;
    rocksdb_transaction_options_t { options: TransactionOptions }
        rocksdb_transaction_options_create rocksdb_transaction_options_destroy;
    rocksdb_optimistictransactiondb_options_t { options: OptimisticTransactionDbOptions }
        rocksdb_optimistictransactiondb_options_create rocksdb_optimistictransactiondb_options_destroy;
    rocksdb_optimistictransaction_options_t { set_snapshot: bool }
        rocksdb_optimistictransaction_options_create rocksdb_optimistictransaction_options_destroy;
}

impl rocksdb_transactiondb_options_t {
    /// # Errors
    /// NotSupported naming an option that the engine cannot honour.
    pub(crate) fn get(&self) -> Result<TransactionDbOptions> {
        self.settings.check()?;
        Ok(self.options.clone())
    }
}

impl rocksdb_transaction_options_t {
    pub(crate) fn get(&self) -> &TransactionOptions {
        &self.options
    }
}

impl rocksdb_optimistictransactiondb_options_t {
    /// # Errors
    /// NotSupported naming an option that the engine cannot honour.
    pub(crate) fn get(&self) -> Result<OptimisticTransactionDbOptions> {
        self.settings.check()?;
        Ok(self.options.clone())
    }
}

impl rocksdb_optimistictransaction_options_t {
    pub(crate) fn snapshot(&self) -> TakeSnapshot {
        if self.set_snapshot { TakeSnapshot::AtBegin } else { TakeSnapshot::No }
    }
}

impl Field<c_int> for WritePolicy {
    fn to_c(&self) -> c_int {
        *self as c_int
    }

    fn from_c(value: c_int) -> Option<WritePolicy> {
        [WritePolicy::Committed, WritePolicy::Prepared, WritePolicy::Unprepared]
            .into_iter()
            .find(|policy| *policy as c_int == value)
    }
}

impl Field<c_int> for ValidatePolicy {
    fn to_c(&self) -> c_int {
        *self as c_int
    }

    fn from_c(value: c_int) -> Option<ValidatePolicy> {
        [ValidatePolicy::Serial, ValidatePolicy::Parallel]
            .into_iter()
            .find(|policy| *policy as c_int == value)
    }
}

engine_settings! { rocksdb_transactiondb_options_t:
    "max_num_locks" [options.max_num_locks]
        set rocksdb_transactiondb_options_set_max_num_locks(i64)
        get rocksdb_transactiondb_options_get_max_num_locks -> i64;
    "max_num_deadlocks" [options.max_num_deadlocks]
        set rocksdb_transactiondb_options_set_max_num_deadlocks(u32)
        get rocksdb_transactiondb_options_get_max_num_deadlocks -> u32;
    "num_stripes" [options.num_stripes]
        set rocksdb_transactiondb_options_set_num_stripes(size_t)
        get rocksdb_transactiondb_options_get_num_stripes -> size_t;
    "transaction_lock_timeout" [options.transaction_lock_timeout]
        set rocksdb_transactiondb_options_set_transaction_lock_timeout(i64)
        get rocksdb_transactiondb_options_get_transaction_lock_timeout -> i64;
    "default_lock_timeout" [options.default_lock_timeout]
        set rocksdb_transactiondb_options_set_default_lock_timeout(i64)
        get rocksdb_transactiondb_options_get_default_lock_timeout -> i64;
    "write_policy" [options.write_policy]
        set rocksdb_transactiondb_options_set_write_policy(c_int)
        get rocksdb_transactiondb_options_get_write_policy -> c_int;
    "skip_concurrency_control" [options.skip_concurrency_control]
        set rocksdb_transactiondb_options_set_skip_concurrency_control(Flag)
        get rocksdb_transactiondb_options_get_skip_concurrency_control -> Flag;
}

kept_settings! { rocksdb_transactiondb_options_t, TRANSACTIONDB_OPTIONS_NOTES:
    Accepted "about write policies that are refused" {
        "rollback_merge_operands" Flag = Flag(0);
            set rocksdb_transactiondb_options_set_rollback_merge_operands get rocksdb_transactiondb_options_get_rollback_merge_operands -> Flag;
        "default_write_batch_flush_threshold" i64 = 0;
            set rocksdb_transactiondb_options_set_default_write_batch_flush_threshold get rocksdb_transactiondb_options_get_default_write_batch_flush_threshold -> i64;
    }
    Accepted "an order among waiters that RocksDB does not promise without it, and an experiment there; nothing is refused or granted that is not without it" {
        "use_per_key_point_lock_mgr" Flag = Flag(0);
            set rocksdb_transactiondb_options_set_use_per_key_point_lock_mgr get rocksdb_transactiondb_options_get_use_per_key_point_lock_mgr -> Flag;
    }
    Accepted "matters only to user-defined timestamps, which are refused" {
        "enable_udt_validation" Flag = Flag(1);
            set rocksdb_transactiondb_options_set_enable_udt_validation get rocksdb_transactiondb_options_get_enable_udt_validation -> Flag;
    }
    Accepted "without effect in RocksDB, too" {
        "txn_commit_bypass_memtable_threshold" u32 = u32::MAX;
            set rocksdb_transactiondb_options_set_txn_commit_bypass_memtable_threshold get rocksdb_transactiondb_options_get_txn_commit_bypass_memtable_threshold -> u32;
    }
}

engine_settings! { rocksdb_transaction_options_t:
    "set_snapshot" [options.set_snapshot]
        set rocksdb_transaction_options_set_set_snapshot(Flag)
        get rocksdb_transaction_options_get_set_snapshot -> Flag;
    "deadlock_detect" [options.deadlock_detect]
        set rocksdb_transaction_options_set_deadlock_detect(Flag)
        get rocksdb_transaction_options_get_deadlock_detect -> Flag;
    "deadlock_detect_depth" [options.deadlock_detect_depth]
        set rocksdb_transaction_options_set_deadlock_detect_depth(i64)
        get rocksdb_transaction_options_get_deadlock_detect_depth -> i64;
    "lock_timeout" [options.lock_timeout]
        set rocksdb_transaction_options_set_lock_timeout(i64)
        get rocksdb_transaction_options_get_lock_timeout -> i64;
    "expiration" [options.expiration]
        set rocksdb_transaction_options_set_expiration(i64)
        get rocksdb_transaction_options_get_expiration -> i64;
    "max_write_batch_size" [options.max_write_batch_size]
        set rocksdb_transaction_options_set_max_write_batch_size(size_t)
        get rocksdb_transaction_options_get_max_write_batch_size -> size_t;
    "skip_concurrency_control" [options.skip_concurrency_control]
        set rocksdb_transaction_options_set_skip_concurrency_control(Flag)
        get rocksdb_transaction_options_get_skip_concurrency_control -> Flag;
    "skip_prepare" [options.skip_prepare]
        set rocksdb_transaction_options_set_skip_prepare(Flag)
        get rocksdb_transaction_options_get_skip_prepare -> Flag;
}

kept_settings! { rocksdb_transaction_options_t, TRANSACTION_OPTIONS_NOTES:
    Accepted "tunes how RocksDB commits or looks for deadlocks; what is committed and found is the same" {
        "commit_bypass_memtable" Flag = Flag(0);
            set rocksdb_transaction_options_set_commit_bypass_memtable get rocksdb_transaction_options_get_commit_bypass_memtable -> Flag;
        "deadlock_timeout_us" i64 = 500;
            set rocksdb_transaction_options_set_deadlock_timeout_us get rocksdb_transaction_options_get_deadlock_timeout_us -> i64;
        "large_txn_commit_optimize_byte_threshold" u64 = 0;
            set rocksdb_transaction_options_set_large_txn_commit_optimize_byte_threshold get rocksdb_transaction_options_get_large_txn_commit_optimize_byte_threshold -> u64;
        "large_txn_commit_optimize_threshold" u32 = 0;
            set rocksdb_transaction_options_set_large_txn_commit_optimize_threshold get rocksdb_transaction_options_get_large_txn_commit_optimize_threshold -> u32;
    }
    Accepted "about commit-time batches, which the C API cannot fill" {
        "use_only_the_last_commit_time_batch_for_recovery" Flag = Flag(0);
            set rocksdb_transaction_options_set_use_only_the_last_commit_time_batch_for_recovery get rocksdb_transaction_options_get_use_only_the_last_commit_time_batch_for_recovery -> Flag;
    }
    Accepted "about a write policy that is refused" {
        "write_batch_flush_threshold" i64 = -1;
            set rocksdb_transaction_options_set_write_batch_flush_threshold get rocksdb_transaction_options_get_write_batch_flush_threshold -> i64;
    }
    Accepted "matters only to user-defined timestamps, which are refused" {
        "write_batch_track_timestamp_size" Flag = Flag(0);
            set rocksdb_transaction_options_set_write_batch_track_timestamp_size get rocksdb_transaction_options_get_write_batch_track_timestamp_size -> Flag;
    }
}

engine_settings! { rocksdb_optimistictransactiondb_options_t:
    "validate_policy" [options.validate_policy]
        set rocksdb_optimistictransactiondb_options_set_validate_policy(c_int)
        get rocksdb_optimistictransactiondb_options_get_validate_policy -> c_int;
    "occ_lock_buckets" [options.occ_lock_buckets]
        set rocksdb_optimistictransactiondb_options_set_occ_lock_buckets(u32)
        get rocksdb_optimistictransactiondb_options_get_occ_lock_buckets -> u32;
}

engine_settings! { rocksdb_optimistictransaction_options_t:
    "set_snapshot" [set_snapshot]
        set rocksdb_optimistictransaction_options_set_set_snapshot(Flag)
        get rocksdb_optimistictransaction_options_get_set_snapshot -> Flag;
}

/// Locks that databases share.
pub struct rocksdb_optimistictransactiondb_lock_buckets_t(Arc<LockBuckets>);

/// Buckets on cache lines of their own are not made.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_create(
    bucket_count: size_t,
    _cache_aligned: Flag,
) -> *mut rocksdb_optimistictransactiondb_lock_buckets_t {
    boundary!({
        let buckets = Arc::new(LockBuckets::new(bucket_count));
        hand_out(rocksdb_optimistictransactiondb_lock_buckets_t(buckets))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
    buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) -> size_t {
    boundary!((*buckets).0.memory_bytes())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_lock_buckets_destroy(
    buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) {
    boundary!(give_back(buckets))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
    options: *mut rocksdb_optimistictransactiondb_options_t,
    buckets: *mut rocksdb_optimistictransactiondb_lock_buckets_t,
) {
    boundary!((*options).options.shared_lock_buckets = buckets.as_ref().map(|buckets| buckets.0.clone()))
}
