//! Opening a table alone, without its database: in the order that its properties name.

use outcrop::{Env, Error};
use outcrop_base::{Comparator, SeqNum, UserComparator};
use outcrop_env::{Access, OpenRead};
use outcrop_table::{TableReader, TableReaderOptions};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

/// The order of an application that is not here: every next key counts as in order. For walking forward only.
struct OrderOfTheFile(String);

impl UserComparator for OrderOfTheFile {
    fn name(&self) -> &str {
        &self.0
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if a == b { Ordering::Equal } else { Ordering::Less }
    }
}

/// Opens the table at `path` to be walked from its first entry on.
///
/// # Errors
/// As [`TableReader::open`].
pub fn open_table(env: &Env, path: &Path, largest_seqno: SeqNum) -> Result<Arc<TableReader>, Error> {
    let open = |comparator: Comparator| {
        let file = env.fs.open_read(path, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
        TableReader::open(
            file,
            TableReaderOptions { largest_seqno, ..TableReaderOptions::uncached(comparator) },
        )
    };
    let table = open(Comparator::Bytewise)?;
    let name = table.properties().comparator_name.clone();
    if name.is_empty() || name == Comparator::Bytewise.name() {
        return Ok(Arc::new(table));
    }
    let order =
        Comparator::by_name(&name).unwrap_or_else(|| Comparator::User(Arc::new(OrderOfTheFile(name))));
    open(order).map(Arc::new)
}
