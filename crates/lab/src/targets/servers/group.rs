//! A control group for a server, where the lab may make one: the kernel counts its processor time to the microsecond, that of processes that ended included.
//!
//! `/proc/N/stat` counts in hundredths of a second, which is a twentieth of a slice of 0.2 s.
//!
//! ```text
//! guard: makes <its own group>/outcrop-lab-PID, goes there itself, starts the server; afterwards goes back and removes the group
//! session: finds the group in /proc/PID/cgroup, and reads cpu.stat
//! ```
//! Only of the second version of control groups, and only below a group that hands no controller on: a group with a share of the processor of its own
//! would be scheduled otherwise than the client. Elsewhere there is none, and `/proc` has to do.

use std::fs;
use std::path::{Path, PathBuf};

/// The begin of the names of the lab's groups; the guard's number follows.
const NAME: &str = "outcrop-lab-";

/// A group with this process in it. Dropped, the process is back where it was, and the group is gone if nobody else is in it.
pub struct Group {
    parent: PathBuf,
    dir: PathBuf,
}

impl Group {
    /// Makes a group for this process and those that it starts, if that is possible. Removes those of guards that were killed.
    pub fn enter() -> Option<Group> {
        let me = std::process::id();
        let parent = directory_of(me)?;
        let handed_on = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
        if !handed_on.trim().is_empty() {
            return None;
        }
        for entry in fs::read_dir(&parent).ok()?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(NAME) {
                // One with processes stays.
                let _ = fs::remove_dir(entry.path());
            }
        }
        let dir = parent.join(format!("{NAME}{me}"));
        fs::create_dir(&dir).ok()?;
        let group = Group { parent, dir };
        // Without, dropping removes it.
        go(me, &group.dir)?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = go(std::process::id(), &self.parent);
        let _ = fs::remove_dir(&self.dir);
    }
}

fn go(process: u32, group: &Path) -> Option<()> {
    fs::write(group.join("cgroup.procs"), process.to_string()).ok()
}

/// Seconds of processor time in user mode and in the kernel's of all that ever ran in the group of this guard, if it has one.
pub fn processor_seconds(guard: u32) -> Option<[f64; 2]> {
    let dir = directory_of(guard)?;
    let is_its_own = dir.file_name()?.to_str()? == format!("{NAME}{guard}");
    is_its_own.then(|| fs::read_to_string(dir.join("cpu.stat")).ok()).flatten().and_then(|text| times(&text))
}

fn times(cpu_stat: &str) -> Option<[f64; 2]> {
    let seconds = |name: &str| -> Option<f64> {
        let line = cpu_stat.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().parse::<u64>().ok()? as f64 / 1e6)
    };
    Some([seconds("user_usec ")?, seconds("system_usec ")?])
}

/// The directory of a process's group.
fn directory_of(process: u32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    directory(&groups, &mounts)
}

/// Where the second version's group of `/proc/N/cgroup` is, by `/proc/self/mountinfo`.
fn directory(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if !after.starts_with("cgroup2 ") {
            return None;
        }
        // The part of all groups that is mounted, and where.
        let mut fields = before.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(place).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
36 35 98:0 / /proc rw - proc proc rw
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
";

    #[test]
    fn a_group_is_found_by_the_second_version_s_mount() {
        let of = |groups: &str, mounts: &str| directory(groups, mounts).map(|dir| dir.display().to_string());
        let own = "4:memory:/a\n0::/user.slice/x\n";
        assert_eq!(of(own, MOUNTS).as_deref(), Some("/sys/fs/cgroup/unified/user.slice/x"));
        assert_eq!(of("4:memory:/a\n", MOUNTS), None);
        assert_eq!(of(own, "36 35 98:0 / /proc rw - proc proc rw\n"), None);
        let of_container = MOUNTS.replace("0:38 /", "0:38 /user.slice");
        assert_eq!(of(own, &of_container).as_deref(), Some("/sys/fs/cgroup/unified/x"));
    }

    #[test]
    fn times_are_microseconds() {
        let text = "usage_usec 1500250\nuser_usec 1000250\nsystem_usec 500000\nnice_usec 0\n";
        assert_eq!(times(text), Some([1.00025, 0.5]));
        assert_eq!(times("usage_usec 1\n"), None);
    }

    #[test]
    fn a_process_in_a_group_of_its_own_has_times_and_leaves_no_group() {
        let me = std::process::id();
        assert_eq!((processor_seconds(me), processor_seconds(u32::MAX)), (None, None));
        let Some(group) = Group::enter() else {
            return println!("skipped: no control group can be made here");
        };
        let dir = group.dir.clone();
        let before = processor_seconds(me).expect("it has a group");
        assert!(dir.ends_with(format!("{NAME}{me}")) && before.iter().all(|seconds| *seconds >= 0.0));
        drop(group);
        assert_eq!((processor_seconds(me), dir.exists()), (None, false));
    }
}
