//! Tests in a JVM on our library, and on the one that the jar carries as the control; and what a list of exceptions says.
//!
//! All classes run in one JVM. If it ends in a test, that test has failed, and another goes on behind it. A list of exceptions
//! has the tests that fail on ours and why. A test that fails and is not listed is an error, and so is one that is listed and
//! passes: the list only shrinks. A test that fails on the control, too, does not count.

use crate::bindings::suites::Outcome;
use crate::java::place::Place;
use crate::sources::make_dir;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// By name, `Class.test`.
pub type Outcomes = BTreeMap<String, Outcome>;

/// Compiled tests, and the program that runs them.
pub struct Tests<'a> {
    /// Has a directory for each side.
    pub dir: &'a Path,
    pub class_path: &'a str,
    /// The program's class. Its arguments are a file of tests to be left out, and classes; it says `@start TEST`, then
    /// `@pass TEST`, `@ignored TEST` or `@fail TEST why`, `@done CLASS` after each class, `@library PATH` and `@end`.
    pub runner: &'a str,
    /// Flags of the JVM.
    pub flags: &'a [&'a str],
    /// How long a JVM may run before it counts as hanging.
    pub limit_seconds: u32,
}

impl Tests<'_> {
    /// Runs classes on a library, the jar's own for `None`.
    ///
    /// # Errors
    /// The JVM cannot be started, ends outside of a test, or ran on the other library.
    pub fn run(&self, side: &str, library: Option<&Path>, classes: &[String]) -> Result<Outcomes, String> {
        let place = self.dir.join(side);
        let _ = std::fs::remove_dir_all(&place);
        make_dir(&place)?;
        if let Some(library) = library {
            let copy = place.join(super::LIBRARY);
            std::fs::copy(library, copy).map_err(|error| format!("{}: {error}", library.display()))?;
        }
        let mut outcomes = Outcomes::new();
        let mut rest = classes;
        loop {
            let said = self.jvm(side, &place, rest, &outcomes)?;
            let running = heard(&said, &mut outcomes);
            let done = said.lines().filter(|line| line.starts_with("@done ")).count();
            rest = &rest[done..];
            match running {
                None if said.lines().any(|line| line == "@end") => {
                    return ran_on(&said, library.map(|_| place.as_path()))
                        .map(|()| outcomes)
                        .map_err(|why| format!("{side}: {why}"));
                }
                None => {
                    return Err(format!("{side}: the JVM ended outside of a test, in {:?}", rest.first()));
                }
                Some(test) => {
                    outcomes.insert(test, Outcome::Failed(ENDED.into()));
                }
            }
        }
    }

    /// The words of one JVM about classes, without the tests whose outcomes are known.
    fn jvm(&self, side: &str, place: &Path, classes: &[String], known: &Outcomes) -> Result<String, String> {
        let skipped = place.join("skipped");
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        std::fs::write(&skipped, names.join("\n"))
            .map_err(|error| format!("{}: {error}", skipped.display()))?;
        let temporary = Place::make("tests", place)?;
        let log =
            std::fs::File::create(place.join("log.txt")).map_err(|error| format!("log.txt: {error}"))?;
        let output = Command::new("timeout")
            .args(["--signal=KILL", &self.limit_seconds.to_string(), "java", "-XX:-CreateCoredumpOnCrash"])
            .args(self.flags)
            .arg(format!("-XX:ErrorFile={}", place.join("crash.txt").display()))
            .arg(format!("-Djava.io.tmpdir={}", temporary.path().display()))
            .arg(format!("-Djava.library.path={}", place.display()))
            .args(["-cp", self.class_path, self.runner])
            .arg(&skipped)
            .args(classes)
            .current_dir(temporary.path())
            .stderr(log)
            .output()
            .map_err(|error| format!("timeout: {error}"));
        drop(temporary);
        let said = String::from_utf8_lossy(&output?.stdout).into_owned();
        if said.is_empty() {
            Err(format!("{side}: no word of the JVM; see {}", place.join("log.txt").display()))
        } else {
            Ok(said)
        }
    }
}

/// The outcome of a test in which the JVM ended.
const ENDED: &str = "the JVM ended";

/// Whether a JVM said that it ran on the library in `ours`, or on another one for `None`: one that passes tests and says nothing of it may
/// have run on any.
fn ran_on(said: &str, ours: Option<&Path>) -> Result<(), String> {
    if !said.lines().any(|line| line.starts_with("@pass ") || line.starts_with("@library ")) {
        return Ok(());
    }
    let mapped = said.lines().find_map(|line| line.strip_prefix("@library "));
    check_library(mapped.ok_or("the runner does not say on which library the tests ran")?, ours)
}

/// Refuses a library that a JVM has mapped, unless it is the one in the directory `ours`, or for `None` the one that the jar carries: its loader
/// unpacks that under another name. A JVM without a `java.library.path` takes the path of cargo's programs, where a library of ours may lie.
///
/// # Errors
/// On which library the program ran.
pub fn check_library(mapped: &str, ours: Option<&Path>) -> Result<(), String> {
    let mapped = Path::new(mapped);
    let is_right = match ours {
        Some(place) => mapped.starts_with(place),
        None => mapped.file_name().is_some_and(|name| name != super::LIBRARY),
    };
    if is_right { Ok(()) } else { Err(format!("the program ran on {}", mapped.display())) }
}

/// How many passed.
fn passed(outcomes: &Outcomes) -> usize {
    outcomes.values().filter(|outcome| **outcome == Outcome::Passed).count()
}

/// How they ended: `537 pass`, and how many were skipped or failed if any.
pub fn tally(outcomes: &Outcomes) -> String {
    let skipped = outcomes.values().filter(|outcome| **outcome == Outcome::Ignored).count();
    let failed = outcomes.len() - skipped - passed(outcomes);
    let parts = [(passed(outcomes), "pass"), (skipped, "are skipped"), (failed, "fail")];
    let told = parts.iter().enumerate().filter(|(at, (count, _))| *at == 0 || *count > 0);
    told.map(|(_, (count, how))| format!("{count} {how}")).collect::<Vec<_>>().join(", ")
}

/// Compares `ours` with `list`, the text of the file `file`: rows `test | why`. A reason that begins with `at times: ` is that
/// of a test that may pass; nothing excuses one in which the JVM ended, or that is skipped here and passes on the control, or a
/// side on which nothing passed.
///
/// # Errors
/// Which tests disagree with the list.
pub fn judge(file: &str, list: &str, ours: &Outcomes, control: &Outcomes) -> Result<(), String> {
    let mut listed = BTreeMap::new();
    for row in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (test, why) = row.split_once(" | ").ok_or_else(|| format!("{file}: {row}: test | why"))?;
        if why.trim().is_empty() || listed.insert(test.trim(), why).is_some() {
            return Err(format!("{file}: {row}: no reason, or the second row of this test"));
        }
    }
    let mut wrong = Vec::new();
    for (test, outcome) in ours {
        let fails_there = !matches!(control.get(test), Some(Outcome::Passed));
        match (outcome, listed.get(test.as_str())) {
            (Outcome::Failed(said), why)
                if said == ENDED && !fails_there && !why.is_some_and(|why| why.contains(ENDED)) =>
            {
                wrong.push(format!("{test} | {said}, which no reason but one that says so covers"));
            }
            (Outcome::Ignored, None) if !fails_there => {
                wrong.push(format!("{test} | is skipped, and passes on the control"));
            }
            (Outcome::Failed(said), None) if !fails_there => wrong.push(format!("{test} | fails: {said}")),
            (Outcome::Passed, Some(why)) if !why.starts_with("at times: ") => {
                wrong.push(format!("{test} passes: take it off {file}"));
            }
            _ => {}
        }
    }
    let gone = listed.keys().filter(|test| !ours.contains_key(**test));
    wrong.extend(gone.map(|test| format!("{test} is listed, but no test")));
    wrong.extend(
        control.keys().filter(|test| !ours.contains_key(*test)).map(|test| format!("{test} did not run")),
    );
    let nothing = [("Outcrop's library", ours), ("the control", control)];
    wrong.extend(
        nothing
            .into_iter()
            .filter(|(_, outcomes)| passed(outcomes) == 0)
            .map(|(side, _)| format!("no test passed on {side}")),
    );
    if wrong.is_empty() { Ok(()) } else { Err(format!("{file}:\n{}", wrong.join("\n"))) }
}

/// Takes what a JVM said into `outcomes`; gives the test that was running when it ended, if one was.
fn heard(said: &str, outcomes: &mut Outcomes) -> Option<String> {
    let mut running = None;
    for line in said.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(word), Some(test)) = (words.next(), words.next()) else { continue };
        let outcome = match word {
            "@start" => {
                running = Some(test.to_string());
                continue;
            }
            "@pass" => Outcome::Passed,
            "@ignored" => Outcome::Ignored,
            "@fail" => Outcome::Failed(words.next().unwrap_or_default().to_string()),
            _ => continue,
        };
        // A class that fails as a whole does so between tests.
        if running.as_deref() == Some(test) {
            running = None;
        }
        outcomes.insert(test.to_string(), outcome);
    }
    running
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_ends_the_jvm_is_told_from_those_before() {
        let mut outcomes = Outcomes::new();
        let said =
            "@start A.one\n@pass A.one\n@start A.two\n@fail A.two java.lang.Error: no\n@done A\n@start B.x\n";
        assert_eq!(heard(said, &mut outcomes).as_deref(), Some("B.x"));
        assert_eq!(outcomes["A.one"], Outcome::Passed);
        assert_eq!(outcomes["A.two"], Outcome::Failed("java.lang.Error: no".into()));
        assert_eq!(heard("@start A.one\n@ignored A.one\n@end\n", &mut outcomes), None);
        assert_eq!(outcomes["A.one"], Outcome::Ignored);
        assert_eq!(tally(&outcomes), "0 pass, 1 are skipped, 1 fail");
        assert_eq!(tally(&Outcomes::from([("A".into(), Outcome::Passed)])), "1 pass");
    }

    #[test]
    fn tests_that_do_not_say_which_library_they_ran_on_prove_nothing() {
        let place = Path::new("/a/outcrop");
        let said = |path: &str| format!("@pass A.a\n@library {path}\n@end\n");
        assert_eq!(ran_on(&said("/a/outcrop/librocksdbjni.so"), Some(place)), Ok(()));
        assert_eq!(ran_on(&said("/tmp/librocksdbjni4711.so"), None), Ok(()));
        assert!(ran_on(&said("/a/target/debug/librocksdbjni.so"), None).is_err());
        assert!(ran_on(&said("/tmp/librocksdbjni.so"), Some(place)).is_err());
        assert!(ran_on(&said("/a/outcrop2/librocksdbjni.so"), Some(place)).is_err());
        assert!(ran_on("@pass A.a\n@end\n", Some(place)).is_err());
        assert!(ran_on("@pass A.a\n@end\n", None).is_err());
        assert_eq!(
            ran_on("@done A\n@end\n", Some(place)),
            Ok(()),
            "what a JVM leaves to the next may be no test"
        );
    }

    #[test]
    fn a_list_says_neither_too_much_nor_too_little() {
        let failed = || Outcome::Failed("no".into());
        let outcomes = |rows: &[(&str, Outcome)]| {
            rows.iter()
                .map(|(test, outcome)| {
                    let copy = match outcome {
                        Outcome::Passed => Outcome::Passed,
                        Outcome::Ignored => Outcome::Ignored,
                        Outcome::Failed(why) => Outcome::Failed(why.clone()),
                    };
                    ((*test).to_string(), copy)
                })
                .collect::<Outcomes>()
        };
        let control = outcomes(&[("A.a", Outcome::Passed), ("A.b", Outcome::Passed), ("A.c", failed())]);
        let ours = outcomes(&[("A.a", Outcome::Passed), ("A.b", failed()), ("A.c", failed())]);
        assert_eq!(judge("list", "# rows\nA.b | missing\n", &ours, &control), Ok(()));
        let wrong = |list: &str, ours: &Outcomes| judge("list", list, ours, &control).unwrap_err();
        assert_eq!(wrong("", &ours), "list:\nA.b | fails: no");
        assert_eq!(wrong("A.b | x\nA.a | x\n", &ours), "list:\nA.a passes: take it off list");
        assert_eq!(wrong("A.b | x\nA.d | x\n", &ours), "list:\nA.d is listed, but no test");
        assert!(wrong("A.b | x\nA.b | x\n", &ours).contains("second row"));
        let skipped = outcomes(&[("A.a", Outcome::Ignored), ("A.b", failed()), ("A.c", Outcome::Ignored)]);
        assert_eq!(
            wrong("A.b | x\n", &skipped),
            "list:\nA.a | is skipped, and passes on the control\nno test passed on Outcrop's library"
        );
        let ended = || Outcome::Failed(ENDED.into());
        let crashed = outcomes(&[("A.a", Outcome::Passed), ("A.b", ended()), ("A.c", ended())]);
        let told = wrong("A.b | at times: a race\n", &crashed);
        assert_eq!(told, "list:\nA.b | the JVM ended, which no reason but one that says so covers");
        assert_eq!(judge("list", "A.b | at times: the JVM ended\n", &crashed, &control), Ok(()));
        let few = outcomes(&[("A.b", failed())]);
        assert_eq!(
            wrong("A.b | x\n", &few),
            "list:\nA.a did not run\nA.c did not run\nno test passed on Outcrop's library"
        );
        let none = Outcomes::new();
        assert_eq!(
            judge("list", "", &none, &none).unwrap_err(),
            "list:\nno test passed on Outcrop's library\nno test passed on the control"
        );
        let passes = outcomes(&[("A.a", Outcome::Passed)]);
        assert_eq!(judge("list", "", &passes, &none).unwrap_err(), "list:\nno test passed on the control");
    }
}
