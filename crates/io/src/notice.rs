use hodo_machine::{Address, Closed, Peer};
use std::io::{self, ErrorKind};

/// What a transport has yet to tell its machine of a peer.
pub(crate) enum Notice {
    Opened(Peer, Address),
    Closed(Peer, Closed),
}

impl Notice {
    pub(crate) fn about(&self) -> Peer {
        let (Notice::Opened(peer, _) | Notice::Closed(peer, _)) = self;
        *peer
    }
}

/// What a machine is told of a stream that failed with this error.
pub(crate) fn why(error: &io::Error) -> Closed {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => Closed::Refused,
        ErrorKind::TimedOut => Closed::TimedOut,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => Closed::Reset,
        _ => Closed::Unreachable,
    }
}
