//! Options of the test's sockets, which `bench`, `why` and `serve` share.

use clap::{Args, value_parser};
use hodo_io::{Dscp, IpVersion, LocalAddress, PathOptions};

/// The marks of the packets, and the way on which they leave.
#[derive(Debug, Clone, Default, Args)]
pub struct SocketOptions {
    /// Code point of differentiated services in each packet: 0..63, ef, le, cs0..cs7 or af11..af43 [default: the system's].
    #[arg(long, value_name = "DSCP", value_parser = str::parse::<Dscp>, allow_negative_numbers = true)]
    pub dscp: Option<Dscp>,
    /// Time to live of each packet, which is the hop limit of IPv6 [default: the system's].
    #[arg(long, value_name = "HOPS", value_parser = value_parser!(u8).range(1..), allow_negative_numbers = true)]
    pub ttl: Option<u8>,
    /// Largest TCP segment in bytes, which both ends keep [default: what the path takes].
    #[arg(long, value_name = "SIZE", value_parser = value_parser!(u16).range(88..=32_767), allow_negative_numbers = true)]
    pub mss: Option<u16>,
    /// Interface by which all packets leave and arrive, as eth0 [default: as the routes say].
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Use IPv4 only: for names, and for a far end on loopback.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only: for names, and for a far end on loopback, which is at ::1 then.
    #[arg(short = '6', long)]
    pub ipv6: bool,
}

impl SocketOptions {
    /// Returns the options of sockets that have this local address.
    pub fn path(&self, local: Option<LocalAddress>) -> PathOptions {
        let version = match (self.ipv4, self.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (_, true) => Some(IpVersion::V6),
            _ => None,
        };
        let SocketOptions { dscp, ttl, mss, .. } = *self;
        PathOptions { dscp, ttl, mss, local, device: self.device.clone(), version }
    }
}
