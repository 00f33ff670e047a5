//! One function per decoder, to be called with bytes that nobody vouches for.
//!
//! ```text
//! bytes -> Target::run -> decoder -> what it accepted is read again, both ways, and compared
//! ```
//! A target panics if a decoder does, or if what it accepted contradicts itself: it re-encodes to something
//! that decodes to something else, an iterator goes on for longer than there are bytes, two ways of reading
//! differ. Refusing is always allowed.
//!
//! Checksums keep mutated bytes out of the code behind them. Each target therefore runs on the input as it is
//! and, with `Target::repair`, once more with checksums made to match. Parts of tables are tested in a table
//! that is built around them (`assemble.rs`).
//! Next: `seeds.rs` for where the corpus comes from, `mutate.rs`, and `main.rs`, the fuzzer that nothing guides; `fuzz/` has
//! the one that coverage guides.
#![forbid(unsafe_code)]

mod assemble;
mod bytes_file;
mod checks;
mod damaged;
mod database;
mod logs;
pub mod mutate;
mod plain;
mod repair;
pub mod seeds;
mod tables;

/// A decoder under test.
pub struct Target {
    /// Name of the target and of its corpus.
    pub name: &'static str,
    /// Feeds the decoder.
    run: fn(&[u8]),
    /// Makes checksums match what they cover.
    repair: Option<fn(&mut [u8])>,
    /// Bytes that one run may hold at a time.
    pub memory: usize,
    /// Fixtures that are inputs as they are: endings of file names.
    pub fixtures: &'static [&'static str],
}

impl Target {
    /// Feeds `input`, as it is and repaired, to the decoder.
    ///
    /// # Panics
    /// If the decoder panics or contradicts itself.
    pub fn run(&self, input: &[u8]) {
        (self.run)(input);
        if let Some(repair) = self.repair {
            let mut repaired = input.to_vec();
            repair(&mut repaired);
            if repaired != input {
                (self.run)(&repaired);
            }
        }
    }
}

/// The limits of one run: far above what small inputs need, far below what a forged length can ask for.
const MEMORY: usize = 64 << 20;
/// A compressed block may hold a gibibyte in a few bytes, and is refused only beyond that.
const DECOMPRESSED: usize = MEMORY + (1 << 30);

/// All targets.
pub const TARGETS: &[Target] = &[
    plain("coding", plain::coding),
    plain("keys", plain::keys),
    plain("wide_columns", plain::wide_columns),
    plain("write_batch", plain::write_batch),
    plain("options", plain::options),
    plain("file_name", plain::file_name),
    plain("blob_index", plain::blob_index),
    plain("version_edit", plain::version_edit),
    plain("backup_meta", plain::backup_meta),
    plain("ttl_value", plain::ttl_value),
    Target { repair: Some(repair::log), fixtures: &[".log"], ..plain("wal", logs::wal) },
    Target { repair: Some(repair::log), fixtures: &["MANIFEST-000005"], ..plain("manifest", logs::manifest) },
    Target { repair: Some(repair::blob), fixtures: &[".blob"], ..plain("blob_file", plain::blob_file) },
    plain("block", tables::block),
    plain("index", tables::index),
    plain("filter", tables::filter),
    plain("range_del", tables::range_del),
    plain("properties", tables::properties),
    plain("metaindex", tables::metaindex),
    Target { memory: DECOMPRESSED, ..plain("compressed", tables::compressed) },
    Target {
        repair: Some(repair::table),
        memory: DECOMPRESSED,
        fixtures: &[".sst"],
        ..plain("table", tables::table)
    },
    Target {
        repair: Some(repair::table),
        memory: DECOMPRESSED,
        fixtures: &[".sst"],
        ..plain("damaged_table", damaged::damaged_table)
    },
    Target { repair: Some(database::repair), memory: DECOMPRESSED, ..plain("database", database::database) },
];

const fn plain(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, repair: None, memory: MEMORY, fixtures: &[] }
}

/// The target of this name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no fuzz target {name}"))
}

#[cfg(test)]
mod tests;
