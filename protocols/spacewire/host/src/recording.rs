//! Recordings of packets, time-codes and characters, for Wireshark: pcapng files that `packaging/wireshark/spacewire.lua` shows.
//!
//! The link type is USER0. Each record begins with four bytes, which that file describes, and each link is an interface; what its first
//! end sends goes out. Files are written by a thread of their own, and bounded.

#[cfg(test)]
mod tests;

use crate::Names;
use hodo_io::{Direction, Recorder, Sighting, Trace, TraceOptions, unix_time_ns};
use hodo_machine::Instant;
use hodo_spacewire::character::Code;
use hodo_spacewire::network::{Observer, Place, Record};
use hodo_spacewire::{EndOfPacket, Picos};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

/// The link type of these files: the first one for private use.
const USER0: u16 = 147;
/// The version of the records.
const VERSION: u8 = 0;
/// Kinds of records.
const PACKET: u8 = 0;
const TIME_CODE: u8 = 1;
const CHARACTERS: u8 = 2;
/// The end of what is no packet.
const NO_END: u8 = 2;
/// Bytes on the way over a link, or of its packet so far, that are kept. A packet that goes on longer is cut here.
const KEPT: usize = 16 << 20;

/// The options of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    /// The file. An existing one becomes `FILE.1`.
    pub file: PathBuf,
    /// Bytes that the file and `FILE.1` take at most.
    pub size_max: u64,
    /// Whether every character is recorded, and every change of a link, as an analyser shows them.
    pub characters: bool,
}

impl RecordOptions {
    /// The least limit on bytes.
    pub const SIZE_MIN: u64 = TraceOptions::SIZE_MIN;

    fn start(&self, interfaces: &[String]) -> io::Result<(Trace, Recorder)> {
        let options = TraceOptions { file: self.file.clone(), size_max: self.size_max, paused: false };
        Recorder::start(&options, USER0, interfaces)
    }
}

fn end_byte(end: EndOfPacket) -> u8 {
    match end {
        EndOfPacket::Eop => 0,
        EndOfPacket::Eep => 1,
    }
}

/// A recording of what arrives at a port of a bridge.
#[derive(Debug)]
pub struct PortRecording {
    recorder: Recorder,
    trace: Trace,
}

impl PortRecording {
    /// Begins the file for the port of this name.
    ///
    /// # Errors
    /// Returns the operating system's error if the file cannot be created.
    pub fn start(options: &RecordOptions, port: &str) -> io::Result<Self> {
        let (trace, recorder) = options.start(&[port.to_owned()])?;
        Ok(PortRecording { recorder, trace })
    }

    /// Records a packet that has just arrived.
    pub fn packet(&mut self, data: &[u8], end: EndOfPacket) {
        self.record([VERSION, PACKET, end_byte(end), 1], data);
    }

    /// Records a time-code that has just arrived.
    pub fn time_code(&mut self, code: u8) {
        self.record([VERSION, TIME_CODE, NO_END, 1], &[code]);
    }

    fn record(&mut self, header: [u8; 4], data: &[u8]) {
        let unix_ns = unix_time_ns();
        let seen = Sighting { interface: 0, unix_ns, direction: Direction::In };
        self.recorder.packet(Instant::from_nanos(unix_ns), seen, &[&header, data]);
    }

    /// Writes everything, and returns how many records were written and how many were lost.
    ///
    /// # Errors
    /// The reason if writing has failed.
    pub fn finish(self) -> Result<(u64, u64), String> {
        let PortRecording { recorder, trace } = self;
        drop(recorder);
        let counters = trace.finish();
        match counters.failed {
            Some(why) => Err(why),
            None => Ok((counters.packets, counters.lost)),
        }
    }
}

/// A recording of every link of a network: its observer.
#[derive(Debug)]
pub struct Recording {
    recorder: RefCell<Recorder>,
    characters: bool,
    /// The beginning of the network's time, in nanoseconds since 1970.
    origin_ns: u64,
    /// The link of a place, and which end of it that is.
    ends: HashMap<Place, (usize, usize)>,
    /// Bytes that leave the two ends of each link.
    lines: Vec<[Line; 2]>,
    scratch: Vec<u8>,
}

/// Bytes that have left an end and have not arrived as part of a packet.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// Bytes at the front that have arrived.
    taken: usize,
    /// Bytes behind them that are not kept.
    skipped: u64,
    /// Whether the far end tells what arrives, which bit errors may have altered.
    is_noisy: bool,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        if self.skipped > 0 || self.bytes.len() - self.taken + bytes.len() > KEPT {
            self.skipped += bytes.len() as u64;
            return;
        }
        if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next bytes. They are fewer where some were not kept.
    fn take(&mut self, length: u64) -> &[u8] {
        let kept = length.min((self.bytes.len() - self.taken) as u64);
        self.skipped = self.skipped.saturating_sub(length - kept);
        let begin = self.taken;
        self.taken += kept as usize;
        &self.bytes[begin..self.taken]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        (self.taken, self.skipped) = (0, 0);
    }
}

impl Recording {
    /// Begins the file, with an interface for each link. Returns the trace, which counts.
    ///
    /// # Errors
    /// Returns the operating system's error if the file cannot be created.
    pub fn start(options: &RecordOptions, names: &Names) -> io::Result<(Trace, Recording)> {
        let interfaces: Vec<String> =
            names.links.iter().map(|[(one, _), (other, _)]| format!("{one} - {other}")).collect();
        let (trace, recorder) = options.start(&interfaces)?;
        let ends = names
            .links
            .iter()
            .enumerate()
            .flat_map(|(link, ends)| ends.iter().enumerate().map(move |(end, (_, place))| (*place, (link, end))));
        let recording = Recording {
            recorder: RefCell::new(recorder),
            characters: options.characters,
            origin_ns: unix_time_ns(),
            ends: ends.collect(),
            lines: names.links.iter().map(|_| Default::default()).collect(),
            scratch: Vec::new(),
        };
        Ok((trace, recording))
    }

    /// Records characters that an end sent, or what happened to it.
    fn record_characters(&mut self, at: Picos, place: (usize, usize), record: &Record<'_>) {
        let scratch = &mut self.scratch;
        scratch.clear();
        let mut head = |what: u8, bit: Picos| {
            scratch.push(what);
            scratch.extend((bit.0 as u32).to_be_bytes());
        };
        let none = Picos::ZERO;
        match record {
            Record::Nulls { count, bit } => {
                head(0, *bit);
                scratch.extend(count.to_be_bytes());
            }
            Record::Data { bytes, bit } => {
                head(1, *bit);
                scratch.extend_from_slice(bytes);
            }
            Record::Code(code) => match code {
                Code::Fct => head(2, none),
                Code::Eop => head(3, none),
                Code::Eep => head(4, none),
                Code::TimeCode(value) => {
                    head(5, none);
                    scratch.push(*value);
                }
                Code::Null => {
                    head(0, none);
                    scratch.extend(1_u64.to_be_bytes());
                }
                Code::Data(byte) => {
                    head(1, none);
                    scratch.push(*byte);
                }
            },
            Record::Fault(fault) => {
                head(6, none);
                scratch.extend(format!("{fault:?}").bytes());
            }
            Record::State(state) => {
                head(7, none);
                scratch.extend(format!("{state:?}").bytes());
            }
            Record::Failed(failure) => {
                head(8, none);
                scratch.extend(failure.error.to_string().bytes());
            }
            _ => return,
        }
        let scratch = std::mem::take(&mut self.scratch);
        self.write(at, place, CHARACTERS, NO_END, &scratch);
        self.scratch = scratch;
    }

    /// Writes a record of what one end of a link sent.
    fn write(&self, at: Picos, (link, from): (usize, usize), kind: u8, end: u8, data: &[u8]) {
        let direction = if from == 0 { Direction::Out } else { Direction::In };
        let seen = Sighting { interface: link, unix_ns: self.origin_ns + at.as_nanos(), direction };
        let header = [VERSION, kind, end, from as u8];
        self.recorder.borrow_mut().packet(Instant::from_nanos(at.as_nanos()), seen, &[&header, data]);
    }
}

impl Observer for Recording {
    fn record(&mut self, at: Picos, place: Place, record: Record<'_>) {
        let Some(&(link, end)) = self.ends.get(&place) else { return };
        if self.characters {
            self.record_characters(at, (link, end), &record);
        }
        let from = 1 - end;
        match record {
            Record::Data { bytes, .. } if !self.lines[link][end].is_noisy => self.lines[link][end].push(bytes),
            Record::Received(byte) => {
                let line = &mut self.lines[link][from];
                if !line.is_noisy {
                    line.is_noisy = true;
                    line.clear();
                }
                line.push(&[byte]);
            }
            // What was on the way before the link failed is lost.
            Record::State(hodo_spacewire::end::State::Run) => self.lines[link][end].clear(),
            Record::PacketEnds { length, end: marker } => {
                let mut line = std::mem::take(&mut self.lines[link][from]);
                self.write(at, (link, from), PACKET, end_byte(marker), line.take(length));
                self.lines[link][from] = line;
            }
            Record::TimeCode(code) => self.write(at, (link, from), TIME_CODE, NO_END, &[code]),
            _ => {}
        }
    }
}

/// An observer of a bridge's network that is looked after now and then.
pub trait Watched: Observer {
    /// Passes on what has waited long enough, at this time of the network.
    fn look_in(&self, at: Picos) {
        let _ = at;
    }
}

impl Watched for () {}

impl Watched for Recording {
    fn look_in(&self, at: Picos) {
        self.recorder.borrow_mut().look_in(Instant::from_nanos(at.as_nanos()));
    }
}
