//! A database of any engine, behind safe calls.
//!
//! Next: `open.rs` for what it is opened with, `tree.rs` for its tables and levels, `multi_get.rs` for many keys at once.

use crate::ffi::{Object, RocksApi, Shared};
use crate::open::{NO_MERGE, OpenOptions, Opening};
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

/// An open database.
pub struct Database {
    pub(crate) api: RocksApi,
    pub(crate) db: Shared,
    options: Shared,
    cache: Shared,
    pub(crate) read: Shared,
    writes: [Shared; 3],
    /// Whether keys can be merged, or why not.
    merges: Result<(), String>,
    /// The default column family, where the library hands it out.
    pub(crate) default_cf: Option<Shared>,
    /// Bytes of a table, L0 tables that start a compaction, and whether none starts of itself: what it was opened with.
    pub(crate) target_file_size: u64,
    pub(crate) level_zero_trigger: i32,
    pub(crate) auto_compactions_off: bool,
}

/// How a write is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Durability {
    /// Not in the WAL.
    NoWal,
    /// In the WAL, not synced.
    Wal,
    /// In the WAL, synced.
    Sync,
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Database {
    /// Opens or creates the database at `path`.
    ///
    /// # Errors
    /// The engine's message.
    pub fn open(api: RocksApi, path: &Path, settings: &OpenOptions) -> Result<Database, String> {
        Database::open_with(api, path, settings, "")
    }

    /// As [`Database::open`], with further options as `text`, `name=value;name=value`, in RocksDB's words. They
    /// win over `settings`.
    ///
    /// # Errors
    /// The engine's message, or that it does not take options as text.
    pub fn open_with(
        api: RocksApi,
        path: &Path,
        settings: &OpenOptions,
        text: &str,
    ) -> Result<Database, String> {
        let name = &settings.merge_operator;
        let opened = Database::open_once(api, path, settings, text);
        let Err(why) = opened else { return opened };
        if name.is_empty() {
            return Err(why);
        }
        // Some libraries take any operator's name and refuse it here: operations that do not merge must work all the same.
        let without = OpenOptions { merge_operator: String::new(), ..settings.clone() };
        let mut db = Database::open_once(api, path, &without, text).map_err(|_| why.clone())?;
        db.merges = Err(format!("no merge operator {name}: {why}"));
        Ok(db)
    }

    fn open_once(api: RocksApi, path: &Path, settings: &OpenOptions, text: &str) -> Result<Database, String> {
        let name = path_name(path)?;
        let opening = Opening::new(api, settings, text)?;
        // SAFETY: objects are created here and live until `drop`; strings are NUL-terminated.
        unsafe {
            let mut error = null_mut();
            let db = (api.rocksdb_open)(opening.options, name.as_ptr(), &raw mut error);
            take_error(&api, error)?;
            let merges = opening.merges.clone();
            let (options, cache) = opening.keep();
            let write = |no_wal: i32, sync: u8| Shared(write_options(&api, no_wal, sync));
            // A caller that takes the handle must be able to give it back.
            let default_cf = api
                .rocksdb_get_default_column_family_handle
                .filter(|_| api.rocksdb_column_family_handle_destroy.is_some())
                .map(|handle| Shared(handle(db)));
            Ok(Database {
                api,
                db: Shared(db),
                options: Shared(options),
                cache: Shared(cache),
                read: Shared((api.rocksdb_readoptions_create)()),
                writes: [write(1, 0), write(0, 0), write(0, 1)],
                merges,
                default_cf,
                target_file_size: asked(text, "target_file_size_base")
                    .unwrap_or(settings.target_file_size_base),
                level_zero_trigger: asked(text, "level0_file_num_compaction_trigger")
                    .unwrap_or(settings.level0_triggers[0]),
                auto_compactions_off: asked(text, "disable_auto_compactions").unwrap_or(false),
            })
        }
    }

    /// Removes the database at `path`, if there is one.
    pub fn destroy(api: RocksApi, path: &Path) -> Result<(), String> {
        let name = path_name(path)?;
        let mut error = null_mut();
        // SAFETY: a live object and a NUL-terminated name.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_destroy_db)(options, name.as_ptr(), &raw mut error);
            (api.rocksdb_options_destroy)(options);
        }
        take_error(&api, error)
    }

    /// Whether [`Database::merge`] works.
    ///
    /// # Errors
    /// The missing function, if there is one.
    pub fn can_merge(&self) -> Result<(), String> {
        self.merges.clone()
    }

    /// Adds an operand to a key, by the merge operator it was opened with.
    ///
    /// # Errors
    /// The engine's message, or what [`Database::can_merge`] says.
    #[inline]
    pub fn merge(&self, durability: Durability, key: &[u8], operand: &[u8]) -> Result<(), String> {
        let (Ok(()), Some(merge)) = (&self.merges, self.api.rocksdb_merge) else {
            return self.can_merge().and(Err(NO_MERGE.to_string()));
        };
        let mut error = null_mut();
        let options = self.writes[durability as usize].0;
        // SAFETY: live objects and slices.
        unsafe {
            let (key_start, operand_start) = (key.as_ptr().cast(), operand.as_ptr().cast());
            merge(self.db.0, options, key_start, key.len(), operand_start, operand.len(), &raw mut error);
        }
        take_error(&self.api, error)
    }

    /// Applies everything in `batch` at once, and empties it.
    pub fn write(&self, durability: Durability, batch: &mut Batch<'_>) -> Result<(), String> {
        let mut error = null_mut();
        // SAFETY: live objects; the batch is of the same library.
        unsafe {
            let options = self.writes[durability as usize].0;
            (self.api.rocksdb_write)(self.db.0, options, batch.batch, &raw mut error);
            (self.api.rocksdb_writebatch_clear)(batch.batch);
        }
        take_error(&self.api, error)
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch<'_> {
        // SAFETY: creates an object; `Batch` destroys it.
        Batch { api: &self.api, batch: unsafe { (self.api.rocksdb_writebatch_create)() } }
    }

    /// Deletes a key.
    pub fn delete(&self, durability: Durability, key: &[u8]) -> Result<(), String> {
        let mut error = null_mut();
        let options = self.writes[durability as usize].0;
        // SAFETY: live objects and slices.
        unsafe {
            (self.api.rocksdb_delete)(self.db.0, options, key.as_ptr().cast(), key.len(), &raw mut error);
        }
        take_error(&self.api, error)
    }

    /// Bytes of the value of a key, if it is there; the value is touched.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<usize>, String> {
        let mut len = 0;
        let found = self.with_value(key, |value| {
            std::hint::black_box(value.first().copied());
            len = value.len();
        })?;
        Ok(found.then_some(len))
    }

    /// Copies the value of a key into `value`; false if the key is not there.
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        value.clear();
        self.with_value(key, |found| value.extend_from_slice(found))
    }

    /// Hands the value of a key to `work` where it lies; false if the key is not there.
    #[inline]
    fn with_value(&self, key: &[u8], work: impl FnOnce(&[u8])) -> Result<bool, String> {
        let mut error = null_mut();
        // SAFETY: live objects and slices; the pinned value is destroyed after its use.
        unsafe {
            let start = key.as_ptr().cast();
            let pinned =
                (self.api.rocksdb_get_pinned)(self.db.0, self.read.0, start, key.len(), &raw mut error);
            take_error(&self.api, error)?;
            if pinned.is_null() {
                return Ok(false);
            }
            let mut len = 0;
            let value = (self.api.rocksdb_pinnableslice_value)(pinned, &raw mut len);
            // An empty value may be nowhere.
            work(if len > 0 { std::slice::from_raw_parts(value.cast(), len) } else { &[] });
            (self.api.rocksdb_pinnableslice_destroy)(pinned);
        }
        Ok(true)
    }

    /// One range query: seeks `key`, then copies a value and moves, `count` times. Gives whether `key` itself is there,
    /// and the bytes of keys and values that were read.
    #[inline]
    pub fn range(&self, key: &[u8], count: u32, reverse: bool) -> Result<(bool, u64), String> {
        let mut copy = [0u8; 256];
        let (mut bytes, mut error) = (0, null_mut());
        let found;
        // SAFETY: live objects; keys and values are valid until the iterator moves.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            (self.api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
            found = (self.api.rocksdb_iter_valid)(iter) != 0 && self.key_of(iter) == key;
            for _ in 0..count {
                if (self.api.rocksdb_iter_valid)(iter) == 0 {
                    break;
                }
                let mut len = 0;
                let value = (self.api.rocksdb_iter_value)(iter, &raw mut len);
                let taken = len.min(copy.len());
                std::ptr::copy_nonoverlapping(value.cast(), copy.as_mut_ptr(), taken);
                std::hint::black_box(&mut copy);
                bytes += (self.key_of(iter).len() + len) as u64;
                let step = if reverse { self.api.rocksdb_iter_prev } else { self.api.rocksdb_iter_next };
                step(iter);
            }
            (self.api.rocksdb_iter_get_error)(iter, &raw mut error);
            (self.api.rocksdb_iter_destroy)(iter);
        }
        take_error(&self.api, error).map(|()| (found, bytes))
    }

    /// The key at which `iter` is.
    ///
    /// # Safety
    /// `iter` is an iterator of this library at a row, and does not move while the key is used.
    #[inline]
    unsafe fn key_of<'k>(&self, iter: Object) -> &'k [u8] {
        let mut len = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let key = (self.api.rocksdb_iter_key)(iter, &raw mut len);
            if len == 0 { &[] } else { std::slice::from_raw_parts(key.cast(), len) }
        }
    }

    /// Seeks `key` and copies up to `count` values into `copy`; gives whether `key` itself is there, and how many values and bytes of
    /// values were read.
    pub fn scan_from(&self, key: &[u8], count: u64, copy: &mut [u8]) -> Result<(bool, u64, u64), String> {
        let (mut rows, mut bytes, mut error) = (0, 0, null_mut());
        let found;
        // SAFETY: live objects; keys and values are valid until the iterator moves.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            (self.api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
            found = (self.api.rocksdb_iter_valid)(iter) != 0 && self.key_of(iter) == key;
            for _ in 0..count {
                if (self.api.rocksdb_iter_valid)(iter) == 0 {
                    break;
                }
                let mut len = 0;
                let value = (self.api.rocksdb_iter_value)(iter, &raw mut len);
                std::ptr::copy_nonoverlapping(value.cast(), copy.as_mut_ptr(), len.min(copy.len()));
                std::hint::black_box(&mut *copy);
                rows += 1;
                bytes += len as u64;
                (self.api.rocksdb_iter_next)(iter);
            }
            (self.api.rocksdb_iter_get_error)(iter, &raw mut error);
            (self.api.rocksdb_iter_destroy)(iter);
        }
        take_error(&self.api, error).map(|()| (found, rows, bytes))
    }

    /// Reads the first `most` rows, asking for each key and value as db_bench does; gives the number of rows and their bytes.
    pub fn scan(&self, most: u64) -> Result<(u64, u64), String> {
        let (mut rows, mut bytes) = (0, 0);
        let mut error = null_mut();
        // SAFETY: live objects; keys and values are valid until the iterator moves.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            (self.api.rocksdb_iter_seek_to_first)(iter);
            while rows < most && (self.api.rocksdb_iter_valid)(iter) != 0 {
                let mut len = 0;
                std::hint::black_box((self.api.rocksdb_iter_value)(iter, &raw mut len));
                bytes += (self.key_of(iter).len() + len) as u64;
                rows += 1;
                (self.api.rocksdb_iter_next)(iter);
            }
            (self.api.rocksdb_iter_get_error)(iter, &raw mut error);
            (self.api.rocksdb_iter_destroy)(iter);
        }
        take_error(&self.api, error).map(|()| (rows, bytes))
    }

    /// All rows, one at a time.
    pub fn rows(&self) -> Rows<'_> {
        // SAFETY: live objects; the iterator goes before the database, which it borrows.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            (self.api.rocksdb_iter_seek_to_first)(iter);
            Rows { db: self, iter, step: self.api.rocksdb_iter_next }
        }
    }

    /// The rows from `key` on, one at a time.
    pub fn rows_from(&self, key: &[u8]) -> Rows<'_> {
        // SAFETY: live objects; the iterator goes before the database, which it borrows.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            (self.api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
            Rows { db: self, iter, step: self.api.rocksdb_iter_next }
        }
    }

    /// All rows from the last to the first, one at a time; `None` if the library cannot seek to the last.
    pub fn rows_backward(&self) -> Option<Rows<'_>> {
        let seek_to_last = self.api.rocksdb_iter_seek_to_last?;
        // SAFETY: live objects; the iterator goes before the database, which it borrows.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            seek_to_last(iter);
            Some(Rows { db: self, iter, step: self.api.rocksdb_iter_prev })
        }
    }

    /// Makes an iterator and destroys it.
    pub fn make_iterator(&self) {
        // SAFETY: live objects; the iterator is destroyed once.
        unsafe {
            (self.api.rocksdb_iter_destroy)((self.api.rocksdb_create_iterator)(self.db.0, self.read.0));
        }
    }

    /// Reads every table and verifies its checksums.
    ///
    /// # Errors
    /// The first that is wrong, or that the library has no such function.
    pub fn verify_checksums(&self) -> Result<(), String> {
        let verify =
            self.api.rocksdb_verify_checksum.ok_or("verifychecksum is not offered by this engine")?;
        let mut error = null_mut();
        // SAFETY: live objects.
        unsafe { verify(self.db.0, &raw mut error) };
        take_error(&self.api, error)
    }

    /// Writes memtables to tables and waits.
    pub fn flush(&self) -> Result<(), String> {
        let mut error = null_mut();
        // SAFETY: live objects.
        unsafe {
            let options = (self.api.rocksdb_flushoptions_create)();
            (self.api.rocksdb_flush)(self.db.0, options, &raw mut error);
            (self.api.rocksdb_flushoptions_destroy)(options);
        }
        take_error(&self.api, error)
    }

    /// Compacts everything.
    pub fn compact(&self) {
        // SAFETY: live objects; null bounds are unbounded.
        unsafe { (self.api.rocksdb_compact_range)(self.db.0, null(), 0, null(), 0) }
    }

    /// A numeric property.
    pub fn property_int(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        let mut number = 0;
        // SAFETY: live objects and a NUL-terminated name.
        let status = unsafe { (self.api.rocksdb_property_int)(self.db.0, name.as_ptr(), &raw mut number) };
        (status == 0).then_some(number)
    }

    /// A text property.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        // SAFETY: live objects; the text is NUL-terminated and malloc'ed.
        unsafe {
            let text = (self.api.rocksdb_property_value)(self.db.0, name.as_ptr());
            if text.is_null() {
                return None;
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.rocksdb_free)(text.cast());
            Some(copy)
        }
    }
}

/// Writes to be applied at once.
pub struct Batch<'a> {
    api: &'a RocksApi,
    batch: Object,
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Batch<'_> {
    /// Adds the setting of a key.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: a live object and slices, which the batch copies.
        unsafe {
            (self.api.rocksdb_writebatch_put)(self.batch, key_start, key.len(), value_start, value.len());
        }
    }

    /// Adds the deletion of a key.
    ///
    /// # Errors
    /// If the library has no deletions in batches.
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> Result<(), String> {
        let delete = self.api.rocksdb_writebatch_delete.ok_or("the library has no deletions in batches")?;
        // SAFETY: a live object and a slice, which the batch copies.
        unsafe { delete(self.batch, key.as_ptr().cast(), key.len()) }
        Ok(())
    }
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Drop for Batch<'_> {
    fn drop(&mut self) {
        // SAFETY: a live object, destroyed once.
        unsafe { (self.api.rocksdb_writebatch_destroy)(self.batch) }
    }
}

/// The value that options as text give `name`, if any; the last word counts.
fn asked<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let value = |option: &str| {
        let (key, value) = option.split_once('=')?;
        (key.trim() == name).then(|| value.trim().parse().ok())?
    };
    text.split(';').filter_map(value).next_back()
}

/// `path` for C.
pub(crate) fn path_name(path: &Path) -> Result<CString, String> {
    CString::new(path.to_string_lossy().as_bytes()).map_err(|_| "path has a NUL byte".to_string())
}

/// Options of writes.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
pub(crate) fn write_options(api: &RocksApi, no_wal: i32, sync: u8) -> Object {
    // SAFETY: creates an object that the caller destroys.
    unsafe {
        let options = (api.rocksdb_writeoptions_create)();
        (api.rocksdb_writeoptions_disable_WAL)(options, no_wal);
        (api.rocksdb_writeoptions_set_sync)(options, sync);
        options
    }
}

#[allow(unsafe_code, reason = "reads and frees the engine's message")]
#[inline]
pub(crate) fn take_error(api: &RocksApi, error: *mut libc::c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a NUL-terminated message malloc'ed by the engine.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        (api.rocksdb_free)(error.cast());
        Err(text)
    }
}

/// A scan under way, see [`Database::rows`].
pub struct Rows<'a> {
    db: &'a Database,
    iter: Object,
    /// Moves to the next row of its order.
    step: unsafe extern "C" fn(Object),
}

#[allow(unsafe_code, reason = "calling C functions is what it is for")]
impl Rows<'_> {
    /// Moves past a row; gives the bytes of its key and value, or `None` at the end.
    ///
    /// # Errors
    /// The error that ended the scan early.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<u64>, String> {
        let (api, mut len, mut error) = (&self.db.api, 0, null_mut());
        // SAFETY: a live iterator; keys and values are valid until it moves.
        unsafe {
            if (api.rocksdb_iter_valid)(self.iter) == 0 {
                (api.rocksdb_iter_get_error)(self.iter, &raw mut error);
                return take_error(api, error).map(|()| None);
            }
            std::hint::black_box((api.rocksdb_iter_value)(self.iter, &raw mut len));
            let bytes = (self.db.key_of(self.iter).len() + len) as u64;
            (self.step)(self.iter);
            Ok(Some(bytes))
        }
    }
}

#[allow(unsafe_code, reason = "calling C functions is what it is for")]
impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `rows`, destroyed once.
        unsafe { (self.db.api.rocksdb_iter_destroy)(self.iter) }
    }
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: live objects, each destroyed once.
        unsafe {
            if let (Some(handle), Some(destroy)) =
                (&self.default_cf, self.api.rocksdb_column_family_handle_destroy)
            {
                destroy(handle.0);
            }
            self.writes.iter().for_each(|options| (self.api.rocksdb_writeoptions_destroy)(options.0));
            (self.api.rocksdb_readoptions_destroy)(self.read.0);
            (self.api.rocksdb_close)(self.db.0);
            (self.api.rocksdb_options_destroy)(self.options.0);
            (self.api.rocksdb_cache_destroy)(self.cache.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_text_counts() {
        let text = "a=1; level0_file_num_compaction_trigger = 8;level0_file_num_compaction_trigger=9;b=true";
        assert_eq!(asked(text, "level0_file_num_compaction_trigger"), Some(9));
        assert_eq!(
            (asked(text, "b"), asked::<bool>(text, "a"), asked::<i32>("", "a")),
            (Some(true), None, None)
        );
    }
}
