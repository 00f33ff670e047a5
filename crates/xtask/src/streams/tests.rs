//! The published tests of Kafka Streams and of Flink's state backend, on our library and on the jar's own as the control.
//!
//! The classes are those of the published jars of tests, and a few of this tree that give a backend to published tests that
//! have none. `exceptions.txt` of each lists the tests that
//! fail on ours and why; how it is judged is in `java::runs`.

use super::project;
use crate::java::runs::{Tests, judge, tally};
use crate::{java, programs};
use std::time::Instant;

/// All threads of a JVM together get a processor or two.
const FLAGS: [&str; 3] = ["-Xmx1g", "-XX:ActiveProcessorCount=2", "-XX:+UseSerialGC"];
/// How long a JVM may run before it counts as hanging. A whole suite takes minutes.
const LIMIT_SECONDS: u32 = 3000;

/// A program that uses RocksDB, with the tests that it publishes.
pub struct Suite {
    /// As people call it.
    pub name: &'static str,
    /// Of its directory.
    pub directory: &'static str,
    pom: &'static str,
    /// The end of the name of the jar that has the tests.
    jar: &'static str,
    /// Which of its classes: they are in this package, or below it,
    package: &'static str,
    /// and their names have one of these in them.
    words: &'static [&'static str],
    /// Classes of this tree that give a backend to published tests that have none: name with package, file, text.
    own: &'static [(&'static str, &'static str, &'static str)],
    /// A few of all these, for each change.
    few: &'static [&'static str],
    /// The file of exceptions, and its text.
    list: &'static str,
    exceptions: &'static str,
}

pub const KAFKA: Suite = Suite {
    name: "Kafka Streams 4.3.1",
    directory: "kafka-tests",
    pom: include_str!("kafka/pom.xml"),
    jar: "/kafka-streams-4.3.1-test.jar",
    package: "org/apache/kafka/streams/state/internals/",
    words: &[
        "RocksDB",
        "RocksDb",
        "Segment",
        "CachingPersistent",
        "TimeOrdered",
        "StoreFetch",
        "ColumnFamily",
        "BlockBasedTableConfig",
    ],
    own: &[],
    few: &["RocksDBStoreTest", "RocksDBTimestampedStoreTest", "RocksDBVersionedStoreTest"],
    list: "streams/kafka/exceptions.txt",
    exceptions: include_str!("kafka/exceptions.txt"),
};

pub const FLINK: Suite = Suite {
    name: "Flink 2.2.1",
    directory: "flink-tests",
    pom: include_str!("flink/pom.xml"),
    jar: "/flink-statebackend-rocksdb-2.2.1-tests.jar",
    package: "org/apache/flink/state/rocksdb/",
    words: &[""],
    own: &[
        (
            "org.apache.flink.runtime.state.ttl.RocksDBTtlTest",
            "RocksDBTtlTest.java",
            include_str!("flink/RocksDBTtlTest.java"),
        ),
        (
            "org.apache.flink.state.rocksdb.RocksDBMigrationTest",
            "RocksDBMigrationTest.java",
            include_str!("flink/RocksDBMigrationTest.java"),
        ),
    ],
    few: &["RocksDBTtlTest"],
    list: "streams/flink/exceptions.txt",
    exceptions: include_str!("flink/exceptions.txt"),
};

/// Which classes of a suite run.
#[derive(Clone, Copy)]
pub enum Which<'a> {
    /// All, judged by the list.
    All,
    /// A few, judged by their rows of the list.
    Few,
    /// Those whose names contain it, printed and not judged.
    Named(&'a str),
}

/// See the module.
///
/// # Errors
/// Which tests disagree with the list.
pub fn run(suite: &Suite, which: Which<'_>) -> Result<(), String> {
    let dir = programs::target_dir().join("streams").join(suite.directory);
    let mut sources = vec![("PlatformRunner.java", include_str!("PlatformRunner.java"))];
    sources.extend(suite.own.iter().map(|(_, file, text)| (*file, *text)));
    let resources = [("log4j2.properties", include_str!("log4j2.properties"))];
    let class_path = project::build(&dir, suite.pom, &sources, &resources)?;
    let library = programs::built(java::LIBRARY)?;
    let classes = suite.classes(&class_path, which)?;
    let tests = Tests {
        dir: &dir,
        class_path: &class_path,
        runner: "PlatformRunner",
        flags: &FLAGS,
        limit_seconds: LIMIT_SECONDS,
    };
    let started = Instant::now();
    let ours = tests.run("outcrop", Some(&library), &classes)?;
    let took = started.elapsed();
    let control = tests.run("rocksdb", None, &classes)?;
    println!(
        "{}: of {} tests in {} classes {} on Outcrop in {:.0} s; {} on RocksDB in {:.0} s",
        suite.name,
        control.len(),
        classes.len(),
        tally(&ours),
        took.as_secs_f64(),
        tally(&control),
        (started.elapsed() - took).as_secs_f64()
    );
    if let Which::Named(_) = which {
        for (test, outcome) in &ours {
            println!("{test}: {outcome:?}; on RocksDB: {:?}", control.get(test));
        }
        return Ok(());
    }
    let ran = |row: &str| classes.iter().any(|class| row.starts_with(&format!("{}.", simple(class))));
    let rows: Vec<&str> =
        suite.exceptions.lines().filter(|row| matches!(which, Which::All) || ran(row)).collect();
    judge(suite.list, &rows.join("\n"), &ours, &control)
}

/// Without its package.
fn simple(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

impl Suite {
    /// The classes of tests, in order.
    fn classes(&self, class_path: &str, which: Which<'_>) -> Result<Vec<String>, String> {
        let jar = class_path
            .split(':')
            .find(|jar| jar.ends_with(self.jar))
            .ok_or_else(|| format!("{} is not on the class path", self.jar))?;
        let failed = |error: &dyn std::fmt::Display| format!("{jar}: {error}");
        let file = std::fs::File::open(jar).map_err(|error| failed(&error))?;
        let archive = zip::ZipArchive::new(file).map_err(|error| failed(&error))?;
        let wanted = |class: &str| match which {
            Which::All => true,
            Which::Few => self.few.contains(&simple(class)),
            Which::Named(part) => class.contains(part),
        };
        let mut classes: Vec<String> = archive
            .file_names()
            .filter_map(|name| name.strip_suffix(".class"))
            .filter(|name| name.starts_with(self.package) && name.ends_with("Test") && !name.contains('$'))
            .map(|name| name.replace('/', "."))
            .filter(|name| self.words.iter().any(|word| simple(name).contains(word)))
            .chain(self.own.iter().map(|(class, _, _)| (*class).to_string()))
            .filter(|name| wanted(name))
            .collect();
        classes.sort();
        if classes.is_empty() { Err(format!("{jar} has no such class of tests")) } else { Ok(classes) }
    }
}
