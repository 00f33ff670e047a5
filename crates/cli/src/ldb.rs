//! `outcrop ldb`: RocksDB's verbs and flags for looking into a database.
//!
//! Verbs that only read open the database read-only: nothing is written and no lock is taken, so they work beside a
//! process that has it open, and on what is left of a damaged one. `put`, `delete`, `backup` and `checkpoint` open it as any program does.
//! All do so under the settings of its newest OPTIONS file.

mod copies;
mod open;

use crate::checkcompat::{self, Version};
use outcrop::{Db, Env, Error, ReadOptions};
use outcrop_base::ErrorKind;
use outcrop_env::OpenRead;
use outcrop_manifest::VersionEdit;
use outcrop_manifest::file_name;
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags and verb of `ldb`.
#[derive(clap::Args)]
#[command(rename_all = "snake_case")]
pub struct LdbArguments {
    /// Directory of the database.
    #[arg(long)]
    db: PathBuf,
    /// Keys and values are hexadecimal, with 0x in front.
    #[arg(long)]
    hex: bool,
    /// Keys are hexadecimal.
    #[arg(long)]
    key_hex: bool,
    /// Values are hexadecimal.
    #[arg(long)]
    value_hex: bool,
    /// Column family.
    #[arg(long, default_value = "default")]
    column_family: String,
    /// Create the database if it does not exist.
    #[arg(long)]
    create_if_missing: bool,
    /// First key of scan and dump.
    #[arg(long)]
    from: Option<String>,
    /// Key before which scan and dump end.
    #[arg(long)]
    to: Option<String>,
    /// Rows of scan and dump at most.
    #[arg(long)]
    max_keys: Option<u64>,
    /// MANIFEST for manifest_dump; the current one if not given.
    #[arg(long)]
    path: Option<PathBuf>,
    /// Versions of RocksDB for checkcompat, such as 6.29,7.10.2.
    #[arg(long, value_delimiter = ',')]
    with: Vec<Version>,
    /// checkcompat prints JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    copies: copies::CopyArguments,
    #[command(flatten)]
    options: open::OptionArguments,
    /// put KEY VALUE, get KEY, delete KEY, scan, dump, get_property NAME, manifest_dump, list_column_families, checkconsistency, metrics (OpenMetrics text), checkcompat --with=VERSION, backup, restore, list_backups, verify_backup, purge_backups NUMBER, checkpoint; words that begin with - go after --.
    #[arg(required = true, num_args = 1..)]
    command: Vec<String>,
}

/// Runs the verb. Checkcompat ends with 1 if a version refuses or misreads something.
///
/// # Errors
/// One sentence.
pub fn run(arguments: &LdbArguments) -> Result<ExitCode, String> {
    let words: Vec<&str> = arguments.command.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["put", key, value] => arguments.put(key, value),
        ["get", key] => arguments.get(key),
        ["delete", key] => arguments.delete(key),
        ["scan"] => arguments.rows(false),
        ["dump"] => arguments.rows(true),
        ["manifest_dump"] => arguments.manifest_dump(),
        ["list_column_families"] => arguments.list_column_families(),
        ["checkconsistency"] => arguments.check_consistency(),
        ["metrics"] => arguments.metrics(),
        ["checkcompat"] => return arguments.check_compatibility(),
        ["get_property", name] => arguments.get_property(name),
        ["backup"] => arguments.backup(),
        ["restore"] => arguments.restore(),
        ["list_backups"] => arguments.list_backups(),
        ["verify_backup"] => arguments.verify_backup(),
        ["purge_backups", keep] => arguments.purge_backups(keep),
        ["checkpoint"] => arguments.checkpoint(),
        ["reduce_levels", ..] => {
            return Err("ldb: reduce_levels is not supported: open the database with fewer num_levels after a compact_range into them".to_string());
        }
        [verb, ..] => {
            return Err(format!(
                "ldb: {verb} is no verb, or its arguments are wrong; --help lists the verbs"
            ));
        }
        [] => return Err("ldb: no verb given".to_string()),
    };
    outcome.map(|()| ExitCode::SUCCESS).map_err(|error| format!("Failed: {error}"))
}

impl LdbArguments {
    /// Prints what can be said of the database without having been there when it was used.
    fn metrics(&self) -> Result<(), Error> {
        let (db, _) = self.open_to_read()?;
        print!("{}", db.metrics());
        Ok(())
    }

    fn key(&self, text: &str) -> Result<Vec<u8>, Error> {
        if self.hex || self.key_hex { from_hex(text) } else { Ok(text.as_bytes().to_vec()) }
    }

    fn show(&self, bytes: &[u8], hex: bool) -> String {
        if self.hex || hex { to_hex(bytes) } else { String::from_utf8_lossy(bytes).into_owned() }
    }

    fn put(&self, key: &str, value: &str) -> Result<(), Error> {
        let value = if self.hex || self.value_hex { from_hex(value)? } else { value.as_bytes().to_vec() };
        let (db, cf) = self.open()?;
        db.put_cf(&cf, &self.key(key)?, &value)?;
        println!("OK");
        db.close()
    }

    fn get(&self, key: &str) -> Result<(), Error> {
        let (db, cf) = self.open_to_read()?;
        match db.get_cf(&cf, &self.key(key)?)? {
            Some(value) => println!("{}", self.show(&value, self.value_hex)),
            None => return Err(Error::new(ErrorKind::NotFound, key)),
        }
        db.close()
    }

    /// A property, with its name before it: line by line where it is a map.
    /// Source: RocksDB `tools/ldb_cmd.cc`, `GetPropertyCommand::DoCommand`.
    fn get_property(&self, name: &str) -> Result<(), Error> {
        let (db, cf) = self.open_to_read()?;
        if let Some(map) = db.property_map_cf(&cf, name) {
            for (key, value) in map {
                println!("{name}.{key}: {value}");
            }
            return db.close();
        }
        let missing = || Error::new(ErrorKind::NotFound, format!("failed to get property: {name}"));
        let value = db.property_cf(&cf, name).ok_or_else(missing)?;
        println!("{name}: {value}");
        db.close()
    }

    fn delete(&self, key: &str) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        db.delete_cf(&cf, &self.key(key)?)?;
        println!("OK");
        db.close()
    }

    /// All rows between the bounds; `dump` also counts them.
    fn rows(&self, count: bool) -> Result<(), Error> {
        let (db, cf) = self.open_to_read()?;
        let bound = |text: &Option<String>| text.as_deref().map(|text| self.key(text)).transpose();
        let options = ReadOptions {
            iterate_lower_bound: bound(&self.from)?,
            iterate_upper_bound: bound(&self.to)?,
            fill_cache: false,
            ..ReadOptions::default()
        };
        let mut iter = db.cursor_cf_with(&cf, &options)?;
        let mut rows = 0;
        iter.seek_to_first();
        while iter.valid() && self.max_keys.is_none_or(|most| rows < most) {
            let (key, value) = (self.show(iter.key(), self.key_hex), self.show(iter.value(), self.value_hex));
            println!("{key} ==> {value}");
            rows += 1;
            iter.next();
        }
        iter.status()?;
        drop(iter);
        if count {
            println!("Keys in range: {rows}");
        }
        db.close()
    }

    fn list_column_families(&self) -> Result<(), Error> {
        let names = Db::list_column_families_in(&self.db, &Env::posix())?;
        println!("Column families in {}: {{{}}}", self.db.display(), names.join(", "));
        Ok(())
    }

    /// Every edit of the MANIFEST, then the tables it comes to.
    fn manifest_dump(&self) -> Result<(), Error> {
        let env = Env::posix();
        let path = match &self.path {
            Some(path) => path.clone(),
            None => current_manifest(&env, &self.db)?,
        };
        let file = env.fs.open_read(&path, OpenRead::default())?;
        let mut reader = LogReader::new(file, 0, WalRecoveryMode::TolerateCorruptedTailRecords);
        loop {
            match reader.next()? {
                ReadOutcome::Record(bytes, offset) => {
                    let edit = VersionEdit::decode(bytes)
                        .map_err(|error| error.within(format!("offset {offset}")))?;
                    println!("offset {offset}: {edit:?}");
                }
                ReadOutcome::Damaged(damage) => return Err(damage.error),
                ReadOutcome::End => break,
            }
        }
        let recovered = outcrop_manifest::recover(&*env.fs, &self.db, &|_| None, &|_| 64, false)?;
        for cf in &recovered.column_families {
            println!("--------------- Column family \"{}\"  (ID {}) --------------", cf.name, cf.id);
            println!("log number: {}", cf.log_number);
            print!("{}", cf.version);
        }
        println!(
            "next_file_number {} last_sequence {} max_column_family {} min_log_number_to_keep {}",
            recovered.next_file_number,
            recovered.last_sequence,
            recovered.max_column_family,
            recovered.min_log_number_to_keep
        );
        Ok(())
    }

    /// Opens the database and reads every row of every column family.
    fn check_consistency(&self) -> Result<(), Error> {
        let (db, _) = self.open_to_read()?;
        for cf in db.column_families() {
            let mut iter =
                db.cursor_cf_with(&cf, &ReadOptions { fill_cache: false, ..ReadOptions::default() })?;
            iter.seek_to_first();
            while iter.valid() {
                iter.next();
            }
            iter.status()?;
        }
        println!("OK");
        db.close()
    }

    fn check_compatibility(&self) -> Result<ExitCode, String> {
        if self.with.is_empty() {
            return Err("ldb: checkcompat needs --with=VERSION, such as --with=6.29".to_string());
        }
        let report = checkcompat::check(&self.db, &self.with).map_err(|error| format!("Failed: {error}"))?;
        if self.json {
            println!("{}", report.json());
        } else {
            print!("{report}");
        }
        Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn current_manifest(env: &Env, db: &Path) -> Result<PathBuf, Error> {
    let contents = env.fs.read_all(&file_name::current(db))?;
    Ok(db.join(String::from_utf8_lossy(&contents).trim_end()))
}

/// Bytes as `0x...`, in capitals as RocksDB's tool prints them.
pub fn to_hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("0x{digits}")
}

fn from_hex(text: &str) -> Result<Vec<u8>, Error> {
    let bad = || Error::invalid_argument(format!("{text} is not hexadecimal of the form 0x1A2B"));
    let digits = text.strip_prefix("0x").ok_or_else(bad)?;
    if !digits.is_ascii() || digits.len() % 2 != 0 {
        return Err(bad());
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_round_trips_and_rejects() {
        assert_eq!(to_hex(&from_hex("0x00ff1A").unwrap()), "0x00FF1A");
        assert!(["00", "0x1", "0xzz", ""].iter().all(|text| from_hex(text).is_err()));
    }
}
