//! `ThreadStatus`: what background threads do, and the words for it.
//!
//! The engine tells the kind of work, and for how long; which database and stage it does not, as RocksDB without `enable_thread_tracking`.
//! Source: RocksDB `util/thread_operation.h`, `monitoring/thread_status_impl.cc`.

use crate::env::Env;
use crate::glue::{Answer, Give, object};
use jni_sys::{jbyte, jint, jlong, jobject, jvalue};
use outcrop::Lane;

/// RocksDB's names of operations, stages and states, by their numbers.
const OPERATIONS: [&str; 12] = [
    "",
    "Compaction",
    "Flush",
    "DBOpen",
    "Get",
    "MultiGet",
    "DBIterator",
    "VerifyDBChecksum",
    "VerifyFileChecksums",
    "GetEntity",
    "MultiGetEntity",
    "GetFileChecksumsFromCurrentManifest",
];
const STAGES: [&str; 11] = [
    "",
    "FlushJob::Run",
    "FlushJob::WriteLevel0Table",
    "CompactionJob::Prepare",
    "CompactionJob::Run",
    "CompactionJob::ProcessKeyValueCompaction",
    "CompactionJob::Install",
    "CompactionJob::FinishCompactionOutputFile",
    "MemTableList::PickMemtablesToFlush",
    "MemTableList::RollbackMemtableFlush",
    "MemTableList::TryInstallMemtableFlushResults",
];
const STATES: [&str; 2] = ["", "Mutex Wait"];
const THREADS: [&str; 4] = ["High Pri", "Low Pri", "User", "Bottom Pri"];
const COMPACTION: jbyte = 1;
const FLUSH: jbyte = 2;
const OF_COMPACTIONS: [&str; 6] =
    ["JobID", "InputOutputLevel", "Manual/Deletion/Trivial", "TotalInputBytes", "BytesRead", "BytesWritten"];
const OF_FLUSHES: [&str; 3] = ["JobID", "BytesMemtables", "BytesWritten"];
/// As many as a `ThreadStatus` has.
const PROPERTIES: usize = 6;

fn named(names: &[&str], number: jbyte, otherwise: &str) -> String {
    let name = usize::try_from(number).ok().and_then(|number| names.get(number));
    name.copied().unwrap_or(otherwise).to_string()
}

pub(crate) fn thread(number: jbyte) -> String {
    named(&THREADS, number, "Unknown")
}

pub(crate) fn operation(number: jbyte) -> String {
    named(&OPERATIONS, number, "")
}

pub(crate) fn stage(number: jbyte) -> String {
    named(&STAGES, number, "")
}

pub(crate) fn state(number: jbyte) -> String {
    named(&STATES, number, "")
}

fn properties(operation: jbyte) -> &'static [&'static str] {
    match operation {
        COMPACTION => &OF_COMPACTIONS,
        FLUSH => &OF_FLUSHES,
        _ => &[],
    }
}

pub(crate) fn property(operation: jbyte, place: jint) -> String {
    let name = usize::try_from(place).ok().and_then(|place| properties(operation).get(place));
    name.copied().unwrap_or_default().to_string()
}

/// The properties of an operation by name, each number that is several split.
pub(crate) fn interpreted(env: Env, operation: jbyte, numbers: jobject) -> Answer<jobject> {
    let numbers = env.longs(numbers)?;
    env.new_map(split(operation, &numbers).into_iter().map(|(name, number)| {
        let number = env.new_object("java/lang/Long", "(J)V", &[jvalue { j: number }])?;
        Ok((env.new_text(&name)?, number))
    }))
}

fn split(operation: jbyte, numbers: &[jlong]) -> Vec<(String, jlong)> {
    let mut named = Vec::new();
    for (place, (name, number)) in properties(operation).iter().zip(numbers).enumerate() {
        let parts: &[(&str, jlong)] = match (operation, place) {
            (COMPACTION, 1) => &[("BaseInputLevel", number >> 32), ("OutputLevel", number & 0xffff_ffff)],
            (COMPACTION, 2) => &[
                ("IsManual", number >> 1 & 1),
                ("IsDeletion", number >> 2 & 1),
                ("IsTrivialMove", number >> 3 & 1),
            ],
            _ => &[(name, *number)],
        };
        named.extend(parts.iter().map(|(name, number)| ((*name).to_string(), *number)));
    }
    named
}

/// A time as RocksDB writes it for people.
pub(crate) fn micros(micros: jlong) -> String {
    let seconds = |part: jlong| part as f64 / 1e6;
    match micros {
        0 => String::new(),
        i64::MIN..0 | 1..10_000 => format!("{micros} us"),
        10_000..10_000_000 => format!("{:.3} ms", micros as f64 / 1e3),
        10_000_000..60_000_000 => format!("{:.3} sec", seconds(micros)),
        60_000_000..3_600_000_000 => {
            format!("{:02}:{:05.3} M:S", micros / 60_000_000, seconds(micros % 60_000_000))
        }
        _ => format!(
            "{:02}:{:02}:{:05.3} H:M:S",
            micros / 3_600_000_000,
            micros / 60_000_000 % 60,
            seconds(micros % 60_000_000)
        ),
    }
}

/// The threads of the pools that RocksDB has.
pub(crate) fn list(env: Env, own: jlong) -> Answer<jobject> {
    let threads = object::<outcrop_capi::rocksdb_env_t>(own).0.scheduler.thread_list();
    let status = |thread: &outcrop::ThreadStatus| {
        let (pool, operation) = match thread.lane {
            Lane::Flush => (0, FLUSH),
            Lane::Compaction => (1, COMPACTION),
            _ => return None,
        };
        Some((thread.id, pool, thread.busy_micros.map_or((0, 0), |busy| (operation, busy))))
    };
    let made: Answer<Vec<jobject>> = threads
        .iter()
        .filter_map(status)
        .map(|(id, pool, (operation, busy))| {
            let arguments = [
                jvalue { j: id as jlong },
                jvalue { b: pool },
                jvalue { l: env.new_text("")? },
                jvalue { l: env.new_text("")? },
                jvalue { b: operation },
                jvalue { j: busy as jlong },
                jvalue { b: 0 },
                jvalue { l: vec![0 as jlong; PROPERTIES].give(env)? },
                jvalue { b: 0 },
            ];
            let signature = "(JBLjava/lang/String;Ljava/lang/String;BJB[JB)V";
            env.new_object("org/rocksdb/ThreadStatus", signature, &arguments)
        })
        .collect();
    env.new_array("org/rocksdb/ThreadStatus", made?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_times_are_rocksdbs() {
        assert_eq!(
            (operation(1), stage(2), state(1)),
            ("Compaction".into(), "FlushJob::WriteLevel0Table".into(), "Mutex Wait".into())
        );
        assert_eq!(
            (thread(3), thread(4), operation(99)),
            ("Bottom Pri".into(), "Unknown".into(), String::new())
        );
        assert_eq!((property(FLUSH, 2), property(FLUSH, 3)), ("BytesWritten".into(), String::new()));
        let times = [0, 7, 12_345, 12_345_678, 61_500_000, 3_661_500_000].map(micros);
        assert_eq!(times, ["", "7 us", "12.345 ms", "12.346 sec", "01:1.500 M:S", "01:01:1.500 H:M:S"]);
        let numbers = [5, 1 << 32 | 6, 0b1010, 30, 20, 10];
        let split: Vec<_> = split(COMPACTION, &numbers).into_iter().map(|(_, number)| number).collect();
        assert_eq!(split, [5, 1, 6, 1, 0, 1, 30, 20, 10]);
    }
}
