//! Archives of program files: tar, compressed by xz or gzip, and directories of a zip.

use flate2::read::GzDecoder;
use liblzma::read::XzDecoder;
use std::fs::{File, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Unpacks what lies below `below` in `archive`, which is called `name`, into the directory `home`, which is replaced whole.
///
/// # Errors
/// A sentence naming the archive.
pub(super) fn archive(archive: &Path, name: &str, below: &str, home: &Path) -> Result<(), String> {
    let file = BufReader::new(File::open(archive).map_err(|error| format!("{name}: {error}"))?);
    let bytes: Box<dyn Read> = if name.ends_with("xz") {
        Box::new(XzDecoder::new(file))
    } else if name.ends_with("gz") {
        Box::new(GzDecoder::new(file))
    } else {
        return Err(format!("{name}: neither .txz nor .tar.gz"));
    };
    whole(name, home, |partial| {
        let mut tar = tar::Archive::new(bytes);
        if below.is_empty() {
            return tar.unpack(partial);
        }
        for entry in tar.entries()? {
            let mut entry = entry?;
            let place = placed(&entry.path()?, below);
            let Some(place) = place.map(|place| partial.join(place)) else { continue };
            place.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            entry.unpack(&place)?;
        }
        Ok(())
    })
}

/// Unpacks what lies below `below` in the zip `jar` into the directory `home`, which is replaced whole. A zip knows no programs:
/// every file may be run.
///
/// # Errors
/// A sentence naming the directory.
pub(super) fn tree(jar: &Path, below: &str, home: &Path) -> Result<(), String> {
    whole(below, home, |partial| {
        let mut zip = zip::ZipArchive::new(BufReader::new(File::open(jar)?)).map_err(io::Error::other)?;
        for index in 0..zip.len() {
            let mut file = zip.by_index(index).map_err(io::Error::other)?;
            let place = placed(Path::new(file.name()), below).filter(|_| file.is_file());
            let Some(place) = place.map(|place| partial.join(place)) else { continue };
            place.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            io::copy(&mut file, &mut File::create(&place)?)?;
            std::fs::set_permissions(&place, Permissions::from_mode(0o755))?;
        }
        Ok(())
    })
}

/// Where a file of an archive goes: below the directory that is wanted, and nowhere outside of it.
fn placed(path: &Path, below: &str) -> Option<PathBuf> {
    let rest = path.strip_prefix(below).ok()?;
    let inside = rest.components().all(|part| matches!(part, Component::Normal(_)));
    (inside && rest.components().next().is_some()).then(|| rest.to_path_buf())
}

/// Has `fill` make a directory beside `home`, and puts it in its place once it is whole.
fn whole(name: &str, home: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), String> {
    // A version has dots of its own, so that this is no extension. No two processes share it.
    let mut partial = home.as_os_str().to_os_string();
    partial.push(format!(".part{}", std::process::id()));
    let partial = PathBuf::from(partial);
    let filled = fill(&partial).and_then(|()| {
        if home.exists() {
            std::fs::remove_dir_all(home)?;
        }
        std::fs::rename(&partial, home)
    });
    filled.map_err(|error| {
        let _ = std::fs::remove_dir_all(&partial);
        format!("{name}: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(dir: &Path) -> Vec<u8> {
        std::fs::write(dir.join("x"), "program").unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        tar.append_path_with_name(dir.join("x"), "bin/x").unwrap();
        tar.into_inner().unwrap()
    }

    #[test]
    fn both_kinds_are_unpacked_in_place_of_what_was_there() {
        let temp = tempfile::tempdir().unwrap();
        let tar = packed(temp.path());
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
            archive(&path, name, "", &home).unwrap();
            assert_eq!(std::fs::read_to_string(home.join("bin/x")).unwrap(), "program");
            assert!(!home.join("old").exists());
        }
    }

    #[test]
    fn a_broken_archive_is_named_and_leaves_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.txz");
        std::fs::write(&path, b"no archive").unwrap();
        let error = archive(&path, "a.txz", "", &temp.path().join("home")).unwrap_err();
        assert!(error.starts_with("a.txz"), "{error}");
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
        assert!(archive(&path, "a.rar", "", &temp.path().join("home")).unwrap_err().contains("neither"));
    }

    #[test]
    fn of_a_directory_in_an_archive_only_what_is_below_it_is_unpacked() {
        let temp = tempfile::tempdir().unwrap();
        let (home, jar, tgz) =
            (temp.path().join("mariadb-1.2"), temp.path().join("a.jar"), temp.path().join("a.tgz"));
        let mut zip = zip::ZipWriter::new(File::create(&jar).unwrap());
        for name in ["other/x", "linux/bin/mysqld", "linux/../../y"] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(b"program").unwrap();
        }
        zip.finish().unwrap();
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
            File::create(&tgz).unwrap(),
            flate2::Compression::fast(),
        ));
        tar.append_path_with_name(&jar, "other/x").unwrap();
        tar.append_path_with_name(&jar, "linux/bin/mysqld").unwrap();
        tar.into_inner().unwrap().finish().unwrap();
        let check = || {
            let program = home.join("bin/mysqld");
            assert!(std::fs::metadata(&program).unwrap().len() > 0);
            assert_eq!(std::fs::read_dir(&home).unwrap().count(), 1, "nothing but bin");
            program
        };
        tree(&jar, "linux/", &home).unwrap();
        assert_eq!(std::fs::metadata(check()).unwrap().permissions().mode() & 0o777, 0o755);
        archive(&tgz, ".tgz", "linux/", &home).unwrap();
        check();
        assert!(!temp.path().parent().unwrap().join("y").exists());
        assert_eq!(placed(Path::new("linux/../../y"), "linux/"), None);
    }
}
