//! The abilities of engines: features by name, the engines that write them and those that read what was
//! written.

use crate::choices::{CHOICES, title};
use std::collections::{BTreeMap, BTreeSet};

/// Features that are operations, with the C functions they need beyond those everything needs.
pub const OPERATIONS: &[(&str, &[&str])] = &[
    ("single delete", &["rocksdb_writebatch_singledelete_cf"]),
    ("delete range", &["rocksdb_writebatch_delete_range_cf"]),
    ("merge add", &["rocksdb_options_set_uint64add_merge_operator", "rocksdb_merge_cf"]),
    (
        "merge append",
        &["rocksdb_mergeoperator_create", "rocksdb_options_set_merge_operator", "rocksdb_merge_cf"],
    ),
    ("put entity", &["rocksdb_writebatch_create_from"]),
    ("put entity in blob", &["rocksdb_writebatch_create_from"]),
    ("log data", &["rocksdb_writebatch_put_log_data"]),
    ("unlogged", &["rocksdb_writeoptions_disable_WAL"]),
    (
        "ingest",
        &["rocksdb_sstfilewriter_create", "rocksdb_sstfilewriter_put", "rocksdb_ingest_external_file_cf"],
    ),
    ("ingest deletes", &["rocksdb_sstfilewriter_delete", "rocksdb_ingest_external_file_cf"]),
    ("checkpoint", &["rocksdb_checkpoint_object_create", "rocksdb_checkpoint_create"]),
    ("reverse order", &[]),
    ("prefix rocksdb.FixedPrefix.3", &[]),
    ("prefix rocksdb.CappedPrefix.3", &[]),
    ("direct single delete", &["rocksdb_singledelete_cf"]),
    ("direct delete range", &["rocksdb_delete_range_cf"]),
    ("get pinned", &["rocksdb_get_pinned_cf", "rocksdb_pinnableslice_value"]),
    ("multi get", &["rocksdb_multi_get_cf"]),
    ("batched multi get", &["rocksdb_batched_multi_get_cf"]),
    ("flush wal", &["rocksdb_flush_wal"]),
    ("flush together", &["rocksdb_flush_cfs"]),
    ("prefix walk", &["rocksdb_readoptions_set_prefix_same_as_start"]),
    ("set options", &["rocksdb_set_options_cf"]),
    (
        "transactions",
        &[
            "rocksdb_transactiondb_open_column_families",
            "rocksdb_transactiondb_get_base_db",
            "rocksdb_transactiondb_create_column_family",
            "rocksdb_transactiondb_get_prepared_transactions",
            "rocksdb_transaction_set_name",
            "rocksdb_transaction_get_name",
            "rocksdb_transaction_prepare",
        ],
    ),
    ("ttl", &["rocksdb_open_column_families_with_ttl", "rocksdb_create_column_family_with_ttl"]),
    (
        "backup",
        &[
            "rocksdb_backup_engine_create_new_backup_flush",
            "rocksdb_backup_engine_verify_backup",
            "rocksdb_backup_engine_restore_db_from_backup",
            "rocksdb_backup_engine_purge_old_backups",
        ],
    ),
];

/// Those of [`OPERATIONS`] that need only the functions: they leave nothing of their own on disk, or (the last three) what they
/// leave has one form in every version that has the functions, and the stream itself judges it.
pub const CALLS: &[&str] = &[
    "direct single delete",
    "direct delete range",
    "get pinned",
    "multi get",
    "batched multi get",
    "flush wal",
    "flush together",
    "prefix walk",
    "set options",
    "transactions",
    "ttl",
    "backup",
];

/// The prefix extractors of the features that are called "prefix" and their name.
pub const PREFIXES: [&str; 2] = ["rocksdb.FixedPrefix.3", HASH_PREFIX];
/// One that has a prefix for every key: RocksDB's hash index does not find keys without one.
pub const HASH_PREFIX: &str = "rocksdb.CappedPrefix.3";

/// Every feature, by name.
pub fn all() -> Vec<String> {
    let operations = OPERATIONS.iter().map(|(name, _)| (*name).to_string());
    operations.chain(CHOICES.iter().flat_map(|choice| choice.answers).map(|answer| title(answer))).collect()
}

/// The abilities of one engine.
#[derive(Clone, Debug, Default)]
pub struct Abilities {
    /// Features it can use.
    pub writes: BTreeSet<String>,
    /// Features it can read when others used them.
    pub reads: BTreeSet<String>,
    /// Single options it takes.
    pub options: BTreeSet<String>,
}

/// All engines of a run, by name.
pub type Engines = BTreeMap<String, Abilities>;

/// How the engine under test is called; every other engine is a reference.
pub const OUTCROP: &str = "outcrop";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_operations() {
        assert!(CALLS.iter().all(|call| OPERATIONS.iter().any(|(name, _)| name == call)));
    }
}
