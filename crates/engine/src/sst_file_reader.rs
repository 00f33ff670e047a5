//! Reading one table outside any database: its rows as a database that has nothing else would show them.
//!
//! ```text
//! cursor: find the first entry of a key -> its versions, newest first -> value, or the next key
//! ```
//! The iterator below stands behind the versions of the key that the cursor is at: `next` goes on from there, `prev` seeks the key again.
//! Source: RocksDB `table/sst_file_reader.cc`.

use crate::column_family::ColumnFamilyDescriptor;
use crate::in_force::resolve_objects;
use crate::read::merge::{Base, MergeOperands, Merged};
use crate::read::options::ReadOptions;
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Comparator, Error, Fragments, MergeOperator, Result, SeqNum, ValueType, wide_columns};
use outcrop_env::{Access, Env, OpenRead};
use outcrop_table::{Loading, TableIter, TableIterOptions, TableProperties, TableReader, TableReaderOptions};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads one table file, also of a database that is open elsewhere.
///
/// ```
/// # use outcrop::{ColumnFamilyDescriptor, Env, ReadOptions, SstFileReader, SstFileWriter};
/// # let env = Env::memory();
/// # env.fs.create_dir_all(std::path::Path::new("/files"))?;
/// let family = ColumnFamilyDescriptor::default();
/// let mut writer = SstFileWriter::create("/files/1.sst", &env, &family)?;
/// writer.put(b"a", b"1")?;
/// writer.finish()?;
///
/// let table = SstFileReader::open("/files/1.sst", &env, &family)?;
/// table.verify_checksums()?;
/// assert_eq!(table.properties().num_entries, 1);
/// let mut rows = table.cursor(&ReadOptions::default());
/// rows.seek_to_first();
/// assert_eq!((rows.key(), rows.value()), (&b"a"[..], &b"1"[..]));
/// # outcrop::Result::Ok(())
/// ```
pub struct SstFileReader {
    path: PathBuf,
    env: Env,
    table: Arc<TableReader>,
    comparator: Comparator,
    operator: Option<Arc<dyn MergeOperator>>,
    tombstones: Arc<Fragments>,
}

impl SstFileReader {
    /// Opens the table at `path`, of a column family like `descriptor` (its name does not matter).
    ///
    /// # Errors
    /// IoError; Corruption; InvalidArgument if its keys are in another order; NotSupported for keys with timestamps.
    pub fn open(
        path: impl AsRef<Path>,
        env: &Env,
        descriptor: &ColumnFamilyDescriptor,
    ) -> Result<SstFileReader> {
        let mut descriptor = descriptor.clone();
        resolve_objects(&mut descriptor)?;
        let comparator = descriptor.parts.comparator.clone();
        if comparator.timestamp_len() > 0 {
            return Err(Error::not_supported("reading a table of keys with timestamps by itself"));
        }
        let (path, env) = (path.as_ref().to_path_buf(), env.clone());
        let table = open_table(&path, &env, &comparator)?;
        let order = &table.properties().comparator_name;
        if !order.is_empty() && order != comparator.name() {
            let own = comparator.name();
            return Err(Error::invalid_argument(format!("the table is in the order {order}, not in {own}")));
        }
        let tombstones = Arc::new(Fragments::new(table.range_tombstones(), &comparator));
        let operator = descriptor.parts.merge_operator.clone();
        Ok(SstFileReader { path, env, table: Arc::new(table), comparator, operator, tombstones })
    }

    /// Facts that the table has about itself.
    pub fn properties(&self) -> &TableProperties {
        self.table.properties()
    }

    /// Reads every block from the file and verifies it.
    ///
    /// # Errors
    /// Corruption naming file and offset of the first damaged block; IoError.
    pub fn verify_checksums(&self) -> Result<()> {
        // Opened anew: what was read before is not looked at again.
        let table = Arc::new(open_table(&self.path, &self.env, &self.comparator)?);
        let options = TableIterOptions {
            loading: Loading::NotKept,
            readahead_bytes: 1 << 20,
            ..TableIterOptions::default()
        };
        let mut iter = table.iter(options);
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status()
    }

    /// A cursor over the rows: the newest version of each key that is not deleted, with merge operands applied. Range deletions of the
    /// table count, which RocksDB's reader passes over. Of `options` the bounds, the read-ahead, `verify_checksums` and the
    /// number of a snapshot count. It is at no row yet.
    pub fn cursor(&self, options: &ReadOptions) -> SstFileCursor {
        let verified = Loading::NotKept;
        let table_options = TableIterOptions {
            loading: if options.verify_checksums { verified } else { verified.unverified() },
            readahead_bytes: options.readahead_size,
            ..TableIterOptions::default()
        };
        SstFileCursor {
            iter: self.table.iter(table_options),
            comparator: self.comparator.clone(),
            operator: self.operator.clone(),
            tombstones: self.tombstones.clone(),
            at_most: options.snapshot.as_ref().map_or(SeqNum::MAX, |snapshot| snapshot.sequence()),
            lower: options.iterate_lower_bound.clone(),
            upper: options.iterate_upper_bound.clone(),
            key: Vec::new(),
            value: Vec::new(),
            valid: false,
            status: Ok(()),
        }
    }
}

fn open_table(path: &Path, env: &Env, comparator: &Comparator) -> Result<TableReader> {
    let file = env.fs.open_read(path, OpenRead { access: Access::Random, ..OpenRead::default() })?;
    TableReader::open(file, TableReaderOptions::uncached(comparator.clone()))
}

/// The rows of one table: see [`SstFileReader::cursor`].
///
/// ```
/// # use outcrop::{ColumnFamilyDescriptor, Env, ReadOptions, SstFileCursor, SstFileReader, SstFileWriter};
/// # let env = Env::memory();
/// # env.fs.create_dir_all(std::path::Path::new("/files"))?;
/// # let family = ColumnFamilyDescriptor::default();
/// # let mut writer = SstFileWriter::create("/files/1.sst", &env, &family)?;
/// # writer.put(b"a", b"1")?;
/// # writer.put(b"c", b"3")?;
/// # writer.finish()?;
/// let mut rows: SstFileCursor = SstFileReader::open("/files/1.sst", &env, &family)?.cursor(&ReadOptions::default());
/// rows.seek(b"b");
/// assert!(rows.valid() && rows.key() == b"c");
/// rows.prev();
/// assert_eq!(rows.key(), b"a");
/// rows.prev();
/// assert!(!rows.valid());
/// rows.status()?; // The end, not an error.
/// # outcrop::Result::Ok(())
/// ```
pub struct SstFileCursor {
    iter: TableIter,
    comparator: Comparator,
    operator: Option<Arc<dyn MergeOperator>>,
    tombstones: Arc<Fragments>,
    at_most: SeqNum,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    key: Vec<u8>,
    value: Vec<u8>,
    valid: bool,
    status: Result<()>,
}

impl SstFileCursor {
    /// True if it is at a row.
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Ok at a row and behind the last one.
    ///
    /// # Errors
    /// Why it is at none: IoError; Corruption; those of merging; NotSupported for a value in a blob file.
    pub fn status(&self) -> Result<()> {
        self.status.clone()
    }

    /// The key of the row; empty at none.
    pub fn key(&self) -> &[u8] {
        if self.valid { &self.key } else { &[] }
    }

    /// Its value, the default column of an entity; empty at none.
    pub fn value(&self) -> &[u8] {
        if self.valid { &self.value } else { &[] }
    }

    /// Goes to the first row.
    pub fn seek_to_first(&mut self) {
        match self.lower.clone() {
            Some(lower) => self.iter.seek(&lower, newest()),
            None => self.iter.seek_to_first(),
        }
        self.settle_forward();
    }

    /// Goes to the last row.
    pub fn seek_to_last(&mut self) {
        match self.upper.clone() {
            Some(upper) => self.step_before(&upper),
            None => self.iter.seek_to_last(),
        }
        self.settle_backward();
    }

    /// Goes to the first row whose key is `key` or comes after it.
    pub fn seek(&mut self, key: &[u8]) {
        let from = match &self.lower {
            Some(lower) if self.comparator.compare(key, lower).is_lt() => lower.clone(),
            _ => key.to_vec(),
        };
        self.iter.seek(&from, newest());
        self.settle_forward();
    }

    /// Goes to the last row whose key is `key` or comes before it.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        match &self.upper {
            Some(upper) if self.comparator.compare(key, upper).is_ge() => return self.seek_to_last(),
            _ => self.iter.seek_for_prev(key, oldest()),
        }
        self.settle_backward();
    }

    /// Goes to the next row. At none it stays there.
    #[allow(clippy::should_implement_trait, reason = "the name is that of every cursor")]
    pub fn next(&mut self) {
        if self.valid {
            self.settle_forward();
        }
    }

    /// Goes to the row before. At none it stays there.
    pub fn prev(&mut self) {
        if self.valid {
            let key = std::mem::take(&mut self.key);
            self.step_before(&key);
            self.settle_backward();
        }
    }

    /// The iterator goes to the last entry before those of `key`. After an error it stays where it is, at none.
    fn step_before(&mut self, key: &[u8]) {
        self.iter.seek(key, newest());
        if self.iter.valid() {
            self.iter.prev();
        } else if self.iter.status().is_ok() {
            self.iter.seek_to_last();
        }
    }

    /// Goes to the next row, the iterator being at the first entry of a key.
    fn settle_forward(&mut self) {
        (self.valid, self.status) = (false, Ok(()));
        while self.iter.valid() {
            self.take_key();
            if self.upper.as_ref().is_some_and(|upper| self.comparator.compare(&self.key, upper).is_ge()) {
                return;
            }
            if self.take_value() {
                return;
            }
        }
        self.end();
    }

    /// Goes to the row before, the iterator being at any entry of a key.
    fn settle_backward(&mut self) {
        (self.valid, self.status) = (false, Ok(()));
        while self.iter.valid() {
            self.take_key();
            if self.lower.as_ref().is_some_and(|lower| self.comparator.compare(&self.key, lower).is_lt()) {
                return;
            }
            let key = self.key.clone();
            self.iter.seek(&key, newest());
            if self.take_value() {
                return;
            }
            self.step_before(&key);
        }
        self.end();
    }

    fn take_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(split(self.iter.key()).0);
    }

    /// True if the search ends: the key has a value, or reading it failed. The iterator is at the entry behind it.
    fn take_value(&mut self) -> bool {
        match self.look_up() {
            Ok(Some(value)) => (self.value, self.valid) = (value, true),
            Ok(None) => return false,
            Err(error) => self.status = Err(error),
        }
        true
    }

    fn end(&mut self) {
        self.status = self.iter.status();
    }

    /// The value of `self.key`, at whose first entry the iterator is.
    fn look_up(&mut self) -> Result<Option<Vec<u8>>> {
        let mut operands = MergeOperands::default();
        let mut base: Option<Base<'static>> = None;
        let covered = self.tombstones.covering(&self.comparator, &self.key, self.at_most);
        while self.iter.valid() {
            let (user_key, trailer) = split(self.iter.key());
            if self.comparator.compare(user_key, &self.key).is_ne() {
                break;
            }
            let seq = trailer.seq();
            if base.is_none() && seq <= self.at_most {
                let value = self.iter.value();
                base = match trailer
                    .value_type()
                    .ok_or_else(|| Error::corruption("an entry of an unknown type"))?
                {
                    _ if seq < covered => Some(Base::None),
                    ValueType::Value => Some(Base::Plain(Cow::Owned(value.to_vec()))),
                    ValueType::WideColumnEntity => Some(Base::Entity(Cow::Owned(value.to_vec()))),
                    ValueType::Deletion | ValueType::SingleDeletion => Some(Base::None),
                    ValueType::Merge => {
                        operands.push_older(value);
                        None
                    }
                    other => return Err(Error::not_supported(format!("{other:?} in a table by itself"))),
                };
            }
            self.iter.next();
        }
        self.iter.status()?;
        let base = base.unwrap_or(Base::None);
        if operands.is_empty() {
            return match base {
                Base::None => Ok(None),
                Base::Plain(value) => Ok(Some(value.into_owned())),
                Base::Entity(entity) => default_column(&entity).map(Some),
            };
        }
        match operands.apply(self.operator.as_deref(), &self.key, &base)? {
            Merged::Plain(value) => Ok(Some(value)),
            Merged::Entity(entity) => default_column(&entity).map(Some),
        }
    }
}

fn default_column(entity: &[u8]) -> Result<Vec<u8>> {
    Ok(wide_columns::default_column(entity)?.map_or_else(Vec::new, |column| column.value.to_vec()))
}

/// Before all versions of a key.
fn newest() -> Trailer {
    Trailer::new(SeqNum::MAX, ValueType::FOR_SEEK)
}

/// Behind them.
fn oldest() -> Trailer {
    Trailer::new(SeqNum::ZERO, ValueType::FOR_SEEK_BACKWARD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column_family::DEFAULT_COLUMN_FAMILY;
    use crate::db::Db;
    use crate::sst_file_writer::SstFileWriter;
    use outcrop_base::{ErrorKind, builtin_merge};
    use outcrop_env::OpenWrite;

    fn family() -> ColumnFamilyDescriptor {
        let operator = builtin_merge::by_name("stringappend").unwrap();
        ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY).with_merge_operator(operator)
    }

    /// A table of a database, with several versions of its keys and all kinds of entries.
    fn table(env: &Env) -> PathBuf {
        let builder = Db::builder("/db").env(env.clone()).create_if_missing(true);
        let db = builder.column_family(family()).open().unwrap();
        for key in ["a", "b", "d", "f", "h"] {
            db.put(key, "old").unwrap();
        }
        // It keeps the old versions.
        let snapshot = db.snapshot();
        db.delete("b").unwrap();
        db.merge("c", "1").unwrap();
        db.merge("c", "2").unwrap();
        db.put("d", "new").unwrap();
        db.delete_range("e", "g").unwrap();
        db.put("ee", "after").unwrap();
        db.merge("f", "3").unwrap();
        db.put_entity("g", &[("", "default"), ("other", "2")]).unwrap();
        db.flush().unwrap();
        drop(snapshot);
        let file = &db.live_files()[0];
        file.directory.join(&file.name)
    }

    const ROWS: [(&str, &str); 7] = [
        ("a", "old"),
        ("c", "1,2"),
        ("d", "new"),
        ("ee", "after"),
        ("f", "3"),
        ("g", "default"),
        ("h", "old"),
    ];

    fn row(cursor: &SstFileCursor) -> Option<(String, String)> {
        cursor.status().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        cursor.valid().then(|| (text(cursor.key()), text(cursor.value())))
    }

    fn expected(place: Option<usize>) -> Option<(String, String)> {
        place.and_then(|place| ROWS.get(place)).map(|(key, value)| (key.to_string(), value.to_string()))
    }

    #[test]
    fn a_table_shows_its_rows_in_both_directions_and_from_any_key() {
        let env = Env::memory();
        let reader = SstFileReader::open(table(&env), &env, &family()).unwrap();
        reader.verify_checksums().unwrap();
        let mut cursor = reader.cursor(&ReadOptions::default());
        assert_eq!(row(&cursor), None);
        for from in ["", "a", "aa", "b", "c", "d", "e", "ee", "f", "ff", "g", "h", "i"] {
            let at = ROWS.iter().position(|(key, _)| *key >= from).unwrap_or(ROWS.len());
            cursor.seek(from.as_bytes());
            assert_eq!(row(&cursor), expected(Some(at)), "seek {from}");
            if cursor.valid() {
                cursor.next();
                assert_eq!(row(&cursor), expected(Some(at + 1)), "next of {from}");
                cursor.seek(from.as_bytes());
                cursor.prev();
                assert_eq!(row(&cursor), expected(at.checked_sub(1)), "prev of {from}");
            }
            let at = ROWS.iter().rposition(|(key, _)| *key <= from);
            cursor.seek_for_prev(from.as_bytes());
            assert_eq!(row(&cursor), expected(at), "seek for prev {from}");
            if cursor.valid() {
                cursor.next();
                assert_eq!(row(&cursor), expected(at.map(|at| at + 1)), "next after {from}");
            }
        }
        cursor.seek_to_first();
        assert_eq!(row(&cursor), expected(Some(0)));
        cursor.seek_to_last();
        assert_eq!(row(&cursor), expected(Some(ROWS.len() - 1)));
        let options = ReadOptions {
            iterate_lower_bound: Some(b"c".to_vec()),
            iterate_upper_bound: Some(b"f".to_vec()),
            ..ReadOptions::default()
        };
        let mut bounded = reader.cursor(&options);
        bounded.seek(b"a");
        assert_eq!(row(&bounded), expected(Some(1)));
        bounded.prev();
        assert_eq!(row(&bounded), None);
        bounded.seek_for_prev(b"z");
        assert_eq!(row(&bounded), expected(Some(3)));
        bounded.next();
        assert_eq!(row(&bounded), None);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_no_end() {
        let env = Env::memory();
        let path = table(&env);
        let reader = SstFileReader::open(&path, &env, &ColumnFamilyDescriptor::default()).unwrap();
        let mut cursor = reader.cursor(&ReadOptions::default());
        cursor.seek(b"b");
        assert!(!cursor.valid());
        assert_eq!(cursor.status().unwrap_err().kind(), ErrorKind::InvalidArgument, "no merge operator");
        let backwards = family().with_comparator(Comparator::ReverseBytewise);
        let refused = SstFileReader::open(&path, &env, &backwards).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        // A byte of its first block.
        let mut bytes = env.fs.read_all(&path).unwrap();
        bytes[10] ^= 1;
        let mut file = env.fs.create(Path::new("/damaged"), OpenWrite::default()).unwrap();
        file.append(&bytes).unwrap();
        file.close().unwrap();
        let reader = SstFileReader::open("/damaged", &env, &family()).unwrap();
        assert_eq!(reader.verify_checksums().unwrap_err().kind(), ErrorKind::Corruption);
        let mut cursor = reader.cursor(&ReadOptions::default());
        cursor.seek_to_first();
        assert!(!cursor.valid());
        assert_eq!(cursor.status().unwrap_err().kind(), ErrorKind::Corruption);
    }
    #[test]
    fn a_block_that_cannot_be_read_ends_every_walk_that_comes_to_it() {
        let env = Env::memory();
        let mut family = family();
        family.options.table.block_size = 200;
        family.options.compression = outcrop_options::CompressionType::None;
        env.fs.create_dir_all(Path::new("/files")).unwrap();
        let mut writer = SstFileWriter::create("/files/whole", &env, &family).unwrap();
        let key = |number: usize| format!("k{number:03}");
        (0..200).for_each(|i| writer.put(key(i).as_bytes(), format!("value of {i:03}").as_bytes()).unwrap());
        writer.finish().unwrap();
        let mut bytes = env.fs.read_all(Path::new("/files/whole")).unwrap();
        let damaged = b"value of 100";
        let at = bytes.windows(damaged.len()).position(|window| window == damaged).unwrap();
        bytes[at] ^= 1;
        let mut file = env.fs.create(Path::new("/files/damaged"), OpenWrite::default()).unwrap();
        file.append(&bytes).unwrap();
        file.close().unwrap();
        let reader = SstFileReader::open("/files/damaged", &env, &family).unwrap();
        let open = |upper: Option<&str>| {
            let iterate_upper_bound = upper.map(|upper| upper.as_bytes().to_vec());
            reader.cursor(&ReadOptions { iterate_upper_bound, ..ReadOptions::default() })
        };
        let fails = |cursor: &SstFileCursor, what: &str| {
            assert!(!cursor.valid(), "{what} shows {:?}", String::from_utf8_lossy(cursor.key()));
            assert_eq!(cursor.status().unwrap_err().kind(), ErrorKind::Corruption, "{what}");
        };
        let mut cursor = open(Some("k100"));
        cursor.seek_to_last();
        fails(&cursor, "seek_to_last");
        cursor.seek_for_prev(b"k150");
        fails(&cursor, "seek_for_prev beyond the bound");
        let mut cursor = open(None);
        cursor.seek(b"k100");
        fails(&cursor, "seek");
        cursor.seek_for_prev(b"k100");
        fails(&cursor, "seek_for_prev");
        // Walks from both ends come to the same block.
        let walk = |seek: fn(&mut SstFileCursor), step: fn(&mut SstFileCursor)| {
            let (mut cursor, mut rows) = (open(None), 0);
            seek(&mut cursor);
            while cursor.valid() {
                rows += 1;
                step(&mut cursor);
            }
            fails(&cursor, "a walk");
            rows
        };
        let forward = walk(SstFileCursor::seek_to_first, SstFileCursor::next);
        let backward = walk(SstFileCursor::seek_to_last, SstFileCursor::prev);
        assert!((80..=100).contains(&forward) && (80..100).contains(&backward), "{forward}, {backward}");
    }
}
