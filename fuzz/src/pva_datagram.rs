use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output};
use hodo_pva::discovery::{FinderConfig, LOCAL_GROUP, Searcher, SearcherCommand, Subnet, Target};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, DiscoveryConfig, LONGER_MAX, Server, ServerConfig};
use hodo_pva::{Scalar, Value};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The UDP port of either machine, and the one from which searches are passed on.
const PORT: u16 = 5076;
const PASSING: u16 = 40_000;
/// The bytes of an origin tag.
const TAG: usize = 24;

/// Hands datagrams to a server and to a client, and checks that nobody gets more than is allowed. Each is a byte that says where it comes
/// from, a length, and so many bytes.
pub fn datagram(input: &[u8]) {
    let group = Some(Address::UdpFrom(PASSING, (LOCAL_GROUP, PORT).into()));
    let near = vec![Subnet::new(Ipv4Addr::new(10, 0, 0, 1).into(), 24)];
    let discovery =
        DiscoveryConfig { from: PORT, near: near.clone(), group: group.clone(), ..DiscoveryConfig::default() };
    let mut server = Server::new(ServerConfig { discovery, ..ServerConfig::default() });
    for name in ["a", "b:long:enough"] {
        server.serve(name.into(), Value::of(Normative::scalar(Scalar::F64).build()), Access::ReadOnly);
    }
    let to = Address::UdpFrom(PORT, SocketAddr::from(([10, 0, 0, 255], PORT)));
    let targets = vec![Target { address: to, is_unicast: false }];
    let mut client =
        Searcher::new(FinderConfig { targets, from: PORT, near, group, beacons_max: 10, ..FinderConfig::default() });
    let mut now = Instant::from_nanos(60_000_000_000);
    let search = SearcherCommand::Search { number: 1, name: "a".into(), all: false };
    client.handle(now, Input::Command(search));
    let mut rest = input;
    while let Some((&[from, length], behind)) = rest.split_first_chunk() {
        let (datagram, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        now = now + Duration::from_millis(u64::from(from));
        let ends = ends(from);
        hand(&mut server, now, &ends, datagram, true);
        hand(&mut client, now, &ends, datagram, false);
        assert!(client.finder().servers() <= 10);
    }
}

/// Returns the ends of an exchange: a host of the subnet, one that is far, this host, or the group on the loopback.
fn ends(from: u8) -> Ends {
    let (here, there): (Ipv4Addr, Ipv4Addr) = match from % 4 {
        0 => ([10, 0, 0, 1].into(), [10, 0, 0, 9].into()),
        1 => ([10, 0, 0, 255].into(), [192, 0, 2, 7].into()),
        2 => (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST),
        _ => (LOCAL_GROUP, Ipv4Addr::LOCALHOST),
    };
    let port = if from & 4 == 0 { 7000 } else { PASSING };
    Ends::new(Address::Udp((here, PORT).into()), Address::Udp((there, port).into()))
}

/// Hands a datagram to a machine, and carries out what it wants.
fn hand<M: Machine>(machine: &mut M, now: Instant, ends: &Ends, datagram: &[u8], answers: bool) {
    let mut out = Outbox::new();
    assert!(!machine.admits(now, ends, datagram, &mut out), "nothing is kept of a stranger");
    assert!(out.len() <= datagram.len() && (answers || out.is_empty()));
    out.clear();
    machine.handle(now, Input::Elapsed);
    let (mut open, mut went) = (None, 0);
    loop {
        match machine.poll(now, &mut out) {
            Output::Open(_, address) => open = Some(address),
            Output::Close(_) => open = None,
            Output::Send(_) => {
                let to = open.as_ref().and_then(Address::ip).expect("it is open");
                let is_passed_on = to.ip() == IpAddr::V4(LOCAL_GROUP);
                if answers && is_passed_on {
                    assert!(out.len() <= datagram.len() + TAG);
                } else if answers {
                    let is_near = to.ip().is_loopback() || to.to_string().starts_with("10.0.0.");
                    assert!(out.len() <= datagram.len() + if is_near { LONGER_MAX } else { 0 }, "{to}");
                    went += out.len();
                }
                out.clear();
            }
            Output::Event(_) => {}
            Output::Idle(next) => {
                assert!(next.is_none_or(|next| next > now), "it waits");
                break;
            }
        }
    }
    // A search has 37 bytes at least, without names and protocols, and its answer 12 more.
    assert!(went <= datagram.len() + LONGER_MAX * (datagram.len() / 37));
}
