use crate::attended::Accepting;
use crate::fairness::{Round, Share, Shares};
use crate::joining::Joining;
use crate::notice::Notice;
use crate::poller::{Poller, span_until};
use crate::sys::{self, RawAddress};
use crate::sys_datagram::{self as batch, Received};
use crate::transport::{Batch, Ends, Message, Run, Transport};
use crate::{Clock, SocketSettings, connect};
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Peer, Piece, Wait};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Socket buffers, unless told otherwise: a burst of the largest window has to fit.
const BUFFER: usize = 4 << 20;
/// A blocking receive returns after this long, to look at what else there is. A nearer timer costs each sleep about a
/// microsecond on a virtual machine.
const LOOK_UP: Duration = Duration::from_millis(40);
/// A send that finds no room for this long is given up; its loss is then seen as that of any datagram.
const SEND_ROOM: Duration = Duration::from_millis(100);
/// Datagrams that the kernel may cut from one send.
const SEGMENTS: usize = 64;
/// Bytes of one send, all datagrams together.
const SEND_BYTES: usize = 64_000;
/// Empty looks at one socket between two looks at the clock.
const SPINS: u32 = 32;
const LISTENER: u64 = u64::MAX;

/// UDP: a connected socket for each peer that the machine opens, and one socket for all that come by themselves.
pub struct Datagrams {
    settings: SocketSettings,
    opened: Vec<Option<OwnedFd>>,
    listener: Option<OwnedFd>,
    accepted: Vec<Option<(SocketAddr, RawAddress)>>,
    numbers: HashMap<SocketAddr, u32>,
    last: Option<(SocketAddr, u32)>,
    free: Vec<u32>,
    pub(crate) open: usize,
    poller: Poller,
    /// Sockets that the poller does not watch yet; see the same of streams.
    unwatched: Vec<Source>,
    received: Received,
    joining: Joining,
    notices: VecDeque<Notice>,
    round: Round,
    shares: Shares,
    cut_max: usize,
    unsent: u64,
    refused: u64,
}

/// Where a receive goes: which socket, and which peer where it has only one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Listener,
    Opened(u32),
}

impl Datagrams {
    /// Without any peer. Those who send to `listener` become peers.
    pub fn new(settings: SocketSettings, listener: Option<OwnedFd>) -> io::Result<Self> {
        let poller = Poller::new()?;
        if let Some(listener) = &listener {
            prepare(listener.as_fd(), &settings)?;
        }
        let unwatched = listener.iter().map(|_| Source::Listener).collect();
        Ok(Datagrams {
            settings,
            opened: Vec::new(),
            listener,
            accepted: Vec::new(),
            numbers: HashMap::new(),
            last: None,
            free: Vec::new(),
            open: 0,
            poller,
            unwatched,
            received: Received::new(),
            joining: Joining::default(),
            notices: VecDeque::new(),
            round: Round::default(),
            shares: Shares::default(),
            cut_max: SEND_BYTES,
            unsent: 0,
            refused: 0,
        })
    }

    /// What this token of the poller stands for, where it is those who come by themselves.
    pub(crate) fn listens_as(of: u64) -> Option<Source> {
        (of == LISTENER).then_some(Source::Listener)
    }

    /// Has another transport's poller watch the sockets, before there are any; that transport waits for both.
    pub(crate) fn share_poller(&mut self, poller: &Poller) -> io::Result<()> {
        self.poller = poller.sharing()?;
        Ok(())
    }

    /// The two addresses of some socket that the machine has opened.
    #[must_use]
    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let Some(fd) = self.opened.iter().flatten().next() else { return (None, None) };
        let local = sys::local_address(fd.as_fd()).ok().and_then(RawAddress::to_ip);
        (local, sys::remote_address(fd.as_fd()).ok().and_then(RawAddress::to_ip))
    }

    /// Datagrams that the kernel would not take in time.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Datagrams from senders beyond the bound on peers.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Sends a run of messages to one peer: those of one size together.
    pub(crate) fn send_run(&mut self, run: &Run<'_>, out: &Outbox) {
        let (peer, mut start, mut messages) = (run.peer, run.pieces.start, run.messages);
        if !self.is_there(peer) {
            return;
        }
        let bytes = run.messages.iter().map(|message| message.length).sum();
        self.round.sent(peer, self.shares.of(peer), (bytes, messages.len()), false);
        while let Some(first) = messages.first() {
            let count = self.together(messages);
            let pieces = &out.pieces()[start..messages[count - 1].pieces_end];
            let each = (count > 1).then_some(first.length);
            match self.send_pieces(peer, pieces, out, each) {
                Err(error) if count > 1 && is_cutting_refused(&error) => self.cut_max = first.length - 1,
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

    #[inline]
    fn is_there(&self, peer: Peer) -> bool {
        if peer.is_accepted() {
            self.accepted.get((peer.0 - Peer::FIRST_ACCEPTED) as usize).is_some_and(Option::is_some)
        } else {
            self.opened.get(peer.0 as usize).is_some_and(Option::is_some)
        }
    }

    /// How many of the messages can go out in one send: all of one size, but for a shorter last one.
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
        let (fd, to) = if peer.is_accepted() {
            let known = self.accepted.get((peer.0 - Peer::FIRST_ACCEPTED) as usize).and_then(Option::as_ref);
            let (Some(fd), Some((_, to))) = (&self.listener, known) else { return Ok(()) };
            (fd.as_fd(), Some(to))
        } else {
            let Some(Some(fd)) = self.opened.get(peer.0 as usize) else { return Ok(()) };
            (fd.as_fd(), None)
        };
        let each = each.and_then(|each| u16::try_from(each).ok());
        // Up to 64 datagrams, of a header and a shared payload each, or one of up to 64 KiB in a few pieces.
        let mut slices = [IoSlice::new(&[]); 2 * SEGMENTS + 2];
        let count = gather(pieces, out, &mut slices);
        loop {
            match batch::send(fd, to, &slices[..count], each) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn not_sent(&mut self, peer: Peer, error: &io::Error, count: u64) {
        self.unsent += count;
        if error.kind() == ErrorKind::ConnectionRefused && !peer.is_accepted() {
            self.notices.push_back(Notice::Closed(peer, Closed::Refused));
        }
    }

    /// One receive, whose datagrams all go to the machine.
    #[inline]
    pub(crate) fn read<M: Machine>(
        &mut self,
        source: Source,
        flags: i32,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        let Some(fd) = socket(self.listener.as_ref(), &self.opened, source) else { return Ok(None) };
        let named = source == Source::Listener;
        let outcome = if self.joining.is_needed() {
            self.received.receive(fd, flags, named)
        } else {
            self.received.receive_one(fd, flags, named)
        };
        let count = match outcome {
            Ok(count) => count,
            Err(error) => return Ok(self.not_received(source, &error, clock, machine)),
        };
        let now = clock.now();
        let mut datagrams = 0;
        for index in 0..count {
            let peer = match source {
                Source::Opened(number) => Peer(number),
                Source::Listener => match self.sender(index, now, machine) {
                    Some(peer) => peer,
                    None => continue,
                },
            };
            let run = self.received.run(index);
            for datagram in run.bytes.chunks(run.each) {
                datagrams += 1;
                machine.handle(now, Input::Received(peer, datagram));
            }
        }
        if self.joining.note(datagrams) {
            self.set_joining(source, false);
        }
        Ok(Some(now))
    }

    /// One receive, which first looks whether more is waiting where that is to be known: of the only socket there is.
    #[inline]
    pub(crate) fn read_solo<M: Machine>(
        &mut self,
        source: Source,
        flags: i32,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        match self.look_on(source, clock, machine)? {
            None => self.read(source, flags, clock, machine),
            seen => Ok(seen),
        }
    }

    /// Looks whether more is waiting, where that is to be known: right after the last was dealt with.
    #[inline]
    pub(crate) fn look_on<M: Machine>(
        &mut self,
        source: Source,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        if !self.joining.wants_look() {
            return Ok(None);
        }
        let seen = self.read(source, libc::MSG_DONTWAIT, clock, machine)?;
        if self.joining.looked(seen.is_some()) {
            self.set_joining(source, true);
        }
        Ok(seen)
    }

    fn set_joining(&self, source: Source, on: bool) {
        if let Some(fd) = socket(self.listener.as_ref(), &self.opened, source) {
            // A kernel before 5.0 does not know how to join; each datagram then comes alone.
            let _ = batch::set_joining(fd, on);
        }
    }

    fn not_received<M: Machine>(
        &mut self,
        source: Source,
        error: &io::Error,
        clock: &Clock,
        machine: &mut M,
    ) -> Option<Instant> {
        let Source::Opened(number) = source else { return None };
        if error.kind() != ErrorKind::ConnectionRefused {
            return None;
        }
        let now = clock.now();
        self.close(Peer(number));
        machine.handle(now, Input::Closed(Peer(number), Closed::Refused));
        Some(now)
    }

    /// The peer that a datagram comes from, announced to the machine where it is new.
    #[inline]
    fn sender<M: Machine>(&mut self, index: usize, now: Instant, machine: &mut M) -> Option<Peer> {
        let from = self.received.run(index).from.to_ip()?;
        if let Some((address, number)) = self.last
            && address == from
        {
            return Some(Peer(number));
        }
        if let Some(&number) = self.numbers.get(&from) {
            self.last = Some((from, number));
            return Some(Peer(number));
        }
        if self.numbers.len() >= self.settings.peers_max {
            self.refused += 1;
            return None;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.accepted.push(None);
            (self.accepted.len() - 1) as u32
        });
        let number = Peer::FIRST_ACCEPTED + index;
        self.accepted[index as usize] = Some((from, RawAddress::ip(from)));
        self.numbers.insert(from, number);
        self.last = Some((from, number));
        machine.handle(now, Input::Opened(Peer(number), &Address::Socket(from)));
        Some(Peer(number))
    }

    pub(crate) fn notice<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> Option<Instant> {
        let notice = self.notices.pop_front()?;
        let now = clock.now();
        match notice {
            Notice::Opened(peer, address) => machine.handle(now, Input::Opened(peer, &address)),
            Notice::Closed(peer, why) => {
                self.close(peer);
                machine.handle(now, Input::Closed(peer, why));
            }
        }
        Some(now)
    }

    /// The only socket, where there is only one.
    #[inline]
    pub(crate) fn solo(&self) -> Option<Source> {
        match (&self.listener, self.open) {
            (Some(_), 0) => Some(Source::Listener),
            (None, 1) => self.opened.iter().position(Option::is_some).map(|number| Source::Opened(number as u32)),
            _ => None,
        }
    }

    /// Has the poller watch every socket.
    pub(crate) fn watch_all(&mut self) -> io::Result<()> {
        while let Some(source) = self.unwatched.pop() {
            if let Some(fd) = socket(self.listener.as_ref(), &self.opened, source) {
                self.poller.add(fd, token(source), false)?;
            }
        }
        Ok(())
    }

    /// Has the poller leave the only socket alone, which is read directly.
    pub(crate) fn unwatch(&mut self, source: Source) {
        if self.unwatched.is_empty()
            && let Some(fd) = socket(self.listener.as_ref(), &self.opened, source)
        {
            self.poller.remove(fd, token(source));
            self.unwatched.push(source);
        }
    }

    fn look<M: Machine>(
        &mut self,
        sleep: Option<Duration>,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.watch_all()?;
        self.poller.wait(sleep)?;
        self.ready(clock, machine)
    }

    fn ready<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        while let Some(ready) = self.poller.next() {
            let source = if ready.token == LISTENER { Source::Listener } else { Source::Opened(ready.token as u32) };
            if let Some(now) = self.read_solo(source, libc::MSG_DONTWAIT, clock, machine)? {
                return Ok(Some(now));
            }
        }
        Ok(None)
    }

    fn spin<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        let Some(source) = self.solo() else { return self.look(Some(Duration::ZERO), clock, machine) };
        self.unwatch(source);
        for _ in 0..SPINS {
            if let Some(now) = self.read_solo(source, libc::MSG_DONTWAIT, clock, machine)? {
                return Ok(Some(now));
            }
        }
        Ok(None)
    }
}

impl Transport for Datagrams {
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed> {
        let index = peer.0 as usize;
        if peer.is_accepted() || self.open >= self.settings.peers_max {
            return Err(Closed::OverBound);
        }
        self.close(peer);
        let fd = open(address, &self.settings).map_err(|_| Closed::Unreachable)?;
        if index >= self.opened.len() {
            self.opened.resize_with(index + 1, || None);
        }
        self.opened[index] = Some(fd);
        self.unwatched.push(Source::Opened(peer.0));
        self.open += 1;
        let sockets = self.open + usize::from(self.listener.is_some());
        if sockets > 1 {
            // How busy each of several sockets is shows too late to be followed.
            self.joining.always();
            let new = if sockets == 2 { 0 } else { index };
            for fd in self.opened[new..].iter().flatten().chain(&self.listener) {
                let _ = batch::set_joining(fd.as_fd(), true);
            }
        }
        self.notices.push_back(Notice::Opened(peer, address.clone()));
        Ok(())
    }

    fn close(&mut self, peer: Peer) {
        self.notices.retain(|notice| notice.about() != peer);
        *self.shares.of(peer) = Share::default();
        if peer.is_accepted() {
            let index = peer.0 - Peer::FIRST_ACCEPTED;
            if let Some((address, _)) = self.accepted.get_mut(index as usize).and_then(Option::take) {
                self.numbers.remove(&address);
                self.last = None;
                self.free.push(index);
            }
        } else if let Some(fd) = self.opened.get_mut(peer.0 as usize).and_then(Option::take) {
            self.poller.remove(fd.as_fd(), u64::from(peer.0));
            self.unwatched.retain(|unwatched| *unwatched != Source::Opened(peer.0));
            self.open -= 1;
        }
    }

    #[inline]
    fn send(&mut self, batch: &Batch, out: &Outbox) -> io::Result<()> {
        batch.runs().for_each(|run| self.send_run(&run, out));
        Ok(())
    }

    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        let mut any = false;
        while let Some(peer) = self.round.next_blocked() {
            machine.handle(now, Input::Blocked(peer));
            any = true;
        }
        any
    }

    #[inline]
    fn has_held(&self) -> bool {
        self.round.has_held()
    }

    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        self.round.begin();
        while let Some(peer) = self.round.next_held() {
            if self.shares.of(peer).released() {
                machine.handle(now, Input::Drained(peer));
            }
        }
    }

    #[inline]
    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        if let Some(now) = self.notice(clock, machine) {
            return Ok(Some(now));
        }
        if let Some(now) = self.ready(clock, machine)? {
            return Ok(Some(now));
        }
        let Some(spins) = wait.polls_for() else { return self.look(Some(Duration::ZERO), clock, machine) };
        if !spins.is_zero() {
            let spin_until = (clock.now() + spins).min(until);
            loop {
                if let Some(now) = self.spin(clock, machine)? {
                    return Ok(Some(now));
                }
                if clock.now() >= spin_until {
                    break;
                }
            }
            if spin_until == until {
                return Ok(None);
            }
        }
        let span = span_until(until, clock.now());
        if span.is_none_or(|span| span > LOOK_UP)
            && let Some(source) = self.solo()
        {
            self.unwatch(source);
            if let Some(now) = self.read_solo(source, 0, clock, machine)? {
                return Ok(Some(now));
            }
        }
        self.look(span_until(until, clock.now()), clock, machine)
    }

    fn ends(&self, peer: Peer) -> Option<Ends> {
        let transport = hodo_machine::Transport::Datagram;
        if !peer.is_accepted() {
            return Ends::of(self.opened.get(peer.0 as usize)?.as_ref()?.as_fd(), transport);
        }
        let (remote, _) = *self.accepted.get((peer.0 - Peer::FIRST_ACCEPTED) as usize)?.as_ref()?;
        let local = sys::local_address(self.listener.as_ref()?.as_fd()).ok()?.to_ip()?;
        Some(Ends { local, remote, transport })
    }
}

impl Accepting for Datagrams {
    fn stop_listening(&mut self) {
        // Those who are there come through the same socket.
    }

    fn backlog(&self) -> usize {
        0
    }
}

#[inline]
fn socket<'a>(listener: Option<&'a OwnedFd>, opened: &'a [Option<OwnedFd>], source: Source) -> Option<BorrowedFd<'a>> {
    match source {
        Source::Listener => listener.map(AsFd::as_fd),
        Source::Opened(number) => opened.get(number as usize)?.as_ref().map(AsFd::as_fd),
    }
}

fn token(source: Source) -> u64 {
    match source {
        Source::Listener => LISTENER,
        Source::Opened(number) => u64::from(number),
    }
}

/// A connected socket.
fn open(address: &Address, settings: &SocketSettings) -> io::Result<OwnedFd> {
    let (fd, raw) = connect::socket_for(address, libc::SOCK_DGRAM)?;
    prepare(fd.as_fd(), settings)?;
    sys::connect(fd.as_fd(), &raw)?;
    Ok(fd)
}

fn prepare(fd: BorrowedFd<'_>, settings: &SocketSettings) -> io::Result<()> {
    connect::set_buffers(fd, settings.socket_buffer.unwrap_or(BUFFER))?;
    sys::set_timeout(fd, libc::SO_RCVTIMEO, LOOK_UP)?;
    sys::set_timeout(fd, libc::SO_SNDTIMEO, SEND_ROOM)
}

/// The pieces as slices; neighbours in the scratch buffer are one slice.
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

/// The kernel refuses to cut datagrams larger than the interface's frames, and on interfaces that cannot check-sum.
fn is_cutting_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO | libc::EOPNOTSUPP))
}
