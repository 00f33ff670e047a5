//! A checkpoint, a mistake, and the way back.
//!
//! ```text
//! rows in the checkpoint: 3
//! rows after the mistake: 0
//! rows after restoring: 3
//! the checkpoint is a database of its own: 4 rows there, 3 here
//! ```

use outcrop::{Db, Result};
use std::path::Path;

fn open(path: &Path) -> Result<Db> {
    Db::builder(path).open()
}

fn rows(db: &Db) -> Result<usize> {
    // An error among the rows is an error of the count.
    db.iter().map(|row| row.map(drop)).collect::<Result<Vec<()>>>().map(|rows| rows.len())
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (live, saved, damaged) =
        (dir.path().join("live"), dir.path().join("saved"), dir.path().join("damaged"));

    let db = Db::builder(&live).create_if_missing(true).open()?;
    for key in ["a", "b", "c"] {
        db.put(key, "precious")?;
    }
    // Tables are hard links: it costs little time and space. The directory appears under its name when it is complete.
    db.create_checkpoint(&saved)?;
    println!("rows in the checkpoint: {}", rows(&Db::builder(&saved).open_read_only()?)?);

    db.delete_range("a", "z")?;
    println!("rows after the mistake: {}", rows(&db)?);
    db.close()?;

    // To restore: keep the checkpoint, and make another from it in the place of the damaged database.
    std::fs::rename(&live, &damaged).expect("both are in one directory");
    let checkpoint = open(&saved)?;
    checkpoint.create_checkpoint(&live)?;
    let restored = open(&live)?;
    println!("rows after restoring: {}", rows(&restored)?);
    Db::destroy(&damaged)?;

    checkpoint.put("d", "new")?;
    println!(
        "the checkpoint is a database of its own: {} rows there, {} here",
        rows(&checkpoint)?,
        rows(&restored)?
    );
    Ok(())
}
