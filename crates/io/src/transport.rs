use crate::{Clock, sys};
use hodo_machine::{Address, Closed, Instant, Machine, Outbox, Peer, Wait};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::BorrowedFd;

/// Sockets of one kind, as an endpoint sees them.
pub trait Transport {
    /// Begins to reach `address`. The peer is announced to the machine by a later [`Transport::receive`].
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed>;

    /// Forgets a peer once its bytes are sent.
    fn close(&mut self, peer: Peer);

    /// Sends the gathered messages. What a stream does not take at once is kept in its backlog; the outbox is free after.
    fn send(&mut self, batch: &Batch, out: &Outbox) -> io::Result<()>;

    /// Tells the machine which peers it has to hold back from; answers whether there are any. Called after every
    /// [`Transport::send`].
    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        let _ = (now, machine);
        false
    }

    /// Whether peers have had their share of what is sent, and wait for [`Transport::release`].
    fn has_held(&self) -> bool {
        false
    }

    /// Tells the machine that it may go on with the peers that have had their share: it has nothing more for the others.
    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        let _ = (now, machine);
    }

    /// Waits for input, at most to `until`, and hands what is there to the machine. Answers when it came.
    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>>;

    /// Lets nobody connect from now on.
    fn stop_listening(&mut self) {}

    /// Bytes that wait in user space for all peers together.
    fn backlog(&self) -> usize {
        0
    }

    /// Between which addresses a peer's bytes go, where those are of IP: for a trace.
    fn ends(&self, peer: Peer) -> Option<Ends> {
        let _ = peer;
        None
    }
}

/// The two ends of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Here.
    pub local: SocketAddr,
    /// There.
    pub remote: SocketAddr,
    /// TCP, or UDP.
    pub transport: hodo_machine::Transport,
}

impl Ends {
    /// Those of a connected socket of IP.
    pub(crate) fn of(fd: BorrowedFd<'_>, transport: hodo_machine::Transport) -> Option<Self> {
        let local = sys::local_address(fd).ok()?.to_ip()?;
        Some(Ends { local, remote: sys::remote_address(fd).ok()?.to_ip()?, transport })
    }
}

/// The messages in an outbox that are to go out together.
#[derive(Debug, Default)]
pub struct Batch {
    /// In order.
    pub messages: Vec<Message>,
}

/// One message of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// To whom.
    pub peer: Peer,
    /// Its pieces end before this index of the outbox's pieces; they begin where the message before it ends.
    pub pieces_end: usize,
    /// Its length in bytes.
    pub length: usize,
}

/// The messages to one peer that stand together in a batch: they go out together.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// To whom.
    pub peer: Peer,
    /// At least one.
    pub messages: &'a [Message],
    /// Their pieces in the outbox.
    pub pieces: Range<usize>,
}

impl Batch {
    /// The runs, in order.
    #[inline]
    pub fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let (mut start, mut messages) = (0, self.messages.as_slice());
        std::iter::from_fn(move || {
            let peer = messages.first()?.peer;
            let (run, rest) = messages.split_at(messages.iter().take_while(|message| message.peer == peer).count());
            let pieces = start..run.last()?.pieces_end;
            (start, messages) = (pieces.end, rest);
            Some(Run { peer, messages: run, pieces })
        })
    }
}
