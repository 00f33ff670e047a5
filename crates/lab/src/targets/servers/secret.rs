//! The password of a server that listens on a port, where every user of the machine can connect. One on a socket needs none: its
//! directory is closed to others.
//!
//! The password lies in a file of the session's directory, which its owner alone reads, and travels with copies of the data.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The password of a server, and the file that has it.
#[derive(Debug)]
pub(super) struct Secret {
    pub password: String,
    pub file: PathBuf,
}

impl Secret {
    /// That of the server in `dir`; a random one if it has none yet.
    ///
    /// # Errors
    /// A sentence naming the file.
    pub fn of(dir: &Path) -> Result<Secret, String> {
        let file = dir.join("password");
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let password = match std::fs::read_to_string(&file) {
            Ok(password) => password,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let password = random().map_err(failed)?;
                write(&file, &password)?;
                password
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(Secret { password, file })
    }
}

/// Writes `text` to `path`, which nobody but its owner can read.
///
/// # Errors
/// A sentence naming the file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    let opened = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Sixteen bytes that nobody can guess, in letters and digits.
fn random() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_server_keeps_its_password_and_no_two_have_the_same() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = Secret::of(one.path()).unwrap();
        assert_eq!(secret.password.len(), 32);
        assert_eq!(Secret::of(one.path()).unwrap().password, secret.password);
        assert_ne!(Secret::of(other.path()).unwrap().password, secret.password);
        let mode = std::fs::metadata(&secret.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
