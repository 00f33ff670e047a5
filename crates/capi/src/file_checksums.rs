//! `rocksdb_file_checksum_gen_*`: checksums of whole files, and reading files to compare them.

use crate::db::rocksdb_t;
use crate::memory::{Errptr, give_back, hand_out, report};
use crate::options::rocksdb_options_t;
use crate::read_options::rocksdb_readoptions_t;
use outcrop::FileChecksumGenFactory;

pub struct rocksdb_file_checksum_gen_factory_t(FileChecksumGenFactory);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_file_checksum_gen_crc32c_factory_create()
-> *mut rocksdb_file_checksum_gen_factory_t {
    boundary!(hand_out(rocksdb_file_checksum_gen_factory_t(FileChecksumGenFactory::Crc32c)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_file_checksum_gen_factory_destroy(
    factory: *mut rocksdb_file_checksum_gen_factory_t,
) {
    boundary!(give_back(factory))
}

/// Null takes one away that was set before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_file_checksum_gen_factory(
    options: *mut rocksdb_options_t,
    factory: *mut rocksdb_file_checksum_gen_factory_t,
) {
    boundary!((*options).db.file_checksum_gen_factory = factory.as_ref().map(|factory| factory.0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_file_checksums(db: *mut rocksdb_t, errptr: Errptr) {
    boundary!(errptr, {
        report(errptr, (*db).0.verify_file_checksums());
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_verify_file_checksums_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let allowed = options.as_ref().map_or(Ok(()), |options| options.get().map(|_| ()));
        report(errptr, allowed.and_then(|()| (*db).0.verify_file_checksums()));
    })
}
