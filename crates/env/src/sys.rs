//! The few system calls the standard library has no name for.

use crate::file_system::Access;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn advise(file: &File, offset: u64, len: u64, advice: libc::c_int) {
    // SAFETY: a valid descriptor and plain numbers; the call reads no memory. A refused hint changes nothing.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset as libc::off_t, len as libc::off_t, advice) };
}

/// Files that the process may hold open; `None` if the system does not say.
pub fn open_files_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure it is given.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (result == 0).then_some(limit.rlim_cur)
}

/// The system's number of the calling thread. In the child of a fork, the one that the thread had in its parent.
#[must_use]
pub fn thread_id() -> u64 {
    thread_local! {
        // SAFETY: the call takes nothing and cannot fail.
        static NUMBER: u64 = unsafe { libc::syscall(libc::SYS_gettid) }.unsigned_abs();
    }
    NUMBER.with(|number| *number)
}

/// Gives memory that the process has freed, and the C library's allocator keeps, back to the operating system. It takes as long as
/// there are pages to give, and for that long threads that allocate may wait. Other C libraries than glibc do nothing.
pub fn trim_heap() {
    #[cfg(all(target_env = "gnu", not(miri)))]
    // SAFETY: it takes the allocator's own locks, and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Lets threads of any other priority have the processor before the calling one. It stays so, and threads that it starts are like it.
pub fn lower_cpu_priority() {
    const LOWEST: libc::c_int = 19;
    // SAFETY: plain numbers; 0 is the calling thread. A call that is refused changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOWEST) };
}

/// Lets the reads and writes of the calling thread wait until nobody else uses the device, where the system's scheduler of IO knows
/// priorities. It stays so, and threads that it starts are like it.
pub fn lower_io_priority() {
    const WHO_PROCESS: libc::c_long = 1;
    const IDLE: libc::c_long = 3 << 13;
    // SAFETY: plain numbers; 0 is the calling thread. A call that is refused changes nothing.
    unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, IDLE) };
}

/// Readahead off.
pub fn advise_random(file: &File) {
    advise(file, 0, 0, libc::POSIX_FADV_RANDOM);
}

/// Readahead on.
pub fn advise_sequential(file: &File) {
    advise(file, 0, 0, libc::POSIX_FADV_SEQUENTIAL);
}

/// The range will be read soon.
pub fn advise_will_need(file: &File, offset: u64, len: u64) {
    advise(file, offset, len, libc::POSIX_FADV_WILLNEED);
}

/// Starts writing the range to the device, without waiting. Says nothing about durability.
pub fn start_writeback(file: &File, offset: u64, len: u64) {
    // SAFETY: a valid descriptor and plain numbers; the call reads no memory. Failing only loses a head start.
    unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            offset as libc::off64_t,
            len as libc::off64_t,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    };
}

/// Takes the exclusive record lock on the whole file, without waiting.
///
/// It belongs to the open file, not to the process as the lock that RocksDB takes: it stays if something else in the process
/// opens and closes the file. The two kinds exclude each other. Where the kernel has only the other, that one is taken.
pub fn try_lock_whole_file(file: &File) -> io::Result<()> {
    match lock_whole_file(file, OPEN_FILE_LOCK, libc::F_WRLCK as libc::c_short) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => try_process_lock(file),
        result => result,
    }
}

/// Takes the exclusive record lock of this process on the whole file, as RocksDB does, without waiting.
pub fn try_process_lock(file: &File) -> io::Result<()> {
    lock_whole_file(file, libc::F_SETLK, libc::F_WRLCK as libc::c_short)
}

/// Releases the lock that [`try_lock_whole_file`] took, also for processes that were forked from this one.
pub fn unlock_whole_file(file: &File) -> io::Result<()> {
    lock_whole_file(file, OPEN_FILE_LOCK, libc::F_UNLCK as libc::c_short)
}

#[cfg(target_os = "linux")]
const OPEN_FILE_LOCK: libc::c_int = libc::F_OFD_SETLK;
#[cfg(not(target_os = "linux"))]
const OPEN_FILE_LOCK: libc::c_int = libc::F_SETLK;

fn lock_whole_file(file: &File, command: libc::c_int, kind: libc::c_short) -> io::Result<()> {
    let whole = libc::flock {
        l_type: kind,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: a valid descriptor, and `whole` lives across the call, which only reads it.
    check(unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const whole) })
}

/// True if the blocks that `file` has stay its own, so that a store into a mapped page of them never needs new ones. There is no
/// way to say that a store found no space but SIGBUS. False where that is not known.
///
/// A file system that can share blocks between files may share those of any file at any time (`cp --reflink`), and one that
/// writes nothing in place needs new blocks each time: there no check of the file itself would hold.
#[cfg(target_os = "linux")]
pub fn blocks_stay(file: &File) -> bool {
    const EXT: u64 = 0xEF53;
    const TMPFS: u64 = 0x0102_1994;
    const XFS: u64 = 0x5846_5342;
    // SAFETY: all-zero bytes are a valid `statfs`.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a valid descriptor and a writable struct that lives across the call.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut stat) } != 0 {
        return false;
    }
    match stat.f_type as u64 {
        EXT | TMPFS => true,
        XFS => xfs_blocks_stay(file),
        _ => false,
    }
}

#[cfg(not(target_os = "linux"))]
pub fn blocks_stay(_file: &File) -> bool {
    false
}

/// True of a file on XFS that was made without sharing of blocks (`mkfs.xfs -m reflink=0`), outside of its realtime part, which
/// may be zoned.
#[cfg(target_os = "linux")]
fn xfs_blocks_stay(file: &File) -> bool {
    /// XFS_IOC_FSGEOMETRY_V4, which fills 112 bytes; 92 bytes into them are the flags.
    const GEOMETRY: u64 = 0x8070_587C;
    const FLAGS: usize = 92 / 4;
    const REFLINK: u32 = 1 << 20;
    /// FS_IOC_FSGETXATTR, which fills 28 bytes, flags first.
    const ATTRIBUTES: u64 = 0x801C_581F;
    const REALTIME: u32 = 1;
    let (mut geometry, mut attributes) = ([0u32; 112 / 4], [0u32; 28 / 4]);
    // SAFETY: a valid descriptor; the kernel fills as many bytes as the request says, which the array has.
    let geometry_known = unsafe { libc::ioctl(file.as_raw_fd(), GEOMETRY as _, geometry.as_mut_ptr()) } == 0;
    // SAFETY: as above.
    let attributes_known =
        unsafe { libc::ioctl(file.as_raw_fd(), ATTRIBUTES as _, attributes.as_mut_ptr()) } == 0;
    geometry_known && attributes_known && geometry[FLAGS] & REFLINK == 0 && attributes[0] & REALTIME == 0
}

/// Bytes an unprivileged process can still write under `dir`.
pub fn free_space(dir: &Path) -> io::Result<u64> {
    let path = std::ffi::CString::new(dir.as_os_str().as_bytes())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: all-zero bytes are a valid `statvfs`.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is a NUL-terminated string and `stat` a writable struct; both live across the call.
    check(unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) })?;
    Ok(stat.f_bavail * stat.f_frsize)
}

/// The number that offset and length of a direct read of `file` must be multiples of; `None` if the kernel does not
/// say, as before 6.1.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn direct_read_alignment(file: &File) -> Option<usize> {
    // SAFETY: all-zero bytes are a valid `statx`.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an empty NUL-terminated path, for the descriptor itself, and a writable struct; both live across the call.
    let result = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, &raw mut found)
    };
    let told = result == 0 && found.stx_mask & libc::STATX_DIOALIGN != 0;
    let alignment = found.stx_dio_offset_align as usize;
    (told && alignment.is_power_of_two()).then_some(alignment)
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn direct_read_alignment(_file: &File) -> Option<usize> {
    None
}

/// Maps `len` bytes of `file` from `offset`, a multiple of the page size, shared and writable.
pub fn map_shared(file: &File, offset: u64, len: usize) -> io::Result<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.cast()) }
}

/// Maps the first `len` bytes of `file` for reading, with readahead or without. The mapping outlives the descriptor.
pub fn map_for_reading(file: &File, len: usize, access: Access) -> io::Result<*mut u8> {
    let advice = match access {
        Access::Random => libc::MADV_RANDOM,
        Access::Sequential => libc::MADV_SEQUENTIAL,
    };
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range just mapped; advice changes no contents.
    unsafe { libc::madvise(address, len, advice) };
    Ok(address.cast())
}

/// `len` bytes of a mapping from `address`, which is at the start of a page, will be read soon.
pub fn advise_mapping_will_need(address: *mut u8, len: usize) {
    // SAFETY: advice changes no contents, and the kernel refuses addresses that are not mapped.
    unsafe { libc::madvise(address.cast(), len, libc::MADV_WILLNEED) };
}

/// Ends a mapping that a function of this file gave with this length.
pub fn unmap(start: *mut u8, len: usize) {
    // SAFETY: exactly a range that was mapped, says the caller, who does not use it again.
    unsafe { libc::munmap(start.cast(), len) };
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_nanos() -> u64 {
    nanos_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds since the machine was started, about. Never goes back.
#[inline]
pub fn monotonic_nanos() -> u64 {
    nanos_of(libc::CLOCK_MONOTONIC)
}

/// The time by a clock of the system, in nanoseconds; 0 if there is none.
#[inline]
fn nanos_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and lives across the call. A call that fails leaves it as it is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Fills `buf` with random bytes from the operating system.
pub fn random_bytes(buf: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        // SAFETY: the pointer and length are those of the rest of `buf`, which is writable.
        let got = unsafe { libc::getrandom(buf[done..].as_mut_ptr().cast(), buf.len() - done, 0) };
        if got < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        } else {
            done += got as usize;
        }
    }
    Ok(())
}
