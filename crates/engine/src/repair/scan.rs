//! Reading tables: first what they say of themselves, then every entry.

use super::structure::KnownTable;
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use crate::table_bounds::boundaries;
use crate::table_cache::read_back;
use outcrop_base::keys::ParsedKey;
use outcrop_base::{CfId, Comparator, Error, Result, SeqNum, ValueType, wide_columns};
use outcrop_env::{Access, Env, OpenRead};
use outcrop_manifest::{FileNumber, Garbage, TableFile, TableMeta, file_name};
use outcrop_table::blob::{BlobIndex, record_len};
use outcrop_table::{TableReader, TableReaderOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A table that can be opened.
pub struct Opened {
    /// Its number.
    pub number: FileNumber,
    /// Its column family: as the MANIFEST has it, else as it says itself.
    pub family: CfId,
    /// The name it has for that column family; `None` if the MANIFEST knows better, or it names none.
    pub family_name: Option<String>,
    /// Name of its order of keys.
    pub comparator: String,
    /// Its level, if the MANIFEST has one.
    pub level: Option<u32>,
    /// The MANIFEST's description of it.
    pub known: Option<Arc<TableFile>>,
}

/// A table whose entries were all read.
pub struct Scanned {
    /// The description of it that a MANIFEST will have.
    pub file: Arc<TableFile>,
    /// Its level, if the MANIFEST had one.
    pub level: Option<u32>,
    /// Entries, range tombstones included.
    pub entries: u64,
    /// The values in blob files that it refers to.
    pub blobs: BTreeMap<FileNumber, Garbage>,
}

/// Opens a table for what it says of itself.
///
/// # Errors
/// Why it cannot be opened.
pub fn look_into(path: &Path, env: &Env, number: FileNumber, known: Option<&KnownTable>) -> Result<Opened> {
    let table = open(path, env, number, Comparator::Bytewise, known.map(|known| &*known.file))?;
    let properties = table.properties();
    let id = properties.column_family_id;
    let (family, family_name) = match known {
        Some(known) => (known.family, None),
        None if id == u64::from(CfId::UNKNOWN.0) => (CfId::DEFAULT, None),
        None => {
            let wrong = || Error::corruption(format!("its column family is said to be {id}"));
            (CfId(u32::try_from(id).map_err(|_| wrong())?), Some(properties.column_family_name.clone()))
        }
    };
    Ok(Opened {
        number,
        family,
        family_name,
        comparator: properties.comparator_name.clone(),
        level: known.map(|known| known.level),
        known: known.map(|known| known.file.clone()),
    })
}

/// Reads every entry of a table, and with them what the MANIFEST has to say of it.
///
/// # Errors
/// Corruption where it is damaged.
pub fn scan(ctx: &DbContext, cf: &ColumnFamily, opened: &Opened) -> Result<Scanned> {
    let known = opened.known.as_deref();
    let table = Arc::new(open(&ctx.path, &ctx.env, opened.number, cf.comparator.clone(), known)?);
    let mut sums = Sums::default();
    read_back(&table, |key, value| sums.add(&cf.comparator, key, value))?;
    let tombstones = table.range_tombstones();
    tombstones.iter().for_each(|tombstone| sums.number(tombstone.seq));
    sums.check(table.properties().num_entries, tombstones.len() as u64)?;
    let mut meta = match known {
        Some(known) => known.meta.clone(),
        None => {
            let (smallest, largest) = boundaries(&table, &cf.comparator)?;
            let properties = table.properties();
            let mut meta = TableMeta {
                number: opened.number,
                smallest: smallest.into(),
                largest: largest.into(),
                oldest_ancestor_time: properties.creation_time,
                creation_time: ctx.env.clock.now_micros() / 1_000_000,
                tail_size: table.file().size().saturating_sub(properties.data_size),
                unique_id: Some(table.unique_id()),
                ..TableMeta::default()
            };
            (meta.smallest_seq, meta.largest_seq) = (sums.smallest_seq.unwrap_or_default(), sums.largest_seq);
            meta
        }
    };
    meta.size = table.file().size();
    Ok(Scanned {
        file: Arc::new(meta.into()),
        level: opened.level,
        entries: sums.entries + tombstones.len() as u64,
        blobs: sums.blobs,
    })
}

fn open(
    path: &Path,
    env: &Env,
    number: FileNumber,
    comparator: Comparator,
    known: Option<&TableFile>,
) -> Result<TableReader> {
    let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
    let file = env.fs.open_read(&file_name::table(path, number), read)?;
    TableReader::open(
        file,
        TableReaderOptions {
            expected_unique_id: known.and_then(|known| known.unique_id),
            largest_seqno: known.map_or(SeqNum::MAX, |known| known.largest_seq),
            ..TableReaderOptions::uncached(comparator)
        },
    )
}

/// The facts that are found out entry by entry.
#[derive(Default)]
struct Sums {
    entries: u64,
    smallest_seq: Option<SeqNum>,
    largest_seq: SeqNum,
    blobs: BTreeMap<FileNumber, Garbage>,
    last_key: Vec<u8>,
    error: Option<Error>,
}

impl Sums {
    fn add(&mut self, comparator: &Comparator, key: &[u8], value: &[u8]) {
        if self.error.is_none() {
            self.error = self.take(comparator, key, value).err();
        }
    }

    fn take(&mut self, comparator: &Comparator, key: &[u8], value: &[u8]) -> Result<()> {
        let parsed = ParsedKey::parse(key)?;
        if self.entries > 0 && comparator.compare_internal(&self.last_key, key).is_ge() {
            return Err(Error::corruption(format!("entry {} is not after the one before", self.entries)));
        }
        let mut refer = |index: &[u8]| {
            let index = BlobIndex::decode(index)?;
            let of_file = self.blobs.entry(index.file_number).or_default();
            of_file.count += 1;
            let bytes = record_len(parsed.user_key.len(), index.size);
            of_file.bytes = of_file.bytes.saturating_add(bytes);
            Ok(())
        };
        match parsed.value_type {
            ValueType::BlobIndex => refer(value)?,
            ValueType::WideColumnEntity => wide_columns::each_blob(value, refer)?,
            _ => {}
        }
        self.number(parsed.seq);
        self.entries += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    fn number(&mut self, seq: SeqNum) {
        self.smallest_seq = Some(self.smallest_seq.map_or(seq, |smallest| smallest.min(seq)));
        self.largest_seq = self.largest_seq.max(seq);
    }

    /// Fails if an entry was wrong, or there are fewer than `expected` with `tombstones`.
    fn check(&mut self, expected: u64, tombstones: u64) -> Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let found = self.entries + tombstones;
        // Very old tables do not say how many they have.
        if expected != 0 && found < expected {
            return Err(Error::corruption(format!("it has {found} entries and says {expected}")));
        }
        Ok(())
    }
}
