//! `rocksdb_sstfilewriter_*` and ingestion.

use crate::callbacks::{rocksdb_comparator_t, rocksdb_options_set_comparator};
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{give_back, hand_out, report, set_error, slice, text};
use crate::options::rocksdb_options_t;
use crate::rate_limiter::rocksdb_ratelimiter_t;
use crate::settings::{Flag, Settings};
use libc::{c_char, c_int, size_t};
use outcrop::{Error, IngestExternalFileOptions, Result, SstFileWriter, Timestamp};
use std::path::PathBuf;

/// Accepted where RocksDB takes one; its settings have no counterpart here.
#[derive(Default)]
pub struct rocksdb_envoptions_t {
    settings: Settings,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_envoptions_create() -> *mut rocksdb_envoptions_t {
    boundary!(hand_out(rocksdb_envoptions_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_envoptions_destroy(options: *mut rocksdb_envoptions_t) {
    boundary!(give_back(options))
}

pub struct rocksdb_sstfilewriter_t {
    options: rocksdb_options_t,
    open: Option<SstFileWriter>,
    /// Of the file that was finished last.
    file_size: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_create(
    _env: *const rocksdb_envoptions_t,
    options: *const rocksdb_options_t,
) -> *mut rocksdb_sstfilewriter_t {
    boundary!({
        let options = (*options).clone();
        hand_out(rocksdb_sstfilewriter_t { options, open: None, file_size: 0 })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_create_with_comparator(
    env: *const rocksdb_envoptions_t,
    options: *const rocksdb_options_t,
    comparator: *const rocksdb_comparator_t,
) -> *mut rocksdb_sstfilewriter_t {
    boundary!({
        let writer = rocksdb_sstfilewriter_create(env, options);
        // Null leaves the order of the options.
        if !comparator.is_null() {
            rocksdb_options_set_comparator(&mut (*writer).options, comparator.cast_mut());
        }
        writer
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_open(
    writer: *mut rocksdb_sstfilewriter_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let writer = &mut *writer;
        let created = writer.options.descriptor("default").and_then(|descriptor| {
            let options = &writer.options;
            SstFileWriter::create_with(text(name), &options.env(), &descriptor, &options.db)
        });
        writer.open = report(errptr, created);
    })
}

/// Runs `add` on the open file.
unsafe fn with_open(
    writer: *mut rocksdb_sstfilewriter_t,
    errptr: *mut *mut c_char,
    add: impl FnOnce(&mut SstFileWriter) -> Result<()>,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match &mut (*writer).open {
            Some(open) => {
                report(errptr, add(open));
            }
            None => set_error(errptr, &Error::invalid_argument("File is not opened")),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_put(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    val: *const c_char,
    vallen: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, with_open(writer, errptr, |open| open.put(slice(key, keylen), slice(val, vallen))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_put_with_ts(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    ts: *const c_char,
    tslen: size_t,
    val: *const c_char,
    vallen: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(
        errptr,
        with_open(writer, errptr, |open| {
            open.put_at(slice(key, keylen), timestamp(slice(ts, tslen))?, slice(val, vallen))
        })
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_delete_with_ts(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    ts: *const c_char,
    tslen: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(
        errptr,
        with_open(writer, errptr, |open| open.delete_at(slice(key, keylen), timestamp(slice(ts, tslen))?))
    )
}

/// In RocksDB's words (`SstFileWriter::Rep::Add`).
fn timestamp(bytes: &[u8]) -> Result<Timestamp> {
    Timestamp::from_bytes(bytes).map_err(|_| Error::invalid_argument("Timestamp size mismatch"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_add(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    val: *const c_char,
    vallen: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, rocksdb_sstfilewriter_put(writer, key, keylen, val, vallen, errptr))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_merge(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    val: *const c_char,
    vallen: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, with_open(writer, errptr, |open| open.merge(slice(key, keylen), slice(val, vallen))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_delete(
    writer: *mut rocksdb_sstfilewriter_t,
    key: *const c_char,
    keylen: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, with_open(writer, errptr, |open| open.delete(slice(key, keylen))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_delete_range(
    writer: *mut rocksdb_sstfilewriter_t,
    begin_key: *const c_char,
    begin_keylen: size_t,
    end_key: *const c_char,
    end_keylen: size_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let (begin, end) = (slice(begin_key, begin_keylen), slice(end_key, end_keylen));
        with_open(writer, errptr, |open| open.delete_range(begin, end));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_finish(
    writer: *mut rocksdb_sstfilewriter_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        match (*writer).open.take() {
            Some(open) => {
                if let Some(info) = report(errptr, open.finish()) {
                    (*writer).file_size = info.file_size;
                }
            }
            None => set_error(errptr, &Error::invalid_argument("File is not opened")),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_file_size(
    writer: *mut rocksdb_sstfilewriter_t,
    file_size: *mut u64,
) {
    boundary!({
        let writer = &*writer;
        *file_size = writer.open.as_ref().map_or(writer.file_size, SstFileWriter::file_size);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_destroy(writer: *mut rocksdb_sstfilewriter_t) {
    boundary!(give_back(writer))
}

#[derive(Default)]
pub struct rocksdb_ingestexternalfileoptions_t {
    options: IngestExternalFileOptions,
    settings: Settings,
}

impl rocksdb_ingestexternalfileoptions_t {
    fn get(&self) -> Result<&IngestExternalFileOptions> {
        self.settings.check()?;
        Ok(&self.options)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingestexternalfileoptions_create() -> *mut rocksdb_ingestexternalfileoptions_t
{
    boundary!(hand_out(rocksdb_ingestexternalfileoptions_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingestexternalfileoptions_destroy(
    options: *mut rocksdb_ingestexternalfileoptions_t,
) {
    boundary!(give_back(options))
}

engine_settings! { rocksdb_ingestexternalfileoptions_t:
    "move_files" [options.move_files]
        set rocksdb_ingestexternalfileoptions_set_move_files(Flag)
        get rocksdb_ingestexternalfileoptions_get_move_files -> Flag;
    "failed_move_fall_back_to_copy" [options.failed_move_fall_back_to_copy]
        set rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy(Flag)
        get rocksdb_ingestexternalfileoptions_get_failed_move_fall_back_to_copy -> Flag;
    "snapshot_consistency" [options.snapshot_consistency]
        set rocksdb_ingestexternalfileoptions_set_snapshot_consistency(Flag)
        get rocksdb_ingestexternalfileoptions_get_snapshot_consistency -> Flag;
    "allow_global_seqno" [options.allow_global_seqno]
        set rocksdb_ingestexternalfileoptions_set_allow_global_seqno(Flag)
        get rocksdb_ingestexternalfileoptions_get_allow_global_seqno -> Flag;
    "allow_blocking_flush" [options.allow_blocking_flush]
        set rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(Flag)
        get rocksdb_ingestexternalfileoptions_get_allow_blocking_flush -> Flag;
    "ingest_behind" [options.ingest_behind]
        set rocksdb_ingestexternalfileoptions_set_ingest_behind(Flag)
        get rocksdb_ingestexternalfileoptions_get_ingest_behind -> Flag;
    "fail_if_not_bottommost_level" [options.fail_if_not_bottommost_level]
        set rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level(Flag)
        get rocksdb_ingestexternalfileoptions_get_fail_if_not_bottommost_level -> Flag;
    "verify_checksums_before_ingest" [options.verify_checksums_before_ingest]
        set rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest(Flag)
        get rocksdb_ingestexternalfileoptions_get_verify_checksums_before_ingest -> Flag;
}

kept_settings! { rocksdb_ingestexternalfileoptions_t, INGEST_NOTES:
    Accepted "tunes how RocksDB reads the files" {
        "verify_checksums_readahead_size" size_t = 0;
            set rocksdb_ingestexternalfileoptions_set_verify_checksums_readahead_size get rocksdb_ingestexternalfileoptions_get_verify_checksums_readahead_size -> size_t;
        "fill_cache" Flag = Flag(1);
            set rocksdb_ingestexternalfileoptions_set_fill_cache get rocksdb_ingestexternalfileoptions_get_fill_cache -> Flag;
        "prefetch_lmax_index_and_filter_blocks" Flag = Flag(1);
            set rocksdb_ingestexternalfileoptions_set_prefetch_lmax_index_and_filter_blocks get rocksdb_ingestexternalfileoptions_get_prefetch_lmax_index_and_filter_blocks -> Flag;
        "file_opening_threads" c_int = 1;
            set rocksdb_ingestexternalfileoptions_set_file_opening_threads get rocksdb_ingestexternalfileoptions_get_file_opening_threads -> c_int;
    }
    Accepted "the sequence number is kept in the MANIFEST, as RocksDB does by default" {
        "write_global_seqno" Flag = Flag(0);
            set rocksdb_ingestexternalfileoptions_set_write_global_seqno get rocksdb_ingestexternalfileoptions_get_write_global_seqno -> Flag;
    }
    Checked "only files of an SstFileWriter are taken" {
        "allow_db_generated_files" Flag = Flag(0);
            set rocksdb_ingestexternalfileoptions_set_allow_db_generated_files get rocksdb_ingestexternalfileoptions_get_allow_db_generated_files -> Flag;
        "link_files" Flag = Flag(0);
            set rocksdb_ingestexternalfileoptions_set_link_files get rocksdb_ingestexternalfileoptions_get_link_files -> Flag;
    }
    Accepted "it is about checksums that are given with the files, which no function of this API does" {
        "verify_file_checksum" Flag = Flag(1);
            set rocksdb_ingestexternalfileoptions_set_verify_file_checksum get rocksdb_ingestexternalfileoptions_get_verify_file_checksum -> Flag;
    }
}

kept_settings! { rocksdb_envoptions_t, ENV_NOTES:
    Accepted "how the environment opens files is set by the options of the database" {
        "use_mmap_reads" Flag = Flag(0);
            set rocksdb_envoptions_set_use_mmap_reads get rocksdb_envoptions_get_use_mmap_reads -> Flag;
        "use_mmap_writes" Flag = Flag(0);
            set rocksdb_envoptions_set_use_mmap_writes get rocksdb_envoptions_get_use_mmap_writes -> Flag;
        "use_direct_reads" Flag = Flag(0);
            set rocksdb_envoptions_set_use_direct_reads get rocksdb_envoptions_get_use_direct_reads -> Flag;
        "use_direct_writes" Flag = Flag(0);
            set rocksdb_envoptions_set_use_direct_writes get rocksdb_envoptions_get_use_direct_writes -> Flag;
        "allow_fallocate" Flag = Flag(1);
            set rocksdb_envoptions_set_allow_fallocate get rocksdb_envoptions_get_allow_fallocate -> Flag;
        "fd_cloexec" Flag = Flag(1);
            set rocksdb_envoptions_set_fd_cloexec get rocksdb_envoptions_get_fd_cloexec -> Flag;
        "bytes_per_sync" u64 = 0;
            set rocksdb_envoptions_set_bytes_per_sync get rocksdb_envoptions_get_bytes_per_sync -> u64;
        "strict_bytes_per_sync" Flag = Flag(0);
            set rocksdb_envoptions_set_strict_bytes_per_sync get rocksdb_envoptions_get_strict_bytes_per_sync -> Flag;
        "fallocate_with_keep_size" Flag = Flag(1);
            set rocksdb_envoptions_set_fallocate_with_keep_size get rocksdb_envoptions_get_fallocate_with_keep_size -> Flag;
        "compaction_readahead_size" size_t = 2097152;
            set rocksdb_envoptions_set_compaction_readahead_size get rocksdb_envoptions_get_compaction_readahead_size -> size_t;
        "writable_file_max_buffer_size" size_t = 1048576;
            set rocksdb_envoptions_set_writable_file_max_buffer_size get rocksdb_envoptions_get_writable_file_max_buffer_size -> size_t;
    }
}

/// Writes of an SstFileWriter have no priority, so that RocksDB does not limit them either.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_envoptions_set_rate_limiter(
    _options: *mut rocksdb_envoptions_t,
    _limiter: *mut rocksdb_ratelimiter_t,
) {
}

unsafe fn paths(list: *const *const c_char, len: size_t) -> Vec<PathBuf> {
    // SAFETY: the caller passes `len` NUL-terminated strings.
    (0..len).map(|i| unsafe { text(*list.add(i)) }.into()).collect()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file(
    db: *mut rocksdb_t,
    file_list: *const *const c_char,
    list_len: size_t,
    options: *const rocksdb_ingestexternalfileoptions_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let db = &(*db).0;
        let paths = paths(file_list, list_len);
        let ingested = (*options).get().and_then(|options| {
            db.ingest_external_files_cf_with(db.default_column_family(), &paths, options)
        });
        report(errptr, ingested);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file_cf(
    db: *mut rocksdb_t,
    handle: *mut rocksdb_column_family_handle_t,
    file_list: *const *const c_char,
    list_len: size_t,
    options: *const rocksdb_ingestexternalfileoptions_t,
    errptr: *mut *mut c_char,
) {
    boundary!(errptr, {
        let paths = paths(file_list, list_len);
        let ingested = (*options)
            .get()
            .and_then(|options| (*db).0.ingest_external_files_cf_with(&(*handle).0, &paths, options));
        report(errptr, ingested);
    })
}
