//! Links, copies or reads a file that is whole.

use outcrop_base::{ErrorKind, Result};
use outcrop_env::{Access, FileSystem, OpenRead, OpenWrite};
use std::path::Path;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Another name for a file that never changes; a copy where the file system has no such thing. Returns the bytes copied.
pub fn link_or_copy(fs: &dyn FileSystem, source: &Path, target: &Path) -> Result<u64> {
    match fs.hard_link(source, target) {
        Err(error) if error.kind() == ErrorKind::NotSupported => {
            let len = fs.file_size(source)?;
            copy_file(fs, source, target, len).map(|()| len)
        }
        result => result.map(|()| 0),
    }
}

/// Copies the first `len` bytes, durably.
pub fn copy_file(fs: &dyn FileSystem, source: &Path, target: &Path, len: u64) -> Result<()> {
    let mut output = fs.create(target, OpenWrite::default())?;
    each_part(fs, source, len, &mut |part| output.append(part))?;
    output.sync()?;
    output.close()
}

/// Reads the first `len` bytes of a file, part by part.
pub fn each_part(
    fs: &dyn FileSystem,
    path: &Path,
    len: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let input = fs.open_read(path, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
    let mut buffer = vec![0; (COPY_BYTES as u64).min(len.max(1)) as usize];
    let mut done = 0;
    while done < len {
        let part = (buffer.len() as u64).min(len - done) as usize;
        input.read_exact_at(done, &mut buffer[..part])?;
        each(&buffer[..part])?;
        done += part as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_env::Env;

    fn file(env: &Env, name: &str, bytes: &[u8]) {
        let mut file = env.fs.create(Path::new(name), OpenWrite::default()).unwrap();
        file.append(bytes).unwrap();
        file.close().unwrap();
    }

    #[test]
    fn a_copy_has_as_many_bytes_as_were_asked_for() {
        let env = Env::memory();
        env.fs.create_dir_all(Path::new("/d")).unwrap();
        let bytes: Vec<u8> = (0..COPY_BYTES + 5000).map(|i| i as u8).collect();
        file(&env, "/d/source", &bytes);
        for len in [0, 1, COPY_BYTES, bytes.len()] {
            copy_file(&*env.fs, Path::new("/d/source"), Path::new("/d/target"), len as u64).unwrap();
            assert_eq!(env.fs.read_all(Path::new("/d/target")).unwrap(), bytes[..len]);
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_it_should_be_is_an_error() {
        let env = Env::memory();
        env.fs.create_dir_all(Path::new("/d")).unwrap();
        file(&env, "/d/source", b"short");
        assert!(copy_file(&*env.fs, Path::new("/d/source"), Path::new("/d/target"), 6).is_err());
    }

    #[test]
    fn another_name_has_the_same_bytes() {
        let env = Env::memory();
        env.fs.create_dir_all(Path::new("/d")).unwrap();
        file(&env, "/d/source", b"bytes");
        link_or_copy(&*env.fs, Path::new("/d/source"), Path::new("/d/target")).unwrap();
        env.fs.remove_file(Path::new("/d/source")).unwrap();
        assert_eq!(env.fs.read_all(Path::new("/d/target")).unwrap(), b"bytes");
    }
}
