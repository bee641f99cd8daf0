//! The port of a bridge and the target behind it, for all commands that use one.

use crate::{Error, terminal};
use clap::{Args, ValueEnum};
use hodo_machine::Wait;
use hodo_measure::units;
use hodo_spacewire_host::machines::rmap::packet::ADDRESS_MAX;
use hodo_spacewire_host::machines::rmap::{Crc, Destination, InitiatorSettings, ReplyAddress};
use hodo_spacewire_host::recording::RecordOptions;
use hodo_spacewire_host::session::{Directions, RmapSession, Session, SessionSettings};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the largest file that is sent.
const INPUT_MAX: u64 = 1 << 30;

/// The port, and how it is used.
#[derive(Debug, Args)]
pub struct PortOptions {
    /// A port of a bridge: ssdtp2://HOST:10030, or gresb://HOST:3000?link=0&status=high (the defaults behind HOST).
    #[arg(value_name = "PORT")]
    pub port: String,
    /// How long connecting, a reply, and sending without progress may take.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration, help_heading = "Port")]
    pub timeout: Duration,
    /// How to wait: adaptive, block, spin, or spin:50us to spin that long and then block.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait, help_heading = "Port")]
    pub wait: Wait,
}

impl PortOptions {
    pub fn open(&self, directions: Directions) -> Result<Session, Error> {
        let (timeout, wait) = (self.timeout, self.wait);
        let settings = SessionSettings { timeout, wait, directions, ..SessionSettings::default() };
        Ok(Session::connect(&self.port, &settings)?)
    }
}

/// Ends the use of a port that was sent to, and remarks if the far end may not have read everything.
pub fn finish(port: Session) -> Result<(), Error> {
    let (name, timeout) = (port.name().to_owned(), port.settings().timeout.as_millis());
    if !port.finish()? {
        terminal::remark(&format!(
            "{name}: the far end did not close the connection within {timeout} ms; if it is slow, some of it may be lost: raise --timeout"
        ));
    }
    Ok(())
}

/// A recording for Wireshark.
#[derive(Debug, Args)]
pub struct RecordingOptions {
    /// Record packets and time-codes in this file, for Wireshark (pcapng).
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Largest size of the recording in bytes: at half of it FILE is renamed to FILE.1 and a new one begins.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = units::bytes, requires = "record")]
    pub record_size: u64,
}

impl RecordingOptions {
    /// Returns the recording that is wanted.
    pub fn options(&self, characters: bool) -> Result<Option<RecordOptions>, Error> {
        let Some(file) = &self.record else { return Ok(None) };
        let size_max = self.record_size;
        if size_max < RecordOptions::SIZE_MIN {
            let least = RecordOptions::SIZE_MIN >> 20;
            return Err(Error::Usage(format!("--record-size {size_max}: a recording takes at least {least}M")));
        }
        Ok(Some(RecordOptions { file: file.clone(), size_max, characters }))
    }
}

/// The RMAP target.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub struct TargetOptions {
    /// Path to the target: the ports of the routers on the way, as 2,4 [default: none].
    #[arg(long, value_name = "PORTS", value_parser = path, default_value = "", hide_default_value = true)]
    pub path: Bytes,
    /// Path of the reply, likewise.
    #[arg(long, value_name = "PORTS", value_parser = path, default_value = "", hide_default_value = true)]
    pub reply_path: Bytes,
    /// Logical address of the target.
    #[arg(long, value_name = "ADDRESS", value_parser = byte, default_value = "0xFE")]
    pub target: u8,
    /// Logical address of this initiator, to which replies go.
    #[arg(long, value_name = "ADDRESS", value_parser = byte, default_value = "0xFE")]
    pub initiator: u8,
    /// The target's key.
    #[arg(long, value_name = "KEY", value_parser = byte, default_value = "0")]
    pub key: u8,
    /// Pages of the bridge, which list the paths to its memories where one is missing [default: port 9209 of its host].
    #[arg(long, value_name = "ADDR", value_parser = crate::address::far_end)]
    pub pages: Option<SocketAddr>,
    /// CRC: standard, or draft-e for devices built after draft E of the standard.
    #[arg(long, value_name = "CRC", value_enum, default_value = "standard", hide_possible_values = true)]
    pub crc: CrcName,
}

/// The draft that CRCs follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CrcName {
    /// That of the standard.
    Standard,
    /// That of draft E.
    DraftE,
}

impl TargetOptions {
    pub fn destination(&self) -> Result<Destination, Error> {
        let reply_address = ReplyAddress::from_path(&self.reply_path.0).ok_or_else(|| {
            Error::Usage("--reply-path: a reply takes at most 12 ports, and does not begin with 0".to_owned())
        })?;
        Ok(Destination {
            path: self.path.0.clone(),
            reply_address,
            logical_address: self.target,
            key: self.key,
            crc: match self.crc {
                CrcName::Standard => Crc::Standard,
                CrcName::DraftE => Crc::DraftE,
            },
        })
    }

    pub fn open(&self, port: &PortOptions) -> Result<RmapSession, Error> {
        let settings = InitiatorSettings { logical_address: self.initiator, ..InitiatorSettings::default() };
        Ok(RmapSession::new(port.open(Directions::Both)?, settings))
    }
}

/// Bytes from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// Parses the ports of a path: 0 to 31, with commas between them.
pub fn path(text: &str) -> Result<Bytes, String> {
    let port = |part: &str| part.trim().parse().ok().filter(|port| *port < 32);
    let wrong = || format!("`{text}` is not a path; write the ports of the routers on the way, 0 to 31, as 2,4");
    if text.is_empty() {
        return Ok(Bytes(Vec::new()));
    }
    text.split(',').map(|part| port(part).ok_or_else(wrong)).collect::<Result<_, _>>().map(Bytes)
}

/// Parses a number of 8 bits.
pub fn byte(text: &str) -> Result<u8, String> {
    u8::try_from(units::word(text)?).map_err(|_| format!("{text} is over 8 bits; write at most 0xFF"))
}

/// Parses an RMAP address: the extended address in front of the 32 bits of the address.
pub fn address(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let parsed = match lower.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => lower.parse(),
    };
    let address = parsed.map_err(|_| format!("`{text}` is not an address; write 0x1000"))?;
    if address > ADDRESS_MAX { Err(format!("{text} is over 40 bits; write at most 0xFFFFFFFFFF")) } else { Ok(address) }
}

/// Parses bytes in hexadecimal, as 0a1b2c or "0a 1b 2c".
pub fn hex(text: &str) -> Result<Bytes, String> {
    let wrong = || format!("`{text}` is not bytes in hexadecimal; write 0a1b2c or '0a 1b 2c'");
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digits = digits.strip_prefix(b"0x").unwrap_or(&digits);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong());
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|nibble| nibble as u8);
    let bytes = pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?));
    bytes.collect::<Option<_>>().map(Bytes).ok_or_else(wrong)
}

/// Joins the bytes of several arguments.
pub fn joined(all: &[Bytes]) -> Vec<u8> {
    all.iter().flat_map(|bytes| bytes.0.iter().copied()).collect()
}

/// Reads a file to be sent; `-` is standard input.
pub fn input(option: &str, file: &Path) -> Result<Vec<u8>, Error> {
    crate::input::read(file, INPUT_MAX).map_err(|why| Error::Usage(format!("{option} {}: {why}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_paths_are_parsed_or_refused() {
        assert_eq!(hex("0A 1b2C"), Ok(Bytes(vec![0x0A, 0x1B, 0x2C])));
        assert_eq!(hex("0xff"), Ok(Bytes(vec![0xFF])));
        assert!(hex("abc").is_err() && hex("zz").is_err() && hex("é").is_err());
        assert_eq!(path("2,4"), Ok(Bytes(vec![2, 4])));
        assert_eq!(path(""), Ok(Bytes(vec![])));
        assert!(path("32").is_err() && path("1,,2").is_err());
        assert_eq!(address("0xFF00000000"), Ok(0xFF_0000_0000));
        assert!(address("0x10000000000").is_err() && address("-1").is_err());
        assert!(byte("256").is_err());
    }
}
