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
    let reader = reader_options(Comparator::Bytewise, None, None);
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
