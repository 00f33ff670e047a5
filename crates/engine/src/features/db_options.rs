//! Changing options of the database as a whole while it is open.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc`, `DBImpl::SetDBOptions`.

use crate::core::Core;
use crate::info_log::log_line;
use crate::options_file;
use crate::scheduler::threads;
use outcrop_base::{Error, Result};
use outcrop_options::{file, validate};
use std::sync::Arc;

/// See [`crate::Db::set_db_options`].
pub fn set(core: &Core, options: &[(&str, &str)]) -> Result<()> {
    if options.is_empty() {
        return Err(Error::invalid_argument("empty input"));
    }
    core.versions.refuse_if_read_only()?;
    // HOLDS options_file across the write: as in `set_options`.
    let _one_at_a_time = core.options_file.lock();
    let before = core.ctx.live.load_full();
    let mut changed = (*before).clone();
    for (name, value) in options {
        file::set_mutable_of_database(&mut changed, name, value)?;
    }
    validate::db(&changed)?;
    if changed.bytes_per_sync == 0 {
        // Source: RocksDB `DBImpl::SetDBOptions`.
        changed.bytes_per_sync = 1 << 20;
    }
    if changed.delayed_write_rate != before.delayed_write_rate {
        core.versions.stall.set_full_rate(changed.delayed_write_rate);
    }
    core.ctx.tables.set_max_open_files(changed.max_open_files);
    core.ctx.live.store(Arc::new(changed));
    threads::options_changed(core);
    for (name, value) in options {
        log_line!(core.ctx, "SetDBOptions(), inputs: {name}: {value}");
    }
    options_file::write_locked(core)
}
