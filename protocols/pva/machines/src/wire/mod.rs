//! Messages as they are on the wire.
//!
//! Every message is a [`header`] of 8 bytes and a payload:
//!
//! | byte | field | |
//! |---|---|---|
//! | 0 | CA | |
//! | 1 | version | 2; any but 0 is accepted |
//! | 2 | flags | bit 0 control message, bits 4 and 5 segment, bit 6 from a server, bit 7 big-endian |
//! | 3 | command | [`Command`]; or [`Control`], which has no payload |
//! | 4 | size | bytes of payload; or the data of a control message |
//!
//! Sizes within a payload take one byte below 254; 254 and four bytes; 254, 7FFFFFFF and eight bytes; 255 is null.
//! A text is a size and its bytes. The rest is described where it is decoded:
//!
//! | messages | module |
//! |---|---|
//! | validation, authentication, echo, channels, texts for people | [`connection`] |
//! | beacons, searches and their answers | [`discovery`] |
//! | operations on a channel | [`operation`] |
//!
//! The layouts are those of the specification and of its two C++ implementations, which `tests/golden` holds messages of.

mod command;
pub mod connection;
pub mod discovery;
pub mod header;
pub mod operation;
mod reader;
mod status;
mod stream;
mod writer;

pub use command::Command;
pub use header::{Control, HEADER, Header, Segment, Side};
pub use hodo_machine::Order;
pub use reader::{LeftOver, Reader};
pub(crate) use reader::{SHARE_FROM, frozen, slack};
pub use status::{Severity, Status};
pub use stream::{Inbound, Incoming, Message};
pub use writer::Writer;

/// The UDP port of searches and beacons.
pub const DISCOVERY_PORT: u16 = 5076;
/// The TCP port of a server, where no other is chosen.
pub const SERVER_PORT: u16 = 5075;
