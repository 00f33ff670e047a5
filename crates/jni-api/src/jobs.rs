//! `CompactionJobInfo` and `CompactionJobStats`: reports on compactions.

use crate::env::Env;
use crate::glue::{Answer, bytes_at, checked, object};
use crate::status::Status;
use crate::tables;
use jni_sys::{jbyte, jlong, jobject};
use outcrop_capi as c;
use outcrop_capi::{rocksdb_compaction_job_stats_t as Stats, rocksdb_compactionjobinfo_t as Info};
use std::ffi::c_char;

pub(crate) fn family_name<'a>(info: jlong) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: see `glue`.
    unsafe { bytes_at(c::rocksdb_compactionjobinfo_cf_name(info as *const Info, &mut len), len) }
}

/// `Status` of what became of it.
pub(crate) fn status(env: Env, info: jlong) -> Answer<jobject> {
    // SAFETY: see `glue`.
    let told = checked(|error| unsafe { c::rocksdb_compactionjobinfo_status(info as *const Info, error) });
    match told {
        Ok(()) => env.new_status(&Status { code: 0, subcode: 0, state: None }),
        Err(crate::glue::Thrown::Status(status)) => env.new_status(&status),
        Err(thrown) => Err(thrown),
    }
}

/// The number of `CompactionReason`, where a reason that RocksDB has between two others comes late.
/// Source: RocksDB `java/rocksjni/portal.h`, `CompactionReasonJni`.
pub(crate) fn reason(info: jlong) -> Answer<jbyte> {
    // SAFETY: see `glue`.
    Ok(reason_number(unsafe { c::rocksdb_compactionjobinfo_compaction_reason(info as *const Info) }))
}

fn reason_number(own: u32) -> jbyte {
    match own {
        0..=9 | 17..=19 => own as jbyte,
        // Files marked for compaction.
        10 => 0x10,
        11..=16 => own as jbyte - 1,
        _ => 0x7F,
    }
}

type PathAt = unsafe extern "C" fn(*const Info, usize, *mut usize) -> *const c_char;

fn paths(env: Env, info: jlong, count: usize, at: PathAt) -> Answer<jobject> {
    let path = |place| {
        let mut len = 0;
        // SAFETY: see `glue`.
        let bytes = unsafe { bytes_at(at(info as *const Info, place, &mut len), len) };
        String::from_utf8_lossy(bytes).into_owned()
    };
    env.new_array("java/lang/String", (0..count).map(path))
}

pub(crate) fn inputs(env: Env, info: jlong) -> Answer<jobject> {
    // SAFETY: see `glue`.
    let count = unsafe { c::rocksdb_compactionjobinfo_input_files_count(info as *const Info) };
    paths(env, info, count, c::rocksdb_compactionjobinfo_input_file_at)
}

pub(crate) fn outputs(env: Env, info: jlong) -> Answer<jobject> {
    // SAFETY: see `glue`.
    let count = unsafe { c::rocksdb_compactionjobinfo_output_files_count(info as *const Info) };
    paths(env, info, count, c::rocksdb_compactionjobinfo_output_file_at)
}

/// The properties of all tables, by path.
pub(crate) fn tables(env: Env, info: jlong) -> Answer<jobject> {
    let own = info as *const Info;
    // SAFETY: see `glue`.
    let count = unsafe { c::rocksdb_compactionjobinfo_table_properties_count(own) };
    env.new_map((0..count).map(|place| {
        let mut len = 0;
        // SAFETY: see `glue`.
        let (path, table) = unsafe {
            (
                bytes_at(c::rocksdb_compactionjobinfo_table_properties_key_at(own, place, &mut len), len),
                &*c::rocksdb_compactionjobinfo_table_properties_value_at(own, place),
            )
        };
        Ok((env.new_text(&String::from_utf8_lossy(path))?, tables::properties_of(env, table)?))
    }))
}

/// The figures of a job, which are a copy of their own.
pub(crate) fn stats(info: jlong) -> Answer<jlong> {
    // SAFETY: see `glue`.
    let own = unsafe { &*c::rocksdb_compactionjobinfo_stats(info as *const Info) };
    Ok(crate::glue::handle(own.clone()))
}

pub(crate) fn reset(stats: jlong) -> Answer<()> {
    *object::<Stats>(stats) = Stats::default();
    Ok(())
}

pub(crate) fn add(stats: jlong, other: jlong) -> Answer<()> {
    let (own, other) = (&mut object::<Stats>(stats).0, &object::<Stats>(other).0);
    own.elapsed_micros += other.elapsed_micros;
    own.cpu_micros += other.cpu_micros;
    own.num_input_records += other.num_input_records;
    own.num_input_files += other.num_input_files;
    own.num_input_files_at_output_level += other.num_input_files_at_output_level;
    own.num_input_files_trivially_moved += other.num_input_files_trivially_moved;
    own.num_output_records += other.num_output_records;
    own.num_output_files += other.num_output_files;
    own.num_output_files_blob += other.num_output_files_blob;
    own.total_input_bytes += other.total_input_bytes;
    own.total_output_bytes += other.total_output_bytes;
    own.total_output_bytes_blob += other.total_output_bytes_blob;
    own.num_records_replaced += other.num_records_replaced;
    own.total_input_raw_key_bytes += other.total_input_raw_key_bytes;
    own.total_input_raw_value_bytes += other.total_input_raw_value_bytes;
    own.num_input_deletion_records += other.num_input_deletion_records;
    own.num_expired_deletion_records += other.num_expired_deletion_records;
    own.num_blobs_read += other.num_blobs_read;
    own.total_blob_bytes_read += other.total_blob_bytes_read;
    own.num_single_del_fallthru += other.num_single_del_fallthru;
    own.num_single_del_mismatch += other.num_single_del_mismatch;
    own.file_write_nanos += other.file_write_nanos;
    own.file_range_sync_nanos += other.file_range_sync_nanos;
    own.file_fsync_nanos += other.file_fsync_nanos;
    Ok(())
}

pub(crate) fn prefix<'a>(stats: jlong, largest: bool) -> &'a [u8] {
    let own = &object::<Stats>(stats).0;
    if largest { &own.largest_output_key_prefix } else { &own.smallest_output_key_prefix }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of `org.rocksdb.CompactionReason`, in the order of RocksDB's numbers.
    #[test]
    fn reasons_have_the_numbers_of_rocksjava() {
        let numbers: Vec<jbyte> = (0..=19).map(reason_number).collect();
        let of_java =
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x11, 0x12, 0x13];
        assert_eq!(numbers, of_java);
        assert_eq!(reason_number(20), 0x7F);
    }
}
