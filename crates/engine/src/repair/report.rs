//! The report of a repair: all that it found, kept and lost.

use outcrop_base::{CfId, SeqNum};
use std::fmt;
use std::path::PathBuf;

/// The outcome for a database that was repaired: [`crate::DbBuilder::repair`].
///
/// ```
/// # use outcrop::{Db, Env, RepairOptions};
/// # let env = Env::memory();
/// # let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// # db.put("apple", "red")?;
/// # db.close()?;
/// let report = Db::builder("/db").env(env).repair(&RepairOptions::default())?;
/// assert!(report.is_lossless());
/// assert_eq!(report.families[0].name, "default");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// The part of the MANIFEST that could be used.
    pub structure: StructureFound,
    /// Column families that the database has now, by id.
    pub families: Vec<RepairedFamily>,
    /// Files that were moved into `lost/`, by path.
    pub moved: Vec<MovedFile>,
    /// Tables and blob files that the MANIFEST or a table names and that are not there.
    pub missing: Vec<String>,
    /// WALs that were converted, oldest first.
    pub wals: Vec<RepairedWal>,
    /// Blob values whose file is gone: reading these keys says Corruption.
    pub blob_values_lost: u64,
    /// Names of transactions that are prepared and not decided. They still are.
    pub prepared: Vec<Vec<u8>>,
    /// The last sequence number in use.
    pub last_sequence: SeqNum,
}

/// The part of the MANIFEST that a repair could use.
///
/// ```
/// use outcrop::StructureFound;
///
/// assert_eq!(StructureFound::default(), StructureFound::Missing);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StructureFound {
    /// There was none: everything was learned from the tables.
    #[default]
    Missing,
    /// It was read up to damage, or files are there that it does not know.
    Part(String),
    /// It was read to its end and knows all files.
    Whole,
}

/// A column family after a repair.
///
/// ```
/// fn tables(report: &outcrop::RepairReport) -> usize {
///     report.families.iter().map(|family| family.tables).sum()
/// }
/// # assert_eq!(tables(&outcrop::RepairReport::default()), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairedFamily {
    /// Its id.
    pub id: CfId,
    /// Its name.
    pub name: String,
    /// Its tables, those made of WALs among them.
    pub tables: usize,
    /// Entries in them, range tombstones included.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Its tables are on the levels where they were. Otherwise all are in level 0, in the order of what they say of the same keys.
    pub levels_kept: bool,
    /// Tables in level 0 say contrary things about which is newer; they were ordered by their largest sequence numbers, as RocksDB
    /// does, and older values of some keys may hide newer ones.
    pub order_unclear: bool,
}

/// A file that a repair moved.
///
/// ```
/// fn reasons(report: &outcrop::RepairReport) -> Vec<&str> {
///     report.moved.iter().filter(|file| file.held_data).map(|file| &file.reason[..]).collect()
/// }
/// # assert!(reasons(&outcrop::RepairReport::default()).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedFile {
    /// Where it was.
    pub path: PathBuf,
    /// Where it is.
    pub now: PathBuf,
    /// Why.
    pub reason: String,
    /// The database lost what it held. False for files whose contents were taken over, or were obsolete.
    pub held_data: bool,
}

/// A WAL that was converted.
///
/// ```
/// fn damaged(report: &outcrop::RepairReport) -> usize {
///     report.wals.iter().filter(|wal| !wal.damage.is_empty()).count()
/// }
/// # assert_eq!(damaged(&outcrop::RepairReport::default()), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairedWal {
    /// Its number.
    pub number: u64,
    /// Writes that were read.
    pub writes: u64,
    /// Of these, writes that are in new tables of level 0.
    pub recovered: u64,
    /// Writes to column families of which nothing is known but the id. They are in `lost/` only.
    pub homeless: u64,
    /// Writes of which nobody can tell whether a table that shows no sequence numbers has them already, or later ones of the same key: merge
    /// operands were left out, others taken over.
    pub unclear: u64,
    /// Writes over entries without sequence numbers that were taken over, or left out, as what WALs and tables hold makes it seem right. It
    /// is, if the newest WALs are among those that are there, and no value was written twice.
    pub presumed: u64,
    /// The keys of those two kinds, each with the name of its column family; the first 1000. Of one that was merged an operand may count
    /// twice or be missing; of another an older value may be shown. Compare them with what should be there.
    pub doubtful_keys: Vec<(String, Vec<u8>)>,
    /// The damage that was passed over, and its places. Later writes were recovered all the same.
    pub damage: Vec<String>,
}

impl RepairReport {
    /// True if nothing that was readable before the repair is unreadable after, as far as files tell: no table, blob file or part of
    /// a WAL was damaged or missing.
    pub fn is_lossless(&self) -> bool {
        let whole = |wal: &RepairedWal| wal.damage.is_empty() && wal.homeless == 0 && wal.unclear == 0;
        !self.moved.iter().any(|file| file.held_data)
            && self.missing.is_empty()
            && self.blob_values_lost == 0
            && self.wals.iter().all(whole)
            && !self.families.iter().any(|family| family.order_unclear)
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.structure {
            StructureFound::Missing => writeln!(f, "MANIFEST: none that could be used")?,
            StructureFound::Part(why) => writeln!(f, "MANIFEST: used in part: {why}")?,
            StructureFound::Whole => writeln!(f, "MANIFEST: read whole")?,
        }
        for family in &self.families {
            let order = match (family.levels_kept, family.order_unclear) {
                (true, _) => "levels kept",
                (false, false) => "all in level 0",
                (false, true) => "all in level 0, of unclear age",
            };
            writeln!(
                f,
                "column family {} ({}): {} tables, {} entries, {} bytes, {order}",
                family.name, family.id, family.tables, family.entries, family.bytes
            )?;
        }
        for wal in &self.wals {
            writeln!(
                f,
                "WAL {:06}.log: {} writes, {} recovered, {} to unknown column families, {} unclear, {} presumed",
                wal.number, wal.writes, wal.recovered, wal.homeless, wal.unclear, wal.presumed
            )?;
            for (family, key) in &wal.doubtful_keys {
                let key = String::from_utf8_lossy(key);
                writeln!(
                    f,
                    "  doubtful, compare it with what should be there: key {key:?} of column family {family}"
                )?;
            }
            wal.damage.iter().try_for_each(|damage| writeln!(f, "  passed over: {damage}"))?;
        }
        for name in &self.prepared {
            writeln!(f, "prepared and not decided: {}", String::from_utf8_lossy(name))?;
        }
        for file in &self.moved {
            let kind = if file.held_data { "lost" } else { "moved" };
            writeln!(f, "{kind}: {} is {} now: {}", file.path.display(), file.now.display(), file.reason)?;
        }
        self.missing.iter().try_for_each(|what| writeln!(f, "missing: {what}"))?;
        if self.blob_values_lost > 0 {
            writeln!(f, "values without their blob file: {}", self.blob_values_lost)?;
        }
        writeln!(f, "last sequence number: {}", self.last_sequence)
    }
}
