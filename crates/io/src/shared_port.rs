//! A UDP port of this host that programs of one user share.
//!
//! A far end that cannot be told of another port sends to the one that its protocol has, whichever of several programs at that address its
//! packets are for. So the packets carry a number, of which each program has a part of its own, and whoever receives another's packet hands
//! it on. The table of who has which part is a file in [`runtime::folder`], mapped by each of the programs: nothing is read from it while
//! packets wait.
//!
//! | bytes | of each part's entry |
//! |---|---|
//! | 8 | the token that what is handed on begins with |
//! | 8 | the UDP port at which it is received; 0 for none yet |
//!
//! A part is taken as long as its byte of the file is locked, so that one that was killed keeps none.

use crate::owner::{DatagramOwner, datagram_owner, network_number};
use crate::shared_memory::SharedMemory;
use crate::{process, random_bits, runtime};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The parts that numbers are divided into, which are the most programs that share a port.
const PARTS: u8 = 64;
/// Bytes of the entry of a part.
const ENTRY: usize = 16;
/// Bytes of the table.
const TABLE: usize = ENTRY * PARTS as usize;
/// Attempts to open a table that its last user does not remove at the same time.
const ATTEMPTS: u32 = 16;

/// A part of the numbers at a UDP address that several programs of this user share.
pub struct SharedPort {
    address: SocketAddr,
    path: PathBuf,
    file: File,
    table: Mutex<SharedMemory>,
    part: u8,
    token: u64,
}

/// Where a program receives what others hand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) token: u64,
    pub(crate) port: u16,
}

impl SharedPort {
    /// The parts that numbers are divided into.
    pub const PARTS: u8 = PARTS;

    /// Takes a part of the numbers at this address, at random among those that are free.
    ///
    /// # Errors
    /// Returns the operating system's error if this user has no folder for the table, and `AddrInUse` if all parts are taken.
    pub fn join(address: SocketAddr) -> io::Result<Self> {
        // An address means something else in another network of this host.
        let network = network_number().unwrap_or_default();
        let name = format!("udp-{network}-{}-{}", address.ip(), address.port());
        let path = runtime::folder()?.join(name);
        let first = (random_bits() % u64::from(PARTS)) as u8;
        for _ in 0..ATTEMPTS {
            let file = process::open_private(&path)?;
            let free = (0..PARTS).map(|offset| (first + offset) % PARTS);
            for part in free {
                if !process::lock_part(&file, (part.into(), 1))? {
                    continue;
                }
                // Its last user may have removed it meanwhile.
                let is_there = std::fs::symlink_metadata(&path)
                    .is_ok_and(|there| file.metadata().is_ok_and(|here| here.ino() == there.ino()));
                if !is_there {
                    break;
                }
                let table = Mutex::new(SharedMemory::of_file(file.as_fd(), TABLE)?);
                let shared = SharedPort { address, path, file, table, part, token: random_bits() };
                shared.publish(0);
                return Ok(shared);
            }
        }
        Err(ErrorKind::AddrInUse.into())
    }

    /// Returns the address that is shared.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the part that is this program's, which is below [`SharedPort::PARTS`].
    #[must_use]
    pub fn part(&self) -> u8 {
        self.part
    }

    /// Returns who has an address that cannot be shared, and the remedy, for an error.
    #[must_use]
    pub fn obstacle(address: SocketAddr) -> String {
        let user = process::user();
        match datagram_owner(address) {
            Some(DatagramOwner::Kernel) => {
                "the kernel has that port, as its own rxe does: remove it (`rdma link delete`)".into()
            }
            Some(DatagramOwner::User(owner)) if owner == user => {
                "another program of this user has that port and does not share it: stop it".into()
            }
            Some(DatagramOwner::User(owner)) => format!(
                "a program of user {owner} has that port, and only programs of one user share it (this one is of user {user}): stop it"
            ),
            None => "another program has that port: stop it".into(),
        }
    }

    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// Tells the others of the port at which this program receives what they hand on.
    pub(crate) fn publish(&self, port: u16) {
        let (table, at) = (self.table(), ENTRY * usize::from(self.part));
        table.word64(at).store(self.token, Ordering::Relaxed);
        table.word64(at + 8).store(port.into(), Ordering::Release);
    }

    /// Returns where the program receives that has a part now.
    pub(crate) fn door(&self, part: u8) -> Option<Door> {
        let is_taken = part < PARTS && process::is_part_locked(&self.file, (part.into(), 1)).unwrap_or(false);
        let (table, at) = (self.table(), ENTRY * usize::from(part));
        let port = is_taken.then(|| table.word64(at + 8).load(Ordering::Acquire))?;
        let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
        Some(Door { token: table.word64(at).load(Ordering::Relaxed), port })
    }

    fn table(&self) -> MutexGuard<'_, SharedMemory> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SharedPort {
    fn drop(&mut self) {
        self.publish(0);
        // Whoever has all of it is alone with it.
        if process::lock(&self.file).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl fmt::Debug for SharedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPort").field("address", &self.address).field("part", &self.part).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns an address that no other test has.
    fn address(port: u16) -> SocketAddr {
        let [_, ip @ ..] = std::process::id().to_be_bytes();
        SocketAddr::new([127, ip[0], ip[1], ip[2]].into(), port)
    }

    #[test]
    fn each_program_has_a_part_and_knows_where_the_others_receive() {
        let all: Vec<_> = (0..PARTS).map(|_| SharedPort::join(address(1)).expect("there is one for each")).collect();
        assert_eq!(SharedPort::join(address(1)).unwrap_err().kind(), ErrorKind::AddrInUse);
        assert_eq!(all.iter().map(SharedPort::part).collect::<BTreeSet<_>>().len(), usize::from(PARTS));
        let [one, other] = [&all[0], &all[1]];
        assert_eq!(one.door(other.part()), None, "nothing is known yet");
        other.publish(7777);
        assert_eq!(one.door(other.part()), Some(Door { token: other.token(), port: 7777 }));
        // Another address is another table.
        let elsewhere = SharedPort::join(address(2)).expect("it is free");
        assert_eq!(elsewhere.door(other.part()), None);
    }

    #[test]
    fn the_table_goes_with_its_last_user() {
        let one = SharedPort::join(address(3)).expect("it is free");
        let other = SharedPort::join(address(3)).expect("there is one for each");
        let (path, part) = (one.path.clone(), one.part());
        one.publish(5);
        assert!(path.exists() && other.door(part).is_some());
        drop(one);
        assert!(path.exists() && other.door(part).is_none());
        drop(other);
        assert!(!path.exists());
    }
}
