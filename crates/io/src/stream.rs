mod accepting;
mod gathering;
mod pausing;
mod portion;
mod solo;

use crate::backlog::{Backlog, SLICES, write_now};
use crate::fairness::{Round, Share};
use crate::listener::{Accepted, Arrivals};
use crate::notice::{Notice, why};
use crate::numbering::Numbering;
use crate::poller::{Poller, Ready};
use crate::transport::Run;
use crate::untaken::Untaken;
use crate::{Clock, SocketFacts, SocketSettings, TcpCounters, connect, sys};
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Peer};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The timeout of a blocking receive, after which the other sources are checked; a nearer timer costs a sleep 1 us on a
/// virtual machine.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(40);
/// The time after a connection for which the next one is waited for too: a client that connects anew for each operation
/// would otherwise wait for [`LOOK_UP`] each time.
const SETTLED: Duration = Duration::from_millis(100);
/// The first of the poller's tokens that stand for listeners and mailboxes.
pub(crate) const ARRIVALS: u64 = 1 << 32;

/// TCP and Unix streams: connections opened by the machine, and connections accepted for it by a listener.
pub struct Streams {
    settings: SocketSettings,
    opened: Streamed,
    accepted: Streamed,
    pub(crate) count: usize,
    pub(crate) poller: Poller,
    buffer: Box<[u8]>,
    /// Whether the last receive filled the buffer, so that there may be more.
    filled: bool,
    notices: VecDeque<Notice>,
    /// The bytes that were copied for all backlogs.
    copied: usize,
    untaken: Untaken,
    /// Streams that the poller does not watch yet. A watched stream pays for it with every packet, on the sender's
    /// processor, so that a stream that is read directly is not watched.
    unwatched: Vec<Peer>,
    /// Streams that the machine had no room for when it was last asked.
    paused: Vec<Peer>,
    arrivals: Vec<Arrivals>,
    /// Whether a listener is left alone for now, so that the poller does not tell when to look at it again.
    rests: bool,
    pub(crate) numbering: Numbering,
    /// The number of streams that the machine has opened and sent something since it last received something from them.
    pub(crate) owed: usize,
    /// Connections that the machine has not been notified of, and whether they came through a mailbox.
    arrived: VecDeque<(Accepted, bool)>,
    /// Whether the machine was notified of a connection the last time.
    welcomed: bool,
    /// The time of the last receive, or of the last reading of the clock without one.
    pub(crate) heard: Instant,
    /// The time until which more connections are expected.
    pub(crate) unsettled_until: Instant,
    /// The only peer, while it is busy and is read directly, without the poller.
    solo: Option<Peer>,
    /// The number of direct receives from the only peer since the last call of the poller.
    pub(crate) direct: u32,
    gathering: gathering::Gathering,
    portion: portion::Portion,
    /// The bytes received since somebody set it to 0.
    pub(crate) taken: usize,
    /// The counters of the TCP streams that the machine had opened and that are closed.
    closed: Option<TcpCounters>,
}

struct Stream {
    fd: OwnedFd,
    address: Address,
    connecting: bool,
    closing: bool,
    /// Whether nothing is received from it, because the machine has no room.
    paused: bool,
    watched: bool,
    waiting: bool,
    /// Whether the connection came through a mailbox.
    mailed: bool,
    owes: bool,
    share: Share,
    timed: bool,
    backlog: Backlog,
}

impl Stream {
    /// Returns the TCP counters of a stream that is connected.
    fn tcp(&self) -> Option<TcpCounters> {
        let is_tcp = matches!(self.address, Address::Tcp(_)) && !self.connecting;
        if is_tcp { TcpCounters::of(self.fd.as_fd()) } else { None }
    }

    /// Writes the backlog as far as the stream takes it.
    fn write_backlog(&mut self) -> io::Result<()> {
        while !self.backlog.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.backlog.slices(&mut slices);
            let wanted: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            match sys::send_vectored(self.fd.as_fd(), &slices[..count], libc::MSG_DONTWAIT) {
                Ok(sent) => {
                    self.backlog.sent(sent);
                    if sent < wanted {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Streams by their peer's number.
type Streamed = Vec<Option<Box<Stream>>>;

impl Streams {
    /// Creates a transport without any stream.
    pub(crate) fn new(settings: SocketSettings) -> io::Result<Self> {
        let poller = Poller::new()?;
        let buffer = vec![0; settings.at_once.max(1)].into_boxed_slice();
        let most = settings.together.max(buffer.len());
        Ok(Streams {
            settings,
            opened: Vec::new(),
            accepted: Vec::new(),
            count: 0,
            poller,
            buffer,
            filled: false,
            notices: VecDeque::new(),
            copied: 0,
            untaken: Untaken::default(),
            unwatched: Vec::new(),
            paused: Vec::new(),
            arrivals: Vec::new(),
            rests: false,
            numbering: Numbering::default(),
            owed: 0,
            arrived: VecDeque::new(),
            welcomed: false,
            heard: Instant::ZERO,
            unsettled_until: Instant::ZERO,
            solo: None,
            direct: 0,
            gathering: gathering::Gathering::default(),
            portion: portion::Portion::new(most),
            taken: 0,
            closed: None,
        })
    }

    /// Returns whether this peer is a stream.
    #[inline]
    pub(crate) fn has(&self, peer: Peer) -> bool {
        let streams = if peer.is_accepted() { &self.accepted } else { &self.opened };
        streams.get(peer.index()).is_some_and(Option::is_some)
    }

    /// Returns the kernel's report of some stream that the machine has opened; `None` if there is none.
    pub(crate) fn facts(&self) -> Option<SocketFacts> {
        let stream = self.opened.iter().flatten().next()?;
        let (fd, is_tcp) = (stream.fd.as_fd(), matches!(stream.address, Address::Tcp(_)));
        let ends = connect::ends(fd, stream.address.clone());
        let mss = if is_tcp { sys::option(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG).ok() } else { None };
        Some(SocketFacts {
            congestion: sys::congestion(fd).ok(),
            mss: mss.and_then(|mss| u32::try_from(mss).ok()),
            local: ends.local.ip(),
            remote: ends.remote.ip(),
        })
    }

    /// Returns the number of segments that TCP has retransmitted, as [`Streams::tcp`] counts.
    #[must_use]
    pub fn retransmitted(&self) -> u64 {
        self.tcp().map_or(0, |counters| counters.retransmitted)
    }

    /// Returns the bytes sent that the kernel has not taken yet, on all present streams.
    #[must_use]
    pub(crate) fn unwritten(&self) -> usize {
        self.opened.iter().chain(&self.accepted).flatten().map(|stream| stream.backlog.len()).sum()
    }

    /// Returns the TCP counters of all present streams, and of those that the machine had opened and that are closed;
    /// `None` if none of them is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<TcpCounters> {
        let streams = self.opened.iter().chain(&self.accepted).flatten();
        streams.filter_map(|stream| stream.tcp()).chain(self.closed).reduce(TcpCounters::and)
    }

    #[inline]
    fn stream(&mut self, peer: Peer) -> Option<&mut Stream> {
        slot(&mut self.opened, &mut self.accepted, peer)?.as_deref_mut()
    }

    fn remove(&mut self, peer: Peer) {
        let Some(stream) = slot(&mut self.opened, &mut self.accepted, peer).and_then(Option::take) else { return };
        if !peer.is_accepted()
            && let Some(counters) = stream.tcp()
        {
            self.closed = Some(counters.of_closed().and(self.closed.unwrap_or_default()));
        }
        self.count -= 1;
        self.copied -= stream.backlog.copied();
        self.owed -= usize::from(stream.owes);
        self.solo = None;
        // Another peer may get the number before these notices are passed on.
        self.notices.retain(|notice| notice.about() != peer);
        self.untaken.forget(peer);
        if stream.paused {
            self.paused.retain(|paused| *paused != peer);
        }
        self.gather_not(peer);
        if stream.watched {
            self.poller.remove(stream.fd.as_fd(), u64::from(peer.0));
        } else {
            self.unwatched.retain(|unwatched| *unwatched != peer);
        }
        if peer.is_accepted() {
            self.numbering.release(peer);
        }
        self.arrivals.iter_mut().for_each(|arrivals| arrivals.left(stream.mailed));
    }

    fn insert(&mut self, peer: Peer, fd: OwnedFd, address: Address, connecting: bool) {
        let stream = Stream {
            fd,
            address,
            connecting,
            closing: false,
            paused: false,
            watched: false,
            waiting: false,
            mailed: false,
            owes: false,
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

    /// Makes the poller watch every stream.
    pub(crate) fn watch_all(&mut self) -> io::Result<()> {
        while let Some(peer) = self.unwatched.pop() {
            if let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer)
                && !stream.watched
                && !stream.paused
            {
                stream.waiting = stream.connecting || !stream.backlog.is_empty();
                self.poller.add(stream.fd.as_fd(), u64::from(peer.0), stream.waiting)?;
                stream.watched = true;
            }
        }
        Ok(())
    }

    /// Removes a stream from the poller.
    fn unwatch(&mut self, peer: Peer) {
        if let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer)
            && std::mem::take(&mut stream.watched)
        {
            self.poller.remove(stream.fd.as_fd(), u64::from(peer.0));
            self.unwatched.push(peer);
        }
    }

    /// Cuts closed streams that do not take the bytes that were sent to them before.
    #[inline]
    pub(crate) fn cut_untaken(&mut self, clock: &Clock) {
        while !self.untaken.is_empty()
            && let Some(peer) = self.untaken.overdue(clock.now(), self.settings.close_within)
        {
            if let Some(stream) = self.stream(peer) {
                // The bytes in the kernel would otherwise outlive it.
                let _ = sys::set_cut_on_close(stream.fd.as_fd());
            }
            self.remove(peer);
        }
    }

    /// Writes the backlog of a peer. Returns the reason if the stream has ended.
    fn drain(&mut self, peer: Peer) -> Result<(), Closed> {
        let Some(stream) = self.stream(peer) else { return Ok(()) };
        let before = stream.backlog.copied();
        let outcome = stream.write_backlog();
        let after = stream.backlog.copied();
        self.copied = self.copied + after - before;
        outcome.map_err(|error| why(&error))?;
        self.watch(peer);
        Ok(())
    }

    /// Watches for room exactly while bytes are waiting for it.
    fn watch(&mut self, peer: Peer) {
        let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer) else { return };
        let waiting = stream.connecting || !stream.backlog.is_empty();
        if stream.paused {
            return self.watch_paused(peer);
        }
        if !stream.watched || stream.waiting == waiting {
            return;
        }
        stream.waiting = waiting;
        // The descriptor was added with the stream, so that changing it can only fail if the stream is dead; reading
        // then reports it.
        let _ = self.poller.change(stream.fd.as_fd(), u64::from(peer.0), waiting);
    }

    pub(crate) fn send_run(&mut self, run: &Run<'_>, out: &Outbox, round: &mut Round) {
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
        if !peer.is_accepted() && !std::mem::replace(&mut stream.owes, true) {
            self.owed += 1;
        }
        let (was_empty, before) = (stream.backlog.is_empty(), stream.backlog.copied());
        if sent < length {
            stream.backlog.keep(out, pieces, sent);
        }
        self.copied += stream.backlog.copied() - before;
        let is_full = stream.backlog.len() > bound;
        round.sent(peer, &mut stream.share, (length, run.messages.len()), is_full);
        if was_empty && sent < length {
            self.solo = None;
            self.watch(peer);
        }
        if self.copied > self.settings.backlogs_max {
            self.cut_largest();
        }
    }

    /// Closes the peer for which the most bytes are kept, because there are too many of all.
    #[cold]
    fn cut_largest(&mut self) {
        let opened = (0..).map(Peer).zip(&self.opened);
        let all = opened.chain((0..).map(Peer::accepted).zip(&self.accepted));
        let copied = all.filter_map(|(peer, stream)| Some((stream.as_ref()?.backlog.copied(), peer)));
        let Some((_, peer)) = copied.max() else { return };
        let Some(stream) = self.stream(peer) else { return };
        let backlog = std::mem::take(&mut stream.backlog);
        // Nothing may follow upon what is dropped, not even the end in order.
        let _ = sys::set_cut_on_close(stream.fd.as_fd());
        self.copied -= backlog.copied();
        self.notices.push_back(Notice::Closed(peer, Closed::OverBound));
    }

    /// Handles one event of the poller.
    pub(crate) fn ready<M: Machine>(&mut self, ready: Ready, clock: &Clock, machine: &mut M) -> Option<Instant> {
        let peer = Peer(ready.token as u32);
        let written = if ready.writable { self.writable(peer, clock, machine) } else { None };
        if written.is_some() || !ready.readable {
            return written;
        }
        self.read(peer, libc::MSG_DONTWAIT, clock, machine)
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
            self.watch(peer);
            return self.tell_opened(peer, clock, machine);
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

    /// Notifies the machine of a connection, and returns when.
    fn tell_opened<M: Machine>(&mut self, peer: Peer, clock: &Clock, machine: &mut M) -> Option<Instant> {
        let stream = self.stream(peer)?;
        let ends = connect::ends(stream.fd.as_fd(), stream.address.clone());
        let now = clock.now();
        machine.handle(now, Input::Opened(peer, &ends));
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

    /// Receives once from one peer, straight into the machine's own place if it offers one. Returns when the input
    /// came.
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

    /// Receives as [`Streams::read`] does, for input whose time is known already.
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
        if stream.connecting || stream.paused {
            return None;
        }
        if !machine.has_room(peer) {
            self.pause(peer);
            return None;
        }
        if came.is_none() {
            self.portion.adapt(clock);
        }
        let length = self.buffer.len().min(self.portion.bytes());
        let buffer = &mut self.buffer[..length];
        let (outcome, room) = match machine.landing(peer) {
            // What comes behind it is received by the same call.
            Some(place) => (sys::receive_both(stream.fd.as_fd(), place, buffer, flags), Some(place.len())),
            None => (sys::receive(stream.fd.as_fd(), buffer, flags), None),
        };
        self.filled = matches!(outcome, Ok(count) if count == room.unwrap_or(0) + length);
        match outcome {
            Ok(0) => Some(self.closed(peer, Closed::Finished, clock, machine)),
            Ok(_) if stream.closing => None,
            Ok(count) => {
                let now = came.unwrap_or_else(|| clock.now());
                self.heard = now;
                self.portion.came(count, self.filled, now);
                self.taken += count;
                self.owed -= usize::from(std::mem::take(&mut stream.owes));
                let landed = room.map_or(0, |room| room.min(count));
                self.landed(peer, landed, room.map_or(0, |room| room - landed));
                if landed > 0 {
                    machine.handle(now, Input::Landed(peer, landed));
                }
                if count > landed {
                    machine.handle(now, Input::Received(peer, &self.buffer[..count - landed]));
                }
                Some(now)
            }
            Err(error) if sys::is_vain(&error) => None,
            Err(error) => Some(self.closed(peer, why(&error), clock, machine)),
        }
    }

    /// Measures the work that the last receive gave, which is done.
    #[inline]
    pub(crate) fn end_work(&mut self, clock: &Clock) {
        self.portion.adapt(clock);
    }

    pub(crate) fn notice<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> Option<Instant> {
        loop {
            match self.notices.pop_front()? {
                Notice::Opened(peer) => return self.tell_opened(peer, clock, machine),
                Notice::Closed(peer, why) if self.stream(peer).is_some() => {
                    return Some(self.closed(peer, why, clock, machine));
                }
                Notice::Closed(..) => {}
            }
        }
    }
}

impl Streams {
    pub(crate) fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed> {
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
            self.notices.push_back(Notice::Opened(peer));
        }
        Ok(())
    }

    pub(crate) fn close(&mut self, peer: Peer) {
        match self.stream(peer) {
            Some(stream) if !stream.backlog.is_empty() && !stream.connecting => {
                stream.closing = true;
                self.untaken.note(peer);
            }
            Some(_) => self.remove(peer),
            None => {}
        }
    }

    /// Ends what goes out over every stream that the machine has opened and that has no backlog.
    pub(crate) fn end_sending(&self) {
        let opened = self.opened.iter().flatten();
        opened
            .filter(|stream| !stream.connecting && stream.backlog.is_empty())
            .for_each(|stream| sys::end_sending(stream.fd.as_fd()));
    }

    /// Records that the round is over. Returns whether the machine may go on with a peer that was held back in it.
    pub(crate) fn released(&mut self, peer: Peer) -> bool {
        self.stream(peer).is_some_and(|stream| stream.share.released() && !stream.closing)
    }
}

#[inline]
fn slot<'a>(opened: &'a mut Streamed, accepted: &'a mut Streamed, peer: Peer) -> Option<&'a mut Option<Box<Stream>>> {
    if peer.is_accepted() { accepted.get_mut(peer.index()) } else { opened.get_mut(peer.0 as usize) }
}
