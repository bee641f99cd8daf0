//! The client's side of discovery: searches for names, the servers that there are, and beacons.
//!
//! Each name is asked for after 10 ms, then after 1, 2, 3 and up to 30 seconds, in datagrams of up to 1,400 bytes to every target, and over
//! the connections to name servers. All datagrams together keep within a budget: names beyond it wait their turn.

use crate::discovery::beacons::Beacons;
use crate::discovery::names::{Names, State};
use crate::discovery::schedule::Schedule;
use crate::discovery::{Budget, Mail, Piece, Relay, Subnet, Way, messages};
use crate::wire::discovery::{
    Beacon, Guid, REPLY_REQUIRED, Search, SearchFront, SearchResponse, UNICAST, decode_origin_tag,
};
use crate::wire::{Command, HEADER, Side};
use crate::{Limits, Order, Writer};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use core::time::Duration;
use hodo_machine::{Address, Ends, Instant, Outbox, Output, Peer, Random, between};

/// The bytes of a datagram with searches, as in pvxs.
const DATAGRAM: usize = 1400;
/// The bytes that Ethernet, IP and UDP add to a datagram.
const AROUND: u64 = 46;
/// The datagrams that leave at once, and the pause behind them: default socket buffers hold no more.
const BURST: u32 = 32;
const PAUSE: Duration = Duration::from_millis(1);
/// The names of one message to a name server.
const NAMES_MAX: usize = 1000;
/// The least time between two hurries for the sake of new servers, and the longest wait before one.
const HURRY_EVERY: Duration = Duration::from_secs(30);
const HURRY_SPREAD_MS: u32 = 500;
/// The part of a search in front of its names: header, number, flags, address, port, protocol and count.
const FRONT: usize = HEADER + 33;

/// The settings of a client's discovery.
#[derive(Debug, Clone)]
pub struct FinderConfig {
    /// Where searches are sent to.
    pub targets: Vec<Target>,
    /// The UDP port that searches are sent from, where answers are expected.
    pub from: u16,
    /// The bytes of searches in a second, to all targets together, with what Ethernet, IP and UDP add.
    pub bytes_per_second: u64,
    /// The servers that are remembered by their beacons.
    pub beacons_max: usize,
    /// The subnets of this host's interfaces.
    pub near: Vec<Subnet>,
    /// Where searches that were sent to this host alone are passed on to the other programs that share the port of beacons.
    pub group: Option<Address>,
    /// Two clients with different seeds wait differently.
    pub seed: u64,
}

/// An address that searches are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The address.
    pub address: Address,
    /// Whether only one host has it, where several servers may share the port.
    pub is_unicast: bool,
}

impl Default for FinderConfig {
    fn default() -> Self {
        FinderConfig {
            targets: Vec::new(),
            from: 0,
            bytes_per_second: 1_000_000,
            beacons_max: 20_000,
            near: Vec::new(),
            group: None,
            seed: 0,
        }
    }
}

/// An event of a client's discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A server has this name.
    Name {
        /// The application's number of the name.
        number: u32,
        /// Address of the server.
        server: Address,
        /// Identity of the server.
        guid: Guid,
    },
    /// Another server than the one that was found first has this name, too. Told once for each name.
    Twice {
        /// The application's number of the name.
        number: u32,
        /// Address of the other server.
        server: Address,
    },
    /// A server has answered [`Finder::list`].
    Server {
        /// Address of the server.
        server: Address,
        /// Identity of the server.
        guid: Guid,
    },
    /// A server has sent a beacon.
    Beacon {
        /// Address of the server.
        server: Address,
        /// Identity of the server.
        guid: Guid,
        /// Number of the beacon.
        sequence: u8,
        /// How many times the server's list of channels has changed.
        changes: u16,
        /// Whether it is the first beacon of the server, or the first from this address.
        is_new: bool,
    },
    /// A server has sent no beacon for 6 minutes.
    Gone {
        /// Address of the server.
        server: Address,
        /// Identity of the server.
        guid: Guid,
    },
}

/// Counters of a client's discovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FinderCounters {
    /// Datagrams with searches.
    pub datagrams: u64,
    /// The bytes of these datagrams, with what Ethernet, IP and UDP add.
    pub bytes: u64,
    /// Names that were asked for, each time counted.
    pub asked: u64,
    /// Names that were found.
    pub found: u64,
    /// The answers that nobody had asked for, or that came late.
    pub unasked: u64,
    /// Beacons.
    pub beacons: u64,
    /// Searches that were passed on to other programs of this host.
    pub passed_on: u64,
    /// Datagrams without a message that a client takes.
    pub foreign: u64,
}

/// The part of a client that finds servers. The client hands it the datagrams and the answers of name servers, and does what it says.
#[derive(Debug)]
pub struct Finder {
    config: FinderConfig,
    relay: Relay,
    names: Names,
    schedule: Schedule,
    beacons: Beacons,
    /// Names to be asked for at each name server; `None` while it is not connected.
    name_servers: Vec<Option<VecDeque<u32>>>,
    budget: Budget,
    passing: Budget,
    /// Datagrams of the burst so far, and when the next one may leave.
    burst: u32,
    resumes: Instant,
    hurry_at: Option<Instant>,
    hurried: Option<Instant>,
    writer: Writer,
    mail: Mail,
    batch: Vec<u32>,
    events: VecDeque<Found>,
    random: Random,
    /// The number of all searches for names; the one behind it is that of searches for servers.
    sequence: u32,
    counters: FinderCounters,
}

impl Finder {
    /// Creates a finder that looks for nothing yet. Its datagrams leave by a peer of this number, which nobody else may use.
    #[must_use]
    pub fn new(config: FinderConfig, peer: Peer) -> Self {
        let mut random = Random::for_purpose(config.seed, 5);
        Finder {
            relay: Relay { group: config.group.clone(), near: config.near.clone() },
            names: Names::default(),
            schedule: Schedule::new(random.bits()),
            beacons: Beacons::new(config.beacons_max),
            name_servers: Vec::new(),
            budget: Budget::new(config.bytes_per_second),
            passing: Budget::new(PASSED_ON_PER_SECOND),
            burst: 0,
            resumes: Instant::ZERO,
            hurry_at: None,
            hurried: None,
            // As pvxs does on any host.
            writer: Writer::new(Side::Client, Order::Big),
            mail: Mail::new(peer),
            batch: Vec::new(),
            events: VecDeque::new(),
            sequence: random.bits() as u32 & !1,
            random,
            counters: FinderCounters::default(),
            config,
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> FinderCounters {
        self.counters
    }

    /// Returns how many names are being searched for.
    #[must_use]
    pub const fn searching(&self) -> usize {
        self.names.searching
    }

    /// Returns how many servers are remembered by their beacons.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.beacons.len()
    }

    /// Searches for a name until one server has answered. The number, below 4,194,304, is the application's; a name that it had before is
    /// searched for no more. One whose server `is_lost` waits a little longer, so that the server's clients do not search all at once.
    pub fn search(&mut self, now: Instant, number: u32, name: &str, is_lost: bool) {
        if let Some(cid) = self.names.search(number, name, false) {
            self.schedule.add(now, cid, is_lost);
        }
    }

    /// Searches for all servers that have a name, until [`Finder::cancel`]; each answer is an event.
    pub fn search_all(&mut self, now: Instant, number: u32, name: &str) {
        if let Some(cid) = self.names.search(number, name, true) {
            self.schedule.add(now, cid, false);
        }
    }

    /// Searches for a name no more, and forgets where it was found.
    pub fn cancel(&mut self, number: u32) {
        self.names.cancel(number);
    }

    /// Requests an answer of every server, once.
    pub fn list(&mut self) {
        let front = SearchFront { flags: REPLY_REQUIRED, sequence: self.sequence + 1, ..self.front() };
        front.encode(core::iter::empty(), &mut self.writer);
        self.send(true);
    }

    /// Notes that a name server is connected, or is not any more. A connected one is asked for all names at once.
    pub fn set_name_server(&mut self, number: usize, is_connected: bool) {
        if self.name_servers.len() <= number {
            self.name_servers.resize_with(number + 1, || None);
        }
        self.name_servers[number] = is_connected.then(|| self.names.all_searching().collect());
    }

    /// Writes the next searches for a connected name server; returns whether there were any.
    pub fn write_searches(&mut self, number: usize, writer: &mut Writer) -> bool {
        let Some(Some(queue)) = self.name_servers.get_mut(number) else { return false };
        self.batch.clear();
        while self.batch.len() < NAMES_MAX
            && let Some(cid) = queue.pop_front()
        {
            self.batch.extend(self.names.searching(cid).is_some().then_some(cid));
        }
        let front = SearchFront { port: 0, ..self.front() };
        encode(&front, &self.batch, &mut self.names, writer);
        !self.batch.is_empty()
    }

    /// Takes in a datagram that came from no peer.
    pub fn datagram(&mut self, now: Instant, ends: &Ends, datagram: &[u8]) {
        let way = self.relay.way(ends);
        let limits = Limits::DEFAULT;
        let mut is_foreign = true;
        for piece in messages(datagram) {
            let mut reader = piece.message.reader(&limits);
            match (Command::from_code(piece.message.command), piece.from) {
                (Command::SearchResponse, Side::Server) => {
                    let Ok(response) = SearchResponse::decode(&mut reader) else { break };
                    is_foreign = false;
                    self.response(&response, &ends.remote);
                }
                (Command::Beacon, Side::Server) => {
                    let Ok(beacon) = Beacon::decode_front(&mut reader) else { break };
                    is_foreign = false;
                    self.beacon(now, &beacon, &ends.remote);
                }
                (Command::Search, Side::Client) if way == Way::Direct => {
                    let Ok(search) = Search::decode(&mut reader) else { break };
                    is_foreign = false;
                    self.pass_on(now, &piece, &search, ends);
                }
                (Command::OriginTag, _) if way == Way::PassedOn && decode_origin_tag(&mut reader).is_ok() => {
                    is_foreign = false;
                }
                _ => {}
            }
        }
        self.counters.foreign += u64::from(is_foreign && way != Way::Own);
    }

    fn pass_on(&mut self, now: Instant, piece: &Piece<'_>, search: &Search<'_>, ends: &Ends) {
        let passing = &mut self.passing;
        let done = self.relay.pass_on(piece, search, ends, &mut self.mail, || passing.take(now, 1));
        self.counters.passed_on += u64::from(done == Some(true));
    }

    /// Takes in an answer, from the sender of a datagram or from the name server at this address.
    pub fn response(&mut self, response: &SearchResponse<'_>, from: &Address) {
        let Some(server) = server(response.address, response.port, response.protocol, from) else { return };
        if response.sequence == self.sequence + 1 {
            return self.events.push_back(Found::Server { server, guid: response.guid });
        }
        if response.sequence != self.sequence || !response.found {
            self.counters.unasked += u64::from(response.found);
            return;
        }
        for cid in response.channels() {
            let Some((number, state)) = self.names.at(cid) else {
                self.counters.unasked += 1;
                continue;
            };
            let guid = response.guid;
            let name = Found::Name { number, server: server.clone(), guid };
            match state {
                State::Searching(searching) => {
                    if !searching.all {
                        self.names.found(number, guid);
                    }
                    self.counters.found += 1;
                    self.events.push_back(name);
                }
                State::Found { guid: first, is_warned } if *first != guid => {
                    if !core::mem::replace(is_warned, true) {
                        self.events.push_back(Found::Twice { number, server: server.clone() });
                    }
                }
                // The same server by another way, or an answer to an earlier datagram.
                State::Found { .. } => {}
                State::Free => self.counters.unasked += 1,
            }
        }
    }

    fn beacon(&mut self, now: Instant, beacon: &Beacon<'_>, from: &Address) {
        let Some(server) = server(beacon.address, beacon.port, beacon.protocol, from) else { return };
        self.counters.beacons += 1;
        let is_new = self.beacons.note(now, beacon.guid, &server);
        if is_new && self.names.searching > 0 && self.hurry_at.is_none() {
            let wait = Duration::from_millis(between(self.random.bits(), 0, HURRY_SPREAD_MS).into());
            let soonest = self.hurried.map_or(now, |last| (last + HURRY_EVERY).max(now));
            self.hurry_at = Some(soonest + wait);
        }
        let (guid, sequence, changes) = (beacon.guid, beacon.sequence, beacon.changes);
        self.events.push_back(Found::Beacon { server, guid, sequence, changes, is_new });
    }

    /// Does what is due. To be called when [`Finder::deadline`] has passed.
    pub fn elapsed(&mut self, now: Instant) {
        if self.hurry_at.is_some_and(|at| at <= now) {
            (self.hurry_at, self.hurried) = (None, Some(now));
            self.schedule.hurry();
        }
        let events = &mut self.events;
        self.beacons.sweep(now, |guid, server| events.push_back(Found::Gone { server, guid }));
        self.schedule.advance(now);
        while !self.schedule.due.is_empty() && self.may_send(now) {
            self.ask(now);
        }
    }

    /// Returns when there is something to be done.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let sends = (!self.schedule.due.is_empty()).then_some(self.resumes);
        [self.schedule.next(), sends, self.hurry_at, self.beacons.next()].into_iter().flatten().min()
    }

    /// Returns whether a datagram may be sent now to each target; otherwise `resumes` is when.
    fn may_send(&mut self, now: Instant) -> bool {
        if self.resumes > now {
            return false;
        }
        let most = (DATAGRAM as u64 + AROUND) * self.config.targets.len() as u64;
        self.resumes = self.budget.ready(now, most.min(self.config.bytes_per_second));
        if self.resumes <= now && self.burst >= BURST {
            (self.resumes, self.burst) = (now + PAUSE, 0);
        }
        self.resumes <= now
    }

    /// Searches for the names that have waited longest, as many as one datagram takes.
    fn ask(&mut self, now: Instant) {
        self.batch.clear();
        let mut length = FRONT;
        while let Some(cid) = self.schedule.due.front().copied() {
            if let Some(searching) = self.names.searching(cid) {
                // A number, a size of up to 5 bytes, and the name.
                let size = 4 + if searching.name.len() < 254 { 1 } else { 5 } + searching.name.len();
                if length + size > DATAGRAM && !self.batch.is_empty() {
                    break;
                }
                length += size;
                searching.attempts = searching.attempts.saturating_add(1);
                let attempts = searching.attempts;
                self.batch.push(cid);
                self.schedule.add_again(now, cid, attempts);
            }
            self.schedule.due.pop_front();
        }
        if self.batch.is_empty() {
            return;
        }
        for queue in self.name_servers.iter_mut().flatten() {
            // One that does not take them is not asked anew.
            if queue.len() <= self.names.searching {
                queue.extend(&self.batch);
            }
        }
        self.counters.asked += self.batch.len() as u64;
        let front = self.front();
        encode(&front, &self.batch, &mut self.names, &mut self.writer);
        let bytes = (self.writer.len() as u64 + AROUND) * self.config.targets.len() as u64;
        self.budget.take(now, bytes.min(self.config.bytes_per_second));
        self.burst += self.config.targets.len() as u32;
        self.send(false);
    }

    fn front(&self) -> SearchFront<'static> {
        SearchFront {
            sequence: self.sequence,
            flags: 0,
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: self.config.from,
            protocols: &["tcp"],
        }
    }

    /// Sends what was written to all targets.
    fn send(&mut self, is_required: bool) {
        const FLAGS: usize = HEADER + 4;
        let mut bytes = Vec::new();
        self.writer.move_to(&mut bytes);
        for target in &self.config.targets {
            let flags = if is_required { REPLY_REQUIRED } else { 0 } | if target.is_unicast { UNICAST } else { 0 };
            bytes[FLAGS] = flags;
            self.mail.post(target.address.clone(), |into| into.extend_from_slice(&bytes));
            self.counters.datagrams += 1;
            self.counters.bytes += bytes.len() as u64 + AROUND;
        }
    }

    /// Returns the next thing to be done for datagrams on their way out.
    pub fn poll<E>(&mut self, out: &mut Outbox) -> Option<Output<E>> {
        self.mail.poll(out)
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Option<Found> {
        self.events.pop_front()
    }
}

/// Searches that are passed on in a second.
const PASSED_ON_PER_SECOND: u64 = 10_000;

/// Writes a search for names, all of which are being searched for.
fn encode(front: &SearchFront<'_>, batch: &[u32], names: &mut Names, writer: &mut Writer) {
    if batch.is_empty() {
        return;
    }
    front.begin(batch.len() as u16, writer);
    for cid in batch {
        let name = names.searching(*cid).map_or("", |searching| &searching.name);
        writer.u32(*cid);
        writer.text(name.as_bytes());
    }
    writer.end();
}

/// Returns where a server is that states this address and port.
fn server(stated: IpAddr, port: u16, protocol: &[u8], from: &Address) -> Option<Address> {
    if protocol != b"tcp" {
        return None;
    }
    let Some(sender) = from.ip() else { return Some(from.clone()) };
    let is_name_server = matches!(from, Address::Tcp(_));
    let port = if port == 0 && is_name_server { sender.port() } else { port };
    let ip = if stated.is_unspecified() { sender.ip() } else { stated };
    let at = match (ip, sender) {
        // Without the interface nobody is reached there, and the message does not name it.
        (IpAddr::V6(ip), SocketAddr::V6(sender)) if ip.is_unicast_link_local() => {
            SocketAddrV6::new(ip, port, 0, sender.scope_id()).into()
        }
        _ => SocketAddr::new(ip, port),
    };
    (port != 0 && !ip.is_multicast()).then_some(Address::Tcp(at))
}
