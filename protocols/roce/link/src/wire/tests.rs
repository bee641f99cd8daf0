use super::*;
use crate::options::LinkOptions;
use hodo_measure::limits::{Ip, Line, Packing, Path, Transport};
use hodo_tester::Catalog;

const ROCE: Catalog = Catalog::new(&[&crate::ROCE]);

fn options(text: &str) -> LinkOptions {
    LinkOptions::of(&ROCE.uri(text).unwrap()).unwrap()
}

fn wire(text: &str, mode: Mode, size: u32) -> OnTheWire {
    on_the_wire(&options(text), &Plan::one(mode, size))
}

fn path(ip: Ip) -> Path {
    Path::new(Line::new(1e11, 9000), ip, Transport::Udp).unwrap()
}

/// Compares with the frames of the kernel's rxe in `user_vs_rxe.pcap`: from Ethernet on, a SEND ONLY of 64 bytes has 122 bytes and
/// an ACK has 62.
#[test]
fn packets_are_as_long_as_those_of_the_captures() {
    let headers = 14 + 20 + 8;
    let one = wire("roce", Mode::Send, 64);
    assert_eq!(one.messages, [Messages { count: 1, out_bytes: 122 - headers, back_bytes: 62 - headers }]);
    let many = wire("roce", Mode::Send, 4096);
    let full = 12 + 1024 + 4;
    assert_eq!(many.messages.iter().map(|part| part.count).sum::<u64>(), 4);
    assert!(many.messages.iter().all(|part| part.out_bytes == full), "{many:?}");
    assert_eq!(many.back().bytes, 20.0);
}

/// Worked by hand: a packet of 1024 takes 8 + 14 + 20 + 8 + 12 + 1024 + 4 + 4 + 12 = 1106 byte times on Ethernet.
#[test]
fn the_share_of_a_line_is_as_worked_by_hand() {
    for (mtu, ip, share) in [
        (256, Ip::V4, 256.0 / 338.0),
        (512, Ip::V4, 512.0 / 594.0),
        (1024, Ip::V4, 1024.0 / 1106.0),
        (2048, Ip::V4, 2048.0 / 2130.0),
        (4096, Ip::V4, 4096.0 / 4178.0),
        (1024, Ip::V6, 1024.0 / 1126.0),
        (4096, Ip::V6, 4096.0 / 4198.0),
    ] {
        let sends = wire(&format!("roce://?mtu={mtu}"), Mode::Send, 65_536).cost(&path(ip), Packing::Own);
        assert_eq!(sends.payload_bytes / sends.busier_bytes(), share, "{mtu} {ip:?}");
        let writes = wire(&format!("roce://?mtu={mtu}&operation=write"), Mode::Send, 65_536);
        assert_eq!(writes.cost(&path(ip), Packing::Own).out_bytes, sends.out_bytes + 16.0, "{mtu} {ip:?}");
    }
}

#[test]
fn the_acknowledgement_of_a_message_takes_86_byte_times() {
    let cost = wire("roce", Mode::Send, 4096).cost(&path(Ip::V4), Packing::Own);
    assert_eq!((cost.out_bytes, cost.back_bytes), (4.0 * 1106.0, 86.0));
    let echo = wire("roce", Mode::Both, 4096).cost(&path(Ip::V4), Packing::Own);
    assert_eq!((echo.out_bytes, echo.back_bytes), (4.0 * 1106.0 + 4.0 + 86.0, 4.0 * 1106.0 + 86.0));
}

#[test]
fn a_read_is_a_request_and_responses() {
    let read = wire("roce://?operation=read", Mode::Receive, 4096);
    let bytes = |way: hodo_measure::limits::Way| (way.messages, way.bytes);
    assert_eq!(bytes(read.out()), (1.0, 32.0));
    assert_eq!(bytes(read.back()), (4.0, 4.0 * 1040.0 + 8.0));
    assert_eq!(wire("roce://?operation=read", Mode::Receive, 1).back().bytes, 12.0 + 4.0 + 4.0 + 4.0);
}

#[test]
fn bytes_are_padded_to_words() {
    let lengths = [0, 1, 4, 5].map(|size| wire("roce", Mode::Send, size).out().bytes);
    assert_eq!(lengths, [16.0, 20.0, 20.0, 24.0]);
}

/// Checks that bare sockets send what the software adapter hands to the kernel at once.
#[test]
fn messages_are_handed_over_at_once() {
    let echo = wire("roce", Mode::Both, 4096).as_handed_over();
    assert_eq!(echo.messages, [Messages { count: 1, out_bytes: 4 * 1040 + 4 + 20, back_bytes: 4 * 1040 + 20 }]);
    let long = wire("roce", Mode::Send, 1 << 20).as_handed_over();
    assert_eq!(long.messages.iter().map(|part| part.count).sum::<u64>(), 17);
    let many = on_the_wire(&options("roce"), &Plan { window: 64, ..Plan::one(Mode::Send, 64) }).as_handed_over();
    assert_eq!((many.operations, many.out().messages, many.back().messages), (16, 1.0, 1.0 / 16.0));
}
