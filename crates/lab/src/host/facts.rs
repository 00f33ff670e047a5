//! The facts about the machine: processors, memory, kernel, the device and file system under the data.

use outcrop_lab_load::processor;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where `/proc` and `/sys` are; tests put trees of their own there.
#[derive(Clone, Debug)]
pub struct Root(pub PathBuf);

impl Default for Root {
    fn default() -> Root {
        Root(PathBuf::from("/"))
    }
}

impl Root {
    /// A file's text without the white space around it. `None` if it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.0.join(path.trim_start_matches('/'))).ok()?;
        Some(text.trim().to_string())
    }

    /// Whether there is such a file.
    pub fn exists(&self, path: &str) -> bool {
        self.0.join(path.trim_start_matches('/')).exists()
    }

    /// A file's text as a number.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.text(path)?.parse().ok()
    }

    /// Names in a directory, in order.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join(path.trim_start_matches('/'))) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// The facts about the machine. Empty texts: not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// A digest that tells machines apart without naming them.
    pub id: String,
    /// Processor model.
    pub cpu: String,
    /// Processor features that mitigations and microcode decide.
    pub microcode: String,
    /// Logical processors online.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// Whether a hypervisor runs the machine.
    pub virtual_machine: bool,
    /// File system under the data.
    pub filesystem: String,
    /// Its mount options.
    pub mount_options: String,
    /// Block device under the data, such as `nvme0n1`.
    pub device: String,
    /// Its model.
    pub device_model: String,
    /// Bytes of the file system.
    pub disk_bytes: u64,
    /// Bytes of it that are free.
    pub disk_free_bytes: u64,
    /// Block device under the root directory.
    pub system_device: String,
    /// The health that the device reports; `None` if it cannot be asked.
    pub device_health: Option<Health>,
    /// The C library that engines call.
    pub libc: String,
    /// Counters of the processor that programs cannot have here, each with the kernel's reason; costs per operation lack them.
    pub not_counted: Vec<String>,
}

/// The health that a device reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Per cent of the device's life that is used up; may pass 100.
    pub percentage_used: u64,
    /// Thousands of blocks of 512 bytes written so far.
    pub data_units_written: u64,
    /// Data that could not be read back.
    pub media_errors: u64,
    /// Bits of what is wrong now; 0: nothing.
    pub critical_warning: u64,
    /// Degrees Celsius.
    pub temperature: i64,
}

impl Health {
    /// Asks smartctl, which asks the device; needs the right to.
    fn ask(device: &str) -> Option<Health> {
        let output = std::process::Command::new("smartctl")
            .args(["-j", "-A", "-H", &format!("/dev/{device}")])
            .stdin(std::process::Stdio::null())
            .output()
            .ok()?;
        Health::parse(&output.stdout)
    }

    fn parse(json: &[u8]) -> Option<Health> {
        let value: serde_json::Value = serde_json::from_slice(json).ok()?;
        let log = value.get("nvme_smart_health_information_log")?;
        Some(Health {
            percentage_used: log["percentage_used"].as_u64()?,
            data_units_written: log["data_units_written"].as_u64().unwrap_or(0),
            media_errors: log["media_errors"].as_u64()?,
            critical_warning: log["critical_warning"].as_u64()?,
            temperature: log["temperature"].as_i64().unwrap_or(0),
        })
    }
}

impl Facts {
    /// Reads them; `data` is where databases will be.
    pub fn read(root: &Root, data: &Path) -> Facts {
        let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
        let of_cpu = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|n| n.trim() == name));
            line.and_then(|line| line.split_once(':')).map_or(String::new(), |(_, v)| v.trim().to_string())
        };
        let mut facts = Facts {
            cpu: of_cpu("model name"),
            microcode: of_cpu("microcode"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(root),
            kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            system: system(root),
            virtual_machine: cpuinfo.contains(" hypervisor"),
            ..Facts::default()
        };
        facts.find_device(root, data);
        if facts.device.starts_with("nvme") {
            facts.device_health = Health::ask(&facts.device);
        }
        facts.libc = libc(root);
        facts.not_counted =
            processor::missing().into_iter().map(|(name, why)| format!("{name} ({why})")).collect();
        facts.id = identity(root, &facts);
        facts
    }

    /// The class of a server of this size, by what such servers find: few threads overhead, many
    /// contention.
    pub fn size(&self) -> &'static str {
        match self.cores {
            0..10 => "small",
            10..=20 => "medium",
            _ => "large",
        }
    }

    /// The device with its model, if that is known.
    pub fn device_name(&self) -> String {
        format!("{} {}", self.device, self.device_model).trim_end().to_string()
    }

    /// Finds the mount, and the device under it, that `data` lies on.
    fn find_device(&mut self, root: &Root, data: &Path) {
        let existing = data.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
        let path = existing.canonicalize().unwrap_or_else(|_| existing.to_path_buf());
        if let Ok(stat) = rustix::fs::statvfs(&path) {
            self.disk_bytes = stat.f_blocks.saturating_mul(stat.f_frsize);
            self.disk_free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        }
        let mounts = root.text("/proc/self/mountinfo").unwrap_or_default();
        let system = mounts.lines().filter_map(Mount::parse).rfind(|mount| mount.point == Path::new("/"));
        self.system_device = system.and_then(|mount| device_of(root, &mount)).unwrap_or_default();
        let Some(mount) = mounts
            .lines()
            .filter_map(Mount::parse)
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len())
        else {
            return;
        };
        let device = device_of(root, &mount);
        self.filesystem = mount.kind;
        self.mount_options = mount.options;
        if let Some(name) = device {
            self.device = name;
            self.device_model =
                root.text(&format!("/sys/block/{}/device/model", self.device)).unwrap_or_default();
        }
    }
}

/// Name of the block device under a mount. `/sys/dev/block/8:1` is a link to `.../block/sda/sda1`; a partition's device is
/// the directory above.
fn device_of(root: &Root, mount: &Mount) -> Option<String> {
    let target = root.0.join(format!("sys/dev/block/{}", mount.device)).canonicalize().ok()?;
    let device = if target.join("partition").exists() { target.parent()? } else { &*target };
    Some(device.file_name()?.to_string_lossy().into_owned())
}

/// The banner that glibc carries: the one this process has loaded.
fn libc(root: &Root) -> String {
    let maps = root.text("/proc/self/maps").unwrap_or_default();
    let path = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        path.rsplit('/').next()?.starts_with("libc.so").then(|| path.to_string())
    });
    let bytes = path.and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    banner(&bytes).unwrap_or_default()
}

/// `2.36` of `GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.`
fn banner(bytes: &[u8]) -> Option<String> {
    const START: &[u8] = b"GNU C Library ";
    let start = bytes.windows(START.len()).position(|window| window == START)?;
    let line = bytes[start..].split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line);
    let version = text.rsplit_once("version ")?.1.trim_end_matches('.');
    Some(format!("glibc {version}"))
}

/// Bytes of memory.
fn memory_bytes(root: &Root) -> u64 {
    let text = root.text("/proc/meminfo").unwrap_or_default();
    let kilobytes = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn system(root: &Root) -> String {
    let text = root.text("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_string()
}

/// Twelve hexadecimal digits that are the same for the same machine, and say nothing about it.
fn identity(root: &Root, facts: &Facts) -> String {
    use sha2::{Digest, Sha256};
    let machine = root.text("/etc/machine-id").unwrap_or_default();
    let mut hasher = Sha256::new();
    hasher.update(format!("outcrop lab\0{machine}\0{}\0{}", facts.cpu, facts.memory_bytes));
    hasher.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// One line of mountinfo.
struct Mount {
    device: String,
    point: PathBuf,
    kind: String,
    options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let mut right = right.split(' ');
        let kind = right.next()?.to_string();
        let own = right.nth(1).unwrap_or_default();
        Some(Mount {
            device: left.get(2)?.to_string(),
            point: PathBuf::from(left.get(4)?.replace("\\040", " ")),
            kind,
            options: format!("{},{own}", left.get(5)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_and_its_device_are_found() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let data = root.join("data");
        for dir in ["proc/self", "sys/block/sdz/sdz1", "sys/block/sdz/device", "sys/dev/block", "data"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        std::fs::write(root.join("sys/block/sdz/sdz1/partition"), "1").unwrap();
        std::fs::write(root.join("sys/block/sdz/device/model"), "DISK 1\n").unwrap();
        std::os::unix::fs::symlink(root.join("sys/block/sdz/sdz1"), root.join("sys/dev/block/8:1")).unwrap();
        let point = data.canonicalize().unwrap();
        let mounts = format!(
            "1 0 9:9 / / rw - ext4 /dev/root rw\n2 1 8:1 / {} rw,noatime shared:1 - xfs /dev/sdz1 rw,discard\n",
            point.display()
        );
        std::fs::write(root.join("proc/self/mountinfo"), mounts).unwrap();
        let facts = Facts::read(&Root(root.to_path_buf()), &data.join("not/yet"));
        assert_eq!((facts.filesystem.as_str(), facts.device.as_str()), ("xfs", "sdz"));
        assert_eq!(
            (facts.mount_options.as_str(), facts.device_model.as_str()),
            ("rw,noatime,rw,discard", "DISK 1")
        );
        assert_eq!(facts.id.len(), 12);
    }

    #[test]
    fn a_device_says_how_worn_it_is_and_a_library_what_it_is() {
        let json = br#"{"nvme_smart_health_information_log":{"critical_warning":0,"temperature":41,"percentage_used":7,
            "data_units_written":123,"media_errors":2}}"#;
        let health = Health::parse(json).unwrap();
        assert_eq!((health.percentage_used, health.media_errors, health.temperature), (7, 2, 41));
        assert_eq!(Health::parse(b"{}"), None);
        let library = b"\0\x7fGNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright";
        assert_eq!(banner(library).as_deref(), Some("glibc 2.36"));
        assert_eq!(banner(b"musl"), None);
        assert!(libc(&Root::default()).starts_with("glibc "), "this one is linked to it");
    }

    #[test]
    fn facts_of_older_records_are_read() {
        let facts: Facts = serde_json::from_str(r#"{"id":"x","cores":2}"#).unwrap();
        assert_eq!((facts.cores, facts.libc.as_str(), facts.device_health), (2, "", None));
        let size = |cores| Facts { cores, ..Facts::default() }.size();
        assert_eq!([9, 10, 20, 21].map(size), ["small", "medium", "medium", "large"]);
    }
}
