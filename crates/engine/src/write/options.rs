//! How one write is done.

use outcrop_env::IoPriority;

/// How one write is done.
///
/// ```
/// # use outcrop::WriteOptions;
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// // On return it survives a loss of power.
/// db.put_with("a", "1", &WriteOptions { sync: true, ..WriteOptions::default() })?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The write is durable when the call returns: its WAL record was synced. Otherwise it survives a
    /// crash of the process but perhaps not of the machine. Default false.
    pub sync: bool,
    /// The write skips the WAL and is lost in a crash before its memtable is flushed. Default false.
    pub disable_wal: bool,
    /// Fail with Incomplete rather than wait when writes are slowed or stopped. Default false.
    pub no_slowdown: bool,
    /// While compactions fall behind, before other writes are slowed, the write waits its turn at 1 MiB/s, shared by all such writes;
    /// with `no_slowdown` it fails with Incomplete. Default false.
    pub low_pri: bool,
    /// The WAL record waits for tokens of the database's [`crate::RateLimiter`], in the line of [`crate::IoPriority::User`]: no other
    /// priority is allowed, nor writes without WAL or with `manual_wal_flush`. Default `None`: the WAL is not limited.
    pub rate_limiter_priority: Option<IoPriority>,
    /// Records of a batch that name a column family which does not exist are passed over, rather than fail the whole batch; their sequence
    /// numbers are used. Default false.
    pub ignore_missing_column_families: bool,
}

impl WriteOptions {
    /// Those of writes without options.
    #[inline]
    pub(crate) fn by_default() -> &'static WriteOptions {
        static DEFAULT: WriteOptions = WriteOptions {
            sync: false,
            disable_wal: false,
            no_slowdown: false,
            low_pri: false,
            rate_limiter_priority: None,
            ignore_missing_column_families: false,
        };
        &DEFAULT
    }
}
