//! Targets of the log format: the WAL, and the MANIFEST with all that is built from it.

use crate::bytes_file::{PATH, file};
use outcrop_base::{Comparator, ErrorKind};
use outcrop_env::memory::MemoryFs;
use outcrop_env::{FileSystem, OpenRead, OpenWrite};
use outcrop_manifest::recover;
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, LogWriter, ReadOutcome};
use std::path::Path;
use std::sync::Arc;

const MODES: [WalRecoveryMode; 4] = [
    WalRecoveryMode::AbsoluteConsistency,
    WalRecoveryMode::TolerateCorruptedTailRecords,
    WalRecoveryMode::PointInTimeRecovery,
    WalRecoveryMode::SkipAnyCorruptedRecords,
];

/// Number of the log; recyclable fixtures carry theirs.
const LOG_NUMBERS: [u64; 2] = [10, 4];

/// Records of a log, and how many of them came before any damage.
struct Read {
    records: Vec<Vec<u8>>,
    intact: usize,
}

/// A log under every recovery mode. Records that the strictest mode reads before the first damage, all other
/// modes read too.
pub fn wal(input: &[u8]) {
    for number in LOG_NUMBERS {
        let strict = read(input, number, MODES[0]);
        for mode in &MODES[1..] {
            let other = read(input, number, *mode);
            assert!(other.records.len() >= strict.intact, "{mode:?} reads less than what is intact");
            assert_eq!(other.records[..strict.intact], strict.records[..strict.intact], "{mode:?}");
        }
        write_and_read(&strict.records);
    }
}

fn read(input: &[u8], number: u64, mode: WalRecoveryMode) -> Read {
    let mut reader = LogReader::new(file(input), number, mode);
    let mut found = Read { records: Vec::new(), intact: 0 };
    let (mut damaged, mut last) = (false, None);
    // Each outcome but the last takes at least a header, or the rest of a block.
    for _ in 0..=input.len() + 1 {
        match reader.next().expect("memory has no IO errors") {
            ReadOutcome::End => return found,
            ReadOutcome::Damaged(damage) => {
                damaged = true;
                assert!(damage.offset <= input.len() as u64);
                assert!(damage.error.to_string().contains(PATH), "{}", damage.error);
            }
            ReadOutcome::Record(record, offset) => {
                assert!(last.is_none_or(|last| last < offset), "offsets ascend");
                last = Some(offset);
                found.records.push(record.to_vec());
                found.intact += usize::from(!damaged);
            }
        }
    }
    panic!("the log does not end");
}

fn write_and_read(records: &[Vec<u8>]) {
    let fs = MemoryFs::new();
    let path = Path::new("/log");
    fs.create_dir_all(Path::new("/")).expect("in memory");
    let mut writer = LogWriter::new(fs.create(path, OpenWrite::default()).expect("in memory"), 7, true);
    for record in records {
        writer.append(record).expect("in memory");
    }
    writer.close().expect("in memory");
    let file = fs.open_read(path, OpenRead::default()).expect("just written");
    let mut reader = LogReader::new(file, 7, WalRecoveryMode::AbsoluteConsistency);
    for record in records {
        match reader.next().expect("in memory") {
            ReadOutcome::Record(read, _) => assert_eq!(read, record),
            other => panic!("{other:?} in a log just written"),
        }
    }
    assert!(matches!(reader.next().expect("in memory"), ReadOutcome::End));
}

/// A MANIFEST, with and without the rules of the tree being checked.
pub fn manifest(input: &[u8]) {
    let fs = Arc::new(MemoryFs::new());
    let dir = Path::new("/fuzzed");
    fs.create_dir_all(dir).expect("in memory");
    for (name, contents) in [("CURRENT", &b"MANIFEST-000005\n"[..]), ("MANIFEST-000005", input)] {
        let mut file = fs.create(&dir.join(name), OpenWrite::default()).expect("in memory");
        file.append(contents).expect("in memory");
        file.close().expect("in memory");
    }
    for check in [true, false] {
        match recover(&*fs, dir, &|_| Some(Comparator::Bytewise), &|_| 7, check) {
            Err(error) => {
                // The given settings do not fit (another order, too few levels): no fault of the file, which is not
                // named.
                let names_the_file = error.to_string().contains("MANIFEST-000005");
                assert!(names_the_file || error.kind() == ErrorKind::InvalidArgument || !check, "{error}");
            }
            Ok(recovered) => {
                for cf in &recovered.column_families {
                    assert!(cf.id <= recovered.max_column_family);
                    assert!(cf.version.files().all(|(_, file)| file.epoch != 0), "every table has an epoch");
                }
            }
        }
    }
}
