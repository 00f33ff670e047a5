//! Targets that need nothing but the bytes.

use crate::bytes_file::{PATH, file};
use outcrop::{BackupMeta, WalItem, WriteBatch, split_ttl_value, wal_items};
use outcrop_base::coding::{Decoder, fixed64_at, put_varint32, put_varint64, put_zigzag64, varint_len};
use outcrop_base::keys::{ParsedKey, internal_key};
use outcrop_base::wide_columns;
use outcrop_manifest::VersionEdit;
use outcrop_manifest::file_name as names;
use outcrop_options::rows::{CF_ROWS, DB_ROWS, Row, TABLE_ROWS};
use outcrop_options::{ColumnFamilyOptions, CompressionType, DbOptions};
use outcrop_table::blob::{BlobIndex, BlobReader};
use std::path::Path;

/// Numbers and slices, each kind in turn; a decoded value must encode to bytes that decode alike.
pub fn coding(input: &[u8]) {
    let mut decoder = Decoder::new(input);
    for kind in (0..8).cycle() {
        let before = decoder.rest().len();
        let mut out = Vec::new();
        let decoded = match kind {
            0 => decoder.varint32().map(|value| {
                put_varint32(&mut out, value);
                assert_eq!(Decoder::new(&out).varint32(), Some(value));
                out.len()
            }),
            1 => decoder.varint64().map(|value| {
                put_varint64(&mut out, value);
                assert_eq!(out.len(), varint_len(value));
                assert_eq!(Decoder::new(&out).varint64(), Some(value));
                out.len()
            }),
            2 => decoder.zigzag64().map(|value| {
                put_zigzag64(&mut out, value);
                assert_eq!(Decoder::new(&out).zigzag64(), Some(value));
                out.len()
            }),
            3 => decoder.length_prefixed().map(|slice| slice.len() + 1),
            4 => decoder.fixed16().map(|_| 2),
            5 => decoder.fixed32().map(|_| 4),
            6 => decoder.fixed64().map(|_| 8),
            _ => decoder.byte().map(|_| 1),
        };
        match decoded {
            // The shortest coding is never longer than the one read.
            Some(shortest) => assert!(before - decoder.rest().len() >= shortest),
            None => return,
        }
    }
}

/// The meta file of a backup: written again after it was read it is the same, and no name leads out of the directory of backups.
pub fn backup_meta(input: &[u8]) {
    let Ok(meta) = BackupMeta::parse(input, "meta/1") else { return };
    for file in &meta.files {
        let parts: Vec<&str> = file.name.split('/').collect();
        assert!((2..=3).contains(&parts.len()) && !parts.contains(&"..") && !parts.contains(&""));
        assert!(!file.database_name().contains('/'));
    }
    // Sizes are read and not written.
    let mut expected = meta.clone();
    expected.files.iter_mut().for_each(|file| file.size = None);
    assert_eq!(BackupMeta::parse(&meta.print(2), "meta/1").expect("it was printed"), expected);
}

/// A value of a database with TTL is its bytes and its time.
pub fn ttl_value(input: &[u8]) {
    if let Ok((value, time)) = split_ttl_value(input) {
        assert!(time > 0);
        assert_eq!([value, &time.to_le_bytes()].concat(), input);
    }
}

/// An internal key is its parts.
pub fn keys(input: &[u8]) {
    if let Ok(key) = ParsedKey::parse(input) {
        assert_eq!(internal_key(key.user_key, key.seq, key.value_type), input);
    }
}

/// An entity's columns make the same entity again.
pub fn wide_columns(input: &[u8]) {
    let default = wide_columns::default_column(input);
    let Ok(columns) = wide_columns::decode(input) else {
        assert!(default.is_err(), "both decoders refuse, or neither");
        return;
    };
    let stored: usize = columns.iter().map(|column| column.name.len() + column.value.len()).sum();
    assert!(stored <= input.len());
    let named = columns.iter().find(|column| column.name.is_empty());
    assert_eq!(default.expect("it decodes"), named.copied());
    if columns.iter().any(|column| column.in_blob) {
        return;
    }
    let pairs: Vec<(&[u8], &[u8])> = columns.iter().map(|column| (column.name, column.value)).collect();
    let mut again = Vec::new();
    wide_columns::encode(&pairs, &mut again).expect("names ascend");
    assert_eq!(wide_columns::decode(&again).expect("just encoded"), columns);
}

/// A batch made of a batch's records holds the same records, and so do its items as a record of a WAL.
pub fn write_batch(input: &[u8]) {
    let items: Result<Vec<WalItem<'_>>, _> = wal_items(input).and_then(Iterator::collect);
    let Ok(batch) = WriteBatch::from_bytes(input) else { return };
    let items = items.expect("a batch is a record of a WAL");
    let writes = items.iter().filter_map(|item| match item {
        WalItem::Write(record) => Some(*record),
        _ => None,
    });
    assert!(writes.eq(batch.iter().map(|record| record.expect("checked by from_bytes"))));
    let mut copy = WriteBatch::new();
    for record in batch.iter() {
        let record = record.expect("checked by from_bytes");
        copy.push(record);
    }
    assert_eq!(copy.count(), batch.count());
    let records = |batch: &WriteBatch| -> Vec<String> {
        batch.iter().map(|record| format!("{:?}", record.expect("decodes"))).collect()
    };
    assert_eq!(records(&copy), records(&batch));
}

/// A loaded OPTIONS file prints as one that loads alike; and options that were set print as text that sets them alike.
pub fn options(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(loaded) = outcrop_options::file::parse(text) {
        let printed = outcrop_options::file::print(&loaded.db, &loaded.families);
        let again = outcrop_options::file::parse(&printed).expect("just printed");
        assert_eq!(outcrop_options::file::print(&again.db, &again.families), printed);
    }
    let (mut db, mut cf) = (DbOptions::default(), ColumnFamilyOptions::default());
    let set = outcrop_options::file::set_from_string(&mut db, &mut cf, text);
    if let Some((name, value)) = text.split_once('=') {
        let _ = outcrop_options::file::set_mutable(&mut cf, name, value);
    }
    if set.is_ok() {
        print_and_read(DB_ROWS, &db);
        print_and_read(CF_ROWS, &cf);
        print_and_read(TABLE_ROWS, &cf.table);
    }
}

fn print_and_read<T: Clone + PartialEq + std::fmt::Debug>(rows: &[Row<T>], options: &T) {
    for row in rows {
        let printed = (row.get)(options);
        let mut copy = options.clone();
        if let Err(error) = (row.set)(&mut copy, &printed) {
            panic!("{}={printed}: {error}", row.name);
        }
        assert_eq!((row.get)(&copy), printed, "{}", row.name);
    }
}

/// A name that parses is made again from its kind and number, apart from leading zeros.
pub fn file_name(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let dir = Path::new("/db");
    let path = match names::parse(text) {
        Some(names::FileKind::Manifest(number)) => names::manifest(dir, number),
        Some(names::FileKind::Wal(number)) => names::wal(dir, number),
        Some(names::FileKind::Table(number)) => names::table(dir, number),
        Some(names::FileKind::Options(number)) => names::options(dir, number),
        _ => return,
    };
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name in ASCII");
    assert_eq!(names::parse(name), names::parse(text));
}

/// A reference into a blob file.
pub fn blob_index(input: &[u8]) {
    let Ok(index) = BlobIndex::decode(input) else { return };
    let mut again = Vec::new();
    index.encode(&mut again);
    assert!(again.len() <= input.len());
    assert_eq!(BlobIndex::decode(&again).expect("just encoded"), index);
}

/// An edit encodes to what decodes to the same edit.
pub fn version_edit(input: &[u8]) {
    let Ok(edit) = VersionEdit::decode(input) else { return };
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    edit.encode(&mut once);
    VersionEdit::decode(&once).expect("just encoded").encode(&mut twice);
    assert_eq!(once, twice);
}

/// A blob file, and the values that its own records say are in it.
pub fn blob_file(input: &[u8]) {
    const HEADER: usize = 30;
    const RECORD_HEADER: usize = 32;
    let family = input.get(8..12).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("4 bytes")));
    let reader = match BlobReader::open(file(input), family) {
        Ok(reader) => reader,
        Err(error) => return assert!(error.to_string().contains(PATH), "{error}"),
    };
    let Some(codec) = input.get(13).and_then(|byte| CompressionType::from_byte(*byte).ok()) else { return };
    let (mut at, mut value) = (HEADER, Vec::new());
    while let Some(header) = input.get(at..at.saturating_add(RECORD_HEADER)) {
        let (key_len, size) = (fixed64_at(header, 0), fixed64_at(header, 8));
        let key_at = at + RECORD_HEADER;
        let Some(key_end) = usize::try_from(key_len).ok().and_then(|len| key_at.checked_add(len)) else {
            return;
        };
        let Some(key) = input.get(key_at..key_end) else { return };
        let index =
            BlobIndex { file_number: outcrop_base::FileNumber(1), offset: key_end as u64, size, codec };
        match reader.get(key, &index, &mut value) {
            Ok(()) if codec == CompressionType::None => {
                assert_eq!(Some(&value[..]), input.get(key_end..key_end + size as usize));
            }
            Ok(()) => {}
            Err(error) => assert!(error.to_string().contains(PATH), "{error}"),
        }
        let Some(next) = usize::try_from(size).ok().and_then(|size| key_end.checked_add(size)) else {
            return;
        };
        at = next;
    }
}
