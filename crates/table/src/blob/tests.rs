//! Blob files written and read back, RocksDB's own, and blob files with every byte broken.

use super::*;
use crate::TableIterOptions;
use crate::tests::{fixture, open, put_file, scan};
use outcrop_base::keys::split;
use outcrop_base::{Comparator, ErrorKind, FileNumber, ValueType};
use outcrop_env::{FileSystem, OpenRead, OpenWrite};
use outcrop_options::CompressionOptions;

fn reader(bytes: &[u8], column_family_id: u32) -> Result<BlobReader> {
    let (fs, path) = put_file(bytes);
    BlobReader::open(fs.open_read(&path, OpenRead::default())?, column_family_id)
}

type Blobs = Vec<(Vec<u8>, Vec<u8>, BlobIndex)>;

fn blob_file(compression: CompressionType) -> (Vec<u8>, Blobs) {
    let (fs, path) = put_file(b"");
    let options = BlobWriterOptions {
        file_number: FileNumber(12),
        column_family_id: 3,
        compression,
        compression_opts: CompressionOptions::default(),
    };
    let mut writer = BlobWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options).unwrap();
    let mut blobs = Vec::new();
    for i in 0..20usize {
        let (key, value) = (format!("key{i}").into_bytes(), format!("value {i} ").repeat(i * 3).into_bytes());
        let index = writer.add(&key, &value).unwrap();
        blobs.push((key, value, index));
    }
    let size = writer.size();
    let summary = writer.finish().unwrap();
    writer.sync_and_close(false).unwrap();
    let bytes = fs.read_all(&path).unwrap();
    assert_eq!((summary.count, summary.file_size), (20, bytes.len() as u64));
    assert_eq!(size + FOOTER_LEN as u64, summary.file_size);
    let total: u64 = blobs.iter().map(|(key, _, index)| record_len(key.len(), index.size)).sum();
    assert_eq!(summary.total_bytes, total);
    (bytes, blobs)
}

#[test]
fn blobs_round_trip_with_every_codec() {
    use CompressionType::{BZip2, Lz4, Lz4hc, None, Snappy, Zlib, Zstd};
    for codec in [None, Snappy, Zlib, BZip2, Lz4, Lz4hc, Zstd] {
        let (bytes, blobs) = blob_file(codec);
        let file = reader(&bytes, 3).unwrap();
        assert_eq!(file.count(), 20);
        let mut value = Vec::new();
        for (key, expected, index) in &blobs {
            file.get(key, index, &mut value).unwrap();
            assert_eq!(&value, expected, "{codec:?}");
            assert!(file.get(b"other", index, &mut value).is_err());
            for wrong in [
                BlobIndex { offset: index.offset + 1, ..*index },
                BlobIndex { offset: u64::MAX, ..*index },
                BlobIndex { offset: 3, ..*index },
                BlobIndex { size: index.size + 1, ..*index },
                BlobIndex { size: u64::MAX, ..*index },
            ] {
                let error = file.get(key, &wrong, &mut value).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(error.to_string().contains("000009.sst"), "{error}");
            }
        }
    }
}

#[test]
fn records_are_walked_and_damage_in_them_is_found() {
    for codec in [CompressionType::None, CompressionType::Zstd] {
        let (bytes, blobs) = blob_file(codec);
        let mut found = Vec::new();
        let file = reader(&bytes, 3).unwrap();
        let walked = file.each_record(|record| {
            let value_at = record.offset + (RECORD_HEADER_LEN + record.key.len()) as u64;
            assert_eq!(value_at, blobs[found.len()].2.offset);
            found.push((record.key.to_vec(), record.value.to_vec()));
            Ok(())
        });
        walked.unwrap();
        let expected: Vec<_> = blobs.iter().map(|(key, value, _)| (key.clone(), value.clone())).collect();
        assert_eq!(found, expected);
        for at in HEADER_LEN..bytes.len() - FOOTER_LEN {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let file = reader(&damaged, 3).unwrap();
            let error = file.each_record(|_| Ok(())).expect_err("a byte is wrong");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{at}: {error}");
        }
    }
    let file = reader(&blob_file(CompressionType::None).0, 3).unwrap();
    assert_eq!(column_family_of(&**file.file()).unwrap(), 3);
}

#[test]
fn a_blob_file_of_rocksdbs_is_read() {
    let blobs = reader(&fixture("11.8.1-blob/000010.blob"), 0).unwrap();
    assert_eq!(blobs.count(), 5);
    let table = open(&fixture("11.8.1-blob/000009.sst"), Comparator::Bytewise, None).unwrap();
    let mut values = Vec::new();
    for (key, value) in scan(&table, TableIterOptions::default()).unwrap() {
        let (user_key, trailer) = split(&key);
        if trailer.value_type() == Some(ValueType::BlobIndex) {
            let index = BlobIndex::decode(&value).unwrap();
            assert_eq!(index.file_number, FileNumber(10));
            let mut out = Vec::new();
            blobs.get(user_key, &index, &mut out).unwrap();
            values.push(out);
            let mut encoded = Vec::new();
            index.encode(&mut encoded);
            assert_eq!(encoded, value);
        }
    }
    let expected: Vec<Vec<u8>> = (0..5).map(|i| vec![b'V'; 100 + i]).collect();
    assert_eq!(values, expected);
}

#[test]
fn what_we_write_is_what_rocksdb_writes() {
    let (fs, path) = put_file(b"");
    let options = BlobWriterOptions {
        file_number: FileNumber(10),
        column_family_id: 0,
        compression: CompressionType::None,
        compression_opts: CompressionOptions::default(),
    };
    let mut writer = BlobWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options).unwrap();
    for i in 0..5 {
        writer.add(format!("k{i}").as_bytes(), &vec![b'V'; 100 + i]).unwrap();
    }
    writer.finish().unwrap();
    writer.sync_and_close(true).unwrap();
    assert_eq!(fs.read_all(&path).unwrap(), fixture("11.8.1-blob/000010.blob"));
}

#[test]
fn every_flipped_byte_is_noticed() {
    for codec in [CompressionType::None, CompressionType::Zstd] {
        let (bytes, blobs) = blob_file(codec);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 1 << (at % 8);
            let Ok(file) = reader(&broken, 3) else { continue };
            let mut value = Vec::new();
            let mut noticed = false;
            for (key, expected, index) in &blobs {
                match file.get(key, index, &mut value) {
                    Ok(()) => assert_eq!(&value, expected, "byte {at}"),
                    Err(_) => noticed = true,
                }
            }
            // Of the header's flags only the one for TTL has a meaning.
            assert!(noticed || at == 12, "byte {at}");
        }
        for len in 0..bytes.len() {
            assert!(reader(&bytes[..len], 3).is_err(), "cut at {len}");
        }
        assert!(reader(&bytes, 4).is_err(), "another column family's file");
    }
}

#[test]
fn blob_indexes_that_expire_or_do_not_decode_are_refused_by_name() {
    for (bytes, name) in
        [(&b"\x00\x05value"[..], "kInlinedTTL"), (&b"\x02\x05\x01\x02\x03\x00"[..], "kBlobTTL")]
    {
        let error = BlobIndex::decode(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(BlobIndex::decode(b"\x01\x00\x01\x01\x00").unwrap_err().kind(), ErrorKind::NotSupported);
    let mut good = Vec::new();
    BlobIndex { file_number: FileNumber(300), offset: 70_000, size: 5, codec: CompressionType::Lz4 }
        .encode(&mut good);
    assert_eq!(good, b"\x01\xAC\x02\xF0\xA2\x04\x05\x04");
    for len in 0..good.len() {
        assert_eq!(BlobIndex::decode(&good[..len]).unwrap_err().kind(), ErrorKind::Corruption);
    }
    good.push(0);
    assert_eq!(BlobIndex::decode(&good).unwrap_err().kind(), ErrorKind::Corruption);
}
