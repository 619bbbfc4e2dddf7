//! The allocator of the process, and how it is set up.
#![expect(unsafe_code, reason = "the allocator finds its settings by the name of a symbol")]

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The allocator's settings, a pointer to a terminated text.
#[repr(transparent)]
struct Settings(*const u8);

// SAFETY: the text is constant.
unsafe impl Sync for Settings {}

/// Unused pages go back to the system within half a second, rather than ten: what is freed then shows in
/// the process's size, and a load that frees and allocates keeps its pages all the same.
// SAFETY: the allocator declares this symbol weakly, as a pointer to such a text.
#[unsafe(export_name = "malloc_conf")]
static SETTINGS: Settings = Settings(c"dirty_decay_ms:400,muzzy_decay_ms:0".as_ptr().cast());
