//! How transactions are opened and begun.

/// How transactions write to the database.
///
/// ```
/// # use outcrop::*;
/// let other = TransactionDbOptions { write_policy: WritePolicy::Prepared, ..TransactionDbOptions::default() };
/// let refused = TransactionDb::open_with(Db::builder("/db").env(Env::memory()), other);
/// assert_eq!(refused.err().unwrap().kind(), ErrorKind::NotSupported);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WritePolicy {
    /// Writes of a transaction are in the database once it is committed, and not before.
    #[default]
    Committed,
    /// They are in the database once it is prepared: not supported.
    Prepared,
    /// They are in the database before it is prepared: not supported.
    Unprepared,
}

/// How a [`crate::TransactionDb`] is opened. Defaults are RocksDB's.
///
/// ```
/// # use outcrop::*;
/// let options = TransactionDbOptions { transaction_lock_timeout: 50, ..TransactionDbOptions::default() };
/// assert_eq!(options.num_stripes, 16);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionDbOptions {
    /// Most keys of a column family that may be locked; 0 or less, the default: no limit.
    pub max_num_locks: i64,
    /// Parts of a column family's keys that are locked apart; default 16.
    pub num_stripes: usize,
    /// How long a transaction that does not say waits for a lock, in milliseconds; 0: not at all, below 0: for ever; default 1000.
    pub transaction_lock_timeout: i64,
    /// The same for writes outside of transactions.
    pub default_lock_timeout: i64,
    /// Deadlocks that are remembered; default 5.
    pub max_num_deadlocks: u32,
    /// How transactions write to the database.
    pub write_policy: WritePolicy,
    /// Writes outside of transactions lock nothing; default false.
    pub skip_concurrency_control: bool,
}

impl Default for TransactionDbOptions {
    fn default() -> Self {
        TransactionDbOptions {
            max_num_locks: -1,
            num_stripes: 16,
            transaction_lock_timeout: 1000,
            default_lock_timeout: 1000,
            max_num_deadlocks: 5,
            write_policy: WritePolicy::Committed,
            skip_concurrency_control: false,
        }
    }
}

/// How a transaction of a [`crate::TransactionDb`] is begun. Defaults are RocksDB's.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let options = TransactionOptions { set_snapshot: true, deadlock_detect: true, ..TransactionOptions::default() };
/// assert!(db.begin_with(&WriteOptions::default(), &options).snapshot().is_some());
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionOptions {
    /// It gets a snapshot when it begins; default false.
    pub set_snapshot: bool,
    /// Before it waits for a lock it looks for a deadlock; default false.
    pub deadlock_detect: bool,
    /// Transactions it looks at for that, before a deadlock is assumed; default 50.
    pub deadlock_detect_depth: i64,
    /// How long it waits for a lock, in milliseconds; 0: not at all; below 0, the default: as the database says.
    pub lock_timeout: i64,
    /// Milliseconds after which others may take its locks; below 0, the default: never.
    pub expiration: i64,
    /// Longest batch, in bytes; 0, the default: no limit.
    pub max_write_batch_size: usize,
    /// It locks and checks nothing; default false.
    pub skip_concurrency_control: bool,
    /// It can be committed without being prepared; default true.
    pub skip_prepare: bool,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions {
            set_snapshot: false,
            deadlock_detect: false,
            deadlock_detect_depth: 50,
            lock_timeout: -1,
            expiration: -1,
            max_write_batch_size: 0,
            skip_concurrency_control: false,
            skip_prepare: true,
        }
    }
}

/// How optimistic transactions are checked when they are committed.
///
/// ```
/// # use outcrop::*;
/// assert_eq!(ValidatePolicy::default(), ValidatePolicy::Parallel);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValidatePolicy {
    /// By the writer that leads, one after the other: no write whatsoever comes between check and write.
    Serial,
    /// Each by itself, those with keys in common one after the other. A write outside of transactions can come between.
    #[default]
    Parallel,
}

/// How an [`crate::OptimisticTransactionDb`] is opened. Defaults are RocksDB's.
///
/// ```
/// # use outcrop::*;
/// let options = OptimisticTransactionDbOptions { validate_policy: ValidatePolicy::Serial, ..OptimisticTransactionDbOptions::default() };
/// assert!(options.shared_lock_buckets.is_none());
/// ```
#[derive(Clone, Debug)]
pub struct OptimisticTransactionDbOptions {
    /// How transactions are checked.
    pub validate_policy: ValidatePolicy,
    /// Locks that keys are distributed to, at least 16; default 2^20.
    pub occ_lock_buckets: u32,
    /// Locks to share with other databases, instead of ones of its own.
    pub shared_lock_buckets: Option<std::sync::Arc<super::buckets::LockBuckets>>,
}

impl Default for OptimisticTransactionDbOptions {
    fn default() -> Self {
        OptimisticTransactionDbOptions {
            validate_policy: ValidatePolicy::default(),
            occ_lock_buckets: 1 << 20,
            shared_lock_buckets: None,
        }
    }
}

/// Whether a transaction gets a snapshot when it begins.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = OptimisticTransactionDb::open_with(builder, OptimisticTransactionDbOptions::default())?;
/// let txn = db.begin_with(&WriteOptions::default(), TakeSnapshot::AtBegin);
/// assert!(txn.snapshot().is_some());
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TakeSnapshot {
    /// It gets none by itself.
    #[default]
    No,
    /// It gets one.
    AtBegin,
}
