//! Several reads at once: a batch takes about as long as its slowest read.
//!
//! ```text
//! read_batch -> the calling thread's io_uring: one submission; each read is handed over as it arrives
//!            -> or, where the kernel refuses that: threads for direct files, readahead hints for buffered ones
//!            -> files that are not the operating system's: one by one
//! ```
//! A read that fails or ends early in the ring is done again by itself, so errors read the same on every way.
//!
//! Concurrency: a ring belongs to its thread. Its reads go to memory the ring owns and are lent out once they are done, so no
//! caller's memory is ever in the kernel's hands; a ring whose state is in doubt is leaked, not freed.

use crate::direct::{AlignedBuffer, aligned_span};
use crate::file_system::ReadFile;
use crate::pool::Pool;
use outcrop_base::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Reads under way in one ring.
const MAX_IN_FLIGHT: usize = 64;
/// Longer reads gain nothing from company.
const MAX_BATCHED_BYTES: usize = 1 << 20;
/// A ring that read more than this at once gives the memory back.
pub(crate) const KEPT_BYTES: usize = 4 << 20;

/// One read of a batch.
#[derive(Clone, Copy)]
pub struct BatchRead<'f> {
    /// Where from.
    pub file: &'f Arc<dyn ReadFile>,
    /// From which byte.
    pub offset: u64,
    /// How many bytes.
    pub len: usize,
}

impl BatchRead<'_> {
    /// Where it starts and how long it is for the operating system.
    fn span(&self) -> Span {
        match self.file.descriptor().and_then(|descriptor| descriptor.direct) {
            Some(alignment) => {
                let (offset, len, skip) = aligned_span(self.offset, self.len, alignment);
                Span { offset, len, skip }
            }
            None => Span { offset: self.offset, len: self.len, skip: 0 },
        }
    }

    fn goes_to_ring(&self) -> bool {
        self.file.descriptor().is_some() && self.len <= MAX_BATCHED_BYTES
    }
}

/// The system call for one read.
struct Span {
    offset: u64,
    len: usize,
    /// Bytes before the first one wanted.
    skip: usize,
}

/// Takes a read's number in its batch, and what was read or why not.
pub type Arrived<'a> = dyn FnMut(usize, Result<&[u8]>) + 'a;

/// Does all `reads`, and hands each to `arrived` once, as soon as it is there: what is done with one overlaps with the
/// others. Errors are those of [`ReadFile::read_exact_at`].
pub fn read_batch(reads: &[BatchRead<'_>], arrived: &mut Arrived<'_>) {
    let (batched, alone): (Vec<usize>, Vec<usize>) =
        (0..reads.len()).partition(|&number| reads.len() > 1 && reads[number].goes_to_ring());
    for numbers in batched.chunks(MAX_IN_FLIGHT) {
        if numbers.len() < 2 || !ring::read(reads, numbers, arrived) {
            read_without_ring(reads, numbers, arrived);
        }
    }
    let mut buf = Vec::new();
    alone.into_iter().for_each(|number| read_alone(&reads[number], number, &mut buf, arrived));
}

fn read_alone(read: &BatchRead<'_>, number: usize, buf: &mut Vec<u8>, arrived: &mut Arrived<'_>) {
    buf.resize(read.len, 0);
    let result = read.file.read_exact_at(read.offset, buf);
    arrived(number, result.map(|()| &buf[..]));
}

/// How batches are read by this thread, for the log.
pub fn batch_reads_by() -> String {
    match ring::available() {
        Ok(()) => "io_uring".to_string(),
        Err(why) => format!("threads and readahead (io_uring: {why})"),
    }
}

fn read_without_ring(reads: &[BatchRead<'_>], numbers: &[usize], arrived: &mut Arrived<'_>) {
    let (direct, buffered): (Vec<usize>, Vec<usize>) =
        numbers.iter().partition(|&&number| reads[number].file.is_direct());
    if numbers.len() > 1 {
        buffered
            .iter()
            .for_each(|&number| reads[number].file.prefetch(reads[number].offset, reads[number].len));
    }
    let mut buf = Vec::new();
    let Some(pool) = (direct.len() > 1).then(Pool::get).flatten() else {
        let all = direct.into_iter().chain(buffered);
        return all.for_each(|number| read_alone(&reads[number], number, &mut buf, arrived));
    };
    let waiting: Vec<_> = direct
        .iter()
        .map(|&number| {
            let read = &reads[number];
            pool.read(read.file.clone(), read.offset, vec![0; read.len])
        })
        .collect();
    buffered.into_iter().for_each(|number| read_alone(&reads[number], number, &mut buf, arrived));
    for (number, done) in direct.into_iter().zip(waiting) {
        match done.recv() {
            Ok((bytes, result)) => arrived(number, result.map(|()| &bytes[..])),
            Err(_) => arrived(number, Err(Error::new(ErrorKind::Aborted, "the reading thread ended"))),
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod ring {
    use super::{AlignedBuffer, Arrived, BatchRead, KEPT_BYTES, MAX_IN_FLIGHT, Span, read_alone};
    use crate::ring;
    use io_uring::{IoUring, opcode, types};
    use std::cell::RefCell;
    use std::io;
    use std::mem::ManuallyDrop;

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
        /// Untried as well while a batch is under way.
        static STATE: RefCell<State> = const { RefCell::new(State::Untried) };
    }

    /// Whether this thread has a ring, or why not.
    pub fn available() -> Result<(), String> {
        let state = ready();
        let result = match &state {
            State::Refused(why) => Err(why.clone()),
            _ => Ok(()),
        };
        STATE.set(state);
        result
    }

    /// The thread's ring, taken out of its place.
    fn ready() -> State {
        match STATE.replace(State::Untried) {
            State::Untried => match Ring::new() {
                Ok(ring) => State::Ready(Box::new(ring)),
                Err(why) => State::Refused(why),
            },
            state => state,
        }
    }

    /// Does the reads of these `numbers`, at most [`MAX_IN_FLIGHT`], of files with descriptors; false if there is no ring and
    /// nothing was done.
    pub fn read(reads: &[BatchRead<'_>], numbers: &[usize], arrived: &mut Arrived<'_>) -> bool {
        let ring = match ready() {
            State::Ready(ring) => ring,
            state => {
                STATE.set(state);
                return false;
            }
        };
        // Not freed if `arrived` panics or the ring fails: the kernel may still write to its memory.
        let mut ring = ManuallyDrop::new(ring);
        let mut done = [false; MAX_IN_FLIGHT];
        let outcome = ring.read(reads, numbers, |index, bytes| {
            done[index] = true;
            arrived(numbers[index], Ok(bytes));
        });
        STATE.set(match outcome {
            Ok(()) => State::Ready(ManuallyDrop::into_inner(ring)),
            Err(error) => State::Refused(error.to_string()),
        });
        let mut buf = Vec::new();
        for (&number, _) in numbers.iter().zip(done).filter(|(_, done)| !done) {
            // Its own attempt says what is wrong, or that the ring was.
            read_alone(&reads[number], number, &mut buf, arrived);
        }
        true
    }

    impl Ring {
        fn new() -> Result<Ring, String> {
            let uring = ring::open(MAX_IN_FLIGHT as u32, ring::Users::OneThread)?;
            Ok(Ring { uring, memory: AlignedBuffer::new(0) })
        }

        /// Hands over what was read in full, by its place in `numbers`. After an error, or if `arrived` panics, the ring must
        /// not be used or freed.
        fn read(
            &mut self,
            reads: &[BatchRead<'_>],
            numbers: &[usize],
            mut arrived: impl FnMut(usize, &[u8]),
        ) -> io::Result<()> {
            let spans: Vec<Span> = numbers.iter().map(|&number| reads[number].span()).collect();
            let total = spans.iter().map(|span| AlignedBuffer::padded(span.len)).sum();
            if self.memory.len() < total {
                self.memory = AlignedBuffer::new(total);
            }
            let memory = self.memory.as_mut_ptr();
            let places: Vec<usize> = spans
                .iter()
                .scan(0, |next, span| Some(std::mem::replace(next, *next + AlignedBuffer::padded(span.len))))
                .collect();
            for (index, span) in spans.iter().enumerate() {
                let descriptor = reads[numbers[index]].file.descriptor().expect("chosen because it has one");
                let address = memory.wrapping_add(places[index]);
                let entry = opcode::Read::new(types::Fd(descriptor.fd), address, span.len as u32)
                    .offset(span.offset)
                    .build()
                    .user_data(index as u64);
                // SAFETY: the memory is the ring's own, reads get disjoint parts of it, and none is touched before its
                // completion is in, nor freed before all are. The descriptor is open as long as the file, which `reads`
                // borrows.
                let pushed = unsafe { self.uring.submission().push(&entry) };
                pushed.map_err(|_| io::Error::other("the submission queue is full"))?;
            }
            let mut left = numbers.len();
            while left > 0 {
                match self.uring.submit_and_wait(1) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                for completion in self.uring.completion() {
                    let index = completion.user_data() as usize;
                    let got = usize::try_from(completion.result()).unwrap_or(0);
                    let (skip, len) = (spans[index].skip, reads[numbers[index]].len);
                    left -= 1;
                    if got >= skip + len {
                        // SAFETY: within the part that this read was given, which the kernel is done with.
                        let bytes =
                            unsafe { std::slice::from_raw_parts(memory.add(places[index] + skip), len) };
                        arrived(index, bytes);
                    }
                }
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
    use super::{Arrived, BatchRead};

    pub fn available() -> Result<(), String> {
        Err("only on Linux".to_string())
    }

    pub fn read(_reads: &[BatchRead<'_>], _numbers: &[usize], _arrived: &mut Arrived<'_>) -> bool {
        false
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::file_system::{DirectIo, FileSystem, OpenRead, OpenWrite};
    use crate::memory::MemoryFs;
    use crate::posix::PosixFs;
    use crate::random::{Random, SeededRandom};
    use std::panic::{AssertUnwindSafe, catch_unwind};
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
        fs.open_read(path, OpenRead { io, ..OpenRead::default() }).unwrap()
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
            .open_read(&dir.join("buffered"), OpenRead { io: DirectIo::Direct, ..OpenRead::default() });
        files.extend(direct.ok());
        let random = SeededRandom::new(7);
        for round in 0..60 {
            let count = [1, 2, 10, 64, 65, 200][round % 6];
            let reads: Vec<BatchRead<'_>> = (0..count)
                .map(|_| {
                    let file = &files[random.next_u64() as usize % files.len()];
                    // Some reach over the end.
                    let offset = random.next_u64() % (LEN as u64 + 50);
                    BatchRead { file, offset, len: random.next_u64() as usize % 20_000 }
                })
                .collect();
            let mut results: Vec<Option<Result<Vec<u8>>>> = vec![None; count];
            let mut keep = |number: usize, result: Result<&[u8]>| {
                let earlier = results[number].replace(result.map(<[u8]>::to_vec));
                assert!(earlier.is_none(), "read {number} came twice");
            };
            if round % 2 == 0 {
                read_batch(&reads, &mut keep);
            } else {
                read_without_ring(&reads, &(0..count).collect::<Vec<_>>(), &mut keep);
            }
            for (read, result) in reads.into_iter().zip(results) {
                let end = read.offset as usize + read.len;
                match result.expect("every read comes") {
                    Ok(bytes) => {
                        assert!(end <= LEN || bytes.is_empty());
                        assert!((read.offset as usize..end).map(byte).eq(bytes));
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

    #[test]
    fn a_panic_over_one_read_leaves_later_batches_whole() {
        let path = std::env::temp_dir().join(format!("outcrop-batch-panic-{}", std::process::id()));
        let file = written(&PosixFs, &path, DirectIo::Buffered);
        let reads = [0, 5_000, 50_000, 90_000].map(|offset| BatchRead { file: &file, offset, len: 9_000 });
        for _ in 0..3 {
            let reading = AssertUnwindSafe(|| read_batch(&reads, &mut |_, _| panic!("on the first")));
            let caught = catch_unwind(reading);
            assert!(caught.is_err());
            let mut came = 0;
            read_batch(&reads, &mut |number, result| {
                let start = reads[number].offset as usize;
                assert!((start..start + 9_000).map(byte).eq(result.unwrap().iter().copied()));
                came += 1;
                // One batch within another.
                read_batch(&reads[..2], &mut |_, inner| assert_eq!(inner.unwrap().len(), 9_000));
            });
            assert_eq!(came, reads.len());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
