//! Messages between two processes of one host, with descriptors: a Unix socket of sequenced packets.

use super::sys as memory_sys;
use crate::sys::{self, RawAddress};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Descriptors of a message at most.
pub const FILES_MAX: usize = 64;
/// Connections that may wait to be accepted.
const QUEUE: i32 = 128;

/// The outcome of [`Channel::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A message of this many bytes.
    Message(usize),
    /// No message has arrived.
    Nothing,
    /// The other process has closed the channel, or has ended.
    End,
}

/// One end of a connection between two processes of one host. No call waits.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// Connects to a listener by its path, or by its name behind an `@`.
    ///
    /// # Errors
    /// Returns `ConnectionRefused` or `NotFound` if nothing listens there, `WouldBlock` if too many connections wait there, and
    /// otherwise the operating system's error.
    pub fn connect(path: &str) -> io::Result<Self> {
        let socket = new_socket()?;
        sys::connect(socket.as_fd(), &RawAddress::path(path)?)?;
        Ok(Channel { socket })
    }

    /// Returns the user id of the process that connected, or that listened.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn user(&self) -> io::Result<u32> {
        sys::user_at_far_end(self.socket.as_fd())
    }

    /// Sends a message with descriptors, at most [`FILES_MAX`]. Returns `false` if there is no room for it now.
    ///
    /// # Errors
    /// Returns `InvalidInput` for an empty message or too many descriptors, and otherwise the operating system's error, for
    /// instance because the other process has closed the channel.
    pub fn send(&self, message: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<bool> {
        if message.is_empty() || files.len() > FILES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match memory_sys::send_with_files(self.socket.as_fd(), message, files) {
            Ok(()) => Ok(true),
            // Too many references: descriptors that were sent and not yet received count against the user's limit.
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::ETOOMANYREFS) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Receives the next message, and appends the descriptors that came with it.
    ///
    /// # Errors
    /// Returns `InvalidData` if the message is longer than the buffer, or came with more descriptors than [`FILES_MAX`] or than
    /// this process may open.
    pub fn receive(&self, message: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<Received> {
        let outcome = memory_sys::receive_with_files(self.socket.as_fd(), message, files);
        let (length, flags) = match outcome {
            Err(error) if sys::is_vain(&error) => return Ok(Received::Nothing),
            Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => return Ok(Received::End),
            other => other?,
        };
        if flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message longer than any that is sent"));
        }
        Ok(if length == 0 { Received::End } else { Received::Message(length) })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that accepts channels.
#[derive(Debug)]
pub struct ChannelListener {
    socket: OwnedFd,
}

impl ChannelListener {
    /// Listens at a path, or at a name without a file behind an `@`, which is gone with the listener.
    ///
    /// # Errors
    /// Returns `AddrInUse` if the name is taken, and otherwise the operating system's error.
    pub fn bind(path: &str) -> io::Result<Self> {
        let socket = new_socket()?;
        sys::bind(socket.as_fd(), &RawAddress::path(path)?)?;
        sys::listen(socket.as_fd(), QUEUE)?;
        Ok(ChannelListener { socket })
    }

    /// Accepts the next connection, if one waits.
    ///
    /// # Errors
    /// Returns the operating system's error, for instance because this process has too many open files.
    pub fn accept(&self) -> io::Result<Option<Channel>> {
        match sys::accept(self.socket.as_fd()) {
            Ok((socket, _)) => Ok(Some(Channel { socket })),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED) => Ok(None),
                _ => Err(error),
            },
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    sys::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::{ChannelSet, SharedMemory};
    use std::time::Duration;

    fn pair(name: &str) -> (Channel, Channel) {
        let path = format!("@hodo-channel-{name}-{}", std::process::id());
        let listener = ChannelListener::bind(&path).expect("a new name");
        assert!(listener.accept().expect("it listens").is_none());
        let near = Channel::connect(&path).expect("it listens");
        (near, listener.accept().expect("it listens").expect("one waits"))
    }

    #[test]
    fn passes_messages_and_files_in_order() {
        let (near, far) = pair("files");
        assert_eq!(near.user().expect("known"), crate::process::user());
        assert_eq!(far.user().expect("known"), crate::process::user());
        let memory = SharedMemory::create("hodo-test", 4096).expect("a little memory");
        memory.copy_in(0, b"shared").expect("it fits");
        let (mut bytes, mut files) = ([0; 16], Vec::new());
        assert_eq!(far.receive(&mut bytes, &mut files).expect("open"), Received::Nothing);
        let file = memory.file().expect("ours");
        assert!(near.send(b"one", &[file; FILES_MAX]).expect("open"));
        assert!(near.send(b"two", &[]).expect("open"));
        assert_eq!(far.receive(&mut bytes, &mut files).expect("open"), Received::Message(3));
        assert_eq!((&bytes[..3], files.len()), (&b"one"[..], FILES_MAX));
        let mut seen = [0; 6];
        SharedMemory::map(&files[FILES_MAX - 1], 4096).expect("sealed").copy_out(0, &mut seen).expect("it fits");
        assert_eq!(&seen, b"shared");
        files.clear();
        assert_eq!(far.receive(&mut bytes, &mut files).expect("open"), Received::Message(3));
        assert_eq!((&bytes[..3], files.len()), (&b"two"[..], 0));
        drop(near);
        assert_eq!(far.receive(&mut bytes, &mut files).expect("ended"), Received::End);
        assert!(far.send(b"gone", &[]).is_err());
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let (near, far) = pair("bounds");
        assert_eq!(near.send(&[], &[]).expect_err("empty").kind(), io::ErrorKind::InvalidInput);
        assert!(near.send(&[7; 17], &[]).expect("open"));
        let (mut bytes, mut files) = ([0; 16], Vec::new());
        assert_eq!(far.receive(&mut bytes, &mut files).expect_err("long").kind(), io::ErrorKind::InvalidData);
        let sent = (0..100_000).take_while(|_| near.send(&[7; 16], &[]).expect("open")).count();
        assert!((16..100_000).contains(&sent), "{sent} messages were sent that nobody received");
        assert!(Channel::connect("@hodo-channel-nobody").is_err());
    }

    #[test]
    fn a_set_names_what_is_ready() {
        let (near, far) = pair("set");
        let mut set = ChannelSet::new().expect("a set");
        set.add(&far, 5).expect("a socket");
        set.wait(Some(Duration::ZERO)).expect("it polls");
        assert_eq!(set.next(), None);
        near.send(b"x", &[]).expect("open");
        set.wait(None).expect("it polls");
        assert_eq!((set.next(), set.next()), (Some(5), None));
        far.receive(&mut [0; 4], &mut Vec::new()).expect("open");
        near.send(b"y", &[]).expect("open");
        set.wait(None).expect("it polls");
        set.remove(&far, 5);
        assert_eq!(set.next(), None);
        set.add(&far, 6).expect("a socket");
        drop(near);
        set.wait(None).expect("it polls");
        assert_eq!(set.next(), Some(6));
        drop(far);
        set.wait(Some(Duration::ZERO)).expect("it polls");
        assert_eq!(set.next(), None);
    }
}
