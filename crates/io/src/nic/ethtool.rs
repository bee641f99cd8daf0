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
/// `struct ethtool_ringparam`.
const RINGS: Question<9> = Question(0x10);
/// `struct ethtool_channels`.
const CHANNELS: Question<9> = Question(0x3c);
/// `struct ethtool_sset_info` for one set.
const SET_SIZE: Question<5> = Question(0x37);
/// `struct ethtool_gstrings` with room for `FEATURES_MAX` names.
const NAMES: Question<{ 3 + FEATURES_MAX * NAME_WORDS }> = Question(0x1b);
/// `struct ethtool_gfeatures` with room for `FEATURES_MAX` features.
const FEATURES: Question<{ 2 + 4 * FEATURES_MAX / 32 }> = Question(0x3a);
/// More features than any kernel has.
const FEATURES_MAX: usize = 256;
/// The words of a feature's name.
const NAME_WORDS: usize = 8;
/// The set of names of features.
const SET_OF_FEATURES: u32 = 4;

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

/// The number of packets that wait between the card and the kernel, as it is set and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rings {
    /// The entries of the receive ring.
    pub rx: u32,
    /// The most entries that the receive ring can have.
    pub rx_max: u32,
    /// The entries of the transmit ring.
    pub tx: u32,
    /// The most entries that the transmit ring can have.
    pub tx_max: u32,
}

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
        self.ask(&DRIVER).map(|words| name_of(&words[1..9])).filter(|name| !name.is_empty())
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

    /// Returns the sizes of the rings; `None` for a driver without any.
    pub(super) fn rings(&self) -> Option<Rings> {
        let words = self.ask(&RINGS)?;
        Some(Rings { rx: words[5], rx_max: words[1], tx: words[8], tx_max: words[4] }).filter(|rings| rings.rx > 0)
    }

    /// Returns the number of receive queues in use, and the most that the driver can have.
    pub(super) fn receive_queues(&self) -> Option<(u32, u32)> {
        // Queues of both directions count as queues of either.
        self.ask(&CHANNELS).map(|words| (words[5] + words[8], words[1] + words[4])).filter(|(now, _)| *now > 0)
    }

    /// Returns the names of features that are off and could be switched on, as the kernel names them.
    pub(super) fn dormant_features(&self) -> Vec<String> {
        let mut query = [0; 5];
        (query[2], query[3]) = mask_of_set(SET_OF_FEATURES);
        let Some(size) = self.ask_with(&SET_SIZE, query).map(|words| words[4] as usize) else { return Vec::new() };
        if size == 0 || size > FEATURES_MAX {
            return Vec::new();
        }
        let mut query = [0; 3 + FEATURES_MAX * NAME_WORDS];
        query[1] = SET_OF_FEATURES;
        let Some(names) = self.ask_with(&NAMES, query) else { return Vec::new() };
        let mut query = [0; 2 + 4 * FEATURES_MAX / 32];
        query[1] = size.div_ceil(32) as u32;
        let Some(features) = self.ask_with(&FEATURES, query) else { return Vec::new() };
        let is_dormant = |number: &usize| {
            // Each block of 32 features has four words: available, requested, active, never changed.
            let block = &features[2 + 4 * (number / 32)..][..4];
            let bit = 1 << (number % 32);
            // One that is requested and not active needs another one first, or the program behind the interface.
            block[0] & bit != 0 && block[1] & bit == 0 && block[2] & bit == 0
        };
        (0..size).filter(is_dormant).map(|number| name_of(&names[3 + number * NAME_WORDS..][..NAME_WORDS])).collect()
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
        self.ask_with(question, [0; WORDS])
    }

    /// Sends a query whose other words say what is requested. The kernel writes no more than they leave room for.
    fn ask_with<const WORDS: usize>(
        &self,
        question: &Question<WORDS>,
        mut words: [u32; WORDS],
    ) -> Option<[u32; WORDS]> {
        words[0] = question.0;
        // SAFETY: an ifreq of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { zeroed() };
        request.ifr_name = self.name;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the kernel reads the ifreq, and writes to `words` the structure of the question in words[0]; the
        // constants above are the only questions, each with the size of its structure, and `words` outlives the call.
        // Structures without a fixed size are as long as the count in them says, which the caller bounds: of features by
        // the blocks of the query, of names by the size of the set, which no kernel changes while it runs.
        let failed = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) != 0 };
        (!failed).then_some(words)
    }
}

/// Returns the two words of a mask of 64 bits in which the bit of this set is set.
const fn mask_of_set(set: u32) -> (u32, u32) {
    if cfg!(target_endian = "little") { (1 << set, 0) } else { (0, 1 << set) }
}

/// Returns the text in words, which ends with a zero byte.
fn name_of(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
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
