//! A cache of its own for values in blob files.

use super::{Api, Object, Session, set};

const ROWS: usize = 40;
const VALUE: usize = 4000;
/// Tickers of the cache: misses, hits, values added, and the last two in bytes.
const COUNTS: [u32; 3] = [163, 164, 165];
const BYTES_READ: u32 = 167;
const BYTES_WRITTEN: u32 = 168;

fn with_blobs(api: &Api, options: Object) {
    // SAFETY: live options.
    unsafe {
        (api.rocksdb_options_set_enable_blob_files)(options, 1);
        (api.rocksdb_options_set_min_blob_size)(options, 1000);
    }
}

fn key(row: usize) -> String {
    format!("key{row:04}")
}

fn fill(session: &Session<'_>) {
    (0..ROWS).for_each(|row| session.put(&key(row), &[row as u8; VALUE]));
    session.flush();
}

fn read_all(session: &Session<'_>) {
    for row in 0..ROWS {
        assert_eq!(session.get(&key(row)).unwrap(), Some(vec![row as u8; VALUE]));
    }
}

#[test]
fn values_of_blob_files_go_to_their_own_cache() {
    for prepopulated in [false, true] {
        Api::same_on_both(|api, path| {
            // SAFETY: live objects.
            let [blocks, values] = [(); 2].map(|()| unsafe { (api.rocksdb_cache_create_lru)(64 << 20) });
            let session = Session::open(api, path, |api, options| {
                with_blobs(api, options);
                if prepopulated {
                    set(api, options, c"prepopulate_blob_cache=kFlushOnly");
                }
                // SAFETY: live objects.
                unsafe {
                    let table = (api.rocksdb_block_based_options_create)();
                    (api.rocksdb_block_based_options_set_block_cache)(table, blocks);
                    (api.rocksdb_options_set_block_based_table_factory)(options, table);
                    (api.rocksdb_options_set_blob_cache)(options, values);
                }
            });
            fill(&session);
            let flushed = COUNTS.map(|ticker| session.ticker(ticker));
            assert_eq!(flushed[2] > 0, prepopulated);
            read_all(&session);
            read_all(&session);
            let counts = COUNTS.map(|ticker| session.ticker(ticker));
            assert!(counts[1] >= ROWS as u64);
            // SAFETY: live caches.
            let (count, usage, blocks) = unsafe {
                let count = (api.rocksdb_cache_get_occupancy_count)(values);
                (count, (api.rocksdb_cache_get_usage)(values), (api.rocksdb_cache_get_usage)(blocks))
            };
            let near = |bytes: usize, wanted: usize| bytes.abs_diff(wanted) < wanted / 10;
            assert!(near(usage, ROWS * VALUE), "{usage}");
            assert!(blocks < ROWS * VALUE / 2, "values are not in the block cache, too: {blocks}");
            assert_eq!(session.property(c"rocksdb.blob-cache-usage"), Some(usage as u64));
            assert!(near(session.ticker(BYTES_WRITTEN) as usize, ROWS * VALUE));
            assert!(near(session.ticker(BYTES_READ) as usize, counts[1] as usize * VALUE));
            let properties = [c"rocksdb.blob-cache-capacity", c"rocksdb.blob-cache-pinned-usage"]
                .map(|name| session.property(name));
            (flushed, counts, count, properties)
        });
    }
}

#[test]
fn a_string_of_options_makes_a_blob_cache_whose_capacity_is_kept_to() {
    let capacity = ROWS / 2 * VALUE;
    Api::same_on_both(|api, path| {
        let session = Session::open(api, path, |api, options| {
            with_blobs(api, options);
            set(api, options, &std::ffi::CString::new(format!("blob_cache={capacity}")).unwrap());
        });
        fill(&session);
        read_all(&session);
        let usage = session.property(c"rocksdb.blob-cache-usage").unwrap() as usize;
        assert!(usage <= capacity && usage > capacity / 4, "{usage}");
        (
            session.property(c"rocksdb.blob-cache-capacity"),
            session.ticker(COUNTS[0]),
            session.ticker(COUNTS[1]),
        )
    });
}

#[test]
fn without_one_there_is_nothing_to_tell_of_it() {
    Api::same_on_both(|api, path| {
        let session = Session::open(api, path, with_blobs);
        [c"rocksdb.blob-cache-capacity", c"rocksdb.blob-cache-usage", c"rocksdb.blob-cache-pinned-usage"]
            .map(|name| session.property(name))
    });
}
