//! The cache alone and from many threads: contents, memory, eviction order.

use crate::{Cache, CacheKey, CacheOptions, Charge, GrowthListener, Pinned, Priority, Role, standalone};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn cache(capacity: usize) -> Arc<Cache> {
    Cache::new(CacheOptions { capacity, estimated_entry_charge: 0 })
}

/// Contents that tell the key.
fn pattern(key: CacheKey, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (key.file.wrapping_mul(31) ^ key.offset.wrapping_mul(7) ^ i) as u8).collect()
}

fn put(cache: &Cache, key: CacheKey, len: usize) -> Pinned {
    cache.insert(key, Priority::Low, len, |bytes| bytes.copy_from_slice(&pattern(key, len)))
}

fn key(file: u64, offset: u64) -> CacheKey {
    CacheKey { file, offset }
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn a_block_is_found_until_evicted_and_keeps_its_contents() {
    let cache = cache(1 << 20);
    let pinned = put(&cache, key(1, 0), 5000);
    assert!(!pinned.is_standalone());
    assert_eq!(&*pinned, pattern(key(1, 0), 5000));
    assert_eq!(&*cache.lookup(key(1, 0)).unwrap(), &*pinned);
    assert!(cache.lookup(key(1, 1)).is_none());
    assert_eq!(cache.entry_count(), 1);
    for offset in 1..2000 {
        drop(put(&cache, key(1, offset), 5000));
    }
    assert_eq!(&*pinned, pattern(key(1, 0), 5000), "a pinned block is not evicted");
    drop(pinned);
    cache.clear();
    assert!(cache.lookup(key(1, 0)).is_none());
    assert_eq!((cache.entry_count(), cache.usage()), (0, 0));
}

#[test]
fn the_second_insert_of_a_key_returns_the_first() {
    let cache = cache(1 << 20);
    let first = put(&cache, key(3, 7), 100);
    let second = cache.insert(key(3, 7), Priority::Low, 100, |bytes| bytes.fill(9));
    assert_eq!(&*first, &*second);
    assert_eq!(cache.entry_count(), 1);
}

#[test]
fn memory_to_grow_by_is_asked_for_made_ready_and_used() {
    const SLAB: usize = 64 << 10;
    let cache = cache(7 * SLAB);
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let listener: Arc<GrowthListener> = Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    cache.add_growth_listener(&listener);
    let grow = |cache: &Cache, slabs: usize| {
        let from = cache.entry_count();
        for offset in from as u64.. {
            if cache.usage() >= (slabs - 1) * SLAB + SLAB / 2 {
                break;
            }
            drop(put(cache, key(1, offset), 4000));
        }
    };
    let grow_to = |slabs: usize| grow(&cache, slabs);
    grow_to(3);
    assert_eq!(
        (calls.load(Ordering::Relaxed), cache.mapped_bytes() / SLAB),
        (0, 3),
        "it may be all that is read"
    );
    assert!(!cache.prepare_slab());
    grow_to(4);
    assert_eq!(
        (calls.load(Ordering::Relaxed), cache.mapped_bytes() / SLAB),
        (1, 4),
        "asked, not made by the reader"
    );
    assert!(cache.prepare_slab(), "one more");
    assert!(!cache.prepare_slab());
    assert!(!cache.prepare_slab(), "no more than that");
    assert_eq!(cache.mapped_bytes() / SLAB, 6);
    grow_to(5);
    assert_eq!((calls.load(Ordering::Relaxed), cache.mapped_bytes() / SLAB), (2, 6), "one of them was used");
    while cache.prepare_slab() {}
    assert_eq!(cache.mapped_bytes() / SLAB, 7, "up to the capacity");
    grow_to(7);
    assert_eq!(
        (calls.load(Ordering::Relaxed), cache.mapped_bytes() / SLAB),
        (2, 7),
        "there is nothing to grow by"
    );
    assert_eq!(cache.lookup(key(1, 40)).as_deref(), Some(&pattern(key(1, 40), 4000)[..]));

    let other = Cache::new(CacheOptions { capacity: 7 * SLAB, estimated_entry_charge: 0 });
    other.add_growth_listener(&listener);
    grow(&other, 4);
    while other.prepare_slab() {}
    assert_eq!((calls.load(Ordering::Relaxed), other.mapped_bytes() / SLAB), (3, 6));
    other.set_capacity(5 * SLAB);
    assert_eq!(other.mapped_bytes() / SLAB, 5, "what is ready counts as capacity");
    drop(listener);
    other.set_capacity(8 * SLAB);
    grow(&other, 6);
    assert_eq!(calls.load(Ordering::Relaxed), 3, "a listener that is gone is not called");
}

#[test]
fn what_cannot_be_admitted_stands_alone() {
    let cache = cache(64 << 10);
    let large = put(&cache, key(1, 0), 1 << 20);
    assert!(large.is_standalone());
    assert_eq!(&*large.clone(), pattern(key(1, 0), 1 << 20));
    let pins: Vec<Pinned> = (0..100).map(|offset| put(&cache, key(2, offset), 4000)).collect();
    assert!(pins.iter().any(Pinned::is_standalone), "more is pinned than fits");
    for (offset, pin) in pins.iter().enumerate() {
        assert_eq!(&**pin, pattern(key(2, offset as u64), 4000));
    }
    assert!(cache.mapped_bytes() < 200 << 10);
}

#[test]
fn memory_stays_within_the_capacity_when_sizes_shift() {
    let capacity = 16 << 20;
    let cache = cache(capacity);
    let mut rng = Rng(0x1234_5678_9ABC_DEF1);
    for (round, len) in [4096usize, 8900, 20_000, 700, 60_000, 8900].into_iter().enumerate() {
        let count = 3 * capacity / len;
        for i in 0..count {
            let block = key(round as u64, rng.next());
            let pinned = put(&cache, block, len - i % 50);
            assert_eq!(&*pinned, pattern(block, len - i % 50));
        }
        assert!(cache.mapped_bytes() <= capacity + capacity / 10, "{} bytes mapped", cache.mapped_bytes());
        // Blocks far below the estimated charge run out of descriptors first.
        let wanted = if len < 4096 { capacity / 8 } else { capacity / 2 };
        assert!(cache.usage() >= wanted, "only {} bytes used with blocks of {len}", cache.usage());
    }
    assert_eq!(cache.standalone_inserts(), 0);
}

#[test]
fn a_hot_set_survives_a_scan() {
    let capacity = 8 << 20;
    let cache = cache(capacity);
    let (len, hot) = (8 << 10, 300);
    let mut next_scan = 0;
    let (mut hits, mut asked) = (0, 0);
    for round in 0..40 {
        for offset in 0..hot {
            match cache.lookup(key(1, offset)) {
                Some(_) => hits += u64::from(round > 2),
                None => drop(put(&cache, key(1, offset), len)),
            }
            asked += u64::from(round > 2);
        }
        for _ in 0..10 * capacity / len / 40 {
            drop(put(&cache, key(2, next_scan), len));
            next_scan += 1;
        }
    }
    assert!(hits * 10 > asked * 9, "{hits} hits of {asked}");
}

#[test]
fn index_blocks_outlive_data_blocks() {
    let cache = cache(4 << 20);
    drop(cache.insert(key(9, 0), Priority::High, 8 << 10, |bytes| bytes.fill(1)));
    for offset in 0..900 {
        drop(put(&cache, key(1, offset), 8 << 10));
    }
    assert!(cache.lookup(key(9, 0)).is_some());
}

#[test]
fn a_smaller_capacity_is_reached_as_blocks_come_in() {
    let cache = cache(16 << 20);
    for offset in 0..3000 {
        drop(put(&cache, key(1, offset), 8000));
    }
    cache.set_capacity(4 << 20);
    for offset in 0..3000 {
        drop(put(&cache, key(2, offset), 8000));
    }
    assert!(cache.usage() <= 5 << 20, "{} bytes used", cache.usage());
}

#[test]
fn pins_outlive_their_cache() {
    let cache = cache(1 << 20);
    let pinned = put(&cache, key(1, 2), 3000);
    let alone = standalone(10, |bytes| bytes.fill(3));
    drop(cache);
    assert_eq!(&*pinned, pattern(key(1, 2), 3000));
    assert_eq!(&*alone, [3; 10]);
}

#[test]
fn erasing_a_file_leaves_the_others() {
    let cache = cache(1 << 20);
    // Files 1 and 4097 look the same in tags.
    let files = [1, 2, 64, 4097, 1 << 40];
    for offset in 0..20 {
        files.iter().for_each(|file| drop(put(&cache, key(*file, offset), 100)));
    }
    let pinned = cache.lookup(key(1, 7)).unwrap();
    cache.erase_files(&[1, 64].into());
    for (file, offset) in files.into_iter().flat_map(|file| (0..20).map(move |offset| (file, offset))) {
        let gone = [1, 64].contains(&file) && (file, offset) != (1, 7);
        assert_eq!(cache.lookup(key(file, offset)).is_none(), gone, "block {offset} of file {file}");
    }
    drop(pinned);
    cache.erase_files(&[1].into());
    assert!(cache.lookup(key(1, 7)).is_none(), "it was pinned");
}

#[test]
fn threads_always_read_what_was_inserted_under_their_key() {
    let cache = cache(2 << 20);
    // Miri looks at every access: far fewer, and smaller blocks.
    let (threads, rounds, lens) = if cfg!(miri) { (2, 60, 40) } else { (4, 30_000, 9000) };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let cache = &cache;
            scope.spawn(move || {
                let mut rng = Rng(thread + 1);
                let mut held: Vec<(CacheKey, usize, Pinned)> = Vec::new();
                for _ in 0..rounds {
                    let block = key(rng.next() % 3, rng.next() % 400);
                    let len = 512 + (block.file as usize * 2777 + block.offset as usize * 13) % lens;
                    let pinned = cache.lookup(block).unwrap_or_else(|| put(cache, block, len));
                    assert_eq!(pinned.len(), len);
                    let place = (rng.next() as usize) % len;
                    assert_eq!(pinned[place], pattern(block, len)[place]);
                    held.push((block, len, pinned));
                    if held.len() > 20 {
                        let (block, len, pinned) = held.swap_remove(rng.next() as usize % 20);
                        assert_eq!(pinned[len - 1], pattern(block, len)[len - 1]);
                    }
                }
            });
        }
    });
    assert!(cache.mapped_bytes() <= (2 << 20) + (1 << 20));
}

#[test]
fn threads_that_take_no_lock_find_whole_blocks() {
    let cache = cache(64 << 10);
    let last = if cfg!(miri) { 200 } else { 20_000 };
    // Relaxed throughout: nothing but the cache may order the writing of a block before its reading, or that before the
    // block's eviction.
    let (newest, found) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while newest.load(Ordering::Relaxed) < last {
                    let block = key(1, newest.load(Ordering::Relaxed));
                    if let Some(pinned) = cache.lookup(block) {
                        assert_eq!(&*pinned, pattern(block, 64));
                        found.fetch_add(1, Ordering::Relaxed);
                    }
                    std::thread::yield_now();
                }
            });
        }
        let mut held = std::collections::VecDeque::new();
        for offset in 1..=last {
            // Held for a while: giving a pin back would publish the block as well.
            held.push_back(put(&cache, key(1, offset), 64));
            if held.len() > 8 {
                held.pop_front();
            }
            newest.store(offset, Ordering::Relaxed);
            if offset.is_multiple_of(8) {
                std::thread::yield_now();
            }
        }
    });
    assert!(found.into_inner() > 0 && cache.evictions() > 0);
}

#[test]
fn descriptors_come_as_blocks_come_and_no_block_is_lost_for_it() {
    let blocks = if cfg!(miri) { 300 } else { 40_000u64 };
    let cache = cache(256 << 20);
    let all = (256 << 20) / (4 << 10) * 32;
    assert!(cache.mapped_bytes() < all / 10, "{} bytes for nothing", cache.mapped_bytes());
    let place = |i: u64| key(1 + i % 7, i / 7 * 4096);
    let held: Vec<Pinned> = (0..blocks)
        .filter_map(|i| {
            let pinned = put(&cache, place(i), 600);
            // Some stay held while buckets are split.
            i.is_multiple_of(101).then_some(pinned)
        })
        .collect();
    let evicted = cache.evictions();
    assert!(evicted * 1000 <= blocks, "{evicted} blocks found no place in their bucket");
    assert_eq!(cache.entry_count() as u64, blocks - evicted);
    let lost = (0..blocks).filter(|&i| cache.lookup(place(i)).is_none()).count();
    assert!(lost <= held.len() + evicted as usize, "{lost} of {blocks}, {} held", held.len());
    for (pinned, i) in held.iter().zip((0..blocks).step_by(101)) {
        assert_eq!(&**pinned, pattern(place(i), 600));
    }
    for i in 0..blocks {
        cache.lookup(place(i)).into_iter().for_each(|found| assert_eq!(&*found, pattern(place(i), 600)));
    }
    drop(held);
    cache.clear();
    assert_eq!((cache.entry_count(), cache.usage()), (0, 0));
}

#[test]
fn a_strict_capacity_counts_blocks_of_all_sizes_and_evicts_what_is_not_pinned() {
    let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
    cache.set_strict_capacity_limit(true);
    let insert = |offset: u64, len: usize| {
        let block = cache.insert(CacheKey { file: 1, offset }, Priority::Low, len, |bytes| bytes.fill(7));
        (!cache.refuses(&block)).then_some(block)
    };
    // Unpinned: they make room.
    (0..1000).for_each(|i| drop(insert(i, 4000).expect("nothing is pinned")));
    let large: Vec<_> = (1000..1100).filter_map(|i| insert(i, 60_000)).collect();
    assert!((10..=17).contains(&large.len()), "{} of 60 kB in 1 MiB", large.len());
    assert!(cache.usage() <= cache.capacity());
    drop(large);
    let small: Vec<_> = (2000..3000).filter_map(|i| insert(i, 4000)).collect();
    assert!((200..=262).contains(&small.len()), "{} of 4 kB in 1 MiB", small.len());
    assert!(cache.usage() <= cache.capacity());
    assert!(insert(9000, 4000).is_none());
    drop(small);
    assert!(insert(9000, 4000).is_some());
}

#[test]
fn memory_of_others_is_made_room_for_though_every_slab_has_a_pinned_block() {
    let capacity = 16 << 20;
    let cache = Cache::charging(CacheOptions { capacity, estimated_entry_charge: 0 });
    let blocks: Vec<Pinned> = (0..3200).map(|offset| put(&cache, key(1, offset), 5000)).collect();
    let pins: Vec<Pinned> = blocks.into_iter().step_by(32).collect();
    let before = cache.mapped_bytes();
    assert!(before > capacity / 10 * 9, "{before}");
    let mut charge = Charge::of(&cache, Role::Jobs).expect("it is charged");
    charge.set(capacity / 4 * 3);
    let slabs = cache.memory_of_blocks();
    assert!(slabs <= capacity / 4, "{slabs} bytes in slabs");
    assert!(slabs >= pins.len() * 5000, "what is pinned stays: {slabs}");
    for (i, pin) in pins.iter().enumerate() {
        assert_eq!(&**pin, pattern(key(1, 32 * i as u64), 5000));
    }
    for offset in 10_000..11_000 {
        let block = put(&cache, key(1, offset), 5000);
        assert!(!cache.refuses(&block));
    }
    assert!(cache.memory_of_blocks() <= capacity / 4, "{} bytes", cache.memory_of_blocks());
    let mut iterator = Charge::of(&cache, Role::Iterators).expect("it is charged");
    assert!(!iterator.try_set(capacity / 2) && !iterator.try_pin(capacity / 2));
    assert!(iterator.try_set(capacity / 4) && iterator.try_pin(capacity / 8));
    assert!(!iterator.try_set_spare(capacity / 4 + 1) && !iterator.try_pin(capacity / 8 + 1));
    assert!(iterator.try_set(capacity / 4 + 100), "the pin is gone");
    drop(iterator);
    charge.set(capacity);
    let refused = put(&cache, key(1, 20_000), 5000);
    assert!(refused.is_standalone() && cache.refuses(&refused));
    drop((refused, pins, charge));
    assert_eq!(cache.reserved(), 0);
    for offset in 30_000..36_000 {
        drop(put(&cache, key(1, offset), 5000));
    }
    assert_eq!(cache.lookup(key(1, 35_999)).as_deref(), Some(&pattern(key(1, 35_999), 5000)[..]));
    assert!(cache.mapped_bytes() > capacity / 10 * 9, "the memory serves again");
    assert!(cache.memory_of_blocks() <= capacity);
}

#[test]
fn a_cache_that_is_not_charged_has_no_charges() {
    assert!(Charge::of(&cache(1 << 20), Role::Tables).is_none());
}

#[test]
fn one_reader_that_pins_more_than_there_is_does_not_look_for_room_at_each_miss() {
    let cache = cache(1 << 20);
    let mut pins: Vec<Pinned> = (0..400).map(|offset| put(&cache, key(1, offset), 4000)).collect();
    let in_slabs = pins.iter().filter(|pin| !pin.is_standalone()).count();
    assert!(in_slabs < 400, "more is pinned than fits");
    let before = cache.turned();
    pins.extend((400..2000).map(|offset| put(&cache, key(1, offset), 4000)));
    let looks = (cache.turned() - before) / (4 * in_slabs.min(1 << 10));
    assert!(looks < 1600 / 16, "{looks} looks in 1,600 misses");
    // Once blocks are unpinned, misses are admitted again after a few.
    pins.clear();
    let admitted = (2000..2200).filter(|offset| !put(&cache, key(1, *offset), 4000).is_standalone()).count();
    assert!(admitted >= 200 - 64, "{admitted} of 200");
    assert!(!put(&cache, key(1, 9999), 4000).is_standalone());
}

#[test]
fn a_cache_with_a_strict_limit_looks_at_each_miss() {
    let cache = cache(1 << 20);
    cache.set_strict_capacity_limit(true);
    let mut pins: Vec<Pinned> = (0..400).map(|offset| put(&cache, key(1, offset), 4000)).collect();
    pins.retain(|pin| !pin.is_standalone());
    drop(pins.pop());
    assert!(!put(&cache, key(1, 9999), 4000).is_standalone(), "the one block that is not pinned goes");
}
