//! A thread that others wake returns from its wait, whenever they did.

use crate::echo;

use echo::Echo;
use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Driver, Wait};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_wake_up_before_the_wait_ends_it() {
    for wait in [Wait::Block, Wait::Spin, Wait::SpinThenBlock(Duration::from_micros(10))] {
        let mut sockets = Sockets::new(SocketSettings::default()).expect("descriptors are left");
        let waker = sockets.waker().expect("descriptors are left");
        let mut endpoint = Endpoint::new(Echo::default(), sockets, Clock::start());
        for _ in 0..3 {
            let began = endpoint.now();
            waker.wake();
            endpoint.turn(wait, began + LONG, &mut |_| {}).expect("it waits");
            assert!(endpoint.now() - began < LONG / 2, "{wait}");
        }
        // Once it was heard, it is over.
        let began = endpoint.now();
        endpoint.turn(wait, began + Duration::from_millis(5), &mut |_| {}).expect("it waits");
        assert!(endpoint.now() - began >= Duration::from_millis(5), "{wait}");
        // From another thread while this one waits.
        let began = endpoint.now();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            endpoint.turn(wait, began + LONG, &mut |_| {}).expect("it waits");
        });
        assert!(endpoint.now() - began < LONG / 2, "{wait}");
    }
}
