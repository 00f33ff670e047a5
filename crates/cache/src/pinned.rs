//! A pinned frame: bytes that stay in memory, unchanged, until the pin is dropped.

use crate::table::Slot;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
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

/// The owner of the frame: 8 bytes.
enum Owner {
    Slot(NonNull<Slot>),
    Alone(NonNull<Alone>),
}

/// The header in the line before the bytes of a frame outside of slabs.
struct Alone {
    count: AtomicUsize,
    /// Counts the bytes of such frames, as long as they live.
    charged: Option<Arc<AtomicUsize>>,
}

const _: () = assert!(size_of::<Alone>() <= ALIGNMENT);

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
    // The owner sits in a line before the bytes.
    Layout::from_size_align(ALIGNMENT + len, ALIGNMENT).expect("frame fits in memory")
}

/// A frame of `len` bytes outside any cache, written by `fill`; freed with its last pin.
pub fn standalone(len: usize, fill: impl FnOnce(&mut [u8])) -> Pinned {
    alone(len, None, fill)
}

/// The same; its bytes were added to `charged`, and are taken off when it is freed.
pub(crate) fn standalone_charged(
    len: usize,
    charged: &Arc<AtomicUsize>,
    fill: impl FnOnce(&mut [u8]),
) -> Pinned {
    alone(len, Some(charged.clone()), fill)
}

fn alone(len: usize, charged: Option<Arc<AtomicUsize>>, fill: impl FnOnce(&mut [u8])) -> Pinned {
    let layout = standalone_layout(len);
    // SAFETY: the layout's size is at least the alignment, so not zero.
    let start = unsafe { alloc_zeroed(layout) };
    let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
    let owner = start.cast::<Alone>();
    // SAFETY: the allocation is aligned, large enough for the owner and `len` bytes after it, and not shared.
    let bytes = unsafe {
        owner.write(Alone { count: AtomicUsize::new(1), charged });
        start.add(ALIGNMENT)
    };
    let pinned = Pinned { bytes, len, owner: Owner::Alone(owner) };
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
            Owner::Alone(alone) => {
                // SAFETY: `self` holds a count, so the allocation exists.
                unsafe { alone.as_ref() }.count.fetch_add(1, Ordering::Relaxed);
                Owner::Alone(alone)
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
            Owner::Alone(alone) => {
                // SAFETY: `self` holds a count, so the allocation exists.
                let before = unsafe { alone.as_ref() }.count.fetch_sub(1, Ordering::Release);
                if before == 1 {
                    // Acquire: pairs with the Release above, in whichever thread dropped before. Not a fence: ThreadSanitizer knows none.
                    // SAFETY: whoever takes the last count frees the allocation, and that is this thread.
                    unsafe { alone.as_ref() }.count.load(Ordering::Acquire);
                    // SAFETY: the last count is gone, so that nobody else reads the owner; allocated with this layout by `alone`.
                    let owner = unsafe { alone.read() };
                    // SAFETY: as above; the owner's value was moved out.
                    unsafe { dealloc(alone.as_ptr().cast(), standalone_layout(self.len)) }
                    if let Some(charged) = owner.charged {
                        // Relaxed: a sum that orders nothing.
                        charged.fetch_sub(self.len, Ordering::Relaxed);
                    }
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
