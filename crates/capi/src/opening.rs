//! The parts that are common to all functions that open a database: options, a path, column families, and the objects handed out.

use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::memory::{Errptr, hand_out, report, text};
use crate::options::rocksdb_options_t;
use libc::{c_char, c_int};
use outcrop::{ColumnFamilyDescriptor, Db, DbBuilder, Error, Result};

/// The column families of an opening as C passes them: `count` names, options for each, and places for as many handles.
#[derive(Clone, Copy)]
pub(crate) struct Families {
    pub(crate) count: c_int,
    pub(crate) names: *const *const c_char,
    pub(crate) options: *const *const rocksdb_options_t,
    pub(crate) handles: *mut *mut rocksdb_column_family_handle_t,
}

impl Families {
    unsafe fn names(&self) -> Vec<String> {
        // SAFETY: the caller passes `count` names.
        (0..self.count.max(0) as usize).map(|i| unsafe { text(*self.names.add(i)) }).collect()
    }

    /// The place of the column family called `name` among the names.
    pub(crate) unsafe fn position(&self, name: &str) -> Option<usize> {
        // SAFETY: the caller's contract.
        unsafe { self.names() }.iter().position(|known| known == name)
    }

    unsafe fn descriptors(&self) -> Result<Vec<ColumnFamilyDescriptor>> {
        // SAFETY: the caller passes options for each name.
        unsafe {
            let named = self.names().into_iter().enumerate();
            let families = named.map(|(i, name)| (**self.options.add(i)).descriptor(&name));
            let families = families.collect::<Result<Vec<_>>>()?;
            // The native API adds the default column family where it is not named; RocksDB wants it named.
            match families.iter().any(|family| family.name == "default") {
                true => Ok(families),
                false => Err(Error::invalid_argument("Default column family not specified")),
            }
        }
    }

    /// Hands out a handle for each name. A column family is looked up before any is given: on an error there is none.
    unsafe fn hand_out(&self, db: &Db) -> Result<()> {
        let handle_of = |name: &String| {
            let found = db.column_family(name);
            found.ok_or_else(|| Error::invalid_argument(format!("Column family not found: {name}")))
        };
        // SAFETY: the caller passes `count` names and as many places for handles.
        unsafe {
            let found = self.names().iter().map(handle_of).collect::<Result<Vec<_>>>()?;
            for (i, handle) in found.into_iter().enumerate() {
                *self.handles.add(i) = hand_out(rocksdb_column_family_handle_t(handle));
            }
        }
        Ok(())
    }
}

/// An object of the C API that is or has a database.
pub(crate) trait Opened {
    fn database(&self) -> &rocksdb_t;
}

impl Opened for rocksdb_t {
    fn database(&self) -> &rocksdb_t {
        self
    }
}

/// Opens the database at `name` by `open`, and hands it out with a handle for each of `families`; without them it has the default column
/// family, under the options of the database. Null on an error.
pub(crate) unsafe fn open_by<D, H: From<D> + Opened>(
    options: *const rocksdb_options_t,
    name: *const c_char,
    families: Option<Families>,
    errptr: Errptr,
    open: impl FnOnce(DbBuilder) -> Result<D>,
) -> *mut H {
    // SAFETY: the caller's contract.
    unsafe {
        let opened = builder(&*options, name, families).and_then(open).map(H::from).and_then(|opened| {
            families.map_or(Ok(()), |families| families.hand_out(&opened.database().0))?;
            Ok(opened)
        });
        report(errptr, opened).map_or(std::ptr::null_mut(), hand_out)
    }
}

unsafe fn builder(
    options: &rocksdb_options_t,
    name: *const c_char,
    families: Option<Families>,
) -> Result<DbBuilder> {
    options.settings.check()?;
    // SAFETY: the caller's contract.
    unsafe {
        let families = match families {
            Some(families) => families.descriptors()?,
            None => vec![options.descriptor("default")?],
        };
        Ok(options.builder(text(name))?.column_families(families))
    }
}
