//! `outcrop ldb`: RocksDB's verbs and flags for looking into a database.
//!
//! Opening replays the WAL and starts a new MANIFEST, as any opening does.

use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyHandle, Db, DbOptions, Env, Error, ReadOptions, WriteOptions,
};
use outcrop_base::{Comparator, ErrorKind};
use outcrop_env::OpenRead;
use outcrop_manifest::{VersionEdit, file_name};
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::path::{Path, PathBuf};

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
    /// put KEY VALUE, get KEY, delete KEY, scan, dump, manifest_dump, list_column_families, checkconsistency; words that begin with - go after --.
    #[arg(required = true, num_args = 1..)]
    command: Vec<String>,
}

/// Runs the verb.
///
/// # Errors
/// One sentence.
pub fn run(arguments: &LdbArguments) -> Result<(), String> {
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
        [verb, ..] => {
            return Err(format!(
                "ldb: {verb} is no verb, or its arguments are wrong; --help lists the verbs"
            ));
        }
        [] => return Err("ldb: no verb given".to_string()),
    };
    outcome.map_err(|error| format!("Failed: {error}"))
}

impl LdbArguments {
    fn open(&self) -> Result<(Db, ColumnFamilyHandle), Error> {
        let env = Env::posix();
        let names = match Db::list_column_families(&self.db, &env) {
            Ok(names) => names,
            Err(error) if error.is_missing_file() && self.create_if_missing => vec!["default".to_string()],
            Err(error) => return Err(error),
        };
        let options = DbOptions { create_if_missing: self.create_if_missing, ..DbOptions::default() };
        let families =
            names.into_iter().map(|name| ColumnFamilyDescriptor { name, ..Default::default() }).collect();
        let db = Db::open(&self.db, options, env, families)?;
        let cf = db.column_family(&self.column_family).ok_or_else(|| {
            Error::invalid_argument(format!("column family {} does not exist", self.column_family))
        })?;
        Ok((db, cf))
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
        db.put_cf(&cf, &WriteOptions::default(), &self.key(key)?, &value)?;
        println!("OK");
        db.close()
    }

    fn get(&self, key: &str) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        match db.get_cf(&cf, &ReadOptions::default(), &self.key(key)?)? {
            Some(value) => println!("{}", self.show(&value, self.value_hex)),
            None => return Err(Error::new(ErrorKind::NotFound, key)),
        }
        db.close()
    }

    fn delete(&self, key: &str) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        db.delete_cf(&cf, &WriteOptions::default(), &self.key(key)?)?;
        println!("OK");
        db.close()
    }

    /// All rows between the bounds; `dump` also counts them.
    fn rows(&self, count: bool) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        let bound = |text: &Option<String>| text.as_deref().map(|text| self.key(text)).transpose();
        let options = ReadOptions {
            iterate_lower_bound: bound(&self.from)?,
            iterate_upper_bound: bound(&self.to)?,
            fill_cache: false,
            ..ReadOptions::default()
        };
        let mut iter = db.iter_cf(&cf, &options)?;
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
        let names = Db::list_column_families(&self.db, &Env::posix())?;
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
        let recovered =
            outcrop_manifest::recover(&*env.fs, &self.db, &|_| Comparator::Bytewise, &|_| 64, false)?;
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
        let (db, _) = self.open()?;
        for cf in db.column_families() {
            let mut iter = db.iter_cf(&cf, &ReadOptions { fill_cache: false, ..ReadOptions::default() })?;
            iter.seek_to_first();
            while iter.valid() {
                iter.next();
            }
            iter.status()?;
        }
        println!("OK");
        db.close()
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
