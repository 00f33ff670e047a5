//! An open database of any engine: RocksDB's C functions with Rust's types around them.
//!
//! Every call gives an error text instead of a failure; a function that the library lacks is one such error.
//! Invariant: objects made here are destroyed here, iterators and snapshots before the database that made them.
//! The crate's unsafe code is here and in the files it is built from: `library.rs`, `call.rs`, `options.rs`,
//! `batch.rs`, `iter.rs`, `merge.rs`, `backups.rs`, `transactions.rs`, `calls/updates.rs`, `timestamps/session.rs`.

use crate::batch::{Batch, Change};
use crate::call::{Outcome, c_string, call, parts, take_bytes, take_error, with_error};
use crate::iter::Iter;
use crate::library::{Api, Bytes, Errptr, Object};
use crate::options::Options;
use libc::{c_char, size_t};
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

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
pub struct Handle(pub(crate) Object);

// SAFETY: a handle is only passed to functions of its database, which RocksDB lets any threads call at once.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// A snapshot of an open database.
#[derive(Clone, Copy)]
pub struct SnapshotHandle(Object);

/// The state that a read looks at.
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

/// How tables are ingested.
#[derive(Default)]
pub struct Ingestion {
    /// Moved instead of copied.
    pub move_files: bool,
    /// They must need no sequence number.
    pub no_sequence: bool,
    /// Below everything that is there.
    pub behind: bool,
}

/// After so long values expire if nobody says when: never within a run. RocksDB adds it to the time of a write in 32 bits, which larger numbers overflow.
const TTL_SECONDS: i32 = 10_000_000;

/// An open database.
pub struct Database<'a> {
    pub(crate) api: &'a Api,
    pub(crate) object: Object,
    /// The database with transactions that this is the base of.
    pub(crate) transactions: Option<Object>,
    /// It was opened as a DBWithTTL.
    ttl: bool,
    options: Mutex<Vec<Options<'a>>>,
}

// SAFETY: RocksDB lets any threads call the functions of one database at once; the options are only kept alive.
unsafe impl Sync for Database<'_> {}

impl<'a> Database<'a> {
    /// Opens `path` with column families of these names and options; the first options are the database's too.
    pub fn open(
        api: &'a Api,
        path: &str,
        families: Vec<(String, Options<'a>)>,
    ) -> Outcome<(Database<'a>, Vec<Handle>)> {
        Database::open_by(api, families, |options, count, names, all, handles, e| {
            let path = c_string(path)?;
            // SAFETY: live objects; as many names, options and places for handles as the count says.
            Ok(unsafe {
                call!(
                    api,
                    rocksdb_open_column_families(options, path.as_ptr(), count, names, all, handles, e)
                )
            })
        })
    }

    /// The same, for reading.
    pub fn open_for_read_only(
        api: &'a Api,
        path: &str,
        families: Vec<(String, Options<'a>)>,
    ) -> Outcome<(Database<'a>, Vec<Handle>)> {
        Database::open_by(api, families, |options, count, names, all, handles, e| {
            let path = c_string(path)?;
            // SAFETY: as in `open`.
            Ok(unsafe {
                call!(
                    api,
                    rocksdb_open_for_read_only_column_families(
                        options,
                        path.as_ptr(),
                        count,
                        names,
                        all,
                        handles,
                        0,
                        e
                    )
                )
            })
        })
    }

    pub(crate) fn open_by(
        api: &'a Api,
        families: Vec<(String, Options<'a>)>,
        open: impl FnOnce(Object, i32, *const Bytes, *const Object, *mut Object, Errptr) -> Outcome<Object>,
    ) -> Outcome<(Database<'a>, Vec<Handle>)> {
        let names: Vec<CString> = families.iter().map(|(name, _)| c_string(name)).collect::<Outcome<_>>()?;
        let name_pointers: Vec<Bytes> = names.iter().map(|name| name.as_ptr()).collect();
        let options: Vec<Options<'a>> = families.into_iter().map(|(_, options)| options).collect();
        let option_pointers: Vec<Object> = options.iter().map(|options| options.object).collect();
        let mut handles = vec![null_mut(); names.len()];
        let object = with_error(api, |e| {
            let (count, first) = (names.len() as i32, option_pointers[0]);
            open(first, count, name_pointers.as_ptr(), option_pointers.as_ptr(), handles.as_mut_ptr(), e)
        })?;
        let handles = handles.into_iter().map(Handle).collect();
        Ok((Database { api, object, transactions: None, ttl: false, options: Mutex::new(options) }, handles))
    }

    /// Closes the database. Iterators, snapshots and handles must be gone.
    pub fn close(self) -> Outcome<()> {
        // SAFETY: the objects are live; `self` ends here.
        unsafe {
            match self.transactions {
                None => call!(self.api, rocksdb_close(self.object)),
                Some(database) => {
                    call!(self.api, rocksdb_transactiondb_close_base_db(self.object));
                    call!(self.api, rocksdb_transactiondb_close(database));
                }
            }
        }
        Ok(())
    }

    /// The same, of values that carry the time of their write: a DBWithTTL. Column families without a TTL get one that is never reached.
    pub fn open_with_ttl(
        api: &'a Api,
        path: &str,
        families: Vec<(String, Options<'a>)>,
        ttls: &[i32],
    ) -> Outcome<(Database<'a>, Vec<Handle>)> {
        let mut ttls = ttls.to_vec();
        ttls.resize(families.len(), TTL_SECONDS);
        let (mut database, handles) =
            Database::open_by(api, families, |options, count, names, all, handles, e| {
                let path = c_string(path)?;
                let ttls = ttls.as_ptr();
                // SAFETY: as in `open`; as many times as the count says.
                Ok(unsafe {
                    call!(
                        api,
                        rocksdb_open_column_families_with_ttl(
                            options,
                            path.as_ptr(),
                            count,
                            names,
                            all,
                            handles,
                            ttls,
                            e
                        )
                    )
                })
            })?;
        database.ttl = true;
        Ok((database, handles))
    }

    /// Creates a column family; its options stay alive with the database.
    pub fn create_family(&self, name: &str, options: Options<'a>) -> Outcome<Handle> {
        let name = c_string(name)?;
        // SAFETY: live objects.
        let handle = unsafe {
            with_error(self.api, |e| {
                let (options, name) = (options.object, name.as_ptr());
                Ok(match self.transactions {
                    // The lock manager knows only the column families that its own database creates.
                    Some(database) => {
                        call!(
                            self.api,
                            rocksdb_transactiondb_create_column_family(database, options, name, e)
                        )
                    }
                    None if self.ttl => {
                        let database = self.object;
                        call!(
                            self.api,
                            rocksdb_create_column_family_with_ttl(database, options, name, TTL_SECONDS, e)
                        )
                    }
                    None => call!(self.api, rocksdb_create_column_family(self.object, options, name, e)),
                })
            })?
        };
        self.options.lock().expect("no thread panics with it").push(options);
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

    pub(crate) fn with_write_options(
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
        self.multi_get_of(view, &keys.iter().map(|key| (handle, *key)).collect::<Vec<_>>())
    }

    /// The same, of keys in several column families.
    pub fn multi_get_of(
        &self,
        view: &ReadView<'_>,
        keys: &[(Handle, &[u8])],
    ) -> Outcome<Vec<Option<Vec<u8>>>> {
        let pointers: Vec<Bytes> = keys.iter().map(|(_, key)| parts(key).0).collect();
        let lens: Vec<size_t> = keys.iter().map(|(_, key)| key.len()).collect();
        let handles: Vec<Object> = keys.iter().map(|(handle, _)| handle.0).collect();
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

    /// Opens an iterator of each column family, all at one moment.
    pub fn iterators(&self, handles: &[Handle]) -> Outcome<Vec<Iter<'a>>> {
        let api = self.api;
        let families: Vec<Object> = handles.iter().map(|handle| handle.0).collect();
        let mut objects = vec![null_mut(); handles.len()];
        // SAFETY: live objects; as many places for iterators as column families. Each iterator owns read options.
        unsafe {
            let reads = handles
                .iter()
                .map(|_| Ok(call!(api, rocksdb_readoptions_create())))
                .collect::<Outcome<Vec<Object>>>()?;
            with_error(api, |e| {
                let (read, count) = (reads[0], families.len());
                call!(
                    api,
                    rocksdb_create_iterators(
                        self.object,
                        read,
                        families.as_ptr(),
                        objects.as_mut_ptr(),
                        count,
                        e
                    )
                );
                Ok(())
            })?;
            let iters = objects.into_iter().zip(reads);
            Ok(iters.map(|(object, read)| Iter { api, object, read, _bounds: [None, None] }).collect())
        }
    }

    /// Flushes a column family's memtables.
    pub fn flush(&self, handle: Handle, wait: bool) -> Outcome<()> {
        self.with_flush_options(wait, |options| {
            // SAFETY: live objects.
            with_error(self.api, |e| unsafe {
                call!(self.api, rocksdb_flush_cf(self.object, options, handle.0, e));
                Ok(())
            })
        })
    }

    /// Flushes the memtables of column families; in one step if the database flushes atomically.
    pub fn flush_together(&self, handles: &[Handle], wait: bool) -> Outcome<()> {
        let list: Vec<Object> = handles.iter().map(|handle| handle.0).collect();
        self.with_flush_options(wait, |options| {
            // SAFETY: live objects; as many handles as the count says.
            with_error(self.api, |e| unsafe {
                let count = list.len() as i32;
                call!(self.api, rocksdb_flush_cfs(self.object, options, list.as_ptr(), count, e));
                Ok(())
            })
        })
    }

    fn with_flush_options(&self, wait: bool, flush: impl FnOnce(Object) -> Outcome<()>) -> Outcome<()> {
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(self.api, rocksdb_flushoptions_create());
            call!(self.api, rocksdb_flushoptions_set_wait(options, wait.into()));
            let result = flush(options);
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

    /// Ingests tables.
    pub fn ingest(&self, handle: Handle, paths: &[&str], how: &Ingestion) -> Outcome<()> {
        let paths = paths.iter().map(|path| c_string(path)).collect::<Outcome<Vec<CString>>>()?;
        let list: Vec<Bytes> = paths.iter().map(|path| path.as_ptr()).collect();
        let api = self.api;
        // SAFETY: live objects; the options are destroyed after their one use; as many paths as the count says.
        unsafe {
            let options = call!(api, rocksdb_ingestexternalfileoptions_create());
            call!(api, rocksdb_ingestexternalfileoptions_set_move_files(options, how.move_files.into()));
            if how.no_sequence {
                call!(api, rocksdb_ingestexternalfileoptions_set_allow_global_seqno(options, 0));
            }
            if how.behind {
                call!(api, rocksdb_ingestexternalfileoptions_set_ingest_behind(options, 1));
            }
            let result = with_error(api, |e| {
                let (db, cf) = (self.object, handle.0);
                call!(api, rocksdb_ingest_external_file_cf(db, cf, list.as_ptr(), list.len(), options, e));
                Ok(())
            });
            call!(api, rocksdb_ingestexternalfileoptions_destroy(options));
            result
        }
    }

    /// Asks for updates since a sequence number that is not written yet.
    pub fn updates_of_the_future(&self) -> Outcome<()> {
        // SAFETY: a live database; an iterator that is given is destroyed.
        unsafe {
            let newest = call!(self.api, rocksdb_get_latest_sequence_number(self.object));
            let updates = with_error(self.api, |e| {
                Ok(call!(self.api, rocksdb_get_updates_since(self.object, newest + 1, null_mut(), e)))
            })?;
            call!(self.api, rocksdb_wal_iter_destroy(updates));
        }
        Ok(())
    }

    /// Puts a key with a timestamp.
    pub fn put_with_timestamp(&self, handle: Handle) -> Outcome<()> {
        self.with_write_options(false, true, |options| {
            let ((k, kl), (t, tl), (v, vl)) = (parts(b"mistake"), parts(b"12345678"), parts(b"x"));
            // SAFETY: live objects and slices.
            with_error(self.api, |e| unsafe {
                call!(
                    self.api,
                    rocksdb_put_cf_with_ts(self.object, options, handle.0, k, kl, t, tl, v, vl, e)
                );
                Ok(())
            })
        })
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
