//! Prefix extractors made of callbacks, beside RocksDB's: the same calls, the same rows, names and files.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, libraries, outcrop_library};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop_base::random::SplitMix;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Transform = unsafe extern "C" fn(*mut c_void, Bytes, size_t, *mut size_t) -> *mut c_char;
type InDomain = unsafe extern "C" fn(*mut c_void, Bytes, size_t) -> c_uchar;
type Name = unsafe extern "C" fn(*mut c_void) -> Bytes;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_disable_auto_compactions: fn(Object, c_int);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio: fn(Object, f64);
    rocksdb_options_set_prefix_extractor: fn(Object, Object);
    rocksdb_options_set_block_based_table_factory: fn(Object, Object);
    rocksdb_block_based_options_create: fn() -> Object;
    rocksdb_block_based_options_destroy: fn(Object);
    rocksdb_block_based_options_set_filter_policy: fn(Object, Object);
    rocksdb_block_based_options_set_whole_key_filtering: fn(Object, c_uchar);
    rocksdb_block_based_options_set_partition_filters: fn(Object, c_uchar);
    rocksdb_block_based_options_set_index_type: fn(Object, c_int);
    rocksdb_filterpolicy_create_bloom_full: fn(f64) -> Object;
    rocksdb_slicetransform_create: fn(*mut c_void, unsafe extern "C" fn(*mut c_void), Transform, InDomain, Name) -> Object;
    rocksdb_slicetransform_create_fixed_prefix: fn(size_t) -> Object;
    rocksdb_slicetransform_destroy: fn(Object);
    rocksdb_load_latest_options: fn(Bytes, Object, bool, Object, *mut Object, *mut size_t, *mut *mut Bytes, *mut *mut Object, Errptr);
    rocksdb_create_default_env: fn() -> Object;
    rocksdb_cache_create_lru: fn(size_t) -> Object;
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_set_options: fn(Object, c_int, *const Bytes, *const Bytes, Errptr);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_destroy: fn(Object);
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flushoptions_destroy: fn(Object);
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_destroy: fn(Object);
    rocksdb_readoptions_set_total_order_seek: fn(Object, c_uchar);
    rocksdb_readoptions_set_prefix_same_as_start: fn(Object, c_uchar);
    rocksdb_readoptions_set_iterate_upper_bound: fn(Object, Bytes, size_t);
    rocksdb_get: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_seek_for_prev: fn(Object, Bytes, size_t);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

/// Short, so that keys meet; with or without a colon.
fn drawn_key(draw: &mut SplitMix) -> Vec<u8> {
    let mut key: Vec<u8> = (0..draw.below(3)).map(|_| b"abc"[draw.below(3) as usize]).collect();
    if draw.below(3) > 0 {
        key.push(b':');
        key.extend((0..draw.below(4)).map(|_| b"18:"[draw.below(3) as usize]));
    }
    key
}

/// Which prefixes keys have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Up to the first colon; keys without one have none.
    Colon,
    /// The same under another name.
    Renamed,
    /// The first byte, of keys that have one.
    First,
    /// RocksDB's own of two bytes.
    Fixed,
    None,
}

impl Rule {
    const ALL: [Rule; 5] = [Rule::Colon, Rule::Renamed, Rule::First, Rule::Fixed, Rule::None];

    fn name(self) -> &'static CStr {
        match self {
            Rule::Colon => c"test.Colon",
            Rule::Renamed => c"test.Renamed",
            Rule::First => c"test.First one",
            Rule::Fixed => c"rocksdb.FixedPrefix.2",
            Rule::None => c"nullptr",
        }
    }

    fn prefix(self, key: &[u8]) -> Option<&[u8]> {
        match self {
            Rule::Colon | Rule::Renamed => key.iter().position(|&byte| byte == b':').map(|at| &key[..=at]),
            Rule::First => key.get(..1),
            Rule::Fixed => key.get(..2),
            Rule::None => None,
        }
    }
}

/// The state that callbacks are given.
struct State {
    rule: Rule,
    destroyed: Arc<AtomicUsize>,
}

unsafe extern "C" fn destroy(state: *mut c_void) {
    // SAFETY: made by `extractor`, destroyed once.
    let state = unsafe { Box::from_raw(state.cast::<State>()) };
    state.destroyed.fetch_add(1, Ordering::SeqCst);
}

unsafe fn key_of<'k>(key: Bytes, len: size_t) -> &'k [u8] {
    // SAFETY: a key of the library's.
    unsafe { std::slice::from_raw_parts(key.cast(), len) }
}

unsafe extern "C" fn transform(state: *mut c_void, key: Bytes, len: size_t, out: *mut size_t) -> *mut c_char {
    // SAFETY: as they were given.
    unsafe {
        let prefix =
            (*state.cast::<State>()).rule.prefix(key_of(key, len)).expect("asked for its domain first");
        *out = prefix.len();
        prefix.as_ptr().cast_mut().cast()
    }
}

unsafe extern "C" fn in_domain(state: *mut c_void, key: Bytes, len: size_t) -> c_uchar {
    // SAFETY: as they were given.
    unsafe { (*state.cast::<State>()).rule.prefix(key_of(key, len)).is_some().into() }
}

unsafe extern "C" fn name(state: *mut c_void) -> Bytes {
    // SAFETY: as it was given.
    unsafe { (*state.cast::<State>()).rule.name().as_ptr() }
}

fn state(rule: Rule, destroyed: &Arc<AtomicUsize>) -> *mut c_void {
    Box::into_raw(Box::new(State { rule, destroyed: destroyed.clone() })).cast()
}

/// How tables are written.
#[derive(Clone, Copy)]
struct Shape {
    whole_keys: bool,
    partitions: bool,
    memtable_bloom: bool,
}

struct Session<'a> {
    api: &'a Api,
    db: Object,
    write: Object,
}

/// Options for `rule`, and how many extractors of these were destroyed since.
fn options_for(api: &Api, rule: Rule, shape: Shape) -> (Object, Arc<AtomicUsize>) {
    let destroyed = Arc::new(AtomicUsize::new(0));
    // SAFETY: live objects.
    unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_set_disable_auto_compactions)(options, 1);
        if shape.memtable_bloom {
            (api.rocksdb_options_set_memtable_prefix_bloom_size_ratio)(options, 0.1);
        }
        match rule {
            Rule::None => {}
            Rule::Fixed => {
                let fixed = (api.rocksdb_slicetransform_create_fixed_prefix)(2);
                (api.rocksdb_options_set_prefix_extractor)(options, fixed);
            }
            rule => {
                let state = state(rule, &destroyed);
                let made = (api.rocksdb_slicetransform_create)(state, destroy, transform, in_domain, name);
                (api.rocksdb_options_set_prefix_extractor)(options, made);
            }
        }
        let table = (api.rocksdb_block_based_options_create)();
        let policy = (api.rocksdb_filterpolicy_create_bloom_full)(10.0);
        (api.rocksdb_block_based_options_set_filter_policy)(table, policy);
        (api.rocksdb_block_based_options_set_whole_key_filtering)(table, shape.whole_keys.into());
        if shape.partitions {
            (api.rocksdb_block_based_options_set_index_type)(table, 2);
            (api.rocksdb_block_based_options_set_partition_filters)(table, 1);
        }
        (api.rocksdb_options_set_block_based_table_factory)(options, table);
        (api.rocksdb_block_based_options_destroy)(table);
        (options, destroyed)
    }
}

fn error_of(api: &Api, call: impl FnOnce(Errptr)) -> Option<String> {
    let mut error = null_mut();
    call(&raw mut error);
    // SAFETY: a message of this library, or null.
    unsafe { error_text(error, api.rocksdb_free) }
}

fn c_path(dir: &Path) -> CString {
    CString::new(dir.to_str().unwrap()).unwrap()
}

impl<'a> Session<'a> {
    /// Under `options`, which are destroyed.
    fn open(api: &'a Api, dir: &Path, options: Object) -> Session<'a> {
        let mut db = null_mut();
        // SAFETY: live objects.
        unsafe {
            let error = error_of(api, |e| db = (api.rocksdb_open)(options, c_path(dir).as_ptr(), e));
            assert_eq!(error, None);
            (api.rocksdb_options_destroy)(options);
            Session { api, db, write: (api.rocksdb_writeoptions_create)() }
        }
    }

    fn close(self) {
        // SAFETY: live objects.
        unsafe {
            (self.api.rocksdb_writeoptions_destroy)(self.write);
            (self.api.rocksdb_close)(self.db);
        }
    }

    fn put(&self, key: &[u8]) {
        let (start, len) = (key.as_ptr().cast(), key.len());
        // SAFETY: live objects.
        let error = error_of(self.api, |e| unsafe {
            (self.api.rocksdb_put)(self.db, self.write, start, len, start, len, e);
        });
        assert_eq!(error, None);
    }

    fn delete(&self, key: &[u8]) {
        // SAFETY: live objects.
        let error = error_of(self.api, |e| unsafe {
            (self.api.rocksdb_delete)(self.db, self.write, key.as_ptr().cast(), key.len(), e);
        });
        assert_eq!(error, None);
    }

    fn flush(&self) {
        // SAFETY: live objects.
        unsafe {
            let options = (self.api.rocksdb_flushoptions_create)();
            assert_eq!(error_of(self.api, |e| (self.api.rocksdb_flush)(self.db, options, e)), None);
            (self.api.rocksdb_flushoptions_destroy)(options);
        }
    }

    fn compact(&self) {
        // SAFETY: a live database; null is no bound.
        unsafe { (self.api.rocksdb_compact_range)(self.db, std::ptr::null(), 0, std::ptr::null(), 0) }
    }

    fn get(&self, key: &[u8]) -> bool {
        // SAFETY: live objects.
        unsafe {
            let read = (self.api.rocksdb_readoptions_create)();
            let (mut len, mut value) = (0, null_mut());
            let error = error_of(self.api, |e| {
                value =
                    (self.api.rocksdb_get)(self.db, read, key.as_ptr().cast(), key.len(), &raw mut len, e);
            });
            assert_eq!(error, None);
            (self.api.rocksdb_readoptions_destroy)(read);
            if !value.is_null() {
                (self.api.rocksdb_free)(value.cast());
            }
            !value.is_null()
        }
    }

    /// The rows from `target` on that `walk` promises.
    fn walk(&self, target: &[u8], walk: &Walk, rule: Rule) -> Vec<String> {
        let api = self.api;
        let mut rows = Vec::new();
        // SAFETY: live objects.
        unsafe {
            let read = (api.rocksdb_readoptions_create)();
            (api.rocksdb_readoptions_set_total_order_seek)(read, walk.total_order.into());
            (api.rocksdb_readoptions_set_prefix_same_as_start)(read, walk.same_prefix.into());
            if let Some(upper) = &walk.upper {
                (api.rocksdb_readoptions_set_iterate_upper_bound)(read, upper.as_ptr().cast(), upper.len());
            }
            let iter = (api.rocksdb_create_iterator)(self.db, read);
            match walk.backward {
                true => (api.rocksdb_iter_seek_for_prev)(iter, target.as_ptr().cast(), target.len()),
                false => (api.rocksdb_iter_seek)(iter, target.as_ptr().cast(), target.len()),
            }
            // RocksDB may leave out what is beyond the prefix of a seek, unless it was told otherwise.
            let partial = !walk.total_order && !walk.same_prefix;
            let prefix = rule.prefix(target).filter(|_| partial);
            while (api.rocksdb_iter_valid)(iter) != 0 {
                let mut len = 0;
                let key = (api.rocksdb_iter_key)(iter, &raw mut len);
                let key = key_of(key, len).to_vec();
                if prefix.is_some_and(|prefix| rule.prefix(&key) != Some(prefix)) {
                    break;
                }
                rows.push(String::from_utf8(key).unwrap());
                match walk.backward {
                    true => (api.rocksdb_iter_prev)(iter),
                    false => (api.rocksdb_iter_next)(iter),
                }
            }
            assert_eq!(error_of(api, |e| (api.rocksdb_iter_get_error)(iter, e)), None);
            (api.rocksdb_iter_destroy)(iter);
            (api.rocksdb_readoptions_destroy)(read);
        }
        rows
    }
}

/// How an iterator is made and moved.
#[derive(Debug)]
struct Walk {
    total_order: bool,
    same_prefix: bool,
    backward: bool,
    upper: Option<Vec<u8>>,
}

/// The files of `dir` whose names end with `suffix`, or begin with it.
fn files(dir: &Path, part: &str) -> Vec<PathBuf> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| name(path).ends_with(part) || name(path).starts_with(part));
    files.sort();
    files
}

/// The names of extractors that are in tables.
fn names_in_tables(dir: &Path) -> Vec<&'static str> {
    let has = |bytes: &[u8], name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    let tables: Vec<Vec<u8>> = files(dir, ".sst").iter().map(|path| std::fs::read(path).unwrap()).collect();
    let names = Rule::ALL[..4].iter().map(|rule| rule.name().to_str().unwrap());
    names.filter(|name| tables.iter().any(|bytes| has(bytes, name))).collect()
}

/// The line about prefix extractors of the newest OPTIONS file.
fn stored_name(dir: &Path) -> String {
    let text = std::fs::read_to_string(files(dir, "OPTIONS-").last().unwrap()).unwrap();
    text.lines().find(|line| line.trim().starts_with("prefix_extractor=")).unwrap().trim().to_string()
}

/// Three turns with another rule each, of which each leaves tables; what it reads after each.
fn turns(api: &Api, dir: &Path, seed: u64) -> Vec<String> {
    let mut draw = SplitMix::new(seed);
    let mut told = Vec::new();
    let shape = Shape {
        whole_keys: draw.below(2) == 0,
        partitions: draw.below(3) == 0,
        memtable_bloom: draw.below(2) == 0,
    };
    for turn in 0..3 {
        let rule = Rule::ALL[draw.below(5) as usize];
        let (options, destroyed) = options_for(api, rule, shape);
        let session = Session::open(api, dir, options);
        for _ in 0..2 {
            for _ in 0..draw.below(12) {
                let key = drawn_key(&mut draw);
                match draw.below(5) {
                    0 => session.delete(&key),
                    _ => session.put(&key),
                }
            }
            match draw.below(6) {
                0 => session.compact(),
                1 => {}
                _ => session.flush(),
            }
        }
        for _ in 0..25 {
            let target = drawn_key(&mut draw);
            let walk = Walk {
                total_order: draw.below(3) == 0,
                same_prefix: draw.below(2) == 0,
                backward: draw.below(3) == 0,
                upper: None,
            };
            // Going backward RocksDB seeks from the bound, within the bound's prefix.
            let bounded = !walk.backward && draw.below(3) == 0;
            let walk = Walk { upper: bounded.then(|| drawn_key(&mut draw)), ..walk };
            let rows = session.walk(&target, &walk, rule);
            let target = String::from_utf8_lossy(&target).into_owned();
            told.push(format!(
                "turn {turn} {rule:?} {target} {walk:?}: {rows:?} {}",
                session.get(target.as_bytes())
            ));
        }
        session.close();
        told.push(format!("{} {}", stored_name(dir), destroyed.load(Ordering::SeqCst)));
    }
    told
}

#[test]
fn drawn_keys_of_old_and_new_extractors_are_read_as_by_rocksdb() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let told = libraries().into_iter().map(|(_, library)| {
            let dir = tempfile::tempdir().unwrap();
            turns(&std::mem::ManuallyDrop::new(Api::load(&library)), &dir.path().join("db"), seed)
        });
        let told: Vec<Vec<String>> = told.collect();
        for theirs in &told[1..] {
            for (ours, theirs) in told[0].iter().zip(theirs) {
                assert_eq!(ours, theirs, "seed {seed}; left: ours, right: RocksDB");
            }
        }
    }
}

#[test]
fn an_extractor_that_is_known_by_name_only_is_none() {
    let shape = Shape { whole_keys: false, partitions: false, memtable_bloom: true };
    let told = Api::same_on_both(|api, dir| {
        let (options, destroyed) = options_for(api, Rule::Colon, shape);
        let session = Session::open(api, dir, options);
        ["a:1", "a:2", "b", "b:1"].iter().for_each(|key| session.put(key.as_bytes()));
        session.flush();
        let mut told = vec![stored_name(dir)];
        session.close();
        told.push(format!("{} destroyed {:?}", destroyed.load(Ordering::SeqCst), names_in_tables(dir)));
        // SAFETY: live objects.
        unsafe {
            let (mut db_options, mut count) = (null_mut(), 0);
            let (mut names, mut families) = (null_mut(), null_mut());
            let error = error_of(api, |e| {
                (api.rocksdb_load_latest_options)(
                    c_path(dir).as_ptr(),
                    (api.rocksdb_create_default_env)(),
                    false,
                    (api.rocksdb_cache_create_lru)(1 << 20),
                    &raw mut db_options,
                    &raw mut count,
                    &raw mut names,
                    &raw mut families,
                    e,
                );
            });
            told.push(format!("{error:?} {count}"));
            let mut db = null_mut();
            let error = error_of(api, |e| db = (api.rocksdb_open)(*families, c_path(dir).as_ptr(), e));
            told.push(format!("{error:?} {}", stored_name(dir)));
            let session = Session { api, db, write: (api.rocksdb_writeoptions_create)() };
            let same = Walk { total_order: false, same_prefix: true, backward: false, upper: None };
            told.push(format!("{:?}", session.walk(b"a:2", &same, Rule::None)));
            told.push(format!("{} {}", session.get(b"a:1"), session.get(b"a:3")));
            session.close();
        }
        told
    });
    assert_eq!(told[0], "prefix_extractor=test.Colon");
    assert_eq!(told[1], r#"1 destroyed ["test.Colon"]"#);
}

#[test]
fn an_open_database_takes_another_extractor_by_name() {
    let shape = Shape { whole_keys: false, partitions: false, memtable_bloom: false };
    let told = Api::same_on_both(|api, dir| {
        let (options, destroyed) = options_for(api, Rule::Colon, shape);
        let session = Session::open(api, dir, options);
        let set = |value: &CStr| {
            let (key, value) = (c"prefix_extractor".as_ptr(), value.as_ptr());
            // SAFETY: a live database and texts.
            let error = error_of(api, |e| unsafe {
                (api.rocksdb_set_options)(session.db, 1, &raw const key, &raw const value, e);
            });
            (error, stored_name(dir))
        };
        let same = Walk { total_order: false, same_prefix: true, backward: false, upper: None };
        ["a:1", "a:2", "aa", "b:1"].iter().for_each(|key| session.put(key.as_bytes()));
        session.flush();
        let mut told = vec![format!("{:?}", session.walk(b"a:1", &same, Rule::Colon))];
        told.push(format!("{:?}", set(c"test.Colon")));
        told.push(format!("{:?}", session.walk(b"a:1", &same, Rule::Colon)));
        told.push(format!("{:?}", set(c"rocksdb.FixedPrefix.1")));
        told.push(format!("{:?}", session.walk(b"a:1", &same, Rule::First)));
        told.push(format!("{:?}", set(c"nullptr")));
        told.push(format!("{:?}", session.walk(b"a:1", &same, Rule::None)));
        session.put(b"a:3");
        session.flush();
        session.compact();
        session.close();
        told.push(format!("{:?}", names_in_tables(dir)));
        told.push(format!("{} destroyed", destroyed.load(Ordering::SeqCst)));
        told
    });
    assert_eq!(told[0], r#"["a:1", "a:2"]"#);
    assert_eq!(told[2], r#"["a:1", "a:2"]"#);
    // The table that is open was written with another extractor: its filter does not know this prefix.
    assert_eq!(told[4], r#"["a:1", "a:2", "aa"]"#);
    assert_eq!(told[6], r#"["a:1", "a:2", "aa", "b:1"]"#);
}

#[test]
fn extractors_that_no_options_took_are_destroyed_too_and_older_callers_pass_the_name_after_a_null() {
    let api = std::mem::ManuallyDrop::new(Api::load(&outcrop_library()));
    let destroyed = Arc::new(AtomicUsize::new(0));
    type Older = unsafe extern "C" fn(
        *mut c_void,
        unsafe extern "C" fn(*mut c_void),
        Transform,
        InDomain,
        Option<InDomain>,
        Name,
    ) -> Object;
    // SAFETY: the signature of headers up to RocksDB 10, which this library serves too; live objects.
    unsafe {
        let older: Older = std::mem::transmute(api.rocksdb_slicetransform_create);
        let made = older(state(Rule::Colon, &destroyed), destroy, transform, in_domain, None, name);
        (api.rocksdb_slicetransform_destroy)(made);
        assert_eq!(destroyed.load(Ordering::SeqCst), 1);
        let made = older(state(Rule::Renamed, &destroyed), destroy, transform, in_domain, None, name);
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_set_prefix_extractor)(options, made);
        let dir = tempfile::tempdir().unwrap();
        Session::open(&api, dir.path(), options).close();
        assert_eq!(stored_name(dir.path()), "prefix_extractor=test.Renamed");
        assert_eq!(destroyed.load(Ordering::SeqCst), 2);
    }
}
