//! Two column families that change together: users by number, and an index of their names.
//!
//! ```text
//! ann is number 7
//! bob is nobody
//! numbers from 1 to 8: 7
//! renamed: anna is number 7, ann is nobody
//! column families: default, users, names
//! ```

use outcrop::{ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyOptions, Db, Result, WriteBatch};

/// The database and the handles of its column families: looked up once.
struct Users {
    db: Db,
    /// Big-endian number to name, so that numbers are in order.
    by_number: ColumnFamilyHandle,
    /// Name to number.
    by_name: ColumnFamilyHandle,
}

impl Users {
    fn open(path: &std::path::Path) -> Result<Users> {
        let small = ColumnFamilyOptions { write_buffer_size: 4 << 20, ..ColumnFamilyOptions::default() };
        let db = Db::builder(path)
            .create_if_missing(true)
            .create_missing_column_families(true)
            .column_family("users")
            .column_family(ColumnFamilyDescriptor::new("names").with_options(small))
            .open()?;
        let handle = |name| db.column_family(name).expect("it was just opened");
        let (by_number, by_name) = (handle("users"), handle("names"));
        Ok(Users { db, by_number, by_name })
    }

    /// Both column families change, or none: after a crash, too.
    fn set(&self, number: u32, name: &str) -> Result<()> {
        let mut batch = WriteBatch::new();
        if let Some(old) = self.db.get_cf(&self.by_number, number.to_be_bytes())? {
            batch.delete_cf(&self.by_name, old);
        }
        batch.put_cf(&self.by_number, number.to_be_bytes(), name);
        batch.put_cf(&self.by_name, name, number.to_be_bytes());
        self.db.write(&mut batch)
    }

    fn number_of(&self, name: &str) -> Result<String> {
        let found = self.db.get_cf(&self.by_name, name)?;
        Ok(found.map_or("nobody".to_string(), |bytes| format!("number {}", number(&bytes))))
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let users = Users::open(dir.path())?;
    users.set(7, "ann")?;
    println!("ann is {}", users.number_of("ann")?);
    println!("bob is {}", users.number_of("bob")?);

    let range = 1u32.to_be_bytes()..=8u32.to_be_bytes();
    let numbers: Result<Vec<String>> =
        users.db.range_cf(&users.by_number, range).map(|row| Ok(number(&row?.0).to_string())).collect();
    println!("numbers from 1 to 8: {}", numbers?.join(" "));

    users.set(7, "anna")?;
    println!("renamed: anna is {}, ann is {}", users.number_of("anna")?, users.number_of("ann")?);
    users.db.close()?;

    // Without opening it, as a tool would that must name them all.
    println!("column families: {}", Db::list_column_families(dir.path())?.join(", "));
    Ok(())
}
