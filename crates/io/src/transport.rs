use crate::Clock;
use hodo_machine::{Address, Closed, Instant, Machine, Outbox, Peer, Wait};
use std::io;

/// Sockets of one kind, as an endpoint sees them.
pub trait Transport {
    /// Begins to reach `address`. The peer is announced to the machine by a later [`Transport::receive`].
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed>;

    /// Forgets a peer once its bytes are sent.
    fn close(&mut self, peer: Peer);

    /// Sends the gathered messages. What a stream does not take at once is kept in its backlog; the outbox is free after.
    fn send(&mut self, batch: &Batch, out: &Outbox) -> io::Result<()>;

    /// Tells the machine which peers it has to hold back from. Called after every [`Transport::send`].
    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) {
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
