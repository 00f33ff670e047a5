//! `rocksdb_create_*_env`: where a database lives.

use crate::memory::{give_back, hand_out};
use outcrop::Env;

pub struct rocksdb_env_t(pub(crate) Env);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_default_env() -> *mut rocksdb_env_t {
    hand_out(rocksdb_env_t(Env::posix()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_mem_env() -> *mut rocksdb_env_t {
    hand_out(rocksdb_env_t(Env::memory()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_env_destroy(env: *mut rocksdb_env_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(env) }
}
