//! A result file in memory: bounded, decompressed if it is gzip, as numbered lines.

use super::model::Text;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest file read, decompressed. The largest in the published archive is below 10 MB.
const MAX_BYTES: u64 = 64 << 20;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file's text and where it is.
pub(super) struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// The path, for rows.
    pub shown: Text,
    /// File name without `.gz`.
    pub name: String,
    /// Name of its directory, empty at the top.
    pub directory: String,
    text: String,
}

impl Source {
    /// Reads `path`.
    ///
    /// # Errors
    /// A clause that says why the file is no text we can hold.
    pub fn read(path: &Path) -> Result<Source, String> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        bounded(file, &mut bytes)?;
        if bytes.starts_with(&GZIP) {
            let mut plain = Vec::new();
            bounded(flate2::read::MultiGzDecoder::new(bytes.as_slice()), &mut plain)?;
            bytes = plain;
        }
        if bytes.contains(&0) {
            return Err("not a text file".to_string());
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let name_of = |part: Option<&std::ffi::OsStr>| {
            part.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let name = name_of(path.file_name());
        Ok(Source {
            path: path.to_path_buf(),
            shown: Text::from(path.to_string_lossy().as_ref()),
            name: name.strip_suffix(".gz").unwrap_or(&name).to_string(),
            directory: name_of(path.parent().and_then(Path::file_name)),
            text,
        })
    }

    /// Lines with their numbers from 1, without line ends.
    pub fn lines(&self) -> impl Iterator<Item = (u32, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Whether there is nothing in it, or white space alone.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The file called `name` in the same directory, if it can be read.
    pub fn sibling(&self, name: &str) -> Option<Source> {
        Source::read(&self.path.with_file_name(name)).ok()
    }

    /// Names of the files in the same directory, sorted.
    pub fn sibling_names(&self) -> Vec<String> {
        let entries = self.path.parent().and_then(|directory| {
            let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            std::fs::read_dir(here).ok()
        });
        let names = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> = names.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn bounded(reader: impl Read, bytes: &mut Vec<u8>) -> Result<(), String> {
    let count = reader.take(MAX_BYTES + 1).read_to_end(bytes).map_err(|error| error.to_string())?;
    if count as u64 > MAX_BYTES {
        return Err(format!("larger than {} MiB", MAX_BYTES >> 20));
    }
    Ok(())
}
