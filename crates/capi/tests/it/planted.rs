//! A fault on purpose, which `cargo xtask sanitize` has to find; nothing else runs it.

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
