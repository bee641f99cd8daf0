//! One network with streams and datagrams in it.
use crate::common;

use common::{Ask, Caller, CallerEvent, Echo, PEER, at_us, ideal, run};
use hodo_machine::{Address, Driver, Peer};
use hodo_sim::{DATAGRAM_HEADERS, Network, STREAM_HEADERS, Sim, Transport};

/// Tells the transports apart by the bytes that come out: a datagram is lost where a segment is sent again.
#[test]
fn what_a_node_opens_is_as_it_was_told_to_be() {
    let network = Network { loss: 0.5, seed: 2, ..ideal(5) };
    let servers = vec![Echo::silent(), Echo::silent()];
    let mut sim = Sim::new(Transport::Stream, (&network, &network), Caller::default(), servers, Some);
    let [stream, datagrams] = [PEER, Peer(1)];
    sim.command(Ask::Open(stream, Address::Node(1)));
    assert_eq!(run(&mut sim).len(), 1);
    sim.set_opening(0, Transport::Datagram);
    sim.command(Ask::Open(datagrams, Address::Node(2)));
    assert_eq!(run(&mut sim), [(sim.now(), CallerEvent::Opened(datagrams))], "at once: there is nobody to ask");
    for peer in [stream, datagrams] {
        (0..100).for_each(|byte| sim.command(Ask::Send(peer, vec![byte])));
    }
    run(&mut sim);
    assert_eq!(sim.server(1).received, 100);
    let lost = sim.counters(0, 2).lost;
    assert!(lost > 20 && sim.server(2).received == 100 - lost, "{lost}");
}

#[test]
fn each_transport_has_its_own_headers_on_the_wire() {
    for (transport, headers) in [(Transport::Datagram, DATAGRAM_HEADERS), (Transport::Stream, STREAM_HEADERS)] {
        let network = Network { rate: Some(8_000_000), ..ideal(0) };
        let mut sim = Sim::new(Transport::Stream, (&network, &network), Caller::default(), vec![Echo::asking()], Some);
        sim.set_opening(0, transport);
        sim.command(Ask::Open(PEER, Address::Node(1)));
        run(&mut sim);
        let before = sim.now();
        sim.command(Ask::Send(PEER, vec![1]));
        run(&mut sim);
        assert_eq!(sim.now() - before, at_us(2 * (1 + u64::from(headers))) - at_us(0));
    }
}
