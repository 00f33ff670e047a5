//! Values that are stored are read back, and nothing counts twice.

use super::*;
use crate::experiment::parse;
use crate::probe::derive::Metrics;
use crate::testing::{engine_of, step_and_result};

fn plan() -> Plan {
    let text = "title = 't'\n[workload]\nkind = 'byrx'\nkeys = 1000\n[design]\nseed = 1\n\
        [[target]]\nengine = 'outcrop'\n";
    crate::planning::plan::plan(&parse("t.toml", text).unwrap(), 1, 8 << 30, 4).unwrap()
}

fn store() -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&temp.path().join("deep/lab.sqlite")).unwrap();
    (temp, store)
}

fn host() -> Host {
    Host { facts: crate::host::Facts::default(), checks: vec![], canary: Canary::default() }
}

fn record(store: &mut Store, session: i64, number: usize) -> Result<()> {
    let (_, result) = step_and_result("readrandom", 1000, 2.0);
    let metrics = Metrics::from([("ops_sec".to_string(), 500.0)]);
    let readings: Vec<Reading> = (0..3)
        .map(|i| {
            let mut values = vec![7 * i; SERIES.len()];
            values[1] = sources::ABSENT;
            Reading { at: i as f64, values }
        })
        .collect();
    let step = StepRecord {
        number,
        name: "readrandom",
        date: "2026-01-01T00:00:00Z",
        result: &result,
        metrics: &metrics,
        labels: &[],
        readings: &readings,
        histogram: &[(10, 2), (5000, 1)],
        responses: &[(20, 3)],
    };
    store.record_step(session, &step)
}

#[test]
fn a_step_comes_back_with_everything() {
    let (_temp, mut store) = store();
    let id = store.begin("2026", "f.toml", "text", &plan(), &host()).unwrap();
    let slot = Slot { block: 0, position: 1, target: 1 };
    let session = store.begin_session(id, slot, "d", &Canary::default()).unwrap();
    record(&mut store, session, 0).unwrap();
    assert!(store.steps(id).unwrap().is_empty(), "a session that runs does not count yet");
    store.end_session(session, Outcome::Done, "d", None, &engine_of("1.2")).unwrap();
    let steps = store.steps(id).unwrap();
    assert_eq!((steps.len(), steps[0].target, steps[0].metrics["ops_sec"]), (1, 1, 500.0));
    assert_eq!(steps[0].result.ops, 1000);
    assert_eq!(store.series(steps[0].id, "time_ms").unwrap(), [0, 1000, 2000]);
    assert_eq!(store.series(steps[0].id, "cpu.user").unwrap(), [0, 7, 14]);
    assert!(store.series(steps[0].id, "cpu.system").unwrap().is_empty(), "not known throughout");
    assert_eq!(store.histogram(steps[0].id).unwrap(), [(10, 2), (5000, 1)]);
    assert_eq!(store.responses(steps[0].id).unwrap(), [(20, 3)]);
    assert_eq!(store.sessions(id).unwrap()[0].engine(), "1.2 (0123456789)");
}

#[test]
fn steps_and_plans_of_older_records_are_still_read() {
    let (_temp, mut store) = store();
    let id = store.begin("2026", "f.toml", "text", &plan(), &host()).unwrap();
    let slot = Slot { block: 0, position: 0, target: 0 };
    let session = store.begin_session(id, slot, "d", &Canary::default()).unwrap();
    record(&mut store, session, 0).unwrap();
    store.end_session(session, Outcome::Done, "d", None, &EngineIdentity::default()).unwrap();
    assert_eq!(store.steps(id).unwrap()[0].result.longest_per_second, [5, 5]);
    // Fields that older records lack, or that nobody asked for.
    store
        .db
        .execute_batch(
            "UPDATE step SET result = json_remove(result, '$.longest_per_second');
             UPDATE experiment SET plan = json_remove(plan, '$.steps[0].step.merge_operator',
                 '$.steps[0].step.value_sizes', '$.steps[0].step.merge_percent', '$.sizes.value_sizes');",
        )
        .unwrap();
    assert!(store.steps(id).unwrap()[0].result.longest_per_second.is_empty());
    let older = &store.experiment(id).unwrap().plan.steps[0].step;
    assert_eq!((older.merge_percent, older.value_sizes, older.merge_operator.as_str()), (70, None, ""));
}

#[test]
fn an_interrupted_attempt_stays_and_does_not_count() {
    let (_temp, mut store) = store();
    let id = store.begin("2026", "f.toml", "text", &plan(), &host()).unwrap();
    let slot = Slot { block: 0, position: 0, target: 0 };
    let first = store.begin_session(id, slot, "d", &Canary::default()).unwrap();
    record(&mut store, first, 0).unwrap();
    let second = store.begin_session(id, slot, "d", &Canary::default()).unwrap();
    record(&mut store, second, 0).unwrap();
    assert!(record(&mut store, second, 0).is_err(), "a step is recorded once");
    store.end_session(second, Outcome::Failed, "d", Some("crashed"), &EngineIdentity::default()).unwrap();
    let steps = store.steps(id).unwrap();
    assert_eq!((steps.len(), steps[0].session), (1, second));
    let third = store.begin_session(id, slot, "d", &Canary::default()).unwrap();
    assert!(
        store.end_session(third, Outcome::Done, "d", None, &EngineIdentity::default()).is_err(),
        "a place counts once"
    );
}

#[test]
fn the_latest_unfinished_experiment_of_a_text_is_found() {
    let (_temp, store) = store();
    let first = store.begin("2026", "f.toml", "text", &plan(), &host()).unwrap();
    let second = store.begin("2026", "f.toml", "text", &plan(), &host()).unwrap();
    assert_eq!(store.unfinished("text").unwrap().unwrap().id, second);
    store.finish(second).unwrap();
    assert_eq!(store.unfinished("text").unwrap().unwrap().id, first);
    assert!(store.unfinished("other").unwrap().is_none());
    assert_eq!(store.experiments().unwrap(), [first, second]);
    assert!(store.experiment(9).unwrap_err().to_string().contains("lab list"));
    assert_eq!(store.experiment(first).unwrap().plan.blocks, plan().blocks);
}

#[test]
fn a_full_disk_is_told_from_other_errors_and_leaves_no_half_step() {
    let (_temp, mut store) = store();
    let id = store.begin("2026", "f.toml", "text", &plan(), &host()).unwrap();
    let slot = Slot { block: 0, position: 0, target: 0 };
    let session = store.begin_session(id, slot, "d", &Canary::default()).unwrap();
    let pages: i64 = store.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    store.db.execute_batch(&format!("PRAGMA max_page_count = {}", pages + 1)).unwrap();
    let mut recorded = 0;
    let error = loop {
        match record(&mut store, session, recorded) {
            Ok(()) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full(_)), "{error}");
    store.db.execute_batch("PRAGMA max_page_count = 1000000").unwrap();
    store.end_session(session, Outcome::Done, "d", None, &EngineIdentity::default()).unwrap();
    let steps = store.steps(id).unwrap();
    assert_eq!(steps.len(), recorded);
    assert!(steps.iter().all(|step| !store.histogram(step.id).unwrap().is_empty()));
}

/// Plans and hosts are JSON inside the record: a field added later needs a default, or old records do not load.
#[test]
fn plans_and_hosts_of_every_version_of_the_record_load() {
    let plan: Plan = serde_json::from_str(include_str!("../../tests/fixtures/record/plan-2.json")).unwrap();
    assert_eq!((plan.targets[0].name.as_str(), plan.shared_steps()), ("outcrop/a", 2));
    let host: Host = serde_json::from_str(include_str!("../../tests/fixtures/record/host-2.json")).unwrap();
    assert_eq!((host.facts.cores, host.checks.len()), (2, 3));
}
