//! Wide-column entities: values that are sets of named columns.
//!
//! ```text
//! v1 = v32 1 | v32 n | n x (LP(name) | v32 value size) | values
//! v2 = v32 2 | v32 n | v32 bytes of name sizes | v32 bytes of value sizes | v32 bytes of names
//!    | n type bytes | n x v32 name size | n x v32 value size | names | values
//! ```
//! Names ascend bytewise and are unique; the column with the empty name, which therefore comes first, is the
//! *default column*: the value that readers of plain values see. Version 2 is written only where a column's
//! value is a reference into a blob file, which is read but never written here.
//!
//! Invariant: decoding allocates nothing that the bytes do not hold, and never panics.
//! Source: RocksDB `db/wide/wide_column_serialization.h`.

use crate::coding::{Decoder, put_length_prefixed, put_varint32};
use crate::error::{Error, Result};
use std::borrow::Cow;

/// The type byte of a column whose value is stored here.
const INLINE: u8 = 0x01;
/// The type byte of a column whose value is a reference into a blob file.
const BLOB: u8 = 0x11;

/// One column of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name; empty for the default column.
    pub name: &'a [u8],
    /// Its value, or the reference to it.
    pub value: &'a [u8],
    /// `value` is a reference into a blob file.
    pub in_blob: bool,
}

/// Appends the entity of `columns`, (name, value) each.
///
/// # Errors
/// InvalidArgument unless names ascend strictly.
pub fn encode(columns: &[(&[u8], &[u8])], out: &mut Vec<u8>) -> Result<()> {
    if let Some(pair) = columns.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        return Err(Error::invalid_argument(format!(
            "wide columns out of order: {:?} then {:?}",
            String::from_utf8_lossy(pair[0].0),
            String::from_utf8_lossy(pair[1].0)
        )));
    }
    let len32 = |len: usize| {
        u32::try_from(len).map_err(|_| Error::invalid_argument("a wide column is 4 GiB or larger"))
    };
    put_varint32(out, 1);
    put_varint32(out, len32(columns.len())?);
    for (name, value) in columns {
        len32(name.len())?;
        put_length_prefixed(out, name);
        put_varint32(out, len32(value.len())?);
    }
    columns.iter().for_each(|(_, value)| out.extend_from_slice(value));
    Ok(())
}

/// The columns of an entity, in order.
///
/// # Errors
/// Corruption saying what does not decode.
pub fn decode(entity: &[u8]) -> Result<Vec<Column<'_>>> {
    let mut columns = Vec::new();
    visit(entity, |column| columns.push(column))?;
    Ok(columns)
}

/// The default column, if there is one. Allocates nothing.
///
/// # Errors
/// Corruption if the entity does not decode.
pub fn default_column(entity: &[u8]) -> Result<Option<Column<'_>>> {
    let mut found: Option<Column<'_>> = None;
    visit(entity, |column| {
        if column.name.is_empty() {
            found = Some(column);
        }
    })?;
    Ok(found)
}

/// True if columns of the entity may be in blob files; false for what does not decode.
#[inline]
pub fn may_have_blobs(entity: &[u8]) -> bool {
    // The version, a varint of one byte.
    entity.first() == Some(&2)
}

/// Calls `each` with every reference into a blob file.
///
/// # Errors
/// Corruption if the entity does not decode, and those of `each`.
pub fn each_blob<'a>(entity: &'a [u8], mut each: impl FnMut(&'a [u8]) -> Result<()>) -> Result<()> {
    if !may_have_blobs(entity) {
        return Ok(());
    }
    decode(entity)?.iter().filter(|column| column.in_blob).try_for_each(|column| each(column.value))
}

/// The entity with every value in it: `entity` itself unless columns are in blob files, whose values `fetch` gives.
///
/// # Errors
/// Corruption if the entity does not decode, and those of `fetch`.
pub fn with_values<V: AsRef<[u8]>>(
    entity: &[u8],
    mut fetch: impl FnMut(&[u8]) -> Result<V>,
) -> Result<Cow<'_, [u8]>> {
    if !may_have_blobs(entity) {
        return Ok(Cow::Borrowed(entity));
    }
    let columns = decode(entity)?;
    let fetched: Vec<Option<V>> = columns
        .iter()
        .map(|column| column.in_blob.then(|| fetch(column.value)).transpose())
        .collect::<Result<_>>()?;
    let pairs = columns.iter().zip(&fetched);
    let pairs: Vec<(&[u8], &[u8])> = pairs
        .map(|(column, value)| (column.name, value.as_ref().map_or(column.value, AsRef::as_ref)))
        .collect();
    let mut out = Vec::new();
    encode(&pairs, &mut out)?;
    Ok(Cow::Owned(out))
}

fn broken(what: &str) -> Error {
    Error::corruption(format!("wide-column entity: {what}"))
}

/// Passes the columns in order, having checked that names ascend and that values end with the entity.
fn visit<'a>(entity: &'a [u8], mut column: impl FnMut(Column<'a>)) -> Result<()> {
    let mut decoder = Decoder::new(entity);
    let version = decoder.varint32().ok_or_else(|| broken("no version"))?;
    let count = decoder.varint32().ok_or_else(|| broken("no number of columns"))?;
    let mut previous: Option<&[u8]> = None;
    let mut pass = |next: Column<'a>| {
        if previous.is_some_and(|previous| previous >= next.name) {
            return Err(broken("names out of order"));
        }
        previous = Some(next.name);
        column(next);
        Ok(())
    };
    match version {
        1 => visit_v1(decoder, count, &mut pass),
        2 => visit_v2(decoder, count, &mut pass),
        other => Err(broken(&format!("version {other} is not one of 1 and 2"))),
    }
}

fn visit_v1<'a>(
    headers: Decoder<'a>,
    count: u32,
    pass: &mut impl FnMut(Column<'a>) -> Result<()>,
) -> Result<()> {
    let header = |headers: &mut Decoder<'a>| Some((headers.length_prefixed()?, headers.varint32()?));
    // Values start where the headers end: these are walked over twice.
    let mut values = headers;
    for _ in 0..count {
        header(&mut values).ok_or_else(|| broken("a column's header is cut short"))?;
    }
    let mut headers = headers;
    for _ in 0..count {
        let (name, len) = header(&mut headers).expect("read before");
        let value = values.bytes(len as usize).ok_or_else(|| broken("a value runs past the end"))?;
        pass(Column { name, value, in_blob: false })?;
    }
    end(values)
}

fn visit_v2<'a>(
    mut decoder: Decoder<'a>,
    count: u32,
    pass: &mut impl FnMut(Column<'a>) -> Result<()>,
) -> Result<()> {
    let mut sections = || {
        let name_sizes_len = decoder.varint32()? as usize;
        let value_sizes_len = decoder.varint32()? as usize;
        let names_len = decoder.varint32()? as usize;
        let types = decoder.bytes(count as usize)?;
        let name_sizes = Decoder::new(decoder.bytes(name_sizes_len)?);
        let value_sizes = Decoder::new(decoder.bytes(value_sizes_len)?);
        let names = Decoder::new(decoder.bytes(names_len)?);
        Some((types, name_sizes, value_sizes, names))
    };
    let (types, mut name_sizes, mut value_sizes, mut names) =
        sections().ok_or_else(|| broken("a section runs past the end"))?;
    let mut values = decoder;
    for value_type in types {
        let mut parts = || {
            let name = names.bytes(name_sizes.varint32()? as usize)?;
            Some((name, values.bytes(value_sizes.varint32()? as usize)?))
        };
        let (name, value) = parts().ok_or_else(|| broken("a column runs past the end"))?;
        let in_blob = match *value_type {
            INLINE => false,
            BLOB => true,
            other => return Err(broken(&format!("column type {other:#04x}"))),
        };
        pass(Column { name, value, in_blob })?;
    }
    if !(name_sizes.is_empty() && value_sizes.is_empty() && names.is_empty()) {
        return Err(broken("sections are longer than their columns"));
    }
    end(values)
}

fn end(values: Decoder<'_>) -> Result<()> {
    if values.is_empty() { Ok(()) } else { Err(broken("bytes after the last value")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(columns: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(columns, &mut out).unwrap();
        out
    }

    #[test]
    fn entities_have_the_bytes_of_the_format_and_come_back() {
        let columns: [(&[u8], &[u8]); 3] = [(b"", b"main"), (b"a", b""), (b"bc", b"xyz")];
        let bytes = entity(&columns);
        assert_eq!(bytes, b"\x01\x03\x00\x04\x01a\x00\x02bc\x03mainxyz");
        let decoded = decode(&bytes).unwrap();
        let pairs: Vec<(&[u8], &[u8])> = decoded.iter().map(|column| (column.name, column.value)).collect();
        assert_eq!(pairs, columns);
        assert_eq!(default_column(&bytes).unwrap().unwrap().value, b"main");
        assert_eq!(default_column(&entity(&[(b"a", b"1")])).unwrap(), None);
        assert_eq!(decode(&entity(&[])).unwrap(), []);
    }

    #[test]
    fn version_2_tells_inline_values_from_references() {
        let bytes = b"\x02\x02\x02\x02\x02\x01\x11\x00\x02\x03\x04bcabcREF!";
        let columns = decode(bytes).unwrap();
        assert_eq!(columns[0], Column { name: b"", value: b"abc", in_blob: false });
        assert_eq!(columns[1], Column { name: b"bc", value: b"REF!", in_blob: true });
        assert_eq!(default_column(bytes).unwrap().unwrap().value, b"abc");
        let referred = b"\x02\x01\x01\x01\x00\x11\x00\x04REF!";
        assert!(default_column(referred).unwrap().unwrap().in_blob);
    }

    #[test]
    fn references_are_listed_and_replaced_by_their_values() {
        let bytes = b"\x02\x02\x02\x02\x02\x01\x11\x00\x02\x03\x04bcabcREF!";
        let mut seen = Vec::new();
        each_blob(bytes, |index| {
            seen.push(index.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [b"REF!"]);
        let whole = with_values(bytes, |index| Ok([index, b" fetched"].concat())).unwrap();
        assert_eq!(*whole, entity(&[(b"", b"abc"), (b"bc", b"REF! fetched")]));
        let plain = entity(&[(b"a", b"1")]);
        let same = with_values(&plain, |_| Ok(b"never")).unwrap();
        assert!(matches!(same, Cow::Borrowed(bytes) if bytes == plain));
        assert!(with_values::<Vec<u8>>(bytes, |_| Err(broken("no file"))).is_err());
    }

    #[test]
    fn names_out_of_order_are_refused_in_both_directions() {
        assert!(encode(&[(b"b", b""), (b"a", b"")], &mut Vec::new()).is_err());
        assert!(encode(&[(b"a", b""), (b"a", b"")], &mut Vec::new()).is_err());
        assert!(decode(b"\x01\x02\x01b\x00\x01a\x00").is_err());
    }

    #[test]
    fn cut_and_changed_entities_are_errors_or_other_entities_but_never_panics() {
        for bytes in [
            entity(&[(b"", b"main"), (b"a", b""), (b"bc", b"xyz")]),
            b"\x02\x02\x02\x02\x02\x01\x11\x00\x02\x03\x04bcabcREF!".to_vec(),
        ] {
            for len in 0..bytes.len() {
                assert!(decode(&bytes[..len]).is_err(), "cut at {len}");
            }
            for at in 0..bytes.len() {
                for byte in 0..=255 {
                    let mut changed = bytes.clone();
                    changed[at] = byte;
                    let _ = (decode(&changed), default_column(&changed));
                }
            }
        }
        assert!(decode(b"\x01\xFF\xFF\xFF\xFF\x0F").is_err());
        assert!(decode(b"\x03\x00").is_err());
    }
}
