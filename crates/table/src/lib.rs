//! Block-based tables: sorted, immutable files of internal keys and values, in RocksDB's format.
//!
//! ```text
//! [data blocks ...][filter][index][dictionary][range tombstones][properties][metaindex][footer]
//! block on disk = contents | compression type: u8 | checksum: u32
//! ```
//! Format versions 2 to 7 are written and read, with every codec, checksum, index and filter RocksDB has for
//! them. Bytes: `docs/format/table.md`. Values too large for tables go to [`blob`] files.
//!
//! A block in memory is a *frame*: its contents after a small directory that lets a lookup find its entry
//! without walking (`block.rs`). The index of an open table is a frame too (`index.rs`). Rarer forms of blocks
//! are rewritten into the usual one when they are loaded (`rewrite.rs`): the paths of get and next know one form.
//! Next: `reader.rs` for lookups, `writer/mod.rs` for the other direction.
#![forbid(unsafe_code)]

pub mod blob;
mod block;
mod block_builder;
mod block_sink;
mod compress;
mod counts;
mod damaged;
mod filter;
mod format;
mod hash_index;
mod index;
mod index_writer;
mod iter;
mod meta_blocks;
mod placement;
mod prefixes;
mod properties;
mod range_del;
mod read_amp;
mod readahead;
mod reader;
mod rewrite;
mod source;
pub mod unique_id;
mod walk;
mod writer;

pub use block_sink::StoredBlocks;
pub use damaged::{DamagedTable, ExpectedTable, TableEntries, TablePart};
pub use iter::{TableIter, TableIterOptions};
pub use placement::Placement;
pub use properties::{NEWEST_TIMESTAMP, OLDEST_TIMESTAMP, TableProperties};
pub use range_del::RangeTombstone;
pub use readahead::AutoReadahead;
pub use reader::{
    BlockPlace, Loading, Reading, TableReader, TableReaderOptions, prefetch_directory, prefetch_entry,
};
pub use walk::BlockWalk;
pub use writer::{TableSummary, TableWriter, TableWriterOptions, check_options};

#[cfg(test)]
mod tests;
