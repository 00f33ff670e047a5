//! `rocksdb_slicetransform_*`: prefix extractors.
//!
//! RocksDB's own are supported. One made of callbacks can be created, and options that are given it fail to open: a
//! table names its extractor, and another reader would not have the callbacks.

use crate::memory::{give_back, hand_out, text};
use crate::settings::{Fate, Note};
use libc::{c_char, c_uchar, c_void, size_t};
use outcrop::PrefixExtractor;

pub enum rocksdb_slicetransform_t {
    /// One of RocksDB's own.
    BuiltIn(PrefixExtractor),
    /// The name of one that the caller brought.
    Custom(String),
}

type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
type Transform =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t, *mut size_t) -> *mut c_char>;
type InDomain = Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> c_uchar>;
type Name = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char>;

pub(crate) const SLICE_TRANSFORM_NOTES: &[Note] = &[Note {
    function: "rocksdb_slicetransform_create",
    fate: Fate::Checked,
    why: "prefix extractors made of callbacks are refused at open; RocksDB's own are supported",
}];

/// See the module: a transform that is made here is refused at open.
///
/// Headers up to RocksDB 10 had an argument `in_range` in place of `name`, and `name` after it. Bindings pass null for `in_range`,
/// which no caller passes for a name: `older_name` is looked at only then, and no caller of today passes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Destructor,
    _transform: Transform,
    _in_domain: InDomain,
    name: Name,
    older_name: Name,
) -> *mut rocksdb_slicetransform_t {
    boundary!({
        let name = name.or(older_name);
        let name = name.map(|name| text(name(state)));
        if let Some(destructor) = destructor {
            destructor(state);
        }
        hand_out(rocksdb_slicetransform_t::Custom(name.unwrap_or_default()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_fixed_prefix(len: size_t) -> *mut rocksdb_slicetransform_t {
    boundary!(hand_out(rocksdb_slicetransform_t::BuiltIn(PrefixExtractor::Fixed(len))))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_noop() -> *mut rocksdb_slicetransform_t {
    boundary!(hand_out(rocksdb_slicetransform_t::BuiltIn(PrefixExtractor::Noop)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_slicetransform_destroy(transform: *mut rocksdb_slicetransform_t) {
    boundary!(give_back(transform))
}
