//! In steady state a device allocates nothing, whatever it is asked: ten times the packets need no more memory.
use crate::counting;

use counting::allocations_here;
use hodo_ipbus::Device;
use hodo_ipbus::device::{DeviceConfig, Register, Registers};
use hodo_ipbus::wire::{Order, Version, chunk, packet, status};
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};

const FIFO: u32 = 0x1000;
const COUNTER: u32 = 0x1001;
const READ_ONLY: u32 = 0x1002;
const PEERS: u32 = 3;

/// Every kind of transaction, over memory, over registers and over the edge of both.
#[rustfmt::skip]
const TRANSACTIONS: &[u32] = &[
    0x2000_FF0F, 0xF80, 0x2001_041F, 0x10_0000, 1, 2, 3, 4, 0x2002_013F, FIFO, 7, 0x2003_012F, FIFO, 0x2004_014F, 5, 1, 2,
    0x2005_015F, COUNTER, 7, 0x2006_026F, 1, 0x2007_017F, 1, 9, 0x2008_010F, READ_ONLY, 0x2009_011F, READ_ONLY, 5,
];
const TRANSACTIONS_1_3: &[u32] = &[0x1000_00F8, 0x1002_FF18, 0xF80, 0x1004_0220, 0x20_0000, 1, 2, 0x1006_0130, 5, 1];

fn device(transport: Transport, version: Version) -> Device {
    let registers = Registers::new([
        Register::fifo(FIFO, 16),
        Register::word(COUNTER).counting(),
        Register::word(READ_ONLY).read_only(),
    ]);
    let registers = registers.expect("they do not overlap");
    Device::new(DeviceConfig { registers, ..DeviceConfig::new(transport, version) })
}

/// Returns the packets of one round: numbered and not, repeated, status and resend, noise.
fn packets(version: Version, order: Order) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    if version == Version::V1_3 {
        order.append(TRANSACTIONS_1_3, &mut bytes);
        return vec![bytes, b"noise".to_vec()];
    }
    order.append(&[&[0x2000_00F0], TRANSACTIONS].concat(), &mut bytes);
    vec![bytes, status::REQUEST.to_vec(), packet::resend(1).to_vec(), b"noise".to_vec()]
}

fn framed(packet: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let begun = chunk::begin(&mut bytes);
    bytes.extend_from_slice(packet);
    chunk::end(&mut bytes, begun);
    bytes
}

/// Gives every peer's packets, then takes the replies away; answers what was allocated. The first packet gets the number
/// that is due where it is one of that order.
fn rounds(device: &mut Device, packets: &mut [Vec<u8>], numbered: Option<Order>, out: &mut Outbox, count: u64) -> u64 {
    let before = allocations_here();
    let mut replies = 0;
    for _ in 0..count {
        for peer in 0..PEERS {
            if let Some(order) = numbered {
                let header = packet::Header { id: device.status().next_id, kind: packet::Kind::Control };
                packets[0][..packet::HEADER].copy_from_slice(&order.bytes_32(header.encode()));
            }
            let packets = &*packets;
            for packet in packets {
                device.handle(Instant::ZERO, Input::Received(Peer(Peer::FIRST_ACCEPTED + peer), packet));
            }
        }
        while let Output::Send(_) = device.poll(Instant::ZERO, out) {
            replies += 1;
            out.clear();
        }
    }
    assert!(replies >= count * u64::from(PEERS), "they were answered");
    allocations_here() - before
}

/// Runs as the only test, because the counter counts everything in this process.
#[test]
fn more_packets_need_no_more_allocations() {
    for transport in [Transport::Datagram, Transport::Stream] {
        for version in [Version::V2_0, Version::V1_3] {
            for order in Order::BOTH {
                let mut device = device(transport, version);
                for peer in 0..PEERS {
                    let peer = Peer(Peer::FIRST_ACCEPTED + peer);
                    device.handle(Instant::ZERO, Input::Opened(peer, &Ends::nodes(0, 1)));
                }
                let mut packets = packets(version, order);
                if transport == Transport::Stream {
                    // Cut in the middle of a chunk, so that what is gathered is counted too.
                    let stream: Vec<u8> = packets.iter().flat_map(|packet| framed(packet)).collect();
                    packets = stream.chunks(stream.len() / 2 + 1).map(<[u8]>::to_vec).collect();
                }
                let mut out = Outbox::new();
                let is_numbered = transport == Transport::Datagram && version == Version::V2_0;
                let numbered = is_numbered.then_some(order);
                let warm_up = rounds(&mut device, &mut packets, numbered, &mut out, 20);
                let more = rounds(&mut device, &mut packets, numbered, &mut out, 1000);
                assert_eq!(device.status().next_id > 1000, is_numbered);
                assert_eq!(more, 0, "{transport:?}, {version}, {order}; {warm_up} to warm up");
            }
        }
    }
}
