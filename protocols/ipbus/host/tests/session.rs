//! Sessions with devices in software, over real sockets.

use crate::board;

use board::Board;
use hodo_io::Clock;
use hodo_ipbus::device::{Register, Registers};
use hodo_ipbus::wire::Version;
use hodo_ipbus_host::{Access, At, Files, Session, SessionError, SessionSettings, connections, table};
use hodo_machine::Transport;
use hodo_uhal::table::Mask;
use std::sync::Arc;
use std::time::Duration;

const EVERY_WAY: [(Transport, Version); 4] = [
    (Transport::Datagram, Version::V2_0),
    (Transport::Stream, Version::V2_0),
    (Transport::Datagram, Version::V1_3),
    (Transport::Stream, Version::V1_3),
];

fn registers() -> Registers {
    let registers = [
        Register::word(0x8).holding(0xCAFE_0001).read_only(),
        Register::fifo(0x100, 4096),
        Register::word(0x9).failing(hodo_ipbus::device::Failure::Error),
    ];
    Registers::new(registers).expect("the registers are apart")
}

fn session(board: &Board) -> Session {
    Session::open(&board.uri(), &SessionSettings::default()).expect("a session")
}

fn table() -> Arc<table::Table> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/board.xml");
    Arc::new(table::Table::read(file, &Files, &table::Limits::default()).unwrap_or_else(|why| panic!("{why}")))
}

/// Checks that the refusal is reported for the first access of a connection, and again for further ones.
#[test]
fn an_address_where_nobody_listens_is_told_of_at_once() {
    let clock = Clock::start();
    let settings = SessionSettings { timeout: Duration::from_secs(60), ..SessionSettings::default() };
    for (transport, version) in EVERY_WAY {
        for reliable in [None, Some(true), Some(false)] {
            let gone = Board::start(transport, version, registers()).uri();
            let mut session = Session::open(&gone, &SessionSettings { reliable, ..settings }).expect("a session");
            let began = clock.now();
            for _ in 0..3 {
                session.queue(Access::read(0x10)).unwrap();
                let why = session.call(Access::read(0x8)).unwrap_err().to_string();
                assert!(
                    why.contains(&gone.to_string()) && why.contains("refused") && why.contains("is it on"),
                    "{why}"
                );
            }
            let took = clock.now() - began;
            assert!(took < settings.timeout / 4, "{gone}: {took:?}");
        }
    }
}

#[test]
fn queued_accesses_end_together() {
    for (transport, version) in EVERY_WAY {
        let board = Board::start(transport, version, registers());
        let mut session = session(&board);
        let id = session.queue(Access::read(0x8)).unwrap();
        let written = session.queue(Access::write(0x1000, 7)).unwrap();
        let sum = session.queue(Access::rmw_sum(0x1000, 3)).unwrap();
        let bits = session.queue(Access::rmw_bits(0x1000, 0xF0, 0x5)).unwrap();
        let after = session.queue(Access::read(0x1000)).unwrap();
        assert_eq!(session.take(id), Err(SessionError::NotDone));
        session.dispatch().unwrap();
        assert_eq!(session.take(id), Ok(0xCAFE_0001));
        assert_eq!(session.take(written), Ok(()));
        let old = version == Version::V1_3;
        assert_eq!(session.take(sum), Ok(if old { 10 } else { 7 }));
        assert_eq!(session.take(bits), Ok(if old { 5 } else { 10 }));
        assert_eq!(session.take(after), Ok(5));
        assert_eq!(session.take(after), Err(SessionError::Gone));
    }
}

#[test]
fn blocks_and_fifos_go_both_ways() {
    for (transport, version) in EVERY_WAY {
        let board = Board::start(transport, version, registers());
        let mut session = session(&board);
        let data: Vec<u32> = (0..3000_u32).map(|word| word.wrapping_mul(0x9E37_79B9)).collect();
        session.queue(Access::write_block(0x2000, data.clone())).unwrap();
        session.queue(Access::write_fifo(0x100, data.clone())).unwrap();
        session.dispatch().unwrap();
        let block = session.queue(Access::read_block(0x2000, 3000)).unwrap();
        let part = session.queue(Access::read_block_at(0x2000, 2990, 10).into(Vec::with_capacity(10))).unwrap();
        let fifo = session.queue(Access::read_fifo(0x100, 3000)).unwrap();
        session.dispatch().unwrap();
        assert!(session.take(block) == Ok(data.clone()), "a block over many packets");
        assert_eq!(session.take(part).unwrap(), data[2990..]);
        assert!(session.take(fifo) == Ok(data), "a FIFO keeps the order");
    }
}

#[test]
fn nodes_have_masks_and_permissions() {
    let board = Board::start(Transport::Datagram, Version::V2_0, registers());
    let mut session = session(&board).with_table(table());
    session.call(Access::write("control.mode", 0xA)).unwrap();
    session.call(Access::write("control.enable", 1)).unwrap();
    assert_eq!(session.call(Access::read("control")).unwrap(), 0xA2);
    assert_eq!(session.call(Access::read("control.mode")).unwrap(), 0xA);
    assert_eq!(session.call(Access::read(At::Bits(0x20, Mask(0xF0)))).unwrap(), 0xA);
    session.call(Access::write(At::Bits(0x20, Mask(0xF0)), 0x5)).unwrap();
    assert_eq!(session.call(Access::read(0x20)).unwrap(), 0x52);
    session.call(Access::write_block("ram", vec![1, 2, 3])).unwrap();
    assert_eq!(session.call(Access::read_block_at("ram", 1, 2)).unwrap(), [2, 3]);
    session.call(Access::write_block("port", vec![4, 5, 6])).unwrap();
    assert_eq!(session.call(Access::read_block("port", 3)).unwrap(), [4, 5, 6]);

    let refused = |session: &mut Session, access| session.queue(access).unwrap_err().to_string();
    let why = refused(&mut session, Access::write("control.mode", 0x10));
    assert_eq!(why, "0x10 does not fit node `control.mode`, whose mask is 0x000000F0; the largest value is 0xF");
    let why = refused(&mut session, Access::write(At::Bits(0x20, Mask(0xF0)), 0x10));
    assert_eq!(why, "0x10 does not fit the bits 0x000000F0 of 0x00000020; the largest value is 0xF");
    assert!(refused(&mut session, Access::write("id", 1)).contains("`id` may not be written"));
    assert!(refused(&mut session, Access::write("control.none", 1)).contains("`control` has enable, mode"));
    assert!(matches!(session.queue(Access::read_block("ram", 17)), Err(SessionError::Access(_))));
    assert!(session.queue(Access::read("control")).is_ok(), "what is refused leaves no trace");
}

#[test]
fn a_failure_names_node_address_and_device() {
    let board = Board::start(Transport::Datagram, Version::V2_0, registers());
    let mut session = session(&board).with_table(table());
    let before = session.queue(Access::read("id")).unwrap();
    let broken = session.queue(Access::read("broken")).unwrap();
    let why = session.dispatch().unwrap_err();
    let uri = board.uri();
    assert_eq!(
        why.to_string(),
        format!(
            "cannot read node `broken` at 0x00000009 of {uri}: bus error on read: nothing to be read at that address"
        )
    );
    assert!(!why.is_usage());
    assert_eq!(session.take(before), Ok(0xCAFE_0001), "what came before it is there");
    assert_eq!(session.take(broken), Err(why));
    assert!(session.call(Access::write(0x9, 0)).is_err());
    assert_eq!(session.call(Access::read(0x8)), Ok(0xCAFE_0001), "the session goes on");
}

#[test]
fn what_nobody_took_is_forgotten_with_the_next_dispatch() {
    let board = Board::start(Transport::Stream, Version::V2_0, registers());
    let mut session = session(&board);
    let old = session.queue(Access::read(0x8)).unwrap();
    session.dispatch().unwrap();
    let new = session.queue(Access::read(0x8)).unwrap();
    assert_eq!(session.take(old), Err(SessionError::Gone));
    session.dispatch().unwrap();
    assert_eq!(session.take(new), Ok(0xCAFE_0001));
}

#[test]
fn many_accesses_need_no_dispatch_in_between() {
    let board = Board::start(Transport::Datagram, Version::V2_0, registers());
    let mut session = session(&board);
    let queued: Vec<_> = (0..100_000).map(|_| session.queue(Access::rmw_sum(0x1000, 1)).unwrap()).collect();
    session.dispatch().unwrap();
    for (count, queued) in (0..).zip(queued) {
        assert_eq!(session.take(queued), Ok(count), "each once, in order");
    }
}

#[test]
fn who_polls_does_not_wait() {
    let board = Board::start(Transport::Datagram, Version::V2_0, registers());
    let mut session = session(&board);
    for round in 0..10 {
        let queued = session.queue(Access::rmw_sum(0x1000, 1)).unwrap();
        session.send().unwrap();
        let clock = hodo_io::Clock::start();
        let end = clock.now() + Duration::from_secs(20);
        while session.poll().unwrap() > 0 {
            assert!(clock.now() < end, "no answer");
            std::thread::yield_now();
        }
        assert_eq!(session.take(queued), Ok(round));
    }
}

#[test]
fn a_device_that_is_not_there_fails_in_time() {
    let settings = SessionSettings { timeout: Duration::from_millis(200), ..SessionSettings::default() };
    // Bound, and never answering; so no port of anybody else's is asked.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = silent.local_addr().unwrap();
    let tcp = deaf.local_addr().unwrap();
    for uri in [
        format!("ipbusudp-2.0://{udp}"),
        format!("ipbusudp-2.0://{udp}?reliable=false"),
        format!("ipbusudp-1.3://{udp}"),
        format!("ipbustcp-2.0://{tcp}"),
        format!("chtcp-2.0://{tcp}?target=127.0.0.1:50001"),
    ] {
        let mut session = Session::open(&uri.parse().unwrap(), &settings).unwrap();
        let clock = hodo_io::Clock::start();
        let started = clock.now();
        let why = session.call(Access::read(0x1000)).unwrap_err().to_string();
        assert!(why.starts_with(&format!("cannot read 0x00001000 of {uri}: ")), "{why}");
        let span = clock.now() - started;
        assert!(span < Duration::from_secs(10), "{uri}: {span:?}");
    }
}

#[test]
fn a_connection_file_leads_to_the_device_and_its_table() {
    let board = Board::start(Transport::Datagram, Version::V2_0, registers());
    let folder = env!("CARGO_TARGET_TMPDIR");
    let file = format!("{folder}/connections-{}.xml", std::process::id());
    let tables = concat!("file://", env!("CARGO_MANIFEST_DIR"), "/tests/data/board.xml");
    let uri = board.uri();
    let text = format!(
        "<connections><connection id='board' uri='{uri}' address_table='{tables}'/>\
         <connection id='lost' uri='{uri}' address_table='file://none.xml'/></connections>"
    );
    std::fs::write(&file, text).unwrap();
    let all = connections::Connections::read(&format!("file://{file}"), &Files, &table::Limits::default()).unwrap();
    let settings = SessionSettings::default();
    let mut session = Session::of_connection(all.connection("board").unwrap(), &settings).unwrap();
    assert_eq!(session.call(Access::read("id")), Ok(0xCAFE_0001));
    let lost = Session::of_connection(all.connection("lost").unwrap(), &settings).map(|_| ()).unwrap_err();
    assert!(lost.is_usage() && lost.to_string().contains("none.xml"), "{lost}");
    std::fs::remove_file(file).unwrap();
}
