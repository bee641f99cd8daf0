mod waiting;

use crate::datagram::{Datagrams, PORTS, Port, Source};
use crate::hunch::Hunch;
use crate::numbering::Numbering;
use crate::stream::{ARRIVALS, Streams};
use crate::transport::{Batch, Ends, Transport};
use crate::{Clock, Listener, Mailbox, SocketSettings, TcpCounters};
use hodo_machine::{self as machine, Address, Closed, Instant, Machine, Outbox, Peer, Wait};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time for which peers that are ready are received from before the machine is asked what to send.
const RECEIVE_SPAN: Duration = Duration::from_micros(500);

/// Streams and datagrams at one endpoint, on one thread: those that the machine opens, connections to any number of
/// [`Listener`]s, and whoever sends to any number of [`Port`]s.
///
/// What comes on one side is often answered on the other, as in a hub between clients over TCP and devices over UDP: where
/// there are both, polling looks first at the side that did not bring the last input. A single stream or datagram socket is
/// received from directly, without the poller.
pub struct Sockets {
    streams: Streams,
    datagrams: Datagrams,
    /// The side that did not bring the last input.
    expected: Side,
    /// Bytes sent since the last sleep.
    sent: usize,
    /// Whether the time was asked for since the last sleep.
    heard_since_sleep: bool,
    /// Whether something is there at a look before a sleep: where no answer is owed, and where one is.
    looks: [Hunch; 2],
    /// Whether it is when others were let run once, and for a while.
    hunches: [Hunch; 2],
    /// Others wake this thread: it sleeps in the poller only.
    is_woken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Streams,
    Datagrams,
}

impl Sockets {
    /// Without any peer, and without anywhere to come from.
    ///
    /// # Errors
    /// The operating system's, where it has no descriptor left.
    pub fn new(settings: SocketSettings) -> io::Result<Self> {
        Self::with(settings.clone(), settings)
    }

    /// With settings for streams, and others for datagrams.
    ///
    /// # Errors
    /// The operating system's, where it has no descriptor left.
    pub fn with(streams: SocketSettings, datagrams: SocketSettings) -> io::Result<Self> {
        let streams = Streams::new(streams)?;
        let datagrams = Datagrams::new(datagrams, &streams.poller)?;
        Ok(Sockets {
            streams,
            datagrams,
            expected: Side::Streams,
            sent: 0,
            heard_since_sleep: false,
            looks: [Hunch::new(), Hunch::new()],
            hunches: [Hunch::new(), Hunch::new()],
            is_woken: false,
        })
    }

    /// Accepts the connections to this listener, too.
    ///
    /// # Errors
    /// The operating system's, where it cannot watch one more.
    pub fn listen(&mut self, listener: Listener) -> io::Result<()> {
        self.streams.listen(listener)?;
        self.tell_apart();
        Ok(())
    }

    /// Takes whoever sends to this port as a peer, too.
    ///
    /// # Errors
    /// The operating system's, where it refuses the settings.
    pub fn bind(&mut self, port: Port) -> io::Result<()> {
        self.datagrams.bind(port)?;
        self.tell_apart();
        Ok(())
    }

    /// Takes the connections that another thread leaves in this mailbox, too.
    pub(crate) fn collect(&mut self, mailbox: Arc<Mailbox>) -> io::Result<()> {
        self.streams.collect(mailbox)?;
        self.tell_apart();
        Ok(())
    }

    /// Sleeps in the poller only: a mailbox wakes this thread.
    pub(crate) fn set_woken(&mut self) {
        self.is_woken = true;
    }

    /// Where both kinds come by themselves, each has numbers of its own.
    fn tell_apart(&mut self) {
        if self.streams.arrives() && self.datagrams.has_ports() {
            self.streams.set_numbering(Numbering::EVEN);
            self.datagrams.set_numbering(Numbering::ODD);
        }
    }

    /// The congestion control, and the two addresses, of some peer that the machine has opened.
    #[must_use]
    pub fn facts(&self) -> (Option<String>, Option<SocketAddr>, Option<SocketAddr>) {
        match self.streams.facts() {
            (None, None, None) => {
                let (local, remote) = self.datagrams.addresses();
                (None, local, remote)
            }
            facts => facts,
        }
    }

    /// Segments that TCP has sent again, on all streams that there are now.
    #[must_use]
    pub fn retransmitted(&self) -> u64 {
        self.streams.retransmitted()
    }

    /// Returns what TCP counts of all streams that there are now; `None` if none of them is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<TcpCounters> {
        self.streams.tcp()
    }

    /// Datagrams that the kernel would not take in time.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.datagrams.unsent()
    }

    /// Datagrams from senders beyond the bound on peers.
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
        if self.streams.has(peer) {
            self.streams.close(peer);
        } else {
            self.datagrams.close(peer);
        }
    }

    #[inline]
    fn send(&mut self, batch: &Batch, out: &Outbox) -> io::Result<()> {
        self.sent += out.len().max(1);
        for run in batch.runs() {
            if self.streams.has(run.peer) {
                self.streams.send_run(&run, out);
            } else {
                self.datagrams.send_run(&run, out);
            }
        }
        Ok(())
    }

    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        let any = self.streams.announce(now, machine);
        self.datagrams.announce(now, machine) || any
    }

    #[inline]
    fn has_held(&self) -> bool {
        self.streams.has_held() || self.datagrams.has_held()
    }

    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        self.streams.release(now, machine);
        self.datagrams.release(now, machine);
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

    /// Those who are there go on, and so do ports, through which they come.
    fn stop_listening(&mut self) {
        self.streams.stop_listening();
    }

    fn backlog(&self) -> usize {
        self.streams.backlog()
    }

    fn ends(&self, peer: Peer) -> Option<Ends> {
        if self.streams.has(peer) { self.streams.ends(peer) } else { self.datagrams.ends(peer) }
    }
}
