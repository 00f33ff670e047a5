//! Shared memory that a killed PostgreSQL leaves behind: files of `/dev/shm`, and a segment of System V's for each cluster.
//!
//! ```text
//! server is up:           the guard notes the segments that its processes map
//! it ends, or is killed:  those of processes that are left noted as well -> killed -> removed
//! next server starts:     segments of the lab's own user, for instance of a run whose guard was killed, if no process maps any
//! ```
//! A server that stops in order removes them itself, and one that is started again on the same directory those of its last run; a
//! session's directory is never started again. A live server keeps its control segment mapped, but not each of the others: while one
//! lives nothing is swept. The sweep is the super-user's alone, whose servers run as nobody: any other user may
//! have a PostgreSQL of their own.

use super::guard::NOBODY;
use super::tree;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Where shared memory of POSIX lies.
const PLACE: &str = "/dev/shm";
/// The beginning of the names that PostgreSQL gives its segments there.
const NAME: &str = "PostgreSQL.";
/// Age of a file below which its maker may not have mapped it yet.
const SETTLED: Duration = Duration::from_secs(60);
/// Bytes of the segment that says that a cluster is in use.
const CLAIM_BYTES: &str = "56";

/// The segments that the processes below `root` map.
fn mapped_below(root: u32) -> BTreeSet<PathBuf> {
    let segments = |id: u32| mapped(&std::fs::read_to_string(format!("/proc/{id}/maps")).unwrap_or_default());
    tree::descendants(root).into_iter().flat_map(segments).collect()
}

/// The segments in the text of `/proc/N/maps`.
fn mapped(maps: &str) -> Vec<PathBuf> {
    let start = format!("{PLACE}/{NAME}");
    let path =
        |line: &str| line.find(&start).map(|at| PathBuf::from(line[at..].trim_end_matches(" (deleted)")));
    maps.lines().filter_map(path).collect()
}

/// The segments of the guarded server, as far as they were noted. Locked while it is killed and they are removed: a thread that finds all of
/// it dead waits until its memory is gone, too.
static NOTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes the segments of the processes below `root`: one that is killed by somebody else has no map to look at.
pub fn note(root: u32) {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner).extend(mapped_below(root));
}

/// Kills all processes below `root`, and removes the memory that they shared, as far as it was noted or a process maps it.
/// On return both are done, whichever thread did it.
///
/// # Errors
/// A sentence if one will not.
pub fn kill(root: u32) -> Result<(), String> {
    let mut segments = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    segments.extend(mapped_below(root));
    let killed = tree::kill(root);
    remove(&segments);
    killed
}

/// Removes segments of servers that are gone.
fn remove(segments: &BTreeSet<PathBuf>) {
    for segment in segments {
        // The server may have done it.
        let _ = std::fs::remove_file(segment);
    }
}

/// Removes what killed servers of the lab left before: the memory of `nobody`, if no PostgreSQL lives. Gives the bytes of files.
pub fn sweep() -> u64 {
    if !rustix::process::geteuid().is_root() {
        return 0;
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let maps = processes.map(|entry| std::fs::read_to_string(entry.path().join("maps")).unwrap_or_default());
    if any_mapped(maps) {
        return 0;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let claims = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    for id in abandoned_claims(&claims, NOBODY.0, now) {
        let mut command = Command::new("ipcrm");
        // Without the program 56 bytes stay.
        let _ = command
            .args(["-m", &id])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
    sweep_place(Path::new(PLACE), NOBODY.0, SETTLED)
}

/// Whether a process has a segment of PostgreSQL's in its map, of the texts of `/proc/N/maps`.
fn any_mapped(mut maps: impl Iterator<Item = String>) -> bool {
    maps.any(|maps| !mapped(&maps).is_empty())
}

/// Removes the segments in `place` of `user` that are older than `age`; gives their bytes.
fn sweep_place(place: &Path, user: u32, age: Duration) -> u64 {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut bytes = 0;
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME)) {
        let Ok(found) = entry.metadata() else { continue };
        let settled = found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= age));
        let ours = found.is_file() && found.uid() == user;
        if ours && settled && std::fs::remove_file(entry.path()).is_ok() {
            bytes += found.len();
        }
    }
    bytes
}

/// Numbers of the segments of `user` that claim a cluster, that no process has attached, and that did not change lately before `now`, in
/// the text of `/proc/sysvipc/shm`.
fn abandoned_claims(text: &str, user: u32, now: Duration) -> Vec<String> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(head) = lines.next() else { return Vec::new() };
    let column = |name: &str| head.iter().position(|word| *word == name);
    let [Some(id), Some(size), Some(attached), Some(uid), Some(changed)] =
        ["shmid", "size", "nattch", "uid", "ctime"].map(column)
    else {
        return Vec::new();
    };
    let of = |line: Vec<&str>| {
        let changed = Duration::from_secs(line.get(changed)?.parse().ok()?);
        let abandoned = now.saturating_sub(changed) >= SETTLED
            && *line.get(size)? == CLAIM_BYTES
            && *line.get(attached)? == "0"
            && line.get(uid)?.parse() == Ok(user);
        abandoned.then(|| line[id].to_string())
    };
    lines.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_in_the_maps_of_processes() {
        let maps = "7f00-7f01 rw-s 00000000 00:18 5  /dev/shm/PostgreSQL.17\n7f01-7f02 r-xp 00000000 08:01 6  /usr/bin/postgres\n\
                    7f02-7f03 rw-s 00000000 00:18 7  /dev/shm/PostgreSQL.18 (deleted)\n7f03-7f04 rw-s 00000000 00:18 7  /dev/shm/other\n";
        assert_eq!(mapped(maps), ["/dev/shm/PostgreSQL.17", "/dev/shm/PostgreSQL.18"].map(PathBuf::from));
        assert!(mapped_below(std::process::id()).is_empty());
        let texts = |texts: &[&str]| {
            any_mapped(texts.iter().map(ToString::to_string).collect::<Vec<_>>().into_iter())
        };
        assert!(texts(&["", maps]), "a server lives");
        assert!(!texts(&["", "7f01-7f02 r-xp 00000000 08:01 6  /usr/bin/postgres\n"]));
    }

    #[test]
    fn only_what_is_old_of_ones_own_user_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        let names = ["PostgreSQL.1", "precious"];
        names.iter().for_each(|name| std::fs::write(path(name), "12345").unwrap());
        let owner = std::fs::metadata(path("precious")).unwrap().uid();
        assert_eq!(sweep_place(temp.path(), owner + 1, Duration::ZERO), 0, "somebody else's");
        assert_eq!(sweep_place(temp.path(), owner, Duration::from_secs(3600)), 0, "just made");
        assert_eq!(sweep_place(temp.path(), owner, Duration::ZERO), 5);
        assert_eq!(names.map(|name| path(name).exists()), [false, true]);
        std::fs::write(path("PostgreSQL.1"), "12345").unwrap();
        remove(&BTreeSet::from([path("PostgreSQL.1")]));
        assert!(!path("PostgreSQL.1").exists() && path("precious").exists());
    }

    #[test]
    fn a_claim_is_abandoned_if_no_process_has_it_for_a_while() {
        let text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      ctime\n\
                    1111          5   600                    56    77    78      0 65534 65534 65534 65534 1700000000\n\
                    1112          6   600                    56    77    78      2 65534 65534 65534 65534 1700000000\n\
                    1113          7   600                    56    77    78      0  1000  1000  1000  1000 1700000000\n\
                    1114          8   600                  4096    77    78      0 65534 65534 65534 65534 1700000000\n\
                    1115          9   600                    56    77    78      0 65534 65534 65534 65534 1700000002\n";
        let at = |text: &str, now: u64| abandoned_claims(text, 65534, Duration::from_secs(now));
        assert_eq!(at(text, 1_700_000_061), ["5"], "9 was just made");
        assert_eq!(at(text, 1_700_000_062), ["5", "9"]);
        assert!(at("", 1_700_000_062).is_empty() && at("x y\n1 2\n", 1_700_000_062).is_empty());
    }
}
