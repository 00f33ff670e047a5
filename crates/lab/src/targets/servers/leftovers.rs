//! Shared memory that a killed PostgreSQL leaves behind: files of `/dev/shm`, and a segment of System V's for each cluster.
//!
//! ```text
//! guard kills a server:   segments that its processes map -> killed -> removed
//! next server starts:     segments of the lab's own user that nobody maps, for instance of a run whose machine lost power
//! ```
//! A server that stops in order removes them itself, and one that is started again on the same directory those of its last run; a
//! session's directory is never started again. The sweep is the super-user's alone, whose servers run as nobody: any other user may
//! have a PostgreSQL of their own.

use super::guard::NOBODY;
use super::tree;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where shared memory of POSIX lies.
const PLACE: &str = "/dev/shm";
/// The beginning of the names that PostgreSQL gives its segments there.
const NAME: &str = "PostgreSQL.";
/// Age of a file below which its maker may not have mapped it yet.
const SETTLED: Duration = Duration::from_secs(60);
/// Bytes of the segment that says that a cluster is in use.
const CLAIM_BYTES: &str = "56";

/// The segments that the processes below `root` map.
fn mapped_below(root: u32) -> HashSet<PathBuf> {
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

/// Kills all processes below `root`, and removes the memory that they shared.
///
/// # Errors
/// A sentence if one will not.
pub fn kill(root: u32) -> Result<(), String> {
    let segments = mapped_below(root);
    let killed = tree::kill(root);
    remove(&segments);
    killed
}

/// Removes segments of servers that are gone.
fn remove(segments: &HashSet<PathBuf>) {
    for segment in segments {
        // The server may have done it.
        let _ = std::fs::remove_file(segment);
    }
}

/// Removes what killed servers of the lab left before: the memory of `nobody` that no process uses. Gives the bytes of files.
pub fn sweep() -> u64 {
    if !rustix::process::geteuid().is_root() {
        return 0;
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let maps = processes.map(|entry| std::fs::read_to_string(entry.path().join("maps")).unwrap_or_default());
    let used: HashSet<PathBuf> = maps.flat_map(|maps| mapped(&maps)).collect();
    let claims = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    for id in abandoned_claims(&claims, NOBODY.0) {
        let mut command = Command::new("ipcrm");
        // Without the program 56 bytes stay.
        let _ = command
            .args(["-m", &id])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
    sweep_place(Path::new(PLACE), NOBODY.0, &used, SETTLED)
}

/// Removes the segments in `place` of `user` that are not `used` and older than `age`; gives their bytes.
fn sweep_place(place: &Path, user: u32, used: &HashSet<PathBuf>, age: Duration) -> u64 {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut bytes = 0;
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME)) {
        let Ok(found) = entry.metadata() else { continue };
        let settled = found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= age));
        let ours = found.is_file() && found.uid() == user;
        if ours && settled && !used.contains(&entry.path()) && std::fs::remove_file(entry.path()).is_ok() {
            bytes += found.len();
        }
    }
    bytes
}

/// Numbers of the segments of `user` that claim a cluster and that no process has attached, in the text of `/proc/sysvipc/shm`.
fn abandoned_claims(text: &str, user: u32) -> Vec<String> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(head) = lines.next() else { return Vec::new() };
    let column = |name: &str| head.iter().position(|word| *word == name);
    let [Some(id), Some(size), Some(attached), Some(uid)] = ["shmid", "size", "nattch", "uid"].map(column)
    else {
        return Vec::new();
    };
    let of = |line: Vec<&str>| {
        let abandoned = *line.get(size)? == CLAIM_BYTES
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
    }

    #[test]
    fn only_what_nobody_uses_of_ones_own_user_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        let names = ["PostgreSQL.1", "PostgreSQL.2", "precious"];
        names.iter().for_each(|name| std::fs::write(path(name), "12345").unwrap());
        let owner = std::fs::metadata(path("precious")).unwrap().uid();
        let used = HashSet::from([path("PostgreSQL.1")]);
        assert_eq!(sweep_place(temp.path(), owner + 1, &used, Duration::ZERO), 0, "somebody else's");
        assert_eq!(sweep_place(temp.path(), owner, &used, Duration::from_secs(3600)), 0, "just made");
        assert_eq!(sweep_place(temp.path(), owner, &used, Duration::ZERO), 5);
        assert_eq!(names.map(|name| path(name).exists()), [true, false, true]);
        remove(&used);
        assert!(!path("PostgreSQL.1").exists() && path("precious").exists());
    }

    #[test]
    fn a_claim_is_abandoned_if_no_process_has_it() {
        let text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid\n\
                    1111          5   600                    56    77    78      0 65534 65534 65534 65534\n\
                    1112          6   600                    56    77    78      2 65534 65534 65534 65534\n\
                    1113          7   600                    56    77    78      0  1000  1000  1000  1000\n\
                    1114          8   600                  4096    77    78      0 65534 65534 65534 65534\n";
        assert_eq!(abandoned_claims(text, 65534), ["5"]);
        assert!(abandoned_claims("", 65534).is_empty() && abandoned_claims("x y\n1 2\n", 65534).is_empty());
    }
}
