//! Experiments of seconds, run by the binary as a user runs them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A directory with an experiment in it.
pub struct Lab {
    pub dir: tempfile::TempDir,
}

pub const TINY: &str = "title = 'Tiny'\nsteps = ['fillseq', 'readrandom', 'overwrite']\n\
    [workload]\nkind = 'byrx'\nkeys = 2000\nseconds = 0.15\ncache = 8388608\n\
    [design]\nrounds = 2\nseed = 5\nallow_oversubscription = true\n\
    [[target]]\nengine = 'outcrop'\nconfigs = ['a', 'b']\n[config.a]\n[config.b]\nblock_size = 4096\n";

impl Lab {
    pub fn new(experiment: &str) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tiny.toml"), experiment).unwrap();
        Lab { dir }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outcrop"));
        command.current_dir(self.dir.path()).arg("lab").args(arguments).stdin(Stdio::null());
        // The user's own runs are none of a test's business.
        command.env("OUTCROP_DATA_DIRS", self.dir.path().join("data-dirs"));
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Experiment 1 as recorded: experiment, sessions, measurements, events.
    pub fn recorded(&self) -> [serde_json::Value; 4] {
        serde_json::from_str(&self.text(&["show", "1", "--json"])).unwrap()
    }
}

pub fn count(value: &serde_json::Value, wanted: impl Fn(&serde_json::Value) -> bool) -> usize {
    value.as_array().unwrap().iter().filter(|row| wanted(row)).count()
}

#[test]
fn an_experiment_is_planned_run_compared_and_reported() {
    let lab = Lab::new(TINY);
    let plan = lab.text(&["plan", "tiny.toml"]);
    assert!(plan.contains("outcrop/a (A/A)") && plan.contains("seed 5"), "{plan}");
    let ran = lab.text(&["run", "tiny.toml"]);
    assert!(ran.contains("relative to a; 2 blocks"), "{ran}");
    assert!(!lab.dir.path().join("outcrop-lab-data").exists(), "the data is removed");
    assert!(lab.text(&["list"]).contains("7/7"));
    let [experiment, sessions, measured, _] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    assert_eq!(count(&sessions, |session| session["outcome"] == "done"), 7);
    // Three targets in two blocks, three steps each; the warm-up session does not count.
    assert_eq!(count(&measured, |_| true), 18);
    // The load is over before the kernel's clock of processor time ticks.
    let costs = |row: &serde_json::Value| row["metrics"]["cpu_us/o"].as_f64().is_some_and(|cost| cost > 0.0);
    assert_eq!(count(&measured, |row| row["name"] != "fillseq" && costs(row)), 12);
    let memory = |row: &serde_json::Value, name: &str| row["metrics"][name].as_f64().unwrap();
    assert_eq!(count(&measured, |row| memory(row, "rss_max") >= memory(row, "rss")), 18);
    let log = lab.text(&["log", "1", "outcrop/b", "--block", "2"]);
    assert!(log.contains(" opening ") && log.ends_with("Shutdown complete\n"), "the engine's own log: {log}");
    let mistaken = lab.output(&["log", "1", "outcrop/b", "--block", "3"]);
    assert!(String::from_utf8(mistaken.stderr).unwrap().contains("those of blocks 1, 2"));
    let compared = lab.output(&["compare", "1", "--base", "outcrop/b", "--metric", "p99"]);
    assert_eq!(compared.status.code(), Some(3), "two blocks decide nothing");
    let text = String::from_utf8(compared.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(lab.text(&["explain", "1", "readrandom", "outcrop/b"]).contains("cpu_us/o"));
    let page = lab.text(&["report", "1", "-o", "site"]);
    assert!(lab.dir.path().join(page.trim()).exists());
    let unknown = lab.output(&["compare", "1", "--metric", "speed"]);
    assert_eq!(unknown.status.code(), Some(1));
}

#[test]
fn nothing_runs_while_an_experiment_rests() {
    let short = TINY.replace("['fillseq', 'readrandom', 'overwrite']", "['fillseq']");
    let lab = Lab::new(&short.replace(
        "rounds = 2",
        "rounds = 1\naa = false\nwarmup = false\norder = 'sessions'\nrest_seconds = 4",
    ));
    assert!(lab.text(&["plan", "tiny.toml"]).contains("rest     4 s before each session"));
    let begun = Instant::now();
    lab.text(&["run", "tiny.toml"]);
    // Once, between the two sessions, which take a fraction of it.
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(4), "{took:?}");
}

#[test]
fn processor_time_is_sampled_in_a_run_of_its_own_or_perf_is_asked_for() {
    let short = TINY.replace("rounds = 2", "rounds = 1\naa = false\nwarmup = false");
    let lab = Lab::new(&short.replace("seconds = 0.15", "seconds = 1"));
    lab.text(&["run", "tiny.toml"]);
    let without = lab.command(&["profile", "1"]).env("OUTCROP_PERF", "/no/such/perf").output().unwrap();
    let error = String::from_utf8(without.stderr).unwrap();
    assert!(
        !without.status.success() && error.contains("cannot run perf") && error.contains("linux-perf"),
        "{error}"
    );
    let mistaken = lab.output(&["profile", "1", "--steps", "readrandon"]);
    assert!(String::from_utf8(mistaken.stderr).unwrap().contains("there is no step readrandon"));
    // On a machine where nothing may be sampled this much is all there is to see.
    let perf = |arguments: &[&str]| {
        let output = Command::new("perf").current_dir(lab.dir.path()).args(arguments).output();
        output.ok().filter(|output| output.status.success()).map(|output| output.stdout.len())
    };
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let recorded = perf(&["record", "-e", "cpu-clock", "-o", "busy.perf", "sh", "-c", busy]);
    if recorded.is_none() || perf(&["script", "-i", "busy.perf"]).is_none_or(|printed| printed == 0) {
        println!("perf cannot sample here");
        return;
    }
    let sampled = lab.text(&["profile", "1", "--steps", "readrandom", "--targets", "outcrop/b"]);
    let samples =
        sampled.lines().find(|line| line.starts_with("samples")).unwrap_or_else(|| panic!("{sampled}"));
    // A second of one thread at 499 a second, less what a busy machine takes.
    let count: u64 = samples.split_whitespace().last().unwrap().parse().unwrap();
    assert!((5..=1500).contains(&count), "{sampled}");
    let shares = sampled.lines().filter_map(|line| line.split_whitespace().last()?.parse::<f64>().ok());
    let sum: f64 = shares.sum::<f64>() - count as f64;
    assert!((sum - 100.0).abs() < 0.5, "{sum}: {sampled}");
    assert!(lab.text(&["explain", "1", "readrandom", "outcrop/b"]).contains("processor time, % of samples"));
    lab.text(&["report", "1", "-o", "site"]);
    assert!(lab.dir.path().join("site/cpu.html").exists());
    assert!(!lab.dir.path().join("outcrop-lab-data").exists(), "the data is removed");
    let [_, _, measured, _] = lab.recorded();
    assert_eq!(measured.as_array().unwrap().len(), 6, "what is sampled is not measured");
}

#[test]
fn a_profile_that_fails_leaves_no_samples_behind() {
    // Begins as perf does, and fails when it is told to end.
    const FAILING: &str = "#!/usr/bin/env bash\n\
        [ \"$1\" = record ] || exit 0\n\
        while [ $# -gt 0 ]; do\n\
          case $1 in -o) echo PERFILE2 > \"$2\"; echo \"$2\" > recorded;; --control) ends=${2#fd:};; esac; shift\n\
        done\n\
        trap 'echo no space >&2; exit 1' TERM\n\
        read -r -u \"${ends%,*}\" word; echo ack >&\"${ends#*,}\"\n\
        while :; do sleep 0.05; done\n";
    let lab = Lab::new(&TINY.replace("rounds = 2", "rounds = 1\naa = false\nwarmup = false"));
    lab.text(&["run", "tiny.toml"]);
    let perf = lab.dir.path().join("perf.sh");
    std::fs::write(&perf, FAILING).unwrap();
    std::fs::set_permissions(&perf, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = lab.command(&["profile", "1"]).env("OUTCROP_PERF", &perf).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("perf cannot sample (no space)"), "{error}");
    let recorded = std::fs::read_to_string(lab.dir.path().join("recorded")).unwrap();
    assert!(recorded.trim().ends_with("session-0.perf"), "{recorded}");
    let data = lab.dir.path().join("outcrop-lab-data");
    assert!(!data.exists(), "{:?}", std::fs::read_dir(&data).map(Iterator::collect::<Vec<_>>));
}

#[test]
fn a_killed_run_resumes_and_no_step_is_lost_or_doubled() {
    is_killed_and_resumed("steps");
}

#[test]
fn a_killed_run_by_sessions_resumes_and_no_step_is_lost_or_doubled() {
    is_killed_and_resumed("sessions");
}

fn is_killed_and_resumed(order: &str) {
    let lab = Lab::new(&TINY.replace("seed = 5", &format!("seed = 5\norder = '{order}'")));
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    println!("{order}, seed {seed}");
    let mut random = u64::from(seed);
    for attempt in 0..4 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let arguments: &[&str] =
            if attempt == 0 { &["run", "tiny.toml"] } else { &["run", "tiny.toml", "--resume"] };
        let said = lab.dir.path().join("said.txt");
        let errors = std::fs::File::create(&said).unwrap();
        let mut child = lab.command(arguments).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        // The first attempt gets far enough to have recorded its plan, however slow the machine is.
        while attempt == 0 && !lab.output(&["show", "1"]).status.success() {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", std::fs::read_to_string(&said).unwrap());
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_millis(900 + random % 1500));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = lab.output(&["run", "tiny.toml", "--resume"]);
    // A quick machine may have finished before the last kill.
    let done = String::from_utf8_lossy(&output.stderr).contains("no unfinished run");
    assert!(output.status.success() || done, "{}", String::from_utf8_lossy(&output.stderr));
    let [experiment, sessions, measured, _] = lab.recorded();
    assert_eq!(experiment["plan"]["order"], order);
    assert_eq!(lab.text(&["list"]).lines().count(), 2, "all attempts are one experiment");
    let mut places: Vec<(i64, u64, u64)> = sessions
        .as_array()
        .unwrap()
        .iter()
        .map(|s| {
            (s["block"].as_i64().unwrap(), s["position"].as_u64().unwrap(), s["target"].as_u64().unwrap())
        })
        .collect();
    places.sort_unstable();
    let mut planned = vec![(-1, 0, 0)];
    for (block, order) in experiment["plan"]["blocks"].as_array().unwrap().iter().enumerate() {
        let order = order.as_array().unwrap().iter().enumerate();
        planned.extend(order.map(|(place, target)| (block as i64, place as u64, target.as_u64().unwrap())));
    }
    assert_eq!(places, planned, "every place of the plan once, by the target it was for");
    let mut steps: Vec<String> = measured
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {} {}", row["block"], row["target"], row["name"]))
        .collect();
    let all = steps.len();
    steps.sort();
    steps.dedup();
    assert_eq!((steps.len(), all), (18, 18));
}

/// The processes of sessions in `dir`: for each, whether all its threads are stopped.
fn sessions_at_work(dir: &Path) -> Vec<bool> {
    let name = dir.canonicalize().unwrap().display().to_string();
    let text = |path: PathBuf| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let session = |process: &PathBuf| {
        let line = text(process.join("cmdline")).unwrap_or_default();
        line.contains("lab-session") && line.contains(&name)
    };
    let stopped = |process: PathBuf| {
        let tasks = std::fs::read_dir(process.join("task")).ok()?;
        let stats = tasks.filter_map(|task| text(task.ok()?.path().join("stat")).ok());
        // The program's name is in parentheses, the state follows.
        Some(
            stats
                .into_iter()
                .all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))),
        )
    };
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    processes.filter(session).filter_map(stopped).collect()
}

#[test]
fn one_target_is_at_work_at_a_time_and_a_killed_run_leaves_nobody_stopped() {
    let text = TINY.replace("seconds = 0.15", "seconds = 0.4");
    let lab = Lab::new(&text.replace("seed = 5", "seed = 5\nwarmup = false\norder = 'steps'"));
    let data = lab.dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let arguments = ["run", "tiny.toml", "--data", data.to_str().unwrap()];
    let mut run = lab.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most_stopped = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut looks = 0;
    // Three targets: two stand still while the third is at work.
    while looks < 100 && Instant::now() < deadline {
        let seen = sessions_at_work(&data);
        let stopped = seen.iter().filter(|stopped| **stopped).count();
        assert!(seen.len() - stopped <= 1, "{} of {} at work", seen.len() - stopped, seen.len());
        most_stopped = most_stopped.max(stopped);
        looks += usize::from(most_stopped >= 2);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(most_stopped >= 2, "{most_stopped} were stopped at once");
    run.kill().unwrap();
    run.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !sessions_at_work(&data).is_empty() {
        assert!(Instant::now() < deadline, "children outlive their run: {:?}", sessions_at_work(&data));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_second_load_begins_with_an_empty_database() {
    let text = TINY
        .replace("'fillseq', 'readrandom', 'overwrite'", "'fillseq', 'fillrandom', 'readrandom'")
        .replace("rounds = 2", "rounds = 1\naa = false\nwarmup = false");
    let lab = Lab::new(&text);
    lab.text(&["run", "tiny.toml"]);
    let [_, _, measured, _] = lab.recorded();
    let share = |row: &serde_json::Value| {
        row["result"]["found"].as_f64().unwrap() / row["result"]["ops"].as_f64().unwrap()
    };
    let read = |row: &serde_json::Value| row["name"] == "readrandom" && (0.58..0.69).contains(&share(row));
    assert_eq!(count(&measured, read), 2, "{measured}");
}

#[test]
fn sessions_that_start_from_copies_measure_the_same_steps() {
    let restored =
        TINY.replace("seed = 5", "seed = 5\ndata = 'restored'").replace("rounds = 2", "rounds = 1");
    let lab = Lab::new(&restored);
    lab.text(&["run", "tiny.toml"]);
    let [_, sessions, measured, events] = lab.recorded();
    assert_eq!(count(&sessions, |session| session["outcome"] == "done"), 4);
    // The load belongs to the data set; each of three targets then reads and writes once.
    assert_eq!(count(&measured, |_| true), 6);
    assert_eq!(
        count(&measured, |row| row["name"] == "readrandom" && row["result"]["found"] == row["result"]["ops"]),
        3
    );
    assert_eq!(
        count(&events, |event| event[1].as_str().unwrap().contains("was loaded")),
        2,
        "the twin shares"
    );
}

#[test]
fn a_load_that_follows_in_a_session_on_a_copy_begins_with_an_empty_database() {
    let steps = TINY.replace("'overwrite'", "'again', 'after'");
    let restored = steps
        .replace("seed = 5", "seed = 5\ndata = 'restored'\naa = false\nwarmup = false")
        .replace("rounds = 2", "rounds = 1");
    let more = "[step.again]\nkind = 'fillrandom'\n[step.after]\nkind = 'readrandom'\n";
    let lab = Lab::new(&format!("{restored}{more}"));
    lab.text(&["run", "tiny.toml"]);
    let [_, sessions, measured, _] = lab.recorded();
    assert_eq!(count(&sessions, |session| session["outcome"] == "done"), 2);
    let share = |row: &serde_json::Value| {
        row["result"]["found"].as_f64().unwrap() / row["result"]["ops"].as_f64().unwrap()
    };
    // As many random keys as there are keys leave 63.2 % of them written; the copy has all.
    let found = |row: &serde_json::Value| row["name"] == "after" && (0.58..0.69).contains(&share(row));
    assert_eq!(count(&measured, found), 2, "{measured}");
}

#[test]
fn a_budget_ends_a_run_after_whole_blocks() {
    let lab = Lab::new(&TINY.replace("rounds = 2", "rounds = 3\nbudget_seconds = 1"));
    lab.text(&["run", "tiny.toml"]);
    let [experiment, sessions, _, events] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    assert_eq!(
        count(&sessions, |session| session["outcome"] == "done"),
        4,
        "the warm-up and one block of three"
    );
    let says =
        |event: &serde_json::Value| event[1].as_str().unwrap().contains("no room for another block after 1");
    assert_eq!(count(&events, says), 1, "{events}");
}

/// A library that has every function an engine needs, and dies in each.
fn crashing_library(dir: &Path) -> PathBuf {
    macro_rules! names {
        ($($name:ident,)*) => { [$(stringify!($name)),*] };
    }
    let mut source = String::new();
    for name in outcrop_lab_load::for_each_function!(names) {
        writeln!(source, "#[unsafe(no_mangle)] pub extern \"C\" fn {name}() {{ std::process::abort() }}")
            .unwrap();
    }
    std::fs::write(dir.join("crash.rs"), source).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let library = dir.join("libcrash.so");
    let status = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=cdylib", "-o"])
        .args([&library, &dir.join("crash.rs")])
        .status()
        .unwrap();
    assert!(status.success());
    library
}

#[test]
fn a_library_that_crashes_fails_its_own_sessions_only() {
    let temp = tempfile::tempdir().unwrap();
    let library = crashing_library(temp.path());
    let crashing = format!("[[target]]\nengine = 'crash'\nlibrary = '{}'\n", library.display());
    let lab = Lab::new(
        &TINY
            .replace("rounds = 2", "rounds = 3")
            .replace("[[target]]", &format!("{crashing}[[target]]"))
            .replace("title = 'Tiny'", "title = 'Tiny'\nbase = 'outcrop/a'"),
    );
    lab.text(&["run", "tiny.toml"]);
    let [experiment, sessions, measured, _] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    let of =
        |target: u64, outcome: &str| count(&sessions, |s| s["target"] == target && s["outcome"] == outcome);
    assert_eq!((of(0, "failed"), of(0, "skipped")), (2, 1), "two failures in a row are enough");
    assert_eq!((of(1, "failed"), of(2, "done"), of(3, "done")), (0, 3, 3));
    assert_eq!(count(&measured, |row| row["target"] == 0), 0);
    let shown = lab.text(&["show", "1"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("crash, block 1: the process ended during fillseq (signal: 6"), "{shown}");
    assert!(lab.text(&["report", "1", "-o", "site"]).contains("index.html"), "the others are reported");
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let lab = Lab::new(&TINY.replace("keys =", "kees ="));
    let output = lab.output(&["run", "tiny.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("tiny.toml:5:1: unknown key \"kees\"; did you mean \"keys\"?"), "{error}");
    let error = String::from_utf8(lab.output(&["list"]).stderr).unwrap();
    assert!(error.contains("--store"), "{error}");
    let lab = Lab::new(&TINY.replace("block_size = 4096", "options = 'create_if_missing=false'"));
    lab.text(&["run", "tiny.toml"]);
    let error = String::from_utf8(lab.output(&["run", "tiny.toml", "--resume"]).stderr).unwrap();
    assert!(error.contains("without --resume a new one begins"), "{error}");
    assert!(lab.text(&["show", "1"]).contains("create_if_missing"), "the engine's own words");
}

#[test]
fn a_planted_regression_is_called_and_its_cost_is_named() {
    let lab = Lab::new(
        &TINY
            .replace("rounds = 2", "rounds = 6\naa = false\nwarmup = false")
            .replace("[config.b]\nblock_size = 4096", "[config.b]\nplanted = 10.0"),
    );
    lab.text(&["run", "tiny.toml"]);
    let compared = lab.output(&["compare", "1", "--json"]);
    assert_eq!(compared.status.code(), Some(2), "a regression");
    let compared: serde_json::Value = serde_json::from_slice(&compared.stdout).unwrap();
    let cell = compared["cells"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cell| cell["step"] == "readrandom" && cell["target"] == "outcrop/b")
        .unwrap();
    assert_eq!(cell["verdict"]["word"], "regression", "{cell}");
    let explained = lab.text(&["explain", "1", "readrandom", "outcrop/b"]);
    let sentence = explained.split("\n\n").next().unwrap();
    assert!(sentence.contains("cpu_us/o"), "{explained}");
}

#[test]
fn transactions_batches_and_open_loops_are_measured() {
    let text = TINY
        .replace(
            "'fillseq', 'readrandom', 'overwrite'",
            "'fillseq', 'multireadrandom', 'readrandom3', 'due', 'mixgraph', 'few', 'randomtransaction', 'overwritelocked'",
        )
        .replace("rounds = 2", "rounds = 1\naa = false\nwarmup = false");
    let due = "[step.due]\nkind = 'readrandom'\narrival_rate = 500\narrival_spacing = 'poisson'\n";
    // Its counters are there when those of more sets are counted.
    let few = "[step.few]\nkind = 'randomtransaction'\ntransaction_sets = 2\n";
    let lab = Lab::new(&format!("{text}{due}{few}"));
    lab.text(&["run", "tiny.toml"]);
    let [_, sessions, measured, _] = lab.recorded();
    assert_eq!(count(&sessions, |session| session["outcome"] == "done"), 2, "nothing failed");
    let rate = |row: &serde_json::Value| row["metrics"]["ops_sec"].as_f64().unwrap_or_default();
    assert_eq!(count(&measured, |row| row["name"] == "randomtransaction" && rate(row) > 0.0), 2);
    assert_eq!(count(&measured, |row| row["name"] == "overwritelocked" && rate(row) > 0.0), 2);
    assert_eq!(count(&measured, |row| row["name"] == "due" && row["metrics"]["response_p50"].is_number()), 2);
    let found = |row: &serde_json::Value| row["result"]["found"] == row["result"]["ops"];
    assert_eq!(count(&measured, |row| row["name"] == "multireadrandom" && found(row)), 2);
    assert_eq!(count(&measured, |row| row["name"] == "readrandom3" && found(row)), 2);
    assert_eq!(count(&measured, |row| row["name"] == "mixgraph" && row["metrics"]["ops_sec"].is_number()), 2);
    let text = String::from_utf8(lab.output(&["compare", "1"]).stdout).unwrap();
    assert!(text.contains("randomtransaction") && text.contains("p99 [us]"), "{text}");
    lab.text(&["report", "1", "-o", "site"]);
    let page = std::fs::read_to_string(lab.dir.path().join("site/index.html")).unwrap();
    assert!(page.contains("Response times") && !page.contains("not offered by this target"));
}
