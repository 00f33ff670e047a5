//! `outcrop sst_dump`: RocksDB's flags for looking into table files.

use crate::inspect::open_table;
use crate::ldb::to_hex;
use outcrop_base::{Error, ParsedKey, SeqNum};
use outcrop_env::Env;
use outcrop_table::{Loading, TableIterOptions};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Flags of `sst_dump`.
#[derive(clap::Args)]
#[command(rename_all = "snake_case")]
pub struct SstDumpArguments {
    /// A table, or a directory of tables.
    #[arg(long)]
    file: PathBuf,
    /// The command.
    #[arg(long, value_enum, default_value = "scan")]
    command: Command,
    /// Print the properties of each table.
    #[arg(long)]
    show_properties: bool,
    /// Keys and values in hexadecimal.
    #[arg(long)]
    output_hex: bool,
    /// Rows of scan at most.
    #[arg(long)]
    read_num: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Command {
    /// Print every entry.
    Scan,
    /// Read every entry, verifying checksums.
    Check,
    /// As check.
    Verify,
    /// Write properties and entries to FILE_dump.txt.
    Raw,
}

/// Runs the command on every table named.
///
/// # Errors
/// One sentence naming the first table that failed; the others were still looked at.
pub fn run(arguments: &SstDumpArguments) -> Result<(), String> {
    let tables = tables_of(&arguments.file)?;
    let mut failed: Option<String> = None;
    for path in &tables {
        println!("Process {}", path.display());
        if let Err(error) = dump(arguments, path) {
            println!("{error}");
            failed.get_or_insert_with(|| error.to_string());
        }
    }
    failed.map_or(Ok(()), Err)
}

fn tables_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let entries = std::fs::read_dir(path).map_err(failed)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut tables: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "sst")).collect();
    tables.sort();
    if tables.is_empty() { Err(format!("{}: no table files", path.display())) } else { Ok(tables) }
}

fn dump(arguments: &SstDumpArguments, path: &Path) -> Result<(), Error> {
    let env = Env::posix();
    let table = open_table(&env, path, SeqNum::MAX)?;
    let mut text = String::new();
    if arguments.show_properties || arguments.command == Command::Raw {
        let _ = writeln!(text, "Table Properties:\n{:#?}", table.properties());
    }
    let print_rows = matches!(arguments.command, Command::Scan | Command::Raw);
    let mut iter = table.iter(TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: 1 << 20,
        ..TableIterOptions::default()
    });
    let mut rows = 0;
    iter.seek_to_first();
    while iter.valid() && arguments.read_num.is_none_or(|most| rows < most) {
        let key = ParsedKey::parse(iter.key())?;
        if print_rows {
            let show = |bytes: &[u8]| {
                if arguments.output_hex { to_hex(bytes) } else { String::from_utf8_lossy(bytes).into_owned() }
            };
            let (name, value) = (show(key.user_key), show(iter.value()));
            let _ = writeln!(text, "'{name}' seq:{}, type:{} => {value}", key.seq, key.value_type as u8);
            if arguments.command == Command::Scan && text.len() > 1 << 16 {
                print!("{text}");
                text.clear();
            }
        }
        rows += 1;
        iter.next();
    }
    iter.status()?;
    if arguments.command == Command::Raw {
        let target = path.with_extension("").display().to_string() + "_dump.txt";
        std::fs::write(&target, text).map_err(|error| Error::io(target.clone(), error))?;
        println!("raw dump written to file {target}");
    } else {
        print!("{text}");
        println!("{rows} entries read, no error");
    }
    Ok(())
}
