//! Lookups of keys that have user-defined timestamps.
//!
//! ```text
//! key, read at 20  ->  seek to | key | 20 |:   (key, 25)  [(key, 17)]  (key, 9)
//! ```
//! Sources are asked newest first, and the first that has a visible version ends the lookup: the versions of a key have to be
//! written in the order of their timestamps, as RocksDB demands. Each source is asked by an iterator: the block indexes by hash and by
//! prefix of other lookups know keys as they are stored.
//! Source: RocksDB `DBImpl::GetImpl`, `MemTable::Get`.

use super::merge::unsupported_type;
use super::options::ReadOptions;
use super::source::Source;
use super::value::{FoundValue, PinnedValue, WideColumns};
use super::view::ReadView;
use crate::column_family::ColumnFamily;
use crate::column_family::{enables_timestamp, no_timestamps};
use crate::superversion::SuperVersion;
use outcrop_base::keys::{Trailer, split, user_key};
use outcrop_base::timestamp::{split_timestamp, stored_key};
use outcrop_base::{Error, Result, Timestamp, ValueType, wide_columns};
use outcrop_manifest::TableFile;
use outcrop_table::TableIterOptions;

/// A version that was found.
pub struct Version {
    /// Its value, encoded as it is stored.
    pub(crate) value: FoundValue,
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// Its stored key.
    stored: Vec<u8>,
}

/// The timestamp to read `cf` at, whose sources are `sources`; `None` if it has no timestamps.
///
/// # Errors
/// InvalidArgument if the options lack the one that is needed, have one that is not wanted, or one below which versions may be gone.
pub fn read_timestamp(
    cf: &ColumnFamily,
    sources: &SuperVersion,
    options: &ReadOptions,
) -> Result<Option<Timestamp>> {
    let wants = options.timestamp.is_some() || options.iter_start_timestamp.is_some();
    let read = match (cf.has_timestamps(), options.timestamp) {
        (false, _) if wants => return Err(no_timestamps(cf)),
        (false, _) => return Ok(None),
        (true, None) => return Err(enables_timestamp(cf)),
        (true, Some(read)) => read,
    };
    match sources.full_history_low {
        Some(low) if cf.comparator.compare_timestamps(read, low).is_lt() => {
            let (read, low) = (cf.comparator.timestamp_text(read), cf.comparator.timestamp_text(low));
            let what = format!("Read timestamp: {read} is smaller than full_history_ts_low: {low}\n");
            Err(Error::invalid_argument(what))
        }
        _ => Ok(Some(read)),
    }
}

/// The value of `key` at the timestamp of the view's options, and the version's own timestamp.
#[cold]
pub fn get(view: &ReadView<'_>, key: &[u8]) -> Result<Option<(PinnedValue, Timestamp)>> {
    let Some(found) = find(view, key)? else { return Ok(None) };
    let fetch = |index: &[u8]| view.fetch(&found.stored, index);
    Ok(Some((found.value.value(fetch)?, found.timestamp)))
}

/// The columns of `key` at the timestamp of the view's options.
#[cold]
pub fn get_entity(view: &ReadView<'_>, key: &[u8]) -> Result<Option<WideColumns>> {
    let Some(found) = find(view, key)? else { return Ok(None) };
    match found.value {
        FoundValue::Plain(value) => Ok(Some(WideColumns::plain(&value))),
        FoundValue::Entity(entity) => {
            let fetch = |index: &[u8]| view.fetch(&found.stored, index);
            WideColumns::decode(&wide_columns::with_values(&entity, fetch)?).map(Some)
        }
    }
}

/// The version of `key` at the timestamp of the view's options; `None` if there is none, or the key is deleted.
#[cold]
pub fn find(view: &ReadView<'_>, key: &[u8]) -> Result<Option<Version>> {
    let Some(read) = read_timestamp(view.cf, view.sources, view.options)? else { return Ok(None) };
    let target = stored_key(key, read);
    let looked = |look: Look| match look {
        Look::Found(version) => Some(Some(version)),
        Look::Deleted => Some(None),
        Look::RowEnded | Look::SourceEnded => None,
    };
    for memtable in std::iter::once(&view.sources.memtable).chain(&view.sources.sealed) {
        if let Some(decided) = looked(look(view, &mut Source::Mem(memtable.iter()), &target)?) {
            return Ok(decided);
        }
    }
    let levels = &view.sources.version.levels;
    for file in levels[0].files.iter() {
        if let Some(decided) = looked(look_in_table(view, file, &target, key)?) {
            return Ok(decided);
        }
    }
    let trailer = Trailer::new(view.seq, ValueType::FOR_SEEK);
    for level in levels.iter().skip(1).filter(|level| !level.files.is_empty()) {
        // Versions of a row may go on in the next table.
        for file in &level.files[level.find(&view.cf.comparator, &target, trailer)..] {
            match look_in_table(view, file, &target, key)? {
                Look::SourceEnded => {}
                Look::RowEnded => break,
                Look::Found(version) => return Ok(Some(version)),
                Look::Deleted => return Ok(None),
            }
        }
    }
    Ok(None)
}

/// The answer of a source about a row.
enum Look {
    /// The version to read.
    Found(Version),
    /// The row is deleted.
    Deleted,
    /// It has no visible version, and other rows after it.
    RowEnded,
    /// It has no visible version, and nothing after it.
    SourceEnded,
}

fn look_in_table(view: &ReadView<'_>, file: &TableFile, target: &[u8], key: &[u8]) -> Result<Look> {
    let rows = &view.cf.rows;
    if rows.compare(user_key(&file.smallest), target).is_gt() {
        return Ok(Look::RowEnded);
    }
    if rows.compare(user_key(&file.largest), target).is_lt() {
        return Ok(Look::SourceEnded);
    }
    let table = view.tables.open(view.cf, file)?;
    if !table.may_contain_row(target, key, view.reading()) {
        return Ok(Look::SourceEnded);
    }
    let options = TableIterOptions { loading: view.options.loading(), ..TableIterOptions::default() };
    look(view, &mut Source::Table(table.iter(options), file.largest_seq), target)
}

/// Looks for the newest visible version at or after `target`, of its row.
fn look(view: &ReadView<'_>, source: &mut Source, target: &[u8]) -> Result<Look> {
    source.seek(target, Trailer::new(view.seq, ValueType::FOR_SEEK));
    while source.valid() {
        let (stored, trailer) = split(source.key());
        if !view.cf.rows.same(stored, target) {
            return Ok(Look::RowEnded);
        }
        if trailer.seq() > view.seq {
            source.next();
            continue;
        }
        let Some((_, timestamp)) = split_timestamp(stored) else { return Err(too_short()) };
        let pinned = || match source.pinned_block() {
            Some(block) => PinnedValue::in_block(block, source.value()),
            None => PinnedValue::owned(source.value().to_vec()),
        };
        let value = match trailer.value_type() {
            Some(ValueType::Value) => FoundValue::Plain(pinned()),
            Some(ValueType::WideColumnEntity) => FoundValue::Entity(pinned()),
            Some(ValueType::BlobIndex) => FoundValue::Plain(view.fetch(stored, source.value())?),
            Some(ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp) => {
                return Ok(Look::Deleted);
            }
            Some(other) => return Err(unsupported_type(other)),
            None => return Err(Error::corruption("an internal key has an unknown value type")),
        };
        return Ok(Look::Found(Version { value, timestamp, stored: stored.to_vec() }));
    }
    source.status().map(|()| Look::SourceEnded)
}

/// The error of a stored key that has no room for its timestamp.
pub(super) fn too_short() -> Error {
    Error::corruption("a key is shorter than its user-defined timestamp")
}
