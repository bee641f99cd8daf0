//! Updates over the simulated network: each is received, lost or skipped, and counted as one of these.

use core::time::Duration;
use hodo_machine::{Address, Bytes, Instant};
use hodo_raw::{Client, ClientConfig, Command, Event, Noticed, Server, ServerConfig, ServerEvent, Transport};
use hodo_sim::{Death, Network, Site, World};

const SECOND: Duration = Duration::from_secs(1);
const SERVER: u32 = 0;
const TRANSPORTS: [Transport; 2] = [Transport::Stream, Transport::Datagram];

/// A server at the first node and clients at the others, each with one channel.
struct Publishing {
    world: World,
    clients: Vec<Site<Client>>,
}

impl Publishing {
    fn new(transport: Transport, network: &Network, clients: usize) -> Publishing {
        let mut world = World::new(network);
        let server = Server::new(ServerConfig {
            transport,
            size_max: 1 << 20,
            pending_max: 1 << 10,
            greeting_timeout: SECOND,
            silence_timeout: 60 * SECOND,
            lease: SECOND,
            secret: [3, 4],
        });
        let site = world.add_site::<Server>();
        world.start_with(site, server, |event| match event {
            ServerEvent::ReportAsked(_) => None,
            ServerEvent::Misbehaved(_, error) => panic!("{error}"),
        });
        let client = || {
            Client::new(ClientConfig {
                transport,
                address: Address::Node(SERVER),
                channels: 1,
                size_max: 1 << 20,
                acknowledge_every: 1,
                unbounded: false,
                greeting_timeout: SECOND,
                timeout: SECOND / 4,
                reconnect: false,
                check: false,
                is_group: false,
                payload: Bytes::new(),
            })
        };
        let clients = (0..clients).map(|_| {
            let site = world.add(client());
            world.set_opening(site.node, transport);
            site
        });
        let clients = clients.collect();
        Publishing { world, clients }
    }

    /// Subscribes a client to this many updates of 1,000 bytes a second.
    fn subscribe(&mut self, client: usize, per_second: u64) {
        let rate_micro = per_second * 1_000_000;
        let ask = Command::Subscribe { channel: 0, size: 1000, rate_micro, first_after: Duration::ZERO, queue: 16 };
        self.world.command(self.clients[client], ask);
    }

    /// Lets this time pass. Returns the times of the updates that each client received.
    fn pass(&mut self, span: Duration) -> Vec<Vec<u64>> {
        let until = self.world.now() + span;
        let mut took = vec![Vec::new(); self.clients.len()];
        while let Some(node) = self.world.turn(until) {
            let client = node as usize - 1;
            while let Some(event) = self.world.take_event(self.clients[client]) {
                match event {
                    Event::Update { channel: 0, took_ns } => took[client].push(took_ns),
                    Event::Ready { .. } | Event::Unsubscribed { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        took
    }

    fn noticed(&self, client: usize) -> Noticed {
        self.world.machine(self.clients[client]).expect("it runs").noticed()
    }

    /// Ends the subscriptions. Returns the updates that came until then.
    fn unsubscribe(&mut self) -> Vec<Vec<u64>> {
        self.clients.iter().for_each(|client| assert!(self.world.command(*client, Command::Unsubscribe)));
        let came = self.pass(SECOND);
        assert!(self.pass(SECOND).iter().all(Vec::is_empty), "something came after the end");
        came
    }

    /// Returns the packets that the server has sent to a client.
    fn sent_to(&self, client: usize, transport: Transport) -> u64 {
        let carrier = match transport {
            Transport::Stream => hodo_sim::Transport::Stream,
            Transport::Datagram => hodo_sim::Transport::Datagram,
        };
        self.world.counters(carrier, SERVER, self.clients[client].node).sent
    }
}

fn clean() -> Network {
    Network { delay: Duration::from_micros(50), cost: Duration::from_nanos(200), ..Network::default() }
}

#[test]
fn updates_come_at_their_rate_and_tell_their_age() {
    for transport in TRANSPORTS {
        let mut there = Publishing::new(transport, &clean(), 1);
        there.subscribe(0, 1_000);
        there.pass(SECOND / 2);
        let took = &there.pass(2 * SECOND)[0];
        assert!((1_999..=2_001).contains(&took.len()), "{transport:?}: {}", took.len());
        // The way, and the processors of both sides; a renewal may keep one of these.
        assert!(took.iter().all(|took_ns| (50_000..52_000).contains(took_ns)), "{transport:?}: {took:?}");
        there.unsubscribe();
        assert_eq!(there.noticed(0), Noticed::default());
    }
}

#[test]
fn without_a_rate_a_line_is_filled_and_nothing_is_skipped() {
    for transport in TRANSPORTS {
        let mut there = Publishing::new(transport, &Network { rate: Some(1_000_000_000), ..clean() }, 1);
        there.subscribe(0, 0);
        there.pass(SECOND / 10);
        let count = there.pass(SECOND / 10)[0].len();
        let bits = count as f64 * 8_000.0 * 10.0;
        assert!((0.9e9..1e9).contains(&bits), "{transport:?}: {bits}");
        let found = there.noticed(0);
        assert_eq!((found.overrun, found.lost > 0), (0, transport == Transport::Datagram), "{found:?}");
        there.unsubscribe();
    }
}

#[test]
fn every_update_is_received_lost_or_skipped() {
    let network = Network { loss: 0.05, duplicate: 0.02, jitter: Duration::from_micros(300), ..clean() };
    for seed in 0..4 {
        let mut there = Publishing::new(Transport::Datagram, &Network { seed, ..network.clone() }, 1);
        there.subscribe(0, 10_000);
        let mut came = there.pass(3 * SECOND)[0].len();
        came += there.unsubscribe()[0].len();
        let found = there.noticed(0);
        let due = came as u64 + found.lost + found.overrun;
        // Those before the first answer to SUBSCRIBE do not count, which may be lost a few times.
        assert!((29_000..30_800).contains(&due), "{due}: {found:?}");
        assert!((0.04..0.06).contains(&(found.lost as f64 / due as f64)), "{found:?}");
        assert!(found.duplicated > 300 && found.reordered > 100, "{found:?}");
        assert_eq!(found.overrun, 0);
    }
}

#[test]
fn a_subscriber_that_cannot_renew_is_dropped_and_then_goes_on() {
    let mut there = Publishing::new(Transport::Datagram, &clean(), 1);
    there.subscribe(0, 1_000);
    there.pass(SECOND);
    let client = there.clients[0].node;
    there.world.set_network(client, SERVER, &Network { loss: 1.0, ..clean() });
    let came = there.pass(3 * SECOND)[0].len();
    assert!((700..=1_001).contains(&came), "the rest of the lease: {came}");
    there.world.set_network(client, SERVER, &clean());
    let came = there.pass(SECOND)[0].len();
    assert!((900..=1_020).contains(&came), "{came}");
    let found = there.noticed(0);
    assert!((1_900..2_400).contains(&found.overrun) && found.lost == 0, "{found:?}");
}

#[test]
fn a_dead_subscriber_is_sent_nothing_when_its_lease_is_over() {
    for transport in TRANSPORTS {
        let mut there = Publishing::new(transport, &clean(), 2);
        there.subscribe(0, 1_000);
        there.subscribe(1, 1_000);
        there.pass(SECOND);
        let death = if transport == Transport::Datagram { Death::Silent } else { Death::Reset };
        there.world.kill(there.clients[0].node, death);
        there.pass(SECOND + SECOND / 10);
        let sent = there.sent_to(0, transport);
        assert!((999..=1_001).contains(&there.pass(SECOND)[1].len()), "the other one does not notice");
        assert_eq!(there.sent_to(0, transport), sent, "{transport:?}");
    }
}

#[test]
fn a_slow_reader_skips_updates_and_the_other_does_not() {
    let network = Network { buffer_bytes: 128 << 10, ..clean() };
    let mut there = Publishing::new(Transport::Stream, &network, 2);
    there.subscribe(0, 10_000);
    there.subscribe(1, 10_000);
    let mut came = [0, 0];
    let mut count = |took: Vec<Vec<u64>>| (0..2).for_each(|client| came[client] += took[client].len() as u64);
    count(there.pass(SECOND));
    there.world.stop(there.clients[0].node);
    count(there.pass(SECOND));
    there.world.resume(there.clients[0].node);
    count(there.pass(SECOND));
    let [slow, other] = [0, 1].map(|client| there.noticed(client));
    assert_eq!(other, Noticed::default());
    assert!(came[1].abs_diff(30_000) < 10, "{came:?}");
    // What the stream held meanwhile came late: the buffers of both ends, and the queue of 16.
    assert!((9_300..9_800).contains(&slow.overrun) && slow.lost == 0, "{slow:?}");
    assert!((came[0] + slow.overrun).abs_diff(30_000) < 10, "{came:?} {slow:?}");
}

#[test]
fn one_subscription_after_another_counts_by_itself() {
    for transport in TRANSPORTS {
        let mut there = Publishing::new(transport, &Network { jitter: Duration::from_micros(20), ..clean() }, 1);
        for round in 1..4 {
            there.subscribe(0, round * 1_000);
            let came = there.pass(SECOND)[0].len() as u64;
            assert!(came.abs_diff(round * 1_000) < 5, "{transport:?} {round}: {came}");
            there.unsubscribe();
        }
        let found = there.noticed(0);
        assert_eq!((found.lost, found.overrun, found.duplicated), (0, 0, 0));
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    let run = || {
        let mut there = Publishing::new(Transport::Datagram, &Network { loss: 0.1, ..clean() }, 2);
        there.subscribe(0, 5_000);
        there.subscribe(1, 0);
        (there.pass(SECOND / 20), there.world.now() > Instant::ZERO, there.noticed(0), there.noticed(1))
    };
    assert_eq!(run(), run());
}
