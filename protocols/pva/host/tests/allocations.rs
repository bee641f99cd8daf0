//! A post of numbers allocates nothing, whether the serving thread takes it or it is merged.

#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;

use counting::allocations_here;
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::{Scalar, Value};
use hodo_pva_host::server::{Posted, Server, ServerOptions};
use std::time::Duration;

#[test]
fn a_post_allocates_nothing() {
    let options = ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into());
    let server = Server::start(options).expect("a free port");
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build());
    let pv = server.pv("A", value.clone()).serve();
    let mut post = |to: u32| {
        value.unmark();
        value.set("value", to).expect("it fits");
        pv.post(&value).expect("it fits")
    };
    // The queue is filled to its bound, and emptied, as often as its memory needs to grow.
    let mut to = 0;
    let mut fill = |posts: u32, post: &mut dyn FnMut(u32) -> Posted| {
        let merged = (0..posts).filter(|_| {
            to += 1;
            post(to) == Posted::Merged
        });
        merged.count()
    };
    fill(300_000, &mut post);
    server.state(Duration::from_secs(20)).expect("it turns");
    // Where the serving thread had less of a processor than before, more wait than ever did, and the memory grows once more.
    let mut rounds = Vec::new();
    while rounds.len() < 10 && rounds.last().is_none_or(|(allocations, _)| *allocations > 0) {
        let before = allocations_here();
        let merged = fill(100_000, &mut post);
        rounds.push((allocations_here() - before, merged));
    }
    let last = rounds.last().map(|(allocations, _)| *allocations);
    assert_eq!(last, Some(0), "(allocations, merged posts) of each 100,000 posts: {rounds:?}");
}
