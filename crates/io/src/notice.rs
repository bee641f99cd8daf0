use hodo_machine::{Closed, Peer};
use std::io::{self, ErrorKind};

/// A notification about a peer that a transport has yet to pass to its machine.
pub(crate) enum Notice {
    Opened(Peer),
    Closed(Peer, Closed),
}

impl Notice {
    pub(crate) fn about(&self) -> Peer {
        let (Notice::Opened(peer) | Notice::Closed(peer, _)) = self;
        *peer
    }
}

/// Returns the reason that a machine receives for a stream that failed with this error.
pub(crate) fn why(error: &io::Error) -> Closed {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => Closed::Refused,
        ErrorKind::TimedOut => Closed::TimedOut,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => Closed::Reset,
        _ => Closed::Unreachable,
    }
}
