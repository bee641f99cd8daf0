mod port;
mod receiving;
#[cfg(test)]
mod tests;

use crate::fairness::{Round, Share, Shares};
use crate::joining::Joining;
use crate::notice::Notice;
use crate::numbering::Numbering;
use crate::poller::Poller;
use crate::sys::{self, RawAddress};
use crate::sys_datagram::{self as batch, Received};
use crate::transport::{Message, Run};
use crate::{Clock, SocketSettings, connect};
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Peer, Piece};
pub(crate) use port::Arrival;
pub use port::{Multicast, Port, PortOptions};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The default size of socket buffers: a burst of the largest window has to fit.
const BUFFER: usize = 4 << 20;
/// The timeout of a blocking receive, after which the other sources are checked. A nearer timer costs each sleep about
/// a microsecond on a virtual machine.
const LOOK_UP: Duration = Duration::from_millis(40);
/// The timeout of a send that finds no room; its datagram then counts as lost, as any other.
const SEND_ROOM: Duration = Duration::from_millis(100);
/// The number of datagrams that the kernel may cut from one send.
const SEGMENTS: usize = 64;
/// The bytes of one send, all datagrams together.
const SEND_BYTES: usize = 64_000;
/// The pieces of most sends, for which a short list is enough: to clear a long one takes as long as everything else here.
const FEW: usize = 8;
/// The first of the poller's tokens that stand for ports.
pub(crate) const PORTS: u64 = 1 << 33;

/// The UDP transport: a connected socket for each peer that the machine opens, and ports for peers that come by
/// themselves.
///
/// A connected socket has its own buffer in the kernel, which no other peer can fill; an absent peer is reported as
/// [`Closed::Refused`], a stranger's datagrams do not come through, and a send looks up no route.
pub(crate) struct Datagrams {
    settings: SocketSettings,
    opened: Vec<Option<Opened>>,
    ports: Vec<Port>,
    accepted: Vec<Option<Sender>>,
    pub(crate) numbering: Numbering,
    numbers: HashMap<Origin, u32>,
    last: Option<(Origin, u32)>,
    /// The number of peers that the machine has opened and sent something since it last received something from them.
    pub(crate) owed: usize,
    /// The datagrams sent to peers that the machine has opened, less those received from them since the last long silence.
    pub(crate) in_flight: usize,
    pub(crate) open: usize,
    poller: Poller,
    /// Sockets that the poller does not watch yet, as with `Streams`.
    unwatched: Vec<Source>,
    received: Received,
    /// The reply to a stranger.
    reply: Outbox,
    joining: Joining,
    notices: VecDeque<Notice>,
    shares: Shares,
    cut_max: usize,
    /// The number of ports whose datagrams are numbered.
    numbered: usize,
    unsent: u64,
    refused: u64,
}

/// The socket of a receive, which is that of one peer or a port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Port(u32),
    Opened(u32),
}

/// A peer that the machine has opened.
struct Opened {
    address: Address,
    way: Way,
    owes: bool,
}

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each device, and looking it up is on the path of every send"
)]
enum Way {
    /// A connected socket of the peer's own.
    Own(OwnedFd),
    /// One of the ports.
    Port(Origin, RawAddress),
}

/// A peer that came by itself.
struct Sender {
    origin: Origin,
    to: RawAddress,
}

/// The source of a datagram, and where it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Origin {
    port: u32,
    from: SocketAddr,
    /// The destination, if the port reports it.
    arrival: Option<Arrival>,
}

impl Datagrams {
    /// Creates a transport without any peer, whose sockets are watched by the given poller.
    pub(crate) fn new(settings: SocketSettings, poller: &Poller) -> io::Result<Self> {
        Ok(Datagrams {
            settings,
            opened: Vec::new(),
            ports: Vec::new(),
            accepted: Vec::new(),
            numbering: Numbering::default(),
            numbers: HashMap::new(),
            last: None,
            owed: 0,
            in_flight: 0,
            open: 0,
            poller: poller.sharing()?,
            unwatched: Vec::new(),
            received: Received::new(),
            reply: Outbox::new(),
            joining: Joining::default(),
            notices: VecDeque::new(),
            shares: Shares::default(),
            cut_max: SEND_BYTES,
            numbered: 0,
            unsent: 0,
            refused: 0,
        })
    }

    /// Accepts each sender to this port as a peer.
    pub(crate) fn bind(&mut self, port: Port) -> io::Result<()> {
        prepare(port.fd.as_fd(), port.address(), &self.settings)?;
        let number = self.ports.len() as u32;
        if port.numbered.is_some() {
            self.numbered += 1;
            // Where datagrams leave in trains, they arrive so.
            self.joining.switch_on();
        }
        self.ports.push(port);
        self.unwatched.push(Source::Port(number));
        self.count_sockets(Source::Port(number));
        Ok(())
    }

    /// Returns whether there are ports, through which peers may come by themselves.
    pub(crate) fn has_ports(&self) -> bool {
        !self.ports.is_empty()
    }

    /// Returns the source that a token of the poller stands for.
    pub(crate) fn source_of(token: u64) -> Source {
        if token >= PORTS { Source::Port((token - PORTS) as u32) } else { Source::Opened(token as u32) }
    }

    /// Returns the number of sockets.
    #[inline]
    pub(crate) fn sockets(&self) -> usize {
        self.open + self.ports.len()
    }

    /// Returns the local and the remote address of some socket that the machine has opened.
    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let own = self.opened.iter().flatten().find_map(|opened| match &opened.way {
            Way::Own(fd) => Some(fd),
            Way::Port(..) => None,
        });
        let Some(fd) = own else { return (None, None) };
        let local = sys::local_address(fd.as_fd()).ok().and_then(RawAddress::to_ip);
        (local, sys::remote_address(fd.as_fd()).ok().and_then(RawAddress::to_ip))
    }

    /// Returns the number of datagrams that the kernel would not take in time.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Returns the number of datagrams from senders beyond the limit on peers.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Sends a run of messages to one peer, those of one size together.
    pub(crate) fn send_run(&mut self, run: &Run<'_>, out: &mut Outbox, round: &mut Round) {
        let (peer, mut start, mut messages) = (run.peer, run.pieces.start, run.messages);
        if !self.note_sent(run, round) {
            return;
        }
        while let Some(first) = messages.first() {
            let count = self.together(messages);
            self.number(peer, &messages[..count], out);
            let pieces = &out.pieces()[start..messages[count - 1].pieces_end];
            let each = (count > 1).then_some(first.length);
            match self.send_pieces(peer, pieces, out, each) {
                Err(error) if count > 1 && is_cutting_refused(&error) => {
                    self.cut_max = first.length - 1;
                    self.number(peer, &messages[..count], out);
                }
                outcome => {
                    if let Err(error) = outcome {
                        self.not_sent(peer, &error, count as u64);
                    }
                    start = messages[count - 1].pieces_end;
                    messages = &messages[count..];
                }
            }
        }
    }

    /// Corrects the ends of messages that go out together, if their port is numbered. A second call undoes the first.
    #[inline]
    fn number(&mut self, peer: Peer, messages: &[Message], out: &mut Outbox) {
        if messages.len() < 2 || self.numbered == 0 {
            return;
        }
        let opened = self.opened.get(peer.0 as usize);
        let Some(Opened { way: Way::Port(Origin { port, .. }, _), .. }) = opened.and_then(Option::as_ref) else {
            return;
        };
        let Some(numbered) = &mut self.ports[*port as usize].numbered else { return };
        for (place, message) in (0..).zip(messages).skip(1) {
            out.correct(message.pieces_end, (numbered.0)(message.length, place));
        }
    }

    /// Counts the messages to a peer. Returns whether the peer exists.
    #[inline]
    fn note_sent(&mut self, run: &Run<'_>, round: &mut Round) -> bool {
        let is_there = if run.peer.is_accepted() {
            self.accepted.get(run.peer.index()).is_some_and(Option::is_some)
        } else if let Some(Some(opened)) = self.opened.get_mut(run.peer.0 as usize) {
            self.owed += usize::from(!std::mem::replace(&mut opened.owes, true));
            self.in_flight += run.messages.len();
            true
        } else {
            false
        };
        if is_there {
            let bytes = run.messages.iter().map(|message| message.length).sum();
            round.sent(run.peer, self.shares.of(run.peer), (bytes, run.messages.len()), false);
        }
        is_there
    }

    /// Returns how many of the messages can go out in one send: all of one size, except for a shorter last one.
    fn together(&self, messages: &[Message]) -> usize {
        let each = messages[0].length;
        if each == 0 || each > self.cut_max {
            return 1;
        }
        let most = (SEND_BYTES / each).clamp(1, SEGMENTS);
        let same = messages.iter().take(most).take_while(|message| message.length == each).count();
        match messages.get(same) {
            Some(last) if same < most && (1..each).contains(&last.length) => same + 1,
            _ => same,
        }
    }

    fn send_pieces(&mut self, peer: Peer, pieces: &[Piece], out: &Outbox, each: Option<usize>) -> io::Result<()> {
        let through = |origin: &Origin| (self.ports[origin.port as usize].fd.as_fd(), origin.arrival);
        let (fd, to, from) = if peer.is_accepted() {
            let known = self.accepted.get(peer.index()).and_then(Option::as_ref);
            let Some(Sender { origin, to }) = known else { return Ok(()) };
            let (fd, from) = through(origin);
            (fd, Some(to), from)
        } else {
            let Some(Some(opened)) = self.opened.get(peer.0 as usize) else { return Ok(()) };
            match &opened.way {
                Way::Own(fd) => (fd.as_fd(), None, None),
                Way::Port(origin, to) => (through(origin).0, Some(to), None),
            }
        };
        let each = each.and_then(|each| u16::try_from(each).ok());
        match pieces.len() {
            0..=FEW => send_gathered::<FEW>(fd, (to, from), (pieces, out), each),
            // Up to 64 datagrams of a header and a shared payload each, or one of up to 64 KiB in a few pieces.
            _ => send_gathered::<{ 2 * SEGMENTS + 2 }>(fd, (to, from), (pieces, out), each),
        }
    }

    fn not_sent(&mut self, peer: Peer, error: &io::Error, count: u64) {
        self.unsent += count;
        if error.kind() == ErrorKind::ConnectionRefused && !peer.is_accepted() {
            self.notices.push_back(Notice::Closed(peer, Closed::Refused));
        }
    }

    pub(crate) fn notice<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> Option<Instant> {
        let notice = self.notices.pop_front()?;
        let now = clock.now();
        match notice {
            Notice::Opened(peer) => machine.handle(now, Input::Opened(peer, &self.ends(peer)?)),
            Notice::Closed(peer, why) => {
                self.close(peer);
                machine.handle(now, Input::Closed(peer, why));
            }
        }
        Some(now)
    }

    /// Returns the only socket, if there is only one.
    #[inline]
    pub(crate) fn solo(&self) -> Option<Source> {
        match (self.ports.len(), self.open) {
            (1, 0) => Some(Source::Port(0)),
            (0, 1) => {
                let number = self.opened.iter().position(Option::is_some)?;
                Some(Source::Opened(number as u32))
            }
            _ => None,
        }
    }

    /// Makes the poller watch every socket.
    pub(crate) fn watch_all(&mut self) -> io::Result<()> {
        while let Some(source) = self.unwatched.pop() {
            if let Some(fd) = socket(&self.ports, &self.opened, source) {
                self.poller.add(fd, token(source), false)?;
            }
        }
        Ok(())
    }

    /// Removes the only socket, which is read directly, from the poller.
    pub(crate) fn unwatch(&mut self, source: Source) {
        if self.unwatched.is_empty()
            && let Some(fd) = socket(&self.ports, &self.opened, source)
        {
            self.poller.remove(fd, token(source));
            self.unwatched.push(source);
        }
    }

    /// Opens a peer at `address`, with a socket of its own or through the port of this number.
    pub(crate) fn open(&mut self, peer: Peer, address: &Address, from: Option<u16>) -> Result<(), Closed> {
        let index = peer.0 as usize;
        if peer.is_accepted() || self.open >= self.settings.peers_max {
            return Err(Closed::OverBound);
        }
        self.close(peer);
        let way = match from {
            None => Way::Own(open(address, &self.settings).map_err(|_| Closed::Unreachable)?),
            Some(from) => self.through_port(peer, address, from)?,
        };
        if index >= self.opened.len() {
            self.opened.resize_with(index + 1, || None);
        }
        let is_own = matches!(way, Way::Own(_));
        self.opened[index] = Some(Opened { address: address.clone(), way, owes: false });
        if is_own {
            self.unwatched.push(Source::Opened(peer.0));
            self.open += 1;
            self.count_sockets(Source::Opened(peer.0));
        }
        self.notices.push_back(Notice::Opened(peer));
        Ok(())
    }

    /// Returns a way through the port of this number: datagrams from `address` are this peer's from now on.
    fn through_port(&mut self, peer: Peer, address: &Address, from: u16) -> Result<Way, Closed> {
        let Some(remote) = address.ip() else { return Err(Closed::Unreachable) };
        let is_it = |port: &Port| port.number == from && port.is_ipv4 == remote.is_ipv4();
        let port = self.ports.iter().position(is_it).ok_or(Closed::Unreachable)? as u32;
        let origin = Origin { port, from: remote, arrival: None };
        self.numbers.insert(origin, peer.0);
        self.last = None;
        Ok(Way::Port(origin, RawAddress::ip(remote)))
    }

    /// Makes several sockets join, once one was `added`: how busy each of them is shows too late to be followed.
    fn count_sockets(&mut self, added: Source) {
        if self.sockets() == 2 {
            self.joining.switch_on();
            let ports = (0..self.ports.len() as u32).map(Source::Port);
            ports.chain((0..self.opened.len() as u32).map(Source::Opened)).for_each(|source| self.join(source));
        } else if self.joining.is_on() {
            self.join(added);
        }
    }

    pub(crate) fn close(&mut self, peer: Peer) {
        self.notices.retain(|notice| notice.about() != peer);
        if peer.is_accepted() {
            if let Some(sender) = self.accepted.get_mut(peer.index()).and_then(Option::take) {
                self.forget(&sender.origin);
                self.numbering.release(peer);
            }
        } else if let Some(opened) = self.opened.get_mut(peer.0 as usize).and_then(Option::take) {
            self.owed -= usize::from(opened.owes);
            match opened.way {
                Way::Own(fd) => {
                    self.poller.remove(fd.as_fd(), u64::from(peer.0));
                    self.unwatched.retain(|unwatched| *unwatched != Source::Opened(peer.0));
                    self.open -= 1;
                }
                Way::Port(origin, _) => self.forget(&origin),
            }
        } else {
            return;
        }
        *self.shares.of(peer) = Share::default();
    }

    fn forget(&mut self, origin: &Origin) {
        self.numbers.remove(origin);
        self.last = None;
    }

    /// Records that the round is over. Returns whether the machine may go on with a peer that was held back in it.
    pub(crate) fn released(&mut self, peer: Peer) -> bool {
        self.shares.of(peer).released()
    }

    /// Returns the ends of an exchange with the sender of a datagram.
    fn ends_of(&self, origin: &Origin) -> Ends {
        let bound = self.ports[origin.port as usize].address();
        let at = |arrival: Arrival| Address::Udp(SocketAddr::new(arrival.to, bound.ip().map_or(0, |ip| ip.port())));
        Ends {
            local: origin.arrival.map_or_else(|| bound.clone(), at),
            remote: Address::Udp(origin.from),
            interface: origin.arrival.map(|arrival| arrival.interface),
            user: None,
        }
    }

    /// Returns the ends of an exchange with a peer that is there.
    fn ends(&self, peer: Peer) -> Option<Ends> {
        if peer.is_accepted() {
            return Some(self.ends_of(&self.accepted.get(peer.index())?.as_ref()?.origin));
        }
        let opened = self.opened.get(peer.index())?.as_ref()?;
        Some(match &opened.way {
            Way::Own(fd) => connect::ends(fd.as_fd(), opened.address.clone()),
            Way::Port(origin, _) => {
                Ends::new(self.ports[origin.port as usize].address().clone(), opened.address.clone())
            }
        })
    }
}

#[inline]
fn socket<'a>(ports: &'a [Port], opened: &'a [Option<Opened>], source: Source) -> Option<BorrowedFd<'a>> {
    match source {
        Source::Port(number) => ports.get(number as usize).map(|port| port.fd.as_fd()),
        Source::Opened(number) => match &opened.get(number as usize)?.as_ref()?.way {
            Way::Own(fd) => Some(fd.as_fd()),
            Way::Port(..) => None,
        },
    }
}

fn token(source: Source) -> u64 {
    match source {
        Source::Port(number) => PORTS + u64::from(number),
        Source::Opened(number) => u64::from(number),
    }
}

/// Opens a connected socket.
fn open(address: &Address, settings: &SocketSettings) -> io::Result<OwnedFd> {
    let (fd, raw) = connect::socket_for(address, libc::SOCK_DGRAM)?;
    prepare(fd.as_fd(), address, settings)?;
    settings.path.bind(fd.as_fd(), address)?;
    sys::connect(fd.as_fd(), &raw)?;
    Ok(fd)
}

fn prepare(fd: BorrowedFd<'_>, address: &Address, settings: &SocketSettings) -> io::Result<()> {
    settings.path.prepare(fd, address)?;
    connect::set_buffers(fd, settings.socket_buffer.unwrap_or(BUFFER))?;
    sys::set_timeout(fd, libc::SO_RCVTIMEO, LOOK_UP)?;
    sys::set_timeout(fd, libc::SO_SNDTIMEO, SEND_ROOM)
}

/// Sends pieces through a list of `N` slices.
#[inline]
fn send_gathered<const N: usize>(
    fd: BorrowedFd<'_>,
    (to, from): (Option<&RawAddress>, Option<Arrival>),
    (pieces, out): (&[Piece], &Outbox),
    each: Option<u16>,
) -> io::Result<()> {
    let mut slices = [IoSlice::new(&[]); N];
    let count = gather(pieces, out, &mut slices);
    loop {
        match batch::send(fd, to, from, &slices[..count], each) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Fills `slices` with the pieces, and returns their number; neighbours in the scratch buffer are one slice.
#[inline]
fn gather<'a>(pieces: &'a [Piece], out: &'a Outbox, slices: &mut [IoSlice<'a>]) -> usize {
    let (mut count, mut index) = (0, 0);
    while index < pieces.len() && count < slices.len() {
        let mut bytes = out.bytes(&pieces[index]);
        if let Piece::Scratch(range) = &pieces[index] {
            let mut end = range.end;
            while let Some(Piece::Scratch(next)) = pieces.get(index + 1)
                && next.start == end
            {
                end = next.end;
                index += 1;
            }
            bytes = out.scratch(range.start..end);
        }
        slices[count] = IoSlice::new(bytes);
        count += 1;
        index += 1;
    }
    count
}

/// Returns whether a send failed because the kernel does not cut: it refuses datagrams larger than the interface's
/// frames, and interfaces that cannot check-sum.
fn is_cutting_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO | libc::EOPNOTSUPP))
}
