//! The packets in flight to one device over UDP: nothing is lost, nothing is done twice, and order is kept.
//!
//! The rules of IPbus 2.0 that this builds on: a device takes a packet only where its id is the next one, and drops
//! others without a word; it keeps its last replies, one in each of its buffers; its status says which id is next.
//!
//! | seen | then |
//! |---|---|
//! | a reply, where an earlier one is missing | the device did the earlier packet: its reply is asked for again |
//! | nothing in time | the status is asked for |
//! | losses, lately | the status is asked for right behind what is sent |
//! | a reply, where an earlier request for the status has no answer | that request, or its answer, is lost |
//! | a status | replies of packets before the next id are asked for; packets from it on are sent again |
//! | a status whose next id is none of ours | once more after a pause; then the device has [restarted](Cause::Restarted) |
//!
//! A device begins with id 1 after a restart. No packet of a caller ever has id 1, and none is sent before a read of
//! no words has shown that the ids agree: so "next is 1" always tells of a restart, and nothing is sent into it again.
//!
//! A window has no opinion on who its caller is: a client, or the hub. Bytes come in by [`Window::received`], and go
//! out by [`Window::poll`]. It has one deadline, which follows from its state, and so no timers of its own.

mod identity;
mod recovery;
mod round_trip;
mod sharing;

pub use round_trip::RoundTrip;

use crate::Error;
use crate::wire::packet::{self, HEADER, Kind, Packet};
use crate::wire::status::{self, Status};
use crate::wire::{IN_FLIGHT, PAYLOAD, WORD};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::ops::AddAssign;
use core::time::Duration;
use hodo_machine::Instant;
use identity::OwnIds;
use sharing::Sharing;

/// The longest wait for one answer is this part of the patience, so that several are tried.
const TRIES: u32 = 8;
/// A restart of a device takes longer than this.
const RESTART: Duration = Duration::from_millis(1);

/// The bounds and times of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowConfig {
    /// Packets in flight at most. The device's buffers bound them too.
    pub in_flight: usize,
    /// How long nothing may get on before it is given up.
    pub patience: Duration,
    /// How long a lone packet may take where nothing was lost lately. A timer that is far away costs a blocking driver
    /// less than a near one, and a lone packet is hardly ever late.
    pub calm: Duration,
    /// No answer is late before this: a hiccup of an ordinary scheduler would look like a loss.
    pub late_min: Duration,
    /// The seed of the numbers that the window writes into the first transaction of each packet, and takes out of its reply:
    /// so that the reply of another host's packet is never taken for one's own. `None` leaves the caller's, who then has to
    /// begin at a random one.
    pub own_ids: Option<u64>,
}

impl WindowConfig {
    /// Returns the longest wait for one answer.
    pub(crate) fn late_max(&self) -> Duration {
        self.patience / TRIES
    }
}

impl Default for WindowConfig {
    /// Returns uHAL's bound on packets in flight, its patience of a second, and no calm.
    fn default() -> Self {
        WindowConfig {
            in_flight: IN_FLIGHT,
            patience: Duration::from_secs(1),
            calm: Duration::ZERO,
            late_min: Duration::from_micros(200),
            own_ids: None,
        }
    }
}

/// Why a packet is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The device answers nothing at all.
    Silent,
    /// The device tells its status, and does not take the packet.
    Ignored,
    /// The device did the packet, and cannot send its reply again.
    ReplyLost,
    /// The device has forgotten the ids: it may have done the packet before, or not.
    Restarted,
    /// Somebody else sends packets with ids to this device: it may have done the packet, or not.
    Contended,
    /// The device's status makes no sense.
    Malformed(Error),
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Error {
        match cause {
            Cause::Silent | Cause::Ignored => Error::NoAnswer,
            Cause::ReplyLost | Cause::Restarted => Error::Restarted,
            Cause::Contended => Error::Contended,
            Cause::Malformed(error) => error,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::from(*self).fmt(f)
    }
}

/// The next thing to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Send this datagram to the device.
    Send(&'a [u8]),
    /// This packet gets no reply any more.
    Failed {
        /// Key of the packet.
        key: u64,
        /// Why.
        cause: Cause,
    },
    /// The device is given up: nothing is in flight, and nothing can be pushed before [`Window::open`].
    Down(Cause),
    /// Nothing to do before this instant, or before something is received or pushed.
    Idle(Option<Instant>),
}

/// A reply, the first of its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The key that its packet was pushed with.
    pub key: u64,
    /// The header that its packet was pushed with.
    pub header: [u8; HEADER],
    /// The header of its first transaction as the caller is due it, if the window has numbered it.
    pub first: Option<[u8; WORD]>,
    /// The reply as it was received.
    pub packet: &'a [u8],
}

impl Answer<'_> {
    /// Appends the reply with the headers that its caller is due.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let first = self.first.as_ref().map_or(&[][..], |first| first);
        out.extend_from_slice(&self.header);
        out.extend_from_slice(first);
        out.extend_from_slice(&self.packet[HEADER + first.len()..]);
    }
}

/// A received datagram, classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A reply, and it was taken.
    Reply,
    /// A reply that is another packet's, or that the caller did not take: it is asked for again.
    NotTaken,
    /// The device's status.
    Status,
    /// An answer to nothing that is outstanding: a second one, or a very late one.
    Stray,
    /// No packet that a device sends.
    Malformed(Error),
}

/// The counters of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowCounters {
    /// Packets sent, each counted once.
    pub packets: u64,
    /// Packets sent again, because the device had not seen them.
    pub requests_lost: u64,
    /// Replies asked for again.
    pub replies_lost: u64,
    /// Status requests.
    pub statuses: u64,
    /// Times that an answer was late.
    pub late: u64,
    /// Replies to nothing that was outstanding. Late statuses do not count: several are asked for while none comes.
    pub strays: u64,
    /// Times that the device had forgotten the ids.
    pub restarts: u64,
}

impl AddAssign for WindowCounters {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.requests_lost += other.requests_lost;
        self.replies_lost += other.replies_lost;
        self.statuses += other.statuses;
        self.late += other.late;
        self.strays += other.strays;
        self.restarts += other.restarts;
    }
}

/// The packets in flight to one device.
#[derive(Debug)]
pub struct Window {
    config: WindowConfig,
    state: State,
    /// In the order of their ids.
    slots: VecDeque<Slot>,
    spare: Vec<Vec<u8>>,
    /// The id of the oldest slot, or of the next packet.
    base: u16,
    /// The id of the next packet.
    next: u16,
    /// Slots before this one have been done by the device.
    done: usize,
    /// Slots from this one on are to be sent.
    unsent: usize,
    /// Slots whose reply is to be asked for.
    to_ask: usize,
    /// The first so many slots are being given up.
    failing: usize,
    cause: Cause,
    after: After,
    to_greet: bool,
    own: Option<OwnIds>,
    /// Datagrams sent so far.
    turns: u64,
    status: StatusRequests,
    resend: [u8; HEADER],
    device: Status,
    round_trip: RoundTrip,
    /// Packets that have to go well before a lone one may take its time.
    troubled: u32,
    sharing: Sharing,
    progress: Progress,
    counters: WindowCounters,
}

/// The requests of the device's status.
#[derive(Debug, Default)]
struct StatusRequests {
    /// Whether one is to be sent.
    wanted: bool,
    /// Those whose answers may still come, oldest first. Answers come in this order, so that each is judged by the oldest
    /// that is not known to be lost.
    asked: VecDeque<StatusRequest>,
    /// Statuses that were asked for and have not come: as many may still come late, and tell of long ago.
    due: u32,
    /// Statuses that told an id of long ago since something got on.
    of_long_ago: u32,
    /// Whether something was sent since the last status was asked for, and may be lost.
    behind: bool,
}

impl StatusRequests {
    /// Takes those for lost that were sent before this turn: a packet of this turn is answered.
    #[inline]
    fn lose_before(&mut self, turn: u64) {
        while self.asked.front().is_some_and(|asked| asked.turn < turn) {
            self.asked.pop_front();
        }
    }

    /// Takes out the oldest that is not lost. All but the latest are, once they have waited longer than the device was ever
    /// silent since, and `late` on top: a device that stood still answers in the order in which it was asked.
    fn take_oldest(&mut self, now: Instant, late: Duration) -> Option<StatusRequest> {
        let late_ns = late.as_nanos() as u64;
        let is_lost = |asked: &StatusRequest| now.nanos_since(asked.at) > asked.silence_ns.saturating_add(late_ns);
        while self.asked.len() > 1 && self.asked.front().is_some_and(is_lost) {
            self.asked.pop_front();
        }
        self.asked.pop_front()
    }

    /// Notes that something has come from the device, which was heard last at this instant.
    #[inline]
    fn note_silence(&mut self, now: Instant, heard: Instant) {
        for asked in &mut self.asked {
            asked.silence_ns = asked.silence_ns.max(now.nanos_since(heard.max(asked.at)));
        }
    }
}

/// The progress since something new is waited for.
#[derive(Debug)]
struct Progress {
    /// Since when the oldest answer is waited for.
    waiting: Instant,
    /// When something got on last.
    since: Instant,
    /// The number of times that an answer was late since then.
    tries: u32,
    /// Whether anything came since then.
    heard: bool,
    malformed: Option<Error>,
    /// Whether packets were sent again and nothing got on since.
    sent_again: bool,
}

impl Progress {
    /// Starts now.
    fn start(now: Instant) -> Self {
        Progress { waiting: now, since: now, tries: 0, heard: false, malformed: None, sent_again: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Down,
    Opening,
    Open,
    /// The status did not fit. It is asked for again at this instant, when late answers have passed by.
    Doubtful(Instant),
}

/// A request for the status that has no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StatusRequest {
    at: Instant,
    /// The place among all datagrams that were sent.
    turn: u64,
    /// The longest that the device was silent since.
    silence_ns: u64,
}

/// The state that follows once packets have been given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    GoOn,
    Down,
    /// Go on with this id.
    Resume(u16),
}

#[derive(Debug)]
struct Slot {
    id: u16,
    /// `None` for the greeting.
    key: Option<u64>,
    /// Packets of the same chain keep their order.
    chain: u32,
    header: [u8; HEADER],
    /// The header of the first transaction as it was pushed, if it has another number since.
    first: Option<u32>,
    packet: Vec<u8>,
    stage: Stage,
    /// When it was sent, or its reply asked for, last; and the place of that among all datagrams that were sent.
    sent: Instant,
    turn: u64,
    /// Whether it was sent once, and its reply not asked for.
    once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Sent,
    ToAsk,
    Asked,
    Answered,
    /// The device keeps another host's reply under its number, with this first transaction.
    Anothers(u32),
    /// It is shown not to have been done.
    NotDone,
}

/// The next datagram to be sent.
enum Out {
    Status,
    Resend(u16),
    Packet(usize),
}

impl Window {
    /// Creates a window that is down.
    #[must_use]
    pub fn new(config: WindowConfig) -> Self {
        let late_max = config.late_max();
        Window {
            config: WindowConfig { calm: config.calm.min(late_max), ..config },
            state: State::Down,
            slots: VecDeque::new(),
            spare: Vec::new(),
            base: 1,
            next: 1,
            done: 0,
            unsent: 0,
            to_ask: 0,
            failing: 0,
            cause: Cause::Silent,
            after: After::GoOn,
            to_greet: false,
            own: config.own_ids.map(OwnIds::new),
            turns: 0,
            status: StatusRequests::default(),
            resend: [0; HEADER],
            device: Status::default(),
            round_trip: RoundTrip::new(config.late_min, late_max),
            troubled: 0,
            sharing: Sharing::new(config.own_ids.unwrap_or_default()),
            progress: Progress::start(Instant::ZERO),
            counters: WindowCounters::default(),
        }
    }

    /// Requests the device's next id, if the window is down.
    pub fn open(&mut self, now: Instant) {
        if self.state == State::Down {
            self.state = State::Opening;
            self.status.wanted = true;
            self.status.asked.clear();
            self.begin(now);
        }
    }

    /// Requests the status of a device that is down, once; the answer opens the window, whenever it comes.
    pub fn probe(&mut self) {
        self.status.wanted |= self.state == State::Down;
    }

    /// Gives up the device, and all that is in flight to it: it cannot be reached.
    pub fn give_up(&mut self) {
        self.fail_all(Cause::Silent);
    }

    /// Tells whether nothing can be pushed before [`Window::open`].
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.state == State::Down
    }

    /// Returns how many packets can be pushed now: none before the device has told its next id, and taken the greeting.
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        let is_failing = self.failing > 0 || self.after != After::GoOn;
        let closed = self.state != State::Open || is_failing || self.is_greeting();
        if closed { 0 } else { self.limit().saturating_sub(self.slots.len()) }
    }

    /// Tells whether the device has buffers for a packet of this many bytes. As many as uHAL fills are always tried,
    /// whatever the device says of itself.
    #[must_use]
    pub fn takes(&self, bytes: usize) -> bool {
        bytes <= PAYLOAD || u32::try_from(bytes).is_ok_and(|bytes| bytes <= self.device.buffer_bytes)
    }

    /// Packets in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Tells whether none is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the device's last status: its buffers, and the bytes of one.
    #[must_use]
    pub const fn device(&self) -> &Status {
        &self.device
    }

    /// Returns the estimate of the round-trip.
    #[must_use]
    pub const fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> WindowCounters {
        self.counters
    }

    /// Takes a control packet, in either byte order and with any id, and answers the id that it gets. `fill` puts it
    /// into an empty buffer, or another buffer in its place. The `key` comes back with the reply or the failure.
    ///
    /// # Panics
    /// Where there is no [`Window::room`], or the packet has no header.
    #[inline]
    pub fn push(&mut self, now: Instant, key: u64, fill: impl FnOnce(&mut Vec<u8>)) -> u16 {
        self.push_of(now, key, 0, fill)
    }

    /// Takes a control packet as [`Window::push`] does, of one of several that ask for the device. A packet that was not
    /// done, because another host took its number, is sent again only if no later one of the same `chain` was done.
    ///
    /// # Panics
    /// Where there is no [`Window::room`], or the packet has no header.
    #[inline]
    pub fn push_of(&mut self, now: Instant, key: u64, chain: u32, fill: impl FnOnce(&mut Vec<u8>)) -> u16 {
        assert!(self.room() > 0, "pushed without room");
        self.check_if_idle(now);
        self.append(now, Some(key), chain, fill)
    }

    /// Takes in a datagram from the device. `take` is handed a reply, and says whether it answers what was asked; each
    /// packet's reply is taken once. Replies are handed on as they come, in whatever order.
    #[inline]
    pub fn received(&mut self, now: Instant, bytes: &[u8], take: impl FnOnce(Answer<'_>) -> bool) -> Heard {
        self.status.note_silence(now, self.sharing.heard);
        let packet = Packet::decode(bytes);
        let is_reply = packet.is_ok_and(|packet| packet.header.kind == Kind::Control);
        let heard = match packet {
            Ok(packet) if is_reply => self.replied(now, &packet, bytes, take),
            Ok(packet) if packet.header.kind == Kind::Status => self.told_status(now, bytes),
            Ok(packet) => Heard::Malformed(Error::PacketKind { header: packet.header.encode() }),
            Err(error) => Heard::Malformed(error),
        };
        match heard {
            Heard::Malformed(error) => self.progress.malformed = Some(error),
            Heard::Stray => self.counters.strays += u64::from(is_reply),
            Heard::Reply | Heard::Status | Heard::NotTaken => {
                (self.progress.heard, self.sharing.heard) = (true, now);
            }
        }
        heard
    }

    /// Says the next thing to be done. To be called until it answers [`Step::Idle`], whatever has happened.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Step<'_> {
        loop {
            while self.failing > 0 {
                if let Some(key) = self.next_failed() {
                    return Step::Failed { key, cause: self.cause };
                }
            }
            if let Some(key) = self.sharing.lost.pop_front() {
                return Step::Failed { key, cause: Cause::Contended };
            }
            match core::mem::replace(&mut self.after, After::GoOn) {
                After::GoOn => {}
                After::Down => return Step::Down(self.cause),
                After::Resume(id) => self.resume(now, id),
            }
            if self.late_at().is_none_or(|late| now < late) {
                break;
            }
            self.late(now);
        }
        match self.next_out(now) {
            Some(Out::Status) => Step::Send(&status::REQUEST),
            Some(Out::Resend(id)) => {
                self.resend = packet::resend(id);
                Step::Send(&self.resend)
            }
            Some(Out::Packet(index)) => Step::Send(&self.slots[index].packet),
            None => Step::Idle(self.deadline()),
        }
    }
}

#[cfg(test)]
mod tests;
