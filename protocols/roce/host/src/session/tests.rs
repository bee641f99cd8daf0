mod stock;

use super::*;
use crate::perftest::{Atomic, Test};
use crate::{Gid, WaitMode};
use hodo_roce::Status;
use std::net::UdpSocket;
use stock::Stock;

fn session(wait: WaitMode) -> Session {
    let patience = Duration::from_secs(10);
    let parameters = PingPong {
        size: 10_000,
        iterations: 300,
        wait,
        checks: true,
        send_entries: 3,
        patience,
        ..PingPong::default()
    };
    Session::new(Backend::SharedMemory, parameters)
}

#[test]
fn a_server_takes_size_and_number_of_the_messages_from_a_client_of_this_program() {
    let mut client = session(WaitMode::Events);
    (client.parameters.size, client.parameters.iterations) = (64, 1000);
    let (took, served, ..) = run(&client, WaitMode::Events);
    assert_eq!(took.map(|took| (took.iterations, took.bytes)), Some((1000, 128_000)));
    assert_eq!(served.map(|took| (took.iterations, took.bytes)), Some((1000, 128_000)));
}

/// Runs a session with a server that expects a ping-pong. Returns what each end took, and the rows and ends that the client told of.
fn run(client: &Session, wait: WaitMode) -> (Option<Took>, Option<Took>, Vec<Row>, usize) {
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || session(wait).server(&listener, &mut |_| {}).unwrap());
    let (mut rows, mut ends) = (Vec::new(), 0);
    let told = &mut |progress: Progress<'_>| match progress {
        Progress::Row(row) => rows.push(*row),
        Progress::Local(_) | Progress::Remote(_) => ends += 1,
        Progress::Stranger(why) => panic!("{why}"),
    };
    let took = client.client("127.0.0.1", port, told).unwrap();
    (took, server.join().unwrap(), rows, ends)
}

#[test]
fn two_ends_exchange_messages_through_shared_memory() {
    for wait in [WaitMode::Poll, WaitMode::Events, WaitMode::SpinThenBlock(Duration::from_micros(20))] {
        let (took, served, _, ends) = run(&session(wait), wait);
        let took = took.unwrap();
        assert_eq!((took.iterations, took.bytes, ends), (300, 6_000_000, 2));
        assert_eq!(served.unwrap().iterations, 300);
    }
}

/// Returns a test of this kind.
fn plan(test: Test, wait: WaitMode) -> Perftest {
    let is_atomic = matches!(test, Test::AtomicLatency | Test::AtomicBandwidth);
    Perftest {
        test,
        atomic: Atomic::CompareSwap,
        sizes: if is_atomic { vec![8] } else { vec![1, 64, 70_000] },
        iterations: 300,
        send_depth: 16,
        receive_depth: 32,
        inline_bytes: 0,
        checks: true,
        wait,
        patience: Duration::from_secs(10),
    }
}

#[test]
fn every_operation_is_measured_and_every_byte_checked() {
    for (test, wait) in Test::ALL.iter().copied().zip([WaitMode::Poll, WaitMode::Events].into_iter().cycle()) {
        let plan = plan(test, wait);
        let client = Session { perftest: Some(plan.clone()), ..session(wait) };
        let (took, served, rows, ends) = run(&client, wait);
        assert_eq!((took, served, ends, rows.len()), (None, None, 2, plan.sizes.len()), "{}", test.name());
        assert!(rows.iter().all(|row| matches!(row, Row::Latency(_)) == test.is_latency()));
    }
}

/// Runs this program's end and a stock one. Returns what ours says, and what the stock one finds.
fn beside_stock(
    side: Side,
    checks: [bool; 2],
    spoil: Option<usize>,
) -> (Result<Option<Took>, SessionError>, Result<bool, Status>) {
    let mut ours = soft();
    ours.parameters.checks = checks[0];
    let stock = Stock { size: 10_000, iterations: 50, checks: checks[1], spoil };
    let mut device = soft_device(&ours);
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let to = listener.local_addr().unwrap();
    match side {
        Side::Client => {
            let far = std::thread::spawn(move || stock.server(&mut device, &listener));
            let said = ours.client("127.0.0.1", to.port(), &mut |_| {});
            (said, far.join().unwrap())
        }
        Side::Server => {
            let far = std::thread::spawn(move || stock.client(&mut device, to));
            let said = ours.server(&listener, &mut |_| {});
            (said, far.join().unwrap())
        }
    }
}

#[test]
fn no_corruption_is_found_beside_a_stock_end_that_checks_or_not() {
    for checks in [[true, true], [true, false], [false, false]] {
        let (said, found) = beside_stock(Side::Server, checks, None);
        assert_eq!(said.unwrap().map(|took| took.iterations), Some(50), "{checks:?}");
        assert_eq!(found, Ok(true), "{checks:?}");
        let (said, found) = beside_stock(Side::Client, checks, None);
        assert_eq!(said.unwrap().map(|took| took.iterations), Some(50), "{checks:?}");
        assert_eq!(found, Ok(true), "{checks:?}");
    }
}

#[test]
fn corruption_by_a_stock_end_is_found() {
    for side in [Side::Client, Side::Server] {
        let (said, _) = beside_stock(side, [true, true], Some(4097));
        let said = said.unwrap_err();
        assert!(said.to_string().contains("byte 4097 is 0x7a, not 0x7b"), "{said}");
    }
}

#[test]
fn two_ends_of_this_program_agree_on_what_they_check() {
    for checks in [[true, false], [false, true], [true, true]] {
        let mut client = session(WaitMode::Poll);
        client.parameters.checks = checks[0];
        let mut server = client.clone();
        server.parameters.checks = checks[1];
        let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || server.server(&listener, &mut |_| {}));
        let took = client.client("127.0.0.1", port, &mut |_| {}).unwrap();
        assert_eq!(took.map(|took| took.iterations), Some(300), "{checks:?}");
        assert!(server.join().unwrap().is_ok(), "{checks:?}");
    }
}

/// Returns a session of the software adapter, at a UDP port that is free on loopback.
fn soft() -> Session {
    let probe = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let udp_port = probe.local_addr().unwrap().port();
    let mut soft =
        Session { backend: Backend::Soft, udp_port, reliability: stock::RELIABILITY, ..session(WaitMode::Poll) };
    soft.parameters.iterations = 50;
    soft
}

fn soft_device(ours: &Session) -> SoftDevice {
    let address = Ipv4Addr::new(127, 0, 0, 222).into();
    let settings = SoftSettings {
        address: SocketAddr::new(address, ours.udp_port),
        far_port: ours.udp_port,
        ..SoftSettings::at(address)
    };
    SoftDevice::open(settings, Clock::start()).unwrap()
}

/// Lets a stock client, whose messages have this size, send one to a server of this program that expects 10,000 bytes. Returns what both
/// find.
fn refused(size: u32, spoil: Option<usize>) -> (SessionError, Result<bool, Status>) {
    let ours = soft();
    let mut device = soft_device(&ours);
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let stock = Stock { size, iterations: 300, checks: true, spoil };
    let far = std::thread::spawn(move || stock.client(&mut device, to));
    (ours.server(&listener, &mut |_| {}).unwrap_err(), far.join().unwrap())
}

#[test]
fn an_end_that_fails_refuses_the_message_before_it_goes() {
    let (said, found) = refused(20_000, None);
    assert!(said.to_string().contains("local length error"), "{said}");
    assert_eq!(found, Err(Status::RemoteInvalidRequest));
    let (said, found) = refused(5_000, None);
    assert!(said.to_string().contains("message 0 has 5000 bytes, not 10000"), "{said}");
    assert_eq!(found, Err(Status::RemoteOperation));
    let (said, found) = refused(10_000, Some(3));
    assert!(said.to_string().contains("byte 3 is 0x7a"), "{said}");
    assert_eq!(found, Err(Status::RemoteOperation));
}

#[test]
fn silence_is_reported_with_what_may_cause_it() {
    let mut ours = soft();
    // Nobody is at the other port: as behind a firewall.
    let far = soft_device(&ours);
    ours.udp_port = soft().udp_port;
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    ours.reliability.timeout = 8;
    let stock = Stock { size: 10_000, iterations: 300, checks: true, spoil: None };
    let server = std::thread::spawn(move || stock.deaf_server(far, &listener));
    let said = ours.client("127.0.0.1", port, &mut |_| {}).unwrap_err().to_string();
    server.join().unwrap();
    assert!(said.contains("retry counter exceeded"), "{said}");
    let expected = format!("nothing came back from UDP 127.0.0.222:{}: a firewall, or another port", ours.udp_port);
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_server_is_not_taken_for_an_adapter_that_cannot_be_opened() {
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let mut ours = soft();
    ours.address = Some(Ipv4Addr::new(192, 0, 2, 1).into());
    let said = ours.client("127.0.0.1", port, &mut |_| {}).unwrap_err().to_string();
    assert!(said.contains("choose an address of this host"), "{said}");
    let mut ours = session(WaitMode::Poll);
    ours.parameters.send_entries = u32::MAX;
    assert!(ours.client("127.0.0.1", port, &mut |_| {}).is_err());
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// The first end to come has the UDP port; the others tell each other of theirs.
#[test]
fn any_number_of_ends_share_an_address_of_this_host() {
    let mut ours = Session { address: Some(Ipv4Addr::LOCALHOST.into()), ..soft() };
    ours.parameters.wait = WaitMode::Events;
    let mut threads = Vec::new();
    for test in [None, Some(Test::WriteBandwidth), None] {
        let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let perftest = test.map(|test| plan(test, WaitMode::Events));
        let (server, client) = (ours.clone(), Session { perftest, ..ours.clone() });
        threads.push(std::thread::spawn(move || server.server(&listener, &mut |_| {}).map(drop)));
        threads.push(std::thread::spawn(move || client.client("127.0.0.1", port, &mut |_| {}).map(drop)));
    }
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn a_stock_end_that_cannot_be_told_of_another_port_is_an_error_that_says_so() {
    let ours = Session { address: Some(Ipv4Addr::LOCALHOST.into()), ..soft() };
    let _other = UdpSocket::bind((Ipv4Addr::LOCALHOST, ours.udp_port)).unwrap();
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
    let mut exchange = Exchange::connect(listener.local_addr().unwrap(), Duration::from_secs(30)).unwrap();
    exchange.tell(&AddressOfQueuePair { lid: 0, number: 5, psn: 6, gid: Gid::of(Ipv4Addr::LOCALHOST.into()) }).unwrap();
    let said = ours.server(&listener, &mut |_| {}).unwrap_err().to_string();
    let expected = format!("127.0.0.1 sends to UDP 127.0.0.1:{} and cannot be told of another port", ours.udp_port);
    assert!(said.contains(&expected) && said.contains("this user has that port and does not share it"), "{said}");
}
