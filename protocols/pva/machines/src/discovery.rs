//! The datagrams by which clients find servers: the client's side, and what it shares with the server's.

mod beacons;
mod budget;
mod finder;
mod mail;
mod names;
mod relay;
mod schedule;
mod searcher;
mod subnet;

pub use budget::Budget;
pub use finder::{Finder, FinderConfig, FinderCounters, Found, Target};
pub use searcher::{Searcher, SearcherCommand};
pub use subnet::Subnet;

pub(crate) use mail::Mail;
pub(crate) use relay::{Relay, Way};

use crate::wire::HEADER;
use crate::wire::{Header, Message, Segment, Side};

/// The group on the loopback interface by which the programs of a host that share a port pass searches on to each other.
pub const LOCAL_GROUP: core::net::Ipv4Addr = core::net::Ipv4Addr::new(224, 0, 0, 128);

/// The messages of one datagram that are looked at.
const MESSAGES: usize = 16;

/// A message of a datagram, with its bytes.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) from: Side,
    pub(crate) message: Message<'a>,
    /// The message with its header.
    pub(crate) bytes: &'a [u8],
}

/// Returns the messages of a datagram, up to the first that is none: there are no control messages and no segments in datagrams.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = datagram;
    let next = move || {
        let header = Header::decode(rest.first_chunk::<HEADER>()?).ok()?;
        if header.is_control || header.segment != Segment::Whole {
            return None;
        }
        let length = HEADER.checked_add(usize::try_from(header.size).ok()?)?;
        let (bytes, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some(Piece { from: header.from, message: Message::new(&header, &bytes[HEADER..]), bytes })
    };
    core::iter::from_fn(next).take(MESSAGES)
}

#[cfg(test)]
mod tests;
