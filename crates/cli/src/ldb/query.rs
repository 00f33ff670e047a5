//! `outcrop ldb query`: get, put, delete and count, line by line.

use super::LdbArguments;
use super::text::{DELIMITER, line};
use outcrop::{ColumnFamilyHandle, Db, Error, ReadOptions};
use std::io::BufRead;

/// The text that `help` prints. Source: RocksDB `tools/ldb_cmd.cc`, `DBQuerierCommand::DoCommand`; there is no timestamp here.
const HELP: &str = "get <key>\nput <key> <value>\ndelete <key>\ncount [--from=<start_key>] [--to=<end_key>]";

impl LdbArguments {
    pub(super) fn query(&self) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        for text in std::io::stdin().lock().lines() {
            let text = text.map_err(|error| Error::io("standard input", error))?;
            let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
            self.answer(&db, &cf, &words, &text)?;
        }
        drop(cf);
        db.close()
    }

    fn answer(&self, db: &Db, cf: &ColumnFamilyHandle, words: &[&str], text: &str) -> Result<(), Error> {
        let failed = |result: Result<(), Error>| match result {
            Ok(()) => " succeeded".to_string(),
            Err(error) => format!(" failed: {error}"),
        };
        match words {
            ["help"] => println!("{HELP}"),
            ["get", key] => {
                let key = self.key(key)?;
                match db.get_cf(cf, &key)? {
                    Some(value) => {
                        let value = self.value_text(&value);
                        line(&[self.key_text(&key), DELIMITER.as_bytes().to_vec(), value].concat());
                    }
                    None => line(
                        &[b"get ".to_vec(), self.key_text(&key), b" status: NotFound: ".to_vec()].concat(),
                    ),
                }
            }
            ["put", key, value] => {
                let (key, value) = (self.key(key)?, self.value(value)?);
                let end = failed(db.put_cf(cf, &key, &value)).into_bytes();
                let (key, value) = (self.key_text(&key), self.value_text(&value));
                line(&[b"put ".to_vec(), key, b" => ".to_vec(), value, end].concat());
            }
            ["put", ..] => println!("put gets invalid arguments"),
            ["delete", key] => {
                let key = self.key(key)?;
                let end = failed(db.delete_cf(cf, &key)).into_bytes();
                line(&[b"delete ".to_vec(), self.key_text(&key), end].concat());
            }
            ["delete", ..] => println!("delete gets invalid arguments"),
            ["count", bounds @ ..] => match self.count_bounds(bounds)? {
                Some(options) => println!("{}", self.count(db, cf, &options)?),
                None => println!("count gets invalid arguments"),
            },
            [] => println!("Bad command"),
            _ => println!("Unknown command {text}"),
        }
        Ok(())
    }

    fn count_bounds(&self, words: &[&str]) -> Result<Option<ReadOptions>, Error> {
        let mut options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        for word in words {
            if let Some(from) = word.strip_prefix("--from=") {
                options.iterate_lower_bound = Some(self.key(from)?);
            } else if let Some(to) = word.strip_prefix("--to=") {
                options.iterate_upper_bound = Some(self.key(to)?);
            } else {
                return Ok(None);
            }
        }
        Ok(Some(options))
    }

    fn count(&self, db: &Db, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Result<u64, Error> {
        let mut iter = db.cursor_cf_with(cf, options)?;
        let mut rows = 0;
        iter.seek_to_first();
        while iter.valid() {
            rows += 1;
            iter.next();
        }
        iter.status().map(|()| rows)
    }
}
