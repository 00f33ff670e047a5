//! Opening and closing databases and column families; writes and reads.

use crate::args::{AsC, Bytes};
use crate::env::Env;
use crate::glue::{
    Answer, Give, Thrown, bytes_at, c_text, checked, handle, not_implemented, object, take_bytes,
};
use crate::lent::{self, Part};
use crate::status::Status;
use crate::{named, snapshots};
use jni_sys::{jint, jlong, jobject};
use outcrop::Db;
use outcrop_capi as c;
use outcrop_capi::{
    rocksdb_column_family_handle_t, rocksdb_column_family_handle_t as Family, rocksdb_options_t, rocksdb_t,
};
use std::ffi::{CString, c_char};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

/// The object behind a database's handle.
pub(crate) struct JavaDb {
    pub(crate) db: *mut rocksdb_t,
    default: *mut Family,
    pub(crate) layer: Layer,
    pub(crate) name: String,
}

/// `RocksDB`, or one of its subclasses.
#[derive(Clone, Copy)]
pub(crate) enum Layer {
    Plain,
    Transactional(*mut c::rocksdb_transactiondb_t),
    Optimistic(*mut c::rocksdb_optimistictransactiondb_t),
}

/// A handle of a database that the engine lends to a callback.
pub(crate) struct Lent {
    own: Box<JavaDb>,
    _db: Box<rocksdb_t>,
}

impl Lent {
    pub(crate) fn handle(&self) -> jlong {
        &raw const *self.own as jlong
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: see `glue`. The database itself stays open.
        unsafe { c::rocksdb_column_family_handle_destroy(self.own.default) };
    }
}

impl JavaDb {
    pub(crate) fn lent(db: &Arc<Db>) -> Lent {
        let mut lent = Box::new(rocksdb_t::from(db.clone()));
        // SAFETY: see `glue`.
        let default = unsafe { c::rocksdb_get_default_column_family_handle(&raw mut *lent) };
        let name = db.path().to_string_lossy().into_owned();
        Lent { own: Box::new(JavaDb { db: &raw mut *lent, default, layer: Layer::Plain, name }), _db: lent }
    }
}

/// The engine's database.
pub(crate) fn engine<'a>(handle: jlong) -> &'a Arc<Db> {
    // SAFETY: see `glue`.
    unsafe { &(*object::<JavaDb>(handle).db).0 }
}

pub(crate) fn db(handle: jlong) -> *mut rocksdb_t {
    object::<JavaDb>(handle).db
}

/// The column family, which is the default one for 0.
pub(crate) fn family(db: jlong, family: jlong) -> *mut Family {
    if family == 0 { object::<JavaDb>(db).default } else { family as *mut Family }
}

/// Options that calls without any use.
macro_rules! defaults {
    ($($name:ident, $create:ident, $type:ident;)*) => {$(
        pub(crate) fn $name(given: jlong) -> *mut c::$type {
            static DEFAULT: OnceLock<usize> = OnceLock::new();
            if given != 0 { given as *mut c::$type } else { *DEFAULT.get_or_init(|| c::$create() as usize) as *mut c::$type }
        }
    )*};
}
defaults! {
    write_options, rocksdb_writeoptions_create, rocksdb_writeoptions_t;
    read_options, rocksdb_readoptions_create, rocksdb_readoptions_t;
}

/// Column families to be opened: names, options, and places for their handles.
pub(crate) struct Families {
    names: Vec<CString>,
    options: Vec<*const rocksdb_options_t>,
    handles: Vec<*mut Family>,
    /// For each that was named, its place among those: one that is named twice is opened once, with its first options, as in RocksDB.
    places: Vec<usize>,
}

impl Families {
    pub(crate) fn of(env: Env, names: jobject, options: jobject) -> Answer<Families> {
        let names = env.byte_arrays(names)?.into_iter().map(c_text).collect::<Answer<Vec<_>>>()?;
        let options: Vec<_> = env.longs(options)?.into_iter().map(|handle| handle as *const _).collect();
        if names.len() != options.len() {
            return Err(crate::glue::illegal("there are not as many options as column families"));
        }
        let mut families =
            Families { names: Vec::new(), options: Vec::new(), handles: Vec::new(), places: Vec::new() };
        for (name, options) in names.into_iter().zip(options) {
            let known = families.names.iter().position(|known| *known == name);
            families.places.push(known.unwrap_or(families.names.len()));
            if known.is_none() {
                families.names.push(name);
                families.options.push(options);
            }
        }
        families.handles = vec![null_mut(); families.names.len()];
        Ok(families)
    }

    /// A handle for each that was named, once they are open.
    fn opened(&self) -> impl Iterator<Item = jlong> {
        self.places.iter().enumerate().map(|(named, place)| {
            let first = self.handles[*place];
            match self.places[..named].contains(place) {
                false => first as jlong,
                true => handle(rocksdb_column_family_handle_t(object::<Family>(first as jlong).0.clone())),
            }
        })
    }

    pub(crate) fn count(&self) -> jint {
        self.names.len() as jint
    }

    pub(crate) fn names(&self) -> Vec<*const c_char> {
        self.names.iter().map(|name| name.as_ptr()).collect()
    }
}

/// The handle of an opened database.
pub(crate) fn opened(db: *mut rocksdb_t, layer: Layer, path: &CString) -> jlong {
    // SAFETY: see `glue`.
    let default = unsafe { c::rocksdb_get_default_column_family_handle(db) };
    handle(JavaDb { db, default, layer, name: path.to_string_lossy().into_owned() })
}

/// Opens with `open`, which gets the path and the place for an error.
pub(crate) fn open(
    env: Env,
    path: jobject,
    open: impl FnOnce(*const c_char, *mut *mut c_char) -> *mut rocksdb_t,
) -> Answer<jlong> {
    let path = c_text(env.text(path)?)?;
    Ok(opened(checked(|error| open(path.as_ptr(), error))?, Layer::Plain, &path))
}

/// Opens several column families: gives the handles of the database and of each of them. `open` gets the path, how many there
/// are, their names, options and handles, and the place for an error.
pub(crate) fn open_families(
    env: Env,
    path: jobject,
    (names, options): (jobject, jobject),
    open: impl FnOnce(
        *const c_char,
        jint,
        *const *const c_char,
        *const *const rocksdb_options_t,
        *mut *mut Family,
        *mut *mut c_char,
    ) -> (*mut rocksdb_t, Layer),
) -> Answer<Vec<jlong>> {
    let path = c_text(env.text(path)?)?;
    let mut families = Families::of(env, names, options)?;
    let texts = families.names();
    let (db, layer) = checked(|error| {
        open(
            path.as_ptr(),
            families.count(),
            texts.as_ptr(),
            families.options.as_ptr(),
            families.handles.as_mut_ptr(),
            error,
        )
    })?;
    Ok(std::iter::once(opened(db, layer, &path)).chain(families.opened()).collect())
}

/// Closes a database; the next call with the handle is [`dispose`].
pub(crate) fn close(handle: jlong) -> Answer<()> {
    let own = object::<JavaDb>(handle);
    if own.db.is_null() {
        return Ok(());
    }
    named::end_database(engine(handle));
    snapshots::end_database(engine(handle));
    // SAFETY: see `glue`.
    unsafe {
        c::rocksdb_column_family_handle_destroy(own.default);
        match own.layer {
            Layer::Plain => c::rocksdb_close(own.db),
            Layer::Transactional(layer) => {
                c::rocksdb_transactiondb_close_base_db(own.db);
                c::rocksdb_transactiondb_close(layer);
            }
            Layer::Optimistic(layer) => {
                c::rocksdb_optimistictransactiondb_close_base_db(own.db);
                c::rocksdb_optimistictransactiondb_close(layer);
            }
        }
    }
    own.db = null_mut();
    Ok(())
}

/// The handle of the database below one with transactions, which goes with that one's.
pub(crate) fn base(db: jlong) -> Answer<jlong> {
    let own = object::<JavaDb>(db);
    let below = || JavaDb { db: own.db, default: own.default, layer: Layer::Plain, name: own.name.clone() };
    Ok(lent::give_once(db, Part::Base, below))
}

pub(crate) fn dispose(handle: jlong) -> Answer<()> {
    close(handle)?;
    lent::end(handle);
    crate::glue::dispose::<JavaDb>(handle)
}

/// The names of the column families; none if they cannot be read. Kafka Streams asks before it creates a database.
/// Source: RocksDB `java/rocksjni/rocksjni.cc`, which does not look at the status.
pub(crate) fn list(env: Env, options: jlong, path: jobject) -> Answer<jobject> {
    let path = c_text(env.text(path)?)?;
    let mut count = 0;
    // SAFETY: see `glue`.
    let listed = checked(|error| unsafe {
        c::rocksdb_list_column_families(options as *const _, path.as_ptr(), &mut count, error)
    });
    let Ok(list) = listed else { return env.new_array("[B", Vec::<Vec<u8>>::new()) };
    // SAFETY: as above.
    let names = unsafe {
        let names: Vec<Vec<u8>> =
            (0..count).map(|i| std::ffi::CStr::from_ptr(*list.add(i)).to_bytes().to_vec()).collect();
        c::rocksdb_list_column_families_destroy(list, count);
        names
    };
    env.new_array("[B", names)
}

pub(crate) fn create_family(env: Env, db: jlong, name: Bytes, options: jlong) -> Answer<jlong> {
    let name = c_text(&*name.get(env)?)?;
    let (own, options) = (object::<JavaDb>(db), options as *const _);
    // SAFETY: see `glue`.
    let made = checked(|error| unsafe {
        match own.layer {
            // It has locks for the new keys.
            Layer::Transactional(layer) => {
                c::rocksdb_transactiondb_create_column_family(layer, options, name.as_ptr(), error)
            }
            _ => c::rocksdb_create_column_family(own.db, options, name.as_ptr(), error),
        }
    })?;
    Ok(made as jlong)
}

/// One after the other; those made before an error stay, as in RocksDB.
pub(crate) fn create_families(
    env: Env,
    db: jlong,
    options: impl Fn(usize) -> jlong,
    names: jobject,
) -> Answer<Vec<jlong>> {
    env.each(names, |place, name| create_family(env, db, Bytes::Whole(name), options(place)))
}

pub(crate) fn drop_families(db: jlong, families: &[jlong]) -> Answer<()> {
    families.iter().try_for_each(|family| {
        // SAFETY: see `glue`.
        checked(|error| unsafe {
            c::rocksdb_drop_column_family(self::db(db), self::family(db, *family), error)
        })
    })
}

pub(crate) fn family_name(family: jlong) -> Vec<u8> {
    let mut len = 0;
    // SAFETY: see `glue`.
    let name = unsafe { c::rocksdb_column_family_handle_get_name(family as *mut _, &mut len) };
    take_bytes(name, len).unwrap_or_default()
}

/// One write to one column family.
#[derive(Clone, Copy)]
pub(crate) enum Write {
    Put,
    Merge,
    Delete,
    SingleDelete,
    DeleteRange,
}

/// Adds a write to a batch; `value` is the end of a range, and otherwise not used by deletions.
pub(crate) fn add(
    batch: *mut c::rocksdb_writebatch_t,
    family: *mut Family,
    write: Write,
    key: &[u8],
    value: &[u8],
) {
    let ((k, kl), (v, vl)) = ((key.c(), key.len()), (value.c(), value.len()));
    // SAFETY: see `glue`.
    unsafe {
        match (write, family.is_null()) {
            (Write::Put, false) => c::rocksdb_writebatch_put_cf(batch, family, k, kl, v, vl),
            (Write::Put, true) => c::rocksdb_writebatch_put(batch, k, kl, v, vl),
            (Write::Merge, false) => c::rocksdb_writebatch_merge_cf(batch, family, k, kl, v, vl),
            (Write::Merge, true) => c::rocksdb_writebatch_merge(batch, k, kl, v, vl),
            (Write::Delete, false) => c::rocksdb_writebatch_delete_cf(batch, family, k, kl),
            (Write::Delete, true) => c::rocksdb_writebatch_delete(batch, k, kl),
            (Write::SingleDelete, false) => c::rocksdb_writebatch_singledelete_cf(batch, family, k, kl),
            (Write::SingleDelete, true) => c::rocksdb_writebatch_singledelete(batch, k, kl),
            (Write::DeleteRange, false) => c::rocksdb_writebatch_delete_range_cf(batch, family, k, kl, v, vl),
            (Write::DeleteRange, true) => c::rocksdb_writebatch_delete_range(batch, k, kl, v, vl),
        }
    }
}

/// Writes to a database; a `TransactionDB` takes the key's lock, as RocksDB's does. Databases with transactions delete no ranges: a transaction
/// would not notice.
pub(crate) fn write(
    env: Env,
    (db, options, family): (jlong, jlong, jlong),
    write: Write,
    key: Bytes,
    value: Option<Bytes>,
) -> Answer<()> {
    let own = object::<JavaDb>(db);
    if matches!((write, own.layer), (Write::DeleteRange, Layer::Transactional(_) | Layer::Optimistic(_))) {
        return not_implemented("");
    }
    let (family, options) = (self::family(db, family), write_options(options));
    let key = key.get(env)?;
    let value = value.map_or(Ok(Default::default()), |value| value.named(env, "value"))?;
    if let Layer::Transactional(layer) = own.layer {
        // SAFETY: see `glue`.
        return unsafe {
            let batch = c::rocksdb_writebatch_create();
            add(batch, family, write, &key, &value);
            let written = checked(|error| c::rocksdb_transactiondb_write(layer, options, batch, error));
            c::rocksdb_writebatch_destroy(batch);
            written
        };
    }
    let (db, (k, kl), (v, vl)) = (own.db, (key.c(), key.len()), (value.c(), value.len()));
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        match write {
            Write::Put => c::rocksdb_put_cf(db, options, family, k, kl, v, vl, error),
            Write::Merge => c::rocksdb_merge_cf(db, options, family, k, kl, v, vl, error),
            Write::Delete => c::rocksdb_delete_cf(db, options, family, k, kl, error),
            Write::SingleDelete => c::rocksdb_singledelete_cf(db, options, family, k, kl, error),
            Write::DeleteRange => c::rocksdb_delete_range_cf(db, options, family, k, kl, v, vl, error),
        }
    })
}

pub(crate) fn write_batch(db: jlong, options: jlong, batch: *mut c::rocksdb_writebatch_t) -> Answer<()> {
    let own = object::<JavaDb>(db);
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        match own.layer {
            Layer::Transactional(layer) => {
                c::rocksdb_transactiondb_write(layer, write_options(options), batch, error)
            }
            Layer::Optimistic(layer) => {
                c::rocksdb_optimistictransactiondb_write(layer, write_options(options), batch, error)
            }
            Layer::Plain => c::rocksdb_write(own.db, write_options(options), batch, error),
        }
    })
}

/// Lets `with` see the value of a key, `None` if it has none.
pub(crate) fn with_value<T>(
    env: Env,
    (db, options, family): (jlong, jlong, jlong),
    key: Bytes,
    with: impl FnOnce(Option<&[u8]>) -> Answer<T>,
) -> Answer<T> {
    let key = key.get(env)?;
    // SAFETY: see `glue`.
    let found = unsafe { c::get_value(self::db(db), read_options(options), self::family(db, family), &key) }?;
    with(found.as_deref())
}

/// The same for a value that a C function gave.
pub(crate) unsafe fn pinned_value<T>(
    pinned: *mut c::rocksdb_pinnableslice_t,
    with: impl FnOnce(Option<&[u8]>) -> Answer<T>,
) -> Answer<T> {
    if pinned.is_null() {
        return with(None);
    }
    let mut len = 0;
    // SAFETY: see `glue`.
    unsafe {
        let start = c::rocksdb_pinnableslice_value(pinned, &mut len);
        let answer = with(Some(bytes_at(start, len)));
        c::rocksdb_pinnableslice_destroy(pinned);
        answer
    }
}

/// The value as a new array, or null.
pub(crate) fn get(env: Env, from: (jlong, jlong, jlong), key: Bytes) -> Answer<jobject> {
    with_value(env, from, key, |value| value.give(env))
}

/// How RocksJava says that a key has no value where it asks for a length.
const NOT_FOUND: jint = -1;

/// Fills `target`, and gives the length of the value.
pub(crate) fn get_into(env: Env, from: (jlong, jlong, jlong), key: Bytes, target: Bytes) -> Answer<jint> {
    let room = target.room(env)?;
    with_value(env, from, key, |value| value.map_or(Ok(NOT_FOUND), |value| room.fill(env, value)))
}

pub(crate) fn key_exists(env: Env, (db, family, options): (jlong, jlong, jlong), key: Bytes) -> Answer<bool> {
    with_value(env, (db, options, family), key, |value| Ok(value.is_some()))
}

/// Whether a key may exist, and its value if that is known without reading files.
fn may_exist(
    env: Env,
    (db, family, options): (jlong, jlong, jlong),
    key: Bytes,
) -> Answer<(bool, Option<Vec<u8>>)> {
    let key = key.get(env)?;
    let (mut value, mut len, mut found) = (null_mut(), 0, 0);
    // SAFETY: see `glue`.
    let exists = unsafe {
        c::rocksdb_key_may_exist_cf(
            self::db(db),
            read_options(options),
            self::family(db, family),
            key.c(),
            key.len(),
            &mut value,
            &mut len,
            std::ptr::null(),
            0,
            &mut found,
        )
    };
    let value = if found != 0 { take_bytes(value, len) } else { None };
    Ok((exists != 0, value))
}

pub(crate) fn key_may_exist(env: Env, from: (jlong, jlong, jlong), key: Bytes) -> Answer<bool> {
    Ok(may_exist(env, from, key)?.0)
}

/// The places of `KeyMayExistEnum`.
fn may_exist_place((exists, value): &(bool, Option<Vec<u8>>)) -> u8 {
    if !exists { 0 } else { 1 + u8::from(value.is_some()) }
}

/// An array of the place in `KeyMayExistEnum`, and the value.
pub(crate) fn key_may_exist_value(env: Env, from: (jlong, jlong, jlong), key: Bytes) -> Answer<jobject> {
    let found = may_exist(env, from, key)?;
    env.new_array("[B", [Some(vec![may_exist_place(&found)]), found.1])
}

pub(crate) fn key_may_exist_into(
    env: Env,
    from: (jlong, jlong, jlong),
    key: Bytes,
    target: Bytes,
) -> Answer<Vec<jint>> {
    let found = may_exist(env, from, key)?;
    let length = target.fill(env, found.1.as_deref().unwrap_or_default())?;
    Ok(vec![may_exist_place(&found).into(), length])
}

/// The values of keys, whose column families are `families` or, if there are none, the default one.
pub(crate) fn multi_get(
    env: Env,
    (db, options): (jlong, jlong),
    keys: jobject,
    (offsets, lengths): (jobject, jobject),
    families: Option<jobject>,
) -> Answer<jobject> {
    let (offsets, lengths) = (env.ints(offsets)?, env.ints(lengths)?);
    let keys = env.each(keys, |place, key| env.bytes(key, offsets[place], lengths[place]))?;
    let families = families.map_or(Ok(vec![0; keys.len()]), |families| env.longs(families))?;
    let found = many(db, options, &families, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    // RocksJava leaves out the values of keys that could not be read.
    env.new_array("[B", found.into_iter().map(Result::unwrap_or_default))
}

type Found = Result<Option<Vec<u8>>, Status>;

/// Keys that are read at once. The blocks that they were looked for in are held until all have been read, and a cache that is full of such
/// blocks looks for room in vain. RocksDB reads 32 at once.
const AT_ONCE: usize = 256;

/// The value of each key, or the error of its read; all at one moment.
pub(crate) fn many(db: jlong, options: jlong, families: &[jlong], keys: &[&[u8]]) -> Answer<Vec<Found>> {
    if families.len() != keys.len() {
        return Err(crate::glue::illegal("Columns and keys must be the same length"));
    }
    let options = read_options(options);
    if keys.len() <= AT_ONCE {
        return Ok(at_once(db, options, families, keys));
    }
    let mut own = object::<c::rocksdb_readoptions_t>(options as jlong).clone();
    own.options.snapshot.get_or_insert_with(|| engine(db).snapshot());
    let parts = families.chunks(AT_ONCE).zip(keys.chunks(AT_ONCE));
    Ok(parts.flat_map(|(families, keys)| at_once(db, &raw const own, families, keys)).collect())
}

fn at_once(
    db: jlong,
    options: *const c::rocksdb_readoptions_t,
    families: &[jlong],
    keys: &[&[u8]],
) -> Vec<Found> {
    let families: Vec<*const Family> = families.iter().map(|own| family(db, *own).cast_const()).collect();
    let starts: Vec<_> = keys.iter().map(|key| key.c()).collect();
    let sizes: Vec<_> = keys.iter().map(|key| key.len()).collect();
    let mut values = vec![null_mut(); keys.len()];
    let mut lengths = vec![0; keys.len()];
    let mut errors = vec![null_mut(); keys.len()];
    // SAFETY: see `glue`.
    unsafe {
        c::rocksdb_multi_get_cf(
            self::db(db),
            options,
            families.as_ptr(),
            keys.len(),
            starts.as_ptr(),
            sizes.as_ptr(),
            values.as_mut_ptr(),
            lengths.as_mut_ptr(),
            errors.as_mut_ptr(),
        );
    }
    let results = values.into_iter().zip(lengths).zip(errors);
    results
        .map(|((value, len), error)| match error.is_null() {
            true => Ok(take_bytes(value, len)),
            false => Err(Status::parse(&crate::glue::take_text(error))),
        })
        .collect()
}

/// Fills a buffer for each key; its length, or a negative number, and its status go into arrays.
#[allow(clippy::too_many_arguments, reason = "it is the native's")]
pub(crate) fn multi_get_direct(
    env: Env,
    (db, options): (jlong, jlong),
    families: jobject,
    (keys, key_offsets, key_lengths): (jobject, jobject, jobject),
    values: jobject,
    (sizes, statuses): (jobject, jobject),
) -> Answer<()> {
    use crate::env::jni;
    let (offsets, lengths) = (env.ints(key_offsets)?, env.ints(key_lengths)?);
    let keys =
        env.each(keys, |place, key| Ok(env.buffer(key, offsets[place], lengths[place], "key")?.to_vec()))?;
    let given = env.longs(families)?;
    let families = match given[..] {
        [] => vec![0; keys.len()],
        [one] => vec![one; keys.len()],
        _ => given,
    };
    let found = many(db, options, &families, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let lengths = env.each(values, |place, buffer| {
        let (status, length) = match &found[place] {
            Ok(Some(value)) => {
                let capacity = jni!(env, GetDirectBufferCapacity, buffer) as jint;
                (
                    Status { code: 0, subcode: 0, state: None },
                    Bytes::Buffer(buffer, 0, capacity).fill(env, value)?,
                )
            }
            Ok(None) => (Status::parse("NotFound"), 0),
            Err(status) => (status.clone(), 0),
        };
        let status = env.new_status(&status)?;
        jni!(env, SetObjectArrayElement, statuses, place as jint, status);
        env.check()?;
        Ok(length)
    })?;
    jni!(env, SetIntArrayRegion, sizes, 0, lengths.len() as jint, lengths.as_ptr());
    env.check()
}

/// Iterators over several column families at one moment.
pub(crate) fn iterators(env: Env, db: jlong, families: jobject, options: jlong) -> Answer<Vec<jlong>> {
    let mut families: Vec<*mut Family> =
        env.longs(families)?.into_iter().map(|own| family(db, own)).collect();
    let mut iterators = vec![null_mut(); families.len()];
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_create_iterators(
            self::db(db),
            read_options(options),
            families.as_mut_ptr(),
            iterators.as_mut_ptr(),
            families.len(),
            error,
        );
    })?;
    Ok(iterators.into_iter().map(|iterator| iterator as jlong).collect())
}

/// Compacts a range of keys; null and an empty array are no end, as in RocksJava.
pub(crate) fn compact(
    env: Env,
    (db, options, family): (jlong, jlong, jlong),
    begin: (jobject, jint),
    end: (jobject, jint),
) -> Answer<()> {
    let bytes = |(array, len): (jobject, jint)| match array.is_null() || len <= 0 {
        true => Ok(None),
        false => env.bytes(array, 0, len).map(Some),
    };
    let (begin, end) = (bytes(begin)?, bytes(end)?);
    let start = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(std::ptr::null(), |bytes| bytes.c());
    let len = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    let (db, family) = (self::db(db), self::family(db, family));
    // SAFETY: see `glue`.
    unsafe {
        c::compact_range(
            db,
            family,
            options as *const _,
            (start(&begin), len(&begin)),
            (start(&end), len(&end)),
        )
    }?;
    Ok(())
}

/// `RocksDBException: NotFound`, or what a property is.
pub(crate) fn property(env: Env, (db, family): (jlong, jlong), name: jobject) -> Answer<String> {
    let name = env.text(name)?;
    let text = c_text(name)?;
    // SAFETY: see `glue`.
    let value =
        unsafe { c::rocksdb_property_value_cf(self::db(db), self::family(db, family), text.as_ptr()) };
    match value.is_null() {
        true => Err(Thrown::Status(Status::parse("NotFound"))),
        false => Ok(crate::glue::take_text(value)),
    }
}

pub(crate) fn number_property(env: Env, (db, family): (jlong, jlong), name: jobject) -> Answer<jlong> {
    let name = c_text(env.text(name)?)?;
    let mut number = 0;
    // SAFETY: see `glue`.
    let failed = unsafe {
        c::rocksdb_property_int_cf(self::db(db), self::family(db, family), name.as_ptr(), &mut number)
    };
    if failed == 0 { Ok(number as jlong) } else { Err(Thrown::Status(Status::parse("NotFound"))) }
}

pub(crate) fn ingest(env: Env, (db, family): (jlong, jlong), files: jobject, options: jlong) -> Answer<()> {
    let files = env.texts(files)?.into_iter().map(c_text).collect::<Answer<Vec<_>>>()?;
    let names: Vec<_> = files.iter().map(|file| file.as_ptr()).collect();
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_ingest_external_file_cf(
            self::db(db),
            self::family(db, family),
            names.as_ptr(),
            names.len(),
            options as *const _,
            error,
        );
    })
}

pub(crate) fn flush(env: Env, db: jlong, options: jlong, families: jobject) -> Answer<()> {
    let mut families: Vec<*mut Family> = match families.is_null() {
        true => vec![family(db, 0)],
        false => env.longs(families)?.into_iter().map(|own| family(db, own)).collect(),
    };
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_flush_cfs(
            self::db(db),
            options as *const _,
            families.as_mut_ptr(),
            families.len() as jint,
            error,
        );
    })
}

/// Changes options of a column family, or of the database.
pub(crate) fn set_options(
    env: Env,
    db: jlong,
    family: Option<jlong>,
    keys: jobject,
    values: jobject,
) -> Answer<()> {
    let texts = |array| env.texts(array)?.into_iter().map(c_text).collect::<Answer<Vec<_>>>();
    let (keys, values) = (texts(keys)?, texts(values)?);
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
    let (names, texts) = (pointers(&keys), pointers(&values));
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        match family {
            Some(family) => {
                let family = self::family(db, family);
                c::rocksdb_set_options_cf(
                    self::db(db),
                    family,
                    names.len() as jint,
                    names.as_ptr(),
                    texts.as_ptr(),
                    error,
                );
            }
            None => c::rocksdb_set_db_options(
                self::db(db),
                names.len() as jint,
                names.as_ptr(),
                texts.as_ptr(),
                error,
            ),
        }
    })
}

pub(crate) fn write_indexed_batch(
    db: jlong,
    options: jlong,
    batch: *mut c::rocksdb_writebatch_wi_t,
) -> Answer<()> {
    // SAFETY: see `glue`.
    let plain = unsafe {
        let mut len = 0;
        let bytes = c::rocksdb_writebatch_wi_data(batch, &mut len);
        c::rocksdb_writebatch_create_from(bytes, len)
    };
    let written = write_batch(db, options, plain);
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_writebatch_destroy(plain) };
    written
}
