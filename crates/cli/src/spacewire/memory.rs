//! `hodo spacewire read`, `write` and `rmw`: memories behind RMAP targets.

use super::options::{Bytes, PortOptions, TargetOptions, address, finish, hex, input, joined};
use crate::output::Target;
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_measure::units;
use hodo_spacewire_host::bridge::{PAGES_PORT, PATHS_PAGE};
use hodo_spacewire_host::machines::client::Port;
use hodo_spacewire_host::machines::rmap::packet::{ADDRESS_MAX, LENGTH_MAX};
use hodo_spacewire_host::machines::rmap::{Failure, Request};
use hodo_spacewire_host::port::NamedPort;
use hodo_spacewire_host::session::{RmapError, Transfer};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a line that shows memory.
const LINE: usize = 16;
/// Bytes that are shown at a time: as text they are five times as many.
const SHOWN: usize = 1 << 20;

/// How long the pages of a bridge may take.
const PAGES_PATIENCE: Duration = Duration::from_secs(1);
/// The most paths that are listed.
const LISTED: usize = 20;

/// Reads memory.
pub fn read(options: &ReadOptions) -> Result<Outcome, Error> {
    let output = options.output.as_deref().map(|file| Target::prepare("--output", file)).transpose()?;
    let by = options.by.transfer(options.address, options.length as usize)?;
    let to = options.target.destination()?;
    let mut data = vec![0; options.length as usize];
    let read = options.target.open(&options.port)?.read(&to, options.address, &mut data, by);
    read.map_err(|why| with_paths(why, &options.port, &options.target))?;
    match output {
        Some(output) => output.write(&data)?,
        None => {
            for (number, shown) in data.chunks(SHOWN).enumerate() {
                let first = options.address + (number * SHOWN) as u64;
                terminal::print(&dump(shown, |offset| by.increment.then_some(first + offset as u64)))?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// Writes memory.
pub fn write(options: &WriteOptions) -> Result<Outcome, Error> {
    let data = match &options.input {
        Some(file) => input("--input", file)?,
        None => joined(&options.data),
    };
    let by = options.by.transfer(options.address, data.len())?;
    let to = options.target.destination()?;
    let mut rmap = options.target.open(&options.port)?;
    if options.no_reply {
        if data.len() > by.part as usize {
            return Err(Error::Usage(format!(
                "--no-reply: {} bytes take several commands, of which none may be lost unnoticed; leave it out, or raise \
                 --part",
                data.len()
            )));
        }
        let (increment, verify) = (by.increment, options.verify);
        rmap.call(&to, &Request::Write { address: options.address, data: &data, increment, verify, reply: false })?;
        finish(rmap.into_port())?;
    } else {
        let written = rmap.write(&to, options.address, &data, options.verify, by);
        written.map_err(|why| with_paths(why, &options.port, &options.target))?;
    }
    let replied = if options.no_reply { "sent without asking for a reply" } else { "written" };
    terminal::print(&format!("{} bytes {replied} at 0x{:X}\n", data.len(), options.address))?;
    Ok(Outcome::Done)
}

/// Modifies bits.
pub fn modify(options: &ModifyOptions) -> Result<Outcome, Error> {
    if options.data.0.is_empty() {
        return Err(Error::Usage("DATA: a read-modify-write has 1 to 4 bytes; write them as ff00".to_owned()));
    }
    let to = options.target.destination()?;
    let request = Request::ReadModifyWrite { address: options.address, data: &options.data.0, mask: &options.mask.0 };
    let before = options.target.open(&options.port)?.call(&to, &request);
    let before = before.map_err(|why| with_paths(why, &options.port, &options.target))?;
    let after: Vec<u8> = before
        .iter()
        .zip(options.data.0.iter().zip(&options.mask.0))
        .map(|(before, (data, mask))| before & !mask | data & mask)
        .collect();
    let text = |bytes: &[u8]| hodo_spacewire_host::describe::hex(bytes);
    terminal::print(&format!("0x{:X}  before {}  after {}\n", options.address, text(&before), text(&after)))?;
    Ok(Outcome::Done)
}

/// Returns the error of a transaction. Where nothing has replied, the paths that the pages of the bridge list are part of it.
fn with_paths(why: RmapError, port: &PortOptions, target: &TargetOptions) -> Error {
    let is_silent =
        matches!(why, RmapError::Failed { failure: Failure::TimedOut, .. } | RmapError::OthersInstead { .. });
    if !is_silent {
        return why.into();
    }
    let Ok(NamedPort { port: Port::Ssdtp2(at) | Port::Gresb { to_bridge: at, .. }, .. }) =
        NamedPort::resolve(&port.port)
    else {
        return why.into();
    };
    let Some(at) = at.ip() else { return why.into() };
    let pages = target.pages.unwrap_or(SocketAddr::new(at.ip(), PAGES_PORT));
    let listed = match hodo_daemon::fetch(pages, PATHS_PAGE, PAGES_PATIENCE) {
        Ok(text) => paths_from(&text, at.port()),
        Err(_) => Vec::new(),
    };
    match (listed.is_empty(), target.path.0.is_empty()) {
        (false, _) => Error::Failed(format!("{why}; the bridge reports these paths:\n{}", listed.join("\n"))),
        (true, true) => Error::Failed(format!(
            "{why}; a target behind a router takes --path and --reply-path, which `hodo spacewire bridge` lists at \
             http://{pages}{PATHS_PAGE} (there with --metrics for other hosts)"
        )),
        (true, false) => why.into(),
    }
}

/// Returns a line for each way that the page lists from this TCP port, and how many there are beyond [`LISTED`].
fn paths_from(page: &str, port: u16) -> Vec<String> {
    let port = port.to_string();
    let way = |line: &str| {
        let mut columns = line.split('\t');
        let (from, options, memory) = (columns.next()?, columns.next()?, columns.next()?);
        (from == port).then(|| format!("  {options:<32} to {memory}"))
    };
    let mut ways: Vec<String> = page.lines().filter_map(way).collect();
    if let Some(more @ 1..) = ways.len().checked_sub(LISTED) {
        ways.truncate(LISTED);
        ways.push(format!("  and {more} more"));
    }
    ways
}

/// Returns lines of 16 bytes, with addresses and as text.
fn dump(data: &[u8], address: impl Fn(usize) -> Option<u64>) -> String {
    let mut text = String::new();
    for (index, line) in data.chunks(LINE).enumerate() {
        if let Some(address) = address(index * LINE) {
            let _ = write!(text, "0x{address:08X}  ");
        }
        let shown =
            line.iter().map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' });
        let shown: String = shown.collect();
        let _ = writeln!(text, "{:<47}  |{shown}|", hodo_spacewire_host::describe::hex(line));
    }
    text
}

/// How a transfer is divided into commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transfer")]
pub struct TransferOptions {
    /// Access one address again and again, as for a FIFO.
    #[arg(long)]
    pub fixed: bool,
    /// Bytes of one command; larger transfers take several.
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = units::bytes)]
    pub part: u64,
    /// Commands under way at a time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub window: u16,
}

impl TransferOptions {
    fn transfer(&self, first: u64, length: usize) -> Result<Transfer, Error> {
        let part = u32::try_from(self.part).ok().filter(|part| (1..=LENGTH_MAX).contains(part));
        let part =
            part.ok_or_else(|| Error::Usage(format!("--part {}: a command has 1 to {LENGTH_MAX} bytes", self.part)))?;
        if !self.fixed && first.saturating_add(length as u64) > ADDRESS_MAX + 1 {
            return Err(Error::Usage(format!("{length} bytes at 0x{first:X} go beyond the 40 bits of addresses")));
        }
        Ok(Transfer { part, window: self.window, increment: !self.fixed })
    }
}

/// Memory to be read.
#[derive(Debug, Args)]
pub struct ReadOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// Address of the first byte; beyond 32 bits the extended address.
    #[arg(value_name = "ADDRESS", value_parser = address)]
    pub address: u64,
    /// Bytes to read.
    #[arg(value_name = "LENGTH", default_value = "4", value_parser = length)]
    pub length: u64,
    /// Write the bytes to this file instead of showing them; - for standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The target.
    #[command(flatten)]
    pub target: TargetOptions,
    /// The commands.
    #[command(flatten)]
    pub by: TransferOptions,
}

/// Memory to be written.
#[derive(Debug, Args)]
pub struct WriteOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// Address of the first byte; beyond 32 bits the extended address.
    #[arg(value_name = "ADDRESS", value_parser = address)]
    pub address: u64,
    /// Bytes in hexadecimal, as 0a1b2c or '0a 1b 2c'.
    #[arg(value_name = "HEX", value_parser = hex, required_unless_present = "input")]
    pub data: Vec<Bytes>,
    /// Write the bytes of this file; - for standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "data")]
    pub input: Option<PathBuf>,
    /// Have the target check the data of each command before it writes any of it.
    #[arg(long)]
    pub verify: bool,
    /// Ask for no reply: nobody learns whether the bytes were written.
    #[arg(long)]
    pub no_reply: bool,
    /// The target.
    #[command(flatten)]
    pub target: TargetOptions,
    /// The commands.
    #[command(flatten)]
    pub by: TransferOptions,
}

/// Bits to be modified.
#[derive(Debug, Args)]
pub struct ModifyOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// Address of the first byte.
    #[arg(value_name = "ADDRESS", value_parser = address)]
    pub address: u64,
    /// The new bits, 1 to 4 bytes in hexadecimal.
    #[arg(value_name = "DATA", value_parser = hex)]
    pub data: Bytes,
    /// Ones where DATA is written, in as many bytes.
    #[arg(value_name = "MASK", value_parser = hex)]
    pub mask: Bytes,
    /// The target.
    #[command(flatten)]
    pub target: TargetOptions,
}

fn length(text: &str) -> Result<u64, String> {
    let length = units::bytes(text)?;
    if length <= 1 << 30 { Ok(length) } else { Err(format!("{text} is more than 1G; read it in parts")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_port_and_not_too_many() {
        let page =
            |count: usize| "7\t--path 4 --reply-path 1\tm\n".repeat(count) + "70\t--path 9 --reply-path 1\tother\n";
        let head = "port\toptions\tmemory\n";
        assert_eq!(paths_from(&format!("{head}{}", page(1)), 7), ["  --path 4 --reply-path 1          to m"]);
        assert_eq!(paths_from(&page(LISTED), 7).len(), LISTED);
        assert_eq!(paths_from(&page(LISTED + 2), 7).last().unwrap(), "  and 2 more");
        assert!(paths_from("<html>nothing of a bridge</html>", 7).is_empty());
    }
}
