//! The hub: many clients over TCP on one side, many boards over UDP on the other, and one machine in between.
//!
//! | a client's | is |
//! |---|---|
//! | chunk of packets | answered by one chunk, in order, once all its packets are |
//! | packet | sent to the board that it names, with an id of the hub's; its header is put back into the reply |
//! | write | done once, or its client is told that it may not have been: nothing is sent into a restart again |
//! | packet for a board that does not answer | starts a probe, unless one was sent lately; no answer soon: a [`Code`] |
//! | malformed chunk | not done at all; each packet whose board can be read is answered by code 5 |
//!
//! Peers that came by themselves are clients, and those that the machine opens are boards. Clients of one board take
//! turns, packet by packet. Memory follows from [`HubConfig`]: places and buffers are used again, and nothing is
//! allocated for a packet once they have grown.

mod allow;
mod backlog;
mod board;
mod client;
mod intake;
mod packets;
mod router;
mod stages;
mod statistics;

pub use allow::{AllowList, NoDevice};
pub use stages::{ANSWER, BOARD, HubStages, QUEUE};
pub use statistics::{BoardCounters, BoardStatistics, ClientCounters, ClientStatistics, HubCounters};

use crate::window::WindowConfig;
use crate::wire::Version;
use crate::wire::chunk::Chunks;
use crate::wire::hub::Code;
use core::fmt;
use core::net::SocketAddrV4;
use core::time::Duration;
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output, Peer, Peers, Sampling, Stamp, codes};
use router::Router;

/// Bounds and times of a hub.
///
/// The packets that it holds take `packets` × `packet_bytes` at most, partial chunks `clients` × `chunk_bytes`, and chunks that
/// wait for a board `backlog_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubConfig {
    /// Clients at once.
    pub clients: usize,
    /// Boards that are remembered at once, each with a window of its own.
    pub boards: usize,
    /// Packets that one client may wait for; the chunk that passes this ends it. uHAL waits for 60.
    pub client_packets: usize,
    /// Packets that may wait for one board before the hub takes in no more for it: the chunks of clients that ask for it wait
    /// as they came, each client's in order.
    pub board_packets: usize,
    /// Bytes of chunks that may wait so. Beyond, a client's are taken in, to the bound of `packets`.
    pub backlog_bytes: usize,
    /// Packets that the hub holds in all. Chunks for which there is no room wait; only where no more may wait are packets
    /// answered by code 2.
    pub packets: usize,
    /// Bytes of a packet; a longer request or reply is answered by code 2.
    pub packet_bytes: usize,
    /// Bytes of a request chunk; a longer one ends its client.
    pub chunk_bytes: usize,
    /// Packets in flight to a board, and how long it may be silent.
    pub window: WindowConfig,
    /// A dead board is probed for a client that asks for it, once in this time at most, and the answer is waited for over
    /// an eighth of the window's patience. Where nobody asks it is probed after this time, then after twice as long, ...
    pub probe_first: Duration,
    /// ... and so on up to this.
    pub probe_last: Duration,
    /// A board that nobody has asked for in this time is forgotten.
    pub forget: Duration,
    /// A client that has not sent a whole chunk by then is ended.
    pub first_chunk: Duration,
    /// A client that is owed nothing and has sent nothing for this long gives its place to a new one, where all are taken.
    pub idle: Duration,
    /// The seed of the numbers by which the hub knows its own packets; another one for each hub.
    pub seed: u64,
}

impl Default for HubConfig {
    /// Returns bounds for a thousand clients and boards, jumbo frames, and times that fit uHAL's patience of a second.
    fn default() -> Self {
        HubConfig {
            clients: 4096,
            boards: 2048,
            client_packets: 512,
            board_packets: 16_384,
            backlog_bytes: 256 << 20,
            packets: 65_536,
            packet_bytes: 9_000,
            chunk_bytes: 64 << 10,
            window: WindowConfig { patience: Duration::from_millis(100), ..WindowConfig::default() },
            probe_first: Duration::from_millis(100),
            probe_last: Duration::from_secs(5),
            forget: Duration::from_secs(15),
            first_chunk: Duration::from_secs(30),
            idle: Duration::from_secs(10),
            seed: 0,
        }
    }
}

/// A command of the application to a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubCommand {
    /// Clients may reach the devices of this list from now on.
    Allow(AllowList),
    /// Stamp the stages of these packets from now on; they are counted up.
    Sample(Sampling),
    /// Take in nothing new, answer what is under way, and end each client once it has its answers.
    Drain,
}

/// An event that a hub reports to the application.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubEvent {
    /// A client has come.
    Came(Address),
    /// A client is gone.
    Ended(Address, Ended),
    /// A board answers: for the first time, or again.
    Alive(SocketAddrV4, Version),
    /// A board does not answer; until it does, its clients are answered with this code.
    Dead(SocketAddrV4, Version, Code),
    /// A board has forgotten what was in flight, or somebody else uses its ids; its clients were told.
    Restarted(SocketAddrV4),
}

codes! {
    /// Why a client is gone.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Ended {
        /// It ended the connection in order.
        Finished => "finished",
        /// The connection broke.
        Broken => "broken",
        /// It sent a chunk in which no board can be read.
        Malformed => "malformed",
        /// It sent a chunk over the bound.
        ChunkTooLong => "chunk_too_long",
        /// It sent more packets than it may wait for.
        TooManyPackets => "too_many_packets",
        /// There was no place for it.
        TooManyClients => "too_many_clients",
        /// It was idle, and another took its place.
        Idle => "idle",
        /// It sent no whole chunk in time.
        Silent => "silent",
        /// The hub is to stop.
        Drained => "drained",
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ended::Finished => "closed by the client",
            Ended::Broken => "the connection broke",
            Ended::Malformed => "it sent a chunk that names no board; is it an IPbus client?",
            Ended::ChunkTooLong => "it sent a chunk over the bound; is it an IPbus client?",
            Ended::TooManyPackets => "it sent more packets than it may wait for",
            Ended::TooManyClients => "the limit of clients is reached",
            Ended::Idle => "it was idle, and the place was needed; raise --clients if that happens often",
            Ended::Silent => "it sent no whole chunk in time",
            Ended::Drained => "the hub is stopping",
        })
    }
}

/// The hub.
#[derive(Debug)]
pub struct Hub {
    /// The unfinished chunk of each client.
    streams: Peers<Chunks>,
    router: Router,
}

impl Hub {
    /// Creates a hub without clients; they may reach the boards of this list.
    #[must_use]
    pub fn new(config: HubConfig, allow: AllowList) -> Self {
        Hub { streams: Peers::default(), router: Router::new(config, allow) }
    }

    /// Returns all counters.
    #[must_use]
    pub fn counters(&self) -> HubCounters {
        self.router.counters()
    }

    /// Iterates over the clients that are connected.
    pub fn clients(&self) -> impl Iterator<Item = ClientStatistics> + '_ {
        self.router.client_statistics()
    }

    /// Iterates over the boards that are remembered.
    pub fn boards(&self) -> impl Iterator<Item = BoardStatistics> + '_ {
        self.router.board_statistics()
    }

    /// Returns how long the stages of stamped packets took.
    #[must_use]
    pub fn stages(&self) -> &HubStages {
        &self.router.stages.seen
    }

    /// Packets held, and the bytes of their buffers and of chunks that wait: bounded by the configuration.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        (self.router.packets.held(), self.router.packets.bytes() + self.router.backlog_bytes)
    }

    /// Tells whether no packet is under way, and no client there: so after [`HubCommand::Drain`], after a while.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.router.is_drained()
    }

    fn came(&mut self, now: Instant, peer: Peer, address: &Address) {
        if self.router.came(now, peer, address) {
            self.streams.insert(peer, Chunks::new(self.router.config.chunk_bytes));
        }
    }

    fn take(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        let index = index(peer);
        let Some(chunks) = self.streams.at(peer) else { return };
        self.router.count_bytes(now, index, bytes.len());
        let mut rest = bytes;
        let ended = loop {
            match chunks.next(&mut rest) {
                Ok(Some(chunk)) => {
                    if let Err(ended) = self.router.take_chunk(now, index, chunk) {
                        break ended;
                    }
                }
                Ok(None) => return,
                Err(_) => break Ended::ChunkTooLong,
            }
        };
        self.router.end(now, index, ended);
    }

    fn gone(&mut self, now: Instant, peer: Peer, why: Closed) {
        self.streams.remove(peer);
        let why = if why == Closed::Finished { Ended::Finished } else { Ended::Broken };
        self.router.gone(now, index(peer), why);
    }
}

impl Machine for Hub {
    type Command = HubCommand;
    type Event = HubEvent;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, HubCommand>) {
        match input {
            Input::Received(peer, bytes) if peer.is_accepted() => self.take(now, peer, bytes),
            Input::Received(peer, bytes) => self.router.heard(now, peer.0, bytes),
            Input::Opened(peer, ends) if peer.is_accepted() => self.came(now, peer, &ends.remote),
            Input::Opened(peer, _) => self.router.board_opened(now, peer.0),
            Input::Closed(peer, why) if peer.is_accepted() => self.gone(now, peer, why),
            Input::Closed(peer, _) => self.router.board_closed(now, peer.0),
            Input::Blocked(peer) => self.router.block(peer, true),
            Input::Drained(peer) => self.router.block(peer, false),
            Input::Command(HubCommand::Allow(list)) => self.router.allow = list,
            Input::Command(HubCommand::Sample(sampling)) => self.router.stages.sampling = sampling,
            Input::Command(HubCommand::Drain) => self.router.drain(now),
            Input::Landed(..) | Input::Elapsed => {}
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<HubEvent> {
        let output = self.router.poll(now, out);
        if let Output::Close(peer) = output {
            self.streams.remove(peer);
        }
        output
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.router.stamped(stamp);
    }
}

/// Returns a client's number.
const fn index(peer: Peer) -> u32 {
    peer.0.wrapping_sub(Peer::FIRST_ACCEPTED)
}
