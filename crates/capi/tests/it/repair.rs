//! Repair beside RocksDB's: the same damaged database repaired by each library, and what each repaired opened by both.
//!
//! Both libraries read the same of what either repaired. Ours has every row that RocksDB's repair kept right; keys that no damage
//! touched have their last value. `OUTCROP_SEED=n` repeats one seed.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, outcrop_library, reference};
use libc::{c_int, c_uchar, c_void, size_t};
use outcrop_base::random::SplitMix as Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_write_buffer_size: fn(Object, size_t);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_destroy: fn(Object);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_destroy: fn(Object);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flushoptions_destroy: fn(Object);
    rocksdb_open_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_list_column_families: fn(Object, Bytes, *mut size_t, Errptr) -> *mut *mut libc::c_char;
    rocksdb_list_column_families_destroy: fn(*mut *mut libc::c_char, size_t);
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_close: fn(Object);
    rocksdb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_cf: fn(Object, Object, Object, Bytes, size_t, Errptr);
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut libc::c_char;
    rocksdb_flush_cf: fn(Object, Object, Object, Errptr);
    rocksdb_compact_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_create_iterator_cf: fn(Object, Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_repair_db: fn(Object, Bytes, Errptr);
    rocksdb_free: fn(*mut c_void);
}

type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

const FAMILIES: [&str; 2] = ["default", "second"];

/// An open database, with all its column families.
struct Opened<'a> {
    api: &'a Api,
    db: Object,
    options: Object,
    families: Vec<(String, Object)>,
}

fn c_text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // SAFETY: these objects are this library's, and live.
        unsafe {
            for (_, handle) in &self.families {
                (self.api.rocksdb_column_family_handle_destroy)(*handle);
            }
            (self.api.rocksdb_close)(self.db);
            (self.api.rocksdb_options_destroy)(self.options);
        }
    }
}

fn options(api: &Api) -> Object {
    // SAFETY: plain setters on a new object.
    unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_set_create_missing_column_families)(options, 1);
        (api.rocksdb_options_set_write_buffer_size)(options, 64 << 10);
        (api.rocksdb_options_set_compression)(options, 1);
        options
    }
}

impl Api {
    fn done(&self, what: &str, call: impl FnOnce(Errptr)) {
        let mut error = null_mut();
        call(&mut error);
        // SAFETY: the message is this library's.
        let text = unsafe { error_text(error, self.rocksdb_free) };
        assert_eq!(text, None, "{what}");
    }

    fn names(&self, path: &Path) -> Vec<String> {
        let (path, mut count) = (c_text(path), 0);
        let mut names = null_mut();
        let options = options(self);
        // SAFETY: names are read while the array lives.
        unsafe {
            self.done("list", |error| {
                names = (self.rocksdb_list_column_families)(options, path.as_ptr(), &mut count, error);
            });
            (self.rocksdb_options_destroy)(options);
            let all =
                (0..count).map(|i| CStr::from_ptr(*names.add(i)).to_str().unwrap().to_string()).collect();
            (self.rocksdb_list_column_families_destroy)(names, count);
            all
        }
    }

    fn open(&self, path: &Path, names: &[String]) -> Opened<'_> {
        let options = options(self);
        let texts: Vec<CString> = names.iter().map(|name| CString::new(name.as_str()).unwrap()).collect();
        let pointers: Vec<Bytes> = texts.iter().map(|text| text.as_ptr()).collect();
        let each = vec![options; names.len()];
        let mut handles: Vec<Object> = vec![null_mut(); names.len()];
        let path = c_text(path);
        let mut db = null_mut();
        self.done("open", |error| {
            // SAFETY: arrays of `names.len()` elements each.
            db = unsafe {
                (self.rocksdb_open_column_families)(
                    options,
                    path.as_ptr(),
                    names.len() as c_int,
                    pointers.as_ptr(),
                    each.as_ptr(),
                    handles.as_mut_ptr(),
                    error,
                )
            };
        });
        Opened { api: self, db, options, families: names.iter().cloned().zip(handles).collect() }
    }

    /// All rows, as iterators and gets show them, which must agree.
    fn rows(&self, path: &Path) -> Rows {
        let opened = self.open(path, &self.names(path));
        let mut rows = Rows::new();
        // SAFETY: pointers are read before the iterator moves; values are freed once.
        unsafe {
            let read = (self.rocksdb_readoptions_create)();
            for (name, handle) in &opened.families {
                let iter = (self.rocksdb_create_iterator_cf)(opened.db, read, *handle);
                (self.rocksdb_iter_seek_to_first)(iter);
                while (self.rocksdb_iter_valid)(iter) != 0 {
                    let bytes = |of: unsafe extern "C" fn(Object, *mut size_t) -> Bytes| {
                        let mut len = 0;
                        let start = of(iter, &mut len);
                        std::slice::from_raw_parts(start.cast::<u8>(), len).to_vec()
                    };
                    rows.insert((name.clone(), bytes(self.rocksdb_iter_key)), bytes(self.rocksdb_iter_value));
                    (self.rocksdb_iter_next)(iter);
                }
                self.done("iterate", |error| (self.rocksdb_iter_get_error)(iter, error));
                (self.rocksdb_iter_destroy)(iter);
            }
            (self.rocksdb_readoptions_destroy)(read);
        }
        rows
    }

    /// The value that a lookup finds; after RocksDB's repair it may be another than a scan's.
    fn get(&self, opened: &Opened<'_>, place: &(String, Vec<u8>)) -> Option<Vec<u8>> {
        let (_, handle) = opened.families.iter().find(|(name, _)| *name == place.0)?;
        // SAFETY: key and length belong together; the value is copied and freed.
        unsafe {
            let read = (self.rocksdb_readoptions_create)();
            let (mut len, mut value) = (0, null_mut());
            self.done("get", |error| {
                value = (self.rocksdb_get_cf)(
                    opened.db,
                    read,
                    *handle,
                    place.1.as_ptr().cast(),
                    place.1.len(),
                    &mut len,
                    error,
                );
            });
            (self.rocksdb_readoptions_destroy)(read);
            if value.is_null() {
                return None;
            }
            let bytes = std::slice::from_raw_parts(value.cast::<u8>(), len).to_vec();
            (self.rocksdb_free)(value.cast());
            Some(bytes)
        }
    }

    fn repair(&self, path: &Path) -> Option<String> {
        let (options, path, mut error) = (options(self), c_text(path), null_mut());
        // SAFETY: a message is freed once.
        unsafe {
            (self.rocksdb_repair_db)(options, path.as_ptr(), &mut error);
            (self.rocksdb_options_destroy)(options);
            error_text(error, self.rocksdb_free)
        }
    }
}

/// The known facts about a database that was written.
#[derive(Default)]
struct Model {
    rows: Rows,
    values: BTreeMap<(String, Vec<u8>), BTreeSet<Vec<u8>>>,
    /// Written since the last flush.
    unflushed: BTreeSet<(String, Vec<u8>)>,
}

fn fill(api: &Api, path: &Path, rng: &mut Rng) -> Model {
    let names: Vec<String> = FAMILIES.iter().map(ToString::to_string).collect();
    let opened = api.open(path, &names);
    let mut model = Model::default();
    // SAFETY: keys and values live through each call.
    unsafe {
        let write = (api.rocksdb_writeoptions_create)();
        let flush = (api.rocksdb_flushoptions_create)();
        for i in 0..600u64 {
            let (name, handle) = &opened.families[rng.below(2) as usize];
            let key = format!("key{:03}", rng.below(120)).into_bytes();
            let place = (name.clone(), key.clone());
            let (start, len) = (key.as_ptr().cast(), key.len());
            match rng.below(40) {
                0 => {
                    for (_, handle) in &opened.families {
                        api.done("flush", |error| (api.rocksdb_flush_cf)(opened.db, flush, *handle, error));
                    }
                    model.unflushed.clear();
                }
                1 => {
                    (api.rocksdb_compact_range_cf)(opened.db, *handle, null(), 0, null(), 0);
                    model.unflushed.retain(|(family, _)| family != name);
                }
                2..=8 => {
                    api.done("delete", |error| {
                        (api.rocksdb_delete_cf)(opened.db, write, *handle, start, len, error);
                    });
                    model.rows.remove(&place);
                    model.unflushed.insert(place);
                }
                _ => {
                    let value = format!("{i}-{}", "v".repeat(rng.below(80) as usize)).into_bytes();
                    let (from, bytes) = (value.as_ptr().cast(), value.len());
                    api.done("put", |error| {
                        (api.rocksdb_put_cf)(opened.db, write, *handle, start, len, from, bytes, error);
                    });
                    model.values.entry(place.clone()).or_default().insert(value.clone());
                    model.rows.insert(place.clone(), value);
                    model.unflushed.insert(place);
                }
            }
        }
        (api.rocksdb_writeoptions_destroy)(write);
        (api.rocksdb_flushoptions_destroy)(flush);
    }
    model
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target);
        } else {
            std::fs::copy(source, target).unwrap();
        }
    }
}

/// The kind of file that a damage was done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hit {
    Current,
    Manifest,
    Table,
    Wal,
}

fn damage(dir: &Path, rng: &mut Rng) -> Hit {
    let hit = [Hit::Current, Hit::Manifest, Hit::Table, Hit::Wal][rng.below(4) as usize];
    let kind = match hit {
        Hit::Current => "CURRENT",
        Hit::Manifest => "MANIFEST",
        Hit::Table => ".sst",
        Hit::Wal => ".log",
    };
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_str().unwrap().contains(kind));
    paths.sort();
    if paths.is_empty() {
        return hit;
    }
    let path = &paths[rng.below(paths.len() as u64) as usize];
    let mut bytes = std::fs::read(path).unwrap();
    let at = rng.below(bytes.len().max(1) as u64) as usize;
    match rng.below(4) {
        0 => return std::fs::remove_file(path).map(|()| hit).unwrap(),
        1 => bytes.truncate(at),
        2 => bytes.iter_mut().skip(at).take(100).for_each(|byte| *byte = 0),
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 0x10),
    }
    std::fs::write(path, bytes).unwrap();
    hit
}

#[test]
fn both_repair_the_same_damage() {
    let Some(theirs) = reference() else { return };
    let (ours, theirs) = (Api::load(&outcrop_library()), Api::load(&theirs));
    let one = std::env::var("OUTCROP_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in one.map_or(1..25, |seed| seed..seed + 1) {
        let temp = tempfile::tempdir().unwrap();
        let written = temp.path().join("written");
        let mut rng = Rng::new(seed);
        let writer = if seed % 2 == 0 { &ours } else { &theirs };
        let model = fill(writer, &written, &mut rng);
        let hit = damage(&written, &mut rng);
        let what = format!("seed {seed}: {hit:?} (replay with OUTCROP_SEED={seed})");
        let (mine, other) = (temp.path().join("ours"), temp.path().join("theirs"));
        copy(&written, &mine);
        copy(&written, &other);
        assert_eq!(ours.repair(&mine), None, "{what}");
        assert_eq!(theirs.repair(&other), None, "{what}");
        let read_by = |api: &Api, dir: &Path| {
            let seen = temp.path().join("seen");
            let _ = std::fs::remove_dir_all(&seen);
            copy(dir, &seen);
            api.rows(&seen)
        };
        let rows = read_by(&ours, &mine);
        assert_eq!(
            rows,
            read_by(&theirs, &mine),
            "{what}: RocksDB reads something else of what ours repaired"
        );
        let of_theirs = read_by(&theirs, &other);
        assert_eq!(
            of_theirs,
            read_by(&ours, &other),
            "{what}: ours reads something else of what RocksDB repaired"
        );
        for (place, value) in &rows {
            assert!(model.values[place].contains(value), "{what}: {place:?} never was {value:?}");
        }
        for (place, value) in &model.rows {
            let got = rows.get(place);
            if of_theirs.get(place) == Some(value) || hit == Hit::Current || hit == Hit::Manifest {
                assert_eq!(
                    got,
                    Some(value),
                    "{what}: {place:?}; RocksDB's repair: {:?}",
                    of_theirs.get(place)
                );
            }
            if hit == Hit::Wal && !model.unflushed.contains(place) {
                assert_eq!(got, Some(value), "{what}: {place:?} was flushed");
            }
        }
        let opened = ours.open(&mine, &ours.names(&mine));
        for place in model.values.keys() {
            assert_eq!(ours.get(&opened, place), rows.get(place).cloned(), "{what}: get of {place:?}");
        }
    }
}

#[test]
fn there_is_nothing_to_repair_in_an_empty_directory() {
    let empty = |library: &Path, dir: &Path| {
        std::fs::create_dir_all(dir).unwrap();
        let text = Api::load(library).repair(dir).map(|text| text.replace(dir.to_str().unwrap(), "DIR"));
        // RocksDB finds the LOCK file it has just made.
        text.is_some() || dir.join("LOCK").exists()
    };
    assert!(crate::library::same_on_both(empty));
}
