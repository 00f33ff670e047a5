//! Campaigns that are lines of the shell: turns, kills, failures, counts.

use super::*;

/// A campaign that is a line of the shell, with `$1` for the seed and `$2` for the seconds.
fn fake(name: &str, script: &str) -> Campaign {
    let script = script.to_string();
    let command = move |seed: u64, seconds: u64| {
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", &seed.to_string(), &seconds.to_string()]);
        command
    };
    Campaign { name: name.to_string(), command: Box::new(command) }
}

fn plan(dir: &Path, millis: u64, resume: bool) -> Plan {
    Plan { time: Duration::from_millis(millis), dir: dir.to_path_buf(), resume }
}

#[test]
fn campaigns_take_turns_and_one_that_fails_goes_on_with_another_seed() {
    let dir = tempfile::tempdir().unwrap();
    let campaigns = [
        fake("good", "echo \"good: 7 cases in 1 s\"; sleep 0.05"),
        fake(
            "bad",
            "echo \"bad: 2 cases\"; echo \"bad: again: cargo xtask bad --seed $1 --case 3\"; sleep 0.05; exit 1",
        ),
    ];
    let mut ledger = Ledger::open(dir.path(), false).unwrap();
    let findings = play(&plan(dir.path(), 400, false), &campaigns, &mut ledger).unwrap();
    let of = |name: &str| ledger.of(name).cloned().collect::<Vec<_>>();
    let (good, bad) = (of("good"), of("bad"));
    assert!(good.len() >= 2 && bad.len() >= 2 && findings == bad.len(), "{good:?} {bad:?}");
    assert!(bad[0].seed != bad[1].seed, "a fresh seed each time");
    let told = std::fs::read_to_string(dir.path().join(format!("findings/bad-{}.txt", bad[0].seed))).unwrap();
    assert!(told.contains(&format!("again: cargo xtask bad --seed {} --case 3", bad[0].seed)), "{told}");
    let rows = table::rows(["good", "bad"].into_iter(), &ledger);
    assert_eq!((rows[0].cases, rows[0].findings), (7 * good.len() as u64, 0));
    assert_eq!((rows[1].cases, rows[1].findings), (2 * bad.len() as u64, bad.len()));
    assert!(table::print(&rows).lines().all(|line| line.len() <= 80), "{}", table::print(&rows));
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["campaigns"][0]["cases"], rows[0].cases);
    assert_eq!(report["findings"].as_array().unwrap().len(), bad.len());
}

#[test]
fn a_killed_run_resumes_with_the_slice_that_was_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let under_way = Begun { campaign: "two".into(), seed: 42, seconds: 9 };
    {
        let mut ledger = Ledger::open(dir.path(), false).unwrap();
        ledger.begin(&Begun { campaign: "one".into(), seed: 41, seconds: 9 }).unwrap();
        let ended = ledger::Ended {
            campaign: "one".into(),
            seed: 41,
            took: 1.0,
            cases: 5,
            again: None,
            skipped: None,
        };
        ledger.end(ended).unwrap();
        ledger.begin(&under_way).unwrap();
    }
    // Half a line, as a kill leaves it.
    let path = dir.path().join("ledger.jsonl");
    let half = std::fs::read_to_string(&path).unwrap() + "{\"ended\": {\"camp";
    std::fs::write(&path, half).unwrap();
    assert!(Ledger::open(dir.path(), false).is_err(), "a run is not begun over another");
    let mut ledger = Ledger::open(dir.path(), true).unwrap();
    assert_eq!(ledger.left_over("two"), Some(under_way));
    let say = |name: &str| fake(name, &format!("echo \"{name}: $1 cases, $2 seconds\"; sleep 0.2"));
    play(&plan(dir.path(), 1100, true), &[say("one"), say("two")], &mut ledger).unwrap();
    assert_eq!(ledger.of("two").next().map(|ended| (ended.seed, ended.cases)), Some((42, 42)));
    assert_eq!(ledger.of("one").count(), 1, "the time of before counts");
    let again = Ledger::open(dir.path(), true).unwrap();
    assert_eq!(again.ended(), ledger.ended(), "what is written is read");
}

#[test]
fn a_campaign_that_fails_with_every_seed_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(dir.path(), false).unwrap();
    let findings =
        play(&plan(dir.path(), 3_600_000, false), &[fake("broken", "exit 3")], &mut ledger).unwrap();
    assert_eq!(findings, HOPELESS as usize);
}

#[test]
fn a_campaign_that_is_skipped_has_one_turn_in_a_run_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let skips = || fake("skips", "echo \"skips: 0 cases: SKIPPED, no such device\"");
    let mut ledger = Ledger::open(dir.path(), false).unwrap();
    let plays = fake("plays", "echo \"plays: 1 cases\"; sleep 0.05");
    play(&plan(dir.path(), 300, false), &[skips(), plays], &mut ledger).unwrap();
    assert_eq!(ledger.of("skips").count(), 1, "it took no time, so that it had least of it");
    assert!(ledger.of("plays").count() >= 2);
    let rows = table::rows(["skips", "plays"].into_iter(), &ledger);
    assert_eq!(rows[0].skipped.as_deref(), Some("no such device"));
    assert_eq!(rows[1].skipped, None);
    assert!(table::print(&rows).contains("skips was SKIPPED:\n  no such device"), "{}", table::print(&rows));
    // One that is resumed looks again; alone, it ends.
    let mut ledger = Ledger::open(dir.path(), true).unwrap();
    assert_eq!(ledger.skipped("skips"), Some("no such device"), "it is in the ledger");
    play(&plan(dir.path(), 3_600_000, true), &[skips()], &mut ledger).unwrap();
    assert_eq!(ledger.of("skips").count(), 2);
}

#[test]
fn a_slice_that_plays_nothing_without_a_reason_is_a_finding() {
    let dir = tempfile::tempdir().unwrap();
    let begun = Begun { campaign: "idle".into(), seed: 5, seconds: 1 };
    let command = (fake("idle", "echo \"idle: 0 cases\"").command)(5, 1);
    let ended = slice::play(dir.path(), &begun, command).unwrap();
    assert!(ended.skipped.is_none() && ended.again.is_some());
    let told = std::fs::read_to_string(dir.path().join("findings/idle-5.txt")).unwrap();
    assert!(told.contains("ended: it ended well, played no case and does not say why"), "{told}");
}

#[test]
fn cases_are_counted_in_the_lines_of_generators() {
    let output = "calls: cases from seed 7 on\n\
        calls: 12 cases, 80 calls, 3 sequence numbers and histories, 1 texts of errors, 0 differences\n";
    assert_eq!(slice::cases("calls", output), 12);
    let output = "fuzz: cargo xtask fuzz --seconds 1\nfuzz: coding: 400 cases in 1.0 s from 3 inputs\n\
        fuzz: keys: 20 cases in 1.0 s from 3 inputs\n";
    assert_eq!(slice::cases("fuzz", output), 420);
    let output =
        "guided: coding: 400 cases, 40 a second, counters 7 -> 9, 2 new inputs\nguided: SKIPPED, x\n";
    assert_eq!(slice::cases("guided", output), 400);
    let output = "pingpong: 0 failures; 33 cases, 99 swaps, 7 operations, 1 SIGKILLs in 3 s\n";
    assert_eq!(slice::cases("pingpong", output), 33);
    assert_eq!(
        slice::cases("options", "options: 9 cases, 3 opened and 6 refused alike\nkills: 3 cases\n"),
        9
    );
}

#[test]
fn arguments_are_understood_or_refused() {
    let (plan, names) = parse(&["--minutes", "1.5", "--only", "calls,fuzz", "--dir", "/x"]).unwrap();
    assert_eq!(
        (plan.time, plan.dir.as_path(), plan.resume),
        (Duration::from_secs(90), Path::new("/x"), false)
    );
    assert_eq!(names, ["calls", "fuzz"]);
    let refused = |arguments: &[&str]| parse(arguments).err().unwrap();
    assert!(
        refused(&["--hours", "1", "--only", "cals"]).contains("no such campaign; there are calls, options")
    );
    assert!(refused(&["--hours", "-1"]).contains("no length of time"));
    assert!(refused(&[]).contains("for how long"));
    assert!(refused(&["--hours"]).contains("needs a value"));
    let guided = slice_arguments("guided", 5, 1);
    assert_eq!(guided, ["fuzz", "--guided", "--seconds", "1", "--seed", "5"]);
    assert_eq!(slice_arguments("fuzz", 5, 60)[2], (60 / fuzz::targets() as u64).max(1).to_string());
}
