use crate::connect::socket_for;
use crate::listener::bound;
use crate::sys;
use hodo_machine::Address;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

/// A bound datagram socket: each sender to it becomes a peer, and other peers can be reached from it.
#[derive(Debug)]
pub struct Port {
    pub(crate) fd: OwnedFd,
    address: Address,
    pub(crate) number: u16,
    pub(crate) is_ipv4: bool,
    pub(crate) tells_arrival: bool,
    pub(crate) numbered: Option<Numbered>,
}

/// How the end of a datagram depends on its place among those that the kernel cuts from one send.
pub(crate) struct Numbered(pub(crate) Correction);

type Correction = Box<dyn FnMut(usize, u16) -> [u8; 4] + Send + Sync>;

impl fmt::Debug for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Numbered")
    }
}

/// The options with which a [`Port`] is bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortOptions {
    /// Whether other sockets of this user may be bound to the same address: each gets a share of the senders.
    pub shared: bool,
    /// Whether any program may be bound to the same address: each receives what is sent to a group or a broadcast address, one of them
    /// what is sent to this host alone.
    pub common: bool,
    /// Whether a port of all addresses of IPv6 leaves those of IPv4 to another port of the same number.
    pub only_ipv6: bool,
    /// Whether datagrams may be sent to broadcast addresses.
    pub broadcast: bool,
    /// Multicast groups to receive from, each on the interface of this index; 0 means the one that the routes select.
    pub groups: Vec<(IpAddr, u32)>,
    /// How what is sent to a group leaves, if not as the routes say.
    pub multicast: Option<Multicast>,
    /// Whether senders are distinguished by the address and interface where their datagrams arrived, and receive
    /// replies from there.
    pub tells_arrival: bool,
}

/// The way on which what is sent to a multicast group leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Multicast {
    /// The index of the interface; 0 means the one that the routes select.
    pub interface: u32,
    /// How many hops it may go: 1 is the subnet.
    pub hops: u8,
}

/// The address and interface where a datagram arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Arrival {
    /// The destination address: of this host, of a group, or a broadcast address.
    pub(crate) to: IpAddr,
    /// The address of this host that a reply comes from.
    pub(crate) here: Option<IpAddr>,
    pub(crate) interface: u32,
}

impl Port {
    /// Binds a socket to an address; port 0 is any free one.
    ///
    /// # Errors
    /// Returns the operating system's error if the address is in use or does not belong to this host, or a group cannot
    /// be joined.
    pub fn bind(address: &Address, options: &PortOptions) -> io::Result<Self> {
        let (fd, raw) = socket_for(address, libc::SOCK_DGRAM)?;
        let is_ipv4 = matches!(address.ip(), Some(SocketAddr::V4(_)));
        let on = |level, name| sys::set_option(fd.as_fd(), level, name, 1);
        if options.shared || options.common {
            on(libc::SOL_SOCKET, libc::SO_REUSEPORT)?;
        }
        if options.common {
            on(libc::SOL_SOCKET, libc::SO_REUSEADDR)?;
        }
        if options.only_ipv6 && !is_ipv4 {
            on(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY)?;
        }
        if options.broadcast {
            on(libc::SOL_SOCKET, libc::SO_BROADCAST)?;
        }
        match (options.tells_arrival, is_ipv4) {
            (true, true) => on(libc::IPPROTO_IP, libc::IP_PKTINFO)?,
            (true, false) => on(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)?,
            (false, _) => {}
        }
        sys::bind(fd.as_fd(), &raw)?;
        sys::receive_from_own_groups(fd.as_fd(), is_ipv4)?;
        if let Some(Multicast { interface, hops }) = options.multicast {
            sys::set_multicast(fd.as_fd(), is_ipv4, interface, hops)?;
        }
        for (group, interface) in &options.groups {
            sys::join_group(fd.as_fd(), *group, *interface)?;
        }
        let address = bound(&fd, address)?;
        let number = address.ip().map_or(0, |ip| ip.port());
        Ok(Port { fd, address, number, is_ipv4, tells_arrival: options.tells_arrival, numbered: None })
    }

    /// Makes the identification in the IP header of each datagram that is sent from this port known beforehand, for protocols that
    /// check-sum it: 0, or the datagram's place among those that the kernel cuts from one send. The datagrams may not be
    /// fragmented on their way.
    ///
    /// A machine assumes 0. `correction` tells for the length of a datagram and its place from 1 what is added, bit by
    /// bit, to the last four bytes of the datagram.
    ///
    /// # Errors
    /// Returns the operating system's error if it refuses not to fragment.
    pub fn numbered(
        mut self,
        correction: impl FnMut(usize, u16) -> [u8; 4] + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (level, name, never) = match self.is_ipv4 {
            true => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
            false => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
        };
        sys::set_option(self.fd.as_fd(), level, name, never)?;
        if !self.is_ipv4 {
            // What check-sums itself may come without UDP's checksum (RFC 6935), as RoCEv2 does from the kernel's rxe.
            sys::set_option(self.fd.as_fd(), libc::IPPROTO_UDP, libc::UDP_NO_CHECK6_RX, 1)?;
        }
        self.numbered = Some(Numbered(Box::new(correction)));
        Ok(self)
    }

    /// Returns the address that the port is bound to.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }
}
