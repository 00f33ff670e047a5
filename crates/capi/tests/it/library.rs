//! A library that exports RocksDB's C API, loaded at run time: ours, or a reference RocksDB.

use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;

/// The shared library that cargo built for this test run: a build alone puts it elsewhere than a test run, and does not
/// renew the other.
pub fn outcrop_library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let deps = exe.parent().unwrap();
    [deps.parent().unwrap(), deps]
        .iter()
        .map(|dir| dir.join("liboutcrop_capi.so"))
        .filter(|path| path.exists())
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap())
        .expect("cargo builds the shared library before the tests")
}

/// Reference libraries: (version, path), from OUTCROP_REFERENCE_DIR. Empty, with a message, without it.
pub fn reference_libraries() -> Vec<(String, PathBuf)> {
    let Ok(dir) = std::env::var("OUTCROP_REFERENCE_DIR") else {
        eprintln!(
            "skipped: no reference RocksDB; `cargo xtask ci` fetches it and sets OUTCROP_REFERENCE_DIR"
        );
        return Vec::new();
    };
    let mut found: Vec<(String, PathBuf)> = std::fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("OUTCROP_REFERENCE_DIR {dir}: {error}"))
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let version = name.strip_prefix("librocksdb-")?.strip_suffix(".so")?.to_string();
            Some((version, path))
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "OUTCROP_REFERENCE_DIR {dir} holds no librocksdb-VERSION.so");
    found
}

/// The RocksDB whose C API ours is; `None`, with a message, without OUTCROP_REFERENCE_DIR.
pub fn reference() -> Option<PathBuf> {
    let libraries = reference_libraries();
    let found = libraries.iter().find(|(version, _)| version == REFERENCE);
    assert!(
        found.is_some() || libraries.is_empty(),
        "OUTCROP_REFERENCE_DIR holds no librocksdb-{REFERENCE}.so"
    );
    found.map(|(_, path)| path.clone())
}

const REFERENCE: &str = "11.8.1";

/// Ours, and the reference if it is there, with their names.
pub fn libraries() -> Vec<(&'static str, PathBuf)> {
    let theirs = reference().map(|path| (REFERENCE, path));
    std::iter::once(("outcrop", outcrop_library())).chain(theirs).collect()
}

/// Runs `script` with each of [`libraries`] and a directory of its own for a database; gives what it gives, which must be the same.
pub fn same_on_both<T: PartialEq + std::fmt::Debug>(script: impl Fn(&Path, &Path) -> T) -> T {
    let mut given = libraries().into_iter().map(|(_, library)| {
        let dir = tempfile::tempdir().unwrap();
        script(&library, &dir.path().join("db"))
    });
    let ours = given.next().unwrap();
    given.for_each(|theirs| assert_eq!(ours, theirs, "left: ours, right: RocksDB"));
    ours
}

pub type Object = *mut c_void;
pub type Bytes = *const c_char;
pub type Errptr = *mut *mut c_char;

/// The message that a function left in its `errptr`, if any; it is freed.
///
/// # Safety
/// `error` is null, or a message of the library whose `rocksdb_free` is `free`.
pub unsafe fn error_text(error: *mut c_char, free: unsafe extern "C" fn(*mut c_void)) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated message that the library allocated, as the caller says.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        free(error.cast());
        Some(text)
    }
}

/// The text of the error that `call` reports, which the library's `free` gives back; empty if there is none.
pub fn error_of(free: unsafe extern "C" fn(*mut c_void), call: impl FnOnce(Errptr)) -> String {
    let mut error: *mut c_char = std::ptr::null_mut();
    call(&raw mut error);
    // SAFETY: null, or a message of the library.
    unsafe { error_text(error, free) }.unwrap_or_default()
}

/// The result of `call`, which must report no error.
pub fn succeeding<T>(free: unsafe extern "C" fn(*mut c_void), call: impl FnOnce(Errptr) -> T) -> T {
    let mut given = None;
    let error = error_of(free, |errptr| given = Some(call(errptr)));
    assert_eq!(error, "");
    given.unwrap()
}

/// Makes a type `Api` of functions of the C header, to be loaded from a library.
macro_rules! c_functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions that these tests use.
        #[allow(non_snake_case, reason = "the names are RocksDB's")]
        pub struct Api {
            _library: libloading::Library,
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        #[allow(non_snake_case, reason = "the names are RocksDB's")]
        impl Api {
            pub fn load(path: &std::path::Path) -> Api {
                // SAFETY: libraries under test run no code of note when loaded; the signatures are those of the C header.
                unsafe {
                    let library = libloading::Library::new(path)
                        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    Api {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes()).unwrap(),)*
                        _library: library,
                    }
                }
            }

            /// Runs `script` with both libraries, which stay loaded; gives what it gives, which must be the same.
            #[allow(dead_code, reason = "not every file compares")]
            pub fn same_on_both<T: PartialEq + std::fmt::Debug>(
                script: impl Fn(&Api, &std::path::Path) -> T,
            ) -> T {
                $crate::library::same_on_both(|library, dir| {
                    let api = std::mem::ManuallyDrop::new(Api::load(library));
                    script(&api, dir)
                })
            }
        }
    };
}
pub(crate) use c_functions;

/// The lists that functions for several keys take: the keys, and places for what is found.
pub struct Lookups {
    pub keys: Vec<Bytes>,
    pub lens: Vec<size_t>,
    pub values: Vec<*mut c_char>,
    pub value_lens: Vec<size_t>,
    pub errors: Vec<*mut c_char>,
}

impl Lookups {
    /// Of `keys`, which must stay where they are.
    pub fn of<K: AsRef<[u8]>>(keys: &[K]) -> Lookups {
        Lookups {
            keys: keys.iter().map(|key| key.as_ref().as_ptr().cast()).collect(),
            lens: keys.iter().map(|key| key.as_ref().len()).collect(),
            values: vec![null_mut(); keys.len()],
            value_lens: vec![0; keys.len()],
            errors: vec![null_mut(); keys.len()],
        }
    }
}

/// Compiles a C program of `tests/`, linked with `library`.
pub fn compile(source: &str, library: &Path, program: &Path) {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(program)
        .arg(crate_dir.join("tests").join(source))
        .arg("-I")
        .arg(crate_dir.join("include"))
        .arg(library)
        // A reference library brings what it depends on by itself, or finds it when it is loaded.
        .arg("-Wl,--allow-shlib-undefined")
        .status()
        .expect("a C compiler is installed");
    assert!(compiled.success());
}

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_paranoid_checks: fn(Object, c_uchar);
    rocksdb_options_set_write_buffer_size: fn(Object, size_t);
    rocksdb_options_set_target_file_size_base: fn(Object, u64);
    rocksdb_options_set_max_bytes_for_level_base: fn(Object, u64);
    rocksdb_options_set_level_compaction_dynamic_level_bytes: fn(Object, c_uchar);
    rocksdb_options_set_compression: fn(Object, c_int);
    rocksdb_options_set_compaction_style: fn(Object, c_int);
    rocksdb_get_options_from_string: fn(Object, Bytes, Object, Errptr);
    rocksdb_options_set_max_subcompactions: fn(Object, u32);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_destroy: fn(Object);
    rocksdb_block_based_options_set_block_size: fn(Object, size_t);
    rocksdb_block_based_options_set_filter_policy: fn(Object, Object);
    rocksdb_filterpolicy_create_bloom_full: fn(f64) -> Object;
    rocksdb_open_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_destroy: fn(Object);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_destroy: fn(Object);
    rocksdb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_merge_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_cf: fn(Object, Object, Object, Bytes, size_t, Errptr);
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_destroy: fn(Object);
    rocksdb_writebatch_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_create_iterator_cf: fn(Object, Object, Object) -> Object;
    rocksdb_iter_destroy: fn(Object);
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flushoptions_destroy: fn(Object);
    rocksdb_flush_cf: fn(Object, Object, Object, Errptr);
    rocksdb_compact_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_property_int: fn(Object, Bytes, *mut u64) -> c_int;
    rocksdb_free: fn(*mut c_void);
}

/// How a database is opened: the same for both engines.
#[derive(Clone, Debug)]
pub struct Setup {
    pub write_buffer_size: usize,
    pub block_size: usize,
    pub bloom: bool,
    /// RocksDB's number of the codec.
    pub compression: c_int,
    pub dynamic_level_bytes: bool,
    /// The engine's own defaults for everything above.
    pub defaults: bool,
    /// 0 leveled, 1 universal, 2 FIFO; one after the other at each turn.
    pub styles: &'static [c_int],
    /// Which of them now.
    pub turn: usize,
    /// Small levels, of which compaction takes one table after the other: where it is stands in the MANIFEST.
    pub round_robin: bool,
}

/// The column families every test database has.
pub const FAMILIES: [&str; 2] = ["default", "second"];

/// All rows of all column families.
pub type FamilyRows = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// An open database of either engine.
pub struct Database<'a> {
    api: &'a Api,
    db: Object,
    options: Object,
    handles: [Object; 2],
    write: Object,
    read: Object,
    leveled: bool,
}

fn pointer(bytes: &[u8]) -> (Bytes, size_t) {
    (bytes.as_ptr().cast(), bytes.len())
}

impl<'a> Database<'a> {
    /// Opens `path` with every check on.
    pub fn open(api: &'a Api, path: &Path, setup: &Setup) -> Result<Database<'a>, String> {
        // SAFETY: the C API's contract: live objects, NUL-terminated names, arrays of two.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_create_missing_column_families)(options, 1);
            (api.rocksdb_options_set_paranoid_checks)(options, 1);
            (api.rocksdb_options_set_uint64add_merge_operator)(options);
            let style = setup.styles[setup.turn % setup.styles.len()];
            (api.rocksdb_options_set_compaction_style)(options, style);
            (api.rocksdb_options_set_max_subcompactions)(options, 3);
            if !setup.defaults {
                (api.rocksdb_options_set_write_buffer_size)(options, setup.write_buffer_size);
                let level_base = if setup.round_robin { 32 << 10 } else { 256 << 10 };
                (api.rocksdb_options_set_target_file_size_base)(options, level_base / 4);
                (api.rocksdb_options_set_max_bytes_for_level_base)(options, level_base);
                let dynamic = c_uchar::from(setup.dynamic_level_bytes);
                (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, dynamic);
                (api.rocksdb_options_set_compression)(options, setup.compression);
                let table = (api.rocksdb_block_based_options_create)();
                (api.rocksdb_block_based_options_set_block_size)(table, setup.block_size);
                if setup.bloom {
                    let policy = (api.rocksdb_filterpolicy_create_bloom_full)(10.0);
                    (api.rocksdb_block_based_options_set_filter_policy)(table, policy);
                }
                (api.rocksdb_options_set_block_based_table_factory)(options, table);
                (api.rocksdb_block_based_options_destroy)(table);
            }
            let mut options = options;
            if setup.round_robin {
                // Not every version has a function for it.
                let (plain, mut error) = (options, null_mut());
                options = (api.rocksdb_options_create)();
                let text = c"compaction_pri=kRoundRobin".as_ptr();
                (api.rocksdb_get_options_from_string)(plain, text, options, &raw mut error);
                assert!(error.is_null());
                (api.rocksdb_options_destroy)(plain);
            }
            let name = CString::new(path.to_str().unwrap()).unwrap();
            let names = FAMILIES.map(|family| CString::new(family).unwrap());
            let name_pointers = [names[0].as_ptr(), names[1].as_ptr()];
            let mut handles = [null_mut(); 2];
            let mut error = null_mut();
            let db = (api.rocksdb_open_column_families)(
                options,
                name.as_ptr(),
                2,
                name_pointers.as_ptr(),
                [options, options].as_ptr(),
                handles.as_mut_ptr(),
                &raw mut error,
            );
            take_error(api, error)?;
            let write = (api.rocksdb_writeoptions_create)();
            let read = (api.rocksdb_readoptions_create)();
            Ok(Database { api, db, options, handles, write, read, leveled: style == 0 })
        }
    }

    fn call(&self, call: impl FnOnce(Errptr)) {
        let mut error = null_mut();
        call(&raw mut error);
        take_error(self.api, error).unwrap();
    }

    pub fn put(&self, family: usize, key: &[u8], value: &[u8]) {
        let ((k, kl), (v, vl)) = (pointer(key), pointer(value));
        // SAFETY: live objects and slices.
        self.call(|e| unsafe {
            (self.api.rocksdb_put_cf)(self.db, self.write, self.handles[family], k, kl, v, vl, e)
        });
    }

    pub fn add(&self, family: usize, key: &[u8], number: u64) {
        let bytes = number.to_le_bytes();
        let ((k, kl), (v, vl)) = (pointer(key), pointer(&bytes));
        // SAFETY: live objects and slices.
        self.call(|e| unsafe {
            (self.api.rocksdb_merge_cf)(self.db, self.write, self.handles[family], k, kl, v, vl, e)
        });
    }

    pub fn delete(&self, family: usize, key: &[u8]) {
        let (k, kl) = pointer(key);
        // SAFETY: live objects and slices.
        self.call(|e| unsafe {
            (self.api.rocksdb_delete_cf)(self.db, self.write, self.handles[family], k, kl, e)
        });
    }

    /// One batch over both column families.
    pub fn batch(&self, puts: &[(usize, Vec<u8>, Vec<u8>)], deletes: &[(usize, Vec<u8>)]) {
        // SAFETY: live objects and slices.
        unsafe {
            let batch = (self.api.rocksdb_writebatch_create)();
            for (family, key, value) in puts {
                let ((k, kl), (v, vl)) = (pointer(key), pointer(value));
                (self.api.rocksdb_writebatch_put_cf)(batch, self.handles[*family], k, kl, v, vl);
            }
            for (family, key) in deletes {
                let (k, kl) = pointer(key);
                (self.api.rocksdb_writebatch_delete_cf)(batch, self.handles[*family], k, kl);
            }
            self.call(|e| (self.api.rocksdb_write)(self.db, self.write, batch, e));
            (self.api.rocksdb_writebatch_destroy)(batch);
        }
    }

    pub fn get(&self, family: usize, key: &[u8]) -> Option<Vec<u8>> {
        let (k, kl) = pointer(key);
        let (mut len, mut error) = (0, null_mut());
        // SAFETY: live objects and slices; the value is malloc'ed with `len` bytes.
        unsafe {
            let value = (self.api.rocksdb_get_cf)(
                self.db,
                self.read,
                self.handles[family],
                k,
                kl,
                &raw mut len,
                &raw mut error,
            );
            take_error(self.api, error).unwrap();
            (!value.is_null()).then(|| {
                let copy = std::slice::from_raw_parts(value.cast::<u8>(), len).to_vec();
                (self.api.rocksdb_free)(value.cast());
                copy
            })
        }
    }

    pub fn flush(&self, family: usize) {
        // SAFETY: live objects.
        unsafe {
            let options = (self.api.rocksdb_flushoptions_create)();
            self.call(|e| (self.api.rocksdb_flush_cf)(self.db, options, self.handles[family], e));
            (self.api.rocksdb_flushoptions_destroy)(options);
        }
    }

    /// Compacts everything; a background error afterwards fails the test.
    pub fn compact(&self, family: usize) {
        let mut errors = 1;
        // SAFETY: live objects; null bounds are unbounded.
        unsafe {
            (self.api.rocksdb_compact_range_cf)(
                self.db,
                self.handles[family],
                std::ptr::null(),
                0,
                std::ptr::null(),
                0,
            );
            (self.api.rocksdb_property_int)(self.db, c"rocksdb.background-errors".as_ptr(), &raw mut errors);
        }
        assert_eq!(errors, 0, "background errors after a compaction");
    }

    /// Waits until nothing runs in the background and nothing is due: the files then stay as they are.
    pub fn wait_until_idle(&self) {
        let names = [
            c"rocksdb.num-running-compactions",
            c"rocksdb.num-running-flushes",
            c"rocksdb.mem-table-flush-pending",
            c"rocksdb.compaction-pending",
        ];
        let mut quiet = 0;
        while quiet < 10 {
            // RocksDB's universal and FIFO compaction call it pending when runs are many, even if no merge follows.
            let names = if self.leveled { &names[..] } else { &names[..3] };
            let busy = names.iter().any(|name| {
                let mut number = 0;
                // SAFETY: live objects and a NUL-terminated name.
                unsafe { (self.api.rocksdb_property_int)(self.db, name.as_ptr(), &raw mut number) };
                number != 0
            });
            quiet = if busy { 0 } else { quiet + 1 };
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Every row of every column family, by scan; each is looked up as well.
    pub fn contents(&self) -> FamilyRows {
        [0, 1].map(|family| {
            let mut rows = BTreeMap::new();
            // SAFETY: live objects; keys and values are valid until the iterator moves.
            unsafe {
                let iter = (self.api.rocksdb_create_iterator_cf)(self.db, self.read, self.handles[family]);
                (self.api.rocksdb_iter_seek_to_first)(iter);
                while (self.api.rocksdb_iter_valid)(iter) != 0 {
                    let mut len = 0;
                    let key = (self.api.rocksdb_iter_key)(iter, &raw mut len);
                    let key = std::slice::from_raw_parts(key.cast::<u8>(), len).to_vec();
                    let value = (self.api.rocksdb_iter_value)(iter, &raw mut len);
                    let value = std::slice::from_raw_parts(value.cast::<u8>(), len).to_vec();
                    rows.insert(key, value);
                    (self.api.rocksdb_iter_next)(iter);
                }
                self.call(|e| (self.api.rocksdb_iter_get_error)(iter, e));
                (self.api.rocksdb_iter_destroy)(iter);
            }
            for (key, value) in &rows {
                assert_eq!(self.get(family, key).as_ref(), Some(value), "get and scan agree");
            }
            rows
        })
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // SAFETY: live objects, each destroyed once.
        unsafe {
            self.handles.iter().for_each(|handle| (self.api.rocksdb_column_family_handle_destroy)(*handle));
            (self.api.rocksdb_writeoptions_destroy)(self.write);
            (self.api.rocksdb_readoptions_destroy)(self.read);
            (self.api.rocksdb_close)(self.db);
            (self.api.rocksdb_options_destroy)(self.options);
        }
    }
}

fn take_error(api: &Api, error: *mut c_char) -> Result<(), String> {
    // SAFETY: an error of this library.
    unsafe { error_text(error, api.rocksdb_free) }.map_or(Ok(()), Err)
}
