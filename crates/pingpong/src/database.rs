//! An open database of any engine: RocksDB's C functions with Rust's types around them.
//!
//! Every call gives an error text instead of a failure; a function that the library lacks is one such error.
//! Invariant: objects made here are destroyed here, iterators and snapshots before the database that made them.
//! The crate's unsafe code is here, in `library.rs` and in `merge.rs`.

use crate::case::{Family, Merge};
use crate::library::{Api, Bytes, Errptr, Object};
use crate::merge;
use libc::{c_char, size_t};
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

/// The result of a call; the error is the engine's text.
pub type Outcome<T> = Result<T, String>;

/// Calls a function of the table, or fails with its name. Must be used in an unsafe block.
macro_rules! call {
    ($api:expr, $name:ident($($arg:expr),* $(,)?)) => {
        ($api.$name.ok_or_else(|| format!("the library has no {}", stringify!($name)))?)($($arg),*)
    };
}

fn parts(bytes: &[u8]) -> (Bytes, size_t) {
    (bytes.as_ptr().cast(), bytes.len())
}

fn c_string(text: &str) -> Outcome<CString> {
    CString::new(text).map_err(|_| format!("{text:?} holds a NUL"))
}

/// Options of a database and one column family.
pub struct Options<'a> {
    api: &'a Api,
    object: Object,
}

impl<'a> Options<'a> {
    /// Default options changed by each of `settings`, `name=value`.
    pub fn new(api: &'a Api, settings: &[String]) -> Outcome<Options<'a>> {
        // SAFETY: live objects; the string is NUL-terminated; the result replaces the options in place.
        unsafe {
            let options = Options { api, object: call!(api, rocksdb_options_create()) };
            for setting in merge_table_options(settings) {
                let text = c_string(&setting)?;
                with_error(api, |e| {
                    call!(
                        api,
                        rocksdb_get_options_from_string(options.object, text.as_ptr(), options.object, e)
                    );
                    Ok(())
                })
                .map_err(|error| format!("option {setting}: {error}"))?;
            }
            Ok(options)
        }
    }

    /// The same, with the objects that a column family needs.
    pub fn for_family(api: &'a Api, settings: &[String], family: &Family) -> Outcome<Options<'a>> {
        let mut settings = settings.to_vec();
        if family.reverse {
            settings.push("comparator=rocksdb.ReverseBytewiseComparator".into());
        }
        let options = Options::new(api, &settings)?;
        // SAFETY: live objects.
        unsafe {
            match family.merge {
                Merge::None => {}
                Merge::Add => call!(api, rocksdb_options_set_uint64add_merge_operator(options.object)),
                Merge::Append => {
                    let operator = call!(
                        api,
                        rocksdb_mergeoperator_create(
                            null_mut(),
                            merge::destroy,
                            merge::full_merge,
                            merge::partial_merge,
                            merge::delete_value,
                            merge::name
                        )
                    );
                    call!(api, rocksdb_options_set_merge_operator(options.object, operator));
                }
            }
        }
        Ok(options)
    }

    /// Missing databases and column families are created.
    pub fn create_missing(&self) -> Outcome<()> {
        // SAFETY: live objects.
        unsafe {
            call!(self.api, rocksdb_options_set_create_if_missing(self.object, 1));
            call!(self.api, rocksdb_options_set_create_missing_column_families(self.object, 1));
        }
        Ok(())
    }
}

impl Drop for Options<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.api.rocksdb_options_destroy {
            // SAFETY: ours, and destroyed once.
            unsafe { destroy(self.object) }
        }
    }
}

/// Settings of the table, marked by `table.`, as the one option that they are for RocksDB.
fn merge_table_options(settings: &[String]) -> Vec<String> {
    let (table, mut all): (Vec<&String>, Vec<String>) = (
        settings.iter().filter(|setting| setting.starts_with("table.")).collect(),
        settings.iter().filter(|setting| !setting.starts_with("table.")).cloned().collect(),
    );
    if !table.is_empty() {
        let inner: String = table.iter().map(|setting| format!("{};", &setting["table.".len()..])).collect();
        all.push(format!("block_based_table_factory={{{inner}}}"));
    }
    all
}

/// Runs a call that may store an error.
fn with_error<T>(api: &Api, call: impl FnOnce(Errptr) -> Outcome<T>) -> Outcome<T> {
    let mut error: *mut c_char = null_mut();
    let result = call(&raw mut error);
    match take_error(api, error) {
        Some(text) => Err(text),
        None => result,
    }
}

fn take_error(api: &Api, error: *mut c_char) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated message that the library allocated.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        if let Some(free) = api.rocksdb_free {
            free(error.cast());
        }
        Some(text)
    }
}

/// Copies what a library allocated with `len` bytes, and frees it; null is `None`.
fn take_bytes(api: &Api, bytes: *mut c_char, len: size_t) -> Option<Vec<u8>> {
    if bytes.is_null() {
        return None;
    }
    // SAFETY: allocated by the library with `len` readable bytes.
    unsafe {
        let copy = std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec();
        if let Some(free) = api.rocksdb_free {
            free(bytes.cast());
        }
        Some(copy)
    }
}

/// Column families of a database that is not open.
pub fn list_families(api: &Api, path: &str) -> Outcome<Vec<String>> {
    let options = Options::new(api, &[])?;
    let path = c_string(path)?;
    let mut count = 0;
    // SAFETY: live objects; the list holds `count` NUL-terminated names.
    unsafe {
        let list = with_error(api, |e| {
            Ok(call!(api, rocksdb_list_column_families(options.object, path.as_ptr(), &raw mut count, e)))
        })?;
        let name = |i| CStr::from_ptr(*list.add(i)).to_string_lossy().into_owned();
        let names = (0..count).map(name).collect();
        call!(api, rocksdb_list_column_families_destroy(list, count));
        Ok(names)
    }
}

/// A column family's handle: valid while its database is open.
#[derive(Clone, Copy)]
pub struct Handle(Object);

/// A snapshot of an open database.
#[derive(Clone, Copy)]
pub struct SnapshotHandle(Object);

/// What a read looks at.
#[derive(Default)]
pub struct ReadView<'v> {
    /// The past, or now.
    pub snapshot: Option<SnapshotHandle>,
    /// Inclusive.
    pub lower: Option<&'v [u8]>,
    /// Exclusive.
    pub upper: Option<&'v [u8]>,
    /// Only rows with the prefix of the sought key; otherwise the whole order is wanted.
    pub same_prefix: bool,
}

/// An open database.
pub struct Database<'a> {
    api: &'a Api,
    object: Object,
    _options: Vec<Options<'a>>,
}

impl<'a> Database<'a> {
    /// Opens `path` with column families of these names and options; the first options are the database's too.
    pub fn open(
        api: &'a Api,
        path: &str,
        families: Vec<(String, Options<'a>)>,
    ) -> Outcome<(Database<'a>, Vec<Handle>)> {
        let path = c_string(path)?;
        let names: Vec<CString> = families.iter().map(|(name, _)| c_string(name)).collect::<Outcome<_>>()?;
        let name_pointers: Vec<Bytes> = names.iter().map(|name| name.as_ptr()).collect();
        let options: Vec<Options<'a>> = families.into_iter().map(|(_, options)| options).collect();
        let option_pointers: Vec<Object> = options.iter().map(|options| options.object).collect();
        let mut handles = vec![null_mut(); names.len()];
        // SAFETY: live objects; as many names, options and places for handles as the count says.
        let object = unsafe {
            with_error(api, |e| {
                Ok(call!(
                    api,
                    rocksdb_open_column_families(
                        option_pointers[0],
                        path.as_ptr(),
                        names.len() as i32,
                        name_pointers.as_ptr(),
                        option_pointers.as_ptr(),
                        handles.as_mut_ptr(),
                        e
                    )
                ))
            })?
        };
        let handles = handles.into_iter().map(Handle).collect();
        Ok((Database { api, object, _options: options }, handles))
    }

    /// Closes the database. Iterators, snapshots and handles must be gone.
    pub fn close(self) -> Outcome<()> {
        // SAFETY: the object is live; `self` ends here.
        unsafe { call!(self.api, rocksdb_close(self.object)) };
        Ok(())
    }

    /// Creates a column family; its options stay alive with the database.
    pub fn create_family(&mut self, name: &str, options: Options<'a>) -> Outcome<Handle> {
        let name = c_string(name)?;
        // SAFETY: live objects.
        let handle = unsafe {
            with_error(self.api, |e| {
                Ok(call!(
                    self.api,
                    rocksdb_create_column_family(self.object, options.object, name.as_ptr(), e)
                ))
            })?
        };
        self._options.push(options);
        Ok(Handle(handle))
    }

    /// Drops a column family; the handle stays until it is destroyed.
    pub fn drop_family(&self, handle: Handle) -> Outcome<()> {
        // SAFETY: live objects.
        unsafe {
            with_error(self.api, |e| {
                call!(self.api, rocksdb_drop_column_family(self.object, handle.0, e));
                Ok(())
            })
        }
    }

    /// Ends a handle.
    pub fn destroy_handle(&self, handle: Handle) -> Outcome<()> {
        // SAFETY: a live handle of this database, destroyed once.
        unsafe { call!(self.api, rocksdb_column_family_handle_destroy(handle.0)) };
        Ok(())
    }

    /// The id that the column family has in the WAL.
    pub fn family_id(&self, handle: Handle) -> Outcome<u32> {
        // SAFETY: a live handle.
        Ok(unsafe { call!(self.api, rocksdb_column_family_handle_get_id(handle.0)) })
    }

    /// Changes an option.
    pub fn set_options(&self, handle: Handle, name: &str, value: &str) -> Outcome<()> {
        let (name, value) = (c_string(name)?, c_string(value)?);
        // SAFETY: live objects; arrays of one.
        unsafe {
            with_error(self.api, |e| {
                let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
                call!(
                    self.api,
                    rocksdb_set_options_cf(self.object, handle.0, 1, names.as_ptr(), values.as_ptr(), e)
                );
                Ok(())
            })
        }
    }

    /// Takes a snapshot.
    pub fn snapshot(&self) -> Outcome<SnapshotHandle> {
        // SAFETY: a live database.
        Ok(SnapshotHandle(unsafe { call!(self.api, rocksdb_create_snapshot(self.object)) }))
    }

    /// Gives a snapshot back.
    pub fn release(&self, snapshot: SnapshotHandle) -> Outcome<()> {
        // SAFETY: a live snapshot of this database, released once.
        unsafe { call!(self.api, rocksdb_release_snapshot(self.object, snapshot.0)) };
        Ok(())
    }

    /// Writes `batch`.
    pub fn write(&self, batch: &Batch<'_>, sync: bool, wal: bool) -> Outcome<()> {
        self.with_write_options(sync, wal, |options| {
            // SAFETY: live objects.
            unsafe {
                with_error(self.api, |e| {
                    call!(self.api, rocksdb_write(self.object, options, batch.object, e));
                    Ok(())
                })
            }
        })
    }

    /// Writes one change by its own function.
    pub fn write_one(&self, handle: Handle, change: Change<'_>, sync: bool, wal: bool) -> Outcome<()> {
        self.with_write_options(sync, wal, |options| {
            let (api, db, cf) = (self.api, self.object, handle.0);
            // SAFETY: live objects and slices.
            with_error(api, |e| unsafe {
                match change {
                    Change::Put(key, value) => {
                        let ((k, kl), (v, vl)) = (parts(key), parts(value));
                        call!(api, rocksdb_put_cf(db, options, cf, k, kl, v, vl, e));
                    }
                    Change::Merge(key, value) => {
                        let ((k, kl), (v, vl)) = (parts(key), parts(value));
                        call!(api, rocksdb_merge_cf(db, options, cf, k, kl, v, vl, e));
                    }
                    Change::Delete(key) => {
                        let (k, kl) = parts(key);
                        call!(api, rocksdb_delete_cf(db, options, cf, k, kl, e));
                    }
                    Change::SingleDelete(key) => {
                        let (k, kl) = parts(key);
                        call!(api, rocksdb_singledelete_cf(db, options, cf, k, kl, e));
                    }
                    Change::DeleteRange(begin, end) => {
                        let ((b, bl), (k, kl)) = (parts(begin), parts(end));
                        call!(api, rocksdb_delete_range_cf(db, options, cf, b, bl, k, kl, e));
                    }
                }
                Ok(())
            })
        })
    }

    fn with_write_options(
        &self,
        sync: bool,
        wal: bool,
        call: impl FnOnce(Object) -> Outcome<()>,
    ) -> Outcome<()> {
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(self.api, rocksdb_writeoptions_create());
            if sync {
                call!(self.api, rocksdb_writeoptions_set_sync(options, 1));
            }
            if !wal {
                call!(self.api, rocksdb_writeoptions_disable_WAL(options, 1));
            }
            let result = call(options);
            call!(self.api, rocksdb_writeoptions_destroy(options));
            result
        }
    }

    fn with_read_options<T>(
        &self,
        view: &ReadView<'_>,
        call: impl FnOnce(Object) -> Outcome<T>,
    ) -> Outcome<T> {
        let api = self.api;
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(api, rocksdb_readoptions_create());
            if let Some(snapshot) = view.snapshot {
                call!(api, rocksdb_readoptions_set_snapshot(options, snapshot.0));
            }
            let result = call(options);
            call!(api, rocksdb_readoptions_destroy(options));
            result
        }
    }

    /// The value of a key.
    pub fn get(&self, handle: Handle, view: &ReadView<'_>, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let (k, kl) = parts(key);
        let mut len = 0;
        self.with_read_options(view, |options| {
            // SAFETY: live objects and slices.
            let value = with_error(self.api, |e| unsafe {
                Ok(call!(self.api, rocksdb_get_cf(self.object, options, handle.0, k, kl, &raw mut len, e)))
            })?;
            Ok(take_bytes(self.api, value, len))
        })
    }

    /// The same, without the engine making a copy.
    pub fn get_pinned(&self, handle: Handle, view: &ReadView<'_>, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let (k, kl) = parts(key);
        self.with_read_options(view, |options| {
            // SAFETY: live objects and slices.
            let slice = with_error(self.api, |e| unsafe {
                Ok(call!(self.api, rocksdb_get_pinned_cf(self.object, options, handle.0, k, kl, e)))
            })?;
            self.take_pinned(slice)
        })
    }

    fn take_pinned(&self, slice: Object) -> Outcome<Option<Vec<u8>>> {
        if slice.is_null() {
            return Ok(None);
        }
        let mut len = 0;
        // SAFETY: a live pinned slice; its bytes are copied before it is destroyed.
        unsafe {
            let bytes = call!(self.api, rocksdb_pinnableslice_value(slice, &raw mut len));
            let copy = std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec();
            call!(self.api, rocksdb_pinnableslice_destroy(slice));
            Ok(Some(copy))
        }
    }

    /// The values of keys, by `rocksdb_multi_get_cf`.
    pub fn multi_get(
        &self,
        handle: Handle,
        view: &ReadView<'_>,
        keys: &[&[u8]],
    ) -> Outcome<Vec<Option<Vec<u8>>>> {
        let pointers: Vec<Bytes> = keys.iter().map(|key| parts(key).0).collect();
        let lens: Vec<size_t> = keys.iter().map(|key| key.len()).collect();
        let handles = vec![handle.0; keys.len()];
        let (mut values, mut value_lens) = (vec![null_mut(); keys.len()], vec![0; keys.len()]);
        let mut errors: Vec<*mut c_char> = vec![null_mut(); keys.len()];
        self.with_read_options(view, |options| {
            // SAFETY: live objects; all arrays have as many elements as there are keys.
            unsafe {
                call!(
                    self.api,
                    rocksdb_multi_get_cf(
                        self.object,
                        options,
                        handles.as_ptr(),
                        keys.len(),
                        pointers.as_ptr(),
                        lens.as_ptr(),
                        values.as_mut_ptr(),
                        value_lens.as_mut_ptr(),
                        errors.as_mut_ptr()
                    )
                );
            }
            Ok(())
        })?;
        let errors = errors.into_iter().map(|error| take_error(self.api, error));
        let values = values.into_iter().zip(value_lens);
        values
            .zip(errors)
            .map(|((value, len), error)| {
                let value = take_bytes(self.api, value, len);
                error.map_or(Ok(value), Err)
            })
            .collect()
    }

    /// The values of keys, by `rocksdb_batched_multi_get_cf`.
    pub fn batched_multi_get(
        &self,
        handle: Handle,
        view: &ReadView<'_>,
        keys: &[&[u8]],
    ) -> Outcome<Vec<Option<Vec<u8>>>> {
        let pointers: Vec<Bytes> = keys.iter().map(|key| parts(key).0).collect();
        let lens: Vec<size_t> = keys.iter().map(|key| key.len()).collect();
        let mut values = vec![null_mut(); keys.len()];
        let mut errors: Vec<*mut c_char> = vec![null_mut(); keys.len()];
        self.with_read_options(view, |options| {
            // SAFETY: live objects; all arrays have as many elements as there are keys.
            unsafe {
                call!(
                    self.api,
                    rocksdb_batched_multi_get_cf(
                        self.object,
                        options,
                        handle.0,
                        keys.len(),
                        pointers.as_ptr(),
                        lens.as_ptr(),
                        values.as_mut_ptr(),
                        errors.as_mut_ptr(),
                        false
                    )
                );
            }
            Ok(())
        })?;
        let errors = errors.into_iter().map(|error| take_error(self.api, error));
        values
            .into_iter()
            .zip(errors)
            .map(|(value, error)| {
                let value = self.take_pinned(value)?;
                error.map_or(Ok(value), Err)
            })
            .collect()
    }

    /// Opens an iterator.
    pub fn iter(&self, handle: Handle, view: &ReadView<'_>) -> Outcome<Iter<'a>> {
        let api = self.api;
        // SAFETY: live objects; the bounds' bytes and the read options live as long as the iterator.
        unsafe {
            let read = call!(api, rocksdb_readoptions_create());
            let lower = view.lower.map(Box::<[u8]>::from);
            let upper = view.upper.map(Box::<[u8]>::from);
            if let Some(snapshot) = view.snapshot {
                call!(api, rocksdb_readoptions_set_snapshot(read, snapshot.0));
            }
            if let Some((k, kl)) = lower.as_deref().map(parts) {
                call!(api, rocksdb_readoptions_set_iterate_lower_bound(read, k, kl));
            }
            if let Some((k, kl)) = upper.as_deref().map(parts) {
                call!(api, rocksdb_readoptions_set_iterate_upper_bound(read, k, kl));
            }
            if view.same_prefix {
                call!(api, rocksdb_readoptions_set_prefix_same_as_start(read, 1));
            } else if let Some(set) = api.rocksdb_readoptions_set_total_order_seek {
                // An engine without it has no other order.
                set(read, 1);
            }
            let object = call!(api, rocksdb_create_iterator_cf(self.object, read, handle.0));
            Ok(Iter { api, object, read, _bounds: [lower, upper] })
        }
    }

    /// Flushes a column family's memtables.
    pub fn flush(&self, handle: Handle, wait: bool) -> Outcome<()> {
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(self.api, rocksdb_flushoptions_create());
            call!(self.api, rocksdb_flushoptions_set_wait(options, wait.into()));
            let result = with_error(self.api, |e| {
                call!(self.api, rocksdb_flush_cf(self.object, options, handle.0, e));
                Ok(())
            });
            call!(self.api, rocksdb_flushoptions_destroy(options));
            result
        }
    }

    /// Hands the WAL's buffer to the operating system.
    pub fn flush_wal(&self, sync: bool) -> Outcome<()> {
        // SAFETY: a live database.
        with_error(self.api, |e| unsafe {
            call!(self.api, rocksdb_flush_wal(self.object, sync.into(), e));
            Ok(())
        })
    }

    /// Compacts a range.
    pub fn compact_range(
        &self,
        handle: Handle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        bottommost: u8,
        exclusive: bool,
    ) -> Outcome<()> {
        let ((b, bl), (k, kl)) = (begin.map_or((null(), 0), parts), end.map_or((null(), 0), parts));
        // SAFETY: live objects; null bounds are unbounded.
        unsafe {
            let options = call!(self.api, rocksdb_compactoptions_create());
            if bottommost != 1 {
                call!(self.api, rocksdb_compactoptions_set_bottommost_level_compaction(options, bottommost));
            }
            if let Some(set) = self.api.rocksdb_compactoptions_set_exclusive_manual_compaction {
                // It changes no result; an engine without it has one behaviour.
                set(options, exclusive.into());
            }
            call!(self.api, rocksdb_compact_range_cf_opt(self.object, handle.0, options, b, bl, k, kl));
            call!(self.api, rocksdb_compactoptions_destroy(options));
        }
        Ok(())
    }

    /// A property that is a number.
    pub fn property(&self, handle: Handle, name: &CStr) -> Outcome<u64> {
        let mut number = 0;
        // SAFETY: live objects and a NUL-terminated name.
        let missing = unsafe {
            call!(self.api, rocksdb_property_int_cf(self.object, handle.0, name.as_ptr(), &raw mut number))
        };
        if missing == 0 { Ok(number) } else { Err(format!("no property {}", name.to_string_lossy())) }
    }

    /// Ingests a table.
    pub fn ingest(&self, handle: Handle, path: &str, move_file: bool) -> Outcome<()> {
        let path = c_string(path)?;
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(self.api, rocksdb_ingestexternalfileoptions_create());
            call!(self.api, rocksdb_ingestexternalfileoptions_set_move_files(options, move_file.into()));
            let result = with_error(self.api, |e| {
                let list = [path.as_ptr()];
                let (db, cf) = (self.object, handle.0);
                call!(self.api, rocksdb_ingest_external_file_cf(db, cf, list.as_ptr(), 1, options, e));
                Ok(())
            });
            call!(self.api, rocksdb_ingestexternalfileoptions_destroy(options));
            result
        }
    }

    /// Makes a checkpoint in `path`, which does not exist yet.
    pub fn checkpoint(&self, path: &str, log_size_for_flush: u64) -> Outcome<()> {
        let path = c_string(path)?;
        // SAFETY: live objects; the checkpoint object is destroyed after its one use.
        unsafe {
            let object = with_error(self.api, |e| {
                Ok(call!(self.api, rocksdb_checkpoint_object_create(self.object, e)))
            })?;
            let result = with_error(self.api, |e| {
                call!(self.api, rocksdb_checkpoint_create(object, path.as_ptr(), log_size_for_flush, e));
                Ok(())
            });
            call!(self.api, rocksdb_checkpoint_object_destroy(object));
            result
        }
    }
}

/// One change of a write.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Change<'k> {
    Put(&'k [u8], &'k [u8]),
    Merge(&'k [u8], &'k [u8]),
    Delete(&'k [u8]),
    SingleDelete(&'k [u8]),
    DeleteRange(&'k [u8], &'k [u8]),
}

/// A write batch.
pub struct Batch<'a> {
    api: &'a Api,
    object: Object,
}

impl<'a> Batch<'a> {
    /// An empty batch.
    pub fn new(api: &'a Api) -> Outcome<Batch<'a>> {
        // SAFETY: no arguments.
        Ok(Batch { api, object: unsafe { call!(api, rocksdb_writebatch_create()) } })
    }

    /// The batch of these bytes, in RocksDB's wire form.
    pub fn from_bytes(api: &'a Api, bytes: &[u8]) -> Outcome<Batch<'a>> {
        let (b, bl) = parts(bytes);
        // SAFETY: a live slice, which is copied.
        Ok(Batch { api, object: unsafe { call!(api, rocksdb_writebatch_create_from(b, bl)) } })
    }

    /// Adds a change.
    pub fn add(&mut self, handle: Handle, change: Change<'_>) -> Outcome<()> {
        let (api, batch, cf) = (self.api, self.object, handle.0);
        // SAFETY: live objects and slices.
        unsafe {
            match change {
                Change::Put(key, value) => {
                    let ((k, kl), (v, vl)) = (parts(key), parts(value));
                    call!(api, rocksdb_writebatch_put_cf(batch, cf, k, kl, v, vl));
                }
                Change::Merge(key, value) => {
                    let ((k, kl), (v, vl)) = (parts(key), parts(value));
                    call!(api, rocksdb_writebatch_merge_cf(batch, cf, k, kl, v, vl));
                }
                Change::Delete(key) => {
                    let (k, kl) = parts(key);
                    call!(api, rocksdb_writebatch_delete_cf(batch, cf, k, kl));
                }
                Change::SingleDelete(key) => {
                    let (k, kl) = parts(key);
                    call!(api, rocksdb_writebatch_singledelete_cf(batch, cf, k, kl));
                }
                Change::DeleteRange(begin, end) => {
                    let ((b, bl), (k, kl)) = (parts(begin), parts(end));
                    call!(api, rocksdb_writebatch_delete_range_cf(batch, cf, b, bl, k, kl));
                }
            }
        }
        Ok(())
    }

    /// Adds bytes for the WAL.
    pub fn add_log_data(&mut self, data: &[u8]) -> Outcome<()> {
        let (b, bl) = parts(data);
        // SAFETY: a live object and slice.
        unsafe { call!(self.api, rocksdb_writebatch_put_log_data(self.object, b, bl)) };
        Ok(())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.api.rocksdb_writebatch_destroy {
            // SAFETY: ours, and destroyed once.
            unsafe { destroy(self.object) }
        }
    }
}

/// An iterator. It must be dropped before its database is closed and before its snapshot is released.
pub struct Iter<'a> {
    api: &'a Api,
    object: Object,
    read: Object,
    _bounds: [Option<Box<[u8]>>; 2],
}

impl Iter<'_> {
    /// At a row.
    pub fn valid(&self) -> Outcome<bool> {
        // SAFETY: a live iterator.
        Ok(unsafe { call!(self.api, rocksdb_iter_valid(self.object)) } != 0)
    }

    /// Moves.
    pub fn seek_to_first(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator.
        unsafe { call!(self.api, rocksdb_iter_seek_to_first(self.object)) };
        Ok(())
    }

    /// Moves.
    pub fn seek_to_last(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator.
        unsafe { call!(self.api, rocksdb_iter_seek_to_last(self.object)) };
        Ok(())
    }

    /// Moves to the first row at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Outcome<()> {
        let (k, kl) = parts(key);
        // SAFETY: a live iterator and slice.
        unsafe { call!(self.api, rocksdb_iter_seek(self.object, k, kl)) };
        Ok(())
    }

    /// Moves to the last row at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Outcome<()> {
        let (k, kl) = parts(key);
        // SAFETY: a live iterator and slice.
        unsafe { call!(self.api, rocksdb_iter_seek_for_prev(self.object, k, kl)) };
        Ok(())
    }

    /// Moves on; only at a row.
    pub fn next(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator at a row.
        unsafe { call!(self.api, rocksdb_iter_next(self.object)) };
        Ok(())
    }

    /// Moves back; only at a row.
    pub fn prev(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator at a row.
        unsafe { call!(self.api, rocksdb_iter_prev(self.object)) };
        Ok(())
    }

    /// Key and value of the row it is at.
    pub fn row(&self) -> Outcome<(&[u8], &[u8])> {
        let (mut kl, mut vl) = (0, 0);
        // SAFETY: a live iterator at a row; the slices are valid until it moves, which borrowing forbids.
        unsafe {
            let key = call!(self.api, rocksdb_iter_key(self.object, &raw mut kl));
            let value = call!(self.api, rocksdb_iter_value(self.object, &raw mut vl));
            Ok((std::slice::from_raw_parts(key.cast(), kl), std::slice::from_raw_parts(value.cast(), vl)))
        }
    }

    /// Why it is at no row, if that was an error.
    pub fn status(&self) -> Outcome<()> {
        with_error(self.api, |e| {
            // SAFETY: a live iterator.
            unsafe { call!(self.api, rocksdb_iter_get_error(self.object, e)) };
            Ok(())
        })
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, and destroyed once.
        unsafe {
            if let Some(destroy) = self.api.rocksdb_iter_destroy {
                destroy(self.object);
            }
            if let Some(destroy) = self.api.rocksdb_readoptions_destroy {
                destroy(self.read);
            }
        }
    }
}

/// Writes a table outside a database.
pub fn write_table<'k>(
    api: &Api,
    path: &str,
    options: &Options<'_>,
    changes: impl Iterator<Item = Change<'k>>,
) -> Outcome<()> {
    let path = c_string(path)?;
    // SAFETY: live objects and slices; writer and environment options are destroyed after their one use.
    unsafe {
        let env = call!(api, rocksdb_envoptions_create());
        let writer = call!(api, rocksdb_sstfilewriter_create(env, options.object));
        let mut result = with_error(api, |e| {
            call!(api, rocksdb_sstfilewriter_open(writer, path.as_ptr(), e));
            Ok(())
        });
        for change in changes {
            result = result.and_then(|()| with_error(api, |e| add_to_table(api, writer, change, e)));
        }
        result = result.and_then(|()| {
            with_error(api, |e| {
                call!(api, rocksdb_sstfilewriter_finish(writer, e));
                Ok(())
            })
        });
        call!(api, rocksdb_sstfilewriter_destroy(writer));
        call!(api, rocksdb_envoptions_destroy(env));
        result
    }
}

/// Adds a change to a table that is being written.
///
/// # Safety
/// `writer` is a live table writer.
unsafe fn add_to_table(api: &Api, writer: Object, change: Change<'_>, e: Errptr) -> Outcome<()> {
    // SAFETY: the caller's promise; live slices.
    unsafe {
        match change {
            Change::Put(key, value) => {
                let ((k, kl), (v, vl)) = (parts(key), parts(value));
                call!(api, rocksdb_sstfilewriter_put(writer, k, kl, v, vl, e));
            }
            Change::Merge(key, value) => {
                let ((k, kl), (v, vl)) = (parts(key), parts(value));
                call!(api, rocksdb_sstfilewriter_merge(writer, k, kl, v, vl, e));
            }
            Change::Delete(key) => {
                let (k, kl) = parts(key);
                call!(api, rocksdb_sstfilewriter_delete(writer, k, kl, e));
            }
            Change::DeleteRange(begin, end) => {
                let ((b, bl), (k, kl)) = (parts(begin), parts(end));
                call!(api, rocksdb_sstfilewriter_delete_range(writer, b, bl, k, kl, e));
            }
            Change::SingleDelete(_) => return Err("tables are written without single deletes".into()),
        }
    }
    Ok(())
}
