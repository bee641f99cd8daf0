//! An allocator that counts, for the tests of this crate and of others that hold the hot path to allocating nothing.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "each test file uses a part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Returns the allocations of this process so far, on all its threads.
pub fn allocations_so_far() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

/// Returns the allocations of this thread so far, without those that the test harness makes meanwhile.
pub fn allocations_here() -> u64 {
    HERE.get()
}

/// Returns the bytes that this thread has and has not given back, and those that it has taken in all.
pub fn bytes_here() -> (i64, u64) {
    (LIVE.get(), TAKEN.get())
}

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static HERE: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

fn give_back(bytes: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get() - bytes as i64));
}

fn count(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    // A thread that ends has no counter any more.
    let _ = HERE.try_with(|here| here.set(here.get() + 1));
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes as i64));
    let _ = TAKEN.try_with(|taken| taken.set(taken.get() + bytes as u64));
}

// SAFETY: every call is handed on to the system's allocator unchanged; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        give_back(layout.size());
        count(size);
        // SAFETY: the caller keeps the contract of `realloc`, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
