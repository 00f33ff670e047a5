//! Uses the crate `rocksdb` as its documentation does.

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, Direction, IteratorMode, Options, WriteBatch, DB,
};

/// A cache, as the versions of the crate give it.
trait Made {
    fn made(self) -> Cache;
}

impl Made for Cache {
    fn made(self) -> Cache {
        self
    }
}

impl<E: std::fmt::Debug> Made for Result<Cache, E> {
    fn made(self) -> Cache {
        self.unwrap()
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: program DIRECTORY");
    let _ = DB::destroy(&Options::default(), &path);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(8 << 20).made());
    table.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_block_based_table_factory(&table);
    options.set_merge_operator_associative("append", |_, existing, operands| {
        let mut merged = existing.unwrap_or_default().to_vec();
        operands.iter().for_each(|operand| merged.extend_from_slice(operand));
        Some(merged)
    });
    {
        let families = ["default", "users"].map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
        let db = DB::open_cf_descriptors(&options, &path, families).unwrap();
        let users = db.cf_handle("users").unwrap();
        db.put(b"k1", b"v1").unwrap();
        db.merge_cf(users, b"ann", b"a").unwrap();
        db.merge_cf(users, b"ann", b"b").unwrap();
        let mut batch = WriteBatch::default();
        batch.put(b"k2", b"v2");
        batch.put_cf(users, b"bob", b"c");
        batch.delete(b"k1");
        db.write(batch).unwrap();
        db.flush_cf(users).unwrap();
        println!("ann: {:?}", db.get_cf(users, b"ann").unwrap());
        println!("k1: {:?}, k2: {:?}", db.get(b"k1").unwrap(), db.get_pinned(b"k2").unwrap().as_deref());
        let snapshot = db.snapshot();
        db.put(b"k3", b"v3").unwrap();
        println!("in the snapshot: {:?}", snapshot.get(b"k3").unwrap());
        for item in db.iterator_cf(users, IteratorMode::From(b"a", Direction::Forward)) {
            let (key, value) = item.unwrap();
            println!("{:?} = {:?}", key, value);
        }
        println!("live files: {}", db.live_files().unwrap().len());
    }
    println!("families: {:?}", DB::list_cf(&options, &path).unwrap());
    DB::destroy(&options, &path).unwrap();
    println!("all good");
}
