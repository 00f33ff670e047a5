//! RocksDB's C API as the package `librocksdb-sys` declares it, with Outcrop as the library that is linked.
//!
//! The declarations are checked in; `cargo xtask declarations` makes them from our C header and from those of older versions.
//! Next: `../README.md`.
#![allow(non_camel_case_types, non_upper_case_globals, reason = "the names are those of the C API")]
#![allow(missing_docs, reason = "documented by RocksDB's header; what differs is said in docs/capi.md")]
#![allow(clippy::all, reason = "made from a C header")]

// Its symbols are what the declarations below are about.
#[cfg(not(outcrop_elsewhere))]
extern crate outcrop_capi as _;
// Replaces malloc in the whole program.
#[cfg(feature = "jemalloc")]
extern crate tikv_jemalloc_sys as _;

use libc::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};

include!("../declarations/constants.rs");
include!("../declarations/types.rs");
include!("../declarations/functions.rs");
// As this version has them.
include!(concat!(env!("CARGO_MANIFEST_DIR"), "/differs.rs"));
