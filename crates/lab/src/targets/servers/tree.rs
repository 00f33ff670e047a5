//! The processes of a server: all that descend from its guard.

use outcrop_lab_load::process::{self, ProcessUsage};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Ticks of a second, as `/proc` counts them.
const TICKS: f64 = crate::probe::sources::TICKS_PER_SECOND;
/// How long processes may take to stand still.
const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers of all processes that descend from `root`, without it.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for id in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        if let Some(parent) = stat(id).and_then(|stat| stat.number(PARENT)) {
            children.entry(parent as u32).or_default().push(id);
        }
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut next = 0;
    while next < found.len() {
        found.extend(children.remove(&found[next]).unwrap_or_default());
        next += 1;
    }
    found
}

/// Fields of `/proc/N/stat` after the name, counted from the state.
const STATE: usize = 0;
const PARENT: usize = 1;
const TIMES: [usize; 4] = [11, 12, 13, 14];

struct Stat(Vec<String>);

impl Stat {
    fn number(&self, field: usize) -> Option<u64> {
        self.0.get(field)?.parse().ok()
    }
}

fn stat(id: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // A name may hold spaces and brackets.
    let (_, rest) = text.rsplit_once(')')?;
    Some(Stat(rest.split_whitespace().map(str::to_string).collect()))
}

/// Sends `signal` to every process of `root`'s tree, those included that appear meanwhile.
fn signal_all(root: u32, signal: Signal, mut is_done: impl FnMut(&Stat) -> bool) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left: Vec<u32> = descendants(root)
            .into_iter()
            .filter(|id| stat(*id).is_some_and(|stat| !is_done(&stat)))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("processes of the server do not obey: {left:?}"));
        }
        for id in left {
            match Pid::from_raw(id as i32).map(|pid| kill_process(pid, signal)) {
                // It may have ended meanwhile.
                None | Some(Ok(()) | Err(Errno::SRCH)) => {}
                Some(Err(error)) => return Err(format!("process {id} of the server: {error}")),
            }
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn state(stat: &Stat) -> &str {
    stat.0.get(STATE).map_or("", String::as_str)
}

/// Stops all processes below `root`, and returns when they stand still.
///
/// # Errors
/// A sentence if one will not.
pub fn pause(root: u32) -> Result<(), String> {
    signal_all(root, Signal::STOP, |stat| matches!(state(stat), "T" | "t" | "Z" | "X"))
}

/// Lets all processes below `root` go on.
///
/// # Errors
/// A sentence if one will not.
pub fn go_on(root: u32) -> Result<(), String> {
    signal_all(root, Signal::CONT, |stat| state(stat) != "T")
}

/// Kills all processes below `root`, stopped or not, and returns when they are gone.
///
/// # Errors
/// A sentence if one will not.
pub fn kill(root: u32) -> Result<(), String> {
    signal_all(root, Signal::KILL, |stat| matches!(state(stat), "Z" | "X"))
}

/// A file of the kernel about a process; nothing if it has ended.
fn text_of(id: u32, name: &str) -> String {
    std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default()
}

/// The current state of each process below `root`, by the kernel's words, for messages.
pub fn described(root: u32) -> String {
    let one = |id: u32| {
        let state = stat(id).map_or_else(|| "gone".to_string(), |stat| state(&stat).to_string());
        let waits = text_of(id, "wchan");
        let waits = if matches!(waits.as_str(), "" | "0") { String::new() } else { format!(" in {waits}") };
        format!("{} {id}: {state}{waits}", text_of(id, "comm").trim())
    };
    let all: Vec<String> = descendants(root).into_iter().map(one).collect();
    if all.is_empty() { "no processes".to_string() } else { all.join(", ") }
}

/// The usage of all processes below `root`, those included that they have waited for: of their times, reads and writes the kernel
/// gives a parent those of its children. Memory is the sum of what each has for itself, and once the most that one has resident
/// of what they share. Switches are those of living threads. Reads and writes are not known if those of one are not told.
pub fn usage(root: u32) -> ProcessUsage {
    usage_of_all(&descendants(root))
}

/// The usage of process `id` so far, and of the children that it has waited for; nothing if it has ended.
pub fn usage_of(id: u32) -> ProcessUsage {
    usage_of_all(&[id])
}

fn usage_of_all(ids: &[u32]) -> ProcessUsage {
    let mut sum = ProcessUsage::default();
    let mut shared = 0;
    let mut device = Some([0; 2]);
    for id in ids.iter().copied() {
        let Some(stat) = stat(id) else { continue };
        let ticks = |field: usize| stat.number(field).unwrap_or(0) as f64 / TICKS;
        sum.user_seconds += ticks(TIMES[0]) + ticks(TIMES[2]);
        sum.system_seconds += ticks(TIMES[1]) + ticks(TIMES[3]);
        let (own, with_others) = memory_of(&text_of(id, "status"));
        sum.rss_bytes += own;
        shared = with_others.max(shared);
        device = process::both(device, device_bytes(id), |sum, own| sum + own);
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let text = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let count = |name: &str| -> u64 {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
            };
            sum.voluntary_switches += count("voluntary_ctxt_switches:");
            sum.involuntary_switches += count("nonvoluntary_ctxt_switches:");
        }
    }
    sum.rss_bytes += shared;
    sum.device_bytes = device;
    sum
}

/// Bytes that a process had read from devices, and bytes that it gave to them less what it took back; 0 if it has ended.
fn device_bytes(id: u32) -> Option<[u64; 2]> {
    match std::fs::read_to_string(format!("/proc/{id}/io")) {
        Ok(text) => device_bytes_of(&text),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => None,
        Err(_) => Some([0; 2]),
    }
}

fn device_bytes_of(io: &str) -> Option<[u64; 2]> {
    let bytes = |name: &str| -> Option<u64> {
        io.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    let taken_back = bytes("cancelled_write_bytes:")?;
    Some([bytes("read_bytes:")?, bytes("write_bytes:")?.saturating_sub(taken_back)])
}

/// Resident bytes of a process by its status: its own, and those of files and shared memory.
fn memory_of(status: &str) -> (u64, u64) {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        kilobytes.unwrap_or(0) << 10
    };
    (bytes("RssAnon:"), bytes("RssFile:") + bytes("RssShmem:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A shell that starts two more, and says when both run.
    fn family() -> (Child, u32) {
        use std::io::{BufRead, BufReader};
        let script = "sh -c 'while :; do :; done' & sh -c 'echo up; sleep 600' & wait";
        let mut child = Command::new("sh")
            .args(["-c", "sh -c \"$0\"", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        let id = child.id();
        (child, id)
    }

    #[test]
    fn memory_that_processes_share_is_told_from_their_own() {
        let status = "VmRSS:\t  100 kB\nRssAnon:\t      12 kB\nRssFile:\t  8 kB\nRssShmem:\t 80 kB\n";
        assert_eq!(memory_of(status), (12 << 10, 88 << 10));
        assert_eq!(memory_of("Name: kthreadd\n"), (0, 0));
    }

    #[test]
    fn writes_that_were_taken_back_reached_no_device() {
        let io = "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 12288\ncancelled_write_bytes: 8192\n";
        assert_eq!(device_bytes_of(io), Some([4096, 4096]));
        assert_eq!(device_bytes_of("rchar: 9\n"), None);
        assert_eq!(device_bytes(u32::MAX), Some([0; 2]), "a process that has ended");
    }

    #[test]
    fn what_a_child_that_ended_has_written_is_its_parent_s() {
        use std::io::{BufRead, BufReader};
        /// Writes 256 KiB below its argument in a process of its own, and waits.
        const SCRIPT: &str = r#"sh -c 'dd if=/dev/zero of="$0/f" bs=4096 count=64 conv=fsync 2>/dev/null' "$0"; echo written; read line"#;
        let program = std::env::current_exe().unwrap();
        let temp = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let own = || device_bytes(std::process::id()).map_or(0, |[_, written]| written);
        let before = own();
        std::fs::write(temp.path().join("own"), [1; 4096]).unwrap();
        std::fs::File::open(temp.path().join("own")).unwrap().sync_all().unwrap();
        if own() == before {
            return println!("skipped: nothing below {} is written to a device", temp.path().display());
        }
        // Processes below the first one are counted: a second one does the work.
        let mut child = Command::new("sh")
            .args(["-c", r#"sh -c "$1" "$0"; :"#])
            .arg(temp.path())
            .arg(SCRIPT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let written = usage(std::process::id()).device_bytes;
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(
            line,
            "written
"
        );
        assert!(written.is_some_and(|[_, written]| written >= 64 * 4096), "{written:?}");
    }

    #[test]
    fn a_tree_stands_still_goes_on_and_is_gone() {
        let (mut child, id) = family();
        assert!(descendants(id).len() >= 2, "{:?}", descendants(id));
        pause(id).unwrap();
        let before = usage(id);
        let states = described(id);
        assert!(states.contains("sh ") && states.contains(": T"), "{states}");
        std::thread::sleep(Duration::from_millis(100));
        let after = usage(id);
        let seconds = |usage: &ProcessUsage| usage.user_seconds + usage.system_seconds;
        assert_eq!(seconds(&before), seconds(&after), "nobody works meanwhile");
        go_on(id).unwrap();
        let deadline = Instant::now() + Duration::from_secs(600);
        while seconds(&usage(id)) <= seconds(&after) {
            assert!(Instant::now() < deadline, "it does not go on: {}", described(id));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(usage(id).rss_bytes > 0);
        pause(id).unwrap();
        kill(id).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(descendants(id).is_empty());
    }
}
