//! Echo requests of ICMP that no router may cut: the largest packet that comes back.
//!
//! | bytes | field (RFC 792, RFC 4443) |
//! |---|---|
//! | 0 | type: 8 request, 0 reply; 128 and 129 over IPv6 |
//! | 1 | code, 0 |
//! | 2..4 | checksum, which the kernel fills in over IPv6 |
//! | 4..6 | identifier of the sender |
//! | 6..8 | sequence number |

use crate::sys::{self, RawAddress};
use crate::{Clock, Route, random_bits};
use hodo_machine::Instant;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

const HEADER: usize = 8;
/// The time for which the first, small requests wait for a reply: over a satellite it takes 600 ms.
const FIRST_WAIT: Duration = Duration::from_millis(700);
/// The number of first requests that may be lost before the path counts as silent.
const SILENCE: usize = 2;
/// The shortest and the longest time for which the others do.
const WAITS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(400));
/// Requests of each size before it counts as lost.
const TRIES: usize = 3;
/// The time after which the search ends with what it knows.
const SEARCH: Duration = Duration::from_secs(3);
/// The smallest packet that every path takes: of IPv4 and of IPv6.
const SMALLEST: (u32, u32) = (68, 1280);

/// The result of sending echo requests along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathProbe {
    /// The largest IP packet that came back, in bytes; `None` if none did.
    pub passed: Option<u32>,
    /// The smallest IP packet that did not, in bytes; `None` if all did.
    pub lost: Option<u32>,
    /// The shortest round-trip of a small packet.
    pub round_trip: Option<Duration>,
}

/// Searches for the largest IP packet up to `largest` bytes that comes back from an address. Takes up to five seconds, where packets
/// are lost; none of the packets is cut on its way there.
///
/// # Errors
/// Returns `PermissionDenied` if this process may not send echo requests, and otherwise the operating system's error.
pub fn probe_path(remote: IpAddr, largest: u32) -> io::Result<PathProbe> {
    let mut echo = Echo::open(remote)?;
    let smallest = if remote.is_ipv4() { SMALLEST.0 } else { SMALLEST.1 };
    let mut found = PathProbe::default();
    let (mut answered, mut silent) = (0, 0);
    while answered < TRIES && silent < SILENCE {
        match echo.round_trip(smallest, FIRST_WAIT)? {
            Some(span) => {
                answered += 1;
                found.round_trip = Some(found.round_trip.map_or(span, |least| least.min(span)));
            }
            None => silent += 1,
        }
    }
    let Some(round_trip) = found.round_trip else { return Ok(found) };
    echo.wait = (4 * round_trip).clamp(WAITS.0, WAITS.1);
    found.passed = Some(smallest);
    let reported = || Route::to(remote).ok().and_then(|route| route.mtu);
    let end = echo.clock.now() + SEARCH;
    let mut next = Some(largest);
    while let Some(size) = next.filter(|size| found.is_open(*size) && echo.clock.now() < end) {
        if echo.passes(size)? {
            found.passed = found.passed.max(Some(size));
        } else {
            found.lost = Some(found.lost.map_or(size, |lost| lost.min(size)));
        }
        next = found.next(reported());
    }
    Ok(found)
}

impl PathProbe {
    /// Returns whether it is not known of a size whether it passes.
    fn is_open(&self, size: u32) -> bool {
        self.passed.is_none_or(|passed| size > passed) && self.lost.is_none_or(|lost| size < lost)
    }

    /// Returns the size to try next: the one that a router reported and one more, else the middle.
    fn next(&self, reported: Option<u32>) -> Option<u32> {
        let (passed, lost) = self.passed.zip(self.lost)?;
        let hinted = reported.into_iter().flat_map(|mtu| [mtu, mtu + 1]).find(|size| self.is_open(*size));
        hinted.or_else(|| (passed + 1 < lost).then_some(passed.midpoint(lost)))
    }
}

/// A socket for echo requests to one address.
struct Echo {
    fd: OwnedFd,
    is_ipv4: bool,
    /// Whether the kernel passes the IP header too, and chooses no identifier of its own.
    is_raw: bool,
    identifier: u16,
    sequence: u16,
    clock: Clock,
    wait: Duration,
}

impl Echo {
    fn open(remote: IpAddr) -> io::Result<Echo> {
        let is_ipv4 = remote.is_ipv4();
        let (family, protocol) =
            if is_ipv4 { (libc::AF_INET, libc::IPPROTO_ICMP) } else { (libc::AF_INET6, libc::IPPROTO_ICMPV6) };
        let (fd, is_raw) = match sys::socket_of(family, libc::SOCK_DGRAM, protocol) {
            Ok(fd) => (fd, false),
            // Who is not in the group of net.ipv4.ping_group_range may still be root.
            Err(_) => (sys::socket_of(family, libc::SOCK_RAW, protocol)?, true),
        };
        // Never cut, and never held back by a size that the kernel believes.
        let (level, name, probe) = if is_ipv4 {
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
        };
        sys::set_option(fd.as_fd(), level, name, probe)?;
        sys::connect(fd.as_fd(), &RawAddress::ip(SocketAddr::new(remote, 0)))?;
        sys::set_nonblocking(fd.as_fd(), true)?;
        let identifier = random_bits() as u16;
        Ok(Echo { fd, is_ipv4, is_raw, identifier, sequence: 0, clock: Clock::start(), wait: FIRST_WAIT })
    }

    /// Returns whether a packet of this size comes back.
    fn passes(&mut self, size: u32) -> io::Result<bool> {
        for _ in 0..TRIES {
            if self.round_trip(size, self.wait)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends a packet of this size, and returns how long its reply took; `None` if there was none, or the packet is too large for the
    /// interface.
    fn round_trip(&mut self, size: u32, wait: Duration) -> io::Result<Option<Duration>> {
        self.sequence = self.sequence.wrapping_add(1);
        let header = if self.is_ipv4 { 20 } else { 40 };
        let request = request(self.is_ipv4, self.identifier, self.sequence, (size as usize).saturating_sub(header));
        let begin = self.clock.now();
        match sys::send(self.fd.as_fd(), &request, 0) {
            Ok(_) => self.reply(begin, wait),
            Err(error) if is_report(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reply(&self, begin: Instant, wait: Duration) -> io::Result<Option<Duration>> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let now = self.clock.now();
            if now >= begin + wait {
                return Ok(None);
            }
            match sys::receive(self.fd.as_fd(), &mut bytes, 0) {
                Ok(length) if self.is_reply(&bytes[..length]) => return Ok(Some(self.clock.now() - begin)),
                Ok(_) => {}
                Err(error) if sys::is_vain(&error) => {
                    // In steps of a millisecond, which is as exact as the system's wait: a short reply is polled for.
                    if now > begin + Duration::from_millis(1) {
                        sys::wait_readable(std::iter::once(self.fd.as_fd()), Duration::from_millis(1))?;
                    }
                }
                Err(error) if is_report(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_reply(&self, packet: &[u8]) -> bool {
        let header = if self.is_raw && self.is_ipv4 { packet.first().map_or(0, |first| 4 * (first & 15)) } else { 0 };
        let Some(message) = packet.get(usize::from(header)..).filter(|message| message.len() >= HEADER) else {
            return false;
        };
        let kind = if self.is_ipv4 { 0 } else { 129 };
        message[0] == kind
            && (!self.is_raw || message[4..6] == self.identifier.to_be_bytes())
            && message[6..8] == self.sequence.to_be_bytes()
    }
}

/// Returns whether an error says that a router or a host sent the packet back, or that it is larger than the interface takes.
fn is_report(error: &io::Error) -> bool {
    let reports = [libc::EMSGSIZE, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ECONNREFUSED, libc::EPROTO];
    error.raw_os_error().is_some_and(|number| reports.contains(&number))
}

/// Encodes an echo request of `length` bytes, its header included.
fn request(is_ipv4: bool, identifier: u16, sequence: u16, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length.max(HEADER)];
    bytes[0] = if is_ipv4 { 8 } else { 128 };
    bytes[4..6].copy_from_slice(&identifier.to_be_bytes());
    bytes[6..8].copy_from_slice(&sequence.to_be_bytes());
    if is_ipv4 {
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// Returns the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An echo request as `ping -s 4` sent it.
    #[test]
    fn a_request_is_encoded_with_its_checksum() {
        let bytes = request(true, 0x1234, 1, 12);
        assert_eq!(bytes, [8, 0, 0xe5, 0xca, 0x12, 0x34, 0, 1, 0, 0, 0, 0]);
        assert_eq!(checksum(&bytes), 0, "the sum of all is zero");
        assert_eq!(request(false, 0x1234, 2, 0), [128, 0, 0, 0, 0x12, 0x34, 0, 2]);
    }

    #[test]
    fn the_search_halves_and_takes_hints() {
        let found = PathProbe { passed: Some(68), lost: Some(1500), ..PathProbe::default() };
        assert_eq!((found.next(None), found.next(Some(1400))), (Some(784), Some(1400)));
        let found = PathProbe { passed: Some(1400), ..found };
        assert_eq!(found.next(Some(1400)), Some(1401));
        let found = PathProbe { lost: Some(1401), ..found };
        assert_eq!((found.next(Some(1400)), found.next(None)), (None, None));
        assert_eq!(PathProbe { lost: None, ..found }.next(None), None, "all have passed");
    }

    #[test]
    fn the_loopback_returns_large_packets_where_this_process_may_send_them() {
        match probe_path(IpAddr::from([127, 0, 0, 1]), 9000) {
            Ok(found) => assert_eq!((found.passed, found.lost), (Some(9000), None), "{found:?}"),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }
}
