use hodo_machine::{Input, Instant, Machine, Peer};

/// The bytes that one peer may be sent in a round, at least.
const SHARE_BYTES: usize = 1 << 20;
/// The messages that one peer may be sent in a round, at least: small ones cost by their number.
const SHARE_MESSAGES: usize = 1024;

/// The bytes and messages sent to one peer in a round, and the reason why its machine holds back from it.
#[derive(Debug, Default)]
pub(crate) struct Share {
    round: u32,
    bytes: usize,
    messages: usize,
    /// Whether the peer has had its share of this round.
    held: bool,
    /// Whether the backlog is over the limit.
    full: bool,
}

/// The rounds that share the sending of a machine between its peers.
///
/// A round ends when the machine has nothing more to send. A peer that has had its share of a round is announced as
/// blocked, and as drained when the round is over: a machine that always has more for one peer then gets to the others,
/// in whatever order it serves them.
#[derive(Debug, Default)]
pub(crate) struct Round {
    number: u32,
    held: Vec<Peer>,
    /// Peers that the machine has yet to be notified to hold back from.
    to_announce: Vec<Peer>,
}

/// The shares of peers without a backlog, by their number.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    opened: Vec<Share>,
    accepted: Vec<Share>,
}

impl Shares {
    /// Returns the share of a peer, which has to exist.
    #[inline]
    pub(crate) fn of(&mut self, peer: Peer) -> &mut Share {
        let (shares, index) = match peer.is_accepted() {
            true => (&mut self.accepted, peer.index()),
            false => (&mut self.opened, peer.0 as usize),
        };
        if index >= shares.len() {
            shares.resize_with(index + 1, Share::default);
        }
        &mut shares[index]
    }
}

impl Share {
    /// Records that the round is over. Returns whether the machine may go on.
    pub(crate) fn released(&mut self) -> bool {
        std::mem::take(&mut self.held) && !self.full
    }

    /// Records that the backlog is within its limit again. Returns whether the machine may go on.
    pub(crate) fn drained(&mut self) -> bool {
        std::mem::take(&mut self.full) && !self.held
    }
}

impl Round {
    /// Records the bytes and messages sent to a peer, and whether its backlog is over the limit.
    #[inline]
    pub(crate) fn sent(&mut self, peer: Peer, share: &mut Share, (bytes, messages): (usize, usize), is_full: bool) {
        if share.round != self.number {
            (share.round, share.bytes, share.messages) = (self.number, 0, 0);
        }
        share.bytes += bytes;
        share.messages += messages;
        let is_over = share.bytes >= SHARE_BYTES || share.messages >= SHARE_MESSAGES;
        if is_over || is_full {
            self.hold_back(peer, share, is_over, is_full);
        }
    }

    #[cold]
    fn hold_back(&mut self, peer: Peer, share: &mut Share, is_over: bool, is_full: bool) {
        if !share.held && !share.full {
            self.to_announce.push(peer);
        }
        if is_over && !share.held {
            share.held = true;
            self.held.push(peer);
        }
        share.full |= is_full;
    }

    /// Notifies the machine of the peers that it has to hold back from, and returns whether there are any.
    #[inline]
    pub(crate) fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        let any = !self.to_announce.is_empty();
        while let Some(peer) = self.to_announce.pop() {
            machine.handle(now, Input::Blocked(peer));
        }
        any
    }

    /// Returns whether peers wait for the end of the round.
    #[inline]
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Begins the next round, and notifies the machine of the peers that waited for it. `is_free` says of each whether it
    /// is still there and may be sent more, as [`Share::released`] does.
    pub(crate) fn release<M: Machine>(&mut self, now: Instant, machine: &mut M, mut is_free: impl FnMut(Peer) -> bool) {
        self.number = self.number.wrapping_add(1);
        while let Some(peer) = self.held.pop() {
            if is_free(peer) {
                machine.handle(now, Input::Drained(peer));
            }
        }
    }

    /// Forgets a peer that the machine has closed: nothing more is to be told of it.
    pub(crate) fn forget(&mut self, peer: Peer) {
        self.to_announce.retain(|blocked| *blocked != peer);
        self.held.retain(|held| *held != peer);
    }
}
