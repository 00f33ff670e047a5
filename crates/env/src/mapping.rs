//! Zeroed memory straight from the operating system, on huge pages where it gives them.
//!
//! Address translation is a large part of a cache miss: 4 KiB pages cost a dependent access 310 ns where 2 MiB
//! pages cost 226. Memory becomes resident as it is touched and is returned on drop.
//!
//! A huge page is resident as a whole at its first touch. Memory that may stay nearly empty begins as a lean mapping: on ordinary
//! pages until its owner asks for huge ones.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size and alignment of a huge page.
const HUGE_PAGE: usize = 2 << 20;
/// How often the kernel is asked to make a huge page of ordinary ones.
#[cfg(not(miri))]
const COLLAPSES: usize = 3;
/// Size of an ordinary page.
pub const PAGE: usize = 4096;

/// An owned, zeroed, writable mapping.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// Bytes from the start that have ordinary pages, though huge ones would fit.
    lean: AtomicUsize,
}

// SAFETY: the mapping is plain memory owned by this value; how it is shared is up to its user.
unsafe impl Send for Mapping {}
// SAFETY: as above; `Mapping` itself gives out only a raw pointer.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Start of the memory, aligned to at least 64 bytes.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The length that a mapping asked for with `len` bytes has.
    pub fn rounded(len: usize) -> usize {
        if len < HUGE_PAGE { len.max(1).next_multiple_of(PAGE) } else { len.next_multiple_of(HUGE_PAGE) }
    }

    /// Zeroes the first `len` bytes.
    pub fn zero(&mut self, len: usize) {
        // SAFETY: within the mapping, which `&mut self` shows nobody else uses.
        unsafe { std::ptr::write_bytes(self.start.as_ptr(), 0, len.min(self.len)) };
    }

    /// Gives the memory from byte `start` on back to the operating system, as far as whole pages go. It comes again, zeroed, as
    /// it is touched.
    ///
    /// # Safety
    /// Nobody uses that part of the mapping meanwhile, and nothing in it is needed any more.
    pub unsafe fn give_back_from(&self, start: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.give_back(start..self.len) };
    }

    /// The same for `range`, in bytes from the start.
    ///
    /// # Safety
    /// As [`Mapping::give_back_from`].
    pub unsafe fn give_back(&self, range: Range<usize>) {
        let start = range.start.next_multiple_of(PAGE);
        // The end of the mapping is the end of a page.
        let end = range.end.min(self.len) / PAGE * PAGE;
        #[cfg(not(miri))]
        if start < end {
            // SAFETY: whole pages of the mapping, which says the caller hold nothing that is needed. If the kernel refuses,
            // they stay as they are.
            unsafe {
                let address = self.start.as_ptr().add(start).cast();
                libc::madvise(address, end - start, libc::MADV_DONTNEED);
            }
        }
        #[cfg(miri)]
        let _ = (start, end);
    }

    /// As [`Mapping::new`], but the first `bytes` bytes have ordinary pages until [`Mapping::use_huge_pages`].
    pub fn lean(len: usize, bytes: usize) -> Mapping {
        let mut mapping = Mapping::new(len);
        if bytes > 0 && mapping.len >= HUGE_PAGE {
            let lean = bytes.next_multiple_of(HUGE_PAGE).min(mapping.len);
            *mapping.lean.get_mut() = lean;
            #[cfg(not(miri))]
            // SAFETY: part of the mapping. If the kernel refuses, its pages are huge.
            unsafe {
                libc::madvise(mapping.start.as_ptr().cast(), lean, libc::MADV_NOHUGEPAGE);
            }
        }
        mapping
    }

    /// True if it begins with ordinary pages though huge ones would fit.
    pub fn is_lean(&self) -> bool {
        // Relaxed: it tells of the pages alone, never of what is in them.
        self.lean.load(Ordering::Relaxed) > 0
    }

    /// Copies the ordinary pages of a lean mapping onto huge ones, and makes those resident that were not touched. Others read and write
    /// meanwhile. Takes up to some milliseconds for each 2 MiB. Kernels before 6.1 keep the ordinary pages for a while, or for good.
    pub fn use_huge_pages(&self) {
        // Relaxed: as above.
        let lean = self.lean.swap(0, Ordering::Relaxed);
        #[cfg(not(miri))]
        if lean > 0 {
            let address = self.start.as_ptr();
            // SAFETY: part of the mapping, whose contents stay as they are.
            unsafe { libc::madvise(address.cast(), lean, libc::MADV_HUGEPAGE) };
            for piece in (0..lean).step_by(HUGE_PAGE) {
                // It fails where a page is being used at that moment.
                (0..COLLAPSES).any(|_| {
                    // SAFETY: as above.
                    let done =
                        unsafe { libc::madvise(address.add(piece).cast(), HUGE_PAGE, libc::MADV_COLLAPSE) };
                    done == 0
                });
            }
            populate(address, lean);
        }
        #[cfg(miri)]
        let _ = lean;
    }

    /// Touches every page, so that later users meet no page fault. The contents stay zero: for new mappings only.
    pub fn prefault(&mut self) {
        // Many pages at a time; those that an old kernel left, one by one.
        populate(self.start.as_ptr(), self.len);
        for offset in (0..self.len).step_by(PAGE) {
            // SAFETY: within the mapping, which `&mut self` shows nobody else uses. Volatile, or the store of a
            // zero over a zero could be left out.
            unsafe { self.start.as_ptr().add(offset).write_volatile(0) };
        }
    }
}

/// Makes `len` bytes of a mapping from `address` on resident, whatever they hold and whoever uses them meanwhile: later
/// users meet no page fault. Kernels before 5.14 do nothing.
pub fn populate(address: *mut u8, len: usize) {
    #[cfg(not(miri))]
    for start in (0..len).step_by(HUGE_PAGE) {
        let from = address.addr() + start;
        let page = from & !(PAGE - 1);
        let bytes = (len - start).min(HUGE_PAGE) + (from - page);
        // In pieces: a thread that maps or unmaps meanwhile waits for one of them only.
        // SAFETY: the kernel writes nothing to memory that is there, and refuses addresses that are not mapped.
        unsafe { libc::madvise(page as *mut libc::c_void, bytes, libc::MADV_POPULATE_WRITE) };
    }
    #[cfg(miri)]
    let _ = (address, len);
}

/// Asks the processor to fetch the line of `address`. Harmless for any address.
#[inline]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

#[cfg(not(miri))]
impl Mapping {
    /// Maps `len` bytes, rounded up to pages; to huge pages if at least one fits.
    pub fn new(len: usize) -> Mapping {
        Mapping::map(Mapping::rounded(len), if len < HUGE_PAGE { 0 } else { HUGE_PAGE })
    }

    /// Maps `len` bytes at an address divisible by `alignment` (0: any address).
    fn map(len: usize, alignment: usize) -> Mapping {
        let reserved = len + alignment;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                reserved,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            let layout = std::alloc::Layout::from_size_align(len, PAGE).expect("page-sized layout");
            std::alloc::handle_alloc_error(layout);
        }
        let address = address as usize;
        let start = if alignment == 0 { address } else { address.next_multiple_of(alignment) };
        let (before, after) = (start - address, address + reserved - (start + len));
        // SAFETY: both ranges are page-aligned parts of the mapping just made, outside what is kept.
        unsafe {
            if before > 0 {
                libc::munmap(address as *mut libc::c_void, before);
            }
            if after > 0 {
                libc::munmap((start + len) as *mut libc::c_void, after);
            }
            if alignment > 0 {
                // Refused on kernels without huge pages: slower, not wrong.
                libc::madvise(start as *mut libc::c_void, len, libc::MADV_HUGEPAGE);
            }
        }
        let start = NonNull::new(start as *mut u8).expect("mmap gives no null");
        Mapping { start, len, lean: AtomicUsize::new(0) }
    }
}

#[cfg(not(miri))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range kept by `map`, unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(miri)]
impl Mapping {
    /// Miri has no mmap with advice: the same from the allocator.
    pub fn new(len: usize) -> Mapping {
        let layout = std::alloc::Layout::from_size_align(Mapping::rounded(len), 64).unwrap();
        // SAFETY: the layout's size is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        Mapping { start: NonNull::new(start).unwrap(), len: layout.size(), lean: AtomicUsize::new(0) }
    }
}

#[cfg(miri)]
impl Drop for Mapping {
    fn drop(&mut self) {
        let layout = std::alloc::Layout::from_size_align(self.len, 64).unwrap();
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) }
    }
}
