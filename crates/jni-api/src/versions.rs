//! Which jars this library is for.

use jni_sys::jint;

/// RocksDB's version as `RocksDB.version` wants it: major, minor and patch, a byte each.
pub(crate) const NUMBER: jint = 11 << 16 | 8 << 8 | 1;
