//! A job of Flink's that is killed, and goes on where its checkpoint says, on our library and on the jar's: what one writes the other restores.
//! `flink/Job.java` is the job, with the cluster it runs on.

use super::project;
use super::side::Side;
use crate::java::place::Place;
use crate::java::runs::check_library;
use crate::sources::make_dir;
use crate::{java, programs};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const SOURCES: [(&str, &str); 1] = [("Job.java", include_str!("flink/Job.java"))];
/// When a JVM counts as hanging. It takes half a minute on an idle machine with two processors.
const LIMIT: Duration = Duration::from_secs(600);

/// Each library writes, loses its task managers and its process, and the other goes on.
///
/// # Errors
/// What differs from what must come out, and where the files and logs are.
pub fn run() -> Result<(), String> {
    let job = Job::build()?;
    for (writer, reader) in [(Side::Outcrop, Side::RocksDb), (Side::RocksDb, Side::Outcrop)] {
        let place = Place::make(&format!("flink-job-{}", writer.name()), &job.dir)?;
        if let Err(why) = job.hand_over(writer, reader, place.path()) {
            let (from, to) = (writer.name(), reader.name());
            return Err(format!("flink-job from {from} to {to}: {why}; files: {}", place.keep().display()));
        }
        println!(
            "flink-job: {} lost both task managers and then its process; {} went on from its savepoints and its incremental checkpoint: counts exact",
            writer.name(),
            reader.name()
        );
    }
    Ok(())
}

/// The compiled job.
struct Job {
    dir: PathBuf,
    class_path: String,
    natives: PathBuf,
}

impl Job {
    fn build() -> Result<Job, String> {
        let dir = programs::target_dir().join("streams/flink-job");
        let resources = [("log4j2.properties", include_str!("log4j2.properties"))];
        let class_path = project::build(&dir, include_str!("flink/pom.xml"), &SOURCES, &resources)?;
        let natives = dir.join("natives");
        make_dir(&natives)?;
        let library = programs::built(java::LIBRARY)?;
        std::fs::copy(&library, natives.join(java::LIBRARY))
            .map_err(|error| format!("{}: {error}", library.display()))?;
        Ok(Job { dir, class_path, natives })
    }

    fn hand_over(&self, writer: Side, reader: Side, place: &Path) -> Result<(), String> {
        let mut written = self.start(writer, place, &["write".into(), text(&place.join("written"))])?;
        let said = written.hear("@written");
        // As kill -9: nothing of the job is closed.
        written.end();
        let said = said?;
        self.ran_on(writer, &said)?;
        let path = |word: &str| find(&said, word).ok_or_else(|| format!("the job does not say {word}"));
        let mut arguments = vec!["read".into(), text(&place.join("read"))];
        // The state is dealt out anew where the parallelism is another: ranges of keys are cut out of files.
        for (word, parallelism) in
            [("@canonical", "2"), ("@native", "3"), ("@checkpoint", "2"), ("@checkpoint", "4")]
        {
            arguments.extend([path(word)?.to_string(), parallelism.to_string()]);
        }
        let mut read = self.start(reader, place, &arguments)?;
        let said = read.hear("@library ");
        read.end();
        let said = said?;
        self.ran_on(reader, &said)?;
        match said.iter().filter(|line| line.starts_with("@restored ")).count() {
            4 => Ok(()),
            restored => Err(format!("{restored} of 4 were restored")),
        }
    }

    fn start(&self, side: Side, place: &Path, arguments: &[String]) -> Result<Running, String> {
        let log = place.join(format!("{}-{}.log", arguments[0], side.name()));
        let file = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new("java");
        command.args([
            "-Xmx768m",
            "-XX:+UseSerialGC",
            "-XX:ActiveProcessorCount=2",
            "-XX:TieredStopAtLevel=1",
        ]);
        // Always said: by itself a JVM takes the path of cargo's programs.
        let natives = side.natives(&self.natives).unwrap_or(place);
        command.arg(format!("-Djava.library.path={}", natives.display()));
        command.arg(format!("-Djava.io.tmpdir={}", place.display()));
        command.args(["-cp", &self.class_path, "Job"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(|error| format!("java: {error}"))?;
        let output = child.stdout.take().ok_or("java has no output")?;
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .take_while(|line| tell.send(line.clone()).is_ok())
                .count()
        });
        Ok(Running { child, lines, log })
    }

    fn ran_on(&self, side: Side, said: &[String]) -> Result<(), String> {
        let mapped = find(said, "@library").ok_or("the job does not say on which library it ran")?;
        check_library(mapped, side.natives(&self.natives))
    }
}

/// A JVM, which ends with this.
struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    log: PathBuf,
}

impl Running {
    /// Its lines up to the one that begins with `last`.
    fn hear(&mut self, last: &str) -> Result<Vec<String>, String> {
        let mut said = Vec::new();
        loop {
            let line = self.lines.recv_timeout(LIMIT);
            let line = line.map_err(|error| format!("no {last}, {error}: {}", self.last_words()))?;
            let is_last = line.starts_with(last);
            said.push(line);
            if is_last {
                return Ok(said);
            }
        }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The exception that it ended with.
    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let exception = text.lines().find(|line| line.contains("Exception: ") && !line.starts_with('\t'));
        exception.unwrap_or("it said nothing").to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn find<'a>(said: &'a [String], word: &str) -> Option<&'a str> {
    said.iter().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
