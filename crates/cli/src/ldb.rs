//! `outcrop ldb`: RocksDB's verbs and flags for looking into a database and changing it.
//!
//! Verbs that only read open the database read-only: nothing is written and no lock is taken, so they work beside a
//! process that has it open, and on what is left of a damaged one. Those that write open it as any program does.
//! All do so under the settings of its newest OPTIONS file, changed by flags.
//! The output is that of RocksDB's tool, where scripts read it; a verb or flag that is not there is refused by name.
//! Source: RocksDB 11.8.1 `tools/ldb_cmd.cc`.

mod admin;
mod blobs;
mod copies;
mod dump;
mod files;
mod open;
mod query;
mod rows;
mod salvage;
mod sst;
mod text;
mod verbs;
mod wal;

use crate::checkcompat::{self, Version};
use outcrop::Error;
use std::path::PathBuf;
use std::process::ExitCode;
pub use text::to_hex;
pub use verbs::advice_for;

/// Flags and verb of `ldb`.
#[derive(clap::Args)]
#[command(rename_all = "snake_case", args_override_self = true, after_help = verbs::listed())]
pub struct LdbArguments {
    /// Directory of the database.
    #[arg(long)]
    db: Option<PathBuf>,
    /// Keys and values are hexadecimal, with 0x in front.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    hex: Option<bool>,
    /// Keys are hexadecimal.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    key_hex: Option<bool>,
    /// Values are hexadecimal.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    value_hex: Option<bool>,
    /// Column family.
    #[arg(long, default_value = "default")]
    column_family: String,
    /// Create the database if it does not exist.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    create_if_missing: Option<bool>,
    /// First key.
    #[arg(long)]
    from: Option<String>,
    /// Key before which it ends; for salvage the directory of the new database.
    #[arg(long)]
    to: Option<String>,
    /// Rows at most.
    #[arg(long)]
    max_keys: Option<u64>,
    /// A file to look into: a MANIFEST; for dump a table or a WAL, too.
    #[arg(long)]
    path: Option<PathBuf>,
    /// Say more.
    #[arg(long)]
    verbose: bool,
    /// Versions of RocksDB for checkcompat, such as 6.29,7.10.2.
    #[arg(long, value_delimiter = ',')]
    with: Vec<Version>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dump: dump::DumpArguments,
    #[command(flatten)]
    wal: wal::WalArguments,
    #[command(flatten)]
    ingest: sst::IngestArguments,
    #[command(flatten)]
    copies: copies::CopyArguments,
    #[command(flatten)]
    options: open::OptionArguments,
    /// A command, with its parameters.
    #[arg(required = true, num_args = 1..)]
    command: Vec<String>,
}

/// Runs the verb. Checkcompat ends with 1 if a version refuses or misreads something.
///
/// # Errors
/// One sentence.
pub fn run(arguments: &LdbArguments) -> Result<ExitCode, String> {
    let words: Vec<&str> = arguments.command.iter().map(String::as_str).collect();
    let verb = words.first().copied().unwrap_or_default();
    verbs::check(verb, &verbs::given())?;
    if words == ["checkcompat"] {
        return arguments.check_compatibility();
    }
    let outcome = arguments
        .run_rows(&words)
        .or_else(|| arguments.run_admin(&words))
        .or_else(|| arguments.run_files(&words))
        .ok_or_else(|| verbs::usage(verb))?;
    outcome.map(|()| ExitCode::SUCCESS).map_err(|error| format!("Failed: {error}"))
}

impl LdbArguments {
    /// Verbs about keys.
    fn run_rows(&self, words: &[&str]) -> Option<Result<(), Error>> {
        Some(match words {
            ["put", key, value] => self.put(key, value),
            ["put_entity", key, columns @ ..] if !columns.is_empty() => self.put_entity(key, columns),
            ["get", key] => self.get(key),
            ["get_entity", key] => self.get_entity(key),
            ["multi_get", keys @ ..] if !keys.is_empty() => self.multi_get(keys),
            ["multi_get_entity", keys @ ..] if !keys.is_empty() => self.multi_get_entity(keys),
            ["batchput", pairs @ ..] if !pairs.is_empty() && pairs.len() % 2 == 0 => self.batch_put(pairs),
            ["scan"] => self.scan(),
            ["delete", key] => self.delete(key),
            ["singledelete", key] => self.single_delete(key),
            ["deleterange", begin, end] => self.delete_range(begin, end),
            ["query"] => self.query(),
            ["dump"] => self.dump(),
            ["idump"] => self.idump(),
            ["load"] => self.load(),
            _ => return None,
        })
    }

    /// Verbs about a database as a whole.
    fn run_admin(&self, words: &[&str]) -> Option<Result<(), Error>> {
        Some(match words {
            ["approxsize"] => self.approximate_size(),
            ["checkconsistency"] => self.check_consistency(),
            ["compact"] => self.compact(),
            ["list_column_families"] => self.list_column_families(),
            ["create_column_family", name] => self.create_column_family(name),
            ["drop_column_family", name] => self.drop_column_family(name),
            ["get_property", name] => self.get_property(name),
            ["metrics"] => self.metrics(),
            ["repair"] => self.repair(),
            ["salvage"] => self.salvage(),
            ["backup"] => self.backup(),
            ["restore"] => self.restore(),
            ["list_backups"] => self.list_backups(),
            ["verify_backup"] => self.verify_backup(),
            ["purge_backups", keep] => self.purge_backups(keep),
            ["checkpoint"] => self.checkpoint(),
            _ => return None,
        })
    }

    /// Verbs about files.
    fn run_files(&self, words: &[&str]) -> Option<Result<(), Error>> {
        Some(match words {
            ["manifest_dump"] => self.manifest_dump(),
            ["dump_wal"] => self.dump_wal(),
            ["dump_live_files"] => self.dump_live_files(),
            ["list_live_files_metadata"] => self.list_live_files_metadata(),
            ["list_file_range_deletes"] => self.list_file_range_deletes(),
            ["file_checksum_dump"] => self.file_checksum_dump(),
            ["write_extern_sst", path] => self.write_extern_sst(path),
            ["ingest_extern_sst", path] => self.ingest_extern_sst(path),
            ["unsafe_remove_sst_file", number] => self.unsafe_remove_sst_file(number),
            _ => return None,
        })
    }

    fn check_compatibility(&self) -> Result<ExitCode, String> {
        if self.with.is_empty() {
            return Err("ldb: checkcompat needs --with=VERSION, such as --with=6.29".to_string());
        }
        let failed = |error: Error| format!("Failed: {error}");
        let report = checkcompat::check(self.dir().map_err(failed)?, &self.with).map_err(failed)?;
        if self.json {
            println!("{}", report.json());
        } else {
            print!("{report}");
        }
        Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
