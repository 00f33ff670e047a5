//! The engine's statistics in the form that benchmark scripts read.
//!
//! Scripts take columns of the row ` Sum` by their number, and stalls from the line `Stalls(count):`. RocksDB 10 added a
//! column in the middle and gave the line another form; its own `benchmark.sh` of that version still reads the older one. So
//! the tool prints the older form whichever engine it measures.

/// The column that older tables do not have.
const NEWER_COLUMN: &str = "WPreComp(GB)";

/// `text`, a value of `rocksdb.stats`, in the older form.
pub(super) fn for_scripts(text: &str) -> String {
    let mut older = String::with_capacity(text.len() + 200);
    // Index of the newer column among the words of a row, while rows of such a table come.
    let mut column = None;
    for line in text.split_inclusive('\n') {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(index) = words.iter().position(|word| *word == NEWER_COLUMN) {
            older.push_str(&without_word(line, index));
            // A row has one word more: the unit of its size.
            column = Some(index + 1);
            continue;
        }
        match column {
            Some(_) if words.is_empty() => column = None,
            Some(index) if words.len() > index => {
                older.push_str(&without_word(line, index));
                continue;
            }
            _ => {}
        }
        older.push_str(line);
        if let Some(counts) = line.strip_prefix("Write Stall (count): ")
            && let Some(stalls) = stalls(counts)
        {
            older.push_str(&stalls);
        }
    }
    older
}

/// `line` without the word at `index` and the space before it.
fn without_word(line: &str, index: usize) -> String {
    let mut ends = Vec::new();
    let mut at = 0;
    for word in line.split_whitespace() {
        let start = at + line[at..].find(word).expect("a word of the line");
        at = start + word.len();
        ends.push(at);
    }
    let from = if index == 0 { 0 } else { ends[index - 1] };
    format!("{}{}", &line[..from], &line[ends[index]..])
}

/// The older line, from counts of the newer such as `memtable-limit-stops: 3, `; `None` for those of a whole database.
fn stalls(counts: &str) -> Option<String> {
    let of = |name: &str| -> Option<u64> {
        let mut pairs = counts.split(", ").filter_map(|pair| pair.split_once(": "));
        pairs.find(|(known, _)| *known == name).and_then(|(_, count)| count.trim().parse().ok())
    };
    let or_none = |name: &str| of(name).unwrap_or(0);
    Some(format!(
        "Stalls(count): {} level0_slowdown, {} level0_slowdown_with_compaction, {} level0_numfiles, \
         {} level0_numfiles_with_compaction, {} stop for pending_compaction_bytes, \
         {} slowdown for pending_compaction_bytes, {} memtable_compaction, {} memtable_slowdown, \
         interval 0 total count\n",
        of("l0-file-count-limit-delays")?,
        or_none("cf-l0-file-count-limit-delays-with-ongoing-compaction"),
        or_none("l0-file-count-limit-stops"),
        or_none("cf-l0-file-count-limit-stops-with-ongoing-compaction"),
        or_none("pending-compaction-bytes-stops"),
        or_none("pending-compaction-bytes-delays"),
        or_none("memtable-limit-stops"),
        or_none("memtable-limit-delays"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWER: &str = "\
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt)
------
  L0      3/0   59.04 MB   0.8      0.0     0.0      0.0       0.1          0.2       0.3       0.0   1.0      0.0    105.7      1.25              0.75         9
 Sum      3/0   59.04 MB   0.0      0.0     0.0      0.0       0.1          0.2       0.3       0.0   1.0      0.0    105.7      1.25              0.75         9

Flush(GB): cumulative 0.075, interval 0.075
Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 1, cf-l0-file-count-limit-stops-with-ongoing-compaction: 0, l0-file-count-limit-delays: 2, l0-file-count-limit-stops: 3, memtable-limit-delays: 4, memtable-limit-stops: 5, pending-compaction-bytes-delays: 6, pending-compaction-bytes-stops: 7, total-delays: 12, total-stops: 15, interval: 0 total count
Write Stall (count): write-buffer-manager-limit-stops: 0
";

    /// Words of `line`, as awk numbers them from 1.
    fn word(text: &str, line: &str, number: usize) -> String {
        let line =
            text.lines().find(|text| text.starts_with(line)).unwrap_or_else(|| panic!("{line}: {text}"));
        line.split_whitespace().nth(number - 1).unwrap().to_string()
    }

    #[test]
    fn columns_have_the_numbers_that_scripts_know() {
        let text = for_scripts(NEWER);
        assert_eq!((word(&text, " Sum", 15), word(&text, " Sum", 16)), ("1.25".into(), "0.75".into()));
        assert_eq!((word(&text, "  L0", 9), word(&text, "  L0", 10)), ("0.1".into(), "0.3".into()));
        assert!(!text.contains(NEWER_COLUMN) && text.contains("Write(GB) Wnew(GB)"), "{text}");
        assert_eq!(word(&text, "Flush(GB)", 3), "0.075,");
        assert_eq!(for_scripts(&text.replace("Write Stall", "Other")), text.replace("Write Stall", "Other"));
    }

    #[test]
    fn stalls_stand_where_scripts_sum_them_up() {
        let text = for_scripts(NEWER);
        let counts = [2, 6, 10, 14, 18, 20].map(|number| word(&text, "Stalls(count):", number));
        assert_eq!(counts, ["2", "3", "7", "6", "5", "4"]);
        assert_eq!(text.matches("Stalls(count):").count(), 1);
    }
}
