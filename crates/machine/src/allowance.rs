//! The memory that a machine may retain for its peers, and which peer is closed when it is too much.
//!
//! A machine charges each peer for what it retains on that peer's behalf, in bytes: the part of a message that has arrived, open
//! channels and operations, queued calls and replies, values made for a name. [`Charges`] adds up by peer, by host and over all, and
//! names the peer to close where a limit of the [`Allowance`] is exceeded. The fuzz harness and the simulation hold every machine to
//! the rates of the same type, so that memory which is not charged is found there.

use crate::{Address, Peer, Peers};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thiserror::Error;

/// The most that a machine may cost: limits that it enforces on its peers, and rates that tests hold it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes retained for one peer.
    pub peer_bytes: u64,
    /// Bytes retained for all peers of one host.
    pub host_bytes: u64,
    /// Bytes retained for all peers.
    pub bytes: u64,
    /// Bytes of memory of a machine without peers, held by tests.
    pub memory: u64,
    /// Bytes of memory for a peer, held by tests.
    pub memory_per_peer: u64,
    /// Bytes of memory for each byte received, held by tests.
    pub memory_per_byte: u64,
    /// Outputs for an input and for each byte received, held by tests.
    pub outputs: u64,
    /// Bytes allocated in total for an input, for each byte received and each byte sent, held by tests.
    pub allocated: u64,
    /// Bytes sent to the sender of a datagram for each byte received, while nothing proves its address; held by tests.
    pub to_strangers: u64,
}

impl Allowance {
    /// The allowance where nothing else is configured.
    pub const DEFAULT: Allowance = Allowance {
        peer_bytes: Self::BYTES,
        host_bytes: Self::BYTES,
        bytes: Self::BYTES,
        memory: 512 << 10,
        memory_per_peer: 16 << 10,
        memory_per_byte: 16,
        outputs: 4,
        allocated: 4096,
        to_strangers: 1,
    };
    /// Bytes retained unless told otherwise. With what allocators add (`hodo_io::process::return_large_memory`), and what is received before it
    /// is charged, it is 256 MiB at most.
    const BYTES: u64 = 224 << 20;
    /// Outputs with which a machine may begin.
    const OUTPUTS: u64 = 64;

    /// Returns the outputs that are allowed for this many inputs and bytes.
    #[must_use]
    pub const fn outputs_for(&self, inputs: u64, bytes: u64) -> u64 {
        Self::OUTPUTS + self.outputs * (inputs + bytes)
    }

    /// Returns the allowance with these limits: each peer, and each host, may have all that nobody else needs.
    #[must_use]
    pub const fn of_bytes(bytes: u64) -> Self {
        Allowance { peer_bytes: bytes, host_bytes: bytes, bytes, ..Allowance::DEFAULT }
    }
}

/// The bytes retained by several machines that serve together and by what they share.
#[derive(Debug, Clone, Default)]
pub struct Pool(Arc<Pooled>);

#[derive(Debug, Default)]
struct Pooled {
    bytes: AtomicU64,
    machines: AtomicU64,
}

impl Pool {
    /// Returns the bytes retained altogether.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Relaxed)
    }

    /// Replaces bytes that are retained by others.
    pub fn replace(&self, before: u64, after: u64) {
        self.0.bytes.fetch_add(after.wrapping_sub(before), Relaxed);
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance::DEFAULT
    }
}

/// The share of an allowance that is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Share {
    /// That of one peer.
    Peer,
    /// That of all peers of a host.
    Host,
    /// That of all peers.
    All,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Share::Peer => "this connection",
            Share::Host => "all connections of this host",
            Share::All => "all connections",
        })
    }
}

/// A limit of an [`Allowance`] is exceeded; `peer` is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{bytes} bytes of memory are retained for {share}, and {max} are allowed: this connection has the most of them"
)]
pub struct Over {
    /// The peer that retains most within the share.
    pub peer: Peer,
    /// The share that is exceeded.
    pub share: Share,
    /// Bytes retained for the share.
    pub bytes: u64,
    /// The limit.
    pub max: u64,
}

/// The memory that a machine retains for each of its peers, and for several of them together.
///
/// Machines that serve together have one [`Pool`]. Where that is over the limit, a machine closes a peer only if it retains more than its
/// equal part itself, so that whoever takes most is closed and not who comes next.
#[derive(Debug)]
pub struct Charges {
    allowance: Allowance,
    peers: Peers<Charge>,
    hosts: BTreeMap<Option<IpAddr>, u64>,
    bytes: u64,
    /// Bytes retained for several peers together.
    common: u64,
    pool: Pool,
    /// Bytes of this machine that are counted in the pool.
    pooled: u64,
}

/// The memory retained for a peer.
#[derive(Debug)]
struct Charge {
    host: Option<IpAddr>,
    bytes: u64,
}

/// The bytes by which a machine's part of its pool may be out of date.
const STEP: u64 = 64 << 10;

impl Default for Charges {
    fn default() -> Self {
        Charges::new(Allowance::DEFAULT, Pool::default())
    }
}

impl Drop for Charges {
    fn drop(&mut self) {
        self.pool.replace(self.pooled, 0);
        self.pool.0.machines.fetch_sub(1, Relaxed);
    }
}

impl Charges {
    /// The bytes by which [`Charges::set_about`] may leave a peer's charge out of date.
    pub const ABOUT: u64 = 4 << 10;

    /// Creates the charges of a machine without peers.
    #[must_use]
    pub fn new(allowance: Allowance, pool: Pool) -> Self {
        pool.0.machines.fetch_add(1, Relaxed);
        let (peers, hosts) = (Peers::default(), BTreeMap::new());
        Charges { allowance, peers, hosts, bytes: 0, common: 0, pool, pooled: 0 }
    }

    /// Returns the bytes retained for all peers.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes + self.common
    }

    /// Returns the bytes retained by all machines of the pool.
    #[must_use]
    pub fn pooled(&self) -> u64 {
        (self.pool.bytes() + self.bytes()).saturating_sub(self.pooled)
    }

    /// Returns the limits.
    #[must_use]
    pub const fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Sets the bytes that are retained for several peers together. [`Charges::check`] says whether it is too much.
    pub fn set_common(&mut self, bytes: u64) {
        self.common = bytes;
        self.publish();
    }

    /// Returns the bytes retained for a peer.
    #[must_use]
    pub fn of(&self, peer: Peer) -> u64 {
        self.peers.get(peer).map_or(0, |charge| charge.bytes)
    }

    /// Returns the address of a peer's host, or `None` if it has none of the network.
    #[must_use]
    pub fn host(&self, peer: Peer) -> Option<IpAddr> {
        self.peers.get(peer)?.host
    }

    /// Adds a peer, for which nothing is retained yet. Peers without an address of the network count as one host.
    pub fn open(&mut self, peer: Peer, remote: &Address) {
        self.close(peer);
        let host = remote.ip().map(|address| address.ip());
        self.peers.insert(peer, Charge { host, bytes: 0 });
    }

    /// Removes a peer with all that was retained for it.
    pub fn close(&mut self, peer: Peer) {
        let Some(charge) = self.peers.remove(peer) else { return };
        self.bytes -= charge.bytes;
        self.publish();
        if let Some(bytes) = self.hosts.get_mut(&charge.host) {
            *bytes -= charge.bytes;
            if *bytes == 0 {
                self.hosts.remove(&charge.host);
            }
        }
    }

    /// Sets the bytes that are retained for a peer.
    ///
    /// # Errors
    /// [`Over`] if a limit is exceeded by it; the bytes are set nevertheless, until the peer to close is closed.
    #[inline]
    pub fn set(&mut self, peer: Peer, bytes: u64) -> Result<(), Over> {
        let Some(charge) = self.peers.at(peer) else { return Ok(()) };
        if charge.bytes == bytes {
            return Ok(());
        }
        let (before, host) = (core::mem::replace(&mut charge.bytes, bytes), charge.host);
        self.bytes = self.bytes - before + bytes;
        let of_host = self.hosts.entry(host).or_default();
        *of_host = *of_host - before + bytes;
        let of_host = *of_host;
        self.publish();
        if bytes <= before {
            return Ok(());
        }
        let Allowance { peer_bytes, host_bytes, .. } = self.allowance;
        if bytes > peer_bytes {
            return Err(Over { peer, share: Share::Peer, bytes, max: peer_bytes });
        }
        if of_host > host_bytes {
            let peer = self.greatest(|charge| charge.host == host, &BTreeMap::new()).unwrap_or(peer);
            return Err(Over { peer, share: Share::Host, bytes: of_host, max: host_bytes });
        }
        self.check(&BTreeMap::new(), 0)
    }

    /// Sets the bytes that are retained for a peer unless they have changed by less than 4 KiB, so that who asks for little costs no time.
    ///
    /// # Errors
    /// [`Over`], as for [`Charges::set`].
    #[inline]
    pub fn set_about(&mut self, peer: Peer, bytes: u64) -> Result<(), Over> {
        if bytes.abs_diff(self.of(peer)) < Self::ABOUT { Ok(()) } else { self.set(peer, bytes) }
    }

    /// Returns the next peer to close, now that another one is closed, if it is still too much for all.
    #[must_use]
    pub fn next_over(&self) -> Option<Over> {
        self.check(&BTreeMap::new(), 0).err()
    }

    /// Checks the limit for all peers, with `more` bytes to come. Parts of what is retained for several peers together, by this machine or
    /// beside it in the pool, are in `parts`.
    ///
    /// # Errors
    /// [`Over`] if the limit is exceeded, with the peer that has most of the host that has most.
    pub fn check(&self, parts: &BTreeMap<Peer, u64>, more: u64) -> Result<(), Over> {
        let (bytes, max) = (self.pooled() + more, self.allowance.bytes);
        let own = self.bytes + self.common.max(parts.values().sum());
        if bytes <= max || own <= max / self.pool.0.machines.load(Relaxed).max(1) {
            return Ok(());
        }
        let mut hosts = self.hosts.clone();
        for (peer, part) in parts {
            if let Some(charge) = self.peers.get(*peer) {
                *hosts.entry(charge.host).or_default() += part;
            }
        }
        let host = hosts.iter().max_by_key(|(_, bytes)| **bytes).map(|(host, _)| *host);
        let peer = self.greatest(|charge| Some(charge.host) == host, parts);
        peer.map_or(Ok(()), |peer| Err(Over { peer, share: Share::All, bytes, max }))
    }

    fn greatest(&self, of: impl Fn(&Charge) -> bool, parts: &BTreeMap<Peer, u64>) -> Option<Peer> {
        let bytes = |(peer, charge): &(Peer, &Charge)| charge.bytes + parts.get(peer).copied().unwrap_or(0);
        self.peers.iter().filter(|(_, charge)| of(charge)).max_by_key(bytes).map(|(peer, _)| peer)
    }

    /// Brings the pool up to date, unless little has changed: machines on other processors write there, too.
    fn publish(&mut self) {
        let bytes = self.bytes();
        if bytes.abs_diff(self.pooled) >= STEP || bytes == 0 {
            self.pool.replace(core::mem::replace(&mut self.pooled, bytes), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;

    const LIMITS: Allowance = Allowance { peer_bytes: 100, host_bytes: 150, bytes: 200, ..Allowance::DEFAULT };

    /// Peers with these last bytes of their address.
    fn charges(hosts: &[u8]) -> Charges {
        let mut charges = Charges::new(LIMITS, Pool::default());
        for (number, host) in (0..).zip(hosts) {
            charges.open(Peer(number), &Address::Tcp(SocketAddr::from(([192, 0, 2, *host], 1))));
        }
        charges
    }

    #[test]
    fn a_peer_over_its_own_limit_is_named() {
        let mut charges = charges(&[1, 2]);
        assert_eq!(charges.set(Peer(0), 100), Ok(()));
        assert_eq!(charges.set(Peer(0), 101), Err(Over { peer: Peer(0), share: Share::Peer, bytes: 101, max: 100 }));
        charges.close(Peer(0));
        assert_eq!((charges.bytes(), charges.of(Peer(0)), charges.hosts.len()), (0, 0, 0));
        assert_eq!(charges.set(Peer(0), 500), Ok(()), "it is not there");
    }

    #[test]
    fn the_greatest_peer_of_a_host_goes_and_not_the_one_that_asks() {
        let mut charges = charges(&[1, 1, 2]);
        assert_eq!([(0, 90), (1, 60)].map(|(peer, bytes)| charges.set(Peer(peer), bytes)), [Ok(()); 2]);
        assert_eq!(charges.set(Peer(1), 61), Err(Over { peer: Peer(0), share: Share::Host, bytes: 151, max: 150 }));
        charges.close(Peer(0));
        assert_eq!(charges.set(Peer(1), 62), Ok(()));
    }

    #[test]
    fn the_greatest_peer_of_the_greatest_host_goes_for_all() {
        let mut charges = charges(&[1, 1, 2, 3]);
        for (peer, bytes) in [(0, 60), (1, 70), (2, 60)] {
            assert_eq!(charges.set(Peer(peer), bytes), Ok(()));
        }
        assert_eq!(charges.set(Peer(3), 20), Err(Over { peer: Peer(1), share: Share::All, bytes: 210, max: 200 }));
        charges.close(Peer(1));
        assert_eq!(charges.set(Peer(3), 21), Ok(()));
        assert_eq!(charges.bytes(), 141);
    }

    #[test]
    fn small_changes_are_left_out() {
        let mut charges = Charges::new(Allowance::of_bytes(1 << 20), Pool::default());
        charges.open(Peer(0), &Address::Node(1));
        for (bytes, charged) in [(4095, 0), (4096, 4096), (8191, 4096), (1, 4096), (0, 0)] {
            assert_eq!((charges.set_about(Peer(0), bytes), charges.of(Peer(0))), (Ok(()), charged));
        }
        assert!(charges.set_about(Peer(0), (1 << 20) + 1).is_err() && charges.next_over().is_some());
        charges.close(Peer(0));
        assert_eq!(charges.next_over(), None);
    }

    #[test]
    fn giving_back_is_never_refused() {
        let mut charges = charges(&[1]);
        assert!(charges.set(Peer(0), 300).is_err());
        assert_eq!(charges.set(Peer(0), 299), Ok(()));
    }

    #[test]
    fn of_machines_that_serve_together_the_one_with_more_than_its_part_closes_a_peer() {
        const MIB: u64 = 1 << 20;
        let (pool, limits) = (Pool::default(), Allowance::of_bytes(100 * MIB));
        let [mut one, mut other] = [(); 2].map(|()| Charges::new(limits, pool.clone()));
        for charges in [&mut one, &mut other] {
            charges.open(Peer(0), &Address::Node(1));
            charges.open(Peer(1), &Address::Node(2));
        }
        assert_eq!(one.set(Peer(0), 90 * MIB), Ok(()));
        assert_eq!(other.set(Peer(0), 20 * MIB), Ok(()), "it has less than its part");
        let over = Over { peer: Peer(0), share: Share::All, bytes: 111 * MIB, max: 100 * MIB };
        assert_eq!(one.set(Peer(1), MIB), Err(over));
        one.close(Peer(0));
        assert_eq!((one.set(Peer(1), 2 * MIB), pool.bytes()), (Ok(()), 22 * MIB));
        drop(other);
        assert_eq!(pool.bytes(), 2 * MIB);
    }

    #[test]
    fn parts_of_what_is_retained_together_count() {
        let mut charges = charges(&[1, 2]);
        assert_eq!(charges.set(Peer(0), 90), Ok(()));
        charges.set_common(150);
        let parts = BTreeMap::from([(Peer(0), 10), (Peer(1), 140)]);
        assert_eq!(charges.check(&parts, 0), Err(Over { peer: Peer(1), share: Share::All, bytes: 240, max: 200 }));
        charges.set_common(100);
        assert_eq!(charges.check(&parts, 0), Ok(()));
    }
}
