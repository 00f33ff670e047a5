//! Requests to a worker that has a database with timestamps open, and its answers: plain data, one line of JSON each.

use serde::{Deserialize, Serialize};

/// Column families of every case, in the order of their ids: without timestamps; with those of RocksDB's own comparator; with those of an
/// application's, which orders keys from the largest to the smallest.
pub const FAMILIES: [&str; 3] = ["default", "stamped", "backwards"];
/// The one without timestamps.
pub const PLAIN: usize = 0;
/// The one in the order of an application.
pub const BACKWARDS: usize = 2;

/// The functions without which a library cannot play.
pub const NEEDED: [&str; 13] = [
    "rocksdb_put_cf_with_ts",
    "rocksdb_delete_cf_with_ts",
    "rocksdb_singledelete_cf_with_ts",
    "rocksdb_writebatch_put_cf_with_ts",
    "rocksdb_writebatch_delete_cf_with_ts",
    "rocksdb_writebatch_singledelete_cf_with_ts",
    "rocksdb_get_cf_with_ts",
    "rocksdb_multi_get_cf_with_ts",
    "rocksdb_readoptions_set_iter_start_ts",
    "rocksdb_iter_timestamp",
    "rocksdb_increase_full_history_ts_low",
    "rocksdb_compactoptions_set_full_history_ts_low",
    "rocksdb_comparator_with_ts_create",
];

/// The function without which there is no [`How::Late`].
pub const LATE: &str = "rocksdb_writebatch_update_timestamps";

/// The function without which history is not trimmed.
pub const TRIM: &str = "rocksdb_open_and_trim_history";

/// The function without which there is no [`Request::CompactLast`].
pub const COMPACT_FILES: &str = "rocksdb_compact_files_cf";

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Change {
    Put(String),
    Delete,
    SingleDelete,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Index of its column family.
    pub family: usize,
    /// Its key.
    pub key: String,
    /// Its timestamp; means nothing in the column family without.
    pub at: u64,
    /// The rest.
    pub change: Change,
}

/// The functions that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Each write by its own function.
    Direct,
    /// A batch whose writes have timestamps.
    Batch,
    /// A batch whose writes get the timestamp of the first at the end.
    Late,
}

/// The functions that look keys up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Lookup {
    Get,
    GetWithTs,
    MultiGetWithTs,
}

/// The rows that an iterator may show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Index of the column family.
    pub family: usize,
    /// The timestamp to read at.
    pub at: u64,
    /// Inclusive.
    pub lower: Option<String>,
    /// Exclusive.
    pub upper: Option<String>,
}

/// A move of an iterator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Move {
    First,
    Last,
    Seek(String),
    SeekForPrev(String),
    Next,
    Prev,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Opens a database, which is made if it is not there.
    Open {
        /// Its directory.
        path: String,
        /// Of the database and each column family.
        options: Vec<String>,
        /// Versions newer than this timestamp are dropped.
        trim: Option<u64>,
    },
    /// Writes.
    Write {
        /// In this order.
        writes: Vec<Write>,
        /// By which functions.
        how: How,
    },
    /// Looks keys up.
    Get {
        /// Index of the column family.
        family: usize,
        /// The keys.
        keys: Vec<String>,
        /// The timestamp to read at.
        at: u64,
        /// By which function.
        by: Lookup,
    },
    /// Moves an iterator; answers with where it is after each move.
    Walk(View, Vec<Move>),
    /// All rows, from the first.
    Forward(View),
    /// All rows, from the last.
    Backward(View),
    /// All versions, deletions too, newest first.
    Versions {
        /// Index of the column family.
        family: usize,
        /// The timestamp to read at.
        at: u64,
        /// The oldest timestamp that is shown.
        from: u64,
    },
    /// All rows of the column family without timestamps.
    Plain,
    /// Flushes a column family.
    Flush(usize),
    /// Rewrites a column family, after its history is allowed to go below a timestamp.
    Compact(usize, Option<u64>),
    /// Rewrites the tables of a column family's last level without those above it.
    CompactLast(usize),
    /// Allows history to go below a timestamp.
    Raise(usize, u64),
    /// The timestamp below which history may go.
    Low(usize),
    /// Closes the database.
    Close,
}

/// A version that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its timestamp, where the function tells it.
    pub at: Option<u64>,
    /// None: it is a deletion.
    pub value: Option<String>,
}
