//! `rocksdb_create_*_env`: where a database lives.

use crate::memory::{Errptr, give_back, hand_out, report, text};
use crate::settings::{Fate, Note};
use libc::{c_char, c_int};
use outcrop::Env;
use std::sync::atomic::{AtomicI32, Ordering};

pub struct rocksdb_env_t(pub(crate) Env, Threads);

/// Sizes of RocksDB's thread pools, kept for their getters: each database has threads of its own.
struct Threads {
    low: AtomicI32,
    high: AtomicI32,
    bottom: AtomicI32,
}

fn env(env: Env) -> *mut rocksdb_env_t {
    let threads = Threads { low: AtomicI32::new(1), high: AtomicI32::new(1), bottom: AtomicI32::new(0) };
    hand_out(rocksdb_env_t(env, threads))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_default_env() -> *mut rocksdb_env_t {
    boundary!(env(Env::posix()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_mem_env() -> *mut rocksdb_env_t {
    boundary!(env(Env::memory()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_env_destroy(env: *mut rocksdb_env_t) {
    boundary!(give_back(env))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_dir_if_missing(
    env: *mut rocksdb_env_t,
    path: *const c_char,
    errptr: Errptr,
) {
    boundary!(errptr, {
        report(errptr, (*env).0.fs.create_dir_all(text(path).as_ref()));
    })
}

macro_rules! threads {
    ($($set:ident $get:ident $pool:ident;)*) => {
        pub(crate) const THREAD_NOTES: &[Note] = &[$(
            Note { function: stringify!($set), fate: Fate::Accepted,
                why: "each database has threads of its own, as many as max_background_jobs says" },
        )*];

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $set(env: *mut rocksdb_env_t, n: c_int) {
                boundary!({
                    // Relaxed: a number that orders nothing.
                    (*env).1.$pool.store(n, Ordering::Relaxed);
                })
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $get(env: *mut rocksdb_env_t) -> c_int {
                boundary!({
                    // Relaxed: a number that orders nothing.
                    (*env).1.$pool.load(Ordering::Relaxed)
                })
            }
        )*
    };
}

threads! {
    rocksdb_env_set_background_threads rocksdb_env_get_background_threads low;
    rocksdb_env_set_low_priority_background_threads rocksdb_env_get_low_priority_background_threads low;
    rocksdb_env_set_high_priority_background_threads rocksdb_env_get_high_priority_background_threads high;
    rocksdb_env_set_bottom_priority_background_threads
        rocksdb_env_get_bottom_priority_background_threads bottom;
}

macro_rules! without_pools {
    ($($name:ident)*) => {
        pub(crate) const POOL_NOTES: &[Note] = &[$(
            Note { function: stringify!($name), fate: Fate::Accepted,
                why: "environments have no threads; a database joins its own when it is closed" },
        )*];

        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(_env: *mut rocksdb_env_t) {}
        )*
    };
}

without_pools! {
    rocksdb_env_join_all_threads
    rocksdb_env_lower_thread_pool_io_priority
    rocksdb_env_lower_high_priority_thread_pool_io_priority
    rocksdb_env_lower_thread_pool_cpu_priority
    rocksdb_env_lower_high_priority_thread_pool_cpu_priority
}
