//! A server of several threads ends when one of them does.

use crate::echo;

use echo::Echo;
use hodo_io::{ServeOptions, Server, Stop};
use hodo_machine::Address;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_thread_that_dies_ends_the_server() {
    let options = ServeOptions { threads: 3, ..ServeOptions::default() };
    let server = Server::bind(&Address::Udp(([127, 0, 0, 1], 0).into()), options).expect("a free port");
    let (made, stop) = (AtomicUsize::new(0), Stop::new(false));
    let make = || {
        assert!(made.fetch_add(1, Ordering::Relaxed) != 1, "the second one dies");
        Echo::default()
    };
    let ended = catch_unwind(AssertUnwindSafe(|| server.run(make, |_| None, &stop)));
    assert!(ended.is_err() && stop.load(Ordering::Relaxed));
}
