//! Packets of a port that several programs share: each takes its own, and hands the others' on.
//!
//! One of the programs may have the shared address itself. Each of the others has a port of its own, and for each far end a socket at the shared
//! address that receives from there alone ([`Port::facing`]): the kernel prefers it to one that receives from everywhere. Where several
//! programs have the same far end, the one that came last receives for all of them, hands on what is another's, and whoever was handed a
//! packet opens a socket for that very source: the next one comes directly, and depends on no other program.
//!
//! | bytes | of what is handed on |
//! |---|---|
//! | 8 | the token of the program that it is for |
//! | 2 | bytes of each datagram but the last |
//! | 2, 4, 16 | port, scope and IPv6 address of their source, the address of IPv4 as `::ffff:a.b.c.d` |
//! | rest | datagrams from one source |

use super::{BUFFER, Datagrams, Origin, Port};
use crate::SharedPort;
use crate::connect;
use crate::sys::{self, RawAddress};
use crate::sys_datagram as batch;
use hodo_machine::{Address, Input, Instant, Machine, Peer};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, OwnedFd};

/// Bytes in front of what is handed on.
const HEAD: usize = 32;
/// Bytes that are handed on together, at most.
const TOGETHER: usize = 60_000;
/// Sockets for a single source each, at most; what others send goes on being handed on.
const SOURCES_MAX: usize = 64;

/// How a port takes part in a shared one.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) shared: SharedPort,
    part_of: PartOf,
    /// The socket that hands on: a program that does not read fills no other one of this program.
    out: OwnedFd,
    token: [u8; 8],
}

/// A function that returns the part whose number a datagram carries, if it carries one.
pub type PartOf = fn(&[u8]) -> Option<u8>;

/// The program that a datagram is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Own,
    /// This program's, and handed on by another.
    HandedOn,
    /// The program's that has this part.
    Other(u8),
}

impl Sharing {
    pub(crate) fn new(shared: SharedPort, part_of: PartOf, own: &Address) -> io::Result<Self> {
        let ip = shared.address().ip();
        let (out, raw) = connect::socket_for(&Address::Udp(SocketAddr::new(ip, 0)), libc::SOCK_DGRAM)?;
        sys::bind(out.as_fd(), &raw)?;
        connect::set_buffers(out.as_fd(), BUFFER)?;
        // It only sends.
        sys::set_option(out.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 0)?;
        sys::set_nonblocking(out.as_fd(), true)?;
        shared.publish(own.ip().map_or(0, |ip| ip.port()));
        let token = shared.token().to_ne_bytes();
        Ok(Sharing { shared, part_of, out, token })
    }

    #[inline]
    fn owner(&self, datagram: &[u8]) -> Owner {
        if datagram.len() >= HEAD && datagram[..8] == self.token {
            return Owner::HandedOn;
        }
        match (self.part_of)(datagram) {
            Some(part) if part != self.shared.part() => Owner::Other(part),
            _ => Owner::Own,
        }
    }

    /// Hands on datagrams of one source. Returns whether there is a program that has the part; where the kernel has no room for them, they are
    /// lost as on any way.
    fn hand_on(&self, part: u8, from: SocketAddr, each: usize, datagrams: &[u8]) -> bool {
        let Some(door) = self.shared.door(part) else { return false };
        let to = RawAddress::ip(SocketAddr::new(self.shared.address().ip(), door.port));
        let each = each.clamp(1, TOGETHER);
        for some in datagrams.chunks(TOGETHER / each * each) {
            let head = head(door.token, from, each);
            let _ = batch::send(self.out.as_fd(), Some(&to), None, &[IoSlice::new(&head), IoSlice::new(some)], None);
        }
        true
    }
}

/// Returns what stands in front of datagrams of `each` bytes from this source.
fn head(token: u64, from: SocketAddr, each: usize) -> [u8; HEAD] {
    let (ip, scope) = match from {
        SocketAddr::V4(from) => (from.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(from) => (*from.ip(), from.scope_id()),
    };
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&token.to_ne_bytes());
    head[8..10].copy_from_slice(&(each as u16).to_ne_bytes());
    head[10..12].copy_from_slice(&from.port().to_ne_bytes());
    head[12..16].copy_from_slice(&scope.to_ne_bytes());
    head[16..].copy_from_slice(&ip.octets());
    head
}

/// Returns the source of what is handed on, the size of its datagrams, and the datagrams.
fn opened(datagram: &[u8], is_ipv4: bool) -> Option<(SocketAddr, usize, &[u8])> {
    let (head, datagrams) = datagram.split_first_chunk::<HEAD>()?;
    let two = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let scope = u32::from_ne_bytes([head[12], head[13], head[14], head[15]]);
    let octets: [u8; 16] = head[16..].try_into().ok()?;
    let from = match Ipv6Addr::from(octets) {
        ip if is_ipv4 => SocketAddr::new(IpAddr::V4(ip.to_ipv4_mapped()?), two(10)),
        ip => SocketAddr::V6(SocketAddrV6::new(ip, two(10), 0, scope)),
    };
    Some((from, usize::from(two(8)).max(1), datagrams))
}

impl Datagrams {
    /// Passes a run of datagrams that arrived at a shared address to those whose they are. Returns how many there were, or `None` if all of
    /// them are this program's, and came as those of any port do.
    #[inline]
    pub(super) fn sort<M: Machine>(&mut self, port: u32, index: usize, now: Instant, machine: &mut M) -> Option<u32> {
        let sharer = self.ports[port as usize].sharer?;
        let sharing = self.ports[sharer as usize].sharing.as_ref()?;
        let run = self.received.run(index);
        if run.bytes.chunks(run.each).all(|datagram| sharing.owner(datagram) == Owner::Own) {
            return None;
        }
        Some(self.sort_mixed(port, sharer, index, now, machine))
    }

    #[cold]
    fn sort_mixed<M: Machine>(&mut self, port: u32, sharer: u32, index: usize, now: Instant, machine: &mut M) -> u32 {
        // Taken out for the calls, which borrow the rest; an empty one has no buffers.
        let received = std::mem::take(&mut self.received);
        let run = received.run(index);
        let (mut rest, mut count) = (run.bytes, 0);
        while let Some((from, first)) = run.from.to_ip().zip(rest.chunks(run.each).next()) {
            let Some(sharing) = &self.ports[sharer as usize].sharing else { break };
            let owner = sharing.owner(first);
            let together = rest.chunks(run.each).take_while(|next| sharing.owner(next) == owner).count();
            count += together as u32;
            let (datagrams, others) = rest.split_at((together * run.each).min(rest.len()));
            rest = others;
            match owner {
                Owner::Other(part) if sharing.hand_on(part, from, run.each, datagrams) => {}
                Owner::HandedOn => {
                    datagrams.chunks(run.each).for_each(|datagram| self.handed_on(sharer, datagram, now, machine));
                }
                // One that is nobody's is counted by the machine.
                Owner::Own | Owner::Other(_) => {
                    let origin = Origin { port: self.ports[port as usize].home, from, arrival: None };
                    datagrams.chunks(run.each).for_each(|datagram| {
                        self.deliver(origin, datagram, now, machine);
                    });
                }
            }
        }
        self.received = received;
        count
    }

    /// Takes datagrams that another program has handed on, and has the next ones of their source come directly.
    fn handed_on<M: Machine>(&mut self, sharer: u32, datagram: &[u8], now: Instant, machine: &mut M) {
        let Some((from, each, datagrams)) = opened(datagram, self.ports[sharer as usize].is_ipv4) else { return };
        // Where nothing is awaited at the shared address, there is no peer whose they are.
        let Some(home) = self.home_of(sharer) else { return };
        let origin = Origin { port: home, from, arrival: None };
        let mut is_peers = false;
        for datagram in datagrams.chunks(each) {
            is_peers |= self.deliver(origin, datagram, now, machine);
        }
        let sources = self.ports.iter().filter(|port| port.faces.is_some_and(|far| far.port() > 0)).count();
        if is_peers && sources < SOURCES_MAX {
            // Without a socket of its own it goes on being handed on.
            let _ = self.face(from);
        }
    }

    /// Passes a datagram to the machine. Returns whether its source is a peer.
    fn deliver<M: Machine>(&mut self, origin: Origin, datagram: &[u8], now: Instant, machine: &mut M) -> bool {
        let known = self.numbers.get(&origin).map(|number| Peer(*number));
        let peer = known.or_else(|| {
            let ends = self.ends_of(&origin);
            self.admit(origin, &ends, datagram, now, machine)
        });
        if let Some(peer) = peer {
            machine.handle(now, Input::Received(peer, datagram));
        }
        peer.is_some()
    }

    /// Returns the number of the first port at the address that this one shares.
    fn home_of(&self, sharer: u32) -> Option<u32> {
        let shared = self.ports[sharer as usize].sharing.as_ref()?.shared.address();
        self.first_at(sharer, &Address::Udp(shared))
    }

    /// Returns the number of the first port at an address among those that one of them shares.
    pub(super) fn first_at(&self, sharer: u32, address: &Address) -> Option<u32> {
        let is_there = |port: &Port| port.sharer == Some(sharer) && port.address() == address;
        self.ports.iter().position(is_there).map(|number| number as u32)
    }

    /// Receives at the shared address what comes from a far end, from all of its ports if that of `far` is 0.
    pub(crate) fn face(&mut self, far: SocketAddr) -> io::Result<()> {
        let is_shared = |port: &Port| port.sharing.is_some() && port.is_ipv4 == far.is_ipv4();
        let Some(sharer) = self.ports.iter().position(is_shared).map(|number| number as u32) else {
            return Err(ErrorKind::Unsupported.into());
        };
        let is_there = self.ports.iter().any(|port| port.faces == Some(far));
        let own = &self.ports[sharer as usize];
        let shared = own.sharing.as_ref().map(|sharing| sharing.shared.address());
        let Some(shared) = shared.filter(|_| !is_there) else { return Ok(()) };
        // What receives from everywhere needs nothing for a host.
        if own.address().ip() == Some(shared) && far.port() == 0 {
            return Ok(());
        }
        let mut port = Port::facing(shared, far)?;
        port.sharer = Some(sharer);
        self.bind(port)
    }
}
