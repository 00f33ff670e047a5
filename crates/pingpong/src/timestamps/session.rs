//! The worker's side: a database with timestamps through RocksDB's C functions.

use super::language::{BACKWARDS, Change, Entry, FAMILIES, How, Lookup, Move, PLAIN, Request, View, Write};
use crate::batch::{self, Batch};
use crate::call::{Outcome, c_string, call, parts, take_bytes, take_error, with_error};
use crate::database::{Database, Handle, ReadView};
use crate::iter::Iter;
use crate::library::{Api, Bytes, Object};
use crate::options::Options;
use crate::worker::Answer;
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::cmp::Ordering;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

/// Bytes of a timestamp.
const LEN: usize = 8;

/// A worker's database with timestamps, if it has one open.
pub struct Session<'a> {
    api: &'a Api,
    open: Option<(Database<'a>, Vec<Handle>)>,
}

impl<'a> Session<'a> {
    /// Of a worker that has just begun.
    pub fn new(api: &'a Api) -> Session<'a> {
        Session { api, open: None }
    }

    /// Does what is asked of the engine.
    pub fn handle(&mut self, request: Request) -> Outcome<Answer> {
        match request {
            Request::Open { path, options, trim } => {
                let families = (0..FAMILIES.len()).map(|family| self.family(family, &options));
                let families = families.collect::<Outcome<Vec<_>>>()?;
                self.open = Some(match trim {
                    Some(newest) => self.open_and_trim(&path, families, newest)?,
                    None => Database::open(self.api, &path, families)?,
                });
                Ok(Answer::Done)
            }
            Request::Close => {
                let (database, handles) = self.open.take().ok_or("no database is open")?;
                handles.iter().try_for_each(|handle| database.destroy_handle(*handle))?;
                database.close()?;
                Ok(Answer::Done)
            }
            other => {
                let (database, handles) = self.open.as_ref().ok_or("no database is open")?;
                Stamped { api: self.api, database, handles }.handle(other)
            }
        }
    }

    fn open_and_trim(
        &self,
        path: &str,
        families: Vec<(String, Options<'a>)>,
        newest: u64,
    ) -> Outcome<(Database<'a>, Vec<Handle>)> {
        let api = self.api;
        Database::open_by(api, families, |options, count, names, all, handles, e| {
            let path = c_string(path)?;
            let mut newest = newest.to_le_bytes();
            let (newest, len) = (newest.as_mut_ptr().cast(), newest.len());
            // SAFETY: live objects; as many names, options and places for handles as the count says; a timestamp that outlives the call.
            Ok(unsafe {
                call!(
                    api,
                    rocksdb_open_and_trim_history(
                        options,
                        path.as_ptr(),
                        count,
                        names,
                        all,
                        handles,
                        newest,
                        len,
                        e
                    )
                )
            })
        })
    }

    fn family(&self, family: usize, settings: &[String]) -> Outcome<(String, Options<'a>)> {
        let options = Options::new(self.api, settings)?;
        options.create_missing()?;
        if family != PLAIN {
            // The state is which of the two it is. RocksDB refers to a comparator as long as it is open, so none is given back.
            let state = if family == BACKWARDS { REVERSE } else { null_mut() };
            // SAFETY: functions that live as long as the program; live options.
            unsafe {
                let comparator = call!(
                    self.api,
                    rocksdb_comparator_with_ts_create(
                        state,
                        keep,
                        compare,
                        compare_timestamps,
                        compare_without,
                        name,
                        LEN
                    )
                );
                call!(self.api, rocksdb_options_set_comparator(options.object, comparator));
            }
        }
        Ok((FAMILIES[family].to_string(), options))
    }
}

/// The open database.
struct Stamped<'s, 'a> {
    api: &'a Api,
    database: &'s Database<'a>,
    handles: &'s [Handle],
}

impl<'a> Stamped<'_, 'a> {
    fn handle(&self, request: Request) -> Outcome<Answer> {
        match request {
            Request::Write { writes, how: How::Direct } => {
                writes.iter().try_for_each(|write| self.write_one(write))?;
            }
            Request::Write { writes, how } => self.write_batch(&writes, how == How::Late)?,
            Request::Get { family, keys, at, by } => {
                let found = match by {
                    Lookup::MultiGetWithTs => self.multi_get(family, &keys, at),
                    _ => keys.iter().map(|key| self.get(family, key, at, by)).collect(),
                };
                return found.map(Answer::Entries);
            }
            Request::Walk(view, moves) => return self.walk(&view, &moves).map(Answer::Entries),
            Request::Forward(view) => {
                return self.scan(&view, None, Move::First, &Move::Next).map(Answer::Entries);
            }
            Request::Backward(view) => {
                return self.scan(&view, None, Move::Last, &Move::Prev).map(Answer::Entries);
            }
            Request::Versions { family, at, from } => {
                let view = View { family, at, ..View::default() };
                return self.scan(&view, Some(from), Move::First, &Move::Next).map(Answer::Entries);
            }
            Request::Plain => return self.plain().map(Answer::Entries),
            Request::Flush(family) => self.database.flush(self.handles[family], true)?,
            Request::Compact(family, low) => self.compact(family, low)?,
            Request::CompactLast(family) => self.compact_last(family)?,
            Request::Raise(family, low) => self.raise(family, low)?,
            Request::Low(family) => return self.low(family).map(Answer::Low),
            Request::Open { .. } | Request::Close => return Err("a database is open already".into()),
        }
        Ok(Answer::Done)
    }

    fn write_one(&self, write: &Write) -> Outcome<()> {
        let handle = self.handles[write.family];
        let (key, stamp) = (write.key.as_bytes(), write.at.to_le_bytes());
        if write.family == PLAIN {
            return self.database.write_one(handle, plain_change(write), false, true);
        }
        let ((k, kl), (t, tl)) = (parts(key), parts(&stamp));
        let (api, db, cf) = (self.api, self.database.object, handle.0);
        self.database.with_write_options(false, true, |options| {
            // SAFETY: live objects and slices.
            with_error(api, |e| unsafe {
                match &write.change {
                    Change::Put(value) => {
                        let (v, vl) = parts(value.as_bytes());
                        call!(api, rocksdb_put_cf_with_ts(db, options, cf, k, kl, t, tl, v, vl, e));
                    }
                    Change::Delete => {
                        call!(api, rocksdb_delete_cf_with_ts(db, options, cf, k, kl, t, tl, e));
                    }
                    Change::SingleDelete => {
                        call!(api, rocksdb_singledelete_cf_with_ts(db, options, cf, k, kl, t, tl, e));
                    }
                }
                Ok(())
            })
        })
    }

    fn write_batch(&self, writes: &[Write], late: bool) -> Outcome<()> {
        let api = self.api;
        let mut batch = Batch::new(api)?;
        for write in writes {
            if late || write.family == PLAIN {
                batch.add(self.handles[write.family], plain_change(write))?;
            } else {
                self.add(&batch, write)?;
            }
        }
        if let Some(first) = writes.first().filter(|_| late) {
            let stamp = first.at.to_le_bytes();
            let (t, tl) = parts(&stamp);
            // SAFETY: a live batch and slice, and a function without state.
            with_error(api, |e| unsafe {
                call!(
                    api,
                    rocksdb_writebatch_update_timestamps(batch.object, t, tl, null_mut(), timestamp_size, e)
                );
                Ok(())
            })?;
        }
        self.database.write(&batch, false, true)
    }

    fn add(&self, batch: &Batch<'_>, write: &Write) -> Outcome<()> {
        let stamp = write.at.to_le_bytes();
        let ((k, kl), (t, tl)) = (parts(write.key.as_bytes()), parts(&stamp));
        let (api, batch, cf) = (self.api, batch.object, self.handles[write.family].0);
        // SAFETY: live objects and slices.
        unsafe {
            match &write.change {
                Change::Put(value) => {
                    let (v, vl) = parts(value.as_bytes());
                    call!(api, rocksdb_writebatch_put_cf_with_ts(batch, cf, k, kl, t, tl, v, vl));
                }
                Change::Delete => {
                    call!(api, rocksdb_writebatch_delete_cf_with_ts(batch, cf, k, kl, t, tl));
                }
                Change::SingleDelete => {
                    call!(api, rocksdb_writebatch_singledelete_cf_with_ts(batch, cf, k, kl, t, tl));
                }
            }
        }
        Ok(())
    }

    /// Calls `with` with options that read at `at`.
    fn reading<T>(&self, at: u64, with: impl FnOnce(Object) -> Outcome<T>) -> Outcome<T> {
        let stamp = at.to_le_bytes();
        let (t, tl) = parts(&stamp);
        // SAFETY: the options are destroyed after their one use, and before the timestamp that they refer to.
        unsafe {
            let options = call!(self.api, rocksdb_readoptions_create());
            call!(self.api, rocksdb_readoptions_set_timestamp(options, t, tl));
            let result = with(options);
            call!(self.api, rocksdb_readoptions_destroy(options));
            result
        }
    }

    fn get(&self, family: usize, key: &str, at: u64, by: Lookup) -> Outcome<Option<Entry>> {
        let (api, db, cf) = (self.api, self.database.object, self.handles[family].0);
        let (k, kl) = parts(key.as_bytes());
        let (mut len, mut stamp, mut stamp_len) = (0, null_mut(), 0);
        self.reading(at, |options| {
            // SAFETY: live objects, and places for all that is found.
            let value = with_error(api, |e| unsafe {
                Ok(match by {
                    Lookup::Get => call!(api, rocksdb_get_cf(db, options, cf, k, kl, &raw mut len, e)),
                    _ => {
                        let (ts, ts_len) = (&raw mut stamp, &raw mut stamp_len);
                        call!(
                            api,
                            rocksdb_get_cf_with_ts(db, options, cf, k, kl, &raw mut len, ts, ts_len, e)
                        )
                    }
                })
            })?;
            found(api, key, (value, len), (stamp, stamp_len))
        })
    }

    fn multi_get(&self, family: usize, keys: &[String], at: u64) -> Outcome<Vec<Option<Entry>>> {
        let count = keys.len();
        let pointers: Vec<Bytes> = keys.iter().map(|key| parts(key.as_bytes()).0).collect();
        let lens: Vec<size_t> = keys.iter().map(String::len).collect();
        let families = vec![self.handles[family].0; count];
        let (mut values, mut value_lens) = (vec![null_mut(); count], vec![0; count]);
        let (mut stamps, mut stamp_lens) = (vec![null_mut(); count], vec![0; count]);
        let mut errors = vec![null_mut(); count];
        self.reading(at, |options| {
            // SAFETY: live objects; all arrays have as many elements as there are keys.
            unsafe {
                call!(
                    self.api,
                    rocksdb_multi_get_cf_with_ts(
                        self.database.object,
                        options,
                        families.as_ptr(),
                        count,
                        pointers.as_ptr(),
                        lens.as_ptr(),
                        values.as_mut_ptr(),
                        value_lens.as_mut_ptr(),
                        stamps.as_mut_ptr(),
                        stamp_lens.as_mut_ptr(),
                        errors.as_mut_ptr()
                    )
                );
            }
            Ok(())
        })?;
        let errors: Vec<_> = errors.into_iter().map(|error| take_error(self.api, error)).collect();
        if let Some(error) = errors.into_iter().flatten().next() {
            return Err(error);
        }
        let one = |at: usize| {
            found(self.api, &keys[at], (values[at], value_lens[at]), (stamps[at], stamp_lens[at]))
        };
        (0..count).map(one).collect()
    }

    /// Every entry from the first move on. With `from`, versions from that timestamp on.
    fn scan(&self, view: &View, from: Option<u64>, first: Move, next: &Move) -> Outcome<Vec<Option<Entry>>> {
        let mut entries = Vec::new();
        self.with_iter(view, from, |iter| {
            step(iter, &first)?;
            while iter.valid()? {
                entries.push(Some(self.shown(iter, from.is_some())?));
                step(iter, next)?;
            }
            iter.status()
        })?;
        Ok(entries)
    }

    fn walk(&self, view: &View, moves: &[Move]) -> Outcome<Vec<Option<Entry>>> {
        let mut positions = Vec::new();
        self.with_iter(view, None, |iter| {
            for one in moves {
                if !matches!(one, Move::Next | Move::Prev) || iter.valid()? {
                    step(iter, one)?;
                }
                iter.status()?;
                positions.push(if iter.valid()? { Some(self.shown(iter, false)?) } else { None });
            }
            Ok(())
        })?;
        Ok(positions)
    }

    fn with_iter(
        &self,
        view: &View,
        from: Option<u64>,
        with: impl FnOnce(&mut Iter<'a>) -> Outcome<()>,
    ) -> Outcome<()> {
        let api = self.api;
        let stamps = [view.at.to_le_bytes(), from.unwrap_or_default().to_le_bytes()];
        let bounds = [&view.lower, &view.upper].map(|bound| bound.as_ref().map(|key| key.as_bytes().into()));
        // SAFETY: live objects; the iterator is gone before the timestamps, and has its bounds.
        let mut iter: Iter<'a> = unsafe {
            let read = call!(api, rocksdb_readoptions_create());
            let (t, tl) = parts(&stamps[0]);
            call!(api, rocksdb_readoptions_set_timestamp(read, t, tl));
            if from.is_some() {
                let (t, tl) = parts(&stamps[1]);
                call!(api, rocksdb_readoptions_set_iter_start_ts(read, t, tl));
            }
            let bounds: [Option<Box<[u8]>>; 2] = bounds;
            if let Some((k, kl)) = bounds[0].as_deref().map(parts) {
                call!(api, rocksdb_readoptions_set_iterate_lower_bound(read, k, kl));
            }
            if let Some((k, kl)) = bounds[1].as_deref().map(parts) {
                call!(api, rocksdb_readoptions_set_iterate_upper_bound(read, k, kl));
            }
            let handle = self.handles[view.family].0;
            let object = call!(api, rocksdb_create_iterator_cf(self.database.object, read, handle));
            Iter { api, object, read, _bounds: bounds }
        };
        with(&mut iter)
    }

    /// The entry that an iterator is at; one that shows all versions gives keys as they are stored.
    fn shown(&self, iter: &Iter<'_>, stored: bool) -> Outcome<Entry> {
        let mut len = 0;
        // SAFETY: a valid iterator, which does not move.
        let stamp = unsafe {
            let start = call!(self.api, rocksdb_iter_timestamp(iter.object, &raw mut len));
            bytes_of(start, len)
        };
        let at = Some(stamp_of(stamp)?);
        let (key, value) = iter.row()?;
        let mut entry = Entry { key: text(key), at, value: Some(text(value)) };
        if stored {
            let (key, rest) = key
                .len()
                .checked_sub(2 * LEN)
                .map(|len| key.split_at(len))
                .ok_or_else(|| format!("a stored key of {} bytes", key.len()))?;
            entry.key = text(key);
            if rest[..LEN] != *stamp {
                return Err(format!("{}: its key has another timestamp than it tells", entry.key));
            }
            // The type is the lowest byte: a deletion, a single deletion, a deletion with a timestamp.
            if matches!(rest[LEN], 0 | 7 | 20) {
                entry.value = None;
            }
        }
        Ok(entry)
    }

    fn plain(&self) -> Outcome<Vec<Option<Entry>>> {
        let mut iter = self.database.iter(self.handles[PLAIN], &ReadView::default())?;
        let mut rows = Vec::new();
        iter.seek_to_first()?;
        while iter.valid()? {
            let (key, value) = iter.row()?;
            rows.push(Some(Entry { key: text(key), at: None, value: Some(text(value)) }));
            iter.next()?;
        }
        iter.status()?;
        Ok(rows)
    }

    fn compact(&self, family: usize, low: Option<u64>) -> Outcome<()> {
        /// `kForce`: tables of the last level are written anew too.
        const FORCE: u8 = 2;
        let (api, db, cf) = (self.api, self.database.object, self.handles[family].0);
        let mut stamp = low.unwrap_or_default().to_le_bytes();
        // SAFETY: live objects; the options are gone before the timestamp.
        unsafe {
            let options = call!(api, rocksdb_compactoptions_create());
            call!(api, rocksdb_compactoptions_set_bottommost_level_compaction(options, FORCE));
            if low.is_some() {
                let low = stamp.as_mut_ptr().cast();
                call!(api, rocksdb_compactoptions_set_full_history_ts_low(options, low, LEN));
            }
            call!(api, rocksdb_compact_range_cf_opt(db, cf, options, null(), 0, null(), 0));
            call!(api, rocksdb_compactoptions_destroy(options));
        }
        match self.database.property(self.handles[family], c"rocksdb.background-errors")? {
            0 => Ok(()),
            count => Err(format!("{count} background errors")),
        }
    }

    fn compact_last(&self, family: usize) -> Outcome<()> {
        let (api, db, cf) = (self.api, self.database.object, self.handles[family].0);
        // SAFETY: live objects, and numbers below the count; the names are copied before the list goes.
        let tables: Vec<(c_int, CString)> = unsafe {
            let list = call!(api, rocksdb_livefiles(db));
            let mut tables = Vec::new();
            for index in 0..call!(api, rocksdb_livefiles_count(list)) {
                let text = |bytes: Bytes| CStr::from_ptr(bytes).to_owned();
                let of = text(call!(api, rocksdb_livefiles_column_family_name(list, index)));
                if of.to_bytes() == FAMILIES[family].as_bytes() {
                    let level = call!(api, rocksdb_livefiles_level(list, index));
                    tables.push((level, text(call!(api, rocksdb_livefiles_name(list, index)))));
                }
            }
            call!(api, rocksdb_livefiles_destroy(list));
            tables
        };
        let Some(last) = tables.iter().map(|(level, _)| *level).max().filter(|last| *last > 0) else {
            return Ok(());
        };
        let names = tables.iter().filter(|(level, _)| *level == last).map(|(_, name)| name.as_ptr());
        let names: Vec<Bytes> = names.collect();
        let (mut outputs, mut count) = (null_mut(), 0);
        // SAFETY: live objects, as many names as the count says, and places for those of the outputs, which are given back.
        with_error(api, |e| unsafe {
            let options = call!(api, rocksdb_compaction_options_create());
            let info = call!(api, rocksdb_compactionjobinfo_create());
            call!(
                api,
                rocksdb_compact_files_cf(
                    db,
                    cf,
                    options,
                    names.as_ptr(),
                    names.len(),
                    last,
                    -1,
                    &raw mut outputs,
                    &raw mut count,
                    info,
                    e
                )
            );
            call!(api, rocksdb_compactionjobinfo_destroy(info));
            call!(api, rocksdb_compaction_options_destroy(options));
            if !outputs.is_null() {
                call!(api, rocksdb_compact_files_output_file_names_destroy(outputs, count));
            }
            Ok(())
        })
    }

    fn raise(&self, family: usize, low: u64) -> Outcome<()> {
        let stamp = low.to_le_bytes();
        let (t, tl) = parts(&stamp);
        let (api, db, cf) = (self.api, self.database.object, self.handles[family].0);
        // SAFETY: live objects.
        with_error(api, |e| unsafe {
            call!(api, rocksdb_increase_full_history_ts_low(db, cf, t, tl, e));
            Ok(())
        })
    }

    fn low(&self, family: usize) -> Outcome<Option<u64>> {
        let (api, db, cf) = (self.api, self.database.object, self.handles[family].0);
        let mut len = 0;
        // SAFETY: live objects.
        let low = with_error(api, |e| unsafe {
            Ok(call!(api, rocksdb_get_full_history_ts_low(db, cf, &raw mut len, e)))
        })?;
        let low = take_bytes(api, low, len).unwrap_or_default();
        if low.is_empty() { Ok(None) } else { stamp_of(&low).map(Some) }
    }
}

fn step(iter: &mut Iter<'_>, to: &Move) -> Outcome<()> {
    match to {
        Move::First => iter.seek_to_first(),
        Move::Last => iter.seek_to_last(),
        Move::Seek(key) => iter.seek(key.as_bytes()),
        Move::SeekForPrev(key) => iter.seek_for_prev(key.as_bytes()),
        Move::Next => iter.next(),
        Move::Prev => iter.prev(),
    }
}

/// The change without its timestamp.
fn plain_change(write: &Write) -> batch::Change<'_> {
    let key = write.key.as_bytes();
    match &write.change {
        Change::Put(value) => batch::Change::Put(key, value.as_bytes()),
        Change::Delete => batch::Change::Delete(key),
        Change::SingleDelete => batch::Change::SingleDelete(key),
    }
}

/// The version that a lookup gave: a value or null, a timestamp or null.
fn found(
    api: &Api,
    key: &str,
    (value, len): (*mut c_char, size_t),
    (stamp, stamp_len): (*mut c_char, size_t),
) -> Outcome<Option<Entry>> {
    let (value, stamp) = (take_bytes(api, value, len), take_bytes(api, stamp, stamp_len));
    let Some(value) = value else { return Ok(None) };
    let at = stamp.filter(|stamp| !stamp.is_empty()).map(|stamp| stamp_of(&stamp)).transpose()?;
    Ok(Some(Entry { key: key.to_string(), at, value: Some(text(&value)) }))
}

fn stamp_of(bytes: &[u8]) -> Outcome<u64> {
    let bytes = bytes.try_into().map_err(|_| format!("a timestamp of {} bytes", bytes.len()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// A key or a value; what was written is ASCII. A stored key is not, and is cut first where it matters.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// ---- the comparators

/// The state of the comparator that orders keys from the largest to the smallest: any address but none.
const REVERSE: *mut c_void = std::ptr::dangling_mut::<u8>().cast();

unsafe fn bytes_of<'b>(start: Bytes, len: size_t) -> &'b [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's: as many bytes, which outlive the use.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

fn order(state: *mut c_void, a: &[u8], b: &[u8]) -> Ordering {
    if state.is_null() { a.cmp(b) } else { b.cmp(a) }
}

fn number(stamp: &[u8]) -> u64 {
    stamp_of(stamp).unwrap_or_default()
}

/// Keys in their order, of one key the newest timestamp first.
unsafe extern "C" fn compare(state: *mut c_void, a: Bytes, al: size_t, b: Bytes, bl: size_t) -> c_int {
    // SAFETY: stored keys, as the library passes them.
    let (a, b) = unsafe { (bytes_of(a, al), bytes_of(b, bl)) };
    let ((a, a_stamp), (b, b_stamp)) =
        (a.split_at(al.saturating_sub(LEN)), b.split_at(bl.saturating_sub(LEN)));
    order(state, a, b).then_with(|| number(b_stamp).cmp(&number(a_stamp))) as c_int
}

unsafe extern "C" fn compare_timestamps(_: *mut c_void, a: Bytes, al: size_t, b: Bytes, bl: size_t) -> c_int {
    // SAFETY: timestamps, as the library passes them.
    let (a, b) = unsafe { (bytes_of(a, al), bytes_of(b, bl)) };
    number(a).cmp(&number(b)) as c_int
}

unsafe extern "C" fn compare_without(
    state: *mut c_void,
    a: Bytes,
    al: size_t,
    a_has: c_uchar,
    b: Bytes,
    bl: size_t,
    b_has: c_uchar,
) -> c_int {
    let len = |len: size_t, has: c_uchar| if has == 0 { len } else { len.saturating_sub(LEN) };
    // SAFETY: keys, as the library passes them.
    let (a, b) = unsafe { (bytes_of(a, len(al, a_has)), bytes_of(b, len(bl, b_has))) };
    order(state, a, b) as c_int
}

unsafe extern "C" fn name(state: *mut c_void) -> Bytes {
    if state.is_null() {
        c"leveldb.BytewiseComparator.u64ts".as_ptr()
    } else {
        c"pingpong.Backwards.u64ts".as_ptr()
    }
}

/// The state is no memory.
unsafe extern "C" fn keep(_: *mut c_void) {}

unsafe extern "C" fn timestamp_size(_: *mut c_void, family: u32) -> size_t {
    if family as usize == PLAIN { 0 } else { LEN }
}
