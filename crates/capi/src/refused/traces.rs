//! Refused: traces and replays.
//!
//! The functions exist so that bindings load. Those that could start something report NotSupported; the others are
//! about objects that can then not exist, and give null or 0.

use crate::settings::Flag;
use libc::{c_double, c_void, size_t};

/// Any pointer: nothing here looks behind one.
type Ptr = *mut c_void;

kept_object! {
    rocksdb_block_cache_trace_options_t, BLOCK_CACHE_TRACE_OPTIONS_OBJECT:
    rocksdb_block_cache_trace_options_create, rocksdb_block_cache_trace_options_destroy,
    "traces are not supported; what takes these options fails"
}

kept_settings! { rocksdb_block_cache_trace_options_t, BLOCK_CACHE_TRACE_OPTIONS_NOTES:
    Accepted "traces are not supported; what takes these options fails" {
        "sampling_frequency" u64 = 1;
            set rocksdb_block_cache_trace_options_set_sampling_frequency get rocksdb_block_cache_trace_options_get_sampling_frequency -> u64;
    }
}

kept_object! {
    rocksdb_block_cache_trace_writer_options_t, BLOCK_CACHE_TRACE_WRITER_OPTIONS_OBJECT:
    rocksdb_block_cache_trace_writer_options_create, rocksdb_block_cache_trace_writer_options_destroy,
    "traces are not supported; what takes these options fails"
}

kept_settings! { rocksdb_block_cache_trace_writer_options_t, BLOCK_CACHE_TRACE_WRITER_OPTIONS_NOTES:
    Accepted "traces are not supported; what takes these options fails" {
        "max_trace_file_size" u64 = 68719476736;
            set rocksdb_block_cache_trace_writer_options_set_max_trace_file_size get rocksdb_block_cache_trace_writer_options_get_max_trace_file_size -> u64;
    }
}

kept_object! {
    rocksdb_replay_options_t, REPLAY_OPTIONS_OBJECT:
    rocksdb_replay_options_create, rocksdb_replay_options_destroy,
    "traces are not supported; what takes these options fails"
}

kept_settings! { rocksdb_replay_options_t, REPLAY_OPTIONS_NOTES:
    Accepted "traces are not supported; what takes these options fails" {
        "fast_forward" c_double = 1.0;
            set rocksdb_replay_options_set_fast_forward get rocksdb_replay_options_get_fast_forward -> c_double;
        "num_threads" u32 = 1;
            set rocksdb_replay_options_set_num_threads get rocksdb_replay_options_get_num_threads -> u32;
    }
}

kept_object! {
    rocksdb_trace_options_t, TRACE_OPTIONS_OBJECT:
    rocksdb_trace_options_create, rocksdb_trace_options_destroy,
    "traces are not supported; what takes these options fails"
}

kept_settings! { rocksdb_trace_options_t, TRACE_OPTIONS_NOTES:
    Accepted "traces are not supported; what takes these options fails" {
        "filter" u64 = 0;
            set rocksdb_trace_options_set_filter get rocksdb_trace_options_get_filter -> u64;
        "max_trace_file_size" u64 = 68719476736;
            set rocksdb_trace_options_set_max_trace_file_size get rocksdb_trace_options_get_max_trace_file_size -> u64;
        "preserve_write_order" Flag = Flag(0);
            set rocksdb_trace_options_set_preserve_write_order get rocksdb_trace_options_get_preserve_write_order -> Flag;
        "sampling_frequency" u64 = 1;
            set rocksdb_trace_options_set_sampling_frequency get rocksdb_trace_options_get_sampling_frequency -> u64;
    }
}

refused! { TRACES_REFUSED:
    "traces are not supported" {
        rocksdb_end_block_cache_trace(Ptr) @ errptr;
        rocksdb_end_io_trace(Ptr) @ errptr;
        rocksdb_end_trace(Ptr) @ errptr;
        rocksdb_new_default_replayer(Ptr, Ptr, size_t, Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_replayer_destroy(Ptr);
        rocksdb_replayer_get_header_timestamp(Ptr) -> u64;
        rocksdb_replayer_prepare(Ptr) @ errptr;
        rocksdb_replayer_replay(Ptr, Ptr) @ errptr;
        rocksdb_start_block_cache_trace(Ptr, Ptr, Ptr, Ptr, Ptr) @ errptr;
        rocksdb_start_block_cache_trace_with_options(Ptr, Ptr, Ptr, Ptr, Ptr, Ptr) @ errptr;
        rocksdb_start_io_trace(Ptr, Ptr, Ptr, Ptr, Ptr) @ errptr;
        rocksdb_start_trace(Ptr, Ptr, Ptr, Ptr, Ptr) @ errptr;
        rocksdb_trace_reader_close(Ptr) @ errptr;
        rocksdb_trace_reader_create(Ptr, Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_trace_reader_destroy(Ptr);
        rocksdb_trace_reader_read(Ptr, Ptr) @ errptr -> Ptr;
        rocksdb_trace_reader_reset(Ptr) @ errptr;
    }
}
