//! A read in the background, while its owner works on the bytes it read before.
//!
//! ```text
//! PendingRead::start -> a direct file: a ring of its own from the shelf, else a thread of the pool
//!                     -> a buffered one: a readahead hint
//!                     -> a file that is not the operating system's: nothing yet
//! PendingRead::finish -> waits; bytes that were not read are read now
//! ```
//! A ring is used by whoever holds it, and only for one read at a time: an iterator may move between threads. The
//! read goes to memory the ring owns; a ring whose read did not end is leaked, not freed.

use crate::direct::aligned_span;
use crate::file_system::{Descriptor, ReadFile};
use crate::pool::Pool;
use outcrop_base::Result;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A read that was started.
pub struct PendingRead {
    file: Arc<dyn ReadFile>,
    offset: u64,
    len: usize,
    way: Way,
}

enum Way {
    Ring(Box<ring::Reading>),
    Pool(Receiver<(Vec<u8>, Result<()>)>),
    /// Read when it is wanted.
    Later,
}

impl PendingRead {
    /// Starts to read `len` bytes from `offset`.
    pub fn start(file: &Arc<dyn ReadFile>, offset: u64, len: usize) -> PendingRead {
        let way = match file.descriptor() {
            Some(Descriptor { fd, direct: Some(alignment) }) => {
                match ring::start(fd, aligned_span(offset, len, alignment)) {
                    Some(reading) => Way::Ring(Box::new(reading)),
                    None => start_in_pool(file, offset, len),
                }
            }
            _ => {
                file.prefetch(offset, len);
                Way::Later
            }
        };
        PendingRead { file: file.clone(), offset, len, way }
    }

    /// Waits for the read and puts what it gave into `buf`, in place of what is there.
    ///
    /// # Errors
    /// As [`ReadFile::read_exact_at`].
    pub fn finish(self, buf: &mut Vec<u8>) -> Result<()> {
        let whole = match self.way {
            Way::Ring(reading) => reading.finish(self.len, buf),
            Way::Pool(receiver) => match receiver.recv() {
                Ok((read, result)) => {
                    *buf = read;
                    return result;
                }
                Err(_) => false,
            },
            Way::Later => false,
        };
        if whole {
            return Ok(());
        }
        buf.resize(self.len, 0);
        self.file.read_exact_at(self.offset, buf)
    }
}

fn start_in_pool(file: &Arc<dyn ReadFile>, offset: u64, len: usize) -> Way {
    match Pool::get() {
        Some(pool) => Way::Pool(pool.read(file.clone(), offset, vec![0; len])),
        None => Way::Later,
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod ring {
    use crate::batch::KEPT_BYTES;
    use crate::direct::AlignedBuffer;
    use crate::ring;
    use io_uring::{IoUring, opcode, types};
    use std::io;
    use std::mem::ManuallyDrop;
    use std::os::fd::RawFd;
    use std::sync::{Mutex, PoisonError};

    /// Idle rings kept, with their memory: enough for the inputs of a usual compaction.
    const SHELF: usize = 4;
    static IDLE: Mutex<Vec<Ring>> = Mutex::new(Vec::new());

    struct Ring {
        uring: IoUring,
        memory: AlignedBuffer,
    }

    /// A ring with a read in it.
    pub struct Reading {
        ring: ManuallyDrop<Ring>,
        /// Bytes before the first one wanted.
        skip: usize,
        /// The kernel no longer writes to the memory.
        ended: bool,
    }

    fn take() -> Option<Ring> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.or_else(|| {
            let uring = ring::open(1, ring::Users::Any).ok()?;
            Some(Ring { uring, memory: AlignedBuffer::new(0) })
        })
    }

    /// Starts a read of a direct file, where from, how many bytes, how many of them before what is wanted; `None` if there
    /// is no ring.
    pub fn start(fd: RawFd, (offset, span, skip): (u64, usize, usize)) -> Option<Reading> {
        let mut ring = take()?;
        if ring.memory.len() < span {
            ring.memory = AlignedBuffer::new(span);
        }
        let entry = opcode::Read::new(types::Fd(fd), ring.memory.as_mut_ptr(), u32::try_from(span).ok()?)
            .offset(offset)
            .build();
        // SAFETY: the memory is the ring's own and is neither touched nor freed before the completion is in, see
        // `Reading`. The descriptor is open as long as the file, which `PendingRead` holds.
        unsafe { ring.uring.submission().push(&entry) }.ok()?;
        let reading = Reading { ring: ManuallyDrop::new(ring), skip, ended: false };
        match reading.ring.uring.submit() {
            Ok(1) => Some(reading),
            // Whether the kernel has it is not known: `Reading` is leaked.
            _ => {
                std::mem::forget(reading);
                None
            }
        }
    }

    impl Reading {
        /// Waits; false if not all of `len` bytes came.
        pub fn finish(mut self, len: usize, buf: &mut Vec<u8>) -> bool {
            let Some(got) = self.wait() else { return false };
            let whole = got >= self.skip + len;
            if whole {
                buf.clear();
                buf.extend_from_slice(&self.ring.memory[self.skip..self.skip + len]);
            }
            whole
        }

        /// Bytes read. `None` if that cannot be known.
        fn wait(&mut self) -> Option<usize> {
            loop {
                if let Some(completion) = self.ring.uring.completion().next() {
                    self.ended = true;
                    return usize::try_from(completion.result()).ok();
                }
                match self.ring.uring.submit_and_wait(1) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return None,
                }
            }
        }
    }

    impl Drop for Reading {
        fn drop(&mut self) {
            if !self.ended {
                self.wait();
            }
            if self.ended {
                // SAFETY: taken once, here; the value is not used again.
                let ring = unsafe { ManuallyDrop::take(&mut self.ring) };
                let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < SHELF && ring.memory.len() <= KEPT_BYTES {
                    idle.push(ring);
                }
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod ring {
    use std::os::fd::RawFd;

    pub enum Reading {}

    pub fn start(_fd: RawFd, _span: (u64, usize, usize)) -> Option<Reading> {
        None
    }

    impl Reading {
        pub fn finish(self, _len: usize, _buf: &mut Vec<u8>) -> bool {
            match self {}
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::file_system::{DirectIo, FileSystem, OpenRead, OpenWrite};
    use crate::posix::PosixFs;
    use outcrop_base::ErrorKind;

    const LEN: usize = 100_003;

    fn byte(at: usize) -> u8 {
        (at * 31 + at / 251) as u8
    }

    #[test]
    fn what_was_started_gives_what_a_plain_read_gives_on_every_way_and_in_any_thread() {
        let dir = std::env::temp_dir().join(format!("outcrop-under-way-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("file");
        let mut written = PosixFs.create(&path, OpenWrite::default()).unwrap();
        written.append(&(0..LEN).map(byte).collect::<Vec<_>>()).unwrap();
        written.close().unwrap();
        let open = |io| PosixFs.open_read(&path, OpenRead { io, ..OpenRead::default() });
        let mut files = vec![open(DirectIo::Buffered).unwrap()];
        // Not every file system has direct IO.
        files.extend(open(DirectIo::Direct).ok());
        for file in &files {
            for (offset, len) in [(0, 1), (5, 40_000), (8192, 8192), (70_000, 30_003), (0, LEN), (99_999, 10)]
            {
                let pooled = |_: &Arc<dyn ReadFile>| start_in_pool(file, offset, len);
                let started = [
                    PendingRead::start(file, offset, len),
                    PendingRead { file: file.clone(), offset, len, way: pooled(file) },
                ];
                // Dropped before its end.
                drop(PendingRead::start(file, offset, len));
                for read in started {
                    let mut buf = vec![1, 2, 3];
                    let (result, buf) =
                        std::thread::spawn(move || (read.finish(&mut buf), buf)).join().unwrap();
                    let end = offset as usize + len;
                    if end <= LEN {
                        result.unwrap();
                        assert!((offset as usize..end).map(byte).eq(buf));
                    } else {
                        assert_eq!(result.unwrap_err().kind(), ErrorKind::Corruption);
                    }
                }
            }
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
