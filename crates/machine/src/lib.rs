//! Protocols are machines: bytes and time go in; bytes, events and deadlines come out.
//!
//! A [`Machine`] is one side of one protocol. It owns no socket, no thread and no clock, so the same code runs over
//! real sockets, over a simulated network in virtual time, and under a fuzzer. Whoever runs it is a [`Driver`].
#![no_std]
extern crate alloc;

mod address;
mod apart;
mod back_off;
mod codes;
mod cursor;
mod difference;
mod driver;
mod ends;
mod frames;
mod order;
mod outbox;
mod peers;
mod proofs;
mod random;
mod ranges;
mod slab;
mod spans;
mod stages;
mod time;
mod timers;
mod transport;

use thiserror::Error;

pub use address::{Address, Peer};
pub use apart::Apart;
pub use back_off::BackOff;
pub use bytes::Bytes;
pub use cursor::{Cursor, Truncated};
pub use difference::Difference;
pub use driver::{Driver, DriverError, Wait};
pub use ends::Ends;
pub use frames::{Frames, Piece as FramePiece};
pub use order::Order;
pub use outbox::{Outbox, Piece};
pub use peers::Peers;
pub use proofs::Proofs;
pub use random::{Random, between};
pub use ranges::Ranges;
pub use slab::Slab;
pub use spans::Spans;
pub use stages::{Mark, Moment, Sampling, Stamp, Stamps};
pub use time::{CLOCK_GRID, Instant};
pub use timers::Timers;
pub use transport::Transport;

/// One side of one protocol. Bytes and time in; bytes, events and deadlines out.
pub trait Machine {
    /// A command of the application. It carries the application's tag.
    type Command;
    /// An event for the application. It carries the tag of the command that it answers.
    type Event;

    /// Takes in one thing that happened. Never panics, whatever bytes a peer sends.
    fn handle(&mut self, now: Instant, input: Input<'_, Self::Command>);

    /// Says the next thing to be done. The driver calls this until it answers [`Output::Idle`].
    ///
    /// The bytes of an [`Output::Send`] have been put into `out` by this call: one message on a datagram transport,
    /// the next bytes on a stream.
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Self::Event>;

    /// Returns where the next bytes from `peer` may be received directly, while a large payload is outstanding.
    ///
    /// A driver that uses it reports [`Input::Landed`] instead of [`Input::Received`]. Streams only.
    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        let _ = peer;
        None
    }

    /// Returns whether there is room for more bytes of this stream. Without it they stay with the kernel, whose flow control holds
    /// the far end back, and the machine is asked again after each turn.
    ///
    /// What a driver has received by then still comes, up to one buffer. Of a stream that ends meanwhile, the machine learns
    /// once there is room. Streams only.
    #[inline]
    fn has_room(&self, peer: Peer) -> bool {
        let _ = peer;
        true
    }

    /// Returns whether the sender of this datagram becomes a peer, which then receives it. Asked about each datagram from an
    /// address that is no peer's.
    ///
    /// Otherwise nothing is kept of the sender, and whatever was put into `out` goes back to it, unless that is more
    /// than came: a machine that answers more than it receives admits only senders with a [proof](Proofs).
    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        let _ = (now, ends, datagram, out);
        true
    }

    /// Tells when a stage was over that this machine has marked. Told of each mark once, in the order of the marks, and
    /// before the next input.
    fn stamped(&mut self, stamp: Stamp) {
        let _ = stamp;
    }
}

/// An input of a machine: something that happened.
#[derive(Debug)]
pub enum Input<'a, C> {
    /// A peer is there: one that this machine asked for, or one that connected to it. It is not held back, even if the peer
    /// that had the number before was.
    Opened(Peer, &'a Ends),
    /// Bytes came: one datagram, or the next bytes of a stream.
    Received(Peer, &'a [u8]),
    /// This many bytes of a stream were written into the slice that [`Machine::landing`] offered.
    Landed(Peer, usize),
    /// A peer is gone, or could not be reached. Not told after [`Output::Close`].
    Closed(Peer, Closed),
    /// Hold back from this peer until [`Input::Drained`]: more than the driver's bound of bytes is unsent to it, or it has
    /// had its share and the others come first.
    Blocked(Peer),
    /// This peer may be sent more: its unsent bytes have gone out, and the others had their turn.
    Drained(Peer),
    /// The application asks for something.
    Command(C),
    /// The deadline of the last [`Output::Idle`] has passed. Told once for each, also when other inputs came.
    Elapsed,
}

impl<'a, C> Input<'a, C> {
    /// Returns the input for a machine with other commands; `None` for a command.
    pub fn without_command<D>(&self) -> Option<Input<'a, D>> {
        Some(match *self {
            Input::Opened(peer, ends) => Input::Opened(peer, ends),
            Input::Received(peer, bytes) => Input::Received(peer, bytes),
            Input::Landed(peer, count) => Input::Landed(peer, count),
            Input::Closed(peer, why) => Input::Closed(peer, why),
            Input::Blocked(peer) => Input::Blocked(peer),
            Input::Drained(peer) => Input::Drained(peer),
            Input::Elapsed => Input::Elapsed,
            Input::Command(_) => return None,
        })
    }
}

/// An output of a machine: something to be done.
#[derive(Debug)]
pub enum Output<E> {
    /// The outbox holds bytes for this peer.
    Send(Peer),
    /// Tell the application.
    Event(E),
    /// Reach this address; the machine has chosen the peer's number, below [`Peer::FIRST_ACCEPTED`].
    Open(Peer, Address),
    /// Forget this peer once its bytes are sent. Nothing more is told of it.
    Close(Peer),
    /// Nothing to do before this instant, or before the next input.
    Idle(Option<Instant>),
}

/// Why a peer is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Closed {
    /// The peer ended the stream in order.
    #[error("closed by the far end")]
    Finished,
    /// The stream was cut.
    #[error("connection reset by the far end")]
    Reset,
    /// Nothing listens at that address.
    #[error("connection refused: nothing listens there")]
    Refused,
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The address cannot be reached from here, or is not one for this transport.
    #[error("address cannot be reached from here")]
    Unreachable,
    /// The driver's bound on peers or on unsent bytes was passed.
    #[error("over the configured bound of peers or unsent bytes")]
    OverBound,
}
