use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::end::{CREDIT_MAX, State};

mod configuration;
mod faults;
mod links;
mod properties;
mod routers;

fn micros(micros: u64) -> Picos {
    Picos::from_nanos(micros * 1_000)
}

/// Connects two nodes with one link.
fn pair(settings: &LinkSettings) -> (Network, NodeId, NodeId) {
    pair_with(settings, [NodeSettings::default(), NodeSettings::default()], Engine::Fast, ())
}

fn pair_with<O: Observer>(
    settings: &LinkSettings,
    nodes: [NodeSettings; 2],
    engine: Engine,
    observer: O,
) -> (Network<O>, NodeId, NodeId) {
    let mut builder = Builder::new();
    builder.engine(engine);
    let [one, other] = nodes;
    let one = builder.node("one", one).unwrap();
    let other = builder.node("other", other).unwrap();
    builder.link(one, other, settings).unwrap();
    (builder.build_with(observer).unwrap(), one, other)
}

/// Bytes that tell one packet from another.
fn packet(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at * 7) as u8).collect()
}

fn receive_all<O: Observer>(network: &mut Network<O>, node: NodeId) -> Vec<Packet> {
    core::iter::from_fn(|| network.receive(node)).collect()
}

impl<O: Observer> Network<O> {
    /// Counts the NULLs of an idle transmitter.
    fn wake_for_test(&mut self, node: NodeId) {
        self.wake(self.nodes[node.0].port, self.now);
    }
}

#[test]
fn a_network_may_move_to_another_thread() {
    fn moves<T: Send>(_: T) {}
    moves(pair(&LinkSettings::default()).0);
}
