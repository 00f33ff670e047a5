//! A counter that is incremented without being read: a merge operator adds what was merged when somebody looks.
//!
//! ```text
//! home: 1003 visits
//! about: 1 visits
//! after opening it again, home: 1003 visits
//! ```

use outcrop::{Db, MergeOperator, Result, WriteBatch};
use std::sync::Arc;

/// Adds numbers of eight bytes, little-endian.
struct Add;

impl MergeOperator for Add {
    /// Written to the database's files: it opens only with an operator of this name.
    fn name(&self) -> &str {
        "example.add"
    }

    fn full_merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let base = base.map_or(Some(0), number)?;
        // None of a malformed operand: the read is then Corruption, rather than a wrong number.
        let sum = operands.iter().try_fold(base, |sum, operand| Some(sum + number(operand)?))?;
        Some(sum.to_le_bytes().to_vec())
    }
}

fn visits(db: &Db, page: &str) -> Result<u64> {
    let value = db.get(page)?;
    Ok(value.map_or(0, |value| u64::from_le_bytes(value[..].try_into().expect("eight bytes"))))
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let open = || Db::builder(dir.path()).create_if_missing(true).merge_operator(Arc::new(Add)).open();

    let db = open()?;
    let one = 1u64.to_le_bytes();
    // Threads need no agreement among them: nothing is read, so nothing is lost between a read and a write.
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..250).try_for_each(|_| db.merge("home", one)))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let mut batch = WriteBatch::new();
    batch.merge("home", 3u64.to_le_bytes());
    batch.merge("about", one);
    db.write(&mut batch)?;

    println!("home: {} visits", visits(&db, "home")?);
    println!("about: {} visits", visits(&db, "about")?);
    db.close()?;

    println!("after opening it again, home: {} visits", visits(&open()?, "home")?);
    Ok(())
}
