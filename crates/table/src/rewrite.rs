//! Brings the rarer forms of data blocks into the one form the rest of the crate searches.
//!
//! - *Separated* blocks hold all keys, then all values:
//!   ```text
//!   entry = v32 shared | v32 non_shared | v32 value length | restart points: v32 value offset | key suffix
//!   block = entries | values | u32 restart ... | hash index | u32 where values start | u32 packed
//!   ```
//! - Blocks of a file that was ingested store sequence number 0; the file's own number stands in for it.
//!
//! Done once, when a block is loaded: the cached block has the usual form, so that lookups and
//! iterators pay nothing for it.
//! Source: RocksDB `table/block_based/block_builder.cc`, `block.h` (global sequence numbers).

use crate::block::{Contents, SEPARATED_BIT, decode_entry, packed_word};
use crate::block_builder::BlockBuilder;
use outcrop_base::coding::{Decoder, fixed32_at};
use outcrop_base::keys::Trailer;
use outcrop_base::{Error, Result, SeqNum};

/// Entries between restart points of rewritten blocks: RocksDB's default.
const RESTART_INTERVAL: u32 = 16;

/// True if the block cannot be used as it is.
#[inline]
pub fn is_needed(block: &[u8], global_seqno: Option<SeqNum>) -> bool {
    global_seqno.is_some() || packed_word(block).is_some_and(|word| word & SEPARATED_BIT != 0)
}

/// The same entries in an ordinary block, with `global_seqno` in their keys.
///
/// # Errors
/// Corruption saying what is wrong with the block, without the file's name.
pub fn rewrite(block: &[u8], global_seqno: Option<SeqNum>) -> Result<Vec<u8>> {
    let mut builder = BlockBuilder::new(RESTART_INTERVAL);
    let mut stamped: Vec<u8> = Vec::new();
    let mut add = |key: &[u8], value: &[u8]| {
        let Some(seq) = global_seqno else {
            builder.add(key, value);
            return Ok(());
        };
        let at = key.len().checked_sub(Trailer::LEN).ok_or_else(|| broken("a key is no internal key"))?;
        stamped.clear();
        stamped.extend_from_slice(&key[..at]);
        stamped.extend_from_slice(&((seq.0 << 8) | u64::from(key[at])).to_le_bytes());
        builder.add(&stamped, value);
        Ok(())
    };
    if packed_word(block).is_some_and(|word| word & SEPARATED_BIT != 0) {
        each_separated(block, &mut add)?;
    } else {
        each_ordinary(block, &mut add)?;
    }
    Ok(builder.finish().to_vec())
}

fn broken(what: &str) -> Error {
    Error::corruption(format!("a block does not decode: {what}"))
}

fn each_ordinary(block: &[u8], add: &mut impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
    let contents = Contents::parse(block)?;
    let mut key: Vec<u8> = Vec::new();
    let mut at = 0;
    while at < contents.entries.len() {
        let entry = decode_entry(contents.entries, at)
            .filter(|entry| entry.shared <= key.len())
            .ok_or_else(|| broken("an entry runs past the end"))?;
        key.truncate(entry.shared);
        key.extend_from_slice(&contents.entries[entry.suffix.0..entry.suffix.1]);
        add(&key, &contents.entries[entry.value.0..entry.value.1])?;
        at = entry.value.1;
    }
    Ok(())
}

fn each_separated(block: &[u8], add: &mut impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
    // Four bytes before the packed word say where values start; without them it is an ordinary block.
    let at = block.len().checked_sub(8).ok_or_else(|| broken("too short"))?;
    let values_at = fixed32_at(block, at) as usize;
    let word = fixed32_at(block, at + 4) & !SEPARATED_BIT;
    let ordinary = [&block[..at], &word.to_le_bytes()].concat();
    let contents = Contents::parse(&ordinary)?;
    let (keys, mut values) =
        contents.entries.split_at_checked(values_at).ok_or_else(|| broken("values start after the end"))?;
    let all_values = values;
    let mut decoder = Decoder::new(keys);
    let mut key: Vec<u8> = Vec::new();
    let mut next_restart = 0;
    while !decoder.is_empty() {
        let place = keys.len() - decoder.rest().len();
        let mut number = || decoder.varint32().map(|number| number as usize);
        let (Some(shared), Some(non_shared), Some(value_len)) = (number(), number(), number()) else {
            return Err(broken("an entry is cut short"));
        };
        if next_restart < contents.num_restarts() && contents.restart(next_restart) == place {
            let offset = number().ok_or_else(|| broken("a restart point is cut short"))?;
            values = all_values.get(offset..).ok_or_else(|| broken("a value is outside the block"))?;
            next_restart += 1;
        }
        let suffix = decoder.bytes(non_shared).ok_or_else(|| broken("a key runs past the end"))?;
        if shared > key.len() {
            return Err(broken("an entry shares more than the key before it has"));
        }
        key.truncate(shared);
        key.extend_from_slice(suffix);
        let (value, rest) =
            values.split_at_checked(value_len).ok_or_else(|| broken("a value runs past the end"))?;
        add(&key, value)?;
        values = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::decode_pairs;
    use outcrop_base::ValueType;
    use outcrop_base::keys::internal_key;

    #[test]
    fn keys_get_the_files_sequence_number_even_where_footers_are_shared() {
        // The second user key is the first's internal key cut short: entries share parts of footers.
        let user_keys: [&[u8]; 4] = [b"a", b"a\x01\0\0", b"a\x01\0\0\0", b"b"];
        let types = [ValueType::Value, ValueType::Deletion, ValueType::Deletion, ValueType::Merge];
        let rows = |seq: u64| -> Vec<(Vec<u8>, Vec<u8>)> {
            let keys = user_keys.iter().zip(types);
            keys.map(|(key, kind)| (internal_key(key, SeqNum(seq), kind), key.to_vec())).collect()
        };
        let mut builder = BlockBuilder::new(16);
        rows(0).iter().for_each(|(key, value)| builder.add(key, value));
        let block = rewrite(builder.finish(), Some(SeqNum(77))).unwrap();
        let read: Vec<(Vec<u8>, Vec<u8>)> =
            decode_pairs(&block).unwrap().into_iter().map(|(key, value)| (key, value.to_vec())).collect();
        assert_eq!(read, rows(77));
    }

    #[test]
    fn forged_blocks_are_errors() {
        for len in 0..40 {
            let mut block = vec![1; len];
            block.extend_from_slice(&(SEPARATED_BIT | 1).to_le_bytes());
            let _ = rewrite(&block, Some(SeqNum(1)));
            let _ = rewrite(&block, None);
        }
    }
}
