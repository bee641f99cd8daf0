//! Queries to the driver by `ioctl`: they see this network namespace, which `/sys` may not, and need no privilege.
#![allow(unsafe_code)]

use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// A query of `linux/ethtool.h` and the 32-bit words of its reply, the first of which is the query's number.
struct Question<const WORDS: usize>(u32);

/// `struct ethtool_cmd`.
const SETTINGS: Question<11> = Question(0x01);
/// `struct ethtool_drvinfo`.
const DRIVER: Question<49> = Question(0x03);
/// `struct ethtool_coalesce`.
const COALESCENCE: Question<23> = Question(0x0e);

/// Queries with a `struct ethtool_value` as the reply: an offload is on if a bit of the mask is set.
const OFFLOADS: [(&str, Question<2>, u32); 11] = [
    ("rx-checksumming", Question(0x14), u32::MAX),
    ("tx-checksumming", Question(0x16), u32::MAX),
    ("scatter-gather", Question(0x18), u32::MAX),
    ("tcp-segmentation-offload", Question(0x1e), u32::MAX),
    ("generic-segmentation-offload", Question(0x23), u32::MAX),
    ("generic-receive-offload", Question(0x2b), u32::MAX),
    ("large-receive-offload", FLAGS, 1 << 15),
    ("rx-vlan-offload", FLAGS, 1 << 8),
    ("tx-vlan-offload", FLAGS, 1 << 7),
    ("ntuple-filters", FLAGS, 1 << 27),
    ("receive-hashing", FLAGS, 1 << 28),
];
const FLAGS: Question<2> = Question(0x25);

/// Speed and duplex mode, as the driver reports them.
pub(super) struct Settings {
    pub(super) speed_mbit_per_s: Option<u64>,
    pub(super) duplex: Option<&'static str>,
}

/// The driver of one interface, open for queries.
pub(super) struct Ethtool {
    socket: UdpSocket,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Ethtool {
    /// Opens the driver of this interface; `None` for a name that no interface can have, or if no socket can be opened.
    pub(super) fn open(name: &str) -> Option<Ethtool> {
        let mut terminated = [0; libc::IFNAMSIZ];
        if name.is_empty() || name.len() >= terminated.len() {
            return None;
        }
        for (to, from) in terminated.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0")).ok()?;
        Some(Ethtool { socket, name: terminated })
    }

    pub(super) fn mtu(&self) -> Option<u32> {
        // SAFETY: an ifreq of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { zeroed() };
        request.ifr_name = self.name;
        // SAFETY: the kernel reads the name of the whole ifreq that is passed, and writes ifru_mtu, which is read only
        // where it succeeded.
        let mtu = unsafe {
            if libc::ioctl(self.socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) != 0 {
                return None;
            }
            request.ifr_ifru.ifru_mtu
        };
        u32::try_from(mtu).ok().filter(|&mtu| mtu > 0)
    }

    pub(super) fn driver(&self) -> Option<String> {
        let words = self.ask(&DRIVER)?;
        let bytes: Vec<u8> =
            words[1..9].iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
        String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }

    pub(super) fn settings(&self) -> Option<Settings> {
        let words = self.ask(&SETTINGS)?;
        let [low_0, low_1, duplex, _] = words[3].to_ne_bytes();
        let [high_0, high_1, _, _] = words[7].to_ne_bytes();
        let low = u16::from_ne_bytes([low_0, low_1]);
        let high = u16::from_ne_bytes([high_0, high_1]);
        Some(Settings { speed_mbit_per_s: known_speed(low, high), duplex: known_duplex(duplex) })
    }

    /// Returns how long interrupts are delayed on receive and on transmit: microseconds, and whether the driver adapts
    /// them.
    pub(super) fn coalescence(&self) -> Option<[(u32, bool); 2]> {
        self.ask(&COALESCENCE).map(|words| [(words[1], words[10] != 0), (words[5], words[11] != 0)])
    }

    /// Returns the names of the offloads that are on.
    pub(super) fn offloads(&self) -> Vec<&'static str> {
        OFFLOADS
            .iter()
            .filter(|(_, question, mask)| self.ask(question).is_some_and(|words| words[1] & mask != 0))
            .map(|(name, _, _)| *name)
            .collect()
    }

    fn ask<const WORDS: usize>(&self, question: &Question<WORDS>) -> Option<[u32; WORDS]> {
        let mut words = [0_u32; WORDS];
        words[0] = question.0;
        // SAFETY: an ifreq of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { zeroed() };
        request.ifr_name = self.name;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the kernel reads the ifreq, and writes to `words` the structure of the question in words[0]; the
        // constants above are the only questions, each with the size of its structure, and `words` outlives the call.
        let failed = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) != 0 };
        (!failed).then_some(words)
    }
}

/// Returns the speed, unless it is all ones or 0, which mean unknown, as for an unplugged cable; drivers fill 16 or 32
/// bits with ones.
fn known_speed(low: u16, high: u16) -> Option<u64> {
    let speed = u32::from(high) << 16 | u32::from(low);
    (speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(u64::from(speed))
}

const fn known_duplex(duplex: u8) -> Option<&'static str> {
    match duplex {
        0 => Some("half"),
        1 => Some("full"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_speeds_are_not_speeds() {
        assert_eq!(known_speed(0xffff, 0xffff), None);
        assert_eq!(known_speed(0xffff, 0), None);
        assert_eq!(known_speed(0, 0), None);
        assert_eq!(known_speed(1000, 0), Some(1_000));
        assert_eq!(known_speed(0x86a0, 0x1), Some(100_000));
        assert_eq!((known_duplex(0), known_duplex(1), known_duplex(0xff)), (Some("half"), Some("full"), None));
    }

    #[test]
    fn the_loopback_has_an_mtu_and_no_interrupts() {
        let loopback = Ethtool::open("lo").expect("a socket can be had");
        assert!(loopback.mtu().is_none_or(|mtu| mtu >= 1280));
        assert_eq!(loopback.coalescence(), None);
    }

    #[test]
    fn names_that_no_interface_can_have_are_refused() {
        assert!(Ethtool::open("").is_none());
        assert!(Ethtool::open("sixteen-bytes-xx").is_none());
        assert!(Ethtool::open("no-such-nic").is_some_and(|nic| nic.mtu().is_none() && nic.offloads().is_empty()));
    }
}
