mod waiting;

use crate::datagram::{Datagrams, PORTS, Port, Source};
use crate::fairness::Round;
use crate::hunch::Hunch;
use crate::patience::Patience;
use crate::stream::{ARRIVALS, Streams};
use crate::transport::{Batch, Transport};
use crate::{Clock, Listener, Mailbox, SocketFacts, SocketSettings, TcpCounters, Waker};
use hodo_machine::{self as machine, Address, Closed, Instant, Machine, Outbox, Peer, Wait};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The time for which ready peers are received from before the machine is polled.
const RECEIVE_SPAN: Duration = Duration::from_micros(500);

/// The streams and datagrams of one endpoint, on one thread: those that the machine opens, connections to any number of
/// [`Listener`]s, and senders to any number of [`Port`]s.
///
/// Input on one side often leads to input on the other, as in a hub between clients over TCP and devices over UDP: if
/// there are both, polling looks first at the side that did not bring the last input. A single stream or datagram
/// socket is received from directly, without the poller.
pub struct Sockets {
    streams: Streams,
    datagrams: Datagrams,
    round: Round,
    /// The side that did not bring the last input.
    expected: Side,
    /// The bytes sent since the last sleep.
    sent: usize,
    /// Whether the clock was read since the last sleep.
    heard_since_sleep: bool,
    /// Whether a look before a sleep finds input: while no reply is pending, and while one is.
    looks: [Hunch; 2],
    /// How to wait after much was sent, and after little.
    patience: [Patience; 2],
    /// Whether a look at one side after input on the other finds input.
    both: Hunch,
    /// Whether other threads wake this one: then it sleeps in the poller only.
    is_woken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Streams,
    Datagrams,
}

impl Sockets {
    /// Creates a transport without any peer, listener or port.
    ///
    /// # Errors
    /// Returns the operating system's error if no descriptor is left.
    pub fn new(settings: SocketSettings) -> io::Result<Self> {
        Self::with(settings.clone(), settings)
    }

    /// Creates a transport with settings for streams, and others for datagrams.
    ///
    /// # Errors
    /// Returns the operating system's error if no descriptor is left.
    pub fn with(streams: SocketSettings, datagrams: SocketSettings) -> io::Result<Self> {
        let streams = Streams::new(streams)?;
        let datagrams = Datagrams::new(datagrams, &streams.poller)?;
        Ok(Sockets {
            streams,
            datagrams,
            round: Round::default(),
            expected: Side::Streams,
            sent: 0,
            heard_since_sleep: false,
            looks: [Hunch::new(), Hunch::new()],
            patience: [Patience::of_yielding(), Patience::new()],
            both: Hunch::new(),
            is_woken: false,
        })
    }

    /// Accepts the connections to this listener, too.
    ///
    /// # Errors
    /// Returns the operating system's error if it cannot watch one more descriptor.
    pub fn listen(&mut self, listener: Listener) -> io::Result<()> {
        self.streams.listen(listener)?;
        self.tell_apart();
        Ok(())
    }

    /// Accepts each sender to this port as a peer, too.
    ///
    /// # Errors
    /// Returns the operating system's error if it refuses the settings.
    pub fn bind(&mut self, port: Port) -> io::Result<()> {
        self.datagrams.bind(port)?;
        self.tell_apart();
        Ok(())
    }

    /// Returns a handle by which other threads end a wait for input.
    ///
    /// # Errors
    /// Returns the operating system's error if no descriptor is left.
    pub fn waker(&mut self) -> io::Result<Waker> {
        let mailbox = Arc::new(Mailbox::new()?);
        self.collect(Arc::clone(&mailbox))?;
        self.set_woken();
        Ok(Waker(mailbox))
    }

    /// Takes the connections that another thread leaves in this mailbox, too.
    pub(crate) fn collect(&mut self, mailbox: Arc<Mailbox>) -> io::Result<()> {
        self.streams.collect(mailbox)?;
        self.tell_apart();
        Ok(())
    }

    /// Makes the thread sleep in the poller only, because a mailbox wakes it.
    pub(crate) fn set_woken(&mut self) {
        self.is_woken = true;
    }

    /// Gives streams and datagrams numbers of their own, if peers of both kinds come by themselves.
    fn tell_apart(&mut self) {
        if self.streams.arrives() && self.datagrams.has_ports() {
            self.streams.numbering.be_even();
            self.datagrams.numbering.be_odd();
        }
    }

    /// Returns the kernel's report of the socket of some peer that the machine has opened.
    #[must_use]
    pub fn facts(&self) -> SocketFacts {
        self.streams.facts().unwrap_or_else(|| {
            let (local, remote) = self.datagrams.addresses();
            SocketFacts { local, remote, ..SocketFacts::default() }
        })
    }

    /// Returns the number of segments that TCP has retransmitted, as [`Sockets::tcp`] counts.
    #[must_use]
    pub fn retransmitted(&self) -> u64 {
        self.streams.retransmitted()
    }

    /// Returns the TCP counters of all present streams, and of those that the machine had opened and that are closed;
    /// `None` if none of them is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<TcpCounters> {
        self.streams.tcp()
    }

    /// Returns the bytes sent that the kernel has not taken yet, on all present streams.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.streams.unwritten()
    }

    /// Ends what goes out over every stream that the machine has opened, once [`unwritten`](Self::unwritten) is 0. The far end reads
    /// everything that was sent and then the end; it may go on sending, and its own end closes the stream.
    pub fn end_sending(&self) {
        self.streams.end_sending();
    }

    /// Returns the number of datagrams that the kernel would not take in time.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.datagrams.unsent()
    }

    /// Returns the number of datagrams from senders beyond the limit on peers.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.datagrams.refused()
    }
}

impl Transport for Sockets {
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed> {
        self.close(peer);
        match (address, address.transport()) {
            (Address::UdpFrom(port, _), _) => self.datagrams.open(peer, address, Some(*port)),
            (_, Some(machine::Transport::Datagram)) => self.datagrams.open(peer, address, None),
            (_, Some(machine::Transport::Stream)) => self.streams.open(peer, address),
            (_, None) => Err(Closed::Unreachable),
        }
    }

    fn close(&mut self, peer: Peer) {
        self.round.forget(peer);
        if self.streams.has(peer) {
            self.streams.close(peer);
        } else {
            self.datagrams.close(peer);
        }
    }

    #[inline]
    fn send(&mut self, batch: &Batch, out: &mut Outbox) -> io::Result<()> {
        self.sent += out.len().max(1);
        for run in batch.runs() {
            if self.streams.has(run.peer) {
                self.streams.send_run(&run, out, &mut self.round);
            } else {
                self.datagrams.send_run(&run, out, &mut self.round);
            }
        }
        Ok(())
    }

    #[inline]
    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        self.round.announce(now, machine)
    }

    #[inline]
    fn has_held(&self) -> bool {
        self.round.has_held()
    }

    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        let Sockets { streams, datagrams, round, .. } = self;
        round.release(
            now,
            machine,
            |peer| {
                if streams.has(peer) { streams.released(peer) } else { datagrams.released(peer) }
            },
        );
    }

    #[inline]
    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.wait(wait, until, clock, machine)
    }

    /// Closes the listeners. Connected peers go on, and so do ports, through which datagrams of present peers come.
    fn stop_listening(&mut self) {
        self.streams.stop_listening();
    }

    fn backlog(&self) -> usize {
        self.streams.backlog()
    }
}
