//! A pinned frame: bytes that stay in memory, unchanged, until the pin is dropped.

use crate::table::Slot;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment of every frame.
const ALIGNMENT: usize = 64;

/// Read access to one frame. Cloning pins it once more.
///
/// A cache that is dropped while frames are pinned leaves the memory of those pins in place for good: drop
/// pins first.
pub struct Pinned {
    bytes: NonNull<u8>,
    len: usize,
    owner: Owner,
}

/// Who keeps the frame: 8 bytes.
enum Owner {
    Slot(NonNull<Slot>),
    Alone(NonNull<AtomicUsize>),
}

// SAFETY: the bytes never change while pinned, and reference counts are atomic.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Takes over one reference on `slot`, whose frame is `len` bytes at `bytes`.
    ///
    /// # Safety
    /// The slot must be live with that frame, and one of its references must be the caller's.
    pub(crate) unsafe fn of_slot(slot: *const Slot, bytes: *const u8, len: usize) -> Pinned {
        Pinned {
            bytes: NonNull::new(bytes.cast_mut()).expect("frames are not null"),
            len,
            owner: Owner::Slot(NonNull::new(slot.cast_mut()).expect("slots are not null")),
        }
    }

    /// True if the frame is in no cache.
    pub fn is_standalone(&self) -> bool {
        matches!(self.owner, Owner::Alone(_))
    }
}

fn standalone_layout(len: usize) -> Layout {
    // The count sits in a line before the bytes.
    Layout::from_size_align(ALIGNMENT + len, ALIGNMENT).expect("frame fits in memory")
}

/// A frame of `len` bytes outside any cache, written by `fill`; freed with its last pin.
pub fn standalone(len: usize, fill: impl FnOnce(&mut [u8])) -> Pinned {
    let layout = standalone_layout(len);
    // SAFETY: the layout's size is at least the alignment, so not zero.
    let start = unsafe { alloc_zeroed(layout) };
    let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
    let count = start.cast::<AtomicUsize>();
    // SAFETY: the allocation is aligned, large enough for the count and `len` bytes behind it, and not shared.
    let bytes = unsafe {
        count.write(AtomicUsize::new(1));
        start.add(ALIGNMENT)
    };
    let pinned = Pinned { bytes, len, owner: Owner::Alone(count) };
    // SAFETY: `len` zeroed bytes owned by `pinned`, which nobody else sees yet.
    fill(unsafe { std::slice::from_raw_parts_mut(bytes.as_ptr(), len) });
    pinned
}

impl Deref for Pinned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the frame holds `len` bytes that stay in place and unchanged while the reference is held.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl Clone for Pinned {
    fn clone(&self) -> Pinned {
        let owner = match self.owner {
            Owner::Slot(slot) => {
                // SAFETY: `self` holds a reference, so the slot is live and its table exists.
                unsafe { slot.as_ref() }.add_reference();
                Owner::Slot(slot)
            }
            Owner::Alone(count) => {
                // SAFETY: `self` holds a count, so the allocation exists.
                unsafe { count.as_ref() }.fetch_add(1, Ordering::Relaxed);
                Owner::Alone(count)
            }
        };
        Pinned { bytes: self.bytes, len: self.len, owner }
    }
}

impl Drop for Pinned {
    #[inline]
    fn drop(&mut self) {
        match self.owner {
            // SAFETY: `self` holds a reference; a cache dropped meanwhile left its table in place for it.
            Owner::Slot(slot) => unsafe { slot.as_ref() }.release(),
            Owner::Alone(count) => {
                // SAFETY: `self` holds a count, so the allocation exists.
                let before = unsafe { count.as_ref() }.fetch_sub(1, Ordering::Release);
                if before == 1 {
                    // Acquire: pairs with the Release above, in whichever thread dropped before.
                    std::sync::atomic::fence(Ordering::Acquire);
                    // SAFETY: the last count is gone; allocated with this layout by `standalone`.
                    unsafe { dealloc(count.as_ptr().cast(), standalone_layout(self.len)) }
                }
            }
        }
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned({} bytes)", self.len)
    }
}
