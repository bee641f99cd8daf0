//! Searches that were sent to one address of a host where several programs share the port: only one of them receives such a datagram. It
//! passes the search on to a group on the loopback interface, with a tag in front that says where it was sent to.

use crate::discovery::LOCAL_GROUP;
use crate::wire::discovery::{UNICAST, encode_origin_tag};
use crate::wire::{HEADER, Message, Side};
use crate::{Order, Writer};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use hodo_machine::{Address, Ends};

/// The way that a datagram took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From its sender.
    Direct,
    /// Over the group on the loopback interface, from a program of this host.
    PassedOn,
    /// Over that group, from this program itself.
    Own,
}

/// Returns the way that a datagram took; `group` is where this program passes searches on to.
pub(crate) fn way(ends: &Ends, group: Option<&Address>) -> Way {
    let (Some(local), Some(remote)) = (ends.local.ip(), ends.remote.ip()) else { return Way::Direct };
    if local.ip() != IpAddr::V4(LOCAL_GROUP) {
        return Way::Direct;
    }
    match group {
        Some(Address::UdpFrom(port, _)) if *port == remote.port() && remote.ip().is_loopback() => Way::Own,
        _ => Way::PassedOn,
    }
}

/// Writes the datagram that passes a search on: a tag with the address that it was sent to, and the search itself, which names the address
/// for the answer and is not to be passed on again.
pub(crate) fn passed_on(message: &Message<'_>, bytes: &[u8], sent_to: IpAddr, answer: SocketAddr, into: &mut Vec<u8>) {
    const FLAGS: usize = HEADER + 4;
    const ADDRESS: usize = HEADER + 8;
    const PORT: usize = ADDRESS + 16;
    let mut tag = Writer::new(Side::Client, Order::Big);
    encode_origin_tag(sent_to, &mut tag);
    tag.move_to(into);
    let at = into.len();
    into.extend_from_slice(bytes);
    let search = &mut into[at..];
    search[FLAGS] &= !UNICAST;
    search[ADDRESS..PORT].copy_from_slice(&mapped(answer.ip()).octets());
    search[PORT..PORT + 2].copy_from_slice(&message.order.bytes_16(answer.port()));
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
