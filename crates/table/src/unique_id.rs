//! The identity of a table, by which the MANIFEST notices that a file is not the one it names.
//!
//! It is derived from the database's id, the session that wrote the table and the file's number then, all
//! stored in the table's properties; so a copied or renamed file keeps it.
//! Source: RocksDB `table/unique_id.cc`; bytes in `docs/format/table.md`.

use outcrop_base::hash::xxh3_128;

/// Digits of session ids.
const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The id of a session from 39 and 64 random bits; `lower` must not be 0.
pub fn session_id(upper: u64, lower: u64) -> String {
    let upper = upper & ((1 << 39) - 1);
    let (a, b) = ((upper << 2) | (lower >> 62), lower & (u64::MAX >> 2));
    let mut text = base36(a, 8);
    text.push_str(&base36(b, 12));
    text
}

fn base36(mut value: u64, digits: usize) -> String {
    let mut text = vec![b'0'; digits];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(value % 36) as usize];
        value /= 36;
    }
    text.into_iter().map(char::from).collect()
}

/// The two numbers in a session id; those of its hash if it is not of the usual shape.
fn decode_session_id(text: &str) -> (u64, u64) {
    decode_base36(text).unwrap_or_else(|| {
        let (hi, lo) = xxh3_128(text.as_bytes(), 0);
        (hi, if lo == 0 { hi | 1 } else { lo })
    })
}

fn decode_base36(text: &str) -> Option<(u64, u64)> {
    if !text.is_ascii() || !(13..=24).contains(&text.len()) {
        return None;
    }
    let (a, b) = text.split_at(text.len() - 12);
    let number = |digits: &str| {
        digits.bytes().try_fold(0u64, |sum, byte| {
            let digit = DIGITS.iter().position(|&d| d == byte)? as u64;
            sum.checked_mul(36)?.checked_add(digit)
        })
    };
    let (a, b) = (number(a)?, number(b)?);
    let (upper, lower) = (a >> 2, b | a << 62);
    (lower != 0).then_some((upper, lower))
}

/// The unique id of the table with number `file_number`, as the MANIFEST stores it.
pub fn table_unique_id(db_id: &str, session_id: &str, file_number: u64) -> [u64; 2] {
    let (upper, lower) = decode_session_id(session_id);
    let (hi, _) = xxh3_128(db_id.as_bytes(), upper);
    [lower, hi ^ file_number]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_rocksdb_computes() {
        let id = table_unique_id("77f5e21b-adfc-4e28-b5d1-7c2b1a2dbe15", "2OL5WRMQG6CMILA3LYAF", 9);
        assert_eq!(id[0].to_le_bytes(), [0xd7, 0xbb, 0x59, 0xac, 0x9b, 0x51, 0x8c, 0x9d]);
        assert_eq!(id[1].to_le_bytes(), [0xa7, 0x1b, 0x77, 0xdb, 0x33, 0x37, 0x04, 0xcb]);
        let id = table_unique_id("bf0fbcc3-0d20-43d8-8c05-755ca189b8ee", "1VFR0HRKXL9N3ALNY0LL", 9);
        assert_eq!(id, [0x3d5b_85f2_ddd1_8289, 0xf109_ff2b_87c6_6dc1]);
    }

    #[test]
    fn session_ids_round_trip() {
        for (upper, lower) in [(0x0c_3cfb_3b38, 0x9d8c_519b_ac59_bbd7), (0, 1), ((1 << 39) - 1, u64::MAX)] {
            assert_eq!(decode_session_id(&session_id(upper, lower)), (upper, lower));
        }
        assert_eq!(session_id(0x0c_3cfb_3b38, 0x9d8c_519b_ac59_bbd7), "2OL5WRMQG6CMILA3LYAF");
    }
}
