//! LZ4 blocks with high compression: for each position the longest of many earlier matches, not the first one found.
//!
//! ```text
//! sequence = token: 4 bits literals, 4 bits match - 4 | more literals: u8 ... | literals
//!          | offset back: u16 | more match: u8 ...            (15 in the token: 255 goes on, less ends)
//! the last sequence is literals alone: the last 5 bytes, at least
//! ```
//! Places with the same hash of 4 bytes are chained, newest first; a level sets how many of a chain are tried.
//! A match is put off by a byte while the next place has a longer one. Readers need nothing new: the format is
//! that of LZ4.
//! Source of the format: lz4 `doc/lz4_Block_format.md`.

use crate::block_builder::shared_prefix;

const MIN_MATCH: usize = 4;
/// The last match starts at least this many bytes before the end.
const LAST_MATCH: usize = 12;
/// The last bytes are literals.
const LAST_LITERALS: usize = 5;
const MAX_OFFSET: usize = 65_535;
const HASH_BITS: u32 = 15;

/// The level RocksDB's default stands for.
pub const DEFAULT_LEVEL: i32 = 9;

/// Tables of the match finder, kept from block to block.
pub struct Encoder {
    /// Most candidates tried for one place.
    attempts: usize,
    /// Place + 1 of the newest occurrence of each hash; 0: none.
    heads: Vec<u32>,
    /// Distance from each place to the one before it in its chain; 0: none.
    chain: Vec<u16>,
    /// Dictionary and contents, one after the other.
    text: Vec<u8>,
}

/// An earlier occurrence of what stands at a place.
#[derive(Clone, Copy)]
struct Match {
    distance: usize,
    len: usize,
}

impl Encoder {
    /// An encoder of this level, 1 to 12.
    pub fn new(level: i32) -> Encoder {
        Encoder {
            attempts: 1 << (level.clamp(1, 12) - 1),
            heads: vec![0; 1 << HASH_BITS],
            chain: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Appends the LZ4 block of `contents`, which may refer back to `dictionary` of at most 64 KiB.
    pub fn encode(&mut self, dictionary: &[u8], contents: &[u8], out: &mut Vec<u8>) {
        self.text.clear();
        self.text.extend_from_slice(dictionary);
        self.text.extend_from_slice(contents);
        self.heads.fill(0);
        self.chain.clear();
        let end = self.text.len();
        let (mut at, mut literals) = (dictionary.len(), dictionary.len());
        while at + LAST_MATCH < end {
            let Some(mut found) = self.longest(at) else {
                at += 1;
                continue;
            };
            while at + 1 + LAST_MATCH < end {
                match self.longest(at + 1).filter(|next| next.len > found.len) {
                    Some(next) => {
                        found = next;
                        at += 1;
                    }
                    None => break,
                }
            }
            put_sequence(out, &self.text[literals..at], Some(found));
            at += found.len;
            literals = at;
        }
        put_sequence(out, &self.text[literals..], None);
    }

    /// The longest match for the bytes at `at`.
    fn longest(&mut self, at: usize) -> Option<Match> {
        self.chain_up_to(at);
        let limit = self.text.len() - LAST_LITERALS;
        let here = &self.text[at..limit];
        let mut best: Option<Match> = None;
        let mut place = at;
        for _ in 0..self.attempts {
            let step = usize::from(self.chain[place]);
            if step == 0 || at - (place - step) > MAX_OFFSET {
                break;
            }
            place -= step;
            let len = shared_prefix(&self.text[place..limit], here);
            if len >= MIN_MATCH && best.is_none_or(|best| len > best.len) {
                best = Some(Match { distance: at - place, len });
                if len == here.len() {
                    break;
                }
            }
        }
        best
    }

    /// Enters all places up to and including `at` into their chains.
    fn chain_up_to(&mut self, at: usize) {
        for place in self.chain.len()..=at {
            let bytes = self.text[place..place + MIN_MATCH].try_into().expect("4 bytes");
            let hash = u32::from_le_bytes(bytes).wrapping_mul(2_654_435_761) >> (32 - HASH_BITS);
            let head = &mut self.heads[hash as usize];
            let distance = (place + 1).saturating_sub(*head as usize);
            let known = *head != 0 && distance <= MAX_OFFSET;
            self.chain.push(if known { distance as u16 } else { 0 });
            *head = place as u32 + 1;
        }
    }
}

fn put_sequence(out: &mut Vec<u8>, literals: &[u8], found: Option<Match>) {
    let more = found.map_or(0, |found| found.len - MIN_MATCH);
    out.push((literals.len().min(15) << 4 | more.min(15)) as u8);
    put_rest(out, literals.len());
    out.extend_from_slice(literals);
    if let Some(found) = found {
        out.extend_from_slice(&(found.distance as u16).to_le_bytes());
        put_rest(out, more);
    }
}

/// Writes the part of a length that does not fit into its half of the token.
fn put_rest(out: &mut Vec<u8>, len: usize) {
    let Some(mut rest) = len.checked_sub(15) else { return };
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
}
