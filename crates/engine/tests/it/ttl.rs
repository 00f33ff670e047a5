//! Databases whose values expire, on a clock that the tests move.

use crate::harness::*;
use outcrop::*;
use outcrop_env::Clock;
use outcrop_env::clock::ManualClock;
use outcrop_env::memory::MemoryFs;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const START: u64 = 1_700_000_000;

struct World {
    env: Env,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> World {
        let clock = Arc::new(ManualClock::at(START * 1_000_000));
        let mut env = Env::with_file_system(Arc::new(MemoryFs::new()));
        env.clock = clock.clone();
        World { env, clock }
    }

    fn builder(&self) -> DbBuilder {
        Db::builder("/db").options(creating()).env(self.env.clone()).merge_operator(Arc::new(Append))
    }

    fn open(&self, ttl: i32) -> TtlDb {
        TtlDb::open(self.builder(), ttl).unwrap()
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn compact(db: &TtlDb, cf: &ColumnFamilyHandle) {
    let options = BottommostLevelCompaction::Force.into();
    db.db().flush_cf(cf).unwrap();
    // Keys that a running compaction has passed are not looked at again by the next.
    db.db().wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    db.db().compact_range_cf_with(cf, None, None, &options).unwrap();
}

fn row(row: Result<Row>) -> String {
    let (key, value) = row.unwrap();
    format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
}

fn rows(db: &TtlDb) -> String {
    let rows: Vec<String> = db.iter().map(row).collect();
    let mut back: Vec<String> = db.iter().rev().map(row).collect();
    back.reverse();
    assert_eq!(rows, back);
    rows.join(" ")
}

#[test]
fn a_value_is_read_until_a_compaction_meets_it_after_its_time() {
    let world = World::new();
    let db = world.open(10);
    let cf = db.db().default_column_family().clone();
    db.put("a", "1").unwrap();
    world.pass(5);
    db.put("b", "2").unwrap();
    assert_eq!(rows(&db), "a=1 b=2");
    world.pass(5);
    compact(&db, &cf);
    assert_eq!(rows(&db), "a=1 b=2", "not after its time yet");
    world.pass(1);
    db.db().flush().unwrap();
    assert_eq!(rows(&db), "a=1 b=2", "no compaction yet");
    compact(&db, &cf);
    assert_eq!(rows(&db), "b=2");
    db.set_ttl(&cf, 0);
    assert_eq!(db.ttl(&cf), Some(0));
    world.pass(1000);
    compact(&db, &cf);
    assert_eq!(rows(&db), "b=2", "for ever");
    drop(db);
    let db = TtlDb::open_read_only(world.builder()).unwrap();
    assert_eq!(rows(&db), "b=2");
    drop(db);
    let db = world.open(20);
    compact(&db, &db.db().default_column_family().clone());
    assert_eq!(rows(&db), "", "the time given now holds for all there is");
}

#[test]
fn what_a_merge_makes_is_as_old_as_the_merge() {
    let world = World::new();
    let db = world.open(10);
    let cf = db.db().default_column_family().clone();
    db.put("k", "1").unwrap();
    db.merge("k", "2").unwrap();
    db.merge("n", "3").unwrap();
    assert_eq!(rows(&db), "k=1,2 n=3");
    world.pass(11);
    compact(&db, &cf);
    assert_eq!(rows(&db), "k=1,2 n=3", "it is new");
    world.pass(11);
    compact(&db, &cf);
    assert_eq!(rows(&db), "");
    let merged = |key: &str| {
        let stored = db.db().get(key).unwrap().unwrap();
        let (value, time) = split_ttl_value(&stored).unwrap();
        (String::from_utf8_lossy(value).into_owned(), time as u64)
    };
    db.merge("m", "x").unwrap();
    world.pass(3);
    assert_eq!(merged("m"), ("x".to_string(), START + 25), "made by the read");
}

/// Takes down what it is asked about; changes and removes by the first byte.
struct Watching(Arc<Mutex<Vec<String>>>);

impl CompactionFilter for Watching {
    fn name(&self) -> &str {
        "test.Watching"
    }

    fn filter(&self, _level: usize, key: &[u8], value: &[u8]) -> FilterDecision {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        self.0.lock().unwrap().push(format!("{}={}", text(key), text(value)));
        match value {
            [b'c', ..] => FilterDecision::ChangeValue(b"changed".to_vec()),
            [b'r', ..] => FilterDecision::Remove,
            _ => FilterDecision::Keep,
        }
    }
}

struct Making(Arc<Mutex<Vec<String>>>);

impl CompactionFilterFactory for Making {
    fn name(&self) -> &str {
        "test.Making"
    }

    fn create(&self, _context: FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        Some(Arc::new(Watching(self.0.clone())))
    }
}

#[test]
fn the_filter_of_the_application_sees_what_has_not_expired_without_times() {
    for made in [false, true] {
        let world = World::new();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut family = ColumnFamilyDescriptor::new("default").with_merge_operator(Arc::new(Append));
        match made {
            true => family.parts.compaction_filter_factory = Some(Arc::new(Making(asked.clone()))),
            false => family.parts.compaction_filter = Some(Arc::new(Watching(asked.clone()))),
        }
        let builder = Db::builder("/db").options(creating()).env(world.env.clone()).column_family(family);
        let db = TtlDb::open(builder, 10).unwrap();
        let cf = db.db().default_column_family().clone();
        db.put("a", "old").unwrap();
        world.pass(6);
        let mut batch = WriteBatch::new();
        ["change", "remove", "keep"].iter().for_each(|value| batch.put(value, value));
        let before = batch.as_bytes().to_vec();
        db.write(&batch).unwrap();
        assert_eq!(batch.as_bytes(), before, "the batch is as it was");
        world.pass(5);
        compact(&db, &cf);
        assert_eq!(*asked.lock().unwrap(), ["change=change", "keep=keep", "remove=remove"], "{made}");
        assert_eq!(rows(&db), "change=changed keep=keep");
        // A changed value is no younger for it.
        world.pass(6);
        asked.lock().unwrap().clear();
        compact(&db, &cf);
        assert_eq!((rows(&db), asked.lock().unwrap().len()), (String::new(), 0));
    }
}

/// Takes the first byte of each operand away, and operands that have none.
struct Shortening;

impl CompactionFilter for Shortening {
    fn name(&self) -> &str {
        "test.Shortening"
    }

    fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }

    fn filter_merge_operand(&self, _level: usize, _key: &[u8], operand: &[u8]) -> FilterDecision {
        match operand.split_first() {
            Some((_, rest)) => FilterDecision::ChangeValue(rest.to_vec()),
            None => FilterDecision::Remove,
        }
    }
}

#[test]
fn the_filter_of_the_application_sees_operands_without_times() {
    let world = World::new();
    let mut family = ColumnFamilyDescriptor::new("default").with_merge_operator(Arc::new(Append));
    family.parts.compaction_filter = Some(Arc::new(Shortening));
    let builder = Db::builder("/db").options(creating()).env(world.env.clone()).column_family(family);
    let db = TtlDb::open(builder, 10).unwrap();
    db.merge("gone", "").unwrap();
    db.merge("kept", "-one").unwrap();
    compact(&db, db.db().default_column_family());
    assert_eq!(rows(&db), "kept=one");
}

#[test]
fn each_column_family_has_a_time_of_its_own_and_values_without_one_are_damage() {
    let world = World::new();
    let builder = world.builder().column_family("long");
    let db = TtlDb::open_with(builder, |name| if name == "long" { 100 } else { 10 }).unwrap();
    let long = db.db().column_family("long").unwrap();
    let ever = db.create_column_family("ever", -1).unwrap();
    let families = [db.db().default_column_family().clone(), long, ever];
    assert_eq!(families.each_ref().map(|cf| db.ttl(cf)), [Some(10), Some(100), Some(-1)]);
    let there =
        || families.each_ref().map(|cf| db.get_cf_with(cf, "k", &ReadOptions::default()).unwrap().is_some());
    families.iter().for_each(|cf| db.put_cf(cf, "k", "v").unwrap());
    for (seconds, expected) in [(11, [false, true, true]), (100, [false, false, true])] {
        world.pass(seconds);
        families.iter().for_each(|cf| compact(&db, cf));
        assert_eq!(there(), expected);
    }
    db.db().put("short", "abc").unwrap();
    db.db().put("ancient", "abcd\0\0\0\x01").unwrap();
    let error = |key: &str| db.get(key).unwrap_err().to_string();
    assert_eq!(error("short"), "Corruption: Error: value's length less than timestamp's\n");
    assert_eq!(error("ancient"), "Corruption: Error: Timestamp < ttl feature release time!\n");
    let answers = db.multi_get(&["short", "none"]);
    assert!(answers[0].is_err() && matches!(answers[1], Ok(None)));
    let mut scan = db.iter();
    assert_eq!(scan.next().unwrap().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(scan.next().is_none() && scan.next_back().is_none(), "an error is the last");
    compact(&db, &families[0]);
    assert!(db.get("short").is_err(), "a compaction keeps what it cannot judge");
    let mut batch = WriteBatch::new();
    batch.put_entity("e", &[("a", "b")]).unwrap();
    assert_eq!(db.write(&batch).unwrap_err().kind(), ErrorKind::NotSupported);
}

/// Random histories against a map with times: nothing is lost before its time, nothing comes back, no value is another.
#[test]
fn random_histories_keep_what_has_time_left() {
    let seed = seed("ttl", 21);
    let mut rng = Rng::new(seed);
    for round in 0..20 {
        let world = World::new();
        let mut model: BTreeMap<String, (String, u64)> = BTreeMap::new();
        let (mut db, mut ttl) = (world.open(10), 10);
        // Threads that wait in the engine move the clock on, too.
        let now = || world.clock.now_micros() / 1_000_000;
        for step in 0..120 {
            let key = format!("{:02}", rng.below(30));
            // A compaction of the opening before this step may have dropped what was over then.
            let earlier = ttl;
            match rng.below(12) {
                0..=5 => {
                    let value = format!("{}", rng.below(1000));
                    let before = now();
                    db.put(&key, &value).unwrap();
                    let time = split_ttl_value(&db.db().get(&key).unwrap().unwrap()).unwrap().1 as u64;
                    assert!((before..=now()).contains(&time));
                    model.insert(key, (value, time));
                }
                6 => {
                    db.db().delete(&key).unwrap();
                    model.remove(&key);
                }
                7 | 8 => world.pass(rng.below(6)),
                9 => db.db().flush().unwrap(),
                10 => {
                    let before = now();
                    compact(&db, &db.db().default_column_family().clone());
                    let over = |time: u64| ttl > 0 && time + (ttl as u64) < before;
                    let left: Vec<String> = db.iter().map(row).collect();
                    let kept = model
                        .iter()
                        .find(|(key, (value, time))| over(*time) && left.contains(&format!("{key}={value}")));
                    assert!(
                        kept.is_none(),
                        "seed {seed}, round {round}, step {step}: {kept:?} is over and left"
                    );
                }
                _ => {
                    drop(db);
                    ttl = rng.pick(&[-1, 0, 5, 10, 40]);
                    db = world.open(ttl);
                }
            }
            let expected: Vec<String> =
                model.iter().map(|(key, (value, _))| format!("{key}={value}")).collect();
            // Compactions by themselves may have dropped what is over. One scan: they may between two.
            let found: Vec<String> = db.iter().map(row).collect();
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            let what = format!("seed {seed}, round {round}, step {step}");
            assert!(found.iter().all(|row| expected.iter().any(|known| known == row)), "{what}: {found:?}");
            let is_over = |row: &String| {
                let time = model[&row[..2]].1;
                [earlier, ttl].iter().any(|&ttl| ttl > 0 && time + (ttl as u64) < now())
            };
            for row in expected.iter().filter(|row| !found.contains(&row.as_str())) {
                assert!(is_over(row), "{what}: {row} is gone");
            }
            model.retain(|key, (value, _)| found.contains(&format!("{key}={value}").as_str()));
        }
    }
}

#[test]
fn all_forms_of_writes_and_reads_hide_the_time() {
    let world = World::new();
    let other = ColumnFamilyDescriptor::new("other").with_merge_operator(Arc::new(Append));
    let db = TtlDb::open(world.builder().column_family(other), 10).unwrap();
    let cf = db.db().column_family("other").unwrap();
    let (writing, reading) = (WriteOptions::default(), ReadOptions::default());

    db.put("pa", "1").unwrap();
    db.put_with("pb", "1", &writing).unwrap();
    db.merge("pa", "2").unwrap();
    db.merge_with("pb", "3", &writing).unwrap();
    db.put_cf(&cf, "pa", "4").unwrap();
    db.put_cf_with(&cf, "qb", "5", &writing).unwrap();
    db.merge_cf(&cf, "pa", "6").unwrap();
    db.merge_cf_with(&cf, "qb", "7", &writing).unwrap();

    let text =
        |read: Result<Option<PinnedValue>>| String::from_utf8(read.unwrap().unwrap().to_vec()).unwrap();
    let (a, b, own, others) = ("pa", "pb", "1,2 1,3", "4,6 5,7");
    let join =
        |values: Vec<Result<Option<PinnedValue>>>| values.into_iter().map(text).collect::<Vec<_>>().join(" ");
    assert_eq!(join(vec![db.get(a), db.get_with(b, &reading)]), own);
    assert_eq!(join(vec![db.get_cf(&cf, a), db.get_cf_with(&cf, "qb", &reading)]), others);
    assert_eq!(join(db.multi_get(&[a, b])), own);
    assert_eq!(join(db.multi_get_with(&[a.as_bytes(), b.as_bytes()], &reading)), own);
    assert_eq!(join(db.multi_get_cf(&cf, &[a, "qb"])), others);
    assert_eq!(join(db.multi_get_cf_with(&cf, &[b"pa", b"qb"], &reading)), others);

    let all = |rows: TtlRows| rows.map(row).collect::<Vec<_>>().join(" ");
    for rows in [db.iter(), db.iter_with(&reading), db.range("p"..), db.range_with("p".."q", &reading)] {
        assert_eq!(all(rows), "pa=1,2 pb=1,3");
    }
    assert_eq!(all(db.prefix("pb")), "pb=1,3");
    assert_eq!(all(db.prefix_with("pa", &reading)), "pa=1,2");
    for rows in [db.iter_cf(&cf), db.iter_cf_with(&cf, &reading), db.range_cf(&cf, "p"..)] {
        assert_eq!(all(rows), "pa=4,6 qb=5,7");
    }
    assert_eq!(all(db.range_cf_with(&cf, "q".., &reading)), "qb=5,7");
    for rows in [db.prefix_cf(&cf, "p"), db.prefix_cf_with(&cf, "p", &reading)] {
        assert_eq!(all(rows), "pa=4,6");
    }
}
