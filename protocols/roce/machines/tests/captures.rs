//! Captures of stock `ibv_rc_pingpong` over the kernel's rxe: between two guests (`rc_pingpong.pcap`), and with an endpoint of
//! plain sockets (`user_vs_rxe.pcap`).

use hodo_machine::Address;
use hodo_roce::icrc::Flow;
use hodo_roce::wire::{HEADERS_MAX, PORT, Packet, padding_of};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

const PING_PONG: &[u8] = include_bytes!("data/rc_pingpong.pcap");
const USER_SPACE: &[u8] = include_bytes!("data/user_vs_rxe.pcap");

/// A UDP datagram over IPv4.
struct Datagram<'a> {
    from: SocketAddr,
    to: SocketAddr,
    payload: &'a [u8],
}

/// Returns the datagrams to port 4791 in a file of Ethernet frames, pcap or pcapng, little-endian.
fn datagrams(file: &[u8]) -> Vec<Datagram<'_>> {
    const PCAP: [u8; 4] = [0xD4, 0xC3, 0xB2, 0xA1];
    const ENHANCED_PACKET: u32 = 6;
    let is_pcap = file[..4] == PCAP;
    let (mut rest, mut found) = (&file[if is_pcap { 24 } else { 0 }..], Vec::new());
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let (length, frame) = match is_pcap {
            true => (16 + word(8), 16..16 + word(8)),
            false if word(0) == ENHANCED_PACKET => (word(4), 28..28 + word(20)),
            false => (word(4), 0..0),
        };
        found.extend(datagram(&rest[frame.start as usize..frame.end as usize]));
        rest = &rest[length as usize..];
    }
    found
}

fn datagram(frame: &[u8]) -> Option<Datagram<'_>> {
    let ip = frame.get(14..).filter(|_| frame[12..14] == [8, 0])?;
    let udp = ip.get(20..).filter(|_| ip[0] == 0x45 && ip[9] == 17)?;
    let port = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let (from, to) = (SocketAddr::from((address(12), port(0))), SocketAddr::from((address(16), port(2))));
    (to.port() == PORT).then(|| Datagram { from, to, payload: &udp[8..usize::from(port(4))] })
}

#[test]
fn every_packet_decodes_and_encodes_to_its_bytes() {
    for (file, count) in [(PING_PONG, 298), (USER_SPACE, 390)] {
        let datagrams = datagrams(file);
        assert_eq!(datagrams.len(), count);
        for Datagram { payload: bytes, .. } in datagrams {
            let packet = Packet::decode(bytes).unwrap();
            let mut room = [0; HEADERS_MAX];
            let length = Packet::encode_headers(&packet.base, &packet.extended, packet.payload.len(), &mut room);
            let mut again = room[..length].to_vec();
            again.extend_from_slice(packet.payload);
            again.resize(again.len() + padding_of(packet.payload.len()), 0);
            assert_eq!(again, bytes[..bytes.len() - 4], "{packet:?}");
        }
    }
}

/// The identification of IPv4, which a socket does not show, is solved for.
#[test]
fn every_crc_verifies_and_no_other_does() {
    for file in [PING_PONG, USER_SPACE] {
        let mut flows = BTreeMap::new();
        for Datagram { from, to, payload } in datagrams(file) {
            let flow = flows.entry((from, to)).or_insert_with(|| Flow::new(&Address::Udp(from), &Address::Udp(to)));
            assert!(flow.verify(payload));
            let mut damaged = payload.to_vec();
            for place in [0, 5, 12, payload.len() / 2, payload.len() - 1] {
                damaged[place] ^= 0x10;
                assert!(!flow.clone().verify(&damaged), "byte {place}");
                damaged[place] ^= 0x10;
            }
        }
    }
}

#[test]
fn the_capture_holds_what_a_ping_pong_sends() {
    let mut kinds = BTreeMap::new();
    for Datagram { payload, .. } in datagrams(PING_PONG) {
        *kinds.entry(Packet::decode(payload).unwrap().base.opcode.name()).or_insert(0) += 1;
    }
    let expected = [("ACKNOWLEDGE", 89), ("SEND_FIRST", 42), ("SEND_LAST", 42), ("SEND_MIDDLE", 84), ("SEND_ONLY", 41)];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
}
