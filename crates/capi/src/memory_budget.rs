//! `outcrop_memory_budget_*`: one limit of memory for the databases that share it. RocksDB's C API has no such functions: they are
//! declared in `include/outcrop/c.h`.
//!
//! A program that cannot call them, or was not written for Outcrop, gets one for all of its databases by the environment variable
//! `OUTCROP_MEMORY_BUDGET`. It was written for caches and write buffer managers of its own: those are then not used.

use crate::memory::{Errptr, give_back, hand_out, report};
use crate::options::rocksdb_options_t;
use outcrop::{ColumnFamilyDescriptor, DbObjects, Error, MemoryBudget, Result};
use outcrop_options::DbOptions;
use outcrop_options::kept::CF_KEPT;
use std::sync::{Arc, OnceLock};

/// The variable of the environment that gives all databases of a process one budget: bytes, or a number with K, M or G behind it.
const VARIABLE: &str = "OUTCROP_MEMORY_BUDGET";

/// The budget of the process, if the variable asks for one. It is read when the first database is opened.
///
/// # Errors
/// InvalidArgument naming the variable.
pub(crate) fn of_process() -> Result<Option<Arc<MemoryBudget>>> {
    static OF_PROCESS: OnceLock<Result<Option<Arc<MemoryBudget>>>> = OnceLock::new();
    let made = OF_PROCESS.get_or_init(|| {
        let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
        let text = text.to_string_lossy();
        let bytes = bytes(&text).ok_or_else(|| {
            Error::invalid_argument(format!("{VARIABLE}={text}: use bytes, or a number with K, M or G"))
        })?;
        let budget = MemoryBudget::new(bytes);
        budget.map(Some).map_err(|error| error.within(format!("{VARIABLE}={text}")))
    });
    made.clone()
}

/// The bytes that a text such as `512M` or `2GiB` says.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[end..].trim().to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Gives a database the budget of the process in place of its own account of memtables, unless it has a budget.
///
/// # Errors
/// Those of [`of_process`].
pub(crate) fn govern(options: &mut DbOptions, objects: &mut DbObjects) -> Result<()> {
    if objects.memory_budget.is_none() {
        objects.memory_budget = of_process()?;
        if objects.memory_budget.is_some() {
            objects.write_buffer_manager = None;
            options.db_write_buffer_size = 0;
        }
    }
    Ok(())
}

/// Takes the caches of its own from a column family, if the process has a budget.
///
/// # Errors
/// Those of [`of_process`].
pub(crate) fn govern_family(family: &mut ColumnFamilyDescriptor) -> Result<()> {
    if of_process()?.is_some() {
        (family.parts.block_cache, family.parts.blob_cache) = (None, None);
        let table = &mut family.options.table;
        (table.block_cache_bytes, table.no_block_cache) = (None, false);
        family.options.kept.set(CF_KEPT, "blob_cache", "nullptr")?;
    }
    Ok(())
}

pub struct outcrop_memory_budget_t(Arc<MemoryBudget>);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn outcrop_memory_budget_create(
    bytes: u64,
    errptr: Errptr,
) -> *mut outcrop_memory_budget_t {
    boundary!(errptr, {
        match report(errptr, MemoryBudget::new(bytes)) {
            Some(budget) => hand_out(outcrop_memory_budget_t(budget)),
            None => std::ptr::null_mut(),
        }
    })
}

/// The budget that `OUTCROP_MEMORY_BUDGET` gives all databases of the process; null without one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn outcrop_memory_budget_of_process(errptr: Errptr) -> *mut outcrop_memory_budget_t {
    boundary!(errptr, {
        let budget = report(errptr, of_process()).flatten();
        budget.map_or(std::ptr::null_mut(), |budget| hand_out(outcrop_memory_budget_t(budget)))
    })
}

/// Databases and options that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn outcrop_memory_budget_destroy(budget: *mut outcrop_memory_budget_t) {
    boundary!(give_back(budget))
}

/// Null takes it away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn outcrop_options_set_memory_budget(
    options: *mut rocksdb_options_t,
    budget: *mut outcrop_memory_budget_t,
) {
    boundary!((*options).objects.memory_budget = budget.as_ref().map(|budget| budget.0.clone()))
}

/// Figures of a budget, in bytes.
macro_rules! figures {
    ($($name:ident |$budget:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(budget: *const outcrop_memory_budget_t) -> u64 {
            boundary!({
                let $budget = &*(*budget).0;
                $body
            })
        }
    )*};
}

figures! {
    outcrop_memory_budget_bytes |b| b.bytes();
    outcrop_memory_budget_usage |b| b.usage().total();
    outcrop_memory_budget_usage_of_blocks |b| b.usage().blocks;
    outcrop_memory_budget_usage_of_memtables |b| b.usage().memtables;
    outcrop_memory_budget_usage_of_tables |b| b.usage().tables;
    outcrop_memory_budget_usage_of_iterators |b| b.usage().iterators;
    outcrop_memory_budget_usage_of_jobs |b| b.usage().jobs;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_bytes_or_a_number_with_a_letter() {
        let sizes = [
            ("16777216", 16 << 20),
            ("64K", 64 << 10),
            ("512M", 512 << 20),
            ("2GiB", 2 << 30),
            (" 3 gb ", 3 << 30),
        ];
        for (text, size) in sizes {
            assert_eq!(bytes(text), Some(size), "{text}");
        }
        for text in ["", "M", "2T", "1.5G", "-1", "99999999999G", "2Gx"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
