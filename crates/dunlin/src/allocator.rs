//! The allocator of the process, and how it is set up.
#![expect(
    unsafe_code,
    reason = "an allocator is unsafe, and finds its settings by a symbol's name"
)]

use std::alloc::{GlobalAlloc, Layout};

use process::crash;
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Reporting = Reporting;

/// jemalloc, with a log line when it has no memory to give: the program ends then, and its last
/// words go to standard error, which may be unread.
struct Reporting;

impl Reporting {
    #[inline(always)]
    fn checked(pointer: *mut u8, bytes: usize) -> *mut u8 {
        if pointer.is_null() {
            crash::note_failed_allocation(bytes);
        }
        pointer
    }
}

// SAFETY: everything is handed to jemalloc as it is, and what it answers is handed back as it is.
unsafe impl GlobalAlloc for Reporting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that jemalloc asks for.
        Reporting::checked(unsafe { Jemalloc.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Reporting::checked(unsafe { Jemalloc.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { Jemalloc.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        Reporting::checked(unsafe { Jemalloc.realloc(pointer, layout, size) }, size)
    }
}

/// The allocator's settings, a pointer to a terminated text.
#[repr(transparent)]
struct AllocatorConfig(*const u8);

// SAFETY: the text is constant.
unsafe impl Sync for AllocatorConfig {}

/// Unused pages go back to the system within half a second, rather than ten: what is freed then
/// shows in the process's size, and a load that frees and allocates keeps its pages all the same.
// SAFETY: the allocator declares this symbol weakly, as a pointer to such a text.
#[unsafe(export_name = "malloc_conf")]
static ALLOCATOR_CONFIG: AllocatorConfig =
    AllocatorConfig(c"dirty_decay_ms:400,muzzy_decay_ms:0".as_ptr().cast());
