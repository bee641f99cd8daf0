//! pvAccess links: how an [`Operation`] becomes an execution of the client machine, and its events become completions.
//!
//! | mode | an operation is |
//! |---|---|
//! | receive | a get of the field `value` |
//! | send | a put of it |
//! | both | a put-get |
//!
//! An operation of another size than that which the link was opened for gets a part of an array, or puts bytes to an array of any size: a
//! PV for each of many sizes would be opened while the others are measured.
//!
//! By the option `operation` it is a [call](crate::call) instead, with its payload in the reply, the argument or both; or a channel
//! that is opened, and closed once it is open.
//!
//! A channel of the link has, for each size and mode, a PV and as many operations on it as are in flight at once. They are set up when they
//! are first needed, and used again and again.

mod connects;
mod feeds;
mod payload;
mod reporter;
#[cfg(test)]
mod tests;

use crate::call::call_name;
use crate::far_end::{any_name, bytes_name, name_of, updates_name};
use crate::operation::Kind;
use crate::report::{self, REPORT};
use connects::Connects;
use feeds::Feeds;
use hodo_machine::{Address, Driver, Instant, Sampling, Stamp, Wait};
use hodo_measure::{
    Completion, FarEnd, Link, LinkError, Loss, Mode, Operation, Outcome, ReportWait, Subscription, TcpTimes,
};
use hodo_pva::client::{self, ArrayRequest, Client, Command, Event, Failure, Lost};
use hodo_pva::wire::Status;
use hodo_pva::wire::operation::ArraySlice;
use hodo_pva::{Item, Request};
use hodo_tester::{FarEndProcess, TransportCounters, ended, until_ready};
use payload::{Payload, content};
use reporter::Reporter;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The PVs of a link, and how they are reached.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The server.
    pub(crate) server: Address,
    /// The name of the PV at a server that is not `hodo serve`, in which `{}` stands for the number of the channel.
    pub(crate) name: Option<String>,
    /// The kind of an operation.
    pub(crate) kind: Kind,
    /// The process of the far end, if it is on this host and known.
    pub(crate) far_process: Option<FarEndProcess>,
    /// A number that no other link has: names of PVs with updates begin with it.
    pub(crate) id: u64,
}

/// A pvAccess client on any driver, as the tester sees it.
pub(crate) struct PvaLink<D: Driver<Machine = Client>> {
    driver: D,
    target: Target,
    request: Request,
    /// The size that the link was opened for.
    size: u32,
    /// The number of the first channel of this link, and the PVs of each.
    first: u32,
    channels: Vec<Vec<Family>>,
    /// The operations of the client, by their numbers.
    slots: Vec<Slot>,
    /// The channel of this link that each channel of the client belongs to.
    owners: Vec<u32>,
    /// Channels that were opened so far, and how many have to be before anything can be measured.
    open: u32,
    needed: u32,
    reporter: Reporter,
    feeds: Feeds,
    connects: Connects,
    payload: Payload,
    sampling: Sampling,
    failed: Option<LinkError>,
}

/// The PV of a channel for one size, and its operations of one mode.
struct Family {
    size: u32,
    mode: Mode,
    /// Whether its operations have any size up to its own.
    is_part: bool,
    /// The client's number of the PV.
    pv: u32,
    /// Operations that are not in flight.
    free: Vec<u32>,
}

/// An operation of the client.
struct Slot {
    channel: u32,
    family: u32,
    size: u32,
    mode: Mode,
    is_part: bool,
    tag: u64,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Free,
    /// Waits for the type of what it puts.
    Unset,
    InFlight,
    /// Calls for reports.
    Report,
    /// Monitors.
    Feed,
}

impl<D: TransportCounters<Machine = Client>> PvaLink<D> {
    /// Connects to the PVs of `channels` channels, of this size, at most for `timeout`, and no longer than until `stop` is set.
    pub(crate) fn open(
        driver: D,
        target: Target,
        channels: std::ops::Range<u32>,
        size: u32,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> Result<Self, LinkError> {
        // Channels that are opened as operations need a connection, which one that stays open keeps.
        let needed = if target.kind == Kind::Connect { 1 } else { channels.len() as u32 };
        let mut link = PvaLink {
            driver,
            target,
            request: "field(value)".parse().expect("a request"),
            size,
            first: channels.start,
            channels: channels.clone().map(|_| Vec::new()).collect(),
            slots: Vec::new(),
            owners: Vec::new(),
            open: 0,
            needed,
            reporter: Reporter::default(),
            feeds: Feeds::default(),
            connects: Connects::default(),
            payload: Payload::default(),
            sampling: Sampling::NONE,
            failed: None,
        };
        for channel in 0..needed {
            link.family(channel, size, Mode::Receive);
        }
        if link.target.name.is_none() {
            let (pv, operation) = fresh(&mut link.owners, &mut link.slots, 0, Step::Report);
            link.reporter = Reporter::new(pv, operation);
            link.open_pv(pv, REPORT.to_owned());
            let request = Box::default();
            link.driver.command(Command::Prepare { operation, channel: pv, kind: client::Kind::Call, request });
        }
        until_ready(&mut link, timeout, stop, |link| link.open >= needed + u32::from(link.reporter.is_there()))?;
        Ok(link)
    }

    /// Returns the driver.
    pub(crate) fn driver(&self) -> &D {
        &self.driver
    }

    /// Reads the PV of the first channel, and returns how many bytes its field `value` has.
    pub(crate) fn size_there(&mut self, timeout: Duration, stop: &AtomicBool) -> Result<Option<u64>, LinkError> {
        self.start(Operation { tag: 0, channel: 0, size: self.channels[0][0].size, mode: Mode::Receive });
        until_ready(self, timeout, stop, |link| link.slots[0].step == Step::Free)?;
        let value = self.driver.machine().value(0).and_then(|value| value.get("value"));
        Ok(value.and_then(|item| match item {
            Item::Array(array) => array.scalar().width().map(|width| (array.len() * width) as u64),
            Item::Text(text) => Some(text.as_bytes().len() as u64),
            Item::Bool(_) | Item::Int(_) | Item::Uint(_) | Item::Float(_) => Some(8),
            _ => None,
        }))
    }

    /// Returns the place of the PV of a channel for a size and a mode, and opens it if there is none yet.
    fn family(&mut self, channel: u32, size: u32, mode: Mode) -> usize {
        let families = &self.channels[channel as usize];
        let is_value = self.target.kind == Kind::Value;
        let is_part = is_value && size != self.size && self.target.name.is_none();
        // Calls of any size are of one channel.
        let size = if is_part || !is_value { self.size } else { size };
        let key = (size, mode, is_part);
        if let Some(place) = families.iter().position(|family| (family.size, family.mode, family.is_part) == key) {
            return place;
        }
        let mut whole = families.iter().filter(|family| !family.is_part && !is_part);
        let known = whole.find(|family| family.size == size || self.target.name.is_some());
        let pv = known.map_or(self.owners.len() as u32, |family| family.pv);
        if known.is_none() {
            let number = self.first + channel;
            let name = match &self.target.name {
                Some(name) => name.replace("{}", &number.to_string()),
                None if self.target.kind == Kind::Call => call_name(number),
                None if is_part && mode == Mode::Receive => bytes_name(size, number),
                None if is_part => any_name(number),
                None => name_of(size, number),
            };
            self.owners.push(channel);
            self.open_pv(pv, name);
        }
        let families = &mut self.channels[channel as usize];
        families.push(Family { size, mode, is_part, pv, free: Vec::new() });
        families.len() - 1
    }

    fn open_pv(&mut self, channel: u32, name: String) {
        self.driver.command(Command::Open { channel, name, server: Some(self.target.server.clone()) });
    }

    /// Requests a report of the far end, unless one is under way.
    fn ask_report(&mut self) {
        let now = self.driver.now();
        if let Some(operation) = self.reporter.ask(now) {
            let argument = Some(Box::new(report::question(self.sampling.is_on())));
            self.driver.command(Command::Call { operation, argument });
        }
    }

    /// Sets an operation up, and returns its number.
    fn prepare(&mut self, channel: u32, family: usize) -> u32 {
        let Family { size, mode, is_part, pv, .. } = self.channels[channel as usize][family];
        let operation = self.slots.len() as u32;
        let family = family as u32;
        self.slots.push(Slot { channel, family, size, mode, is_part, tag: 0, step: Step::Unset });
        let kind = match mode {
            _ if self.target.kind == Kind::Call => client::Kind::Call,
            Mode::Receive if is_part => client::Kind::Array,
            Mode::Receive => client::Kind::Get,
            Mode::Send => client::Kind::Put,
            Mode::Both => client::Kind::PutGet,
        };
        self.driver.command(Command::Prepare { operation, channel: pv, kind, request: Box::new(self.request.clone()) });
        operation
    }

    /// Executes an operation, if what it puts is known.
    #[inline]
    fn execute(&mut self, operation: u32) {
        let slot = &mut self.slots[operation as usize];
        slot.step = Step::InFlight;
        if self.sampling.takes(slot.tag) {
            self.driver.machine_mut().follow(operation);
        }
        if self.target.kind == Kind::Call {
            let argument = Some(self.payload.argument(slot.mode, slot.size));
            return self.driver.command(Command::Call { operation, argument });
        }
        if slot.is_part && slot.mode == Mode::Receive {
            let request = ArrayRequest::Read(ArraySlice { offset: 0, count: slot.size.into(), stride: 1 });
            return self.driver.command(Command::Array { operation, request: Box::new(request) });
        }
        if slot.mode == Mode::Receive {
            return self.driver.command(Command::Execute { operation });
        }
        let Some(mut value) = self.driver.machine_mut().blank(operation) else {
            slot.step = Step::Unset;
            return;
        };
        let number = value.plan().number("value");
        let is_filled = number.is_some_and(|number| {
            if slot.is_part {
                return value.set_at(number, self.payload.bytes(slot.size)).is_ok();
            }
            // What was put before is put again.
            let is_there = value.at(number).is_some_and(|item| matches!(item, Item::Array(array) if !array.is_empty()));
            if is_there {
                value.mark(number);
            }
            is_there || value.set_at(number, content(slot.size)).is_ok()
        });
        if is_filled {
            self.driver.command(Command::Put { operation, value });
        } else {
            let what = format!("no field `value` that takes {} bytes of doubles", slot.size);
            self.failed.get_or_insert(LinkError::PeerMisbehaved { channel: slot.channel, what });
        }
    }

    #[inline]
    fn turn(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let PvaLink {
            driver,
            channels,
            slots,
            owners,
            open,
            failed,
            first,
            feeds,
            reporter,
            connects,
            target,
            size,
            ..
        } = self;
        let (mut set_up, mut report, mut without_reports) = (Vec::new(), None, None);
        let has_ended = !feeds.ended.is_empty();
        done.extend(
            feeds.ended.drain(..).map(|channel| Completion { tag: u64::from(channel), outcome: Outcome::Unsubscribed }),
        );
        let wait = if has_ended { Wait::Never } else { wait };
        let outcome = driver.turn(wait, until, &mut |event| match event {
            Event::Done { operation } | Event::Failed { operation, .. }
                if slots[operation as usize].step == Step::Report =>
            {
                report = Some((operation, matches!(event, Event::Done { .. })));
            }
            Event::Done { operation } => done.push(finished(slots, channels, operation, Outcome::Done)),
            Event::Failed { operation, why } if slots[operation as usize].step == Step::Feed => {
                let channel = *first + slots[operation as usize].channel;
                failed.get_or_insert(LinkError::PeerMisbehaved { channel, what: why.to_string() });
            }
            Event::Failed { operation, why } => {
                let outcome = if matches!(why, Failure::Disconnected) { Outcome::Lost } else { Outcome::Refused };
                done.push(finished(slots, channels, operation, outcome));
            }
            Event::Updates { operation } => feeds.waiting.push(operation),
            Event::Ready { operation } if slots[operation as usize].step == Step::Unset => set_up.push(operation),
            Event::Connected { channel } => match connects.end(channel) {
                Some(tag) => done.push(Completion { tag, outcome: Outcome::Done }),
                None => *open += 1,
            },
            // Another server that makes PVs of these names.
            Event::Refused { channel, .. } if reporter.is_at(channel) => without_reports = Some(channel),
            Event::Refused { channel, status } => {
                if let Some(tag) = connects.end(channel) {
                    return done.push(Completion { tag, outcome: Outcome::Refused });
                }
                let channel = *first + owners[channel as usize];
                let what = if target.name.is_some() { status.to_string() } else { not_made(&status, *size) };
                failed.get_or_insert(LinkError::PeerMisbehaved { channel, what });
            }
            Event::Disconnected { channel, why } => {
                let channel = *first + owners[channel as usize];
                failed.get_or_insert(link_error(channel, why));
            }
            _ => {}
        });
        if let Some(channel) = without_reports {
            reporter.give_up();
            driver.command(Command::Close { channel });
        }
        for operation in set_up {
            self.execute(operation);
        }
        self.close_opened();
        self.updated(report, done);
        // The client itself would try again and again.
        if self.open < self.needed
            && let Some(why) = self.driver.machine().trouble(0)
        {
            self.failed.get_or_insert(link_error(self.first, why.clone()));
        }
        ended(outcome, self.failed.as_ref())
    }

    /// Starts an operation that opens a channel.
    fn connect(&mut self, channel: u32, tag: u64) {
        let PvaLink { connects, owners, .. } = self;
        let number = connects.begin(channel, tag, || {
            owners.push(channel);
            owners.len() as u32 - 1
        });
        let of = self.first + channel;
        let name = self.target.name.as_ref().map_or_else(|| name_of(8, of), |name| name.replace("{}", &of.to_string()));
        self.open_pv(number, name);
    }

    /// Closes the channels whose operations have ended.
    #[inline]
    fn close_opened(&mut self) {
        while let Some(number) = self.connects.opened.pop() {
            self.driver.command(Command::Close { channel: number });
            self.connects.release(self.owners[number as usize], number);
        }
    }

    /// Takes a report and updates that have come, and asks for the next report while there are subscriptions.
    #[inline]
    fn updated(&mut self, report: Option<(u32, bool)>, done: &mut Vec<Completion>) {
        if report.is_none() && self.feeds.is_idle() {
            return;
        }
        let now = self.driver.now();
        let client = self.driver.machine_mut();
        if let Some((operation, is_done)) = report {
            let reply = if is_done { client.value(operation) } else { None };
            self.reporter.take(reply, now);
        }
        self.feeds.take(client, &self.reporter, now, done);
        if !self.feeds.is_idle() && self.reporter.is_due(now) {
            self.ask_report();
        }
    }
}

impl<D: TransportCounters<Machine = Client>> Link for PvaLink<D> {
    #[inline]
    fn start(&mut self, operation: Operation) {
        let Operation { tag, channel, size, mode } = operation;
        if self.target.kind == Kind::Connect {
            return self.connect(channel, tag);
        }
        let family = self.family(channel, size, mode);
        let free = self.channels[channel as usize][family].free.pop();
        let operation = free.unwrap_or_else(|| self.prepare(channel, family));
        let slot = &mut self.slots[operation as usize];
        (slot.tag, slot.size) = (tag, size);
        self.execute(operation);
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.turn(wait, until, done)
    }

    #[inline]
    fn now(&self) -> Instant {
        self.driver.now()
    }

    /// Subscribes to a PV that the far end makes for this subscription alone.
    fn subscribe(&mut self, subscription: Subscription) -> Result<(), LinkError> {
        let Subscription { channel, size, rate, first_after, queue } = subscription;
        if !self.reporter.is_there() {
            let why = "updates are measured from `hodo serve pva://…` alone: start one, and name no PV";
            return Err(LinkError::Unsupported(why.to_owned()));
        }
        let PvaLink { owners, slots, feeds, .. } = self;
        let (feed, count) = feeds.begin(channel, || fresh(owners, slots, channel, Step::Feed));
        let (pv, operation) = (feed.pv, feed.operation);
        self.open_pv(pv, updates_name(size, rate, first_after, &format!("{:x}-{count}", self.target.id)));
        let request = Box::new(feeds::request(queue));
        self.driver.command(Command::Prepare { operation, channel: pv, kind: client::Kind::Monitor, request });
        self.driver.command(Command::Execute { operation });
        self.ask_report();
        Ok(())
    }

    fn unsubscribe(&mut self) {
        let PvaLink { driver, feeds, .. } = self;
        feeds.end(|channel| driver.command(Command::Close { channel }));
    }

    /// Returns what the far end reports, or the usage of its process if that runs on this host.
    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        if !self.reporter.is_there() {
            let usage = self.target.far_process.as_ref().and_then(FarEndProcess::usage);
            return Ok(usage.map(|usage| FarEnd { usage: Some(usage), ..FarEnd::default() }));
        }
        let mut wait = ReportWait::begin(self.now(), until, done);
        // One that was asked for earlier does not count.
        for is_asked in [self.reporter.is_asked(), true] {
            if is_asked {
                self.ask_report();
            }
            while self.reporter.is_asked() {
                let Some(until) = wait.until(self.now(), self.progress(), done) else { return Ok(None) };
                self.turn(Wait::Block, until, done)?;
            }
        }
        Ok(self.reporter.last())
    }

    fn losses(&self) -> Loss {
        Loss { overrun: self.feeds.overrun, ..self.driver.transport_losses() }
    }

    fn tcp(&self) -> Option<TcpTimes> {
        self.driver.tcp()
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.sampling = taken;
        self.target.kind != Kind::Connect
    }

    fn stage_of_far_end(&self) -> Option<&'static str> {
        Some(client::AWAY)
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        let before = stamps.len();
        self.driver.machine_mut().stamps().hand_over(stamps);
        for stamp in &mut stamps[before..] {
            stamp.tag = self.slots[stamp.tag as usize].tag;
        }
    }
}

/// Frees an operation of the client that has ended, and returns its completion.
#[inline]
fn finished(slots: &mut [Slot], channels: &mut [Vec<Family>], operation: u32, outcome: Outcome) -> Completion {
    let slot = &mut slots[operation as usize];
    slot.step = Step::Free;
    channels[slot.channel as usize][slot.family as usize].free.push(operation);
    Completion { tag: slot.tag, outcome }
}

/// Returns what is wrong where a PV of this size was refused that `hodo serve` makes.
fn not_made(status: &Status, size: u32) -> String {
    format!(
        "{status}; PVs of {size} bytes are made by `hodo serve pva://…` alone, with a --size-max as large: start one, or write the name of a PV of this server, pva://host:port/NAME"
    )
}

fn link_error(channel: u32, why: Lost) -> LinkError {
    match why {
        Lost::Closed(why) => LinkError::Closed { channel, why },
        other => LinkError::PeerMisbehaved { channel, what: other.to_string() },
    }
}

/// Returns numbers for a PV and an operation of the client beside those of families.
fn fresh(owners: &mut Vec<u32>, slots: &mut Vec<Slot>, channel: u32, step: Step) -> (u32, u32) {
    let numbers = (owners.len() as u32, slots.len() as u32);
    owners.push(channel);
    slots.push(Slot { channel, family: u32::MAX, size: 0, mode: Mode::Receive, is_part: false, tag: 0, step });
    numbers
}
