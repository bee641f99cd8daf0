use crate::{Accepts, drive_within};
use hodo_ipbus::device::{DeviceConfig, Failure, Faults, FaultyDevice, Register, Registers, Way};
use hodo_ipbus::wire::operation::{self, Mode, Operation};
use hodo_ipbus::wire::packet::{Header, Kind, Packet};
use hodo_ipbus::wire::status::Status;
use hodo_ipbus::wire::{Order, Version, Words, chunk, hub, legacy};
use hodo_ipbus::{Device, DeviceCommand};
use hodo_machine::{Cursor, Instant, Transport};
use hodo_sim::cost::Allowance;
use std::time::Duration;

/// Bytes of a packet that the device takes and sends.
const BUFFER_BYTES: u32 = 256;

/// Checks that a packet of 2.0, of a host or of a device, is encoded to the bytes that it was decoded from.
pub fn packet(input: &[u8]) {
    let Ok(packet) = Packet::decode(input) else { return };
    assert_eq!(Version::of(input), Some((Version::V2_0, packet.order)));
    assert!(input.starts_with(&packet.order.bytes_32(packet.header.encode())));
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    packet.requests().flatten().for_each(|request| request.encode(packet.order, &mut requests));
    packet.replies().flatten().for_each(|reply| reply.encode(packet.order, &mut replies));
    assert!(packet.body.starts_with(&requests) && packet.body.starts_with(&replies));
    if let Ok(status) = Status::decode(input) {
        assert_eq!(packet.header.kind, Kind::Status);
        assert_eq!(Status::decode(&status.encode()), Ok(status));
    }
}

/// Checks that a packet of 1.3 is encoded to the bytes that it was decoded from.
pub fn legacy(input: &[u8]) {
    let Ok(packet) = legacy::Packet::decode(input) else { return };
    assert_eq!(Version::of(input), Some((Version::V1_3, packet.order)));
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    packet.requests().flatten().for_each(|request| request.encode(packet.order, &mut requests));
    packet.replies().flatten().for_each(|reply| reply.encode(packet.order, &mut replies));
    assert!(input.starts_with(&requests) && input.starts_with(&replies));
}

/// Checks that a hub's stream gives the same chunks however it is cut. The first byte says how.
pub fn hub(input: &[u8]) {
    let Some((cut, stream)) = input.split_first() else { return };
    let whole = chunks(stream, stream.len().max(1));
    assert_eq!(chunks(stream, usize::from(*cut).max(1)), whole, "cut every {cut} bytes");
    for chunk in whole {
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        for request in hub::Requests::new(&chunk).flatten() {
            request.encode(&mut requests);
            packet(request.packet);
            legacy(request.packet);
        }
        hub::Replies::new(&chunk).flatten().for_each(|reply| reply.encode(&mut replies));
        assert!(chunk.starts_with(&requests) && chunk.starts_with(&replies));
        let words = Words::new(&chunk, Order::Big);
        assert_eq!(words.iter().count(), chunk.len() / 4);
    }
}

/// Returns the chunks up to the first that is too long.
fn chunks(stream: &[u8], cut: usize) -> Vec<Vec<u8>> {
    let mut cutter = chunk::Chunks::new(2000);
    let mut found = Vec::new();
    for mut rest in stream.chunks(cut) {
        loop {
            match cutter.next(&mut rest) {
                Ok(Some(chunk)) => found.push(chunk.to_vec()),
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}

/// Drives a device. The first byte chooses transport, version and faults; the rest is a script.
pub fn device(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let transport = if choice & 1 == 0 { Transport::Datagram } else { Transport::Stream };
    let version = if choice & 2 == 0 { Version::V2_0 } else { Version::V1_3 };
    let registers = Registers::new([
        Register::block(0x10, 4).failing(Failure::Error),
        Register::block(0x20, 4).failing(Failure::Timeout),
        Register::block(0x30, 4).read_only().holding(7),
        Register::word(0x40).counting().writable(0xFF),
        Register::fifo(0x50, 3),
    ]);
    let device = Device::new(DeviceConfig {
        buffers: 2,
        buffer_bytes: BUFFER_BYTES,
        memory_bytes_max: 64 << 10,
        registers: registers.expect("they do not overlap"),
        unsent_bytes_max: 16 << 10,
        silence_timeout: Duration::from_secs(1),
        ..DeviceConfig::new(transport, version)
    });
    // Four bytes have a stored reply sent again: the protocol has no room for a proof.
    let allowance = Allowance { to_strangers: u64::from(BUFFER_BYTES) / 4, ..Allowance::default() };
    if choice & 4 == 0 {
        drive_within(allowance, device, script, Some(&newcomer(transport, version)), device_command);
    } else {
        let faulty = FaultyDevice::new(device, faults(u64::from(choice >> 3)));
        drive_within(allowance, faulty, script, Some(&Accepts { transport, newcomer: None }), device_command);
    }
}

/// Returns a host that reads a word.
fn newcomer(transport: Transport, version: Version) -> Accepts {
    let read: Operation<&[u32]> = Operation::Read { mode: Mode::Incrementing, address: 0x30, words: 1 };
    let mut packet = Vec::new();
    match version {
        Version::V2_0 => {
            packet.extend(Order::Big.bytes_32(Header { id: 0, kind: Kind::Control }.encode()));
            operation::Request::new(0, read).encode(Order::Big, &mut packet);
        }
        Version::V1_3 => {
            legacy::begin(7, Order::Big, &mut packet);
            legacy::Request::new(1, read).expect("1.3 has it").encode(Order::Big, &mut packet);
            legacy::end(&mut packet, 0, Order::Big);
        }
    }
    let chunk: &[u8] = if transport == Transport::Stream { &chunk::length(packet.len()) } else { &[] };
    Accepts::new(transport, [chunk, &packet].concat(), 8)
}

fn faults(seed: u64) -> Faults {
    let way = Way {
        loss: 0.1,
        duplicate: 0.2,
        reorder: 0.2,
        delay: Duration::from_millis(1),
        jitter: Duration::from_millis(2),
        partitions: Vec::new(),
    };
    let reboots = vec![Instant::from_nanos(10_000_000)];
    Faults { request: way.clone(), reply: way, wrong_id: 0.2, reboot: 0.1, reboots, clear_memory: seed & 1 == 0, seed }
}

fn device_command(bytes: &[u8]) -> Option<DeviceCommand> {
    let mut cursor = Cursor::new(bytes);
    let kind = cursor.u8().ok()?;
    Some(match (kind % 3, cursor.u32_le(), cursor.u32_le()) {
        (0, Ok(address), Ok(word)) => DeviceCommand::Poke { address, word },
        (kind, ..) => DeviceCommand::Reboot { clear_memory: kind == 1 },
    })
}
