//! Packets in words, as an analyser shows them.

use hodo_spacewire::EndOfPacket;
use hodo_spacewire::ptp;
use hodo_spacewire::rmap::packet::{Kind, PROTOCOL, split_path};
use hodo_spacewire::rmap::{Command, CommandHeader, Crc, Operation, Reply, ReplyHeader};
use std::fmt::Write;

/// Bytes of data that are shown.
const SHOWN: usize = 16;

/// Returns a line about a packet: path, protocol, and the fields that matter.
#[must_use]
pub fn packet(data: &[u8], end: EndOfPacket) -> String {
    let (path, rest) = split_path(data);
    let mut text = if path.is_empty() { String::new() } else { format!("path {} ", hex(path)) };
    let known = match rest {
        [_, PROTOCOL, ..] => rmap(rest, end),
        [_, ptp::PROTOCOL, ..] => ptp::Packet::decode(rest, end).ok().map(|packet| space_packet(&packet)),
        _ => None,
    };
    match known {
        Some(known) => text.push_str(&known),
        None => text.push_str(&plain(rest)),
    }
    if end == EndOfPacket::Eep {
        text.push_str(", ended by EEP");
    }
    text
}

/// Returns bytes in hexadecimal, separated by spaces.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(3 * bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        let _ = write!(text, "{}{byte:02x}", if index == 0 { "" } else { " " });
    }
    text
}

fn plain(bytes: &[u8]) -> String {
    let more = if bytes.len() > SHOWN { " …" } else { "" };
    format!("{} bytes: {}{more}", bytes.len(), hex(&bytes[..bytes.len().min(SHOWN)]))
}

fn rmap(packet: &[u8], end: EndOfPacket) -> Option<String> {
    let crcs = [(Crc::Standard, ""), (Crc::DraftE, ", CRC of draft E")];
    crcs.iter().find_map(|(crc, note)| {
        let command = CommandHeader::decode(packet, *crc).ok().map(|(header, _)| header);
        if let Some(header) = command.filter(|header| header.instruction.kind() == Kind::Command) {
            let data = Command::decode(packet, end, *crc);
            let broken = data.err().map(|why| format!(", {why}")).unwrap_or_default();
            return Some(format!("{}{note}{broken}", self::command(&header)));
        }
        let (header, _) = ReplyHeader::decode(packet, *crc).ok()?;
        let data = Reply::decode(packet, end, *crc);
        let broken = data.err().map(|why| format!(", {why}")).unwrap_or_default();
        Some(format!(
            "RMAP reply {} from {:#04x} to {:#04x}: {}, {} bytes{note}{broken}",
            header.transaction, header.target, header.initiator, header.status, header.length
        ))
    })
}

fn command(header: &CommandHeader) -> String {
    let what = match header.instruction.operation() {
        Some(Operation::Read) => "read",
        Some(Operation::Write { verify: true }) => "verified write",
        Some(Operation::Write { verify: false }) => "write",
        Some(Operation::ReadModifyWrite) => "read-modify-write",
        None => "unused command",
    };
    let reply = if header.instruction.requests_reply() { "" } else { ", no reply" };
    let fixed = if header.instruction.increments() { "" } else { ", fixed address" };
    format!(
        "RMAP {what} {} from {:#04x} to {:#04x}: {} bytes at 0x{:X}{fixed}{reply}",
        header.transaction, header.initiator, header.target, header.length, header.address
    )
}

fn space_packet(packet: &ptp::Packet<'_>) -> String {
    let header = &packet.space_packet.header;
    format!(
        "space packet to {:#04x}: APID {}, sequence {}, {} bytes",
        packet.target,
        header.application_process,
        header.sequence_count,
        packet.space_packet.data.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_spacewire::EndOfPacket::{Eep, Eop};

    #[test]
    fn rmap_is_told_with_its_path_and_its_defects() {
        let read = [4, 0xFE, 1, 0x4C, 0, 0xFE, 0, 9, 0, 0, 0, 0x10, 0, 0, 0, 8];
        let with_crc = |bytes: &[u8]| [bytes, &[Crc::Standard.of(&bytes[1..])]].concat();
        let command = with_crc(&read);
        assert_eq!(packet(&command, Eop), "path 04 RMAP read 9 from 0xfe to 0xfe: 8 bytes at 0x1000");
        assert_eq!(packet(&command[1..6], Eop), "5 bytes: fe 01 4c 00 fe");
        assert!(packet(&command, Eep).ends_with("ended by EEP"));
    }

    #[test]
    fn other_packets_are_told_by_their_first_bytes() {
        assert_eq!(packet(&[0x40, 2, 0, 7], Eop), "4 bytes: 40 02 00 07");
        assert_eq!(packet(&[0x40; 20], Eop), format!("20 bytes: {} …", hex(&[0x40; 16])));
        assert_eq!(packet(&[], Eep), "0 bytes: , ended by EEP");
        let telemetry = [0x40, 2, 0, 0, 0x08, 0x2A, 0xC0, 5, 0, 1, 1, 2];
        assert_eq!(packet(&telemetry, Eop), "space packet to 0x40: APID 42, sequence 5, 2 bytes");
    }
}
