//! Calls that must fail, and the class of the error that they must fail with.
//!
//! A class is what stands before the first `": "` of an error's text: all that C callers and the crate `rocksdb` can tell
//! errors apart by. The table of classes is what RocksDB says, tried on each version; Outcrop has to say what the newest
//! does. Where an older one takes a call without a word, the call is not made there.
//!
//! Invariant: a mistake leaves everything as it was. The stream goes on after it, and rows are compared as always.
//! Mistakes after which RocksDB refuses all writes are made in a database that is thrown away; Outcrop goes on there.
//!
//! | | when | by |
//! |---|---|---|
//! | [`Mistake`] | the database is open | an operation of the stream |
//! | [`Opening`] | before it is opened | the phase that opens it then |
//!
//! | [`Stopping`] | a database of its own is open | an [`Opening`] |
//!
//! Left out: what depends on chance (reads that are limited to the cache, compactions of files that go away).

use crate::case::{Merge, Phase};
use crate::choices::name;
use crate::features::OUTCROP;
use crate::model::Model;
use crate::operation::Key;
use crate::rules::SINGLE;
use serde::{Deserialize, Serialize};

const INVALID: &str = "Invalid argument";
const NOT_IMPLEMENTED: &str = "Not implemented";
const IO: &str = "IO error";
const CORRUPTION: &str = "Corruption";
const NOT_FOUND: &str = "NotFound";
const DROPPED: &str = "Column family dropped";

/// A call that fails on an open database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Mistake {
    /// Creates a column family that exists.
    CreateExisting { family: usize },
    /// Creates one without a name.
    CreateNameless,
    /// Drops the default column family.
    DropDefault,
    /// Uses one that was made and dropped for it.
    AfterDrop(Gone),
    /// Sets an option to what it cannot be, or one that cannot change.
    SetOption { family: usize, name: String, value: String },
    /// Merges where there is no operator.
    MergeWithoutOperator { family: usize },
    /// Asks for a write to be synced that is in no WAL.
    SyncedUnlogged { family: usize },
    /// Writes past a WAL that is recycled.
    UnloggedRecycled { family: usize },
    /// Deletes from a key to one before it.
    RangeBackwards { family: usize, begin: Key, end: Key },
    /// Ingests what cannot be. The key has a row.
    Ingest { family: usize, table: BadTable, key: Key },
    /// Makes a checkpoint where it cannot be.
    Checkpoint(BadTarget),
    /// Asks for writes of the future.
    UpdatesOfTheFuture,
    /// Gives a key a timestamp in a column family that has none.
    Timestamp { family: usize },
    /// Destroys the database while it is open.
    Destroy,
}

/// A request to a dropped column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Gone {
    Drop,
    Put,
    Flush,
    SetOptions,
    Ingest,
}

/// Tables that cannot be ingested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadTable {
    /// No file.
    Missing,
    /// A file without a byte.
    Empty,
    /// The first half of a table.
    Half,
    /// No table.
    Garbage,
    /// A directory.
    Directory,
    /// A good one and no file: neither is taken.
    OneMissing,
    /// It needs a sequence number and must not have one: the key is in the database already.
    Overlapping,
    /// To go below everything, where that is not allowed.
    Behind,
    /// Its keys are in the opposite order.
    OtherOrder,
}

impl BadTable {
    /// Every one.
    pub const ALL: [BadTable; 9] = [
        BadTable::Missing,
        BadTable::Empty,
        BadTable::Half,
        BadTable::Garbage,
        BadTable::Directory,
        BadTable::OneMissing,
        BadTable::Overlapping,
        BadTable::Behind,
        BadTable::OtherOrder,
    ];
}

/// Places where no checkpoint can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadTarget {
    /// A directory is there.
    Directory,
    /// A file is there.
    File,
    /// No name.
    Nameless,
    /// In a directory that is not there.
    NoParent,
}

/// A way to open a database that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// The default column family has the opposite order.
    OtherOrder,
    /// One more column family than there is.
    UnknownFamily,
    /// One less.
    FamilyLeftOut,
    /// All but the default one.
    WithoutDefault,
    /// As a new database.
    ErrorIfExists,
    /// An empty directory, not to be made a database.
    NotCreated,
    /// With these options.
    Options(Vec<String>),
    /// To be read only, and then written to.
    ReadOnlyPut,
    /// To be read only, and then flushed.
    ReadOnlyFlush,
    /// To be read only, where there is none.
    ReadOnlyMissing,
    /// Not at all: column families of a database that is not there are listed.
    ListMissing,
    /// Not at all: the options of a database that is not there are loaded.
    LoadMissing,
    /// A new one; the failing operation is done to it.
    New(Stopping),
}

/// A write after which RocksDB writes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// Deletes from a key to one before it.
    RangeBackwards,
    /// Puts into a dropped column family.
    PutDropped,
    /// A batch for a column family that never was.
    UnknownFamily,
    /// A batch with a record of no kind.
    UnknownRecord,
    /// A batch whose last record is cut short.
    CutShort,
    /// A batch that says that it has more records.
    WrongCount,
    /// A batch without its header.
    NoHeader,
    /// A batch that merges where there is no operator.
    Merge,
}

impl Stopping {
    /// Every one.
    pub const ALL: [Stopping; 8] = [
        Stopping::RangeBackwards,
        Stopping::PutDropped,
        Stopping::UnknownFamily,
        Stopping::UnknownRecord,
        Stopping::CutShort,
        Stopping::WrongCount,
        Stopping::NoHeader,
        Stopping::Merge,
    ];

    /// The batch, in RocksDB's wire form; none where a function of its own does it.
    pub fn batch(self) -> Option<Vec<u8>> {
        let batch = |count: u8, records: &[u8]| Some([&[0; 8][..], &[count, 0, 0, 0], records].concat());
        match self {
            Stopping::RangeBackwards | Stopping::PutDropped => None,
            Stopping::UnknownFamily => batch(1, b"\x05\x63\x01k\x01v"),
            Stopping::UnknownRecord => batch(1, b"\x7f\x01k\x01v"),
            Stopping::CutShort => batch(1, b"\x01\x01k\x05v"),
            Stopping::WrongCount => batch(5, b"\x01\x01k\x01v"),
            Stopping::NoHeader => Some(b"short".to_vec()),
            Stopping::Merge => batch(1, b"\x02\x01k\x01v"),
        }
    }
}

/// Options that RocksDB refuses when it reads them or when it opens with them: since which version, with which class.
const REFUSED_OPTIONS: &[(&[&str], u32, &str)] = &[
    (&["atomic_flush=true", "enable_pipelined_write=true"], 6, INVALID),
    (&["unordered_write=true", "enable_pipelined_write=true"], 6, INVALID),
    (&["unordered_write=true", "allow_concurrent_memtable_write=false"], 6, INVALID),
    (&["unordered_write=true", "max_successive_merges=3"], 6, INVALID),
    (&["inplace_update_support=true"], 6, INVALID),
    (&["use_direct_reads=true", "allow_mmap_reads=true"], 6, NOT_IMPLEMENTED),
    (&["use_direct_io_for_flush_and_compaction=true", "allow_mmap_writes=true"], 6, NOT_IMPLEMENTED),
    (&["keep_log_file_num=0"], 6, INVALID),
    (&["compaction_style=kCompactionStyleFIFO", "max_open_files=100"], 6, NOT_IMPLEMENTED),
    (&["write_dbid_to_manifest=false", "write_identity_file=false"], 9, INVALID),
    (&["memtable_protection_bytes_per_key=3"], 7, NOT_IMPLEMENTED),
    (&["block_protection_bytes_per_key=3"], 8, NOT_IMPLEMENTED),
    (
        &["compaction_style=kCompactionStyleUniversal", "compaction_options_universal={max_read_amp=-5;}"],
        9,
        NOT_IMPLEMENTED,
    ),
    (&["enable_blob_garbage_collection=true", "blob_garbage_collection_age_cutoff=2"], 6, INVALID),
    (&["enable_blob_garbage_collection=true", "blob_garbage_collection_force_threshold=-1"], 6, INVALID),
    (&["table.block_size=5000000000"], 6, INVALID),
    (&["table.format_version=99"], 6, INVALID),
    (&["table.block_align=true", "compression=kSnappyCompression"], 6, INVALID),
    (&["table.block_align=true", "table.block_size=1000", "compression=kNoCompression"], 6, INVALID),
    (&["table.cache_index_and_filter_blocks=true", "table.no_block_cache=true"], 6, INVALID),
    (&["table.pin_l0_filter_and_index_blocks_in_cache=true", "table.no_block_cache=true"], 6, INVALID),
    (
        &["table.data_block_index_type=kDataBlockBinaryAndHash", "table.data_block_hash_table_util_ratio=0"],
        6,
        INVALID,
    ),
    (&["table.index_type=kHashSearch"], 6, INVALID),
    (&["no_such_option=1"], 6, INVALID),
    (&["write_buffer_size=abc"], 6, INVALID),
    (&["compression=kNope"], 6, INVALID),
    (&["compression_per_level=kNoCompression:kNope"], 6, INVALID),
    (&["compaction_pri=5"], 6, INVALID),
    (&["compaction_options_universal={size_ratio=-1;}"], 6, INVALID),
    (&["table.no_such_option=1"], 6, INVALID),
    (&["table.checksum=kNope"], 6, INVALID),
];

/// The changes that `set_options` refuses, in every version.
pub const REFUSED_CHANGES: &[(&str, &str)] = &[
    ("no_such_option", "1"),
    ("write_buffer_size", "abc"),
    ("write_buffer_size", ""),
    ("num_levels", "4"),
    ("compaction_style", "kCompactionStyleFIFO"),
    ("comparator", "x"),
    ("merge_operator", "x"),
    ("min_write_buffer_number_to_merge", "3"),
    ("level_compaction_dynamic_level_bytes", "true"),
    ("compaction_pri", "kByCompensatedSize"),
    ("disable_auto_compactions", "maybe"),
    ("compression", "kNope"),
    ("compression_per_level", "kNope"),
    ("max_open_files", "5"),
    ("block_based_table_factory", "{no_such_option=1;}"),
    ("compaction_options_universal", "{no_such_option=1;}"),
];

/// Every way to open that fails.
pub fn openings() -> Vec<Opening> {
    let options = REFUSED_OPTIONS
        .iter()
        .map(|(options, ..)| Opening::Options(options.iter().map(|option| (*option).to_string()).collect()));
    let others = [
        Opening::OtherOrder,
        Opening::UnknownFamily,
        Opening::FamilyLeftOut,
        Opening::WithoutDefault,
        Opening::ErrorIfExists,
        Opening::NotCreated,
        Opening::ReadOnlyPut,
        Opening::ReadOnlyFlush,
        Opening::ReadOnlyMissing,
        Opening::ListMissing,
        Opening::LoadMissing,
    ];
    options.chain(others).chain(Stopping::ALL.map(Opening::New)).collect()
}

/// The number before the first point of a version; Outcrop is newer than every RocksDB.
fn major(engine: &str) -> u32 {
    if engine == OUTCROP {
        return u32::MAX;
    }
    engine.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

impl Mistake {
    /// The class of the error that `engine` gives; `None` if it gives none.
    pub fn class(&self, engine: &str) -> Option<&'static str> {
        let (since, class) = match self {
            Mistake::CreateNameless => (11, INVALID),
            Mistake::CreateExisting { .. }
            | Mistake::DropDefault
            | Mistake::AfterDrop(Gone::Drop | Gone::Put)
            | Mistake::SetOption { .. }
            | Mistake::SyncedUnlogged { .. }
            | Mistake::RangeBackwards { .. }
            | Mistake::Ingest { table: BadTable::Overlapping | BadTable::Behind, .. }
            | Mistake::Checkpoint(BadTarget::Directory | BadTarget::File | BadTarget::Nameless) => {
                (6, INVALID)
            }
            Mistake::AfterDrop(_) => (6, DROPPED),
            Mistake::MergeWithoutOperator { .. } => (6, NOT_IMPLEMENTED),
            Mistake::UnloggedRecycled { .. } | Mistake::Ingest { table: BadTable::OtherOrder, .. } => {
                (9, INVALID)
            }
            Mistake::Ingest {
                table: BadTable::Missing | BadTable::Directory | BadTable::OneMissing, ..
            }
            | Mistake::Checkpoint(BadTarget::NoParent)
            | Mistake::Destroy => (6, IO),
            Mistake::Ingest { table: BadTable::Empty | BadTable::Half | BadTable::Garbage, .. } => {
                (6, CORRUPTION)
            }
            Mistake::UpdatesOfTheFuture => (6, NOT_FOUND),
            Mistake::Timestamp { .. } => (7, INVALID),
        };
        (major(engine) >= since).then_some(class)
    }

    /// Whether it is one now.
    pub fn admitted(&self, model: &Model) -> bool {
        let exists = |family: &usize| model.existing().contains(family);
        match self {
            Mistake::CreateExisting { family }
            | Mistake::SetOption { family, .. }
            | Mistake::SyncedUnlogged { family }
            | Mistake::UnloggedRecycled { family }
            | Mistake::Timestamp { family } => exists(family),
            Mistake::MergeWithoutOperator { family } => {
                exists(family) && model.family(*family).merge == Merge::None
            }
            Mistake::RangeBackwards { family, begin, end } => {
                let reverse = model.family(*family).reverse;
                exists(family) && if reverse { begin < end } else { begin > end }
            }
            Mistake::Ingest { family, table, key } => {
                let fits = match table {
                    // RocksDB flushes the one column family before it finds out.
                    BadTable::Overlapping => {
                        !model.is_flushed_together() && model.get(*family, key).is_some()
                    }
                    _ => key.0.first() != Some(&SINGLE),
                };
                exists(family) && fits
            }
            Mistake::AfterDrop(_)
            | Mistake::CreateNameless
            | Mistake::DropDefault
            | Mistake::Checkpoint(_)
            | Mistake::UpdatesOfTheFuture
            | Mistake::Destroy => true,
        }
    }

    /// Whether it can be made in a phase and the phase can go on.
    pub fn fits(&self, phase: &Phase) -> bool {
        match self {
            Mistake::UnloggedRecycled { .. } => {
                phase.options.iter().any(|option| name(option) == "recycle_log_file_num")
            }
            // An empty file cannot be mapped, which RocksDB then says.
            Mistake::Ingest { table: BadTable::Empty, .. } => {
                phase.engine == OUTCROP || !phase.has("allow_mmap_reads=true")
            }
            // RocksDB's go on without writes; and 6.29.5 once set options of a dropped column family, which it refuses as a rule.
            Mistake::RangeBackwards { .. } | Mistake::AfterDrop(Gone::Put | Gone::SetOptions) => {
                phase.engine == OUTCROP
            }
            _ => true,
        }
    }
}

impl Opening {
    /// The class of the error that `engine` gives; `None` if it gives none.
    pub fn class(&self, engine: &str) -> Option<&'static str> {
        let (since, class) = match self {
            Opening::OtherOrder
            | Opening::UnknownFamily
            | Opening::FamilyLeftOut
            | Opening::WithoutDefault
            | Opening::ErrorIfExists
            | Opening::NotCreated => (6, INVALID),
            Opening::New(
                Stopping::RangeBackwards | Stopping::PutDropped | Stopping::UnknownFamily | Stopping::Merge,
            ) => (6, INVALID),
            Opening::New(_) => (6, CORRUPTION),
            Opening::ReadOnlyPut | Opening::ReadOnlyFlush => (6, NOT_IMPLEMENTED),
            Opening::ReadOnlyMissing | Opening::ListMissing => (6, IO),
            Opening::LoadMissing => (7, NOT_FOUND),
            Opening::Options(given) => {
                let (_, since, class) =
                    REFUSED_OPTIONS.iter().find(|(options, ..)| *options == given.as_slice())?;
                (*since, *class)
            }
        };
        (major(engine) >= since).then_some(class)
    }

    /// Whether it is a mistake with these column families.
    pub fn admitted(&self, existing: &[usize]) -> bool {
        existing.len() > 1 || !matches!(self, Opening::FamilyLeftOut | Opening::WithoutDefault)
    }

    /// Whether `engine` survives it on what `left` has left. RocksDB from 7 on dies reading a database whose MANIFEST keeps
    /// track of WALs, its own too, when it opens it for reading only.
    pub fn survived(&self, engine: &str, left: &Phase) -> bool {
        engine == OUTCROP
            || !left.has("track_and_verify_wals_in_manifest=true")
            || !matches!(self, Opening::ReadOnlyPut | Opening::ReadOnlyFlush)
    }
}

/// The class of an error's text.
pub fn class_of(error: &str) -> &str {
    error.split(": ").next().unwrap_or(error).trim_end_matches(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Family;

    #[test]
    fn classes_follow_versions() {
        let table = |table| Mistake::Ingest { family: 0, table, key: Key(b"k".to_vec()) };
        assert_eq!(table(BadTable::Half).class("6.29.5"), Some(CORRUPTION));
        assert_eq!(table(BadTable::OtherOrder).class("8.11.4"), None);
        assert_eq!(table(BadTable::OtherOrder).class("10.10.1.1"), Some(INVALID));
        assert_eq!(Mistake::CreateNameless.class(OUTCROP), Some(INVALID));
        assert!(
            openings().iter().all(|opening| opening.class(OUTCROP).is_some()),
            "Outcrop takes nothing of it"
        );
        assert_eq!(Opening::Options(vec!["create_if_missing=true".into()]).class(OUTCROP), None);
    }

    #[test]
    fn a_class_is_what_stands_before_the_first_colon() {
        assert_eq!(class_of("IO error: No such file: While stat"), IO);
        assert_eq!(class_of("Column family dropped: "), DROPPED);
        assert_eq!(class_of("Operation failed. Try again.: files"), "Operation failed. Try again.");
    }

    #[test]
    fn what_would_succeed_is_no_mistake() {
        let merging = Family { merge: Merge::Append, ..Family::plain("one") };
        let model = Model::new(&[Family::plain("default"), merging], &[0, 1]);
        assert!(Mistake::MergeWithoutOperator { family: 0 }.admitted(&model));
        assert!(!Mistake::MergeWithoutOperator { family: 1 }.admitted(&model));
        assert!(!Mistake::CreateExisting { family: 2 }.admitted(&model));
        let (a, b) = (Key(b"a".to_vec()), Key(b"b".to_vec()));
        let range = |begin: &Key, end: &Key| Mistake::RangeBackwards {
            family: 0,
            begin: begin.clone(),
            end: end.clone(),
        };
        assert!(range(&b, &a).admitted(&model) && !range(&a, &b).admitted(&model));
        let overlapping = Mistake::Ingest { family: 0, table: BadTable::Overlapping, key: a };
        assert!(!overlapping.admitted(&model), "nothing is there to overlap with");
        assert!(!Opening::FamilyLeftOut.admitted(&[0]) && Opening::FamilyLeftOut.admitted(&[0, 2]));
    }
}
