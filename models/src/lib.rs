//! Files of the engine that hold a protocol between threads, compiled against loom: `tests/models.rs` runs them in every
//! order of steps that the memory model allows.
//!
//! ```text
//! crates/engine/src/write/group.rs   who leads, who follows, and that nobody is forgotten
//! crates/cache/src/table.rs          references, eviction and refilling of a slot
//! crates/memtable/src/*.rs           all but the pool: nodes, links, the hash index, chunks of the arena
//! ```
//! The files are the product's own, byte for byte: they take locks and atomics from `crate::sync`, which is another
//! module here. Only with `--cfg loom` is there anything; `cargo xtask loom` sets it.
#![cfg(loom)]

pub mod sync;

pub mod write;

#[path = "../../crates/cache/src/table.rs"]
#[allow(dead_code, reason = "only slots are modelled")]
pub mod cache_table;

#[path = "../../crates/memtable/src/arena.rs"]
pub mod arena;
#[path = "../../crates/memtable/src/hash_index.rs"]
pub mod hash_index;
#[path = "../../crates/memtable/src/memtable.rs"]
#[allow(dead_code, reason = "pools are not modelled")]
pub mod memtable;
pub mod pool;
#[path = "../../crates/memtable/src/prefix_bloom.rs"]
pub mod prefix_bloom;
#[path = "../../crates/memtable/src/range_tombstones.rs"]
pub mod range_tombstones;
#[path = "../../crates/memtable/src/skiplist.rs"]
pub mod skiplist;
