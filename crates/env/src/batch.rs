//! Several reads at once: a batch takes about as long as its slowest read.
//!
//! ```text
//! read_batch -> the calling thread's io_uring: one submission, one wait
//!            -> or, where the kernel refuses that: threads for direct files, readahead hints for buffered ones
//!            -> files that are not the operating system's: one by one
//! ```
//! A read that fails or ends early in the ring is done again by itself, so errors read the same on every way.
//!
//! Concurrency: a ring belongs to its thread. Its reads go to memory the ring owns and are copied out, so no caller's
//! memory is ever in the kernel's hands; a ring whose state is in doubt is leaked, not freed.

use crate::direct::{AlignedBuffer, aligned_span};
use crate::file_system::ReadFile;
use crate::pool::Pool;
use outcrop_base::{Error, ErrorKind, Result};
use std::cell::RefCell;
use std::sync::Arc;

/// Reads under way in one ring.
const MAX_IN_FLIGHT: usize = 64;
/// Longer reads gain nothing from company.
const MAX_BATCHED_BYTES: usize = 1 << 20;
/// A ring that read more than this at once gives the memory back.
pub(crate) const KEPT_BYTES: usize = 4 << 20;

/// One read of a batch.
pub struct BatchRead<'f> {
    /// Where from.
    pub file: &'f Arc<dyn ReadFile>,
    /// From which byte.
    pub offset: u64,
    /// As long as what is wanted; filled if `result` is good.
    pub buf: Vec<u8>,
    /// How it went; as [`ReadFile::read_exact_at`] says.
    pub result: Result<()>,
}

impl<'f> BatchRead<'f> {
    /// A read of `len` bytes.
    pub fn new(file: &'f Arc<dyn ReadFile>, offset: u64, len: usize) -> BatchRead<'f> {
        let waiting = Err(Error::new(ErrorKind::Aborted, "the read was not done"));
        BatchRead { file, offset, buf: vec![0; len], result: waiting }
    }

    fn read_alone(&mut self) {
        self.result = self.file.read_exact_at(self.offset, &mut self.buf);
    }

    /// Where it starts and how long it is for the operating system.
    fn span(&self) -> Span {
        match self.file.descriptor().and_then(|descriptor| descriptor.direct) {
            Some(alignment) => {
                let (offset, len, skip) = aligned_span(self.offset, self.buf.len(), alignment);
                Span { offset, len, skip }
            }
            None => Span { offset: self.offset, len: self.buf.len(), skip: 0 },
        }
    }
}

/// What is asked of the operating system for one read.
struct Span {
    offset: u64,
    len: usize,
    /// Bytes before the first one wanted.
    skip: usize,
}

/// Does all `reads`, and sets the result of each.
pub fn read_batch(reads: &mut [&mut BatchRead<'_>]) {
    if let [single] = reads {
        return single.read_alone();
    }
    for part in reads.chunks_mut(MAX_IN_FLIGHT) {
        let (mut batched, alone): (Vec<_>, Vec<_>) = part
            .iter_mut()
            .map(|read| &mut **read)
            .partition(|read| read.file.descriptor().is_some() && read.buf.len() <= MAX_BATCHED_BYTES);
        if batched.len() < 2 || !ring::read(&mut batched) {
            read_without_ring(&mut batched);
        }
        alone.into_iter().for_each(BatchRead::read_alone);
    }
}

/// How batches are read by this thread, for the log.
pub fn batch_reads_by() -> String {
    match ring::available() {
        Ok(()) => "io_uring".to_string(),
        Err(why) => format!("threads and readahead (io_uring: {why})"),
    }
}

fn read_without_ring(reads: &mut [&mut BatchRead<'_>]) {
    let direct =
        |read: &BatchRead<'_>| read.file.descriptor().is_some_and(|descriptor| descriptor.direct.is_some());
    let hinted = if reads.len() > 1 { &reads[..] } else { &[] };
    for read in hinted.iter().filter(|read| !direct(read)) {
        read.file.prefetch(read.offset, read.buf.len());
    }
    let pooled = reads.iter().filter(|read| direct(read)).count() > 1;
    let pool = if pooled { Pool::get() } else { None };
    let mut waiting = Vec::new();
    for (index, read) in reads.iter_mut().enumerate() {
        match pool {
            Some(pool) if direct(read) => {
                let buf = std::mem::take(&mut read.buf);
                waiting.push((index, pool.read(read.file.clone(), read.offset, buf)));
            }
            _ => read.read_alone(),
        }
    }
    for (index, done) in waiting {
        match done.recv() {
            Ok((buf, result)) => (reads[index].buf, reads[index].result) = (buf, result),
            Err(_) => reads[index].result = Err(Error::new(ErrorKind::Aborted, "the reading thread ended")),
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod ring {
    use super::{AlignedBuffer, BatchRead, KEPT_BYTES, MAX_IN_FLIGHT, RefCell, Span};
    use crate::ring;
    use io_uring::{IoUring, opcode, types};
    use std::io;

    /// A thread's ring.
    struct Ring {
        uring: IoUring,
        /// Where the kernel puts what it reads.
        memory: AlignedBuffer,
    }

    enum State {
        Untried,
        Ready(Box<Ring>),
        Refused(String),
    }

    thread_local! {
        static STATE: RefCell<State> = const { RefCell::new(State::Untried) };
    }

    /// Whether this thread has a ring, or why not.
    pub fn available() -> Result<(), String> {
        STATE.with_borrow_mut(|state| match ready(state) {
            State::Refused(why) => Err(why.clone()),
            _ => Ok(()),
        })
    }

    /// Does the reads, which are of files with descriptors; false if there is no ring and nothing was done.
    pub fn read(reads: &mut [&mut BatchRead<'_>]) -> bool {
        STATE.with_borrow_mut(|state| {
            let State::Ready(ring) = ready(state) else { return false };
            let mut done = [false; MAX_IN_FLIGHT];
            let outcome = ring.read(reads, &mut done);
            for (read, _) in reads.iter_mut().zip(done).filter(|(_, done)| !done) {
                // Its own attempt says what is wrong, or that the ring was.
                read.read_alone();
            }
            if let Err(error) = outcome {
                let broken = std::mem::replace(state, State::Refused(error.to_string()));
                // The kernel may still write to its memory.
                std::mem::forget(broken);
            }
            true
        })
    }

    fn ready(state: &mut State) -> &mut State {
        if matches!(state, State::Untried) {
            *state = match Ring::new() {
                Ok(ring) => State::Ready(Box::new(ring)),
                Err(why) => State::Refused(why),
            };
        }
        state
    }

    impl Ring {
        fn new() -> Result<Ring, String> {
            let uring = ring::open(MAX_IN_FLIGHT as u32, ring::Users::OneThread)?;
            Ok(Ring { uring, memory: AlignedBuffer::new(0) })
        }

        /// Marks in `done` the reads that were filled. After an error the ring must not be used or freed.
        fn read(
            &mut self,
            reads: &mut [&mut BatchRead<'_>],
            done: &mut [bool; MAX_IN_FLIGHT],
        ) -> io::Result<()> {
            let spans: Vec<Span> = reads.iter().map(|read| read.span()).collect();
            let total = spans.iter().map(|span| AlignedBuffer::padded(span.len)).sum();
            if self.memory.len() < total {
                self.memory = AlignedBuffer::new(total);
            }
            let mut place = 0;
            for (index, (read, span)) in reads.iter().zip(&spans).enumerate() {
                let descriptor = read.file.descriptor().expect("chosen because it has one");
                let address = self.memory[place..].as_mut_ptr();
                place += AlignedBuffer::padded(span.len);
                let entry = opcode::Read::new(types::Fd(descriptor.fd), address, span.len as u32)
                    .offset(span.offset)
                    .build()
                    .user_data(index as u64);
                // SAFETY: the memory is the ring's own, reads get disjoint parts of it, and it is neither touched nor
                // freed before all completions are in. The descriptor is open as long as the file, which `reads`
                // borrows.
                let pushed = unsafe { self.uring.submission().push(&entry) };
                pushed.map_err(|_| io::Error::other("the submission queue is full"))?;
            }
            let mut left = reads.len();
            while left > 0 {
                match self.uring.submit_and_wait(left) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                for completion in self.uring.completion() {
                    let index = completion.user_data() as usize;
                    let got = usize::try_from(completion.result()).unwrap_or(0);
                    done[index] = got >= spans[index].skip + reads[index].buf.len();
                    left -= 1;
                }
            }
            let mut place = 0;
            for (index, (read, span)) in reads.iter_mut().zip(&spans).enumerate() {
                if done[index] {
                    let from = place + span.skip;
                    let len = read.buf.len();
                    read.buf.copy_from_slice(&self.memory[from..from + len]);
                    read.result = Ok(());
                }
                place += AlignedBuffer::padded(span.len);
            }
            if self.memory.len() > KEPT_BYTES {
                self.memory = AlignedBuffer::new(0);
            }
            Ok(())
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod ring {
    use super::BatchRead;

    pub fn available() -> Result<(), String> {
        Err("only on Linux".to_string())
    }

    pub fn read(_reads: &mut [&mut BatchRead<'_>]) -> bool {
        false
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::file_system::{Access, DirectIo, FileSystem, OpenRead, OpenWrite};
    use crate::memory::MemoryFs;
    use crate::posix::PosixFs;
    use crate::random::{Random, SeededRandom};
    use std::path::Path;

    const LEN: usize = 100_003;

    fn byte(at: usize) -> u8 {
        (at * 31 + at / 251) as u8
    }

    fn written(fs: &dyn FileSystem, path: &Path, io: DirectIo) -> Arc<dyn ReadFile> {
        let contents: Vec<u8> = (0..LEN).map(byte).collect();
        let mut file = fs.create(path, OpenWrite::default()).unwrap();
        file.append(&contents).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        fs.open_read(path, OpenRead { io, access: Access::Random }).unwrap()
    }

    #[test]
    fn batches_read_what_single_reads_do_on_every_way() {
        let dir = std::env::temp_dir().join(format!("outcrop-batch-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let memory = MemoryFs::new();
        memory.create_dir_all(Path::new("/in")).unwrap();
        let mut files = vec![
            written(&PosixFs, &dir.join("buffered"), DirectIo::Buffered),
            written(&memory, Path::new("/in/memory"), DirectIo::Buffered),
        ];
        // Not every file system has direct IO.
        let direct = PosixFs
            .open_read(&dir.join("buffered"), OpenRead { io: DirectIo::Direct, access: Access::Random });
        files.extend(direct.ok());
        let random = SeededRandom::new(7);
        for round in 0..60 {
            let count = [1, 2, 10, 64, 65, 200][round % 6];
            let mut reads: Vec<BatchRead<'_>> = (0..count)
                .map(|_| {
                    let file = &files[random.next_u64() as usize % files.len()];
                    // Some reach over the end.
                    let offset = random.next_u64() % (LEN as u64 + 50);
                    BatchRead::new(file, offset, random.next_u64() as usize % 20_000)
                })
                .collect();
            if round % 2 == 0 {
                read_batch(&mut reads.iter_mut().collect::<Vec<_>>());
            } else {
                read_without_ring(&mut reads.iter_mut().collect::<Vec<_>>());
            }
            for read in reads {
                let end = read.offset as usize + read.buf.len();
                match read.result {
                    Ok(()) => {
                        assert!(end <= LEN || read.buf.is_empty());
                        assert!((read.offset as usize..end).map(byte).eq(read.buf));
                    }
                    Err(error) => {
                        assert!(end > LEN, "{error}");
                        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                    }
                }
            }
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
