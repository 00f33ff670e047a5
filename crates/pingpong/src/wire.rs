//! Write batches in RocksDB's wire form, for records that the C API has no function for (wide-column entities).
//!
//! ```text
//! sequence:u64 count:u32, then per record  tag:u8 [column family:varint] LP(key) LP(value)
//! ```
//! Source: `docs/format/write_batch.md`.

use crate::operation::{Key, Record, Value};

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_slice(out: &mut Vec<u8>, slice: &[u8]) {
    put_varint(out, slice.len() as u64);
    out.extend_from_slice(slice);
}

/// A record's bytes: `tags` are those of the default column family and of any other.
fn put_record(out: &mut Vec<u8>, tags: [u8; 2], id: u32, fields: &[&[u8]]) {
    out.push(tags[usize::from(id != 0)]);
    if id != 0 {
        put_varint(out, id.into());
    }
    fields.iter().for_each(|field| put_slice(out, field));
}

/// A wide-column entity; columns are sorted by name.
fn entity(columns: &[(Key, Value)]) -> Vec<u8> {
    let mut out = vec![1];
    put_varint(&mut out, columns.len() as u64);
    let values: Vec<Vec<u8>> = columns.iter().map(|(_, value)| value.bytes()).collect();
    for ((name, _), value) in columns.iter().zip(&values) {
        put_slice(&mut out, &name.0);
        put_varint(&mut out, value.len() as u64);
    }
    out.extend(values.concat());
    out
}

/// The batch of `records`; `id_of` gives a column family's id.
pub fn batch<E>(records: &[Record], id_of: impl Fn(usize) -> Result<u32, E>) -> Result<Vec<u8>, E> {
    let mut out = vec![0; 12];
    let mut count = 0u32;
    for record in records {
        let id = record.family().map_or(Ok(0), &id_of)?;
        count += 1;
        match record {
            Record::Put(_, key, value) => put_record(&mut out, [0x01, 0x05], id, &[&key.0, &value.bytes()]),
            Record::Delete(_, key) => put_record(&mut out, [0x00, 0x04], id, &[&key.0]),
            Record::SingleDelete(_, key) => put_record(&mut out, [0x07, 0x08], id, &[&key.0]),
            Record::Merge(_, key, value) => put_record(&mut out, [0x02, 0x06], id, &[&key.0, &value.bytes()]),
            Record::DeleteRange(_, begin, end) => {
                put_record(&mut out, [0x0F, 0x0E], id, &[&begin.0, &end.0]);
            }
            Record::PutEntity(_, key, columns) => {
                put_record(&mut out, [0x16, 0x17], id, &[&key.0, &entity(columns)]);
            }
            Record::Fill { prefix, first, count: n, len, seed, .. } => {
                count -= 1;
                for (key, value) in Record::filled(prefix, *first, *n, *len, *seed) {
                    count += 1;
                    put_record(&mut out, [0x01, 0x05], id, &[&key.0, &value.bytes()]);
                }
            }
            Record::LogData(data) => {
                count -= 1;
                out.push(0x03);
                put_slice(&mut out, &data.0);
            }
        }
    }
    out[8..12].copy_from_slice(&count.to_le_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn records_have_rocksdbs_tags_and_count() {
        let key = |text: &str| Key(text.into());
        let records = [
            Record::Put(0, key("a"), Value::Text(key("v"))),
            Record::LogData(key("log")),
            Record::PutEntity(
                1,
                key("e"),
                vec![(key(""), Value::Text(key("d"))), (key("n"), Value::Text(key("x")))],
            ),
        ];
        let bytes =
            batch(&records, |family| Ok::<u32, Infallible>(if family == 0 { 0 } else { 300 })).unwrap();
        let expected: Vec<u8> = [
            &[0; 8][..],
            &[2, 0, 0, 0],
            b"\x01\x01a\x01v",
            b"\x03\x03log",
            b"\x17\xac\x02\x01e\x09\x01\x02\x00\x01\x01n\x01dx",
        ]
        .concat();
        assert_eq!(bytes, expected);
    }
}
