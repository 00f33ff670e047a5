//! One slice: a process with a seed and a time, its output, and whether it found something.

use super::ledger::{Begun, Ended};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A slice may take so much longer than its time, to shrink what it found and to be slowed by others, before it counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(1800);
/// Lines of the output that a finding keeps.
const LAST_LINES: usize = 60;
/// How often a slice is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Plays `begun` by `command`; a failure is kept in `dir/findings`. One that plays no case and does not say why is a failure, too.
///
/// # Errors
/// The command cannot be started, or a file cannot be written.
pub fn play(dir: &Path, begun: &Begun, mut command: Command) -> Result<Ended, String> {
    let findings = dir.join("findings");
    std::fs::create_dir_all(&findings).map_err(|error| format!("{}: {error}", findings.display()))?;
    let path = dir.join("output.log");
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    let output = File::create(&path).map_err(named)?;
    let line = describe(&command);
    // A group of its own: what it starts can be ended with it.
    command.process_group(0).stdin(Stdio::null()).stdout(output.try_clone().map_err(named)?).stderr(output);
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{line}: {error}"))?;
    let ended = wait(&mut child, Duration::from_secs(begun.seconds) + PATIENCE)?;
    let took = start.elapsed().as_secs_f64();
    let bytes = std::fs::read(&path).map_err(named)?;
    let text = String::from_utf8_lossy(&bytes);
    let cases = cases(&begun.campaign, &text);
    let (failed, skipped) = match ended {
        None if cases == 0 => match skipped(&begun.campaign, &text) {
            None => (Some("it ended well, played no case and does not say why".to_string()), None),
            skipped => (None, skipped),
        },
        ended => (ended, None),
    };
    let again = failed.as_ref().map(|_| again(&text).unwrap_or_else(|| line.clone()));
    if let (Some(why), Some(again)) = (failed, &again) {
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        let Begun { campaign, seed, .. } = begun;
        let told = format!(
            "campaign: {campaign}\nseed: {seed}\nended: {why}\nslice: {line}\nagain: {again}\n\n{last}\n"
        );
        let path = findings.join(format!("{campaign}-{seed}.txt"));
        std::fs::write(&path, told).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(Ended { campaign: begun.campaign.clone(), seed: begun.seed, took, cases, again, skipped })
}

/// Waits for the end; gives why it is a failure, if it is one.
fn wait(child: &mut Child, longest: Duration) -> Result<Option<String>, String> {
    let start = Instant::now();
    loop {
        match child.try_wait().map_err(|error| format!("waiting for a slice: {error}"))? {
            Some(status) if status.success() => return Ok(None),
            Some(status) => return Ok(Some(status.to_string())),
            None if start.elapsed() >= longest => break,
            None => std::thread::sleep(POLL),
        }
    }
    // The group of the child, which is ours alone. If it cannot be ended, waiting says so by not returning.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    let _ = child.wait();
    Ok(Some(format!("it hung: killed after {} s", longest.as_secs())))
}

/// The command as a person types it.
fn describe(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    format!("cargo xtask {}", words.join(" "))
}

/// The last command after `again: `, by which generators say how a failing case is repeated.
fn again(output: &str) -> Option<String> {
    output
        .lines()
        .rev()
        .find_map(|line| line.split_once("again: "))
        .map(|(_, command)| command.trim().to_string())
}

/// Why a campaign that ended well played no case, if it says so.
fn skipped(campaign: &str, output: &str) -> Option<String> {
    let prefix = format!("{campaign}: ");
    let told = output.lines().find_map(|line| line.strip_prefix(&prefix)?.split_once("SKIPPED, "));
    told.map(|(_, why)| why.to_string())
}

/// Cases that a campaign says it played: the numbers before the first ` cases` of its own lines.
pub fn cases(campaign: &str, output: &str) -> u64 {
    let prefix = format!("{campaign}: ");
    let lines = output.lines().filter_map(|line| line.strip_prefix(&prefix));
    let numbers =
        lines.filter_map(|line| line.split_once(" cases")?.0.rsplit(' ').next()?.parse::<u64>().ok());
    numbers.sum()
}
