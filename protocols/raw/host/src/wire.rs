//! What an operation of a raw link puts on the wire.

use crate::suite;
use hodo_io::floor::Kind;
use hodo_measure::Mode;
use hodo_measure::limits::{Packing, Path, WireCost};
use hodo_raw::wire::HEADER;
use hodo_tester::{OnTheWire, Uri};

/// A message each way; one that carries no payload is a bare header.
pub(crate) struct Messages {
    kind: Kind,
    mode: Mode,
}

impl Messages {
    pub(crate) fn new(uri: &Uri, mode: Mode) -> Messages {
        let kind = match uri.scheme {
            scheme if scheme == suite::UDP.name => Kind::Udp,
            scheme if scheme == suite::UNIX.name => Kind::Unix,
            _ => Kind::Tcp,
        };
        Messages { kind, mode }
    }
}

impl OnTheWire for Messages {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn messages(&self, payload: u64) -> (u64, u64) {
        let message = payload.max(HEADER as u64);
        match self.mode {
            Mode::Both => (message, message),
            Mode::Send => (message, HEADER as u64),
            Mode::Receive => (HEADER as u64, message),
        }
    }
    /// Streams acknowledge so rarely that it costs a line nothing.
    fn cost(&self, path: &Path, payload: u64, packing: Packing) -> WireCost {
        let (out, back) = self.messages(payload);
        match self.mode {
            Mode::Both => path.cost(payload, out, back, packing),
            Mode::Send => path.cost(payload, out, 0, packing),
            Mode::Receive => path.cost(payload, 0, back, packing),
        }
    }
}
