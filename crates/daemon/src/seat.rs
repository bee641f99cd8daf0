//! A daemon's name on its host: a Unix socket that is a file of that name, in a folder that nobody else can put anything into.
//!
//! `NAME.sock` is the socket, and `NAME.lock` is locked as long as the daemon runs, so that a socket that was left behind misleads nobody.
//! The lock's file holds the number of the process and, on a second line, the address of its pages and the number of the network that it is in.

use crate::pid_file::front;
use crate::{Error, PidFile};
use hodo_io::{network_number, process, runtime};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a name at most.
const NAME_MAX: usize = 64;
/// Bytes of a path at most that a Unix socket can have.
const PATH_MAX: usize = 107;
/// Daemons of one usual name at most, and files of a folder that are looked at.
const DAEMONS_MAX: usize = 1000;
/// Bytes of a lock's file that are read.
const LOCK_MAX: u64 = 128;
/// The right to connect, for the owner alone.
const SOCKET_MODE: u32 = 0o700;
const LOCK: &str = "lock";
const SOCKET: &str = "sock";

/// A property that a daemon has because somebody asked for it, or that is the usual one or the next that is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<T> {
    /// Asked for: if another has it, the daemon does not start.
    Asked(T),
    /// Usual: if another has it, the daemon takes the next.
    Usual(T),
}

impl<T> Choice<T> {
    /// Returns what was asked for, if anything was.
    pub fn of(asked: Option<T>, usual: impl Into<T>) -> Self {
        asked.map_or_else(|| Choice::Usual(usual.into()), Choice::Asked)
    }
}

/// Parses the name of a daemon: up to 64 letters, digits and `-._`, of which the first is a letter.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn name(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
        && text.len() <= NAME_MAX;
    let wrong =
        || format!("`{}` is no name: write up to {NAME_MAX} letters, digits and -._, as hub-2", text.escape_debug());
    if is_name { Ok(text.to_owned()) } else { Err(wrong()) }
}

/// A name that this process has on its host, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
    lock: PidFile,
}

impl Seat {
    /// Takes a name; of a usual one that another daemon has the next: `hub`, `hub-2`, `hub-3`.
    pub(crate) fn take(choice: &Choice<String>) -> Result<Self, Error> {
        let folder = runtime::folder().map_err(|why| Error::Folder { why: why.to_string() })?;
        let (first, most) = match choice {
            Choice::Asked(name) => (name, 1),
            Choice::Usual(name) => (name, DAEMONS_MAX),
        };
        name(first).map_err(|why| Error::Folder { why })?;
        for number in 1..=most {
            let name = if number == 1 { first.clone() } else { format!("{first}-{number}") };
            let socket = folder.join(format!("{name}.{SOCKET}"));
            if socket.as_os_str().len() > PATH_MAX {
                return Err(Error::LongPath { socket, most: PATH_MAX });
            }
            match PidFile::create(&socket.with_extension(LOCK)) {
                Ok(lock) => return Ok(Seat { name, socket, lock }),
                Err(Error::Running { .. }) if number < most => {}
                Err(Error::Running { pid, .. }) => return Err(Error::NameTaken { name, pid }),
                Err(other) => return Err(other),
            }
        }
        unreachable!("the last one returns")
    }

    /// Writes down where the pages are.
    pub(crate) fn set_pages(&mut self, pages: SocketAddr) -> Result<(), Error> {
        let network = network_number().map(|number| format!(" {number}"));
        self.lock.add_line(&format!("{pages}{}", network.unwrap_or_default()))
    }

    /// Leaves the socket, which has been bound, to the owner alone.
    pub(crate) fn close_to_others(&self) -> std::io::Result<()> {
        fs::set_permissions(&self.socket, fs::Permissions::from_mode(SOCKET_MODE))
    }
}

/// A daemon that runs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The name.
    pub name: String,
    /// The Unix socket.
    pub socket: PathBuf,
    /// The user's id: that of the socket's folder.
    pub owner: u32,
    /// The number of the process.
    pub pid: u32,
    /// The address of the pages.
    pub pages: SocketAddr,
    /// The number of the network that the address belongs to.
    pub network: Option<u64>,
}

/// Returns the daemons of a user, or without one of this user, of root, and for root of services; and why folders were passed over.
#[must_use]
pub fn running(user: Option<u32>) -> (Vec<Running>, Vec<String>) {
    let runtime::Places { found, refused } = runtime::places(user);
    let mut all = Vec::new();
    for runtime::Place { folder, owner } in found {
        // A folder that this user may not enter has nothing for it.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let locks =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|is| is == LOCK));
        all.extend(locks.take(DAEMONS_MAX).filter_map(|lock| daemon_of(&lock, owner)));
    }
    all.sort_by(|a, b| (&a.name, &a.socket).cmp(&(&b.name, &b.socket)));
    (all, refused)
}

/// Returns the daemon that holds a lock, if one does.
fn daemon_of(lock: &Path, owner: u32) -> Option<Running> {
    let name = name(lock.file_stem()?.to_str()?).ok()?;
    let mut file = process::open_existing(lock).ok().filter(|file| process::is_locked(file).unwrap_or(false))?;
    let text = front(&mut file, LOCK_MAX)?;
    let mut lines = text.lines();
    let pid = lines.next()?.parse().ok()?;
    let mut place = lines.next()?.split(' ');
    let pages = place.next()?.parse().ok()?;
    let network = place.next().and_then(|number| number.parse().ok());
    Some(Running { name, socket: lock.with_extension(SOCKET), owner, pid, pages, network })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unique(name: &str) -> String {
        format!("{name}-{}", std::process::id())
    }

    #[test]
    fn names_are_checked() {
        for text in ["hub", "hub-2", "Farm.A_1"] {
            assert_eq!(name(text).as_deref(), Ok(text));
        }
        for text in ["", "2hub", ".hub", "a/b", "..", "a b", "hub\n", "127.0.0.1:9203", "ü", &"a".repeat(65)] {
            assert!(name(text).is_err_and(|why| why.contains("is no name") && !why.contains('\n')), "{text}");
        }
    }

    #[test]
    fn a_usual_name_is_followed_by_the_next_and_one_that_was_asked_for_is_not() {
        let usual = unique("seat");
        let first = Seat::take(&Choice::Usual(usual.clone())).expect("a folder");
        let second = Seat::take(&Choice::Usual(usual.clone())).expect("a folder");
        assert_eq!((&first.name, &second.name), (&usual, &format!("{usual}-2")));
        let taken = Seat::take(&Choice::Asked(usual.clone())).expect_err("the first has it");
        assert_eq!(taken, Error::NameTaken { name: usual.clone(), pid: Some(std::process::id()) });
        drop(first);
        assert_eq!(Seat::take(&Choice::Asked(usual.clone())).expect("it is free again").name, usual);
    }

    #[test]
    fn those_that_run_are_found_with_their_pages() {
        let mine = unique("found");
        let find = || running(None).0.into_iter().find(|daemon| daemon.name == mine);
        let mut seat = Seat::take(&Choice::Asked(mine.clone())).expect("a folder");
        let pages = ([127, 0, 0, 1], 9203).into();
        seat.set_pages(pages).expect("it is open");
        let found = find().expect("it is there");
        assert_eq!((found.pages, found.pid, found.owner), (pages, std::process::id(), process::user()));
        assert_eq!(found.socket, seat.socket);
        drop(seat);
        assert_eq!(find(), None);
    }
}
