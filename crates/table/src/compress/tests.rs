//! Every codec, with and without a dictionary, on data of every kind; and broken streams.

use super::*;
use outcrop_env::random::{Random, SeededRandom};

const CODECS: [CompressionType; 6] = [
    CompressionType::Snappy,
    CompressionType::Zlib,
    CompressionType::BZip2,
    CompressionType::Lz4,
    CompressionType::Lz4hc,
    CompressionType::Zstd,
];

/// Rows like those of a data block.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let random = SeededRandom::new(seed);
    let mut out = Vec::new();
    while out.len() < len {
        out.extend_from_slice(
            format!("user:{:06} name=value-{};", out.len(), random.next_u64() % 50).as_bytes(),
        );
    }
    out.truncate(len);
    out
}

#[test]
fn blocks_round_trip_with_and_without_dictionary() {
    let dictionary = text(1, 4096);
    for codec in CODECS {
        for len in [1, 60, 1000, 4096, 100_000] {
            let contents = text(2, len);
            let options = CompressionOptions { max_compressed_bytes_per_kb: 1023, ..Default::default() };
            let mut sizes = Vec::new();
            for dictionary in
                [None, Some(dictionary.clone())].into_iter().take(1 + usize::from(has_dictionary(codec)))
            {
                let mut compressor = match &dictionary {
                    None => Compressor::new(codec, &options),
                    Some(bytes) => Compressor::with_dictionary(codec, &options, bytes.clone()),
                };
                let dictionary = dictionary.map(|bytes| Dictionary::new(bytes).unwrap());
                for _ in 0..2 {
                    let (mut stored, mut back) = (Vec::new(), Vec::new());
                    let used = compressor.compress(&contents, &mut stored).unwrap();
                    sizes.push(stored.len());
                    if used != CompressionType::None {
                        decompress(codec as u8, dictionary.as_ref(), &stored, &mut back).unwrap();
                        assert!(back == contents, "{codec:?} {len}");
                    } else {
                        assert!(len < 100, "{codec:?} {len}: {}", stored.len());
                    }
                }
            }
            if sizes.len() == 4 && len == 60 {
                assert!(sizes[2] < sizes[0], "{codec:?} {len}: the dictionary does not help: {sizes:?}");
            }
        }
    }
}

#[test]
fn what_does_not_shrink_is_stored_as_it_is() {
    let random = SeededRandom::new(7);
    let noise: Vec<u8> = (0..5000).map(|_| random.next_u64() as u8).collect();
    for codec in CODECS {
        let mut out = Vec::new();
        let mut compressor = Compressor::new(codec, &CompressionOptions::default());
        assert_eq!(compressor.compress(&noise, &mut out).unwrap(), CompressionType::None, "{codec:?}");
    }
}

#[test]
fn patience_makes_lz4_smaller_and_more_of_it_smaller_still() {
    let contents: Vec<u8> = (0..60).flat_map(|seed| text(seed % 7, 1500)).collect();
    let size = |codec, level| {
        let options = CompressionOptions { level, ..CompressionOptions::default() };
        let (mut out, mut back) = (Vec::new(), Vec::new());
        assert_eq!(Compressor::new(codec, &options).compress(&contents, &mut out).unwrap(), codec);
        decompress(codec as u8, None, &out, &mut back).unwrap();
        assert!(back == contents);
        out.len()
    };
    let fast = size(CompressionType::Lz4, 32767);
    let sizes = [1, 4, 9, 12].map(|level| size(CompressionType::Lz4hc, level));
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    assert!(sizes[2] < fast * 9 / 10, "{sizes:?}, fast {fast}");
    assert_eq!(size(CompressionType::Lz4hc, 32767), sizes[2]);
}

#[test]
fn lz4hc_ends_blocks_of_every_length_as_the_format_asks() {
    for len in 0..200 {
        for contents in [vec![7; len], text(4, len), (0..len).map(|i| (i * i) as u8).collect()] {
            let (mut out, mut back) = (Vec::new(), Vec::new());
            let options = CompressionOptions::default();
            Compressor::new(CompressionType::Lz4hc, &options).encode(&contents, &mut out).unwrap();
            decompress(CompressionType::Lz4hc as u8, None, &out, &mut back).unwrap();
            assert_eq!(back, contents, "{len}");
        }
    }
    let run = vec![b'r'; 1 << 20];
    let (mut out, mut back) = (Vec::new(), Vec::new());
    let options = CompressionOptions::default();
    Compressor::new(CompressionType::Lz4hc, &options).encode(&run, &mut out).unwrap();
    assert!(out.len() < 5000, "{}", out.len());
    decompress(CompressionType::Lz4hc as u8, None, &out, &mut back).unwrap();
    assert!(back == run);
}

#[test]
fn broken_streams_are_errors() {
    for codec in CODECS {
        let mut stored = Vec::new();
        let contents = text(3, 3000);
        Compressor::new(codec, &CompressionOptions::default()).compress(&contents, &mut stored).unwrap();
        let random = SeededRandom::new(11);
        let mut out = Vec::new();
        for cut in 0..stored.len() {
            assert!(
                decompress(codec as u8, None, &stored[..cut], &mut out).is_err(),
                "{codec:?} cut at {cut}"
            );
        }
        for _ in 0..3000 {
            let mut forged = stored.clone();
            let at = (random.next_u64() % forged.len() as u64) as usize;
            forged[at] = random.next_u64() as u8;
            if decompress(codec as u8, None, &forged, &mut out).is_ok() {
                assert!(out.len() <= 4 * contents.len().max(stored.len()) * 1032, "{codec:?}");
            }
        }
        let mut huge = vec![0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
        huge.extend_from_slice(&stored);
        assert!(decompress(codec as u8, None, &huge, &mut out).is_err(), "{codec:?}");
    }
}

#[test]
fn what_repeats_one_byte_comes_back_however_small_it_got() {
    let contents = vec![7; 5 << 20];
    for codec in CODECS {
        let (mut stored, mut back) = (Vec::new(), Vec::new());
        let used = Compressor::new(codec, &CompressionOptions::default()).compress(&contents, &mut stored);
        assert_ne!(used.unwrap(), CompressionType::None, "{codec:?}");
        decompress(codec as u8, None, &stored, &mut back).unwrap();
        assert!(back == contents, "{codec:?} from {} bytes", stored.len());
    }
}

#[test]
fn a_forged_size_takes_no_memory_that_the_stream_does_not_fill() {
    for codec in [CompressionType::BZip2, CompressionType::Zstd] {
        let (mut body, mut stored, mut out) = (Vec::new(), Vec::new(), Vec::new());
        Compressor::new(codec, &CompressionOptions::default()).encode(&text(4, 60_000), &mut body).unwrap();
        let (_, used) = outcrop_base::coding::get_varint32(&body).unwrap();
        // 100 MiB, in the size before the stream and in the frame's own where it has one.
        let forged = 100_u32 << 20;
        outcrop_base::coding::put_varint32(&mut stored, forged);
        if codec == CompressionType::Zstd {
            // A single segment whose content size takes four bytes, then the frame's own blocks.
            let descriptor = body[used + 4];
            assert_eq!(descriptor & 3, 0, "no dictionary id");
            let single = descriptor & 0x20 != 0;
            let size = [usize::from(single), 2, 4, 8][usize::from(descriptor >> 6)];
            stored.extend_from_slice(&body[used..used + 4]);
            stored.push(0xA0 | descriptor & 4);
            stored.extend_from_slice(&forged.to_le_bytes());
            stored.extend_from_slice(&body[used + 5 + usize::from(!single) + size..]);
        } else {
            stored.extend_from_slice(&body[used..]);
        }
        assert!(decompress(codec as u8, None, &stored, &mut out).is_err(), "{codec:?}");
        assert!(out.capacity() <= 2 << 20, "{codec:?}: {} bytes", out.capacity());
    }
}

#[test]
fn zlib_streams_stay_within_the_window_rocksdb_reads_with() {
    // 40 000 bytes that repeat only at a distance larger than 2^14 must not be matched.
    let random = SeededRandom::new(5);
    let noise: Vec<u8> = (0..20_000).map(|_| random.next_u64() as u8).collect();
    let contents = [noise.clone(), noise].concat();
    let mut stored = Vec::new();
    let options = CompressionOptions { window_bits: -15, ..Default::default() };
    let used = Compressor::new(CompressionType::Zlib, &options).compress(&contents, &mut stored).unwrap();
    assert_eq!(used, CompressionType::None, "{} bytes", stored.len());
}

#[test]
fn dictionaries_come_from_all_waiting_blocks() {
    let options = CompressionOptions { max_dict_bytes: 1000, ..Default::default() };
    let mut sampler = Sampler::new(CompressionType::Zstd, &options).unwrap();
    let blocks: Vec<Vec<u8>> = (0..10).map(|i| vec![i; 200]).collect();
    let enough: Vec<bool> = blocks.iter().map(|block| sampler.add(block)).collect();
    assert_eq!(enough.iter().position(|enough| *enough), Some(4));
    let raw = build_dictionary(CompressionType::Zstd, &options, &blocks);
    assert_eq!(raw.len(), 1000);
    for count in 1..60 {
        let blocks: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8]).collect();
        let mut all = build_dictionary(CompressionType::Zstd, &options, &blocks);
        all.sort_unstable();
        assert_eq!(all, (0..count).map(|i| i as u8).collect::<Vec<_>>());
    }
    let trained = CompressionOptions { max_dict_bytes: 2000, zstd_max_train_bytes: 100_000, ..options };
    let blocks: Vec<Vec<u8>> = (0..100).map(|i| text(i, 1000)).collect();
    let dictionary = build_dictionary(CompressionType::Zstd, &trained, &blocks);
    assert_eq!(dictionary[..4], [0x37, 0xA4, 0x30, 0xEC], "a trained dictionary has its magic number");
    assert!(Sampler::new(CompressionType::Snappy, &trained).is_none());
}

#[test]
fn a_dictionary_that_only_looks_trained_serves_all_codecs_but_zstd() {
    let mut bytes = text(1, 500);
    bytes[..4].copy_from_slice(&[0x37, 0xA4, 0x30, 0xEC]);
    let dictionary = Dictionary::new(bytes.clone()).unwrap();
    let contents = text(2, 1000);
    let (mut stored, mut back) = (Vec::new(), Vec::new());
    let options = CompressionOptions::default();
    for codec in [CompressionType::Lz4, CompressionType::Lz4hc, CompressionType::Zlib] {
        Compressor::with_dictionary(codec, &options, bytes.clone()).compress(&contents, &mut stored).unwrap();
        decompress(codec as u8, Some(&dictionary), &stored, &mut back).unwrap();
        assert!(back == contents, "{codec:?}");
    }
    Compressor::new(CompressionType::Zstd, &options).compress(&contents, &mut stored).unwrap();
    let error = decompress(CompressionType::Zstd as u8, Some(&dictionary), &stored, &mut back).unwrap_err();
    assert!(error.to_string().contains("dictionary"), "{error}");
    assert!(Dictionary::new(Vec::new()).is_err());
}
