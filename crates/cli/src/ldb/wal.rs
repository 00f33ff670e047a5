//! `outcrop ldb dump_wal`: batches of a WAL, one per line.
//!
//! ```text
//! Sequence,Count,ByteSize,Physical Offset,Key(s) : value
//! 1,1,29,0,PUT(0) : 0x6B : 0x76
//! ```

use super::LdbArguments;
use super::text::to_hex;
use outcrop::{Error, Op, Record, WalItem, wal_items};
use outcrop_base::wide_columns;
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::path::{Path, PathBuf};

/// Flags of dump_wal.
#[derive(clap::Args)]
#[command(rename_all = "snake_case")]
pub struct WalArguments {
    /// A WAL for dump_wal, or a directory of them.
    #[arg(long)]
    walfile: Option<PathBuf>,
    /// Say what the columns are.
    #[arg(long)]
    header: bool,
    /// Print values.
    #[arg(long)]
    print_value: bool,
    /// Print only batches that do not follow the one before.
    #[arg(long)]
    only_print_seqno_gaps: bool,
    /// Whether transactions are written when they are committed: true.
    #[arg(long)]
    write_committed: Option<bool>,
}

impl LdbArguments {
    pub(super) fn dump_wal(&self) -> Result<(), Error> {
        let missing = || Error::invalid_argument("Argument --walfile must be specified.");
        let path = self.wal.walfile.clone().ok_or_else(missing)?;
        if self.wal.write_committed == Some(false) {
            return Err(Error::not_supported("WALs of WRITE_PREPARED and WRITE_UNPREPARED transactions"));
        }
        if !path.is_dir() {
            if path.extension().is_none_or(|end| end != "log") {
                return Err(Error::invalid_argument(format!("{}: Invalid log file name", path.display())));
            }
            return self.dump_wals(&[path], (self.wal.header, self.wal.print_value));
        }
        let mut wals: Vec<PathBuf> =
            outcrop::Env::posix().fs.list(&path)?.iter().map(|name| path.join(name)).collect();
        wals.retain(|path| number(path).is_some());
        wals.sort();
        if wals.is_empty() {
            return Err(Error::invalid_argument(format!("{}: No valid wal logs found", path.display())));
        }
        for wal in wals {
            println!("Checking wal file: {}", wal.display());
            self.dump_wals(&[wal], (self.wal.header, self.wal.print_value))?;
        }
        Ok(())
    }

    /// Prints WALs, with the header and with values if asked.
    pub(super) fn dump_wals(&self, wals: &[PathBuf], (header, values): (bool, bool)) -> Result<(), Error> {
        let mut next = None;
        for path in wals {
            if header {
                println!(
                    "Sequence,Count,ByteSize,Physical Offset,Key(s){}",
                    if values { " : value " } else { "" }
                );
            }
            let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
            let file = outcrop::Env::posix().fs.open_read(path, read)?;
            let mode = WalRecoveryMode::SkipAnyCorruptedRecords;
            let mut reader = LogReader::new(file, number(path).unwrap_or(0), mode);
            loop {
                match reader.next()? {
                    ReadOutcome::End => break,
                    ReadOutcome::Damaged(damage) => {
                        eprintln!("Corruption detected in log file {}", damage.error)
                    }
                    ReadOutcome::Record(record, offset) => {
                        self.print_batch(record, offset, values, &mut next)?
                    }
                }
            }
        }
        Ok(())
    }

    fn print_batch(
        &self,
        record: &[u8],
        offset: u64,
        values: bool,
        next: &mut Option<u64>,
    ) -> Result<(), Error> {
        let short = || Error::corruption("log record too small");
        let first = record.first_chunk::<8>().ok_or_else(short)?;
        let count = record.get(8..).and_then(<[u8]>::first_chunk::<4>).ok_or_else(short)?;
        let (first, count) = (u64::from_le_bytes(*first), u32::from_le_bytes(*count));
        let follows = next.is_none_or(|next| next == first);
        *next = Some(first + u64::from(count));
        if self.wal.only_print_seqno_gaps && follows {
            return Ok(());
        }
        let text: Result<String, Error> = wal_items(record)
            .and_then(|items| items.map(|item| item.and_then(|item| item_text(item, values))).collect());
        let text = text.unwrap_or_else(|error| format!("error: {error}"));
        println!("{first},{count},{},{offset},{text}", record.len());
        Ok(())
    }
}

fn number(path: &Path) -> Option<u64> {
    match file_name::parse(path.file_name()?.to_str()?) {
        Some(FileKind::Wal(number)) => Some(number.0),
        _ => None,
    }
}

/// Source: RocksDB `tools/ldb_cmd.cc`, `InMemoryHandler`.
fn item_text(item: WalItem<'_>, values: bool) -> Result<String, Error> {
    let Record { cf, op } = match item {
        WalItem::Write(write) => write,
        WalItem::LogData(_) => return Ok(String::new()),
        WalItem::Noop => return Ok("NOOP ".into()),
        // Not of a batch that is written before its transaction is prepared: those are not read.
        WalItem::BeginPrepare => return Ok("BEGIN_PREPARE(false) ".into()),
        WalItem::EndPrepare(name) => return Ok(format!("END_PREPARE({}) ", to_hex(name))),
        WalItem::Commit(name) => return Ok(format!("COMMIT({}) ", to_hex(name))),
        WalItem::Rollback(name) => return Ok(format!("ROLLBACK({}) ", to_hex(name))),
        other => return Err(Error::not_supported(format!("{other:?}"))),
    };
    let with_value = |key: &[u8], value: String| match values {
        true => format!("{} : {value} ", to_hex(key)),
        false => format!("{} ", to_hex(key)),
    };
    Ok(match op {
        Op::Put { key, value } => format!("PUT({cf}) : {}", with_value(key, to_hex(value))),
        Op::Merge { key, operand } => format!("MERGE({cf}) : {}", with_value(key, to_hex(operand))),
        Op::Delete { key } => format!("DELETE({cf}) : {} ", to_hex(key)),
        Op::SingleDelete { key } => format!("SINGLE_DELETE({cf}) : {} ", to_hex(key)),
        Op::DeleteRange { begin, end } => format!("DELETE_RANGE({cf}) : {} {} ", to_hex(begin), to_hex(end)),
        Op::PutEntity { key, entity } => {
            let hex = |bytes: &[u8]| if bytes.is_empty() { String::new() } else { to_hex(bytes) };
            let columns: Vec<String> = wide_columns::decode(entity)?
                .iter()
                .map(|column| format!("{}:{}", hex(column.name), hex(column.value)))
                .collect();
            format!("PUT_ENTITY({cf}) : {}", with_value(key, columns.join(" ")))
        }
    })
}
