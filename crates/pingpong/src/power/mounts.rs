//! Real file systems on loop devices: made, mounted, unmounted, by the system's own programs.

use super::disk::Disk;
use super::fuse::Served;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a file system may be busy before it is taken out of the tree while it still is: a process that was killed in it is going.
const BUSY: Duration = Duration::from_secs(60);
/// How long until a busy one is tried again.
const PAUSE: Duration = Duration::from_millis(20);
/// Words of `mount` where the file system itself refuses what is on the disk.
const REFUSALS: [&str; 4] =
    ["superblock", "Structure needs cleaning", "Input/output error", "probably corrupted filesystem"];

/// Large enough for every file system below; what is not written takes no memory.
const SIZE: u64 = 320 << 20;

/// A kind of file system, and how it is made and mounted.
#[derive(Debug)]
pub struct Kind {
    /// Its name here.
    pub name: &'static str,
    /// The kernel's name for it.
    driver: &'static str,
    make: &'static [&'static str],
    options: &'static str,
}

const fn ext4(name: &'static str, block: &'static str, options: &'static str) -> Kind {
    // A short journal, no tables that are written later: the log has the database's writes, and what they need.
    const LAZY: &str = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
    let make: &'static [&'static str] = match block.as_bytes()[0] {
        b'1' => &["mkfs.ext4", "-q", "-F", "-b", "1024", "-J", "size=8", "-E", LAZY],
        _ => &["mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=8", "-E", LAZY],
    };
    Kind { name, driver: "ext4", make, options }
}

/// All kinds.
pub const KINDS: [Kind; 6] = [
    ext4("ext4", "4096", "noinit_itable"),
    ext4("ext4-1k", "1024", "noinit_itable"),
    ext4("ext4-writeback", "4096", "noinit_itable,data=writeback,commit=1"),
    ext4("ext4-nodelalloc", "4096", "noinit_itable,nodelalloc,commit=1"),
    Kind { name: "xfs", driver: "xfs", make: &["mkfs.xfs", "-q", "-f", "-K"], options: "noatime" },
    Kind {
        name: "btrfs",
        driver: "btrfs",
        make: &["mkfs.btrfs", "-q", "-f", "-K"],
        options: "noatime,commit=1",
    },
];

impl Kind {
    /// A new file system of this kind.
    ///
    /// # Errors
    /// The kernel does not know it, or it cannot be made.
    pub fn make(&self, served: &Served) -> Result<Disk, String> {
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.lines().any(|line| line.split_whitespace().next_back() == Some(self.driver)) {
            return Err(format!("the kernel has no {}", self.driver));
        }
        let file = served.add(Disk::new(SIZE));
        run(Command::new(self.make[0]).args(&self.make[1..]).arg(&file))?;
        Ok(served.take(&file).0)
    }

    /// Mounts the disk that `file` is on `dir`; the file system's own recovery is over then.
    ///
    /// # Errors
    /// What `mount` says.
    pub fn mount(&self, file: &Path, dir: &Path) -> Result<Mounted, Unmounted> {
        let options = format!("loop,{}", self.options);
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", self.driver, "-o", &options]).arg(file).arg(dir);
        run(&mut mount).map_err(Unmounted::of)?;
        Ok(Mounted { dir: dir.to_path_buf() })
    }
}

/// Why a disk is not mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// The file system refuses what is on it.
    Refused(String),
    /// It was not asked: there is no loop device, or no memory.
    Failed(String),
}

impl Unmounted {
    fn of(why: String) -> Unmounted {
        match REFUSALS.iter().any(|words| why.contains(words)) {
            true => Unmounted::Refused(why),
            false => Unmounted::Failed(why),
        }
    }
}

impl From<Unmounted> for String {
    fn from(unmounted: Unmounted) -> String {
        let (Unmounted::Refused(why) | Unmounted::Failed(why)) = unmounted;
        why
    }
}

/// A mounted file system, until this is dropped.
pub struct Mounted {
    dir: PathBuf,
}

impl Mounted {
    /// Asks the file system to write everything back, and to make it last.
    pub fn write_back(&self) {
        // One that has failed says so at the next operation of the database.
        let _ = Command::new("sync").arg("-f").arg(&self.dir).status();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(why) = unmount("umount", &self.dir, BUSY) {
            println!("block-crashes: {}: {why}", self.dir.display());
        }
    }
}

/// Unmounts `dir` by `program`, which is asked again while it is busy; after `busy` it is taken out of the tree as it is, and the kernel
/// unmounts it once nobody uses it.
fn unmount(program: &str, dir: &Path, busy: Duration) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match run(Command::new(program).arg(dir)) {
            Err(why) if why.contains("busy") && start.elapsed() < busy => std::thread::sleep(PAUSE),
            Err(why) if why.contains("busy") => {
                run(Command::new(program).arg("-l").arg(dir))?;
                return Err(format!("taken out of the tree after {} s: {why}", busy.as_secs()));
            }
            other => return other,
        }
    }
}

/// Runs a program, whose words are English.
fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program in `dir` that writes down its arguments, then runs `script`.
    fn program(dir: &Path, script: &str) -> String {
        let path = dir.join("umount");
        let log = dir.join("log");
        std::fs::write(&path, format!("#!/bin/sh\necho \"$*\" >> {}\n{script}\n", log.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    #[test]
    fn one_that_stays_busy_is_taken_out_of_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let busy =
            program(dir.path(), "[ \"$1\" = -l ] || { echo 'umount: /x: target is busy.' >&2; exit 32; }");
        let told = unmount(&busy, Path::new("/x"), Duration::from_millis(1)).unwrap_err();
        assert!(told.contains("taken out of the tree"), "{told}");
        let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert!(log.starts_with("/x\n") && log.ends_with("\n-l /x\n"), "{log}");
    }

    #[test]
    fn other_failures_are_not_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let failing = program(dir.path(), "echo 'umount: /x: not mounted.' >&2; exit 32");
        assert!(unmount(&failing, Path::new("/x"), BUSY).unwrap_err().contains("not mounted"));
        let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(log, "/x\n");
    }

    #[test]
    fn a_refusal_of_the_file_system_is_told_from_other_failures() {
        let refused = [
            "mount: /m: wrong fs type, bad option, bad superblock on /dev/loop3, missing codepage or helper program",
            "mount: /m: mount(2) system call failed: Structure needs cleaning.",
            "mount: /m: can't read superblock on /dev/loop0.",
            "mount: /m: cannot mount; probably corrupted filesystem on /dev/loop0.",
        ];
        for why in refused {
            assert!(matches!(Unmounted::of(why.to_string()), Unmounted::Refused(_)), "{why}");
        }
        for why in ["mount: /m: failed to setup loop device for /d0.", "mount: /m: Cannot allocate memory."] {
            assert!(matches!(Unmounted::of(why.to_string()), Unmounted::Failed(_)), "{why}");
        }
    }
}
