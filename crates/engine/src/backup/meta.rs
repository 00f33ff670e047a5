//! The meta file of a backup: its list of files, as text.
//!
//! ```text
//! schema_version 2.1                    only with schema 2
//! 1795352865                            when it was made, seconds since the epoch
//! 6                                     sequence number of the database
//! metadata 68656C6C6F0A                 the application's, in hexadecimal, if there is any
//! 2                                     files that follow, excluded ones not counted
//! shared_checksum/000009_sCU1H_1285.sst crc32 2274351274
//! private/2/CURRENT crc32 2659179228
//! shared_checksum/000011_sCU1H_99.sst ni::excluded true
//! ```
//! `crc32` is the CRC-32C of the whole file, not masked. With schema 2 a file may have further fields in pairs (`temp`, `size`), there
//! may be further fields before the number of files, and others after a line `// FOOTER`: unknown ones are passed over, those that
//! begin with `ni::` must not be.
//!
//! Nothing here is trusted: a name that is not below the directory's own subdirectories is damage.
//! Source: RocksDB `utilities/backup/backup_engine.cc`, `BackupMeta::LoadFromFile`, `BackupMeta::StoreToFile`.

use outcrop_base::{Error, Result};
use std::fmt::Write;

/// Directories of files that backups share.
pub const SHARED_DIRS: [&str; 2] = ["shared", "shared_checksum"];

/// The meta file of a backup, for tools that look into one without an engine.
///
/// ```
/// use outcrop::BackupMeta;
///
/// let text = b"1795352865\n6\n1\nprivate/2/CURRENT crc32 2659179228\n";
/// let meta = BackupMeta::parse(text, "meta/2")?;
/// assert_eq!((meta.sequence_number, meta.files.len()), (6, 1));
/// assert_eq!(meta.print(1), text);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupMeta {
    /// When it was made, seconds since the epoch.
    pub timestamp: i64,
    /// Sequence number of the last write in it.
    pub sequence_number: u64,
    /// Metadata that the application gave with it.
    pub app_metadata: Vec<u8>,
    /// Its files.
    pub files: Vec<MetaFile>,
    /// Files that the database had and that the application has elsewhere.
    pub excluded: Vec<String>,
}

/// A file that a meta file names.
///
/// ```
/// use outcrop::MetaFile;
///
/// let file = MetaFile { name: "shared_checksum/000009_sCU1H_1285.sst".to_string(), ..MetaFile::default() };
/// assert_eq!(file.database_name(), "000009.sst");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaFile {
    /// Its name below the directory of backups.
    pub name: String,
    /// CRC-32C of its contents, if it is written down.
    pub crc: Option<u32>,
    /// Its size in bytes, if it is written down.
    pub size: Option<u64>,
    /// The kind of storage it is meant for, by RocksDB's name.
    pub temperature: Option<String>,
}

impl MetaFile {
    /// Its name in a database, without the part that backups put between number and extension.
    pub fn database_name(&self) -> String {
        database_name(&self.name)
    }

    /// It may belong to several backups.
    pub fn is_shared(&self) -> bool {
        is_shared(&self.name)
    }
}

/// True for a file in a directory that backups share.
pub fn is_shared(name: &str) -> bool {
    name.split_once('/').is_some_and(|(dir, _)| SHARED_DIRS.contains(&dir))
}

/// The name that a file of a backup has in a database.
pub fn database_name(name: &str) -> String {
    let file = name.rsplit_once('/').map_or(name, |(_, file)| file);
    if !is_shared(name) {
        return file.to_string();
    }
    match (file.find('_'), file.rfind('.')) {
        (Some(end), Some(dot)) if end < dot => format!("{}{}", &file[..end], &file[dot..]),
        _ => file.to_string(),
    }
}

impl BackupMeta {
    /// Reads the meta file `name`.
    ///
    /// # Errors
    /// Corruption for what is no meta file; NotSupported for what a later version wrote and must not be passed over.
    pub fn parse(text: &[u8], name: &str) -> Result<BackupMeta> {
        let text =
            std::str::from_utf8(text).map_err(|_| Error::corruption(format!("{name}: it is no text")))?;
        // A file without its end was not written completely.
        let mut lines =
            Lines { lines: text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).collect() };
        lines.lines.reverse();
        let mut meta = BackupMeta::default();
        let mut schema = 1;
        let mut first = lines.next(name)?;
        if let Some(version) = first.strip_prefix("schema_version ") {
            if version != "2" && !version.starts_with("2.") {
                return Err(Error::not_supported(format!(
                    "Unsupported/unrecognized schema version: {version}"
                )));
            }
            schema = 2;
            first = lines.next(name)?;
        } else if first.is_empty() {
            return Err(Error::corruption("Unexpected empty line"));
        }
        meta.timestamp = number::<u64>(first, name)?.cast_signed();
        meta.sequence_number = number(lines.next(name)?, name)?;
        let count = meta.header_fields(&mut lines, schema, name)?;
        let footer = meta.file_lines(&mut lines, schema, name)?;
        if footer {
            footer_fields(&mut lines)?;
        }
        if meta.files.len() as u64 != count {
            return Err(incomplete(name));
        }
        let mut names: Vec<&str> = meta.files.iter().map(|file| file.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::corruption(format!("{name}: {} is listed twice", twice[0])));
        }
        Ok(meta)
    }

    /// Fields before the number of files, and that number.
    fn header_fields(&mut self, lines: &mut Lines<'_>, schema: u32, name: &str) -> Result<u64> {
        loop {
            let line = lines.next(name)?;
            if line.is_empty() {
                return Err(Error::corruption("Unexpected empty line"));
            }
            if line.starts_with(|c: char| c.is_ascii_digit()) {
                return number(line, name);
            }
            let Some((field, value)) = line.split_once(' ') else {
                return Err(Error::corruption("Expected number of files or meta field"));
            };
            if field == "metadata" {
                self.app_metadata = from_hex(value)
                    .ok_or_else(|| Error::corruption("Failed to decode stored hex encoded app metadata"))?;
            } else if schema < 2 {
                return Err(Error::corruption("Expected number of files or \"metadata\" field"));
            } else {
                refuse_unknown("meta field", field)?;
            }
        }
    }

    /// The lines of files; true if a footer follows.
    fn file_lines(&mut self, lines: &mut Lines<'_>, schema: u32, name: &str) -> Result<bool> {
        while let Some(line) = lines.lines.pop() {
            if schema >= 2 && line == "// FOOTER" {
                return Ok(true);
            }
            let mut parts = line.split(' ');
            let file = parts.next().unwrap_or_default();
            let fields: Vec<&str> = parts.collect();
            check_name(file).map_err(|error| error.within(name))?;
            if schema >= 2 {
                if !fields.len().is_multiple_of(2) {
                    return Err(Error::corruption("Bad number of line components for file entry."));
                }
            } else {
                check_old_fields(file, &fields, name)?;
            }
            self.file(file, &fields, name)?;
        }
        Ok(false)
    }

    fn file(&mut self, file: &str, fields: &[&str], name: &str) -> Result<()> {
        let mut entry = MetaFile { name: file.to_string(), ..MetaFile::default() };
        let mut excluded = false;
        for pair in fields.chunks_exact(2) {
            match (pair[0], pair[1]) {
                ("crc32", value) => {
                    let crc = value.parse::<u32>().ok().filter(|crc| crc.to_string() == value);
                    entry.crc = Some(crc.ok_or_else(|| {
                        Error::corruption(format!("Invalid checksum value for {file} in {name}"))
                    })?);
                }
                ("size", value) => entry.size = Some(number(value, name)?),
                ("temp", value) => entry.temperature = Some(value.to_string()),
                ("ni::excluded", "true") => excluded = true,
                ("ni::excluded", "false") => excluded = false,
                ("ni::excluded", value) => {
                    return Err(Error::not_supported(format!(
                        "Unrecognized value \"{value}\" for field ni::excluded"
                    )));
                }
                (field, _) => refuse_unknown("file field", field)?,
            }
        }
        match excluded {
            true => self.excluded.push(entry.name),
            false => self.files.push(entry),
        }
        Ok(())
    }

    /// As text, in `schema` 1 or 2.
    pub fn print(&self, schema: u32) -> Vec<u8> {
        let mut text = String::new();
        if schema >= 2 {
            text.push_str("schema_version 2.1\n");
        }
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}\n{}", self.timestamp.cast_unsigned(), self.sequence_number);
        if !self.app_metadata.is_empty() {
            text.push_str("metadata ");
            for byte in &self.app_metadata {
                let _ = write!(text, "{byte:02X}");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.files.len());
        for file in &self.files {
            let _ = write!(text, "{}", file.name);
            if let Some(crc) = file.crc {
                let _ = write!(text, " crc32 {crc}");
            }
            if let (2.., Some(temperature)) = (schema, &file.temperature) {
                let _ = write!(text, " temp {temperature}");
            }
            text.push('\n');
        }
        for name in &self.excluded {
            let _ = writeln!(text, "{name} ni::excluded true");
        }
        text.into_bytes()
    }
}

/// Lines that are left, the next one last.
struct Lines<'t> {
    lines: Vec<&'t str>,
}

impl<'t> Lines<'t> {
    fn next(&mut self, name: &str) -> Result<&'t str> {
        self.lines.pop().ok_or_else(|| incomplete(name))
    }
}

fn incomplete(name: &str) -> Error {
    Error::corruption(format!("Inconsistent number of files or missing/incomplete header in {name}"))
}

fn number<T: std::str::FromStr>(text: &str, name: &str) -> Result<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    digits.ok_or_else(|| Error::corruption(format!("{name}: {text:?} is no number")))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// A field that must not be ignored says so.
fn refuse_unknown(what: &str, field: &str) -> Result<()> {
    if field.starts_with("ni::") {
        return Err(Error::not_supported(format!(
            "Unrecognized non-ignorable {what} {field} (from future version?)"
        )));
    }
    Ok(())
}

fn check_old_fields(file: &str, fields: &[&str], name: &str) -> Result<()> {
    let wrong = |what: &str| Err(Error::corruption(format!("{what} {file} in {name}")));
    match fields {
        ["crc32", _] => Ok(()),
        [] | [_] => wrong("File checksum is missing for"),
        ["crc32", ..] => wrong("Extra data for entry"),
        _ => wrong("Unknown checksum type for"),
    }
}

fn footer_fields(lines: &mut Lines<'_>) -> Result<()> {
    while let Some(line) = lines.lines.pop() {
        if line.is_empty() {
            return Err(Error::corruption("Unexpected empty line"));
        }
        let Some((field, _)) = line.split_once(' ') else {
            return Err(Error::corruption("Expected footer field"));
        };
        refuse_unknown("field", field)?;
    }
    Ok(())
}

/// A name in one of the directories that backups have, and nowhere else.
fn check_name(name: &str) -> Result<()> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\\']);
    let ours = match name.split('/').collect::<Vec<_>>()[..] {
        [dir, file] => SHARED_DIRS.contains(&dir) && plain(file),
        ["private", id, file] => id.parse::<u32>().is_ok_and(|n| n > 0 && n.to_string() == id) && plain(file),
        _ => false,
    };
    match ours {
        true => Ok(()),
        false => Err(Error::corruption(format!("{name:?} is no name of a file in a backup"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BackupMeta {
        let file =
            |name: &str, crc| MetaFile { name: name.to_string(), crc: Some(crc), ..MetaFile::default() };
        BackupMeta {
            timestamp: 1_795_352_865,
            sequence_number: 6,
            app_metadata: b"hello\n".to_vec(),
            files: vec![file("shared_checksum/000009_sCU1H_1285.sst", 7), file("private/2/CURRENT", 0)],
            excluded: Vec::new(),
        }
    }

    #[test]
    fn both_schemas_come_back() {
        let text = String::from_utf8(sample().print(1)).unwrap();
        assert_eq!(
            text,
            "1795352865\n6\nmetadata 68656C6C6F0A\n2\nshared_checksum/000009_sCU1H_1285.sst crc32 7\n\
             private/2/CURRENT crc32 0\n"
        );
        let mut second = sample();
        second.excluded.push("shared_checksum/000010_s1_5.sst".to_string());
        second.files[0].temperature = Some("kWarm".to_string());
        for (meta, schema) in [(sample(), 1), (sample(), 2), (second, 2)] {
            assert_eq!(BackupMeta::parse(&meta.print(schema), "meta/2").unwrap(), meta);
        }
    }

    #[test]
    fn a_file_that_was_cut_is_damage() {
        for schema in [1, 2] {
            let whole = sample().print(schema);
            for len in 0..whole.len() {
                let error = BackupMeta::parse(&whole[..len], "meta/2").unwrap_err();
                assert_eq!(error.kind(), outcrop_base::ErrorKind::Corruption, "cut to {len}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_rocksdbs_words() {
        let cases = [
            ("schema_version 3\n1\n1\n0\n", "Not implemented: Unsupported/unrecognized schema version: 3"),
            ("\n1\n", "Corruption: Unexpected empty line"),
            ("1\n1\n\n", "Corruption: Unexpected empty line"),
            ("1\n1\nmetadata 6G\n0\n", "Corruption: Failed to decode stored hex encoded app metadata"),
            ("1\n1\nmetadata 6\n0\n", "Corruption: Failed to decode stored hex encoded app metadata"),
            ("1\n1\nwhat 1\n0\n", "Corruption: Expected number of files or \"metadata\" field"),
            ("1\n1\nwhat\n0\n", "Corruption: Expected number of files or meta field"),
            (
                "1\n1\n2\nshared/1.sst crc32 1\n",
                "Corruption: Inconsistent number of files or missing/incomplete header in meta/2",
            ),
            ("1\n1\n1\nshared/1.sst\n", "Corruption: File checksum is missing for shared/1.sst in meta/2"),
            ("1\n1\n1\nshared/1.sst md5 1\n", "Corruption: Unknown checksum type for shared/1.sst in meta/2"),
            ("1\n1\n1\nshared/1.sst crc32 1 2\n", "Corruption: Extra data for entry shared/1.sst in meta/2"),
            (
                "1\n1\n1\nshared/1.sst crc32 01\n",
                "Corruption: Invalid checksum value for shared/1.sst in meta/2",
            ),
            (
                "schema_version 2.7\n1\n1\nni::x 1\n0\n",
                "Not implemented: Unrecognized non-ignorable meta field ni::x (from future version?)",
            ),
            (
                "schema_version 2\n1\n1\n1\nshared/1.sst ni::x 1\n",
                "Not implemented: Unrecognized non-ignorable file field ni::x (from future version?)",
            ),
        ];
        for (text, error) in cases {
            assert_eq!(
                BackupMeta::parse(text.as_bytes(), "meta/2").unwrap_err().to_string(),
                error,
                "{text:?}"
            );
        }
    }

    #[test]
    fn unknown_fields_of_later_versions_are_passed_over() {
        let text = "schema_version 2.9\n1\n2\nnew thing\n1\nshared/000001.sst size 5 hue blue crc32 3\n// FOOTER\nsum 1\n";
        let meta = BackupMeta::parse(text.as_bytes(), "meta/1").unwrap();
        assert_eq!((meta.files[0].size, meta.files[0].crc), (Some(5), Some(3)));
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        for name in [
            "../x",
            "/etc/passwd",
            "private/../x",
            "private/1/../../x",
            "shared/a/b",
            "shared/",
            "shared/..",
            "private/01/CURRENT",
            "private/0/CURRENT",
            "meta/1",
            "CURRENT",
            "",
            "private/1",
        ] {
            let text = format!("1\n1\n1\n{name} crc32 1\n");
            let error = BackupMeta::parse(text.as_bytes(), "meta/1").unwrap_err();
            assert_eq!(error.kind(), outcrop_base::ErrorKind::Corruption, "{name}");
        }
    }

    #[test]
    fn files_have_their_names_of_the_database() {
        for (name, expected) in [
            ("shared_checksum/000009_sCU1H_1285.sst", "000009.sst"),
            ("shared_checksum/000010_123_5.blob", "000010.blob"),
            ("shared/000009.sst", "000009.sst"),
            ("private/3/MANIFEST-000004", "MANIFEST-000004"),
        ] {
            assert_eq!(database_name(name), expected);
        }
    }
}
