//! Runs the drawings of `testdata/recovery`: WALs as they were found, and the batches recovered from them.
//!
//! ```text
//! recover mode=kPointInTimeRecovery      [tables=7: the MANIFEST's last sequence number]
//! 3 recyclable: a@1 b@2 !c@3 ~d@4        records of one put with its number; ! has a wrong byte, ~ is cut in its middle
//! 4: @6                                  a batch of nothing
//! 5: e@4 zeros                           zeros after the last record, as a file has that was made longer in advance
//! ```

use super::*;
use crate::testing::cases::{self, Case};
use crate::testing::parts::{DIR, Parts, plain_options};
use outcrop_base::CfId;
use outcrop_env::OpenWrite;
use outcrop_manifest::ManifestWriter;
use outcrop_record::LogWriter;

/// Bytes of zeros after a log.
const ZEROS: usize = 1000;

/// A batch with one put, or none of an empty key, as it is in a WAL.
fn batch(key: &str, seq: u64) -> Vec<u8> {
    let mut record = seq.to_le_bytes().to_vec();
    record.extend(u32::from(!key.is_empty()).to_le_bytes());
    if key.is_empty() {
        return record;
    }
    record.extend([1, key.len() as u8]);
    record.extend(key.as_bytes());
    record.extend([5]);
    record.extend(b"value");
    record
}

/// Writes the WAL that a line draws.
fn draw(parts: &Parts, line: &str) {
    let (head, words) = line.split_once(':').expect("number: records");
    let (number, kind) = head.split_once(' ').unwrap_or((head, ""));
    let number = FileNumber(number.parse().expect("a WAL's number"));
    let path = file_name::wal(Path::new(DIR), number);
    let file = parts.ctx.env.fs.create(&path, OpenWrite::default()).unwrap();
    let mut log = LogWriter::new(file, number.0, kind == "recyclable");
    let (mut wrong, mut cut, mut zeros) = (Vec::new(), None, false);
    for word in words.split_whitespace() {
        if word == "zeros" {
            zeros = true;
            continue;
        }
        let (key, seq) = word.trim_start_matches(['!', '~']).split_once('@').expect("key@seq");
        let end = log.append(&batch(key, seq.parse().expect("a number"))).unwrap().0 as usize;
        match word.as_bytes()[0] {
            b'!' => wrong.push(end - 2),
            b'~' => cut = Some(end - 4),
            _ => {}
        }
    }
    let end = log.len() as usize;
    log.close().unwrap();
    drop(log);
    let memory = parts.fs.memory();
    memory.truncate(&path, cut.unwrap_or(end));
    wrong.into_iter().for_each(|offset| memory.flip_byte(&path, offset, 1));
    if zeros {
        let mut bytes = parts.ctx.env.fs.read_all(&path).unwrap();
        bytes.resize(bytes.len() + ZEROS, 0);
        let mut file = parts.ctx.env.fs.create(&path, OpenWrite::default()).unwrap();
        file.append(&bytes).unwrap();
        file.close().unwrap();
    }
}

fn recovered(case: &Case<'_>) -> Result<String> {
    let parts = Parts::new();
    let (fs, dir) = (&parts.ctx.env.fs, Path::new(DIR));
    fs.remove_file(&file_name::wal(dir, FileNumber(2))).unwrap();
    let mut options = DbOptions::default();
    let mode = case.arguments.split_whitespace().find_map(|word| word.strip_prefix("mode="));
    outcrop_options::file::set_from_string(
        &mut options,
        &mut plain_options(),
        &format!("wal_recovery_mode={}", mode.unwrap_or("kPointInTimeRecovery")),
    )?;
    let edit = VersionEdit {
        last_sequence: Some(SeqNum(case.argument("tables", 0))),
        ..VersionEdit::for_column_family(CfId::DEFAULT)
    };
    let edits = [
        crate::manifest_file::snapshot_edits(
            &parts.ctx,
            &parts.versions.state.lock(),
            SeqNum::ZERO,
            FileNumber(2),
        ),
        vec![edit],
    ]
    .concat();
    drop(ManifestWriter::create(&**fs, dir, FileNumber(1), &edits)?);
    fs.replace(&file_name::current(dir), &dir.join("tmp"), b"MANIFEST-000001\n")?;
    case.body.iter().for_each(|line| draw(&parts, line));
    let descriptor = ColumnFamilyDescriptor::default_with(plain_options(), Default::default());
    let pool = Arc::new(MemTablePool::new(0));
    let how = RecoverOptions {
        families: Families::All,
        objects: &DbObjects::default(),
        statistics: None,
        open: &BTreeMap::new(),
    };
    let found = recover(dir, &options, &parts.ctx.env, &[descriptor], &pool, how)?;
    let mut rows = Vec::new();
    let mut iter = found.state.column_families[&CfId(0)].memtable.iter();
    iter.seek_to_first();
    while iter.valid() {
        let (key, trailer) = outcrop_base::keys::split(iter.key());
        rows.push(format!("{}@{}", String::from_utf8_lossy(key), trailer.seq().0));
        iter.next();
    }
    let rows = if rows.is_empty() { "nothing".into() } else { rows.join(" ") };
    Ok(format!("{rows}; last {}", found.last_seq.0))
}

fn answer(case: &Case<'_>) -> String {
    assert_eq!(case.command, "recover");
    recovered(case).unwrap_or_else(|error| format!("refused: {error}"))
}

#[test]
fn to_a_point_in_time() {
    cases::run("recovery/point_in_time", answer);
}

#[test]
fn in_other_modes() {
    cases::run("recovery/other_modes", answer);
}
