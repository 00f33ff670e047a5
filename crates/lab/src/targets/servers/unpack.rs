//! Archives of program files: tar, compressed by xz or gzip.

use flate2::read::GzDecoder;
use liblzma::read::XzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Unpacks `archive`, which is called `name`, into the directory `home`, which is replaced whole.
///
/// # Errors
/// A sentence naming the archive.
pub(super) fn unpack(archive: &Path, name: &str, home: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{name}: {error}");
    // A version has dots of its own, so that this is no extension. No two processes share it.
    let mut partial = home.as_os_str().to_os_string();
    partial.push(format!(".part{}", std::process::id()));
    let partial = PathBuf::from(partial);
    let file = BufReader::new(File::open(archive).map_err(failed)?);
    let bytes: Box<dyn Read> = if name.ends_with("xz") {
        Box::new(XzDecoder::new(file))
    } else if name.ends_with("gz") {
        Box::new(GzDecoder::new(file))
    } else {
        return Err(format!("{name}: neither .txz nor .tar.gz"));
    };
    let unpacked = tar::Archive::new(bytes).unpack(&partial).and_then(|()| {
        if home.exists() {
            std::fs::remove_dir_all(home)?;
        }
        std::fs::rename(&partial, home)
    });
    unpacked.map_err(|error| {
        let _ = std::fs::remove_dir_all(&partial);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn archive(dir: &Path) -> Vec<u8> {
        std::fs::write(dir.join("x"), "program").unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        tar.append_path_with_name(dir.join("x"), "bin/x").unwrap();
        tar.into_inner().unwrap()
    }

    #[test]
    fn both_kinds_are_unpacked_in_place_of_what_was_there() {
        let temp = tempfile::tempdir().unwrap();
        let tar = archive(temp.path());
        let home = temp.path().join("postgres-18.1");
        // The directory of another version, if the last number were taken for an extension.
        std::fs::write(temp.path().join(format!("postgres-18.part{}", std::process::id())), "other").unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&tar).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
        xz.write_all(&tar).unwrap();
        for (name, bytes) in [("a.tar.gz", gzip.finish().unwrap()), ("a.txz", xz.finish().unwrap())] {
            let path = temp.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            std::fs::create_dir_all(&home).unwrap();
            std::fs::write(home.join("old"), "").unwrap();
            unpack(&path, name, &home).unwrap();
            assert_eq!(std::fs::read_to_string(home.join("bin/x")).unwrap(), "program");
            assert!(!home.join("old").exists());
        }
    }

    #[test]
    fn a_broken_archive_is_named_and_leaves_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.txz");
        std::fs::write(&path, b"no archive").unwrap();
        let error = unpack(&path, "a.txz", &temp.path().join("home")).unwrap_err();
        assert!(error.starts_with("a.txz"), "{error}");
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
        assert!(unpack(&path, "a.rar", &temp.path().join("home")).unwrap_err().contains("neither"));
    }
}
