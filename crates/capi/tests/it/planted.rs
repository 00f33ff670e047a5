//! Faults on purpose, which `cargo xtask sanitize` has to find; nothing else runs them.

use outcrop_capi::*;

#[test]
#[ignore = "a fault that is planted"]
fn a_batch_that_was_freed_is_used() {
    // SAFETY: there is none; AddressSanitizer ends the process.
    unsafe {
        let batch = rocksdb_writebatch_create();
        rocksdb_writebatch_destroy(batch);
        rocksdb_writebatch_count(batch);
    }
}

#[test]
#[ignore = "a fault that is planted"]
fn two_threads_set_one_option() {
    let options = rocksdb_options_create() as usize;
    let set = move || {
        for size in 0..1000 {
            // SAFETY: there is none; ThreadSanitizer ends the process.
            unsafe { rocksdb_options_set_write_buffer_size(options as *mut _, size) };
        }
    };
    let other = std::thread::spawn(set);
    set();
    other.join().unwrap();
    // SAFETY: nobody uses them any more.
    unsafe { rocksdb_options_destroy(options as *mut _) };
}
