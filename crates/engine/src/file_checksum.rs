//! Checksums of whole files, which the MANIFEST has if `file_checksum_gen_factory` asks for them.
//!
//! ```text
//! writer -> observed (adds up what is appended) -> observed (at a pace) -> file      WrittenChecksum::finish: the checksum
//! ```
//! The value is what RocksDB stores: CRC-32C, four bytes, the highest first, and not masked as those of blocks are.
//! Source: RocksDB `util/file_checksum_helper.h`, `file/file_util.cc`, `GenerateOneFileChecksum`.

use crate::copy_file::each_part;
use outcrop_base::checksum::crc32c_extend;
use outcrop_base::{Error, Result};
use outcrop_env::{FileSystem, WriteFile, observed};
use outcrop_manifest::TableFile;
use outcrop_options::FileChecksumGenFactory;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The checksum of a file as a whole.
///
/// ```
/// # use outcrop::{Db, DbOptions, Env, FileChecksumGenFactory};
/// let factory = Some(FileChecksumGenFactory::Crc32c);
/// let options = DbOptions { file_checksum_gen_factory: factory, create_if_missing: true, ..DbOptions::default() };
/// let db = Db::builder("/db").options(options).env(Env::memory()).open()?;
/// db.put("apple", "red")?;
/// db.flush()?;
/// let checksum = db.live_files()[0].file_checksum.clone().expect("the options ask for it");
/// assert_eq!((&checksum.function[..], checksum.checksum.len()), ("FileChecksumCrc32c", 4));
/// db.verify_file_checksums()?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChecksum {
    /// Name of the function it was made by.
    pub function: String,
    /// Its bytes.
    pub checksum: Vec<u8>,
}

impl FileChecksum {
    fn new(factory: FileChecksumGenFactory, crc: u32) -> FileChecksum {
        FileChecksum { function: factory.function().to_string(), checksum: crc.to_be_bytes().to_vec() }
    }

    /// The one that a MANIFEST has, as name and value; none without a value.
    pub(crate) fn recorded((function, checksum): (&[u8], &[u8])) -> Option<FileChecksum> {
        let function = String::from_utf8_lossy(function).into_owned();
        (!checksum.is_empty()).then(|| FileChecksum { function, checksum: checksum.to_vec() })
    }

    /// Its bytes in hexadecimal.
    pub(crate) fn digits(&self) -> String {
        self.checksum.iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02X}");
            digits
        })
    }

    /// Notes it as that of a table.
    pub(crate) fn of_table(checksum: Option<&FileChecksum>, table: &mut TableFile) {
        if let Some(FileChecksum { function, checksum }) = checksum {
            table.set_checksum(function.as_bytes(), checksum);
        }
    }
}

/// The file to write to, and what tells the checksum of everything that was appended once it is complete.
pub fn while_written(
    file: Box<dyn WriteFile>,
    factory: Option<FileChecksumGenFactory>,
) -> (Box<dyn WriteFile>, Option<WrittenChecksum>) {
    let Some(factory) = factory else { return (file, None) };
    let crc = Arc::new(AtomicU32::new(0));
    let sum = crc.clone();
    // Relaxed: one thread at a time writes the file.
    let add =
        move |bytes: &[u8]| sum.store(crc32c_extend(sum.load(Ordering::Relaxed), bytes), Ordering::Relaxed);
    (observed(file, add), Some(WrittenChecksum { factory, crc }))
}

/// The checksum of a file being written.
pub struct WrittenChecksum {
    factory: FileChecksumGenFactory,
    crc: Arc<AtomicU32>,
}

impl WrittenChecksum {
    /// The checksum of what was appended so far.
    pub fn finish(&self) -> FileChecksum {
        // Relaxed: the one who writes the file is the one who asks.
        FileChecksum::new(self.factory, self.crc.load(Ordering::Relaxed))
    }
}

/// The checksum of the first `len` bytes of a file.
///
/// # Errors
/// IoError; Corruption if it is shorter.
pub fn of_file(
    fs: &dyn FileSystem,
    path: &Path,
    len: u64,
    factory: FileChecksumGenFactory,
) -> Result<FileChecksum> {
    let mut crc = 0;
    each_part(fs, path, len, &mut |part| {
        crc = crc32c_extend(crc, part);
        Ok(())
    })?;
    Ok(FileChecksum::new(factory, crc))
}

/// Compares a file with the checksum that it should have.
///
/// # Errors
/// Corruption if it has another; InvalidArgument if `factory` does not make such; IoError.
pub fn verify_file(
    fs: &dyn FileSystem,
    path: &Path,
    len: u64,
    factory: FileChecksumGenFactory,
    expected: &FileChecksum,
) -> Result<()> {
    check_function(factory, expected)?;
    let found = of_file(fs, path, len, factory)?;
    if found == *expected {
        return Ok(());
    }
    let (path, expected, found) = (path.display(), expected.digits(), found.digits());
    Err(Error::corruption(format!("{path} file checksum mismatch, expecting {expected}, but actual {found}")))
}

/// InvalidArgument unless `factory` makes checksums such as `expected`.
pub fn check_function(factory: FileChecksumGenFactory, expected: &FileChecksum) -> Result<()> {
    if expected.function == factory.function() {
        return Ok(());
    }
    let (function, factory) = (&expected.function, factory.name());
    Err(Error::invalid_argument(format!(
        "Cannot get the file checksum generator based on the requested checksum function name: {function} \
         from checksum factory: {factory}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::checksum::crc32c;
    use outcrop_env::{Env, OpenWrite};

    const CRC32C: FileChecksumGenFactory = FileChecksumGenFactory::Crc32c;

    #[test]
    fn what_is_written_and_what_is_read_have_one_checksum() {
        let env = Env::memory();
        env.fs.create_dir_all(Path::new("/d")).unwrap();
        let path = Path::new("/d/file");
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 7) as u8).collect();
        let (mut file, sum) = while_written(env.fs.create(path, OpenWrite::default()).unwrap(), Some(CRC32C));
        for part in bytes.chunks(70_001) {
            file.append(part).unwrap();
        }
        file.close().unwrap();
        let made = sum.expect("one is asked for").finish();
        assert_eq!(made.checksum, crc32c(&bytes).to_be_bytes());
        assert_eq!(of_file(&*env.fs, path, bytes.len() as u64, CRC32C).unwrap(), made);
        verify_file(&*env.fs, path, bytes.len() as u64, CRC32C, &made).unwrap();
        let longer = verify_file(&*env.fs, path, bytes.len() as u64 + 1, CRC32C, &made);
        assert!(longer.is_err(), "a file that is shorter than it should be");
        let shorter = verify_file(&*env.fs, path, bytes.len() as u64 - 1, CRC32C, &made).unwrap_err();
        assert!(shorter.to_string().contains("file checksum mismatch, expecting "), "{shorter}");
        let other = FileChecksum { function: "SHA256".to_string(), ..made };
        let refused = verify_file(&*env.fs, path, bytes.len() as u64, CRC32C, &other).unwrap_err();
        assert_eq!(refused.kind(), outcrop_base::ErrorKind::InvalidArgument);
    }

    #[test]
    fn none_is_made_unless_it_is_asked_for() {
        let env = Env::memory();
        env.fs.create_dir_all(Path::new("/d")).unwrap();
        let file = env.fs.create(Path::new("/d/file"), OpenWrite::default()).unwrap();
        assert!(while_written(file, None).1.is_none());
    }
}
