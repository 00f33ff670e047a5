//! Real file systems on loop devices: made, mounted, unmounted, by the system's own programs.

use super::disk::Disk;
use super::fuse::Served;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    pub fn mount(&self, file: &Path, dir: &Path) -> Result<Mounted, String> {
        let options = format!("loop,{}", self.options);
        run(Command::new("mount").args(["-i", "-t", self.driver, "-o", &options]).arg(file).arg(dir))?;
        Ok(Mounted { dir: dir.to_path_buf() })
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
        // A program that was killed in it may still be going.
        while Command::new("umount").arg(&self.dir).output().is_ok_and(|output| {
            !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("busy")
        }) {
            std::thread::yield_now();
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
