//! `outcrop_memory_budget_*`: one limit of memory for the databases that share it. RocksDB's C API has no such functions: they are
//! declared in `include/outcrop/c.h`.

use crate::memory::{Errptr, give_back, hand_out, report};
use crate::options::rocksdb_options_t;
use outcrop::MemoryBudget;
use std::sync::Arc;

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
