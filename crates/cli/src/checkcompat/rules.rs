//! The versions that read each feature: the first version of RocksDB that is known to read it and what older ones
//! do.
//!
//! Invariant: a rule says what `cargo xtask compatibility` sees the real libraries do. Where no release note tells
//! the version, it is the first of those tested that reads the feature.

use serde::Serialize;

/// Nothing is said of older versions.
pub const FIRST_KNOWN: (u32, u32) = (6, 29);

/// Something that not every version reads, or not without help.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Tables of this format version.
    FormatVersion(u32),
    /// Tables that hold keys and values apart.
    SeparatedKeys,
    /// Tables with wide-column entities.
    EntityInTable,
    /// Tables with entities that have columns in blob files.
    BlobEntityInTable,
    /// Tables with `TimedPut` entries.
    TimedPutInTable,
    /// WALs with wide-column entities.
    EntityInWal,
    /// WALs with `TimedPut` records.
    TimedPutInWal,
    /// WALs compressed by zstd.
    CompressedWal,
    /// WALs that name their predecessors.
    PredecessorInfo,
    /// WALs that say how long timestamps are.
    TimestampSizes,
    /// WALs after whose end the file goes on: with an earlier log, or with space ahead. To a version that opens it.
    WalGoesOn,
    /// The same to a version's secondary instances.
    WalGoesOnForSecondary,
    /// Tables of L0 whose sequence numbers lie within each other's.
    NestedSequences,
    /// Levels beyond the default of seven.
    Levels(usize),
    /// A key order that is not built in.
    Comparator(String),
    /// A merge operator that is not built in.
    MergeOperator(String),
    /// An OPTIONS file of a newer version.
    NewerOptions((u32, u32)),
    /// A feature that Outcrop itself does not read, and why.
    Unreadable(String),
}

/// The behaviour of an older version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Rows are missing or wrong, and no error says so.
    Misreads,
    /// An error at opening or at reading.
    Refuses,
    /// It cannot be said.
    Unknown,
    /// It reads the feature if it is given something.
    Note,
}

impl Effect {
    /// How it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Misreads => "MISREADS",
            Effect::Refuses => "REFUSES",
            Effect::Unknown => "UNKNOWN",
            Effect::Note => "note",
        }
    }
}

/// A feature's row.
pub struct Rule {
    /// The feature, for people.
    pub name: String,
    /// The first version without a finding; none: every version has one.
    since: Option<(u32, u32)>,
    /// The behaviour of the others.
    pub effect: Effect,
    /// The same as a sentence.
    pub text: String,
}

impl Rule {
    /// Whether the version has a finding.
    pub fn applies_to(&self, version: (u32, u32)) -> bool {
        self.since.is_none_or(|since| version < since)
    }

    /// The row of `feature`.
    pub fn of(feature: &Feature) -> Rule {
        let rule = |name: &str, since, effect, text: &str| Rule {
            name: name.to_string(),
            since: Some(since),
            effect,
            text: text.to_string(),
        };
        match feature {
            Feature::FormatVersion(version) => {
                // Source: RocksDB `include/rocksdb/table.h`, `format_version`.
                let since = match version {
                    ..=5 => FIRST_KNOWN,
                    6 => (8, 6),
                    _ => (10, 4),
                };
                let text =
                    "an unknown version of the table format to it; compact with a smaller format_version";
                rule(&format!("format_version {version}"), since, Effect::Refuses, text)
            }
            Feature::SeparatedKeys => rule(
                "separate_key_value_in_data_block",
                (11, 8),
                Effect::Refuses,
                "data blocks with keys and values apart are corrupt to it; compact without the option",
            ),
            Feature::EntityInTable => rule(
                "wide-column entities in tables",
                (7, 10),
                Effect::Refuses,
                "the type of these keys is corrupt to it; overwrite them with plain values and compact",
            ),
            Feature::BlobEntityInTable => rule(
                "wide-column entities with columns in blob files",
                (11, 8),
                Effect::Refuses,
                "an unknown version of the encoding to it; compact without blob files",
            ),
            Feature::TimedPutInTable => rule(
                "TimedPut entries in tables",
                (9, 1),
                Effect::Refuses,
                "the type of these keys is corrupt to it",
            ),
            Feature::EntityInWal => rule(
                "wide-column entities in WALs",
                (7, 10),
                Effect::Misreads,
                "by default it takes such a record for damage, leaves it out with all that follow and says nothing; \
                 flush first",
            ),
            Feature::TimedPutInWal => rule(
                "TimedPut records in WALs",
                (9, 1),
                Effect::Misreads,
                "by default it takes such a record for damage, leaves it out with all that follow and says nothing; \
                 flush first",
            ),
            // Source: RocksDB `include/rocksdb/options.h`, `wal_compression`.
            Feature::CompressedWal => rule(
                "compressed WAL (wal_compression=kZSTD)",
                (7, 4),
                Effect::Misreads,
                "by default it takes the log for damage, leaves all of it out and says nothing; flush first",
            ),
            Feature::PredecessorInfo => rule(
                "WALs that name their predecessor (track_and_verify_wals)",
                (9, 11),
                Effect::Misreads,
                "by default it takes such a record for damage, leaves out what follows and says nothing; flush first",
            ),
            Feature::TimestampSizes => rule(
                "WALs with sizes of user-defined timestamps",
                (8, 11),
                Effect::Misreads,
                "by default it takes such a record for damage, leaves out what follows and says nothing; flush first",
            ),
            // In this mode the reader of older versions goes on after the end of the file for ever.
            Feature::WalGoesOn => rule(
                "WALs that go on after their end (recycled, or with space ahead)",
                (8, 11),
                Effect::Note,
                "it never finishes opening with wal_recovery_mode=kSkipAnyCorruptedRecords; take another mode, or open \
                 and close the database with Outcrop first",
            ),
            Feature::WalGoesOnForSecondary => Rule {
                name: "WALs that go on after their end, for secondary instances".to_string(),
                since: None,
                effect: Effect::Note,
                text: "a secondary instance of it never finishes opening while such a WAL is there, with \
                       recycled ones of RocksDB's either; Outcrop makes none with allow_fallocate=false and \
                       recycle_log_file_num=0"
                    .to_string(),
            },
            // Source: RocksDB `db/version_builder.cc`; from 7.8 on files have epochs.
            Feature::NestedSequences => rule(
                "tables of L0 with sequence numbers within each other's",
                (7, 10),
                Effect::Refuses,
                "it orders these tables by sequence numbers and refuses the database as corrupt; compact first",
            ),
            Feature::Levels(count) => Rule {
                name: format!("{count} levels"),
                since: None,
                effect: Effect::Note,
                text: format!("it must be opened with num_levels={count} or more; the default is 7"),
            },
            Feature::Comparator(name) => Rule {
                name: format!("comparator {name}"),
                since: None,
                effect: Effect::Note,
                text: "it must be given this comparator".to_string(),
            },
            Feature::MergeOperator(name) => Rule {
                name: format!("merge operator {name}"),
                since: None,
                effect: Effect::Note,
                text: "it must be given this merge operator to read merged keys".to_string(),
            },
            Feature::NewerOptions(version) => rule(
                &format!("OPTIONS file of {}.{}", version.0, version.1),
                *version,
                Effect::Note,
                "its option loader needs ignore_unknown_options; opening a database does not read the file",
            ),
            Feature::Unreadable(why) => Rule {
                name: "not readable by Outcrop".to_string(),
                since: None,
                effect: Effect::Unknown,
                text: why.clone(),
            },
        }
    }
}
