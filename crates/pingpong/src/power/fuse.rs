//! A file system that is served by this process: each of its files is a disk in memory, which a loop device can be laid over.
//!
//! ```text
//! ext4, XFS or btrfs
//! loop device                      a flush, and a write that is to last, come as fsync
//! file d0 of this file system      the kernel asks by /dev/fuse: one request is answered before the next is read
//! Disk, and the log
//! marks                            a file beside it: what is written to it stands in the same log
//! ```
//! The requests are answered in the order in which they are written to the log. A program that writes to `marks` after its fsync
//! has returned has its mark after that fsync.
//!
//! Source: `include/uapi/linux/fuse.h`, version 7.31 of the protocol. `mount` is given the open `/dev/fuse` as its standard input, so
//! that nothing here is unsafe.

use super::disk::{Disk, Record};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// The longest write that is taken.
const MAX_WRITE: u32 = 1 << 20;
/// The node of the directory, and of the file of marks.
const ROOT: u64 = 1;
const MARKS: u64 = 2;
/// The node of the first disk.
const FIRST: u64 = 3;

/// The name of the file that marks are written to.
pub const MARKS_NAME: &str = "marks";

struct Device {
    disk: Disk,
    log: Vec<Record>,
}

#[derive(Default)]
struct Devices {
    /// By node, from [`FIRST`] on; those that were taken are gone.
    all: Vec<Option<Device>>,
    /// The place of the one whose log has the marks.
    recorded: Option<usize>,
}

/// The mounted file system.
pub struct Served {
    dir: PathBuf,
    devices: Arc<Mutex<Devices>>,
    server: Option<JoinHandle<()>>,
}

impl Served {
    /// Mounts it on `dir`, an empty directory.
    ///
    /// # Errors
    /// The kernel has no FUSE, or it may not be mounted here.
    pub fn start(dir: &Path) -> Result<Served, String> {
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        let named = |error: std::io::Error| format!("mount: {error}");
        let output = Command::new("mount")
            .args([
                "-i",
                "-t",
                "fuse",
                "-o",
                "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other",
                "outcrop",
            ])
            .arg(dir)
            .stdin(Stdio::from(device.try_clone().map_err(named)?))
            .output()
            .map_err(named)?;
        if !output.status.success() {
            return Err(format!("FUSE: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let devices = Arc::new(Mutex::new(Devices::default()));
        let server = {
            let devices = devices.clone();
            std::thread::spawn(move || serve(device, &devices))
        };
        Ok(Served { dir: dir.to_path_buf(), devices, server: Some(server) })
    }

    fn lock(&self) -> MutexGuard<'_, Devices> {
        self.devices.lock().expect("no thread panics with it")
    }

    /// Adds a disk; gives the file that it is.
    pub fn add(&self, disk: Disk) -> PathBuf {
        let mut devices = self.lock();
        devices.all.push(Some(Device { disk, log: Vec::new() }));
        self.dir.join(format!("d{}", devices.all.len() - 1))
    }

    /// Adds a disk in whose log marks are to be.
    pub fn record(&self, disk: Disk) -> PathBuf {
        let file = self.add(disk);
        let mut devices = self.lock();
        devices.recorded = Some(devices.all.len() - 1);
        file
    }

    /// The file of marks.
    pub fn marks(&self) -> PathBuf {
        self.dir.join(MARKS_NAME)
    }

    /// Records in the log of a disk so far: it shows that somebody works.
    ///
    /// # Panics
    /// There is none in this file.
    pub fn records(&self, file: &Path) -> u64 {
        self.lock().all[place(file)].as_ref().map_or(0, |device| device.log.len() as u64)
    }

    /// Takes a disk out, with its log.
    ///
    /// # Panics
    /// There is none in this file.
    pub fn take(&self, file: &Path) -> (Disk, Vec<Record>) {
        let place = place(file);
        let mut devices = self.lock();
        if devices.recorded == Some(place) {
            devices.recorded = None;
        }
        let device = devices.all[place].take().expect("it is taken once");
        (device.disk, device.log)
    }
}

/// The disk that is in a file.
fn place(file: &Path) -> usize {
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name that add gave");
    name[1..].parse().expect("a name that add gave")
}

impl Drop for Served {
    fn drop(&mut self) {
        // Programs that still use it get errors; the server ends when the last user does.
        let _ = Command::new("umount").args(["-i", "-l"]).arg(&self.dir).status();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Answers requests until the file system is unmounted.
fn serve(mut device: File, devices: &Mutex<Devices>) {
    let mut buffer = vec![0; MAX_WRITE as usize + 4096];
    loop {
        let len = match device.read(&mut buffer) {
            Ok(len) if len >= 40 => len,
            // A request was taken back before it was read.
            Err(error) if error.kind() == ErrorKind::Interrupted || error.kind() == ErrorKind::NotFound => {
                continue;
            }
            _ => return,
        };
        let request = Request { bytes: &buffer[..len] };
        let Some(answer) = request.answer(&mut devices.lock().expect("no thread panics with it")) else {
            continue;
        };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(errno) => (-errno, Vec::new()),
        };
        let mut message = Fields::default();
        message.u32(16 + body.len() as u32).u32(error as u32).u64(request.unique());
        message.0.extend(body);
        // A request that was interrupted has no one who waits for its answer.
        let _ = device.write(&message.0);
    }
}

type Answer = Result<Vec<u8>, i32>;

/// A request: a header of 40 bytes, and the fields of its kind.
struct Request<'r> {
    bytes: &'r [u8],
}

impl Request<'_> {
    fn number<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.number(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.number(at))
    }

    fn unique(&self) -> u64 {
        self.u64(8)
    }

    /// None: nobody waits for an answer.
    fn answer(&self, devices: &mut Devices) -> Option<Answer> {
        let node = self.u64(16);
        Some(match self.u32(4) {
            // FORGET, INTERRUPT, BATCH_FORGET.
            2 | 36 | 42 => return None,
            // LOOKUP.
            1 => self.look_up(devices),
            // GETATTR, SETATTR.
            3 | 4 => attributes(devices, node).map(|attributes| {
                let mut fields = Fields::default();
                fields.u64(0).u32(0).u32(0);
                [fields.0, attributes].concat()
            }),
            // OPEN, OPENDIR. Marks go past the page cache: each is one write.
            14 | 27 => {
                let mut fields = Fields::default();
                fields.u64(0).u32(u32::from(node == MARKS)).u32(0);
                Ok(fields.0)
            }
            15 => device(devices, node).map(|device| device.disk.read(self.u64(48), self.u32(56) as usize)),
            16 => self.write(devices, node),
            // FSYNC.
            20 => {
                if let Ok(device) = device(devices, node) {
                    device.log.push(Record::Flush);
                }
                Ok(Vec::new())
            }
            // STATFS: nobody looks at the figures.
            17 => Ok(vec![0; 80]),
            // RELEASE, FLUSH, RELEASEDIR, DESTROY.
            18 | 25 | 29 | 38 => Ok(Vec::new()),
            26 => Ok(initial(self.u32(48))),
            // FALLOCATE: with a mode it makes zeros, without one there is room.
            43 => device(devices, node).map(|device| {
                let (offset, len) = (self.u64(48), self.u64(56));
                if self.u32(64) != 0 {
                    device.disk.zero(offset, len);
                    device.log.push(Record::Zero(offset, len));
                }
                Vec::new()
            }),
            _ => Err(libc::ENOSYS),
        })
    }

    fn look_up(&self, devices: &mut Devices) -> Answer {
        let name = std::str::from_utf8(&self.bytes[40..]).unwrap_or("").trim_end_matches('\0');
        let node = match name.strip_prefix('d').and_then(|number| number.parse::<u64>().ok()) {
            Some(number) => FIRST + number,
            None if name == MARKS_NAME => MARKS,
            None => return Err(libc::ENOENT),
        };
        let attributes = attributes(devices, node)?;
        let mut fields = Fields::default();
        fields.u64(node).u64(0).u64(0).u64(0).u32(0).u32(0);
        Ok([fields.0, attributes].concat())
    }

    fn write(&self, devices: &mut Devices, node: u64) -> Answer {
        let (offset, len) = (self.u64(48), self.u32(56));
        let bytes = self.bytes.get(80..80 + len as usize).ok_or(libc::EINVAL)?;
        if node == MARKS {
            let recorded = devices.recorded.and_then(|place| devices.all[place].as_mut());
            if let Some(device) = recorded {
                device.log.push(Record::Mark(bytes.to_vec()));
            }
        } else {
            let device = device(devices, node)?;
            device.disk.write(offset, bytes);
            device.log.push(Record::Write(offset, bytes.into()));
        }
        let mut fields = Fields::default();
        fields.u32(len).u32(0);
        Ok(fields.0)
    }
}

fn device(devices: &mut Devices, node: u64) -> Result<&mut Device, i32> {
    let place = node.checked_sub(FIRST).ok_or(libc::EISDIR)? as usize;
    devices.all.get_mut(place).and_then(Option::as_mut).ok_or(libc::ENOENT)
}

/// The attributes of a node, `fuse_attr`.
fn attributes(devices: &mut Devices, node: u64) -> Answer {
    let (mode, size) = match node {
        ROOT => (libc::S_IFDIR | 0o700, 0),
        MARKS => (libc::S_IFREG | 0o600, 0),
        _ => (libc::S_IFREG | 0o600, device(devices, node)?.disk.size()),
    };
    let mut fields = Fields::default();
    fields.u64(node).u64(size).u64(size / 512).u64(0).u64(0).u64(0);
    fields.u32(0).u32(0).u32(0).u32(mode).u32(1).u32(0).u32(0).u32(0).u32(4096).u32(0);
    Ok(fields.0)
}

/// The answer to INIT: long writes, and as many pages as they need.
fn initial(readahead: u32) -> Vec<u8> {
    const BIG_WRITES: u32 = 1 << 5;
    const MAX_PAGES: u32 = 1 << 22;
    let mut fields = Fields::default();
    fields.u32(7).u32(31).u32(readahead).u32(BIG_WRITES | MAX_PAGES);
    fields.u16(16).u16(12).u32(MAX_WRITE).u32(1).u16((MAX_WRITE / 4096) as u16).u16(0);
    fields.0.resize(64, 0);
    fields.0
}

/// Bytes of an answer, field by field.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn u16(&mut self, value: u16) -> &mut Fields {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Fields {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Fields {
        self.0.extend(value.to_le_bytes());
        self
    }
}
