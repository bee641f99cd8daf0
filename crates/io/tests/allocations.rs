//! Between a client and a board an endpoint allocates nothing per operation.
#![allow(unsafe_code)]

// The other tests of a joint endpoint use the rest of it.
#[allow(dead_code)]
mod forwarder;

use forwarder::{Client, Hub, with_boards};
use hodo_machine::Wait;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Exchanges `count` requests per client, with `window` of them pending, one to each board in turn.
fn exchange(clients: &mut [Client], boards: usize, window: usize, count: usize) {
    for number in 0..count {
        for client in &mut *clients {
            (0..window).for_each(|of| client.ask((number + of) % boards, &[of as u8; 64]));
        }
        for client in &mut *clients {
            (0..window).for_each(|_| assert!(client.answer().1.is_some()));
        }
    }
}

#[test]
fn more_operations_need_no_more_allocations() {
    for wait in [Wait::Block, Wait::Spin, Wait::SpinThenBlock(Duration::from_micros(20))] {
        for (clients, boards) in [(1, 1), (4, 4)] {
            with_boards(boards, |addresses| {
                Hub::new(wait).serve(addresses, |hub, _, _| {
                    let mut clients: Vec<Client> = (0..clients).map(|_| Client::connect(hub)).collect();
                    exchange(&mut clients, boards, 4, 100);
                    let before = ALLOCATIONS.load(Relaxed);
                    exchange(&mut clients, boards, 4, 500);
                    let allocated = ALLOCATIONS.load(Relaxed) - before;
                    // Some buffer may find its largest size late.
                    assert!(allocated <= 8, "{allocated} allocations in {} operations, {wait}", 2000 * clients.len());
                });
            });
        }
    }
}
