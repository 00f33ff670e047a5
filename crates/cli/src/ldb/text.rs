//! Keys and values as text and in hexadecimal.

use super::LdbArguments;
use outcrop::{Error, WideColumns};

/// Between a key and its value.
pub const DELIMITER: &str = " ==> ";

/// Bytes as `0x...`, in capitals as RocksDB's tool prints them.
pub fn to_hex(bytes: &[u8]) -> String {
    format!("0x{}", digits(bytes))
}

/// The same without `0x`.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Bytes of `0x...`.
///
/// # Errors
/// InvalidArgument if it is something else.
pub fn from_hex(text: &str) -> Result<Vec<u8>, Error> {
    let bad = || Error::invalid_argument(format!("Invalid hex input {text}.  Must start with 0x"));
    let digits = text.strip_prefix("0x").ok_or_else(bad)?;
    if !digits.is_ascii() || digits.len() % 2 != 0 {
        return Err(bad());
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad());
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// A key and its value.
type KeyValue = (Vec<u8>, Vec<u8>);

impl LdbArguments {
    /// Keys are hexadecimal.
    pub(super) fn hex_keys(&self) -> bool {
        self.hex.unwrap_or(false) || self.key_hex.unwrap_or(false)
    }

    /// Values are hexadecimal.
    pub(super) fn hex_values(&self) -> bool {
        self.hex.unwrap_or(false) || self.value_hex.unwrap_or(false)
    }

    pub(super) fn key(&self, text: &str) -> Result<Vec<u8>, Error> {
        if self.hex_keys() { from_hex(text) } else { Ok(text.as_bytes().to_vec()) }
    }

    pub(super) fn value(&self, text: &str) -> Result<Vec<u8>, Error> {
        if self.hex_values() { from_hex(text) } else { Ok(text.as_bytes().to_vec()) }
    }

    pub(super) fn key_text(&self, key: &[u8]) -> Vec<u8> {
        if self.hex_keys() { to_hex(key).into_bytes() } else { key.to_vec() }
    }

    pub(super) fn value_text(&self, value: &[u8]) -> Vec<u8> {
        if self.hex_values() { to_hex(value).into_bytes() } else { value.to_vec() }
    }

    /// `name:value` for each column, the one without a name with an empty one.
    ///
    /// Source: RocksDB `db/wide/wide_columns_helper.cc`, `DumpWideColumns`.
    pub(super) fn columns_text<'c>(&self, columns: impl Iterator<Item = (&'c [u8], &'c [u8])>) -> Vec<u8> {
        let hex = self.hex_values();
        let part = |bytes: &[u8]| match hex && !bytes.is_empty() {
            true => to_hex(bytes).into_bytes(),
            false => bytes.to_vec(),
        };
        let all: Vec<Vec<u8>> =
            columns.map(|(name, value)| [part(name), b":".to_vec(), part(value)].concat()).collect();
        all.join(&b' ')
    }

    /// A row: its value, or its columns if it has others than the one without a name.
    pub(super) fn row_text(&self, key: &[u8], value: &[u8], columns: &WideColumns) -> Vec<u8> {
        let plain =
            columns.is_empty() || (columns.len() == 1 && columns.iter().all(|(name, _)| name.is_empty()));
        let value = if plain { self.value_text(value) } else { self.columns_text(columns.iter()) };
        [self.key_text(key), DELIMITER.as_bytes().to_vec(), value].concat()
    }

    /// Key and value of a line of `dump`; `None` if it is none.
    pub(super) fn parse_row(&self, line: &[u8]) -> Result<Option<KeyValue>, Error> {
        let delimiter = DELIMITER.as_bytes();
        let Some(at) = line.windows(delimiter.len()).position(|window| window == delimiter) else {
            return Ok(None);
        };
        let (key, value) = (&line[..at], &line[at + delimiter.len()..]);
        let bytes = |bytes: &[u8], hex: bool| match hex {
            true => from_hex(&String::from_utf8_lossy(bytes)),
            false => Ok(bytes.to_vec()),
        };
        Ok(Some((bytes(key, self.hex_keys())?, bytes(value, self.hex_values())?)))
    }
}

/// Prints a line of bytes that may be no text.
pub fn line(bytes: &[u8]) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // A reader that is gone ends the program before; other errors have nowhere to be told.
    let _ = out.write_all(bytes).and_then(|()| out.write_all(b"\n"));
}
