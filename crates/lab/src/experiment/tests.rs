//! The answer to a mistake in an experiment; those in the tree have none.

use super::*;
use outcrop_lab_load::database::Durability;

const GOOD: &str = "title = 't'\n[workload]\nkind = 'byrx'\nkeys = 10\n[[target]]\nengine = 'outcrop'\n";

fn error(text: &str) -> String {
    parse("a.toml", text).unwrap_err()
}

#[test]
fn a_mistyped_key_is_answered_with_its_place_and_what_was_meant() {
    let wrong = GOOD.replace("keys = 10", "keyz = 10");
    assert_eq!(error(&wrong), "a.toml:4:1: unknown key \"keyz\"; did you mean \"keys\"?");
    let wrong = GOOD.replace("'byrx'", "'byrxx'");
    assert_eq!(error(&wrong), "a.toml:3:8: unknown value \"byrxx\"; did you mean \"byrx\"?");
    let wrong = format!("{GOOD}[design]\nround = 3\n");
    assert_eq!(error(&wrong), "a.toml:8:1: unknown key \"round\"; did you mean \"rounds\"?");
    let wrong = format!("{GOOD}configs = ['uni']\n[config.univ]\n");
    assert_eq!(error(&wrong), "a.toml:7:13: there is no [config.uni]; did you mean \"univ\"?");
    assert!(error("title = ").starts_with("a.toml:1:"));
    assert!(error("title = 't'").contains("workload"));
}

#[test]
fn a_mistyped_step_is_answered_with_what_was_meant() {
    let wrong = format!("steps = ['fillseq', 'readrandm']\n{GOOD}");
    assert!(error(&wrong).ends_with("unknown step \"readrandm\"; did you mean \"readrandom\"?"));
    let wrong = format!("steps = ['fillseq', 'fillseq']\n{GOOD}");
    assert!(error(&wrong).contains("twice"));
    let wrong = format!("{GOOD}[step.readseq]\nthreads = 1\n");
    assert!(error(&wrong).contains("not in steps"));
}

#[test]
fn targets_say_where_they_come_from() {
    assert!(error(&GOOD.replace("outcrop", "rocksdb")).contains("needs versions or library"));
    assert!(error(&format!("{GOOD}versions = ['1']\n")).contains("older builds by library"));
    assert!(error(&GOOD.replace("keys = 10", "keys = 0")).contains("above zero"));
    assert!(error(&GOOD.replace("keys = 10", "seconds = nan")).contains("above zero"));
    assert!(error(&format!("{GOOD}[design]\ndelta = 1.0\n")).contains("delta is a share"));
    for rest in ["-1.0", "nan", "1e9"] {
        assert!(error(&format!("{GOOD}[design]\nrest_seconds = {rest}\n")).contains("between 0 and 86400"));
    }
    for slice in ["-1.0", "nan", "0.01", "100.0"] {
        let text = format!("{GOOD}[design]\nslice_seconds = {slice}\n");
        assert!(error(&text).contains("0 or between 0.1 and 60"));
    }
    let text = format!("{GOOD}[design]\nslice_seconds = 1.0\norder = 'sessions'\n");
    assert!(error(&text).contains("needs order"));
    assert!(error(&format!("{GOOD}[design]\nrounds = 100000\n")).contains("at most"));
    assert!(error(&format!("{GOOD}[step.readrandom]\nthreads = 0\n")).contains("above zero"));
}

#[test]
fn what_is_left_to_the_engine_is_not_said_as_well() {
    let config = |keys: &str| format!("{GOOD}configs = ['own']\n[config.own]\ndefaults = true\n{keys}");
    assert!(parse("a.toml", &config("cache = 1000000\noptions = 'max_open_files=100'\n")).is_ok());
    for key in
        ["block_size = 4096", "compression = 'none'", "write_buffer_size = 100000", "compaction = 'blob'"]
    {
        let said = error(&config(&format!("{key}\n")));
        assert!(said.starts_with("a.toml:10:") && said.contains("has no effect"), "{said}");
    }
    assert!(error(&config("").replace("'byrx'", "'iodir'")).contains("direct IO is no engine's default"));
}

#[test]
fn a_wrong_value_is_answered_with_the_line_it_stands_in() {
    let steps = format!("steps = [\n  'fillseq',\n  'readrandm',\n]\n{GOOD}");
    assert!(error(&steps).starts_with("a.toml:3:4: unknown step \"readrandm\""), "{}", error(&steps));
    let quoted = "steps = ['fillseq', 'read.8']\n".to_string()
        + GOOD
        + "[step.\"read.8\"]\nkind = 'readrandom'\nthreads = 0\n";
    assert_eq!(error(&quoted), "a.toml:10:1: threads must be above zero");
    let kind = quoted.replace("'readrandom'\nthreads = 0", "'redrandom'");
    assert!(error(&kind).starts_with("a.toml:9:9: unknown step \"redrandom\"; did you mean \"readrandom\"?"));
    let second = format!("{GOOD}[[target]]\nengine = 'rocksdb'\n");
    assert!(error(&second).starts_with("a.toml:8:11: target rocksdb needs versions or library"));
}

fn workload(keys: &str) -> String {
    GOOD.replace("keys = 10", &format!("keys = 10\n{keys}"))
}

fn planned(text: &str) -> Vec<steps::PlannedStep> {
    let experiment = parse("a.toml", text).unwrap();
    experiment.planned_steps(&experiment.sizes(1 << 30, 2))
}

#[test]
fn keys_have_the_layout_and_the_generator_that_are_asked_for() {
    let layout = |keys: &str| planned(&workload(keys)).remove(0).step.layout;
    assert_eq!(layout(""), KeyLayout::default());
    let grouped = layout("prefix_size = 4\nkeys_per_prefix = 5");
    assert_eq!(grouped.prefix, Some(KeyPrefix { size: 4, count: 2 }));
    assert_eq!(layout("generator = 'leveldb-dec16'").generator, Generator::LevelDbDec16);
    let wrong = |keys: &str| error(&workload(keys));
    assert_eq!(wrong("prefix_size = 4"), "a.toml:5:1: prefix_size and keys_per_prefix go together");
    assert!(
        wrong("prefix_size = 20\nkeys_per_prefix = 5").starts_with("a.toml:5:1: prefix_size must be below")
    );
    assert!(
        wrong("prefix_size = 2\nkeys_per_prefix = 11")
            .starts_with("a.toml:6:1: keys_per_prefix is above keys")
    );
    assert!(wrong("generator = 'leveldb-dec61'").ends_with("did you mean \"leveldb-dec16\"?"));
    let short = workload("generator = 'leveldb-dec16'\nkey_size = 8");
    assert!(error(&short).starts_with("a.toml:5:1: keys of leveldb-dec16 have 16 digits"));
    assert!(wrong("prefix_sise = 4").ends_with("did you mean \"prefix_size\"?"));
}

#[test]
fn a_step_says_how_it_chooses_keys_and_what_holds_writers_back() {
    let text = |step: &str, changes: &str| {
        format!("steps = ['fillseq', '{step}']\n{GOOD}[step.{step}]\n{changes}\n")
    };
    let step = |name: &str, changes: &str| planned(&text(name, changes)).remove(1).step;
    assert_eq!(step("readrandom", "read_random_exp_range = 15.5").exp_range, 15.5);
    assert_eq!(step("overwrite", "write_rate = 1000").write_rate, 1000);
    let beside = step("readwhilewriting", "writer_rate = 0\nwriter_num = 7");
    assert_eq!((beside.writer_rate, beside.writer_num, beside.num), (0, 7, 10));
    assert_eq!(step("readwhilewriting", "num = 3").writer_num, 10, "the writer chooses from all keys");
    assert_eq!(step("overwrite", "wal = false").durability, Durability::NoWal);
    let wrong = |name: &str, changes: &str| error(&text(name, changes));
    let said = wrong("fwdrange", "read_random_exp_range = 1.0");
    assert_eq!(said, "a.toml:9:1: read_random_exp_range is for steps that look up, and fwdrange does not");
    assert!(wrong("readrandom", "read_random_exp_range = -1.0").contains("above zero"));
    assert!(wrong("readrandom", "writer_num = 5").contains("run beside a writer"));
    assert!(wrong("readrandom", "sync = true").contains("sync is for steps that write"));
    assert!(wrong("overwritelocked", "transaction_sets = 2").contains("that have transactions"));
    assert!(wrong("readrandom", "batch_size = 2").contains("look up many keys together"));
    assert!(wrong("overwrite", "merge_percent = 20").contains("merge or look up"));
    assert!(wrong("readrandom", "mix_preset = 'all_random'").contains("mix operations"));
    assert!(wrong("readmissing", "seek_nexts = 3").contains("that seek"));
    assert!(wrong("updaterandom", "write_rate = 5").contains("load or overwrite"));
    assert!(
        wrong("overwrite", "write_rate = 5\narrival_rate = 5.0").contains("give write_rate or arrival_rate")
    );
    assert!(wrong("overwrite", "wal = false\nsync = true").contains("need the WAL"));
    assert!(wrong("overwritesync", "wal = false").starts_with("a.toml:9:1: synced writes need the WAL"));
    let unsynced = text("overwritesync", "report = true").replace("keys = 10", "keys = 10\nwal = false");
    assert!(error(&unsynced).starts_with("a.toml:6:1: synced writes need the WAL"), "{}", error(&unsynced));
    assert!(parse("a.toml", &unsynced.replace("report = true", "wal = true")).is_ok());
    assert!(wrong("readrandom", "wal = false").contains("steps that write"));
    assert!(wrong("overwrite", "write_rat = 5").ends_with("did you mean \"write_rate\"?"));
}

#[test]
fn skew_changes_what_is_read_and_nothing_that_is_written() {
    let names = "steps = ['fillseq', 'readrandom', 'multireadrandom', 'readwhilewriting', 'fwdrange', \
                 'revrangewhilewriting', 'fwdrangewhilewriting', 'overwrite', 'overwriteandwait']\n";
    let nums = |skew: &str| -> Vec<u64> {
        let text = names.to_string() + &workload(skew).replace("keys = 10\n", "keys = 1000\n");
        let steps = planned(&text);
        assert!(steps.iter().all(|planned| planned.step.writer_num == 1000));
        steps.iter().map(|planned| planned.step.num).collect()
    };
    assert_eq!(nums("skew = '64.512'"), [1000, 64, 64, 64, 512, 512, 512, 1000, 1000]);
    assert_eq!(nums("skew = '8.64'"), [1000, 8, 8, 8, 64, 64, 64, 1000, 1000]);
    assert_eq!(nums(""), [1000; 9]);
    assert!(error(&workload("skew = '1.2'")).contains("there are 64.512, 8.64"));
}

#[test]
fn workloads_of_the_published_driver_have_its_codecs() {
    let codecs = |kind: &str| {
        let experiment = parse("a.toml", &GOOD.replace("byrx", kind)).unwrap();
        (experiment.workload.kind.place(), experiment.sizes(1 << 30, 2).codecs)
    };
    assert_eq!(codecs("byos"), (WorkloadKind::Byos, [None, None]));
    for (kind, wanted) in [
        ("iodir", [None, None]),
        ("iodir_none", [Some(0), None]),
        ("iodir_lz4", [Some(4), None]),
        ("iodir_zstd", [Some(7), None]),
        ("iodir_nnl", [Some(0), Some(4)]),
        ("iodir_nnz", [Some(0), Some(7)]),
        ("iodir_nlz", [Some(4), Some(7)]),
    ] {
        assert_eq!(codecs(kind), (WorkloadKind::Iodir, wanted), "{kind}");
    }
    let own = parse("a.toml", &workload("compression = 'zstd'").replace("byrx", "iodir_nnl")).unwrap();
    assert_eq!(own.sizes(1 << 30, 2).codecs, [Some(7), Some(4)]);
    assert!(error(&workload("compression = 'zst'")).starts_with("a.toml:5:1: compression is none"));
    let wrong = format!("{GOOD}configs = ['c']\n[config.c]\nbottommost_compression = 'lz5'\n");
    assert!(error(&wrong).starts_with("a.toml:9:1: bottommost_compression is none"));
    let wrong = format!("{GOOD}configs = ['c']\n[config.c]\ncompaction = 'univrsal'\n");
    let said = "a.toml:9:1: there is no compaction \"univrsal\"; did you mean \"universal\"?";
    assert!(error(&wrong).starts_with(said), "{}", error(&wrong));
}

#[test]
fn values_repeat_and_compress_as_the_workload_says() {
    let text = workload("compression_ratio = 0.25\nsame_value_percentage = 10\nwal = false");
    let step = planned(&text).pop().unwrap().step;
    assert_eq!((step.redundancy.compression_ratio, step.redundancy.same_percent), (0.25, 10));
    assert_eq!(
        (step.kind, step.durability),
        (outcrop_lab_load::StepKind::OverwriteAndWait, Durability::NoWal)
    );
    assert!(
        error(&workload("compression_ratio = 1.5")).starts_with("a.toml:5:1: compression_ratio is a share")
    );
    assert!(error(&workload("same_value_percentage = 101")).starts_with("a.toml:5:1: same_value_percentage"));
}

#[test]
fn steps_have_what_the_published_scripts_give_them() {
    let text = "steps = ['bulkload', 'compact', 'fillseq', 'drain', 'overwritesome', 'flush_mt_l0', 'flush_mt_wait', \
                'flush_mt_nowait', 'compact0', 'compact1', 'compact_levels', 'waitforcompaction', 'randomtransaction']\n"
        .to_string()
        + &GOOD.replace("keys = 10", "keys = 1000\nthreads = 3");
    let steps = planned(&text);
    let kinds: Vec<_> = steps[5..12].iter().map(|planned| planned.step.kind).collect();
    use outcrop_lab_load::StepKind::{
        Compact0, Compact1, CompactLevels, FillRandom, FlushAndPause, FlushAndWait, Settle,
    };
    assert_eq!(kinds, [Settle, FlushAndWait, FlushAndPause, Compact0, Compact1, CompactLevels, FlushAndWait]);
    let (bulk, drain) = (&steps[0], &steps[3].step);
    assert_eq!((bulk.step.kind, bulk.step.durability), (FillRandom, Durability::NoWal));
    assert!(bulk.wants_vector_memtable() && bulk.report && !steps[1].report);
    assert!(
        bulk.options.contains("disable_auto_compactions=true") && bulk.options.contains("trigger=10485760")
    );
    assert_eq!((drain.threads, drain.seconds, drain.num), (1, 300.0, 100));
    assert_eq!(drain.kind, outcrop_lab_load::StepKind::Range { reverse: true });
    assert!(!steps[3].report && steps[2].wants_vector_memtable());
    // A tenth of all keys, by all threads together.
    assert_eq!((steps[4].step.threads, steps[4].step.ops), (3, Some(33)));
    assert_eq!((steps[12].step.threads, steps[12].step.transaction_sets), (5, 5));
    assert!(steps[5..12].iter().all(|planned| planned.step.ops == Some(1) && planned.step.threads == 1));
}

#[test]
fn a_scan_beside_lookups_is_a_thread_more() {
    let text =
        format!("steps = ['fillseq', 'readrandom', 'readwhilescanning']\n{}", workload("skew = '8.64'"));
    let steps = planned(&text.replace("keys = 10\n", "keys = 1000\n"));
    let in_flight: Vec<u32> = steps.iter().map(|planned| planned.in_flight()).collect();
    assert_eq!(in_flight, [1, 1, 2]);
    let beside = &steps[2];
    assert!(beside.report && beside.must_find() == steps[1].must_find() && beside.may_be_sliced());
    assert_eq!((beside.step.num, beside.step.writer_num), (8, 1000), "lookups are as skewed as alone");
}

#[test]
fn a_step_under_another_name_takes_its_kind_and_changes() {
    let text = format!(
        "steps = ['fillseq', 'readrandom', 'again']\n{GOOD}[step.again]\nkind = 'readrandom'\nnum = 3\n"
    );
    let experiment = parse("a.toml", &text).unwrap();
    let steps = experiment.planned_steps(&experiment.sizes(1 << 30, 2));
    assert_eq!(steps[2].step.kind, outcrop_lab_load::StepKind::ReadRandom);
    assert_eq!((steps[1].step.num, steps[2].step.num), (10, 3));
    assert!(steps[2].report && steps[2].wants_rest() && !steps[0].wants_rest());
}

#[test]
fn mixes_write_if_they_have_writes() {
    let text = format!(
        "steps = ['fillseq', 'mixgraph', 'reads', 'readrandommergerandom', 'lookups', 'updaterandom', 'readrandom']\n{GOOD}\
         [step.reads]\nkind = 'mixgraph'\nmix = {{ mix_get_ratio = 0.9, mix_seek_ratio = 0.1 }}\n\
         [step.lookups]\nkind = 'readrandommergerandom'\nmerge_percent = 0\n"
    );
    let steps = planned(&text);
    let writes: Vec<bool> = steps.iter().map(|planned| planned.writes()).collect();
    assert_eq!(writes, [true, true, false, true, false, true, false]);
    let counted: Vec<bool> = steps.iter().map(|planned| planned.counts_written_bytes()).collect();
    assert_eq!(counted, [true, false, false, false, false, true, false], "mixes count bytes that they read");
}

#[test]
fn after_deletions_a_key_may_be_missing_until_the_next_load() {
    let text = format!(
        "steps = ['fillseq', 'readrandom', 'deleterandom', 'after', 'fillseq_wal', 'anew']\n{GOOD}\
         [step.after]\nkind = 'readrandom'\n[step.anew]\nkind = 'multireadrandom'\n"
    );
    let steps = planned(&text);
    let must_find = [1, 3, 5].map(|step: usize| steps[step].must_find());
    assert_eq!(must_find, [true, false, true]);
    assert_eq!((steps[1].loaded, steps[3].loaded, steps[5].loaded), (Some(1.0), None, Some(1.0)));
}

#[test]
fn one_merge_operator_serves_all_steps_of_a_session() {
    let operators = |text: &str| -> Vec<String> {
        let experiment = parse("a.toml", text).unwrap();
        let steps = experiment.planned_steps(&experiment.sizes(1 << 30, 2));
        steps.into_iter().map(|planned| planned.step.merge_operator).collect()
    };
    let merging = format!("steps = ['fillseq', 'readwhilemerging']\n{GOOD}");
    assert_eq!(operators(&merging), ["put", "put"]);
    assert_eq!(operators(&merging.replace("keys", "merge_operator = 'max'\nkeys")), ["max", "max"]);
    assert_eq!(operators(&format!("steps = ['fillseq', 'updaterandom']\n{GOOD}")), ["", ""]);
    let wrong = format!("{merging}[step.readwhilemerging]\nmerge_percent = 101\n");
    assert!(error(&wrong).contains("at most 100"));
}

#[test]
fn sizes_of_values_are_one_or_a_range() {
    let with = |keys: &str| GOOD.replace("keys = 10", &format!("keys = 10\n{keys}"));
    let range = with("value_size_distribution = 'uniform'\nvalue_size_min = 100\nvalue_size_max = 300");
    let sizes = parse("a.toml", &range).unwrap().sizes(1 << 30, 2);
    assert_eq!((sizes.value_size, sizes.value_text()), (200, "100..300 (uniform)".to_string()));
    assert!(error(&with("value_size_min = 100")).contains("go together"));
    assert!(error(&range.replace("100", "400")).contains("above value_size_max"));
    assert!(error(&range.replace("value_size_min", "value_size = 5\nvalue_size_min")).contains("not both"));
}

#[test]
fn sizes_come_from_the_file_and_then_from_the_machine() {
    let experiment = parse("a.toml", &GOOD.replace("keys = 10\n", "")).unwrap();
    let sizes = experiment.sizes(8 << 30, 16);
    assert_eq!((sizes.keys, sizes.background_jobs), (2_000_000, 8));
    assert_eq!(experiment.sizes(1 << 30, 2).background_jobs, 3);
    assert!(sizes.cache as u64 > sizes.data_bytes());
}

#[test]
fn the_experiments_of_the_tree_parse() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benchmarks");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".toml") && !name.ends_with(".lock.toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            match sql::is_sql(&text) {
                true => _ = sql::parse(&name, &text).unwrap(),
                false => _ = parse(&name, &text).unwrap(),
            }
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen} experiments");
}
