//! The merge operators RocksDB ships, by the names files and options know them under.
//!
//! Source: RocksDB `utilities/merge_operators/`.

use crate::MergeOperator;
use std::sync::Arc;

/// The operator called `name`, by its id or one of its nicknames; a delimiter may follow as `:DELIMITER` where the
/// operator has one.
pub fn by_name(name: &str) -> Option<Arc<dyn MergeOperator>> {
    let (id, delimiter) = match name.split_once(':') {
        Some((id, delimiter)) => (id, Some(delimiter)),
        None => (name, None),
    };
    let joined = |id| Arc::new(StringAppend { id, delimiter: delimiter.unwrap_or(",").as_bytes().to_vec() });
    let found: Arc<dyn MergeOperator> = match id {
        STRING_APPEND | "stringappend" => joined(STRING_APPEND),
        STRING_APPEND_APART | "stringappendtest" => joined(STRING_APPEND_APART),
        _ if delimiter.is_some() => return None,
        "UInt64AddOperator" | "uint64add" => Arc::new(UInt64Add),
        "PutOperator" | "put" | "put_v1" => Arc::new(Put),
        "MaxOperator" | "max" => Arc::new(Max),
        "BytesXOR" | "bytesxor" => Arc::new(BytesXor),
        "MergeSortOperator" | "sortlist" => Arc::new(SortList),
        _ => return None,
    };
    Some(found)
}

/// Adds little-endian u64 numbers; a value of another length counts as 0.
pub struct UInt64Add;

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl MergeOperator for UInt64Add {
    fn name(&self) -> &str {
        "UInt64AddOperator"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let all = existing.iter().chain(operands);
        Some(all.fold(0u64, |sum, bytes| sum.wrapping_add(number(bytes))).to_le_bytes().to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

const STRING_APPEND: &str = "StringAppendOperator";
/// Keeps operands apart until it knows what they apply to: it is Flink's, whose compaction filter is asked about each of them.
const STRING_APPEND_APART: &str = "StringAppendTESTOperator";

/// Joins strings with a delimiter.
pub struct StringAppend {
    id: &'static str,
    delimiter: Vec<u8>,
}

impl StringAppend {
    /// With a delimiter of any bytes; a name has only text for it.
    pub fn new(delimiter: impl Into<Vec<u8>>) -> StringAppend {
        StringAppend { id: STRING_APPEND, delimiter: delimiter.into() }
    }
}

impl MergeOperator for StringAppend {
    fn name(&self) -> &str {
        self.id
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Some(parts.join(&self.delimiter[..]))
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        (self.id != STRING_APPEND_APART).then(|| operands.join(&self.delimiter[..]))
    }
}

/// The newest operand.
pub struct Put;

impl MergeOperator for Put {
    fn name(&self) -> &str {
        "PutOperator"
    }

    fn full_merge(&self, _key: &[u8], _existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        operands.last().map(|newest| newest.to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

/// The bytewise largest.
pub struct Max;

impl MergeOperator for Max {
    fn name(&self) -> &str {
        "MaxOperator"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        existing.into_iter().chain(operands.iter().copied()).max().map(<[u8]>::to_vec)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

/// Bitwise exclusive or; the result is as long as the longest.
pub struct BytesXor;

impl MergeOperator for BytesXor {
    fn name(&self) -> &str {
        "BytesXOR"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let mut result: Vec<u8> = Vec::new();
        for bytes in existing.into_iter().chain(operands.iter().copied()) {
            result.resize(result.len().max(bytes.len()), 0);
            result.iter_mut().zip(bytes).for_each(|(a, b)| *a ^= b);
        }
        Some(result)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

/// Merges sorted lists of numbers, written in decimal with commas between.
pub struct SortList;

fn numbers(bytes: &[u8]) -> Option<Vec<i64>> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.split(',').filter(|word| !word.is_empty()).map(|word| word.trim().parse().ok()).collect()
}

impl MergeOperator for SortList {
    fn name(&self) -> &str {
        "MergeSortOperator"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let mut all: Vec<i64> = Vec::new();
        for bytes in existing.into_iter().chain(operands.iter().copied()) {
            all.extend(numbers(bytes)?);
        }
        all.sort_unstable();
        Some(all.iter().map(i64::to_string).collect::<Vec<_>>().join(",").into_bytes())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(name: &str, existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        by_name(name).unwrap().full_merge(b"k", existing, operands)
    }

    #[test]
    fn each_operator_does_what_its_name_says() {
        let five = 5u64.to_le_bytes();
        assert_eq!(merged("uint64add", Some(&five), &[&five, b"odd"]).unwrap(), 10u64.to_le_bytes());
        assert_eq!(merged("stringappend", Some(b"a"), &[b"b", b"c"]).unwrap(), b"a,b,c");
        assert_eq!(merged("StringAppendOperator:--", None, &[b"b", b"c"]).unwrap(), b"b--c");
        assert_eq!(merged("PutOperator", Some(b"a"), &[b"b", b"c"]).unwrap(), b"c");
        assert_eq!(merged("max", Some(b"q"), &[b"b", b"z", b"c"]).unwrap(), b"z");
        assert_eq!(merged("bytesxor", Some(&[1, 2]), &[&[3], &[0, 0, 7]]).unwrap(), [2, 2, 7]);
        assert_eq!(merged("sortlist", Some(b"1,9"), &[b"3,4", b"2"]).unwrap(), b"1,2,3,4,9");
        assert_eq!(merged("sortlist", Some(b"x"), &[b"3"]), None);
        assert!(by_name("nothing").is_none() && by_name("max:,").is_none());
    }

    #[test]
    fn merging_in_steps_gives_what_merging_at_once_gives() {
        let operands: [&[u8]; 3] = [b"12,30", b"4,50", b"7"];
        for name in ["uint64add", "stringappend", "put", "max", "bytesxor", "sortlist"] {
            let operator = by_name(name).unwrap();
            let first = operator.partial_merge(b"k", &operands[..2]).unwrap();
            let steps = operator.full_merge(b"k", Some(b"1"), &[&first, operands[2]]);
            assert_eq!(steps, operator.full_merge(b"k", Some(b"1"), &operands), "{name}");
        }
    }

    #[test]
    fn a_delimiter_need_not_be_text() {
        assert_eq!(StringAppend::new([0xff]).full_merge(b"k", None, &[b"b", b"c"]).unwrap(), b"b\xffc");
    }

    #[test]
    fn the_operator_of_flink_joins_nothing_before_it_knows_what_comes_first() {
        let operator = by_name("stringappendtest").unwrap();
        assert_eq!(operator.partial_merge(b"k", &[b"b", b"c"]), None);
        assert_eq!(operator.full_merge(b"k", None, &[b"b", b"c"]).unwrap(), b"b,c");
    }
}
