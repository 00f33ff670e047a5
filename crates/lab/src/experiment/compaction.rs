//! The options that a database is opened with: the published configurations of compaction by name, changed as an
//! experiment says.
//!
//! ```text
//! leveled        what everything has unless told otherwise
//! universal      few merges of whole sorted runs; universal_tm: fewer still, with trivial moves and split indexes
//! blob           leveled, with values in files of their own
//! ```
//! Source: the configurations of the published db_bench reports.
//! Next: `steps.rs`.

use super::steps::Sizes;
use super::{Config, WorkloadKind};
use outcrop_lab_load::OpenOptions;
use outcrop_lab_load::open::{IndexBlocks, table_option};

/// One published configuration.
pub struct Compaction {
    /// Name in experiments.
    pub name: &'static str,
    num_levels: i32,
    /// L0 tables that start a compaction, slow writes, stop writes.
    level0_triggers: [i32; 3],
    block_size: usize,
    /// Levels above it are not compressed.
    min_level_to_compress: Option<i32>,
    index: IndexBlocks,
    is_universal: bool,
    blob_cache: bool,
    /// Options without a setter of their own.
    text: &'static str,
    /// Those that old versions do not know.
    wanted: &'static [&'static str],
}

const LEVELED: Compaction = Compaction {
    name: "leveled",
    num_levels: 8,
    level0_triggers: [4, 20, 30],
    block_size: 8192,
    min_level_to_compress: Some(3),
    index: IndexBlocks { cached: true, pin_l0: true, partition_bytes: None },
    is_universal: false,
    blob_cache: false,
    text: "",
    wanted: &[],
};

const UNIVERSAL: Compaction = Compaction {
    name: "universal",
    num_levels: 40,
    level0_triggers: [8, 20, 30],
    min_level_to_compress: None,
    index: IndexBlocks { cached: false, pin_l0: false, partition_bytes: None },
    is_universal: true,
    text: "compaction_style=kCompactionStyleUniversal;compaction_options_universal={min_merge_width=2;\
           max_merge_width=20;size_ratio=1;max_size_amplification_percent=200;compression_size_percent=-1;\
           allow_trivial_move=false}",
    ..LEVELED
};

/// All of them; the first is the usual one.
pub const COMPACTIONS: &[Compaction] = &[
    LEVELED,
    UNIVERSAL,
    Compaction {
        name: "universal_tm",
        level0_triggers: [16, 200, 200],
        block_size: 16384,
        index: IndexBlocks { cached: false, pin_l0: false, partition_bytes: Some(65536) },
        text: "compaction_style=kCompactionStyleUniversal;compaction_options_universal={min_merge_width=2;\
               max_merge_width=20;size_ratio=10;max_size_amplification_percent=50;compression_size_percent=-1;\
               allow_trivial_move=true}",
        ..UNIVERSAL
    },
    Compaction {
        name: "blob",
        blob_cache: true,
        text: "enable_blob_files=true;min_blob_size=0;blob_file_size=268435456;\
               enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=0.25",
        wanted: &["blob_garbage_collection_force_threshold=1.0", "blob_file_starting_level=0"],
        ..LEVELED
    },
];

/// The configuration of a name.
pub fn find(name: &str) -> Option<&'static Compaction> {
    COMPACTIONS.iter().find(|compaction| compaction.name == name)
}

impl Config {
    /// How it compacts.
    fn compaction(&self) -> &'static Compaction {
        self.compaction.as_deref().and_then(find).unwrap_or(&COMPACTIONS[0])
    }

    /// Whether its options as text say anything of `name`.
    fn says(&self, name: &str) -> bool {
        self.options.split(';').any(|option| option.split('=').next().is_some_and(|key| key.trim() == name))
    }

    /// All its options as text; what it says itself comes last, and wins.
    pub fn text(&self, sizes: &Sizes) -> String {
        let universal = self.compaction().is_universal || self.options.contains("kCompactionStyleUniversal");
        let threads = format!("max_subcompactions={}", sizes.subcompactions);
        // One thread is what there is anyway.
        let threads = if universal && sizes.subcompactions > 1 { threads.as_str() } else { "" };
        let texts = [self.compaction().text, threads, self.options.trim_end_matches(';')];
        texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(";")
    }
}

/// RocksDB's number of a codec.
pub fn compression_number(name: &str) -> Option<i32> {
    Some(match name {
        "none" => 0,
        "snappy" => 1,
        "lz4" => 4,
        "zstd" => 7,
        _ => return None,
    })
}

/// How a database of `kind` is opened with `config`.
pub fn open_options(kind: WorkloadKind, sizes: &Sizes, config: &Config) -> OpenOptions {
    let compaction = config.compaction();
    let usual = match kind {
        WorkloadKind::Byrx | WorkloadKind::Byos => 0,
        WorkloadKind::Iobuf | WorkloadKind::Iodir => 4,
    };
    let codec = |name: &Option<String>| name.as_deref().and_then(compression_number);
    let compression = codec(&config.compression).or(sizes.codecs[0]).unwrap_or(usual);
    let direct_io = kind == WorkloadKind::Iodir;
    // Obsolete files are looked for once a minute, as in RocksDB's scripts.
    let mut wanted = vec!["delete_obsolete_files_period_micros=62914560".to_string()];
    wanted.extend(compaction.wanted.iter().map(ToString::to_string));
    if direct_io {
        // No page cache keeps what was just written.
        wanted.push(table_option("prepopulate_block_cache", "kFlushOnly"));
    }
    OpenOptions {
        cache_size: config.cache.unwrap_or(sizes.cache),
        block_size: config.block_size.unwrap_or(compaction.block_size),
        bloom_bits: config.bloom_bits.unwrap_or(10.0),
        write_buffer_size: config.write_buffer_size.unwrap_or(16 << 20),
        max_write_buffer_number: 8,
        target_file_size_base: 16 << 20,
        max_bytes_for_level_base: 64 << 20,
        max_bytes_for_level_multiplier: 8.0,
        num_levels: config.num_levels.unwrap_or(compaction.num_levels),
        level0_triggers: config.level0_triggers.unwrap_or(compaction.level0_triggers),
        max_background_jobs: config.background_jobs.unwrap_or(sizes.background_jobs),
        compression,
        direct_io,
        direct_writes: None,
        vector_memtable: false,
        lru_cache: false,
        merge_operator: String::new(),
        dynamic_levels: true,
        index: compaction.index.clone(),
        // Codecs by level would win over one that is said as text.
        min_level_to_compress: compaction
            .min_level_to_compress
            .filter(|_| compression != 0 && !config.says("compression")),
        bottommost_compression: codec(&config.bottommost_compression).or(sizes.codecs[1]),
        prefix_size: sizes.layout.prefix.map_or(0, |prefix| prefix.size),
        blob_cache: compaction.blob_cache && !config.defaults,
        wanted,
        defaults: config.defaults,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(keys: &str) -> Config {
        toml::from_str(keys).unwrap()
    }

    fn open(kind: WorkloadKind, keys: &str) -> OpenOptions {
        open_options(kind, &Sizes::default(), &config(keys))
    }

    #[test]
    fn defaults_are_the_engines_own() {
        assert!(open(WorkloadKind::Byrx, "defaults = true").defaults);
        assert!(!open(WorkloadKind::Byrx, "").defaults);
    }

    #[test]
    fn configurations_are_the_published_ones() {
        let leveled = open(WorkloadKind::Iobuf, "");
        assert_eq!((leveled.num_levels, leveled.level0_triggers), (8, [4, 20, 30]));
        assert_eq!((leveled.block_size, leveled.min_level_to_compress), (8192, Some(3)));
        assert_eq!(leveled.index, IndexBlocks { cached: true, pin_l0: true, partition_bytes: None });
        let universal = open(WorkloadKind::Iobuf, "compaction = 'universal'");
        assert_eq!((universal.num_levels, universal.level0_triggers), (40, [8, 20, 30]));
        assert_eq!((universal.block_size, universal.min_level_to_compress), (8192, None));
        assert!(!universal.index.cached && !universal.index.pin_l0);
        let moving = open(WorkloadKind::Iobuf, "compaction = 'universal_tm'");
        assert_eq!((moving.level0_triggers, moving.block_size), ([16, 200, 200], 16384));
        assert_eq!(moving.index.partition_bytes, Some(65536));
        let blob = open(WorkloadKind::Iobuf, "compaction = 'blob'");
        assert!(blob.blob_cache && blob.num_levels == 8 && blob.wanted.len() == 3);
        assert!(find("tiered").is_none());
    }

    #[test]
    fn a_configurations_own_words_come_last() {
        let sizes = Sizes { subcompactions: 4, ..Sizes::default() };
        let text = |keys: &str| config(keys).text(&sizes);
        assert_eq!(text(""), "");
        assert_eq!(text("options = 'a=1;'"), "a=1");
        let universal = text("compaction = 'universal'\noptions = 'max_subcompactions=1'");
        assert!(universal.contains("size_ratio=1;max_size_amplification_percent=200"), "{universal}");
        assert!(universal.ends_with("allow_trivial_move=false};max_subcompactions=4;max_subcompactions=1"));
        assert!(
            text("compaction = 'universal_tm'").contains("size_ratio=10;max_size_amplification_percent=50")
        );
        assert!(text("compaction = 'blob'").contains("blob_garbage_collection_age_cutoff=0.25"));
    }

    #[test]
    fn codecs_come_from_the_configuration_then_the_workload_then_its_kind() {
        let sizes = Sizes { codecs: [Some(4), Some(7)], ..Sizes::default() };
        let codecs = |kind, sizes: &Sizes, keys: &str| {
            let open = open_options(kind, sizes, &config(keys));
            (open.compression, open.bottommost_compression, open.min_level_to_compress)
        };
        let none = Sizes::default();
        assert_eq!(codecs(WorkloadKind::Byrx, &none, ""), (0, None, None));
        assert_eq!(codecs(WorkloadKind::Iodir, &none, ""), (4, None, Some(3)));
        assert_eq!(codecs(WorkloadKind::Byrx, &sizes, ""), (4, Some(7), Some(3)));
        let own = "compression = 'zstd'\nbottommost_compression = 'none'";
        assert_eq!(codecs(WorkloadKind::Byrx, &sizes, own), (7, Some(0), Some(3)));
        let text = "options = 'num_levels=7; compression=kZSTD'";
        assert_eq!(codecs(WorkloadKind::Iodir, &none, text).2, None, "one codec by text is for all levels");
        assert!(open(WorkloadKind::Iodir, "").wanted.iter().any(|text| text.contains("kFlushOnly")));
        assert!(!open(WorkloadKind::Iobuf, "").wanted.iter().any(|text| text.contains("kFlushOnly")));
    }
}
