//! Nanoseconds per cache operation on blocks of 8.6 KB.
//!
//! `cargo bench -p outcrop-cache`; run by `cargo test` on a small cache to see that it works.

use outcrop_cache::{Cache, CacheKey, CacheOptions, Priority};
use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let tiny = !std::env::args().any(|argument| argument == "--bench");
    let capacity: usize = if tiny { 8 << 20 } else { 1 << 30 };
    let blocks = (capacity / 9216 * 9 / 10) as u64;
    let cache = Cache::new(CacheOptions { capacity, estimated_entry_charge: 0 });
    for offset in 0..blocks {
        drop(cache.insert(CacheKey { file: 1, offset }, Priority::Low, 8600, |bytes| bytes.fill(1)));
    }
    for threads in [1, 2] {
        let lookups: u64 = if tiny { 1000 } else { 3_000_000 };
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let cache = &cache;
                scope.spawn(move || {
                    let mut hits = 0;
                    for i in 0..lookups {
                        let offset = ((i + thread).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17) % blocks;
                        hits += u64::from(
                            cache
                                .lookup(CacheKey { file: 1, offset })
                                .is_some_and(|b| black_box(&*b).len() == 8600),
                        );
                    }
                    assert!(hits > lookups * 9 / 10, "nearly all blocks are cached");
                });
            }
        });
        println!(
            "hit, {threads} thread(s)      {:>8.1} ns/op per thread",
            start.elapsed().as_nanos() as f64 / lookups as f64
        );
    }
    let inserts: u64 = if tiny { 1000 } else { 300_000 };
    let start = Instant::now();
    for offset in 0..inserts {
        drop(cache.insert(CacheKey { file: 2, offset }, Priority::Low, 8600, |bytes| bytes.fill(1)));
    }
    println!("insert and evict         {:>8.1} ns/op", start.elapsed().as_nanos() as f64 / inserts as f64);
    let obsolete: HashSet<u64> = (3..11).collect();
    let mut sweeps: Vec<u64> = (0..21)
        .map(|_| {
            for offset in 0..if tiny { 1 } else { 20 } {
                let insert = |file| {
                    cache.insert(CacheKey { file, offset }, Priority::Low, 8600, |bytes| bytes.fill(1))
                };
                obsolete.iter().for_each(|file| drop(insert(*file)));
            }
            let start = Instant::now();
            cache.erase_files(&obsolete);
            start.elapsed().as_micros() as u64
        })
        .collect();
    sweeps.sort_unstable();
    println!("blocks of obsolete files go  {:>8} us per call, at most {}", sweeps[10], sweeps[20]);
    assert!(
        obsolete.iter().all(|file| cache.lookup(CacheKey { file: *file, offset: 0 }).is_none()),
        "they are gone"
    );
    assert!(cache.mapped_bytes() <= capacity + capacity / 10, "memory stays within the capacity");
}
