//! Functions of parts of RocksDB that the engine does not have: they exist, and fail.

mod remote_compaction;
mod styles;
mod traces;

pub use remote_compaction::*;
pub(crate) use remote_compaction::{
    OPEN_AND_COMPACT_OPTIONS_NOTES, OPEN_AND_COMPACT_OPTIONS_OBJECT, REMOTE_COMPACTION_REFUSED,
};
pub use styles::*;
pub(crate) use styles::{
    CUCKOO_OPTIONS_NOTES, CUCKOO_OPTIONS_OBJECT, FIFO_COMPACTION_OPTIONS_NOTES,
    UNIVERSAL_COMPACTION_OPTIONS_NOTES,
};
pub use traces::*;
pub(crate) use traces::{
    BLOCK_CACHE_TRACE_OPTIONS_NOTES, BLOCK_CACHE_TRACE_OPTIONS_OBJECT,
    BLOCK_CACHE_TRACE_WRITER_OPTIONS_NOTES, BLOCK_CACHE_TRACE_WRITER_OPTIONS_OBJECT, REPLAY_OPTIONS_NOTES,
    REPLAY_OPTIONS_OBJECT, TRACE_OPTIONS_NOTES, TRACE_OPTIONS_OBJECT, TRACES_REFUSED,
};

use crate::options::rocksdb_options_t;
use crate::settings::{Fate, Note};
use libc::c_void;

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

/// Setters of objects whose makers are refused.
macro_rules! refused_objects {
    ($($name:ident $option:literal $why:literal;)*) => {
        pub(crate) const LISTENER_NOTES: &[Note] = &[$(
            Note { function: stringify!($name), fate: Fate::Checked, why: $why },
        )*];

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(options: *mut rocksdb_options_t, object: Ptr) {
                boundary!(match options.as_mut() {
                    Some(options) if object.is_null() => options.settings.allow($option),
                    Some(options) => options.settings.refuse($option, "an object"),
                    None => {}
                })
            }
        )*
    };
}

refused_objects! {
    rocksdb_options_set_compaction_service "compaction_service" "compactions run in the database's process";
}
