//! Values for tests.

use crate::experiment::parse;
use crate::experiment::steps::PlannedStep;
use crate::host::canary::Canary;
use crate::host::{Facts, Host};
use crate::planning::plan::Slot;
use crate::report::text::rfc3339;
use crate::store::{EngineIdentity, Outcome, StepRecord, Store};
use outcrop_lab_load::StepResult;
use outcrop_lab_load::counters::Counters;
use outcrop_lab_load::process::ProcessUsage;
use outcrop_lab_load::rng::Mt19937_64;

/// The step `name` of the vocabulary on 1000 keys, and a result of it.
pub fn step_and_result(name: &str, ops: u64, seconds: f64) -> (PlannedStep, StepResult) {
    let text = format!(
        "title = 't'\nsteps = ['{name}']\n[workload]\nkind = 'byrx'\nkeys = 1000\n[[target]]\nengine = 'outcrop'\n"
    );
    let experiment = parse("t.toml", &text).unwrap();
    let step = experiment.planned_steps(&experiment.sizes(1 << 30, 4)).remove(0);
    let result = StepResult {
        ops,
        seconds,
        micros_per_op: seconds * 1e6 / ops as f64,
        bytes: ops * 420,
        found: ops,
        percentiles: [1.0, 2.0, 3.0, 4.0, 5.0],
        per_second: vec![(ops as f64 / seconds) as u64; seconds as usize],
        longest_per_second: vec![5; seconds as usize],
        longest_gap_ms: 1.0,
        writer_achieved: 1.0,
        writer_lag_ms: 0.0,
        open: None,
        note: None,
        counters: Counters::default(),
        usage: ProcessUsage::default(),
        load_cpu_seconds: None,
        server: None,
        redo_bytes: None,
        log_syncs: None,
        waits: Default::default(),
        plans: None,
        row_seconds: None,
        beside: None,
        search_seconds: None,
        scanned_rows: None,
        kinds: None,
        database_bytes: None,
        parts: Vec::new(),
        rows: None,
        samples: outcrop_lab_load::steps::new_histogram(),
        responses: outcrop_lab_load::steps::new_histogram(),
    };
    (step, result)
}

/// An engine of a version that says which source it was made from.
pub fn engine_of(version: &str) -> EngineIdentity {
    EngineIdentity { version: Some(version.to_string()), git_sha: Some("0123456789".to_string()) }
}

/// Noise with a seed.
pub struct Noise(Mt19937_64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(Mt19937_64::new(seed + 1))
    }

    /// A value around `mean` with a relative standard deviation: the sum of twelve uniform numbers is nearly normal.
    pub fn around(&mut self, mean: f64, deviation: f64) -> f64 {
        let unit = |rng: &mut Mt19937_64| rng.next_u64() as f64 / u64::MAX as f64;
        let sum: f64 = (0..12).map(|_| unit(&mut self.0)).sum();
        mean * (1.0 + deviation * (sum - 6.0))
    }
}

/// One step of one session of a record that is made up.
pub struct Fake<'a> {
    /// 0: the base; 1: another; 2: the base again.
    pub target: usize,
    pub step: &'a str,
    /// From 0 at the first session to 1 at the last.
    pub progress: f64,
    /// The gain or loss of the whole session.
    pub offset: f64,
}

/// A record with one finished experiment; see [`fake_record_on`].
pub fn fake_record(
    rounds: usize,
    steps: &[&str],
    seed: u64,
    measure: &mut dyn FnMut(&Fake<'_>) -> Vec<(&'static str, f64)>,
) -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let mut store = Store::open(&temp.path().join("lab.sqlite")).unwrap();
    fake_record_on(&mut store, "", rounds, steps, seed, measure);
    (temp, store)
}

/// A finished experiment of `steps` on `host` whose metrics `measure` makes up, in the order in which they would be
/// measured. Each begins an hour after the last one in the record, and takes a minute.
pub fn fake_record_on(
    store: &mut Store,
    host: &str,
    rounds: usize,
    steps: &[&str],
    seed: u64,
    measure: &mut dyn FnMut(&Fake<'_>) -> Vec<(&'static str, f64)>,
) -> i64 {
    let names: Vec<String> = steps.iter().map(|step| format!("'{step}'")).collect();
    let text = format!(
        "title = 'Made up'\nsteps = [{}]\n[workload]\nkind = 'byrx'\nkeys = 1000\n[design]\nseed = {}\nrounds = {rounds}\n\
         [[target]]\nengine = 'outcrop'\nconfigs = ['a', 'b']\n[config.a]\n[config.b]\n",
        names.join(", "),
        seed + 1
    );
    let plan = crate::planning::plan::plan(&parse("t.toml", &text).unwrap(), 1, 8 << 30, 4).unwrap();
    let facts = Facts { id: host.to_string(), ..Facts::default() };
    let host = Host { facts, checks: vec![], canary: Canary::default() };
    let hour = store.experiments().unwrap().len() as u64;
    let began = 1_767_323_045 + 3600 * hour;
    let (created, ended) = (rfc3339(began), rfc3339(began + 60));
    let id = store.begin(&created, "t.toml", &text, &plan, &host).unwrap();
    let mut noise = Noise::new(seed + 1000);
    let slots: Vec<Slot> = plan.slots().into_iter().filter(|slot| slot.block >= 0).collect();
    for (index, slot) in slots.iter().enumerate() {
        let session = store.begin_session(id, *slot, "d", &Canary::default()).unwrap();
        let offset = noise.around(1.0, 0.003);
        let progress = index as f64 / (slots.len() - 1) as f64;
        for (number, step) in steps.iter().enumerate() {
            let (_, mut result) = step_and_result(step, 1000, 2.0);
            // Too short to tell whether it was steady.
            result.per_second = vec![500; 3];
            let made_up = measure(&Fake { target: slot.target, step, progress, offset });
            let metrics = made_up.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            let record = StepRecord {
                number,
                name: step,
                date: "d",
                result: &result,
                metrics: &metrics,
                labels: &[],
                readings: &[],
                histogram: &[],
                responses: &[],
            };
            store.record_step(session, &record).unwrap();
        }
        store.end_session(session, Outcome::Done, &ended, None, &EngineIdentity::default()).unwrap();
    }
    store.finish(id).unwrap();
    id
}
