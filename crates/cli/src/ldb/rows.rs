//! `outcrop ldb` verbs that read and write single keys.

use super::LdbArguments;
use super::text::{DELIMITER, line};
use outcrop::{Error, ReadOptions, WriteBatch};

impl LdbArguments {
    pub(super) fn put(&self, key: &str, value: &str) -> Result<(), Error> {
        let (key, value) = (self.key(key)?, self.value(value)?);
        let (db, cf) = self.open()?;
        db.put_cf(&cf, key, value)?;
        println!("OK");
        drop(cf);
        db.close()
    }

    /// Columns are `name:value`; the one without a name is `:value`.
    pub(super) fn put_entity(&self, key: &str, columns: &[&str]) -> Result<(), Error> {
        let parse = |text: &&str| {
            let wrong = || {
                Error::invalid_argument(format!(
                    "wide column format needs <column_name>:<column_value>: {text}"
                ))
            };
            let (name, value) = text.split_once(':').ok_or_else(wrong)?;
            let part = |part: &str| if part.is_empty() { Ok(Vec::new()) } else { self.value(part) };
            Ok((part(name)?, part(value)?))
        };
        let columns: Vec<(Vec<u8>, Vec<u8>)> = columns.iter().map(parse).collect::<Result<_, Error>>()?;
        let (db, cf) = self.open()?;
        db.put_entity_cf(&cf, self.key(key)?, &columns)?;
        println!("OK");
        drop(cf);
        db.close()
    }

    pub(super) fn get(&self, key: &str) -> Result<(), Error> {
        let key = self.key(key)?;
        let (db, cf) = self.open_to_read()?;
        match db.get_cf(&cf, key)? {
            Some(value) => line(&self.value_text(&value)),
            None => println!("Key not found"),
        }
        Ok(())
    }

    pub(super) fn get_entity(&self, key: &str) -> Result<(), Error> {
        let key = self.key(key)?;
        let (db, cf) = self.open_to_read()?;
        let columns = db.get_entity_cf(&cf, key)?.ok_or_else(|| Error::not_found(""))?;
        line(&self.columns_text(columns.iter()));
        Ok(())
    }

    pub(super) fn multi_get(&self, keys: &[&str]) -> Result<(), Error> {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| self.key(key)).collect::<Result<_, Error>>()?;
        let (db, cf) = self.open_to_read()?;
        for (key, value) in keys.iter().zip(db.multi_get_cf(&cf, &keys)) {
            match value? {
                Some(value) => {
                    line(
                        &[self.key_text(key), DELIMITER.as_bytes().to_vec(), self.value_text(&value)]
                            .concat(),
                    );
                }
                None => line(&[b"Key not found: ".to_vec(), self.key_text(key)].concat()),
            }
        }
        Ok(())
    }

    pub(super) fn multi_get_entity(&self, keys: &[&str]) -> Result<(), Error> {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| self.key(key)).collect::<Result<_, Error>>()?;
        let (db, cf) = self.open_to_read()?;
        for key in &keys {
            match db.get_entity_cf(&cf, key)? {
                Some(columns) => {
                    let columns = self.columns_text(columns.iter());
                    line(&[self.key_text(key), DELIMITER.as_bytes().to_vec(), columns].concat());
                }
                None => line(&[b"Key not found: ".to_vec(), self.key_text(key)].concat()),
            }
        }
        Ok(())
    }

    pub(super) fn batch_put(&self, pairs: &[&str]) -> Result<(), Error> {
        let mut rows = Vec::new();
        for pair in pairs.chunks_exact(2) {
            rows.push((self.key(pair[0])?, self.value(pair[1])?));
        }
        let (db, cf) = self.open()?;
        let mut batch = WriteBatch::new();
        rows.iter().for_each(|(key, value)| batch.put_cf(&cf, key, value));
        db.write(&mut batch)?;
        println!("OK");
        drop(cf);
        db.close()
    }

    pub(super) fn delete(&self, key: &str) -> Result<(), Error> {
        let key = self.key(key)?;
        let (db, cf) = self.open()?;
        db.delete_cf(&cf, key)?;
        println!("OK");
        drop(cf);
        db.close()
    }

    pub(super) fn single_delete(&self, key: &str) -> Result<(), Error> {
        let key = self.key(key)?;
        let (db, cf) = self.open()?;
        db.single_delete_cf(&cf, key)?;
        println!("OK");
        drop(cf);
        db.close()
    }

    pub(super) fn delete_range(&self, begin: &str, end: &str) -> Result<(), Error> {
        let (begin, end) = (self.key(begin)?, self.key(end)?);
        let (db, cf) = self.open()?;
        db.delete_range_cf(&cf, begin, end)?;
        println!("OK");
        drop(cf);
        db.close()
    }

    /// Reading between `--from` and `--to`.
    pub(super) fn bounds(&self) -> Result<ReadOptions, Error> {
        let bound = |text: &Option<String>| text.as_deref().map(|text| self.key(text)).transpose();
        Ok(ReadOptions {
            iterate_lower_bound: bound(&self.from)?,
            iterate_upper_bound: bound(&self.to)?,
            fill_cache: false,
            ..ReadOptions::default()
        })
    }

    pub(super) fn scan(&self) -> Result<(), Error> {
        let (db, cf) = self.open_to_read()?;
        let mut iter = db.cursor_cf_with(&cf, &self.bounds()?)?;
        let mut rows = 0;
        iter.seek_to_first();
        while iter.valid() && self.max_keys.is_none_or(|most| rows < most) {
            line(&match self.dump.no_value {
                true => self.key_text(iter.key()),
                false => self.row_text(iter.key(), iter.value(), &iter.columns()?),
            });
            rows += 1;
            iter.next();
        }
        iter.status()
    }
}
