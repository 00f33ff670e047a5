//! Filters of every kind on random keys, RocksDB's own filters, and blocks that are none.

use super::*;

fn hashes(range: std::ops::Range<u64>) -> Vec<u64> {
    range.map(|i| xxph3_64(&i.to_be_bytes())).collect()
}

fn false_positives(block: &[u8], range: std::ops::Range<u64>) -> usize {
    let kind = FilterKind::of(block);
    range.filter(|i| kind.may_contain_key(block, &i.to_be_bytes())).count()
}

#[test]
fn bloom_keys_are_found_and_strangers_rarely() {
    let block = bloom::build(&hashes(0..10_000), 10_000);
    assert_eq!(false_positives(&block, 0..10_000), 10_000);
    let strangers = false_positives(&block, 10_000..110_000);
    assert!(strangers < 1200, "{strangers} of 100000");
    let expected = bloom::false_positive_rate(10_000) * 100_000.0;
    assert!((strangers as f64 - expected).abs() < expected / 5.0, "{strangers}, expected {expected}");
}

#[test]
fn ribbon_keys_are_found_and_strangers_as_rarely_as_promised_in_less_space() {
    for (count, millibits) in
        [(300, 10_000), (20_000, 10_000), (200_000, 10_000), (20_000, 3_500), (5000, 25_000)]
    {
        let rate = bloom::false_positive_rate(millibits);
        let block = ribbon::build(&hashes(0..count), rate).unwrap();
        assert!(matches!(FilterKind::of(&block), FilterKind::Ribbon(_)));
        assert_eq!(false_positives(&block, 0..count), count as usize, "{count} {millibits}");
        let strangers = false_positives(&block, 1_000_000..1_100_000) as f64;
        let expected = rate * 100_000.0;
        assert!(strangers < expected * 1.3 + 10.0, "{strangers}, expected {expected}");
        assert!(strangers > expected * 0.6 - 10.0, "{strangers}, expected {expected}");
        let bloom_len = bloom::len_for(count as usize, millibits);
        assert!(
            count < 1000 || block.len() * 100 < bloom_len * 80,
            "{} bytes, bloom {bloom_len}",
            block.len()
        );
    }
}

#[test]
fn legacy_keys_are_found_and_strangers_rarely() {
    let hashes: Vec<u64> = (0..10_000u64).map(|i| u64::from(legacy_bloom::hash(&i.to_be_bytes()))).collect();
    let block = legacy_bloom::build(&hashes, 10_000);
    assert!(matches!(FilterKind::of(&block), FilterKind::Legacy { probes: 6, .. }));
    assert_eq!(false_positives(&block, 0..10_000), 10_000);
    let strangers = false_positives(&block, 10_000..110_000);
    assert!(strangers < 2000, "{strangers} of 100000");
}

#[test]
fn rocksdbs_own_bloom_filter_is_understood() {
    let table = include_bytes!("../../../../fixtures/11.8.1-basic/000009.sst");
    let block = &table[93..162];
    let kind = FilterKind::of(block);
    assert_eq!(kind, FilterKind::Bloom { lines: 1, probes: 24 });
    for key in ["apple", "banana", "cherry", "count"] {
        assert!(kind.may_contain(block, xxph3_64(key.as_bytes())), "{key}");
    }
    assert!(!kind.may_contain(block, xxph3_64(b"missing")));
}

#[test]
fn odd_blocks_exclude_nothing_they_should_not() {
    assert_eq!(FilterKind::of(&[]), FilterKind::Empty);
    assert_eq!(FilterKind::of(&[0; 6]), FilterKind::PassAll);
    assert_eq!(FilterKind::of(&[0xFF; 70]), FilterKind::PassAll);
    assert_eq!(FilterKind::of(&[0; 5]), FilterKind::Empty);
    // Every kind of metadata after every length: asked without a panic.
    for first in 0..=255u8 {
        for len in [1, 16, 63, 64, 65, 256, 4096] {
            for rest in
                [[0, 0, 0, 0], [1, 0, 0, 0], [0, 2, 0, 0], [7, 255, 255, 255], [64, 0, 0, 0], [0, 6, 0, 0]]
            {
                let mut block = vec![0x5A; len];
                block.push(first);
                block.extend_from_slice(&rest);
                let kind = FilterKind::of(&block);
                for key in 0..50u64 {
                    let _ = kind.may_contain_key(&block, &key.to_be_bytes());
                    if let Some(offset) = kind.offset(xxph3_64(&key.to_be_bytes())) {
                        assert!(offset < block.len(), "{kind:?}");
                    }
                }
            }
        }
    }
}
