//! `hodo spacewire send`, `receive` and `time-code`: packets and time-codes through a port.

use super::options::{Bytes, PortOptions, RecordingOptions, finish, hex, input, joined, path};
use crate::output::Target;
use crate::{Error, Outcome, interrupt, terminal};
use clap::Args;
use hodo_measure::units;
use hodo_spacewire_host::describe;
use hodo_spacewire_host::machines::EndOfPacket;
use hodo_spacewire_host::recording::{PortRecording, RecordOptions};
use hodo_spacewire_host::session::{Arrival, Directions, Session};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long it takes at the most until an interrupt is noticed.
const LOOK_UP: Duration = Duration::from_millis(100);
/// Bytes of packets that are kept for a file.
const KEPT_MAX: usize = 1 << 30;

/// Sends packets.
pub fn send(options: &SendOptions) -> Result<Outcome, Error> {
    let packets = packets(options)?;
    let stop = interrupt::flag()?;
    let mut port = options.port.open(Directions::Sending)?;
    port.discard_arrivals();
    let (mut sent, mut bytes) = (0_u64, 0_u64);
    'all: for _ in 0..options.count {
        for (packet, end) in &packets {
            if stop.load(Ordering::Relaxed) {
                break 'all;
            }
            port.send(packet, *end)?;
            (sent, bytes) = (sent + 1, bytes + packet.len() as u64);
        }
    }
    finish(port)?;
    terminal::print(&format!("{sent} packets of {bytes} bytes in all sent to {}\n", options.port.port))?;
    Ok(if stop.load(Ordering::Relaxed) { Outcome::Failed } else { Outcome::Done })
}

fn packets(options: &SendOptions) -> Result<Vec<(Vec<u8>, EndOfPacket)>, Error> {
    let end = if options.eep { EndOfPacket::Eep } else { EndOfPacket::Eop };
    let with_path = |data: &[u8]| match [&options.path.0, data].concat() {
        packet if packet.is_empty() => Err("a packet has one byte at least".to_owned()),
        packet => Ok(packet),
    };
    if let Some(file) = &options.lines {
        let text = String::from_utf8(input("--lines", file)?)
            .map_err(|_| Error::Usage(format!("--lines {}: it is not text", file.display())))?;
        let packet = |(number, line): (usize, &str)| {
            let (data, end) = line.strip_suffix("EEP").map_or((line, end), |data| (data, EndOfPacket::Eep));
            let packet = hex(data)
                .and_then(|data| with_path(&data.0))
                .map_err(|why| Error::Usage(format!("--lines {}, line {}: {why}", file.display(), number + 1)))?;
            Ok((packet, end))
        };
        // Editors of Windows begin a file with a mark of its encoding.
        let lines = text
            .trim_start_matches('\u{feff}')
            .lines()
            .map(|line| line.split('#').next().unwrap_or("").trim())
            .enumerate();
        return lines.filter(|(_, line)| !line.is_empty()).map(packet).collect();
    }
    let (named, data) = match &options.input {
        Some(file) => (format!("--input {}", file.display()), input("--input", file)?),
        None => ("HEX".to_owned(), joined(&options.data)),
    };
    let packet = with_path(&data).map_err(|why| Error::Usage(format!("{named}: {why}")))?;
    Ok(vec![(packet, end)])
}

/// Receives packets.
pub fn receive(options: &ReceiveOptions) -> Result<Outcome, Error> {
    let output = options.output.as_deref().map(|file| Target::prepare("--output", file)).transpose()?;
    let mut kept = Vec::new();
    let watched = Watched::new(options.count, options.within, options.time_codes)?;
    let mut port = options.port.open(Directions::Receiving)?;
    let outcome = watched.each(&mut port, |_, arrival| match (arrival, &output) {
        (Arrival::TimeCode(code), None) => terminal::print_to_reader(&format!("time-code {code:#04x}\n")),
        (Arrival::TimeCode(_), Some(_)) => Ok(true),
        (Arrival::Packet(data, _), Some(_)) => {
            if kept.len() + data.len() > KEPT_MAX {
                return Err(Error::Failed(
                    "--output: the packets have more than 1 GiB, and the rest is not written; limit them with --count"
                        .into(),
                ));
            }
            kept.extend_from_slice(data);
            Ok(true)
        }
        (Arrival::Packet(data, end), None) => {
            let end = if end == EndOfPacket::Eep { " EEP" } else { "" };
            terminal::print_to_reader(&format!("{}{end}\n", describe::hex(data)))
        }
    });
    // What has arrived is not lost with the connection.
    if let Some(output) = output
        && (outcome.is_ok() || !kept.is_empty())
    {
        output.write(&kept)?;
    }
    outcome
}

/// Shows what arrives, with times and in words.
pub fn sniff(options: &SniffOptions) -> Result<Outcome, Error> {
    let watched = Watched::new(options.count, options.within, true)?;
    let begin = |wanted: RecordOptions| {
        PortRecording::start(&wanted, &options.port.port).map_err(|why| {
            Error::Usage(format!("--record {}: this file cannot be written: {why}", wanted.file.display()))
        })
    };
    let mut recording = options.record.options(false)?.map(begin).transpose()?;
    let mut port = options.port.open(Directions::Receiving)?;
    let outcome = watched.each(&mut port, |at, arrival| {
        let at = at.as_secs_f64();
        let text = match arrival {
            Arrival::TimeCode(code) => format!("time-code {:2}, flags {}", code & 63, code >> 6),
            Arrival::Packet(data, end) => describe::packet(data, end),
        };
        match (&mut recording, arrival) {
            (Some(recording), Arrival::TimeCode(code)) => recording.time_code(code),
            (Some(recording), Arrival::Packet(data, end)) => recording.packet(data, end),
            (None, _) => {}
        }
        terminal::print_to_reader(&format!("{at:13.6}  {text}\n"))
    })?;
    if let Some(recording) = recording {
        let (_, lost) = recording.finish().map_err(|why| Error::Failed(format!("--record: {why}")))?;
        if lost > 0 {
            return Err(Error::Failed(format!("--record: {lost} records were lost, because writing was too slow")));
        }
    }
    Ok(outcome)
}

/// Sends time-codes.
pub fn time_codes(options: &TimeCodeOptions) -> Result<Outcome, Error> {
    let stop = interrupt::flag()?;
    let mut port = options.port.open(Directions::Sending)?;
    port.discard_arrivals();
    let every = Duration::from_secs_f64(1.0 / options.rate);
    let begin = Instant::now();
    let count = if options.forever { u64::MAX } else { options.count };
    let (flags, mut time, mut sent) = (options.code & 0xC0, options.code & 0x3F, 0);
    while sent < count && !stop.load(Ordering::Relaxed) {
        port.send_time_code(flags | time)?;
        port.flush()?;
        (time, sent) = ((time + 1) & 0x3F, sent + 1);
        // Each is due at a time of its own, so that the rate holds however late one is.
        let due = begin + every.mul_f64(sent as f64);
        while sent < count && !stop.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // Packets that arrive meanwhile are taken, so that the bridge is not held back.
            port.receive(left.min(LOOK_UP))?;
        }
    }
    finish(port)?;
    terminal::print(&format!("{sent} time-codes sent to {}\n", options.port.port))?;
    Ok(Outcome::Done)
}

/// The arrivals that are waited for.
struct Watched {
    count: u64,
    within: Option<Duration>,
    time_codes: bool,
    stop: std::sync::Arc<AtomicBool>,
}

impl Watched {
    fn new(count: Option<u64>, within: Option<Duration>, time_codes: bool) -> Result<Watched, Error> {
        Ok(Watched { count: count.unwrap_or(u64::MAX), within, time_codes, stop: interrupt::flag()? })
    }

    /// Passes on what arrives, with the time since the beginning, until `take` returns `false`.
    fn each(
        &self,
        port: &mut Session,
        mut take: impl FnMut(Duration, Arrival<'_>) -> Result<bool, Error>,
    ) -> Result<Outcome, Error> {
        let begin = Instant::now();
        let mut taken = 0;
        while taken < self.count && !self.stop.load(Ordering::Relaxed) {
            // Looked at before each arrival, because there may be no pause between them.
            let left = self.within.map_or(LOOK_UP, |within| within.saturating_sub(begin.elapsed()));
            if left.is_zero() {
                // Who asked for a number and got fewer has not got what was asked for.
                return Ok(if self.count == u64::MAX { Outcome::Done } else { Outcome::Failed });
            }
            match port.receive(left.min(LOOK_UP))? {
                Some(Arrival::TimeCode(_)) if !self.time_codes => {}
                Some(arrival) => {
                    if !take(begin.elapsed(), arrival)? {
                        return Ok(Outcome::Done);
                    }
                    taken += 1;
                }
                None => {}
            }
        }
        Ok(Outcome::Done)
    }
}

/// Packets to be sent.
#[derive(Debug, Args)]
pub struct SendOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// The packet in hexadecimal, as 0a1b2c or '0a 1b 2c'.
    #[arg(value_name = "HEX", value_parser = hex, required_unless_present_any = ["input", "lines"])]
    pub data: Vec<Bytes>,
    /// Path in front of each packet: the ports of the routers on the way, as 2,4.
    #[arg(long, value_name = "PORTS", value_parser = path, default_value = "", hide_default_value = true)]
    pub path: Bytes,
    /// Send this file as one packet; - for standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "data")]
    pub input: Option<PathBuf>,
    /// Send each line of this file, as `receive` shows them: bytes in hexadecimal, and EEP behind them if that ends the packet.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["data", "input"])]
    pub lines: Option<PathBuf>,
    /// End the packet with an EEP.
    #[arg(long)]
    pub eep: bool,
    /// Send everything this many times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: u64,
}

/// Packets to be received.
#[derive(Debug, Args)]
pub struct ReceiveOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// Stop after this many packets [default: never].
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<u64>,
    /// Stop after this time; fewer packets than --count are a failure then.
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    pub within: Option<Duration>,
    /// Show time-codes, too.
    #[arg(long)]
    pub time_codes: bool,
    /// Write the bytes of all packets to this file at the end instead of showing them; - for standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arrivals to be shown.
#[derive(Debug, Args)]
pub struct SniffOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// Stop after this many packets and time-codes [default: never].
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<u64>,
    /// Stop after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    pub within: Option<Duration>,
    /// The recording.
    #[command(flatten)]
    pub record: RecordingOptions,
}

/// Time-codes to be sent.
#[derive(Debug, Args)]
pub struct TimeCodeOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// The first time-code: flags in bits 7 and 6, the time below them.
    #[arg(value_name = "CODE", value_parser = super::options::byte, default_value = "0")]
    pub code: u8,
    /// Time-codes to send, each one more than the one before, modulo 64.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub count: u64,
    /// Send until interrupted.
    #[arg(long, conflicts_with = "count")]
    pub forever: bool,
    /// Time-codes per second.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::positive)]
    pub rate: f64,
}
