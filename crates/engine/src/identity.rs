//! The identity of a database, in its MANIFEST, its IDENTITY file and its tables.

use outcrop_base::Result;
use outcrop_env::Env;
use outcrop_manifest::{FileNumber, file_name};
use std::path::Path;

/// A random UUID, version 4.
pub fn new_db_id(env: &Env) -> String {
    let (a, b) = (env.random.next_u64(), env.random.next_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xFFFF,
        a & 0xFFF,
        0x8000 | ((b >> 48) & 0x3FFF),
        b & 0xFFFF_FFFF_FFFF
    )
}

/// Writes the IDENTITY file.
pub fn write_identity(path: &Path, env: &Env, db_id: &str) -> Result<()> {
    env.fs.replace(&file_name::identity(path), &file_name::temp(path, FileNumber(0)), db_id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_a_uuid_of_version_4_and_is_read_as_written() {
        let env = Env::memory();
        let id = new_db_id(&env);
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(&id[14..15], "4");
        assert!("89ab".contains(&id[19..20]), "{id}");
        assert_ne!(id, new_db_id(&env));
        env.fs.create_dir_all(Path::new("/db")).unwrap();
        write_identity(Path::new("/db"), &env, &id).unwrap();
        assert_eq!(env.fs.read_all(Path::new("/db/IDENTITY")).unwrap(), id.as_bytes());
        assert_eq!(env.fs.list(Path::new("/db")).unwrap(), ["IDENTITY"]);
    }
}
