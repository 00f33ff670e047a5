//! Collectors of table properties: told of each entry that goes into a table, they leave properties in it and may ask for it to be
//! compacted soon.
//!
//! Source: RocksDB `include/rocksdb/table_properties.h`, `utilities/table_properties_collectors/compact_on_deletion_collector.cc`.

use outcrop_base::keys::split;
use outcrop_base::{CfId, Error, Result, SeqNum, ValueType};
use outcrop_table::TableWriter;
use std::sync::Arc;

/// Makes a collector for each table: one of [`crate::ColumnFamilyParts::collectors`].
///
/// ```
/// use outcrop::{
///     ColumnFamilyDescriptor, ColumnFamilyOptions, ColumnFamilyParts, Db, EntryKind, Env, Result, SeqNum,
///     TablePropertiesCollector, TablePropertiesCollectorFactory,
/// };
/// use std::sync::Arc;
///
/// /// Counts values that are empty.
/// #[derive(Default)]
/// struct Empty(u64);
///
/// impl TablePropertiesCollector for Empty {
///     fn add(&mut self, _key: &[u8], value: &[u8], kind: EntryKind, _seq: SeqNum, _file_size: u64) -> Result<()> {
///         self.0 += u64::from(kind == EntryKind::Put && value.is_empty());
///         Ok(())
///     }
///     fn finish(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
///         Ok(vec![("example.empty".to_string(), self.0.to_string().into_bytes())])
///     }
/// }
///
/// struct EmptyFactory;
///
/// impl TablePropertiesCollectorFactory for EmptyFactory {
///     fn name(&self) -> &str {
///         "example.empty"
///     }
///     fn create(&self, _column_family: outcrop::CfId, _level: Option<usize>) -> Option<Box<dyn TablePropertiesCollector>> {
///         Some(Box::new(Empty::default()))
///     }
/// }
///
/// let parts = ColumnFamilyParts { collectors: vec![Arc::new(EmptyFactory)], ..ColumnFamilyParts::default() };
/// let family = ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), parts);
/// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).column_family(family).open()?;
/// db.put("a", "")?;
/// db.flush()?;
/// # outcrop::Result::Ok(())
/// ```
pub trait TablePropertiesCollectorFactory: Send + Sync {
    /// Its name: written into every table of the column family.
    fn name(&self) -> &str;

    /// Its name and its settings, for LOG. Default: the name.
    fn description(&self) -> String {
        self.name().to_string()
    }

    /// The collector of one table of a column family; `None`: it has none. `level` is where a compaction writes the table, 0 for a flush,
    /// `None` for a file made for ingestion.
    fn create(&self, column_family: CfId, level: Option<usize>) -> Option<Box<dyn TablePropertiesCollector>>;
}

/// Told of the entries of one table, in the order of the keys. One that fails is left out: the table is written without it, and LOG says so.
///
/// ```
/// use outcrop::{EntryKind, Result, SeqNum, TablePropertiesCollector};
///
/// /// Has every table compacted on.
/// struct Restless;
///
/// impl TablePropertiesCollector for Restless {
///     fn add(&mut self, _: &[u8], _: &[u8], _: EntryKind, _: SeqNum, _: u64) -> Result<()> {
///         Ok(())
///     }
///     fn finish(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
///         Ok(Vec::new())
///     }
///     fn needs_compaction(&self) -> bool {
///         true
///     }
/// }
/// # assert!(Restless.needs_compaction());
/// ```
pub trait TablePropertiesCollector: Send {
    /// An entry that the table took. A range tombstone comes with its first key and its end. `file_size` is what was written so far, in
    /// bytes: the blocks that are complete.
    ///
    /// # Errors
    /// An error after which the collector cannot go on.
    fn add(&mut self, key: &[u8], value: &[u8], kind: EntryKind, seq: SeqNum, file_size: u64) -> Result<()>;

    /// The properties, name and value each. Names that begin with `rocksdb.` are the engine's: they are left out. Called once, after the
    /// last entry.
    ///
    /// # Errors
    /// As [`TablePropertiesCollector::add`].
    fn finish(&mut self) -> Result<Vec<(String, Vec<u8>)>>;

    /// True if the table should be compacted soon. Asked after [`TablePropertiesCollector::finish`].
    fn needs_compaction(&self) -> bool {
        false
    }
}

/// The kind of an entry. The numbers are RocksDB's.
///
/// ```
/// assert_eq!(outcrop::EntryKind::SingleDelete as u32, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EntryKind {
    /// A value.
    Put = 0,
    /// A deletion.
    Delete = 1,
    /// A deletion of a key that was written once.
    SingleDelete = 2,
    /// A merge operand.
    Merge = 3,
    /// A range tombstone.
    RangeDeletion = 4,
    /// A reference to a value in a blob file.
    BlobIndex = 5,
    /// A wide-column entity.
    WideColumnEntity = 7,
    /// Anything else.
    Other = 9,
}

impl EntryKind {
    fn of(value_type: u8) -> EntryKind {
        match ValueType::from_byte(value_type) {
            Some(ValueType::Value) => EntryKind::Put,
            Some(ValueType::Deletion) => EntryKind::Delete,
            Some(ValueType::SingleDeletion) => EntryKind::SingleDelete,
            Some(ValueType::Merge) => EntryKind::Merge,
            Some(ValueType::BlobIndex) => EntryKind::BlobIndex,
            Some(ValueType::WideColumnEntity) => EntryKind::WideColumnEntity,
            _ => EntryKind::Other,
        }
    }
}

/// The collectors of one table.
pub struct Collectors {
    /// Those that did not fail, with the names of their factories.
    list: Vec<(String, Box<dyn TablePropertiesCollector>)>,
    names: String,
    /// How others failed.
    failures: Vec<String>,
}

/// The answers of the collectors of a finished table.
#[derive(Default)]
pub struct Collected {
    /// It should be compacted soon.
    pub needs_compaction: bool,
    /// A line for LOG for each collector that failed.
    pub failures: Vec<String>,
}

impl Collectors {
    /// Those of `factories`; `None` if there are none at all.
    pub fn new(
        factories: &[Arc<dyn TablePropertiesCollectorFactory>],
        column_family: CfId,
        level: Option<usize>,
    ) -> Option<Collectors> {
        if factories.is_empty() {
            return None;
        }
        let names: Vec<&str> = factories.iter().map(|factory| factory.name()).collect();
        let create = |factory: &Arc<dyn TablePropertiesCollectorFactory>| {
            Some((factory.name().to_string(), factory.create(column_family, level)?))
        };
        let list = factories.iter().filter_map(create).collect();
        Some(Collectors { list, names: format!("[{}]", names.join(",")), failures: Vec::new() })
    }

    /// Tells of an entry with an internal key, which `writer` took.
    pub fn add(&mut self, key: &[u8], value: &[u8], writer: &TableWriter) {
        let (user_key, trailer) = split(key);
        self.tell(user_key, value, EntryKind::of(trailer.type_byte()), trailer.seq(), writer);
    }

    /// Tells of a range tombstone that `writer` took.
    pub fn add_range_tombstone(&mut self, begin: &[u8], seq: SeqNum, end: &[u8], writer: &TableWriter) {
        self.tell(begin, end, EntryKind::RangeDeletion, seq, writer);
    }

    fn tell(&mut self, key: &[u8], value: &[u8], kind: EntryKind, seq: SeqNum, writer: &TableWriter) {
        let size = writer.size_of_blocks();
        let failures = &mut self.failures;
        self.list.retain_mut(|(name, collector)| match collector.add(key, value, kind, seq, size) {
            Ok(()) => true,
            Err(error) => {
                failures.push(failure("add", name, &error));
                false
            }
        });
    }

    /// Puts the properties into `writer`, which is about to be finished.
    pub fn finish(mut self, writer: &mut TableWriter) -> Collected {
        writer.set_collectors(self.names);
        let mut needs_compaction = false;
        for (name, collector) in &mut self.list {
            match collector.finish() {
                Ok(properties) => {
                    properties.into_iter().for_each(|(name, value)| writer.add_property(name, value));
                    needs_compaction |= collector.needs_compaction();
                }
                Err(error) => self.failures.push(failure("finish", name, &error)),
            }
        }
        Collected { needs_compaction, failures: self.failures }
    }
}

fn failure(method: &str, collector: &str, error: &Error) -> String {
    format!("the table is written without collector {collector}: {method} failed: {error}")
}

/// Has tables compacted soon in which deletions stand close together, or are many: what is deleted there is passed over by each scan.
///
/// ```
/// use outcrop::{ColumnFamilyParts, CompactOnDeletion};
/// use std::sync::Arc;
///
/// // 50 deletions among any 100 entries, or half of all in tables of 1 MiB and more.
/// let collector = CompactOnDeletion {
///     window_size: 100,
///     deletion_trigger: 50,
///     deletion_ratio: 0.5,
///     min_file_size: 1 << 20,
/// };
/// let parts = ColumnFamilyParts { collectors: vec![Arc::new(collector)], ..ColumnFamilyParts::default() };
/// # assert_eq!(parts.collectors.len(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompactOnDeletion {
    /// Entries that are looked at together; 0: no such rule.
    pub window_size: usize,
    /// Deletions among them.
    pub deletion_trigger: usize,
    /// Share of deletions among all entries, above 0 and at most 1; anything else: no such rule.
    pub deletion_ratio: f64,
    /// Smaller tables are left alone, in bytes.
    pub min_file_size: u64,
}

impl TablePropertiesCollectorFactory for CompactOnDeletion {
    fn name(&self) -> &str {
        "CompactOnDeletionCollector"
    }

    /// As RocksDB's describes itself.
    fn description(&self) -> String {
        format!(
            "{} (Sliding window size = {} Deletion trigger = {} Deletion ratio = {})",
            self.name(),
            self.window_size,
            self.deletion_trigger,
            self.deletion_ratio
        )
    }

    fn create(&self, _: CfId, _: Option<usize>) -> Option<Box<dyn TablePropertiesCollector>> {
        let per_bucket = self.window_size.div_ceil(BUCKETS);
        let by_ratio = self.deletion_ratio > 0.0 && self.deletion_ratio <= 1.0;
        if per_bucket == 0 && !by_ratio {
            return None;
        }
        Some(Box::new(DeletionCollector {
            rules: *self,
            per_bucket,
            by_ratio,
            buckets: [0; BUCKETS],
            bucket: 0,
            in_bucket: 0,
            in_window: 0,
            most: 0,
            entries: 0,
            deletions: 0,
            file_size: 0,
            needs_compaction: false,
        }))
    }
}

/// Parts of the window: it moves on by one of them.
const BUCKETS: usize = 128;

struct DeletionCollector {
    rules: CompactOnDeletion,
    /// Entries of a bucket; 0: no window.
    per_bucket: usize,
    by_ratio: bool,
    /// Deletions in each bucket of the window.
    buckets: [usize; BUCKETS],
    bucket: usize,
    /// Entries in the last bucket.
    in_bucket: usize,
    /// Deletions in the window.
    in_window: usize,
    /// The most there ever were.
    most: usize,
    entries: u64,
    deletions: u64,
    file_size: u64,
    needs_compaction: bool,
}

impl DeletionCollector {
    fn move_window(&mut self, is_deletion: bool) {
        if self.in_bucket == self.per_bucket {
            self.bucket = (self.bucket + 1) % BUCKETS;
            self.in_window -= self.buckets[self.bucket];
            self.buckets[self.bucket] = 0;
            self.in_bucket = 0;
        }
        self.in_bucket += 1;
        if is_deletion {
            self.in_window += 1;
            self.buckets[self.bucket] += 1;
            self.most = self.most.max(self.in_window);
        }
    }
}

impl TablePropertiesCollector for DeletionCollector {
    fn add(&mut self, _: &[u8], _: &[u8], kind: EntryKind, _: SeqNum, file_size: u64) -> Result<()> {
        if self.needs_compaction {
            return Ok(());
        }
        let is_deletion = matches!(kind, EntryKind::Delete | EntryKind::SingleDelete);
        if self.by_ratio {
            self.entries += 1;
            self.deletions += u64::from(is_deletion);
            self.file_size = file_size;
        }
        if self.per_bucket > 0 {
            self.move_window(is_deletion);
            self.needs_compaction =
                self.most >= self.rules.deletion_trigger && file_size >= self.rules.min_file_size;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        if self.by_ratio && self.entries > 0 && self.file_size >= self.rules.min_file_size {
            self.needs_compaction |= self.deletions as f64 / self.entries as f64 >= self.rules.deletion_ratio;
        }
        Ok(Vec::new())
    }

    fn needs_compaction(&self) -> bool {
        self.needs_compaction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict of `rules` on a table with these entries: `d` a deletion, anything else a value; each is ten
    /// bytes.
    fn marks(rules: CompactOnDeletion, entries: &str) -> bool {
        let Some(mut collector) = rules.create(CfId(0), None) else { return false };
        for (at, entry) in entries.chars().enumerate() {
            let kind = if entry == 'd' { EntryKind::Delete } else { EntryKind::Put };
            collector.add(b"k", b"", kind, SeqNum(1), at as u64 * 10).unwrap();
        }
        collector.finish().unwrap();
        collector.needs_compaction()
    }

    fn window(window_size: usize, deletion_trigger: usize) -> CompactOnDeletion {
        CompactOnDeletion { window_size, deletion_trigger, ..CompactOnDeletion::default() }
    }

    #[test]
    fn deletions_that_stand_together_mark_a_table() {
        assert!(marks(window(128, 3), "vvdddvv"));
        assert!(marks(window(128, 3), "dvvdvvd"), "within one window");
        assert!(!marks(window(128, 4), "vvdddvv"));
        let apart = format!("d{}d{}d", "v".repeat(200), "v".repeat(200));
        assert!(!marks(window(128, 2), &apart), "never two in one window");
        assert!(!marks(window(0, 0), "ddd"), "no rule");
    }

    #[test]
    fn a_share_of_deletions_marks_a_table() {
        let ratio = |deletion_ratio| CompactOnDeletion { deletion_ratio, ..CompactOnDeletion::default() };
        assert!(marks(ratio(0.5), "dvdv"));
        assert!(!marks(ratio(0.51), "dvdv"));
        assert!(!marks(ratio(1.5), "dddd"), "no rule");
        assert!(!marks(ratio(0.5), ""));
    }

    #[test]
    fn small_tables_are_left_alone() {
        let sized = |min_file_size| CompactOnDeletion { min_file_size, ..window(128, 2) };
        assert!(marks(sized(50), "ddvvvvvv"), "it grows to that size later");
        assert!(!marks(sized(500), "ddvvvvvv"));
    }
}
