mod accepting;
mod solo;

use crate::backlog::{Backlog, SLICES, write_now};
use crate::fairness::{Round, Share};
use crate::listener::{Accepted, Arrivals};
use crate::notice::{Notice, why};
use crate::poller::{Poller, Ready, span_until};
use crate::transport::{Batch, Ends, Run, Transport};
use crate::untaken::Untaken;
use crate::{Clock, Listener, Mailbox, SocketSettings, TcpCounters, connect, sys};
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Peer, Wait};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// A blocking receive looks at what else there is after this long; a nearer timer costs a sleep 1 us on a virtual machine.
const LOOK_UP: Duration = Duration::from_millis(40);
/// For this long after a connection came, the next one is waited for too: a client that connects anew for each
/// operation would otherwise wait for [`LOOK_UP`] each time.
const SETTLED: Duration = Duration::from_millis(100);
const ARRIVALS: u64 = u64::MAX;

/// TCP and Unix streams: connections opened by the machine, and connections accepted for it by a listener.
pub struct Streams {
    settings: SocketSettings,
    opened: Streamed,
    accepted: Streamed,
    free: Vec<u32>,
    pub(crate) count: usize,
    pub(crate) poller: Poller,
    buffer: Box<[u8]>,
    /// Whether the last receive filled it: there may be more.
    filled: bool,
    notices: VecDeque<Notice>,
    round: Round,
    untaken: Untaken,
    /// Streams that the poller does not watch yet. A watched stream pays for it with every packet, on the sender's
    /// processor, so that a stream that is read directly is not watched.
    unwatched: Vec<Peer>,
    arrivals: Arrivals,
    /// Connections that have come, and that the machine has not been told of.
    arrived: VecDeque<Accepted>,
    /// Whether it was told of one the last time.
    welcomed: bool,
    /// When something was last received, or the clock last read in vain.
    pub(crate) heard: Instant,
    /// Until then more connections are expected.
    unsettled_until: Instant,
    /// The only peer there is, while it is busy: read directly, without the poller.
    solo: Option<Peer>,
    /// Direct receives from it since the poller was last asked.
    direct: u32,
    /// Others wake this thread: it sleeps in the poller only.
    wakeable: bool,
}

struct Stream {
    fd: OwnedFd,
    address: Address,
    connecting: bool,
    closing: bool,
    watched: bool,
    waiting: bool,
    share: Share,
    timed: bool,
    backlog: Backlog,
}

/// Streams by their peer's number.
type Streamed = Vec<Option<Box<Stream>>>;

impl Streams {
    /// Without any stream. Connections from `mailbox` are taken in, where there is one.
    pub fn new(settings: SocketSettings, mailbox: Option<Arc<Mailbox>>) -> io::Result<Self> {
        Self::with(settings, mailbox.map_or(Arrivals::Nowhere, Arrivals::Mailbox))
    }

    /// Without any stream. Connections to `listener` are accepted here.
    pub fn listening(settings: SocketSettings, listener: Listener) -> io::Result<Self> {
        Self::with(settings, Arrivals::listening(listener)?)
    }

    pub(crate) fn with(settings: SocketSettings, arrivals: Arrivals) -> io::Result<Self> {
        let poller = Poller::new()?;
        if let Some(watched) = arrivals.watched() {
            poller.add(watched, ARRIVALS, false)?;
        }
        let buffer = vec![0; settings.at_once.max(1)].into_boxed_slice();
        Ok(Streams {
            settings,
            opened: Vec::new(),
            accepted: Vec::new(),
            free: Vec::new(),
            count: 0,
            poller,
            buffer,
            filled: false,
            notices: VecDeque::new(),
            round: Round::default(),
            untaken: Untaken::default(),
            unwatched: Vec::new(),
            arrivals,
            arrived: VecDeque::new(),
            welcomed: false,
            heard: Instant::ZERO,
            unsettled_until: Instant::ZERO,
            solo: None,
            direct: 0,
            wakeable: false,
        })
    }

    /// As [`Streams::new`], for a thread that is woken through its mailbox.
    pub(crate) fn wakeable(settings: SocketSettings, mailbox: Arc<Mailbox>) -> io::Result<Self> {
        Ok(Streams { wakeable: true, ..Self::new(settings, Some(mailbox))? })
    }

    /// The congestion control, and the two addresses, of some stream that the machine has opened.
    #[must_use]
    pub fn facts(&self) -> (Option<String>, Option<SocketAddr>, Option<SocketAddr>) {
        let Some(stream) = self.opened.iter().flatten().next() else { return (None, None, None) };
        let ends = Ends::of(stream.fd.as_fd(), hodo_machine::Transport::Stream);
        (sys::congestion(stream.fd.as_fd()).ok(), ends.map(|ends| ends.local), ends.map(|ends| ends.remote))
    }

    /// Segments that TCP has sent again, on all streams that there are now.
    #[must_use]
    pub fn retransmitted(&self) -> u64 {
        self.tcp().map_or(0, |counters| counters.retransmitted)
    }

    /// Returns what TCP counts of all streams that there are now; `None` if none of them is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<TcpCounters> {
        let is_tcp = |stream: &Stream| matches!(stream.address, Address::Socket(_)) && !stream.connecting;
        let streams = self.opened.iter().chain(&self.accepted).flatten().filter(|stream| is_tcp(stream));
        streams.filter_map(|stream| TcpCounters::of(stream.fd.as_fd())).reduce(TcpCounters::and)
    }

    #[inline]
    fn stream(&mut self, peer: Peer) -> Option<&mut Stream> {
        slot(&mut self.opened, &mut self.accepted, peer)?.as_deref_mut()
    }

    fn remove(&mut self, peer: Peer) {
        let Some(stream) = slot(&mut self.opened, &mut self.accepted, peer).and_then(Option::take) else { return };
        self.count -= 1;
        self.solo = None;
        // The number may be given to another peer before these are told.
        self.notices.retain(|notice| notice.about() != peer);
        self.untaken.forget(peer);
        if stream.watched {
            self.poller.remove(stream.fd.as_fd(), u64::from(peer.0));
        } else {
            self.unwatched.retain(|unwatched| *unwatched != peer);
        }
        if peer.is_accepted() {
            self.free.push(peer.0 - Peer::FIRST_ACCEPTED);
            self.arrivals.left();
        }
    }

    fn insert(&mut self, peer: Peer, fd: OwnedFd, address: Address, connecting: bool) {
        let stream = Stream {
            fd,
            address,
            connecting,
            closing: false,
            watched: false,
            waiting: false,
            share: Share::default(),
            timed: false,
            backlog: Backlog::default(),
        };
        if let Some(slot) = slot(&mut self.opened, &mut self.accepted, peer) {
            *slot = Some(Box::new(stream));
            self.count += 1;
            self.solo = None;
            self.unwatched.push(peer);
        }
    }

    /// Has the poller watch every stream.
    pub(crate) fn watch_all(&mut self) -> io::Result<()> {
        while let Some(peer) = self.unwatched.pop() {
            if let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer)
                && !stream.watched
            {
                stream.waiting = stream.connecting || !stream.backlog.is_empty();
                self.poller.add(stream.fd.as_fd(), u64::from(peer.0), stream.waiting)?;
                stream.watched = true;
            }
        }
        Ok(())
    }

    /// Has the poller leave a stream alone.
    fn unwatch(&mut self, peer: Peer) {
        if let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer)
            && std::mem::take(&mut stream.watched)
        {
            self.poller.remove(stream.fd.as_fd(), u64::from(peer.0));
            self.unwatched.push(peer);
        }
    }

    /// Cuts those who were closed and do not take what was sent to them before.
    #[inline]
    pub(crate) fn cut_untaken(&mut self, clock: &Clock) {
        while !self.untaken.is_empty()
            && let Some(peer) = self.untaken.overdue(clock.now(), self.settings.close_within)
        {
            if let Some(stream) = self.stream(peer) {
                // What the kernel holds would otherwise outlive it.
                let _ = sys::set_cut_on_close(stream.fd.as_fd());
            }
            self.remove(peer);
        }
    }

    /// Writes what was kept for a peer. Answers why the stream is at its end, where it is.
    fn drain(&mut self, peer: Peer) -> Result<(), Closed> {
        let Some(stream) = self.stream(peer) else { return Ok(()) };
        while !stream.backlog.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = stream.backlog.slices(&mut slices);
            let wanted: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            match sys::send_vectored(stream.fd.as_fd(), &slices[..count], libc::MSG_DONTWAIT) {
                Ok(sent) => {
                    stream.backlog.sent(sent);
                    if sent < wanted {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(why(&error)),
            }
        }
        self.watch(peer);
        Ok(())
    }

    /// Watches for room exactly while something is waiting for it.
    fn watch(&mut self, peer: Peer) {
        let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer) else { return };
        let waiting = stream.connecting || !stream.backlog.is_empty();
        if !stream.watched || stream.waiting == waiting {
            return;
        }
        stream.waiting = waiting;
        // The descriptor was added with the stream, so that changing it can only fail where the stream is dead; reading
        // tells then.
        let _ = self.poller.change(stream.fd.as_fd(), u64::from(peer.0), waiting);
    }

    pub(crate) fn send_run(&mut self, run: &Run<'_>, out: &Outbox) {
        let (peer, pieces, bound) = (run.peer, &out.pieces()[run.pieces.clone()], self.settings.backlog_max);
        let length = run.messages.iter().map(|message| message.length).sum();
        let Some(stream) = slot(&mut self.opened, &mut self.accepted, peer).and_then(Option::as_deref_mut) else {
            return;
        };
        if stream.closing {
            return;
        }
        let mut sent = 0;
        if !stream.connecting && stream.backlog.is_empty() {
            match write_now(stream.fd.as_fd(), out, pieces) {
                Ok(taken) => sent = taken,
                Err(error) => return self.notices.push_back(Notice::Closed(peer, why(&error))),
            }
        }
        let was_empty = stream.backlog.is_empty();
        if sent < length {
            stream.backlog.keep(out, pieces, sent);
        }
        let is_full = stream.backlog.len() > bound;
        self.round.sent(peer, &mut stream.share, (length, run.messages.len()), is_full);
        if was_empty && sent < length {
            self.solo = None;
            self.watch(peer);
        }
    }

    /// Handles one thing that the poller saw.
    pub(crate) fn ready<M: Machine>(
        &mut self,
        ready: Ready,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        if ready.token == ARRIVALS {
            self.take_arrivals(clock)?;
            return Ok(self.welcome(clock, machine));
        }
        let peer = Peer(ready.token as u32);
        if ready.writable
            && let Some(now) = self.writable(peer, clock, machine)
        {
            return Ok(Some(now));
        }
        if !ready.readable {
            return Ok(None);
        }
        Ok(self.read(peer, libc::MSG_DONTWAIT, clock, machine))
    }

    fn writable<M: Machine>(&mut self, peer: Peer, clock: &Clock, machine: &mut M) -> Option<Instant> {
        let stream = self.stream(peer)?;
        if stream.connecting {
            let outcome = sys::option(stream.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR);
            let outcome = match outcome {
                Ok(0) => sys::set_nonblocking(stream.fd.as_fd(), false),
                Ok(errno) => Err(io::Error::from_raw_os_error(errno)),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                return Some(self.closed(peer, why(&error), clock, machine));
            }
            stream.connecting = false;
            let address = stream.address.clone();
            self.watch(peer);
            let now = clock.now();
            machine.handle(now, Input::Opened(peer, &address));
            return Some(now);
        }
        if let Err(why) = self.drain(peer) {
            return Some(self.closed(peer, why, clock, machine));
        }
        let stream = self.stream(peer)?;
        if !stream.backlog.is_empty() {
            return None;
        }
        if stream.closing {
            self.remove(peer);
            return None;
        }
        if !stream.share.drained() {
            return None;
        }
        let now = clock.now();
        machine.handle(now, Input::Drained(peer));
        Some(now)
    }

    fn closed<M: Machine>(&mut self, peer: Peer, why: Closed, clock: &Clock, machine: &mut M) -> Instant {
        let now = clock.now();
        let tell = self.stream(peer).is_some_and(|stream| !stream.closing);
        self.remove(peer);
        if tell {
            machine.handle(now, Input::Closed(peer, why));
        }
        now
    }

    /// One receive from one peer, straight into the machine's own place where it offers one.
    #[inline]
    pub(crate) fn read<M: Machine>(
        &mut self,
        peer: Peer,
        flags: i32,
        clock: &Clock,
        machine: &mut M,
    ) -> Option<Instant> {
        self.read_as_of(None, peer, flags, clock, machine)
    }

    /// The same for what counts as come at a time that is known already.
    #[inline]
    fn read_as_of<M: Machine>(
        &mut self,
        came: Option<Instant>,
        peer: Peer,
        flags: i32,
        clock: &Clock,
        machine: &mut M,
    ) -> Option<Instant> {
        let stream = slot(&mut self.opened, &mut self.accepted, peer)?.as_deref_mut()?;
        if stream.connecting {
            return None;
        }
        let landed = machine.landing(peer);
        let landing = landed.is_some();
        let place = landed.unwrap_or(&mut self.buffer);
        let room = place.len();
        let outcome = sys::receive(stream.fd.as_fd(), place, flags);
        self.filled = !landing && matches!(outcome, Ok(count) if count == room);
        match outcome {
            Ok(0) => Some(self.closed(peer, Closed::Finished, clock, machine)),
            Ok(_) if stream.closing => None,
            Ok(count) => {
                let now = came.unwrap_or_else(|| clock.now());
                self.heard = now;
                let input =
                    if landing { Input::Landed(peer, count) } else { Input::Received(peer, &self.buffer[..count]) };
                machine.handle(now, input);
                Some(now)
            }
            Err(error) if sys::is_vain(&error) => None,
            Err(error) => Some(self.closed(peer, why(&error), clock, machine)),
        }
    }

    pub(crate) fn notice<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> Option<Instant> {
        loop {
            match self.notices.pop_front()? {
                Notice::Opened(peer, address) => {
                    let now = clock.now();
                    machine.handle(now, Input::Opened(peer, &address));
                    return Some(now);
                }
                Notice::Closed(peer, why) if self.stream(peer).is_some() => {
                    return Some(self.closed(peer, why, clock, machine));
                }
                Notice::Closed(..) => {}
            }
        }
    }

    /// Looks at what there is, without the poller where there is only one peer.
    fn look_once<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        let Some(peer) = self.solo() else { return self.look(Some(Duration::ZERO), clock, machine) };
        let seen = self.read_on(peer, libc::MSG_DONTWAIT, clock, machine);
        self.heard = seen.unwrap_or_else(|| clock.now());
        Ok(seen)
    }

    fn look<M: Machine>(
        &mut self,
        sleep: Option<Duration>,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.direct = 0;
        self.watch_all()?;
        self.poller.wait(sleep)?;
        while let Some(ready) = self.poller.next() {
            if let Some(now) = self.ready(ready, clock, machine)? {
                return Ok(Some(now));
            }
        }
        Ok(None)
    }
}

impl Transport for Streams {
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed> {
        self.remove(peer);
        let index = peer.0 as usize;
        if peer.is_accepted() || self.count >= self.settings.peers_max {
            return Err(Closed::OverBound);
        }
        if index >= self.opened.len() {
            self.opened.resize_with(index + 1, || None);
        }
        let (fd, connected) = connect::stream(address, &self.settings).map_err(|error| why(&error))?;
        self.insert(peer, fd, address.clone(), !connected);
        if connected {
            self.notices.push_back(Notice::Opened(peer, address.clone()));
        }
        Ok(())
    }

    fn close(&mut self, peer: Peer) {
        match self.stream(peer) {
            Some(stream) if !stream.backlog.is_empty() && !stream.connecting => {
                stream.closing = true;
                self.untaken.note(peer);
            }
            Some(_) => self.remove(peer),
            None => {}
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
            if self.stream(peer).is_some_and(|stream| stream.share.released() && !stream.closing) {
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
        self.cut_untaken(clock);
        if self.has_arrivals() {
            self.take_arrivals(clock)?;
        }
        if let Some(now) = self.notice(clock, machine) {
            return Ok(Some(now));
        }
        if self.is_to_welcome() {
            return Ok(self.welcome(clock, machine));
        }
        while let Some(ready) = self.poller.next() {
            if let Some(now) = self.ready(ready, clock, machine)? {
                return Ok(Some(now));
            }
        }
        if self.has_arrived() {
            let seen = self.look(Some(Duration::ZERO), clock, machine)?;
            return Ok(seen.or_else(|| self.welcome(clock, machine)));
        }
        let Some(spins) = wait.polls_for() else { return self.look_once(clock, machine) };
        if !spins.is_zero() {
            let spin_until = (clock.now() + spins).min(until);
            loop {
                let seen = match self.solo() {
                    Some(peer) => self.spin_solo(peer, clock, machine),
                    None => self.look(Some(Duration::ZERO), clock, machine)?,
                };
                if seen.is_some() {
                    return Ok(seen);
                }
                if self.has_arrivals() {
                    self.take_arrivals(clock)?;
                    if let Some(now) = self.welcome(clock, machine) {
                        return Ok(Some(now));
                    }
                }
                self.heard = clock.now();
                if self.heard >= spin_until {
                    break;
                }
            }
            if spin_until == until {
                return Ok(None);
            }
        }
        let now = clock.now();
        if span_until(until, now).is_none_or(|span| span > LOOK_UP)
            && now >= self.unsettled_until
            && !self.wakeable
            && let Some(peer) = self.solo()
            && let Some(now) = self.block_solo(peer, clock, machine)
        {
            return Ok(Some(now));
        }
        self.look(span_until(until, clock.now()), clock, machine)
    }

    fn ends(&self, peer: Peer) -> Option<Ends> {
        let streams = if peer.is_accepted() { &self.accepted } else { &self.opened };
        let stream = streams.get((peer.0 & !Peer::FIRST_ACCEPTED) as usize)?.as_ref()?;
        Ends::of(stream.fd.as_fd(), hodo_machine::Transport::Stream)
    }
}

#[inline]
fn slot<'a>(opened: &'a mut Streamed, accepted: &'a mut Streamed, peer: Peer) -> Option<&'a mut Option<Box<Stream>>> {
    if peer.is_accepted() {
        accepted.get_mut((peer.0 - Peer::FIRST_ACCEPTED) as usize)
    } else {
        opened.get_mut(peer.0 as usize)
    }
}
