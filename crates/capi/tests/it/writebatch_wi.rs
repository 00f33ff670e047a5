//! Write batches with an index beside RocksDB's: random operations on both libraries, each answer compared.
//!
//! Two column families, the second in reverse order, both with a merge operator. An iterator lives while records are added, as
//! a transaction's does. `OUTCROP_SEED=n` repeats one seed.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, outcrop_library, reference_libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop_base::random::SplitMix;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

type Compare = unsafe extern "C" fn(*mut c_void, Bytes, size_t, Bytes, size_t) -> c_int;
type Destructor = unsafe extern "C" fn(*mut c_void);
type Name = unsafe extern "C" fn(*mut c_void) -> Bytes;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_options_set_comparator: fn(Object, Object);
    rocksdb_comparator_create: fn(*mut c_void, Destructor, Compare, Name) -> Object;
    rocksdb_open_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_close: fn(Object);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_destroy: fn(Object);
    rocksdb_readoptions_set_iterate_lower_bound: fn(Object, Bytes, size_t);
    rocksdb_readoptions_set_iterate_upper_bound: fn(Object, Bytes, size_t);
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_create_iterator_cf: fn(Object, Object, Object) -> Object;
    rocksdb_iter_destroy: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_seek_to_last: fn(Object);
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_seek_for_prev: fn(Object, Bytes, size_t);
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_writebatch_wi_create: fn(size_t, c_uchar) -> Object;
    rocksdb_writebatch_wi_create_with_params: fn(Object, size_t, c_uchar, size_t, size_t) -> Object;
    rocksdb_writebatch_wi_destroy: fn(Object);
    rocksdb_writebatch_wi_clear: fn(Object);
    rocksdb_writebatch_wi_count: fn(Object) -> c_int;
    rocksdb_writebatch_wi_put: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_wi_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_wi_merge_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_wi_merge: fn(Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_wi_delete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_writebatch_wi_delete: fn(Object, Bytes, size_t);
    rocksdb_writebatch_wi_singledelete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_writebatch_wi_delete_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_wi_put_log_data: fn(Object, Bytes, size_t);
    rocksdb_writebatch_wi_data: fn(Object, *mut size_t) -> Bytes;
    rocksdb_writebatch_wi_set_save_point: fn(Object);
    rocksdb_writebatch_wi_rollback_to_save_point: fn(Object, Errptr);
    rocksdb_writebatch_wi_get_from_batch: fn(Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_wi_get_from_batch_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_wi_get_from_batch_and_db: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_wi_get_from_batch_and_db_cf: fn(Object, Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_writebatch_wi_create_iterator_with_base: fn(Object, Object) -> Object;
    rocksdb_writebatch_wi_create_iterator_with_base_cf: fn(Object, Object, Object) -> Object;
    rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts: fn(Object, Object, Object, Object) -> Object;
    rocksdb_write_writebatch_wi: fn(Object, Object, Object, Errptr);
    rocksdb_free: fn(*mut c_void);
}

unsafe extern "C" fn reverse(_: *mut c_void, a: Bytes, a_len: size_t, b: Bytes, b_len: size_t) -> c_int {
    // SAFETY: the library passes two keys.
    let (a, b) = unsafe {
        (std::slice::from_raw_parts(a.cast::<u8>(), a_len), std::slice::from_raw_parts(b.cast::<u8>(), b_len))
    };
    b.cmp(a) as c_int
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

unsafe extern "C" fn name(_: *mut c_void) -> Bytes {
    c"reversed".as_ptr()
}

#[derive(Clone, Debug)]
enum Step {
    /// Kind, column family or none, key, value.
    Change(u8, Option<usize>, Vec<u8>, Vec<u8>),
    Save,
    Rollback,
    Clear,
    Get(Option<usize>, Vec<u8>),
    /// An iterator over a column family, within bounds: moves, and records added between.
    Walk(Option<usize>, [Option<Vec<u8>>; 2], Vec<Move>),
    Write,
}

#[derive(Clone, Debug)]
enum Move {
    First,
    Last,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    Next,
    Prev,
    Change(u8, Vec<u8>, Vec<u8>),
}

struct Random(SplitMix);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn key(&mut self) -> Vec<u8> {
        format!("k{:02}", self.below(24)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        self.below(1000).to_le_bytes().to_vec()
    }

    fn family(&mut self) -> Option<usize> {
        match self.below(5) {
            0 => None,
            1 | 2 => Some(0),
            _ => Some(1),
        }
    }

    /// No merge is drawn on top of a single delete: RocksDB forbids it.
    fn kind(&mut self) -> u8 {
        [0, 0, 0, 0, 1, 1, 2, 2, 4, 5][self.below(10) as usize]
    }

    fn walk(&mut self) -> Step {
        let mut bounds = [(self.below(3) == 0).then(|| self.key()), (self.below(3) == 0).then(|| self.key())];
        let family = self.family();
        if bounds[0] > bounds[1] && bounds[1].is_some() {
            bounds.swap(0, 1);
        }
        if family == Some(1) {
            bounds.swap(0, 1);
        }
        if family.is_none() {
            bounds = [None, None];
        }
        // Where RocksDB's turns after records were added, it is not where it should be (`docs/transactions.md`).
        let (mut forward, mut grown) = (true, false);
        let moves = (0..3 + self.below(25)).map(|number| {
            let one = match self.below(14) {
                _ if number == 0 => Move::First,
                0 => Move::First,
                1 => Move::Last,
                2 => Move::Seek(self.key()),
                3 => Move::SeekForPrev(self.key()),
                4..8 if forward || !grown => Move::Next,
                8..12 if forward && grown => Move::Next,
                4..12 => Move::Prev,
                _ => Move::Change(self.kind(), self.key(), self.value()),
            };
            match one {
                Move::First | Move::Seek(_) => (forward, grown) = (true, false),
                Move::Last | Move::SeekForPrev(_) => (forward, grown) = (false, false),
                Move::Next => forward = true,
                Move::Prev => forward = false,
                Move::Change(..) => grown = true,
            }
            one
        });
        Step::Walk(family, bounds, moves.collect())
    }

    fn step(&mut self) -> Step {
        match self.below(40) {
            0..20 => Step::Change(self.kind(), self.family(), self.key(), self.value()),
            20..22 => Step::Save,
            22 => Step::Rollback,
            23 if self.below(3) == 0 => Step::Clear,
            24..31 => Step::Get(self.family(), self.key()),
            31 => Step::Write,
            _ => self.walk(),
        }
    }
}

struct Player<'a> {
    api: &'a Api,
    db: Object,
    families: [Object; 2],
    options: Object,
    write_options: Object,
    read_options: Object,
    batch: Object,
    told: Vec<String>,
}

fn parts(bytes: &[u8]) -> (Bytes, size_t) {
    (bytes.as_ptr().cast(), bytes.len())
}

impl<'a> Player<'a> {
    unsafe fn new(api: &'a Api, dir: &Path, overwrite: bool, max_bytes: usize) -> Player<'a> {
        // SAFETY: live objects and NUL-terminated texts.
        unsafe {
            let path = CString::new(dir.to_str().unwrap()).unwrap();
            let [options, other] = [(); 2].map(|()| {
                let options = (api.rocksdb_options_create)();
                (api.rocksdb_options_set_create_if_missing)(options, 1);
                (api.rocksdb_options_set_create_missing_column_families)(options, 1);
                (api.rocksdb_options_set_uint64add_merge_operator)(options);
                options
            });
            let comparator = (api.rocksdb_comparator_create)(null_mut(), nothing, reverse, name);
            (api.rocksdb_options_set_comparator)(other, comparator);
            let (mut families, mut error) = ([null_mut(); 2], null_mut());
            let db = (api.rocksdb_open_column_families)(
                options,
                path.as_ptr(),
                2,
                [c"default".as_ptr(), c"other".as_ptr()].as_ptr(),
                [options, other].as_ptr(),
                families.as_mut_ptr(),
                &mut error,
            );
            assert!(error.is_null(), "{:?}", CStr::from_ptr(error));
            let batch = match max_bytes {
                0 => (api.rocksdb_writebatch_wi_create)(0, overwrite.into()),
                most => {
                    let order = (api.rocksdb_comparator_create)(null_mut(), nothing, forward, name);
                    (api.rocksdb_writebatch_wi_create_with_params)(order, 0, overwrite.into(), most, 0)
                }
            };
            let (write_options, read_options) =
                ((api.rocksdb_writeoptions_create)(), (api.rocksdb_readoptions_create)());
            Player { api, db, families, options, write_options, read_options, batch, told: Vec::new() }
        }
    }

    unsafe fn error(&mut self, error: *mut c_char) -> bool {
        // SAFETY: null, or a message of the library.
        let text = unsafe { error_text(error, self.api.rocksdb_free) };
        self.told.extend(text.clone());
        text.is_some()
    }

    unsafe fn change(&mut self, kind: u8, family: Option<usize>, key: &[u8], value: &[u8]) {
        let (api, batch) = (self.api, self.batch);
        let ((key, klen), (value, vlen)) = (parts(key), parts(value));
        // SAFETY: live objects; keys and values are alive.
        unsafe {
            match (kind, family.map(|family| self.families[family])) {
                (0, None) => (api.rocksdb_writebatch_wi_put)(batch, key, klen, value, vlen),
                (0, Some(cf)) => (api.rocksdb_writebatch_wi_put_cf)(batch, cf, key, klen, value, vlen),
                (1, None) => (api.rocksdb_writebatch_wi_merge)(batch, key, klen, value, vlen),
                (1, Some(cf)) => (api.rocksdb_writebatch_wi_merge_cf)(batch, cf, key, klen, value, vlen),
                (2, None) => (api.rocksdb_writebatch_wi_delete)(batch, key, klen),
                (2, Some(cf)) => (api.rocksdb_writebatch_wi_delete_cf)(batch, cf, key, klen),
                (3, Some(cf)) => (api.rocksdb_writebatch_wi_singledelete_cf)(batch, cf, key, klen),
                (4, Some(cf)) => {
                    (api.rocksdb_writebatch_wi_delete_range_cf)(batch, cf, key, klen, value, vlen);
                }
                (5, _) => (api.rocksdb_writebatch_wi_put_log_data)(batch, key, klen),
                _ => {}
            }
        }
    }

    unsafe fn value(&mut self, value: *mut c_char, len: size_t) {
        // SAFETY: null, or `len` bytes that the library allocated.
        unsafe {
            let text = match value.is_null() {
                true => "none".to_string(),
                false => format!("{:02x?}", std::slice::from_raw_parts(value.cast::<u8>(), len)),
            };
            (self.api.rocksdb_free)(value.cast());
            self.told.push(text);
        }
    }

    unsafe fn get(&mut self, family: Option<usize>, key: &[u8]) {
        let (api, batch) = (self.api, self.batch);
        let (key, klen) = parts(key);
        for over in [false, true] {
            let (mut len, mut error) = (0, null_mut());
            // SAFETY: live objects.
            unsafe {
                let value = match (family.map(|family| self.families[family]), over) {
                    (None, false) => (api.rocksdb_writebatch_wi_get_from_batch)(
                        batch,
                        self.options,
                        key,
                        klen,
                        &mut len,
                        &mut error,
                    ),
                    (Some(cf), false) => (api.rocksdb_writebatch_wi_get_from_batch_cf)(
                        batch,
                        self.options,
                        cf,
                        key,
                        klen,
                        &mut len,
                        &mut error,
                    ),
                    (None, true) => (api.rocksdb_writebatch_wi_get_from_batch_and_db)(
                        batch,
                        self.db,
                        self.read_options,
                        key,
                        klen,
                        &mut len,
                        &mut error,
                    ),
                    (Some(cf), true) => (api.rocksdb_writebatch_wi_get_from_batch_and_db_cf)(
                        batch,
                        self.db,
                        self.read_options,
                        cf,
                        key,
                        klen,
                        &mut len,
                        &mut error,
                    ),
                };
                if !self.error(error) {
                    self.value(value, len);
                }
            }
        }
    }

    unsafe fn shown(&mut self, iter: Object) {
        let (mut klen, mut vlen, mut error) = (0, 0, null_mut());
        // SAFETY: a live iterator.
        unsafe {
            if (self.api.rocksdb_iter_valid)(iter) != 0 {
                let key = (self.api.rocksdb_iter_key)(iter, &mut klen);
                let key = std::slice::from_raw_parts(key.cast::<u8>(), klen);
                let value = (self.api.rocksdb_iter_value)(iter, &mut vlen);
                let value = std::slice::from_raw_parts(value.cast::<u8>(), vlen);
                self.told.push(format!("{}={value:02x?}", String::from_utf8_lossy(key)));
            } else {
                (self.api.rocksdb_iter_get_error)(iter, &mut error);
                if !self.error(error) {
                    self.told.push("end".into());
                }
            }
        }
    }

    unsafe fn walk(&mut self, family: Option<usize>, bounds: &[Option<Vec<u8>>; 2], moves: &[Move]) {
        let api = self.api;
        // SAFETY: live objects; the bounds outlive the iterator.
        unsafe {
            let options = (api.rocksdb_readoptions_create)();
            let bound = |bound: &Option<Vec<u8>>| bound.as_ref().map_or((null(), 0), |bound| parts(bound));
            let ((lower, lower_len), (upper, upper_len)) = (bound(&bounds[0]), bound(&bounds[1]));
            if !lower.is_null() {
                (api.rocksdb_readoptions_set_iterate_lower_bound)(options, lower, lower_len);
            }
            if !upper.is_null() {
                (api.rocksdb_readoptions_set_iterate_upper_bound)(options, upper, upper_len);
            }
            let iter = match family.map(|family| self.families[family]) {
                None => {
                    let base = (api.rocksdb_create_iterator)(self.db, options);
                    (api.rocksdb_writebatch_wi_create_iterator_with_base)(self.batch, base)
                }
                Some(cf) if lower.is_null() && upper.is_null() => {
                    let base = (api.rocksdb_create_iterator_cf)(self.db, options, cf);
                    (api.rocksdb_writebatch_wi_create_iterator_with_base_cf)(self.batch, base, cf)
                }
                Some(cf) => {
                    let base = (api.rocksdb_create_iterator_cf)(self.db, options, cf);
                    (api.rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts)(
                        self.batch, base, cf, options,
                    )
                }
            };
            for step in moves {
                match step {
                    Move::First => (api.rocksdb_iter_seek_to_first)(iter),
                    Move::Last => (api.rocksdb_iter_seek_to_last)(iter),
                    Move::Seek(key) => (api.rocksdb_iter_seek)(iter, parts(key).0, key.len()),
                    Move::SeekForPrev(key) => {
                        (api.rocksdb_iter_seek_for_prev)(iter, parts(key).0, key.len());
                    }
                    Move::Next => (api.rocksdb_iter_next)(iter),
                    Move::Prev => (api.rocksdb_iter_prev)(iter),
                    Move::Change(kind, key, value) => {
                        self.change(*kind, family, key, value);
                        continue;
                    }
                }
                self.shown(iter);
            }
            (api.rocksdb_iter_destroy)(iter);
            (api.rocksdb_readoptions_destroy)(options);
        }
    }

    unsafe fn play(&mut self, step: &Step) {
        let (api, batch) = (self.api, self.batch);
        let mut error = null_mut();
        // SAFETY: live objects.
        unsafe {
            match step {
                Step::Change(kind, family, key, value) => self.change(*kind, *family, key, value),
                Step::Save => (api.rocksdb_writebatch_wi_set_save_point)(batch),
                Step::Rollback => (api.rocksdb_writebatch_wi_rollback_to_save_point)(batch, &mut error),
                Step::Clear => (api.rocksdb_writebatch_wi_clear)(batch),
                Step::Get(family, key) => self.get(*family, key),
                Step::Walk(family, bounds, moves) => self.walk(*family, bounds, moves),
                Step::Write => {
                    (api.rocksdb_write_writebatch_wi)(self.db, self.write_options, batch, &mut error);
                }
            }
            self.error(error);
            let mut len = 0;
            let data = (api.rocksdb_writebatch_wi_data)(batch, &mut len);
            let data = std::slice::from_raw_parts(data.cast::<u8>(), len);
            // Without the sequence number, which a write may leave there.
            self.told.push(format!("{} {:02x?}", (api.rocksdb_writebatch_wi_count)(batch), &data[8..]));
        }
    }

    unsafe fn end(self) {
        // SAFETY: live objects, each destroyed once.
        unsafe {
            (self.api.rocksdb_writebatch_wi_destroy)(self.batch);
            self.families.iter().for_each(|cf| (self.api.rocksdb_column_family_handle_destroy)(*cf));
            (self.api.rocksdb_close)(self.db);
            (self.api.rocksdb_readoptions_destroy)(self.read_options);
            (self.api.rocksdb_options_destroy)(self.options);
        }
    }
}

unsafe extern "C" fn forward(_: *mut c_void, a: Bytes, a_len: size_t, b: Bytes, b_len: size_t) -> c_int {
    // SAFETY: as for `reverse`, the other way round.
    unsafe { reverse(null_mut(), b, b_len, a, a_len) }
}

#[test]
fn indexed_batches_answer_as_rocksdbs() {
    let references = reference_libraries();
    let Some((_, path)) = references.iter().find(|(version, _)| version == "11.8.1") else { return };
    let (theirs, ours) = (Api::load(path), Api::load(&outcrop_library()));
    let given = std::env::var("OUTCROP_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..60, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let mut random = Random(SplitMix::new(seed));
        let overwrite = random.below(2) == 0;
        let max_bytes = if random.below(5) == 0 { 200 + random.below(400) as usize } else { 0 };
        let steps: Vec<Step> = (0..150).map(|_| random.step()).collect();
        let dir = tempfile::tempdir().unwrap();
        // SAFETY: the players use their objects as the C API says.
        unsafe {
            let mut reference = Player::new(&theirs, &dir.path().join("theirs"), overwrite, max_bytes);
            let mut outcrop = Player::new(&ours, &dir.path().join("ours"), overwrite, max_bytes);
            for (number, step) in steps.iter().enumerate() {
                reference.play(step);
                outcrop.play(step);
                let same = reference.told == outcrop.told;
                assert!(
                    same,
                    "seed {seed}, step {number} {step:?}\nRocksDB {:#?}\nOutcrop {:#?}",
                    reference.told, outcrop.told
                );
                reference.told.clear();
                outcrop.told.clear();
            }
            reference.end();
            outcrop.end();
        }
    }
}
