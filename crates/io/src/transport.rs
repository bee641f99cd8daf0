use crate::Clock;
use hodo_machine::{Address, Closed, Instant, Machine, Outbox, Peer, Wait};
use std::io;
use std::ops::Range;

/// Sockets of one kind, as an endpoint sees them.
pub trait Transport {
    /// Begins to open a peer at `address`. A later [`Transport::receive`] announces the peer to the machine.
    ///
    /// # Errors
    /// Returns the reason if the peer cannot be opened: the limit on peers is reached, or the address cannot be
    /// reached.
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed>;

    /// Closes a peer once its bytes are sent.
    fn close(&mut self, peer: Peer);

    /// Sends the gathered messages. Bytes that a stream does not take at once are kept in its backlog; the outbox is
    /// free afterwards. The bytes of datagrams that are numbered may be changed, see [`Port::numbered`](crate::Port::numbered).
    ///
    /// # Errors
    /// Returns the operating system's error if the transport as a whole cannot send; the failure of a single peer is an
    /// input of the machine instead.
    fn send(&mut self, batch: &Batch, out: &mut Outbox) -> io::Result<()>;

    /// Notifies the machine of the peers that it has to hold back from, and returns whether there are any. It is called
    /// after every [`Transport::send`].
    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        let _ = (now, machine);
        false
    }

    /// Returns whether peers have had their share of a round, and wait for [`Transport::release`].
    fn has_held(&self) -> bool {
        false
    }

    /// Notifies the machine that it may go on with the peers that have had their share, after it had nothing more for
    /// the others.
    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        let _ = (now, machine);
    }

    /// Waits for input, at most to `until`, and passes it to the machine. Returns when it came.
    ///
    /// # Errors
    /// Returns the operating system's error if the transport as a whole cannot receive; the failure of a single peer is
    /// an input of the machine instead.
    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>>;

    /// Stops accepting connections.
    fn stop_listening(&mut self) {}

    /// Returns the bytes that wait in user space for all peers together.
    fn backlog(&self) -> usize {
        0
    }
}

/// The messages in an outbox that are to go out together.
#[derive(Debug, Default)]
pub struct Batch {
    /// The messages in order.
    pub messages: Vec<Message>,
}

/// One message of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// The receiver.
    pub peer: Peer,
    /// The end of the message's pieces, as an index of the outbox's pieces; they begin where the message before it
    /// ends.
    pub pieces_end: usize,
    /// The length in bytes.
    pub length: usize,
}

/// Consecutive messages of a batch to one peer, which go out together.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The receiver.
    pub peer: Peer,
    /// The messages, at least one.
    pub messages: &'a [Message],
    /// The range of the messages' pieces in the outbox.
    pub pieces: Range<usize>,
}

impl Batch {
    /// Returns the runs, in order.
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
