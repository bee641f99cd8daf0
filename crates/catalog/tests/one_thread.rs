//! A server with one thread accepts on the thread that serves: nobody waits for long because another is busy.

use crate::plans;

use hodo_catalog::ServeSettings;
use hodo_machine::Wait;
use hodo_measure::{Mode, Operation, Test};
use plans::own;
use plans::served::{Served, serve_settings};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_busy_client_does_not_keep_another_waiting() {
    for protocol in own() {
        for wait in [Wait::Spin, Wait::Block, Wait::Adaptive] {
            let served = Served::start(protocol, &ServeSettings { wait, ..serve_settings() });
            let plan = plans::plan(Test::Latency, Mode::Both, 64);
            let (begun, over) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                let busy = scope.spawn(|| {
                    let mut opened = plans::opened(&served.uri, &plan);
                    let (link, mut done) = (&mut opened.links[0], Vec::new());
                    while !over.load(Ordering::Relaxed) {
                        link.start(Operation { tag: 0, channel: 0, size: 64, mode: Mode::Both });
                        while done.is_empty() {
                            let until = link.now() + plan.stall;
                            link.poll(Wait::Block, until, &mut done).expect("the busy client is answered");
                        }
                        done.clear();
                        begun.store(true, Ordering::Relaxed);
                    }
                });
                while !begun.load(Ordering::Relaxed) && !busy.is_finished() {
                    std::thread::yield_now();
                }
                // Opening waits for the server's greeting, and fails where that is not there in time.
                for _ in 0..3 {
                    plans::opened(&served.uri, &plan);
                }
                over.store(true, Ordering::Relaxed);
            });
        }
    }
}
