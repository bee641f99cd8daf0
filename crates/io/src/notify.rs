//! Notifications to a service manager about the state of a daemon, as sd_notify(3) describes them.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The timeout of a message, after which a manager that does not take it does not get it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Sends one message to the socket that the manager has named: a path, or an abstract name behind an `@`.
///
/// # Errors
/// Returns `Unsupported` for any other name, and otherwise the operating system's error if the socket does not take the
/// message in time.
pub fn notify(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(socket)?,
        _ => {
            let text = format!("`{}` is neither a path nor an abstract socket", socket.display());
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
    };
    let sender = UnixDatagram::unbound()?;
    sender.set_write_timeout(Some(PATIENCE))?;
    sender.send_to_addr(message.as_bytes(), &address).map(drop)
}

/// Returns microseconds on the system's monotonic clock, by which a manager orders messages.
#[must_use]
pub fn monotonic_us() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is to a whole timespec; all-zero is a valid value of it, so it may be read even if the call
    // failed.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(manager: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).expect("a message is there");
        String::from_utf8(buffer[..length].to_vec()).expect("it is text")
    }

    #[test]
    fn reaches_a_path_and_an_abstract_name() {
        let name = format!("hodo-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let manager = UnixDatagram::bind(&path).expect("a new name");
        notify(path.as_os_str(), "READY=1").expect("it listens");
        assert_eq!(heard(&manager), "READY=1");
        std::fs::remove_file(&path).expect("it was made");

        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a short name"));
        notify(OsStr::new(&format!("@{name}")), "STATUS=well").expect("it listens");
        assert_eq!(heard(&manager.expect("a new name")), "STATUS=well");
    }

    #[test]
    fn what_cannot_be_reached_is_told() {
        assert_eq!(
            notify(OsStr::new("vsock:2:1234"), "").map_err(|error| error.kind()),
            Err(io::ErrorKind::Unsupported)
        );
        assert!(notify(OsStr::new("/nowhere/at/all"), "READY=1").is_err());
    }

    #[test]
    fn the_clock_advances() {
        let before = monotonic_us();
        while monotonic_us() == before {}
        assert!(monotonic_us() > before);
    }
}
