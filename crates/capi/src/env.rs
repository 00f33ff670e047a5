//! `rocksdb_create_*_env`: where a database lives.

use crate::memory::{Errptr, give_back, hand_out, report, text};
use crate::settings::{Fate, Note};
use libc::{c_char, c_int};
use outcrop::Env;
use outcrop::Lane;
use std::sync::atomic::{AtomicI32, Ordering};

pub struct rocksdb_env_t(pub Env, BottomThreads);

/// Size of RocksDB's pool for compactions into the last level, kept for its getter.
struct BottomThreads(AtomicI32);

impl rocksdb_env_t {
    /// An object for this environment.
    pub fn of(env: Env) -> rocksdb_env_t {
        rocksdb_env_t(env, BottomThreads(AtomicI32::new(0)))
    }
}

fn env(env: Env) -> *mut rocksdb_env_t {
    hand_out(rocksdb_env_t::of(env))
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
    ($($set:ident $get:ident $lane:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(env: *mut rocksdb_env_t, n: c_int) {
            boundary!((*env).0.scheduler.set_limit(Lane::$lane, usize::try_from(n).unwrap_or(0)))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(env: *mut rocksdb_env_t) -> c_int {
            boundary!(c_int::try_from((*env).0.scheduler.limit(Lane::$lane)).unwrap_or(c_int::MAX))
        }
    )*};
}

threads! {
    rocksdb_env_set_background_threads rocksdb_env_get_background_threads Compaction;
    rocksdb_env_set_low_priority_background_threads
        rocksdb_env_get_low_priority_background_threads Compaction;
    rocksdb_env_set_high_priority_background_threads
        rocksdb_env_get_high_priority_background_threads Flush;
}

pub(crate) const THREAD_NOTES: &[Note] = &[Note {
    function: "rocksdb_env_set_bottom_priority_background_threads",
    fate: Fate::Accepted,
    why: "compactions into the last level run on the threads of all compactions",
}];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_env_set_bottom_priority_background_threads(
    env: *mut rocksdb_env_t,
    n: c_int,
) {
    boundary!({
        // Relaxed: a number that orders nothing.
        (*env).1.0.store(n, Ordering::Relaxed);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_env_get_bottom_priority_background_threads(
    env: *mut rocksdb_env_t,
) -> c_int {
    boundary!({
        // Relaxed: a number that orders nothing.
        (*env).1.0.load(Ordering::Relaxed)
    })
}

macro_rules! without_pools {
    ($($name:ident)*) => {
        pub(crate) const POOL_NOTES: &[Note] = &[$(
            Note { function: stringify!($name), fate: Fate::Accepted,
                why: "threads end by themselves with the last database, which waits for them" },
        )*];

        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(_env: *mut rocksdb_env_t) {}
        )*
    };
}

without_pools! {
    rocksdb_env_join_all_threads
}

macro_rules! lowered {
    ($($name:ident $lower:ident $lane:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(env: *mut rocksdb_env_t) {
            boundary!((*env).0.scheduler.$lower(Lane::$lane))
        }
    )*};
}

lowered! {
    rocksdb_env_lower_thread_pool_io_priority lower_io_priority Compaction;
    rocksdb_env_lower_high_priority_thread_pool_io_priority lower_io_priority Flush;
    rocksdb_env_lower_thread_pool_cpu_priority lower_cpu_priority Compaction;
    rocksdb_env_lower_high_priority_thread_pool_cpu_priority lower_cpu_priority Flush;
}
