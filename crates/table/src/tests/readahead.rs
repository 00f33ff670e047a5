//! How much of a table an iterator reads at once, and when.

use super::*;
use outcrop_env::{Env, ReadFile};
use std::sync::Mutex;

/// An operation on a file: reads, and hints of reads to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Read(u64, usize),
    Hint(u64, usize),
}

struct Watched {
    file: Arc<dyn ReadFile>,
    events: Mutex<Vec<Event>>,
}

impl ReadFile for Watched {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.events.lock().unwrap().push(Event::Read(offset, buf.len()));
        self.file.read_at(offset, buf)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn prefetch(&self, offset: u64, len: usize) {
        self.events.lock().unwrap().push(Event::Hint(offset, len));
    }
}

/// Rows of a table of about 1 MB, what a scan of it gives, and what it does to the file.
fn watched_scan(options: TableIterOptions) -> (u64, Vec<Event>) {
    watched_scan_with(options, &[])
}

/// The same of a table that is opened with these options of tables.
fn watched_scan_with(options: TableIterOptions, table_options: &[(&str, &str)]) -> (u64, Vec<Event>) {
    let rows: Rows = (0..2000u64)
        .map(|i| {
            (internal_key(format!("{i:08}").as_bytes(), SeqNum(1), ValueType::Value), vec![i as u8; 500])
        })
        .collect();
    let table = BlockBasedTableOptions { block_size: 4096, ..BlockBasedTableOptions::default() };
    let bytes = write_table(&rows, writer_options(table, CompressionType::None));
    let (fs, path) = put_file(&bytes);
    let env = Env::with_file_system(Arc::new(fs));
    let file = env.fs.open_read(&path, OpenRead::default()).unwrap();
    let watched = Arc::new(Watched { file, events: Mutex::default() });
    let mut opened = BlockBasedTableOptions::default();
    for (name, text) in table_options {
        assert!(opened.kept.set(outcrop_options::kept::TABLE_KEPT, name, text).unwrap(), "{name}");
    }
    let auto_readahead = AutoReadahead::of(&opened);
    let reader = TableReaderOptions { auto_readahead, ..reader_options(Comparator::Bytewise, None, None) };
    let table = Arc::new(TableReader::open(watched.clone(), reader).unwrap());
    watched.events.lock().unwrap().clear();
    assert_eq!(scan(&table, options).unwrap(), rows);
    let events = watched.events.lock().unwrap().clone();
    (table.properties().data_size, events)
}

#[test]
fn a_scan_reads_growing_stretches_and_asks_for_each_before_it_comes_to_it() {
    let (data_size, events) = watched_scan(TableIterOptions::default());
    let reads: Vec<(u64, usize)> = events
        .iter()
        .filter_map(|event| if let Event::Read(at, len) = event { Some((*at, *len)) } else { None })
        .collect();
    assert_eq!(reads.iter().map(|(_, len)| *len as u64).sum::<u64>(), data_size, "nothing is read twice");
    assert!(reads.is_sorted_by_key(|(at, _)| *at));
    // Two blocks alone, then stretches of 16 KiB to 256 KiB.
    assert!(reads.len() <= 10, "{reads:?}");
    assert!(reads.iter().all(|(_, len)| *len <= 256 << 10));
    let hints: Vec<usize> = (0..events.len()).filter(|&i| matches!(events[i], Event::Hint(..))).collect();
    assert!(hints.len() >= 3, "{events:?}");
    for hint in hints {
        let Event::Hint(at, len) = events[hint] else { unreachable!("filtered") };
        assert!(events[hint..].contains(&Event::Read(at, len)), "asked for and not read: {at}, {len}");
    }
}

#[test]
fn a_stretch_that_was_asked_for_begins_with_the_first_block() {
    let (data_size, events) = watched_scan(TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: 100_000,
        ..TableIterOptions::default()
    });
    let reads = events.iter().filter(|event| matches!(event, Event::Read(..))).count();
    // Each lacks less than a block of what was asked for.
    assert_eq!(reads, data_size.div_ceil(97_000) as usize, "{events:?}");
    assert!(matches!(events[..2], [Event::Read(0, _), Event::Hint(..)]), "{events:?}");
}

#[test]
fn a_buffered_file_is_asked_for_as_far_as_told_and_copied_in_small_stretches() {
    let asked = 400_000;
    let options =
        TableIterOptions { loading: Loading::NotKept, readahead_bytes: asked, ..TableIterOptions::default() };
    let (data_size, events) = watched_scan(options);
    let (mut read_to, mut hinted_to) = (0, None);
    for event in events {
        match event {
            Event::Read(at, len) => {
                assert!(len <= 256 << 10, "{len}");
                assert_eq!(at, read_to, "in order, nothing twice");
                read_to = at + len as u64;
                assert!(hinted_to.is_none_or(|hinted| read_to <= hinted), "not asked for: {at}, {len}");
            }
            Event::Hint(at, len) => {
                assert_eq!(at, hinted_to.unwrap_or(read_to), "nothing is asked for twice");
                let to = at + len as u64;
                assert!(to >= data_size || to >= read_to + asked as u64, "only up to {to} from {read_to}");
                hinted_to = Some(to);
            }
        }
    }
    assert_eq!(read_to, data_size);
}

#[test]
fn options_say_when_reading_ahead_begins_and_how_far_it_grows() {
    let reads = |table_options: &[(&str, &str)]| -> Vec<usize> {
        let (_, events) = watched_scan_with(TableIterOptions::default(), table_options);
        events
            .iter()
            .filter_map(|event| if let Event::Read(_, len) = event { Some(*len) } else { None })
            .collect()
    };
    for off in ["max_auto_readahead_size", "initial_auto_readahead_size"] {
        let reads = reads(&[(off, "0")]);
        assert!(reads.len() > 200 && reads.iter().all(|len| *len < 5000), "{off}: {reads:?}");
    }
    let small = reads(&[("max_auto_readahead_size", "32k")]);
    assert!(small.iter().all(|len| *len <= 32 << 10) && small.len() > 30, "{small:?}");
    let large = reads(&[("max_auto_readahead_size", "1M"), ("initial_auto_readahead_size", "64k")]);
    assert!(large.iter().any(|len| *len > 256 << 10) && large.len() < 8, "{large:?}");
    let late = reads(&[("num_file_reads_for_auto_readahead", "9")]);
    // The ninth block in a row is the first of a stretch.
    assert!(late[..8].iter().all(|len| *len < 5000) && late[8] > 10_000, "{late:?}");
    let at_once = reads(&[("num_file_reads_for_auto_readahead", "0")]);
    assert!(at_once[0] > 10_000, "{at_once:?}");
}
