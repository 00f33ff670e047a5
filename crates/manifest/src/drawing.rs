//! Versions from drawings, for tests: those of this crate, and with the feature `drawing` those of others.

use crate::{FileNumber, Level, TableFile, Version};
use outcrop_base::keys::internal_key;
use outcrop_base::{Comparator, SeqNum, ValueType};
use std::sync::Arc;

impl Version {
    /// A version from a drawing, for tests: one line per level, one table per word.
    ///
    /// ```text
    /// L0: 8[c..z]@11-20 7[a..m]@1-10
    /// L1: 3[a..f]@1-9,size=100,epoch=2 4[g..p]
    /// ```
    /// A table is `number[smallest..largest]`, then optionally `@seq` or `@first-last` and `,size=BYTES`,
    /// `,epoch=N`. Without them: sequence 1, size 1, epoch = number. L0 is drawn newest first.
    ///
    /// # Panics
    /// If the drawing does not parse.
    pub fn parse(drawing: &str, num_levels: usize) -> Version {
        let mut version = Version::empty(num_levels);
        for line in drawing.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (level, tables) = line.split_once(':').expect("a line is L<n>: tables");
            let level: usize = level.trim().strip_prefix('L').and_then(|n| n.parse().ok()).expect("L<n>");
            let files = tables.split_whitespace().map(|word| Arc::new(parse_table(word))).collect();
            version.levels[level] = Level::new(files, &Comparator::Bytewise);
        }
        version
    }
}

fn parse_table(word: &str) -> TableFile {
    let (number, rest) = word.split_once('[').expect("number[");
    let (range, rest) = rest.split_once(']').expect("[smallest..largest]");
    let (smallest, largest) = range.split_once("..").expect("smallest..largest");
    let number = number.parse().expect("a table number");
    let (mut first, mut last, mut size, mut epoch) = (1, 1, 1, number);
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        if let Some(seqs) = part.strip_prefix('@') {
            let (a, b) = seqs.split_once('-').unwrap_or((seqs, seqs));
            (first, last) = (a.parse().expect("sequence"), b.parse().expect("sequence"));
        } else if let Some(text) = part.strip_prefix("size=") {
            size = text.parse().expect("size");
        } else if let Some(text) = part.strip_prefix("epoch=") {
            epoch = text.parse().expect("epoch");
        } else {
            panic!("unknown part {part:?} of table {word:?}");
        }
    }
    let key = |text: &str, seq| internal_key(text.as_bytes(), SeqNum(seq), ValueType::Value);
    let mut file = TableFile::new(FileNumber(number), size, key(smallest, last), key(largest, first));
    (file.smallest_seq, file.largest_seq, file.epoch) = (SeqNum(first), SeqNum(last), epoch);
    file
}
