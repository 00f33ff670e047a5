//! Nanoseconds per table operation, cached, on 16 MiB tables.
//!
//! `cargo bench -p outcrop-table`; run by `cargo test` on a few rows to see that it works.

use outcrop_base::keys::{Trailer, append_internal_key};
use outcrop_base::{Comparator, LookupKey, SeqNum, ValueType};
use outcrop_cache::{Cache, CacheOptions};
use outcrop_env::{FileSystem, OpenRead, OpenWrite, memory::MemoryFs};
use outcrop_options::{BlockBasedTableOptions, CompressionOptions, CompressionType, FilterPolicy};
use outcrop_table::*;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn key(number: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn scramble(i: u64, n: u64) -> u64 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17) % n
}

fn run(value_len: usize, count: u64) {
    println!("pairs of 20 + {value_len} bytes");
    let report = |what: &str, count: u64, start: Instant| {
        println!("  {what:<16} {:>8.1} ns/op", start.elapsed().as_nanos() as f64 / count as f64);
    };
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/t")).unwrap();
    let path = Path::new("/t/000001.sst");
    let options = TableWriterOptions {
        comparator: Comparator::Bytewise,
        table: BlockBasedTableOptions {
            block_size: 8192,
            filter_policy: FilterPolicy::Bloom { bits_per_key: 10.0 },
            ..BlockBasedTableOptions::default()
        },
        compression: CompressionType::None,
        compression_opts: CompressionOptions::default(),
        column_family_id: 0,
        column_family_name: "default".into(),
        merge_operator_name: None,
        db_id: "bench".into(),
        session_id: "BENCH".into(),
        host_id: String::new(),
        file_number: 1,
        creation_time: 0,
        oldest_key_time: 0,
        newest_key_time: 0,
        file_creation_time: 0,
        omit_filter: false,
        prefix_extractor: None,
        level: None,
        external: false,
    };
    let file = fs.create(path, OpenWrite { buffer_size: 1 << 20, ..OpenWrite::default() }).unwrap();
    let mut writer = TableWriter::new(file, options);
    let value = vec![7u8; value_len];
    let mut ikey = Vec::new();
    let start = Instant::now();
    for i in 0..count {
        ikey.clear();
        append_internal_key(&mut ikey, &key(i), Trailer::new(SeqNum(i + 1), ValueType::Value));
        writer.add(&ikey, &value).unwrap();
    }
    writer.finish().unwrap();
    report("add", count, start);
    writer.sync_and_close(false).unwrap();

    let cache = Cache::new(CacheOptions { capacity: 256 << 20, estimated_entry_charge: 0 });
    let table = Arc::new(
        TableReader::open(
            fs.open_read(path, OpenRead::default()).unwrap(),
            TableReaderOptions {
                comparator: Comparator::Bytewise,
                cache_file_id: Cache::new_file_id(),
                cache: Some(cache),
                cache_index_and_filter_blocks: false,
                hold_in_cache: false,
                expected_unique_id: None,
                largest_seqno: SeqNum::ZERO,
                prefix_extractor: None,
                auto_readahead: Default::default(),
                monitor: outcrop_monitor::Monitor::none(),
                placement: Default::default(),
                pace: None,
                read_amp_bytes_per_bit: 0,
            },
        )
        .unwrap(),
    );
    let mut iter = table.iter(TableIterOptions::default());
    for what in ["next, loading", "next, cached"] {
        let start = Instant::now();
        iter.seek_to_first();
        let mut seen = 0;
        while iter.valid() {
            seen += u64::from(black_box(iter.value()).len() == value_len);
            iter.next();
        }
        report(what, count, start);
        assert_eq!(seen, count, "the iterator sees every row");
    }
    let mut hits = 0;
    let start = Instant::now();
    for i in 0..count {
        let key = key(scramble(i, count));
        let lookup = LookupKey::new(&key);
        if table.may_contain(lookup.hash, outcrop_monitor::Counting::OFF) {
            table
                .get(&lookup, SeqNum::MAX, Loading::Kept, |_, _, value, _| {
                    hits += u64::from(black_box(value).len() == value_len);
                    ControlFlow::Break(())
                })
                .unwrap();
        }
    }
    report("get", count, start);
    assert_eq!(hits, count, "every row is found");
    let start = Instant::now();
    for i in 0..count {
        iter.seek(&key(scramble(i, count)), Trailer::MAX);
        assert!(black_box(iter.valid()), "every row is found");
    }
    report("seek", count, start);
}

fn main() {
    let tiny = !std::env::args().any(|argument| argument == "--bench");
    run(400, if tiny { 500 } else { 40_000 });
    run(20, if tiny { 500 } else { 400_000 });
}
