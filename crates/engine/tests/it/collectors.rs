//! Collectors of table properties and partitioners that programs bring: their calls, and the effect of their answers.

use crate::harness::creating;
use outcrop::options::CompactionStyle;
use outcrop::*;
use outcrop_base::CfId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Obliging,
    /// Fails at a key `bad`.
    Failing,
    /// Cannot finish.
    Unfinished,
    /// Has every table compacted.
    Restless,
}

/// Notes what it is told of each table, and has the number of entries written into it.
#[derive(Clone)]
struct Telling {
    manner: Manner,
    told: Arc<Mutex<Vec<String>>>,
    entries: u64,
}

impl Telling {
    fn new(manner: Manner) -> Telling {
        Telling { manner, told: Arc::default(), entries: 0 }
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.told.lock()).join(" ")
    }
}

impl TablePropertiesCollectorFactory for Telling {
    fn name(&self) -> &str {
        "test.Telling"
    }

    fn create(&self, column_family: CfId, level: Option<usize>) -> Option<Box<dyn TablePropertiesCollector>> {
        self.told.lock().push(format!("{column_family}:{level:?}"));
        Some(Box::new(self.clone()))
    }
}

impl TablePropertiesCollector for Telling {
    fn add(&mut self, key: &[u8], value: &[u8], kind: EntryKind, seq: SeqNum, _size: u64) -> Result<()> {
        if self.manner == Manner::Failing && key == b"bad" {
            return Err(Error::invalid_argument("a bad key"));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.told.lock().push(format!("{}={}({kind:?},{})", text(key), text(value), seq.0));
        self.entries += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        if self.manner == Manner::Unfinished {
            return Err(Error::invalid_argument("no end"));
        }
        let entries = self.entries.to_string().into_bytes();
        Ok(vec![
            ("test.entries".into(), entries.clone()),
            // Would make the table unreadable.
            ("rocksdb.block.based.table.index.type".into(), b"nonsense".to_vec()),
            ("rocksdb.num.entries".into(), entries),
        ])
    }

    fn needs_compaction(&self) -> bool {
        self.manner == Manner::Restless
    }
}

fn open(env: &Env, style: CompactionStyle, parts: ColumnFamilyParts) -> Db {
    open_with_levels(env, style, 7, parts)
}

fn open_with_levels(env: &Env, style: CompactionStyle, num_levels: i32, parts: ColumnFamilyParts) -> Db {
    let options = ColumnFamilyOptions {
        compaction_style: style,
        num_levels,
        level_compaction_dynamic_level_bytes: false,
        ..ColumnFamilyOptions::default()
    };
    let family = ColumnFamilyDescriptor::default_with(options, parts);
    Db::builder("/db").options(creating()).env(env.clone()).column_family(family).open().unwrap()
}

fn collecting(collectors: &[&Telling]) -> ColumnFamilyParts {
    let collectors = collectors.iter().map(|one| Arc::new((*one).clone()) as _).collect();
    ColumnFamilyParts { collectors, ..ColumnFamilyParts::default() }
}

/// The properties of each table that the engine itself does not know, and the names of the collectors.
fn properties(db: &Db) -> Vec<BTreeMap<String, String>> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let tables = found.clone();
    let filter = TableFilter::new(move |properties: &TableProperties| {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let wanted = |name: &str| !name.starts_with("rocksdb.") || name == "rocksdb.property.collectors";
        let others = properties.others.iter().filter(|(name, _)| wanted(name));
        tables.lock().push(others.map(|(name, value)| (name.clone(), text(value))).collect());
        true
    });
    let options = ReadOptions { table_filter: Some(filter), ..ReadOptions::default() };
    db.cursor_cf_with(db.default_column_family(), &options).unwrap().seek_to_first();
    let mut found = found.lock();
    std::mem::take(&mut *found)
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn tables(db: &Db) -> Vec<String> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let of = |file: &LiveFile| {
        format!("L{} {}..{}", file.level, text(&file.smallest_key), text(&file.largest_key))
    };
    let mut tables: Vec<String> = db.live_files().iter().map(of).collect();
    tables.sort();
    tables
}

#[test]
fn collectors_are_told_of_every_entry_of_every_table() {
    let (env, telling) = (Env::memory(), Telling::new(Manner::Obliging));
    let db = open(&env, CompactionStyle::Level, collecting(&[&telling]));
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    db.flush().unwrap();
    assert_eq!(telling.take(), "0:Some(0) a=1(Put,1) b=2(Put,2)");
    db.delete("a").unwrap();
    db.single_delete("c").unwrap();
    db.delete_range("x", "z").unwrap();
    db.flush().unwrap();
    let told = telling.take();
    assert_eq!(told, "0:Some(0) a=(Delete,3) c=(SingleDelete,4) x=z(RangeDeletion,5)");
    let names = ("rocksdb.property.collectors", "[test.Telling]");
    let mut found = properties(&db);
    found.sort();
    assert_eq!(found, [map(&[names, ("test.entries", "2")]), map(&[names, ("test.entries", "3")])]);
    db.compact_range(None, None).unwrap();
    assert_eq!(telling.take(), "0:Some(1) b=2(Put,0)");
    assert_eq!(properties(&db), [map(&[names, ("test.entries", "1")])]);
    drop(db);
    let db = open(&env, CompactionStyle::Level, ColumnFamilyParts::default());
    assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(properties(&db), [map(&[names, ("test.entries", "1")])]);
}

#[test]
fn files_for_ingestion_have_their_collectors() {
    let (env, telling) = (Env::memory(), Telling::new(Manner::Restless));
    let family =
        ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), collecting(&[&telling]));
    env.fs.create_dir_all("/out".as_ref()).unwrap();
    let mut writer = SstFileWriter::create("/out/file.sst", &env, &family).unwrap();
    writer.put(b"a", b"1").unwrap();
    writer.delete_range(b"b", b"c").unwrap();
    writer.finish().unwrap();
    let family = i32::MAX;
    assert_eq!(telling.take(), format!("{family}:None a=1(Put,0) b=c(RangeDeletion,0)"));
    let db = open(&env, CompactionStyle::Level, ColumnFamilyParts::default());
    db.ingest_external_files(&["/out/file.sst"]).unwrap();
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    assert_eq!(properties(&db)[0]["test.entries"], "2");
}

#[test]
fn a_collector_that_fails_is_left_out() {
    let (failing, unfinished, good) =
        (Telling::new(Manner::Failing), Telling::new(Manner::Unfinished), Telling::new(Manner::Obliging));
    for broken in [&failing, &unfinished] {
        let db = open(&Env::memory(), CompactionStyle::Level, collecting(&[broken]));
        ["a", "bad", "c"].into_iter().for_each(|key| db.put(key, "").unwrap());
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
        assert_eq!(properties(&db), [map(&[("rocksdb.property.collectors", "[test.Telling]")])]);
    }
    assert!(failing.take().contains("a=(Put,1)") && unfinished.take().contains("c=(Put,3)"));
    let db = open(&Env::memory(), CompactionStyle::Level, collecting(&[&failing, &good]));
    db.put("bad", "").unwrap();
    db.flush().unwrap();
    let names = ("rocksdb.property.collectors", "[test.Telling,test.Telling]");
    assert!(properties(&db).contains(&map(&[names, ("test.entries", "1")])), "the other goes on");
}

#[test]
fn tables_that_ask_for_it_are_compacted_once() {
    let (env, restless) = (Env::memory(), Telling::new(Manner::Restless));
    let wait = WaitForCompactOptions::default();
    let styles = [
        (CompactionStyle::Level, 7),
        (CompactionStyle::Universal, 7),
        (CompactionStyle::Universal, 1),
        (CompactionStyle::Fifo, 7),
    ];
    for (style, levels) in styles {
        let db = open_with_levels(&env, style, levels, collecting(&[&restless]));
        db.put("a", "1").unwrap();
        db.put("z", "1").unwrap();
        db.flush().unwrap();
        db.put("b", "1").unwrap();
        db.flush().unwrap();
        db.wait_for_compact(&wait).unwrap();
        let expected: &[&str] = match style {
            // Not again where there is nothing below.
            CompactionStyle::Level => &["L1 a..z"],
            CompactionStyle::Universal if levels == 1 => &["L0 a..z"],
            CompactionStyle::Universal => &["L6 a..z"],
            // Moves nothing.
            _ => &["L0 a..z", "L0 b..b"],
        };
        assert_eq!(tables(&db), expected, "{style:?} of {levels} levels");
        drop(db);
        Db::destroy_in("/db", &creating(), &env).unwrap();
    }
}

/// Notes what it is made for; every key has a table of its own.
struct Alone(Arc<Mutex<Vec<String>>>);

impl SstPartitionerFactory for Alone {
    fn name(&self) -> &str {
        "test.Alone"
    }

    fn create(&self, context: &PartitionerContext) -> Option<Box<dyn SstPartitioner>> {
        let PartitionerContext { is_full_compaction, is_manual_compaction, output_level } = context;
        self.0
            .lock()
            .push(format!("full {is_full_compaction} manual {is_manual_compaction} L{output_level}"));
        Some(Box::new(Alone(self.0.clone())))
    }
}

impl SstPartitioner for Alone {
    fn must_end(&mut self, _: &[u8], _: &[u8], _: u64) -> bool {
        true
    }

    fn may_move(&mut self, smallest: &[u8], largest: &[u8]) -> bool {
        smallest == largest
    }
}

#[test]
fn a_partitioner_cuts_what_compactions_write_and_what_they_would_move() {
    let (env, told) = (Env::memory(), Arc::new(Mutex::new(Vec::new())));
    let parts = ColumnFamilyParts {
        sst_partitioner: Some(Arc::new(Alone(told.clone()))),
        ..ColumnFamilyParts::default()
    };
    let db = open(&env, CompactionStyle::Level, parts);
    ["a", "b", "c"].into_iter().for_each(|key| db.put(key, "").unwrap());
    // A tombstone over several of the tables is cut with them.
    db.delete_range("b", "bb").unwrap();
    db.flush().unwrap();
    assert_eq!(tables(&db), ["L0 a..c"], "a flush writes one sorted run");
    // Nothing to merge with: without the partitioner the table would be moved.
    db.compact_range(None, None).unwrap();
    assert_eq!(tables(&db), ["L1 a..a", "L1 c..c"]);
    assert!(told.lock().iter().all(|made| made == "full true manual true L1"), "{:?}", told.lock());
    drop(db);
    let db = open(&env, CompactionStyle::Level, ColumnFamilyParts::default());
    assert!(db.get("a").unwrap().is_some() && db.get("b").unwrap().is_none());
}
