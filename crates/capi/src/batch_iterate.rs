//! `rocksdb_writebatch_iterate*`: a batch told to callbacks, record by record.
//!
//! As in RocksDB the walk ends, without an error, at a record that the callbacks have no function for: a deleted
//! range, or a record of another column family where the callbacks do not name one. Single deletions and merges of
//! the default column family are passed over where there is no function for them.

use crate::batch::rocksdb_writebatch_t;
use libc::{c_char, c_void, size_t};
use outcrop::{CfId, Op, Record, WriteBatch};

type Bytes = *const c_char;
pub(crate) type Put = unsafe extern "C-unwind" fn(*mut c_void, Bytes, size_t, Bytes, size_t);
pub(crate) type Deleted = unsafe extern "C-unwind" fn(*mut c_void, Bytes, size_t);
type PutCf = unsafe extern "C-unwind" fn(*mut c_void, u32, Bytes, size_t, Bytes, size_t);
type DeletedCf = unsafe extern "C-unwind" fn(*mut c_void, u32, Bytes, size_t);
type LogData = unsafe extern "C-unwind" fn(*mut c_void, Bytes, size_t);

/// An entry of a batch, log data included.
pub enum Entry<'a> {
    Write(Record<'a>),
    LogData(&'a [u8]),
}

/// Length of a batch's header. Bytes: `docs/format/write_batch.md`.
const HEADER_LEN: usize = 12;
const LOG_DATA_TAG: u8 = 0x03;
const NOOP_TAG: u8 = 0x0D;

/// Calls `visit` with every entry in order until it gives false. A batch that is held decodes; its log data stands
/// between the writes, so it is found where one write ends and the next begins.
pub fn walk(batch: &WriteBatch, visit: &mut dyn FnMut(Entry<'_>) -> bool) {
    let bytes = batch.as_bytes();
    let mut at = HEADER_LEN;
    for record in batch.iter().map_while(Result::ok) {
        if !log_data(bytes, &mut at, visit) || !visit(Entry::Write(record)) {
            return;
        }
        let last = match record.op {
            Op::Put { value, .. } => value,
            Op::Merge { operand, .. } => operand,
            Op::PutEntity { entity, .. } => entity,
            Op::DeleteRange { end, .. } => end,
            Op::Delete { key } | Op::SingleDelete { key } => key,
        };
        // The last field of a record is a slice of the batch: its end is the record's.
        at = last.as_ptr() as usize + last.len() - bytes.as_ptr() as usize;
    }
    log_data(bytes, &mut at, visit);
}

/// Visits the log data at `at`, and moves past it.
fn log_data(bytes: &[u8], at: &mut usize, visit: &mut dyn FnMut(Entry<'_>) -> bool) -> bool {
    loop {
        match bytes.get(*at) {
            Some(&NOOP_TAG) => *at += 1,
            Some(&LOG_DATA_TAG) => {
                let Some((data, end)) = length_prefixed(bytes, *at + 1) else { return false };
                *at = end;
                if !visit(Entry::LogData(data)) {
                    return false;
                }
            }
            _ => return true,
        }
    }
}

/// The bytes after the varint length at `at`, and where they end.
fn length_prefixed(bytes: &[u8], mut at: usize) -> Option<(&[u8], usize)> {
    let mut len = 0usize;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.get(at)?;
        at += 1;
        len |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some((bytes.get(at..at.checked_add(len)?)?, at + len));
        }
    }
    None
}

fn parts(bytes: &[u8]) -> (Bytes, size_t) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// The callbacks for the default column family alone.
pub(crate) unsafe fn iterate(
    batch: &WriteBatch,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
    log: Option<LogData>,
) {
    walk(batch, &mut |entry| {
        // SAFETY: the contract of the C API: the callbacks read what they are given.
        unsafe {
            match entry {
                Entry::LogData(data) => {
                    let (data, len) = parts(data);
                    if let Some(log) = log {
                        log(state, data, len);
                    }
                    true
                }
                Entry::Write(Record { cf: CfId::DEFAULT, op: Op::Put { key, value } }) => {
                    let ((key, key_len), (value, value_len)) = (parts(key), parts(value));
                    put(state, key, key_len, value, value_len);
                    true
                }
                Entry::Write(Record { cf: CfId::DEFAULT, op: Op::Delete { key } }) => {
                    let (key, key_len) = parts(key);
                    deleted(state, key, key_len);
                    true
                }
                Entry::Write(Record {
                    cf: CfId::DEFAULT,
                    op: Op::SingleDelete { .. } | Op::Merge { .. },
                }) => true,
                Entry::Write(_) => false,
            }
        }
    });
}

unsafe fn iterate_cf(
    batch: &WriteBatch,
    state: *mut c_void,
    put: PutCf,
    deleted: DeletedCf,
    merge: PutCf,
    log: Option<LogData>,
) {
    walk(batch, &mut |entry| {
        // SAFETY: the contract of the C API: the callbacks read what they are given.
        unsafe {
            match entry {
                Entry::LogData(data) => {
                    let (data, len) = parts(data);
                    if let Some(log) = log {
                        log(state, data, len);
                    }
                    true
                }
                Entry::Write(Record { cf, op: Op::Put { key, value } }) => {
                    let ((key, key_len), (value, value_len)) = (parts(key), parts(value));
                    put(state, cf.0, key, key_len, value, value_len);
                    true
                }
                Entry::Write(Record { cf, op: Op::Merge { key, operand } }) => {
                    let ((key, key_len), (operand, operand_len)) = (parts(key), parts(operand));
                    merge(state, cf.0, key, key_len, operand, operand_len);
                    true
                }
                Entry::Write(Record { cf, op: Op::Delete { key } }) => {
                    let (key, key_len) = parts(key);
                    deleted(state, cf.0, key, key_len);
                    true
                }
                Entry::Write(Record { cf: CfId::DEFAULT, op: Op::SingleDelete { .. } }) => true,
                Entry::Write(_) => false,
            }
        }
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate(
    batch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
) {
    boundary!(iterate(&(*batch).batch, state, put, deleted, None))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate_ld(
    batch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
    log_data: LogData,
) {
    boundary!(iterate(&(*batch).batch, state, put, deleted, Some(log_data)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate_cf(
    batch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put_cf: PutCf,
    deleted_cf: DeletedCf,
    merge_cf: PutCf,
) {
    boundary!(iterate_cf(&(*batch).batch, state, put_cf, deleted_cf, merge_cf, None))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_iterate_cf_ld(
    batch: *mut rocksdb_writebatch_t,
    state: *mut c_void,
    put_cf: PutCf,
    deleted_cf: DeletedCf,
    merge_cf: PutCf,
    log_data: LogData,
) {
    boundary!(iterate_cf(&(*batch).batch, state, put_cf, deleted_cf, merge_cf, Some(log_data)))
}
