//! A data block in memory: its contents, after a directory that finds entries without walking.
//!
//! ```text
//! frame = header: 10 x u32 | prefix: u64 ... | entry offset: u32 ... | contents as uncompressed
//! ```
//! *Anchors* are the entries the directory knows: every entry if entries are large, the restart points if they
//! are small. For each anchor it has the 8 key bytes after what all keys of the block share, and the entry's
//! offset. With values of 400 bytes this saves the walk over up to 16 entries, each of which is a cache miss.
//!
//! The directory is built once, when the block is loaded and its checksum was verified; the walk that builds
//! it also checks that every entry lies within the block, and that keys ascend: searches in a block whose keys do
//! not would miss rows without a word. Keys under an order other than bytewise have no prefixes: their blocks are
//! searched by restart keys. Under an order of the application they are not compared, which takes calls.
//!
//! - `entry`: entries and restart points of the contents. `directory`: building it and writing the frame. `view`: a frame, taken apart.
//! - `lookup`: one key, for gets. `cursor`: a position that moves, for scans. `prefetch`: what both ask for ahead.
//!
//! Invariant: decoding never reads outside the frame and never panics, whatever the contents are.

mod cursor;
mod directory;
mod entry;
mod lookup;
mod prefetch;
mod view;

pub use cursor::Cursor;
pub use directory::{Directory, write_plain_frame};
pub use entry::{Contents, HASH_INDEX_BIT, SEPARATED_BIT, decode_entry, packed_word};
pub use lookup::{Searched, each_looked_at, get};
pub use prefetch::{AHEAD, prefetch_directory, prefetch_entries_from, prefetch_entry};
pub use view::entries_len;
