//! One round of the stress, drawn: what stays for a whole process, and the options of each opening.

use outcrop_base::random::SplitMix as Random;

/// All that stays for a process.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where everything is drawn from.
    pub seed: u64,
    /// Threads that write.
    pub writers: usize,
    /// Threads that read.
    pub readers: usize,
    /// Writes of each thread, from an opening to the close.
    pub writes: u64,
    /// Bytes of the longest values.
    pub longest: u64,
    /// Options that an opening may not change.
    fixed: Vec<String>,
}

/// Flags of an opening, and how seldom each is.
const FLAGS: [(&str, u64); 24] = [
    ("enable_pipelined_write=true", 3),
    ("atomic_flush=true", 4),
    ("manual_wal_flush=true", 6),
    ("recycle_log_file_num=2", 3),
    ("wal_compression=kZSTD", 4),
    ("max_total_wal_size=200000", 3),
    ("allow_concurrent_memtable_write=false", 5),
    ("max_open_files=20", 3),
    ("allow_mmap_reads=true", 4),
    ("use_direct_reads=true", 5),
    ("use_direct_io_for_flush_and_compaction=true", 5),
    ("max_subcompactions=3", 3),
    ("max_write_buffer_number=4", 2),
    ("enable_blob_files=true", 2),
    ("min_blob_size=300", 2),
    ("enable_blob_garbage_collection=true", 2),
    ("blob_garbage_collection_age_cutoff=1.0", 2),
    ("compression=kZSTD", 3),
    ("table.cache_index_and_filter_blocks=true", 3),
    ("table.filter_policy=bloomfilter:10:false", 2),
    ("table.block_size=512", 3),
    ("table.format_version=5", 3),
    ("bytes_per_sync=16384", 4),
    ("max_manifest_file_size=2000", 4),
];

/// Pairs that RocksDB refuses together.
const EXCLUDED: [(&str, &str); 2] = [
    ("enable_pipelined_write=true", "atomic_flush=true"),
    ("allow_mmap_reads=true", "use_direct_reads=true"),
];

impl Plan {
    /// The process with this seed.
    pub fn draw(seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let mut fixed: Vec<String> = [
            "write_buffer_size=65536",
            "level0_file_num_compaction_trigger=3",
            "max_bytes_for_level_base=262144",
            "target_file_size_base=65536",
            "WAL_ttl_seconds=3600",
            "WAL_size_limit_MB=1",
        ]
        .map(String::from)
        .to_vec();
        // The pools of threads are the process's.
        fixed.push(format!("max_background_jobs={}", random.pick(&[2, 4, 6])));
        if random.one_in(4) {
            fixed.push("compaction_style=kCompactionStyleUniversal".into());
        }
        Plan {
            seed,
            writers: random.pick(&[1, 2, 4, 8, 12]),
            readers: random.pick(&[1, 2, 3, 4]),
            writes: random.pick(&[60, 150, 400]),
            longest: random.pick(&[80, 1000, 6000]),
            fixed,
        }
    }

    /// The options of an opening.
    pub fn options(&self, cycle: u64) -> Vec<String> {
        let mut random = Random::new(self.seed ^ (cycle + 1) << 40);
        let mut options = self.fixed.clone();
        for (flag, one_in) in FLAGS {
            let clashes = EXCLUDED
                .iter()
                .any(|(one, other)| flag == *other && options.iter().any(|option| option == one));
            if random.one_in(one_in) && !clashes {
                options.push(flag.to_string());
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_repeated_and_reach_every_flag() {
        assert_eq!(format!("{:?}", Plan::draw(3)), format!("{:?}", Plan::draw(3)));
        let options: Vec<String> = (0..60).flat_map(|seed| Plan::draw(seed).options(seed % 3)).collect();
        for (flag, _) in FLAGS {
            assert!(options.iter().any(|option| option == flag), "{flag}");
        }
        for seed in 0..60 {
            let options = Plan::draw(seed).options(1);
            let has = |flag: &str| options.iter().any(|option| option == flag);
            assert!(EXCLUDED.iter().all(|(one, other)| !(has(one) && has(other))));
        }
    }
}
