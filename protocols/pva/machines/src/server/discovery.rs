//! The server's side of discovery: answers to searches that come as datagrams, and beacons.
//!
//! Nobody proves the address that a datagram says it comes from, so an answer goes to its source or to a near address, is no longer than the
//! request (for a near address, up to [`LONGER_MAX`] bytes longer), and there are only so many a second.

use crate::discovery::{Budget, Mail, Piece, Relay, Subnet, Way, messages};
use crate::wire::discovery::{Beacon, Guid, REPLY_REQUIRED, ResponseFront, Search, decode_origin_tag};
use crate::wire::{Command, SERVER_PORT, Side};
use crate::{Limits, Order, Writer};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use hodo_machine::{Address, Ends, Instant, Outbox, Output, Peer, Random, between};

/// The bytes that an answer to a near address may have more than the request: 8 that the fields of the two differ by, and the name of the
/// protocol, which pvlist of pvAccessCPP leaves out.
pub const LONGER_MAX: usize = 12;

/// Beacons that are sent soon after each other, and the periods of those and of the later ones.
const EARLY: u32 = 10;
const EARLY_PERIOD: Duration = Duration::from_secs(15);
const PERIOD: Duration = Duration::from_secs(180);
/// The most by which a beacon comes before its period is over, so that servers that started together do not stay together.
const JITTER_MS: u32 = 1000;

/// The settings of a server's discovery.
#[derive(Debug, Clone)]
pub struct DiscoveryConfig {
    /// The address that answers and beacons state: that of a server behind an address translator, or unspecified, which stands for the
    /// one that the datagram comes from.
    pub address: IpAddr,
    /// The TCP port that answers and beacons state.
    pub port: u16,
    /// The UDP port that answers leave from if they do not go back to the sender of the datagram.
    pub from: u16,
    /// The subnets of this host's interfaces.
    pub near: Vec<Subnet>,
    /// The addresses at which the server listens, if it does not at all: an answer to a search that was sent to a group states one of
    /// them, since it may leave from another one.
    pub listens: Vec<IpAddr>,
    /// The addresses that searches may have been sent to: those where the server is found, their broadcast addresses, and groups; none
    /// for all.
    pub interfaces: Vec<IpAddr>,
    /// Senders that are not answered, from any port for port 0.
    pub ignored: Vec<SocketAddr>,
    /// The most answers, and searches passed on, in a second. What is beyond gets nothing: clients search again.
    pub answers_per_second: u64,
    /// Where a search that was sent to this host alone is passed on to the other programs that share the port.
    pub group: Option<Address>,
    /// Where beacons are sent to.
    pub beacons: Vec<Address>,
    /// The seed of the beacons' jitter.
    pub seed: u64,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        DiscoveryConfig {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: SERVER_PORT,
            from: 0,
            near: Vec::new(),
            listens: Vec::new(),
            interfaces: Vec::new(),
            ignored: Vec::new(),
            answers_per_second: 10_000,
            group: None,
            beacons: Vec::new(),
            seed: 0,
        }
    }
}

/// Counters of a server's discovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiscoveryCounters {
    /// Searches in datagrams.
    pub searches: u64,
    /// The answers to them.
    pub answers: u64,
    /// Searches that were passed on to other programs of this host.
    pub passed_on: u64,
    /// The answers that were not given, because the budget was spent or too much waited to be sent.
    pub over_budget: u64,
    /// The answers that were not given, because they would be longer than the request.
    pub too_long: u64,
    /// Datagrams without a search, to addresses where the server is not found, and from ignored senders.
    pub foreign: u64,
    /// Beacons.
    pub beacons: u64,
}

/// The part of a server that answers searches and sends beacons.
#[derive(Debug)]
pub(crate) struct Discovery {
    guid: Guid,
    config: DiscoveryConfig,
    counters: DiscoveryCounters,
    relay: Relay,
    budget: Budget,
    writer: Writer,
    mail: Mail,
    random: Random,
    /// How many times the list of channels has changed.
    changes: u16,
}

/// A search, and where it came from.
struct Query<'a> {
    piece: Piece<'a>,
    search: Search<'a>,
    ends: &'a Ends,
    way: Way,
}

impl Discovery {
    pub(crate) fn new(guid: Guid, config: DiscoveryConfig) -> Self {
        Discovery {
            guid,
            counters: DiscoveryCounters::default(),
            relay: Relay { group: config.group.clone(), near: config.near.clone() },
            budget: Budget::new(config.answers_per_second),
            // As pvxs does on any host.
            writer: Writer::new(Side::Server, Order::Big),
            mail: Mail::new(Peer(0)),
            random: Random::new(config.seed),
            changes: 0,
            config,
        }
    }

    pub(crate) const fn counters(&self) -> DiscoveryCounters {
        self.counters
    }

    /// Notes that the list of channels has changed.
    pub(crate) fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    /// Takes in a datagram, and puts an answer that goes back to its sender into `out`. `has` tells which channels there are.
    pub(crate) fn datagram(
        &mut self,
        now: Instant,
        ends: &Ends,
        datagram: &[u8],
        has: impl Fn(&[u8]) -> bool,
        out: &mut Outbox,
    ) {
        let way = self.relay.way(ends);
        if way == Way::Own {
            return;
        }
        let has_come_here = way == Way::PassedOn || ends.local.ip().is_none_or(|to| self.takes(to.ip()));
        if !has_come_here || self.is_ignored(ends) {
            self.counters.foreign += 1;
            return;
        }
        let limits = Limits::DEFAULT;
        let mut is_tagged = false;
        let before = self.counters.searches;
        for piece in messages(datagram) {
            let mut reader = piece.message.reader(&limits);
            match Command::from_code(piece.message.command) {
                // Only what was passed on has a tag, and only one.
                Command::OriginTag if way == Way::PassedOn && !is_tagged => {
                    is_tagged = true;
                    if !decode_origin_tag(&mut reader).is_ok_and(|to| self.takes(to)) {
                        break;
                    }
                }
                Command::OriginTag => break,
                Command::Search if piece.from == Side::Client => {
                    let Ok(search) = Search::decode(&mut reader) else { break };
                    self.counters.searches += 1;
                    self.search(now, &Query { piece, search, ends, way }, &has, out);
                }
                _ => {}
            }
        }
        self.counters.foreign += u64::from(self.counters.searches == before);
    }

    fn search(&mut self, now: Instant, query: &Query<'_>, has: &impl Fn(&[u8]) -> bool, out: &mut Outbox) {
        let Query { piece, search, ends, way } = query;
        let to = match self.relay.target(search, ends, *way) {
            Some(to) => Address::UdpFrom(self.config.from, to),
            None if ends.remote.ip().is_none() => ends.remote.clone(),
            None => return,
        };
        let budget = &mut self.budget;
        match self.relay.pass_on(piece, search, ends, &mut self.mail, || budget.take(now, 1)) {
            Some(true) => self.counters.passed_on += 1,
            Some(false) => self.counters.over_budget += 1,
            None => {}
        }
        let mut protocols = search.protocols().peekable();
        if protocols.peek().is_some() && !protocols.any(|protocol| protocol == b"tcp") {
            return;
        }
        let found = search.channels().filter(|(_, name)| has(name)).count();
        if found > 0 || search.flags & REPLY_REQUIRED != 0 {
            self.answer(now, query, to, has, out);
        }
    }

    fn answer(&mut self, now: Instant, query: &Query<'_>, to: Address, has: &impl Fn(&[u8]) -> bool, out: &mut Outbox) {
        let found: Vec<u32> = query.search.channels().filter(|(_, name)| has(name)).map(|(cid, _)| cid).collect();
        let front = ResponseFront {
            guid: self.guid,
            sequence: query.search.sequence,
            address: self.stated(query, &to),
            port: self.config.port,
            protocol: "tcp",
            found: !found.is_empty(),
        };
        front.encode(found.into_iter(), &mut self.writer);
        let (length, came) = (self.writer.len(), query.piece.bytes.len());
        let is_near = to.ip().is_none_or(|to| self.relay.is_near(to.ip()));
        let counter = if length > came && !(is_near && length <= came + LONGER_MAX) {
            &mut self.counters.too_long
        } else if !self.budget.take(now, 1) {
            &mut self.counters.over_budget
        } else if out.is_empty() && length <= came && query.way == Way::Direct && to.ip() == query.ends.remote.ip() {
            // From the address that was asked.
            self.writer.flush(out);
            &mut self.counters.answers
        } else if self.mail.post(to, |into| self.writer.move_to(into)) {
            &mut self.counters.answers
        } else {
            &mut self.counters.over_budget
        };
        *counter += 1;
        self.writer.clear();
    }

    /// Returns the address that an answer states.
    fn stated(&self, query: &Query<'_>, to: &Address) -> IpAddr {
        let DiscoveryConfig { address, near, listens, .. } = &self.config;
        let (Some(asked), Some(to)) = (query.ends.local.ip(), to.ip()) else { return *address };
        let to = to.ip().to_canonical();
        if !address.is_unspecified() || !asked.ip().is_multicast() || query.way != Way::Direct {
            return *address;
        }
        let is_in_reach = |own: &&IpAddr| near.iter().any(|subnet| subnet.contains(**own) && subnet.contains(to));
        let reachable = || listens.iter().filter(|own| own.is_ipv4() == to.is_ipv4() && !own.is_loopback());
        *reachable().find(is_in_reach).or_else(|| reachable().next()).unwrap_or(address)
    }

    /// Returns the address that a beacon states. One to a group of IPv6 leaves from the link's address, where a server of listed addresses
    /// does not listen.
    fn stated_in_beacon(&self, target: &Address) -> IpAddr {
        let DiscoveryConfig { address, listens, .. } = &self.config;
        let is_group = target.ip().is_some_and(|to| to.is_ipv6() && to.ip().is_multicast());
        let reachable = || listens.iter().find(|own| own.is_ipv6() && !own.is_loopback());
        if !address.is_unspecified() || !is_group { *address } else { *reachable().unwrap_or(address) }
    }

    /// Returns whether searches that were sent to this address are taken.
    fn takes(&self, to: IpAddr) -> bool {
        self.config.interfaces.is_empty() || self.config.interfaces.contains(&to)
    }

    fn is_ignored(&self, ends: &Ends) -> bool {
        let Some(sender) = ends.remote.ip() else { return false };
        let is_it = |one: &SocketAddr| {
            one.ip() == sender.ip().to_canonical() && (one.port() == 0 || one.port() == sender.port())
        };
        sender.ip().is_multicast() || self.config.ignored.iter().any(is_it)
    }

    /// Tells whether beacons are to be sent.
    pub(crate) fn has_beacons(&self) -> bool {
        !self.config.beacons.is_empty()
    }

    /// Sends a beacon to each target; returns when the next is due.
    pub(crate) fn beacon(&mut self, now: Instant) -> Instant {
        let number = self.counters.beacons;
        for target in &self.config.beacons {
            let beacon = Beacon {
                guid: self.guid,
                flags: 0,
                sequence: number as u8,
                changes: self.changes,
                address: self.stated_in_beacon(target),
                port: self.config.port,
                protocol: b"tcp",
                state: None,
            };
            beacon.encode(&mut self.writer);
            self.mail.post(target.clone(), |into| self.writer.move_to(into));
            self.writer.clear();
        }
        self.counters.beacons += 1;
        let period = if number < u64::from(EARLY) { EARLY_PERIOD } else { PERIOD };
        now + (period - Duration::from_millis(between(self.random.bits(), 0, JITTER_MS).into()))
    }

    /// Returns the next thing to be done for datagrams on their way out.
    pub(crate) fn poll<E>(&mut self, out: &mut Outbox) -> Option<Output<E>> {
        self.mail.poll(out)
    }
}
