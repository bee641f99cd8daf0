//! IPbus links: how an [`Operation`] becomes commands of the client machine, and its events become completions.
//!
//! | mode | an operation is |
//! |---|---|
//! | receive | one read of so many bytes, in words |
//! | send | one write |
//! | both | a write, and a read of the same words behind it |

use hodo_ipbus::wire::operation::Mode as Access;
use hodo_ipbus::wire::transaction::Info;
use hodo_ipbus::{Block, Clients, Command, Data, Error, Event};
use hodo_machine::{Driver, Instant, Sampling, Stamp, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Loss, Mode, Operation, Outcome, TcpTimes};
use hodo_tester::{FarEndProcess, TransportCounters, ended};
use std::time::Duration;

/// The tag of the write of an operation that goes both ways: its read tells how the operation ended.
const FIRST_HALF: u64 = u64::MAX;

/// The registers that are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    /// The first, or only, address.
    pub(crate) address: u32,
    /// Whether successive addresses or a single one.
    pub(crate) access: Access,
}

/// IPbus clients on any driver, as the tester sees them: each channel is one.
pub(crate) struct IpbusLink<D: Driver<Machine = Clients>> {
    driver: D,
    registers: Registers,
    /// Operations in a packet.
    batch: u32,
    /// The far end's process, where it is one of this host.
    far_end: Option<FarEndProcess>,
    channels: Vec<Channel>,
    /// Channels with operations that have not been flushed.
    unflushed: Vec<u32>,
    payload: Block,
    /// Room for what is read.
    rooms: Vec<Vec<u32>>,
    failed: Option<LinkError>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Channel {
    ready: bool,
    /// Operations since the last flush.
    begun: u32,
    /// How the first half of an operation failed.
    half: Option<Outcome>,
}

/// The tester's settings of a link.
#[derive(Debug, Clone)]
pub(crate) struct LinkSettings {
    pub(crate) registers: Registers,
    pub(crate) channels: u32,
    pub(crate) size_max: u32,
    pub(crate) batch: u32,
    pub(crate) far_end: Option<FarEndProcess>,
}

impl<D: TransportCounters<Machine = Clients>> IpbusLink<D> {
    /// Waits until every device has been reached, at most for `timeout`.
    pub(crate) fn open(driver: D, asked: LinkSettings, timeout: Duration) -> Result<Self, LinkError> {
        let mut link = IpbusLink {
            driver,
            registers: asked.registers,
            batch: asked.batch.max(1),
            far_end: asked.far_end,
            channels: vec![Channel::default(); asked.channels as usize],
            unflushed: Vec::new(),
            payload: (0..words(asked.size_max)).collect(),
            rooms: Vec::new(),
            failed: None,
        };
        let end = link.now() + timeout;
        let mut done = Vec::new();
        while link.channels.iter().any(|channel| !channel.ready) {
            if link.now() >= end {
                return Err(LinkError::Stalled { millis: timeout.as_millis() as u64 });
            }
            link.turn(Wait::Block, end, &mut done)?;
        }
        Ok(link)
    }

    /// Returns the driver.
    pub(crate) fn driver(&self) -> &D {
        &self.driver
    }

    fn turn(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let IpbusLink { driver, channels, rooms, failed, .. } = self;
        let outcome = driver.turn(wait, until, &mut |(number, event)| {
            let Some(channel) = channels.get_mut(number as usize) else { return };
            match event {
                Event::Ready => channel.ready = true,
                Event::Done { tag: FIRST_HALF, .. } => {}
                Event::Failed { tag: FIRST_HALF, error, .. } => channel.half = Some(outcome_of(error)),
                Event::Done { tag, data } => {
                    if let Data::Block(room) = data {
                        rooms.push(room);
                    }
                    done.push(Completion { tag, outcome: channel.half.take().unwrap_or(Outcome::Done) });
                }
                Event::Failed { tag, error, .. } => {
                    done.push(Completion { tag, outcome: channel.half.take().unwrap_or(outcome_of(error)) });
                }
                Event::Down(error) => {
                    failed.get_or_insert_with(|| link_error(number, error));
                }
            }
        });
        ended(outcome, self.failed.as_ref())
    }

    fn read(&mut self, tag: u64, words: u32) -> Command {
        let Registers { address, access } = self.registers;
        match (words, access) {
            (1, Access::Incrementing) => Command::Read { tag, address },
            _ => {
                let into = self.rooms.pop().unwrap_or_default();
                Command::ReadBlock { tag, mode: access, address, words, into }
            }
        }
    }

    fn write(&self, tag: u64, words: u32) -> Command {
        let Registers { address, access } = self.registers;
        match (words, access) {
            (1, Access::Incrementing) => Command::Write { tag, address, word: tag as u32 },
            _ => Command::WriteBlock { tag, mode: access, address, data: self.payload.first(words as usize) },
        }
    }

    /// Has all that was started sent.
    fn flush_all(&mut self) {
        while let Some(number) = self.unflushed.pop() {
            if std::mem::take(&mut self.channels[number as usize].begun) > 0 {
                self.driver.command((number, Command::Flush));
            }
        }
    }
}

impl<D: TransportCounters<Machine = Clients>> Link for IpbusLink<D> {
    #[inline]
    fn start(&mut self, operation: Operation) {
        let Operation { tag, channel: number, size, mode } = operation;
        let words = words(size);
        if mode != Mode::Receive {
            let tag = if mode == Mode::Both { FIRST_HALF } else { tag };
            let write = self.write(tag, words);
            self.driver.command((number, write));
        }
        if mode != Mode::Send {
            let read = self.read(tag, words);
            self.driver.command((number, read));
        }
        let Some(channel) = self.channels.get_mut(number as usize) else { return };
        channel.begun += 1;
        if channel.begun == self.batch {
            channel.begun = 0;
            self.driver.command((number, Command::Flush));
        } else if channel.begun == 1 {
            self.unflushed.push(number);
        }
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.flush_all();
        self.turn(wait, until, done)
    }

    #[inline]
    fn now(&self) -> Instant {
        self.driver.now()
    }

    /// Returns the usage of the device's process from the system if it runs on this host, because a device has no
    /// counters of its process.
    fn far_end(&mut self, _until: Instant, _done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        let usage = self.far_end.as_ref().and_then(FarEndProcess::usage);
        Ok(usage.map(|usage| FarEnd { usage: Some(usage), ..FarEnd::default() }))
    }

    fn tcp(&self) -> Option<TcpTimes> {
        self.driver.tcp()
    }

    fn losses(&self) -> Loss {
        let counters = self.driver.machine().counters();
        let below = self.driver.transport_losses();
        Loss {
            duplicated: counters.strays,
            retransmitted: below.retransmitted + counters.requests_lost + counters.replies_lost,
            ..below
        }
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.driver.machine_mut().sample(taken);
        true
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        let before = stamps.len();
        self.driver.machine_mut().stamps().hand_over(stamps);
        let mut index = 0;
        stamps.retain(|stamp| {
            index += 1;
            index <= before || stamp.tag != FIRST_HALF
        });
    }
}

/// Words that hold so many bytes.
pub(crate) const fn words(bytes: u32) -> u32 {
    bytes.div_ceil(hodo_ipbus::wire::WORD as u32)
}

fn outcome_of(error: Error) -> Outcome {
    match error {
        Error::Transaction { info: Info::Done | Info::Request, .. } => Outcome::Lost,
        Error::Transaction { .. } | Error::LeftOut | Error::Unsupported | Error::Hub(_) => Outcome::Refused,
        _ => Outcome::Lost,
    }
}

fn link_error(channel: u32, error: Error) -> LinkError {
    match error {
        Error::Closed(why) => LinkError::Closed { channel, why },
        other => LinkError::PeerMisbehaved { channel, what: other.to_string() },
    }
}
