use crate::connect::{prepare_stream, socket_for};
use crate::room::{Next, Room};
use crate::sys::{self, RawAddress};
use crate::{Mailbox, PathOptions, SocketSettings};
use hodo_machine::{Address, Instant, Transport};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The number of connections that may wait to be accepted.
const QUEUE: i32 = 4096;
/// The number of connections accepted at once by a thread that also serves.
const AT_ONCE: usize = 64;
/// The time for which a busy thread serves before it checks its listener again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// The time for which a listener is left alone when descriptors or memory have run out.
const SHORT: Duration = Duration::from_millis(50);

/// A socket that accepts TCP or Unix connections.
pub struct Listener {
    fd: OwnedFd,
    address: Address,
    unlink: Option<String>,
    /// Counts the connections that were closed at once.
    turned_away: Arc<AtomicU64>,
}

/// A connection and the address of its client.
pub(crate) type Accepted = (OwnedFd, Address);

impl Listener {
    /// Listens at an address; port 0 is any free one. A socket's path that a killed server left behind is replaced;
    /// a path that begins with `@` is a name without a file.
    ///
    /// # Errors
    /// Returns `AddrInUse` if another server listens there, `AlreadyExists` if the path is not a socket's, and
    /// otherwise the operating system's error.
    pub fn bind(address: &Address) -> io::Result<Self> {
        Self::bind_with(address, &PathOptions::default())
    }

    /// Listens as [`Listener::bind`] does. The connections inherit the options.
    ///
    /// # Errors
    /// Returns the errors of [`Listener::bind`], or a [`PathError`](crate::PathError) within an error of the same kind.
    pub fn bind_with(address: &Address, path: &PathOptions) -> io::Result<Self> {
        let (fd, raw) = socket_for(address, libc::SOCK_STREAM)?;
        sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        if matches!(address, Address::Tcp(_)) {
            path.prepare(fd.as_fd(), address)?;
        }
        let unlink = match address {
            Address::Path(path) if !path.starts_with('@') => {
                remove_stale(path)?;
                Some(path.clone())
            }
            _ => None,
        };
        sys::bind(fd.as_fd(), &raw)?;
        sys::listen(fd.as_fd(), QUEUE)?;
        let address = bound(&fd, address)?;
        Ok(Listener { fd, address, unlink, turned_away: Arc::default() })
    }

    /// Returns the address where the listener accepts connections.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sets the counter of connections that are closed at once because the limit on peers is reached.
    #[must_use]
    pub(crate) fn counting(self, turned_away: &Arc<AtomicU64>) -> Self {
        let mut listener = self;
        listener.turned_away = Arc::clone(turned_away);
        listener
    }

    /// Makes [`Listener::accept`] return at once if no connection waits.
    pub(crate) fn set_impatient(&self) -> io::Result<()> {
        sys::set_nonblocking(self.fd.as_fd(), true)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Accepts the next connection, if one comes in time. The failure of a single connection is no error.
    pub(crate) fn accept(&self) -> io::Result<Option<(OwnedFd, RawAddress)>> {
        match sys::accept(self.fd.as_fd()) {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.unlink {
            // Nothing is lost if it is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Sets up a connection; `None` if it has ended meanwhile.
pub(crate) fn prepared((fd, from): (OwnedFd, RawAddress), settings: &SocketSettings) -> Option<Accepted> {
    let from = from.to_ip().map_or_else(|| Address::Path(String::new()), Address::Tcp);
    prepare_stream(fd.as_fd(), &from, settings).ok()?;
    Some((fd, from))
}

/// Returns whether descriptors or memory have run out: then existing connections go on, and the next one waits in the
/// queue.
pub(crate) fn is_short(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// The origin of connections that a machine has not opened.
pub(crate) enum Arrivals {
    /// No connections come.
    Nowhere,
    /// A mailbox, if another thread accepts them.
    Mailbox(Arc<Mailbox>),
    /// A listener, if the serving thread accepts them: a process with one thread pays less for each of its system
    /// calls.
    Listener {
        listener: Listener,
        /// The time when it is checked again, however busy the thread is.
        look_at: Instant,
        /// Whether it is left alone until then, because descriptors, memory or places have run out.
        rests: bool,
        room: Room,
    },
}

impl Arrivals {
    /// Creates an origin that accepts the connections to `listener`.
    pub(crate) fn listening(listener: Listener) -> io::Result<Self> {
        listener.set_impatient()?;
        Ok(Arrivals::Listener { listener, look_at: Instant::ZERO, rests: false, room: Room::default() })
    }

    /// Returns the descriptor that a poller is to watch.
    pub(crate) fn watched(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Arrivals::Nowhere => None,
            Arrivals::Mailbox(mailbox) => Some(mailbox.event()),
            Arrivals::Listener { listener, .. } => Some(listener.fd.as_fd()),
        }
    }

    /// Returns whether to check for connections now; `heard` is the last known time.
    #[inline]
    pub(crate) fn is_due(&self, heard: Instant) -> bool {
        match self {
            Arrivals::Nowhere => false,
            Arrivals::Mailbox(mailbox) => mailbox.has_some(),
            Arrivals::Listener { look_at, .. } => heard >= *look_at,
        }
    }

    /// Returns whether the listener is left alone for now, so that the poller is not to watch it: those who are connected would wait
    /// for it in each turn.
    pub(crate) fn rests(&self) -> bool {
        matches!(self, Arrivals::Listener { rests: true, .. })
    }

    /// Takes the connections that have come. A listener accepts as many as there are `places` for, and leaves the others in
    /// the kernel's queue until there are more; it closes them if the machine, told of all its peers, makes none.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        places: usize,
        all_told: bool,
        settings: &SocketSettings,
    ) -> io::Result<Vec<Accepted>> {
        let Arrivals::Listener { listener, look_at, rests, room } = self else {
            return Ok(if let Arrivals::Mailbox(mailbox) = self { mailbox.take() } else { Vec::new() });
        };
        if *rests && now < *look_at {
            return Ok(Vec::new());
        }
        (*look_at, *rests) = (now + LOOK_AGAIN, false);
        let mut taken = Vec::new();
        // Accepting in vain costs several microseconds, polling a fraction of one.
        if !sys::is_readable(listener.fd.as_fd())? {
            return Ok(taken);
        }
        for _ in 0..AT_ONCE {
            let next = room.next(now, taken.len() >= places, all_told && taken.is_empty());
            if let Next::Waits(until) = next {
                (*look_at, *rests) = (until, true);
                break;
            }
            match listener.accept() {
                Ok(Some(accepted)) if next == Next::Accepted => taken.extend(prepared(accepted, settings)),
                Ok(Some(_)) => {
                    listener.turned_away.fetch_add(1, Ordering::Relaxed);
                }
                Ok(None) => break,
                Err(error) if is_short(&error) => {
                    (*look_at, *rests) = (now + SHORT, true);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// Records the end of a connection, which may have come from a mailbox: there is a place for another one.
    pub(crate) fn left(&mut self, mailed: bool) {
        match self {
            Arrivals::Mailbox(mailbox) if mailed => mailbox.left(),
            Arrivals::Listener { look_at, rests: true, .. } => *look_at = Instant::ZERO,
            _ => {}
        }
    }
}

/// Removes a socket's path that a killed server left behind; a path that can be connected to is still in use.
fn remove_stale(path: &str) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("`{path}` is in use by another server")));
            }
            std::fs::remove_file(path)
        }
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("`{path}` exists and is not a socket"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the address that a socket was bound to.
pub(crate) fn bound(socket: &OwnedFd, asked: &Address) -> io::Result<Address> {
    let kind = asked.transport().unwrap_or(Transport::Stream);
    Ok(sys::local_address(socket.as_fd())?.to_ip().map_or_else(|| asked.clone(), |ip| Address::of(kind, ip)))
}
