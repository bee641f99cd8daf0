//! Thin safe forms of the system calls that the transports need. Errors are the operating system's own.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Returns the result of a system call that is negative on failure.
pub(crate) fn check(answer: c_int) -> io::Result<c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn check_size(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// A socket's address in the kernel's form.
#[derive(Clone, Copy)]
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl RawAddress {
    /// Creates an address with room for any family.
    pub(crate) fn empty() -> Self {
        // SAFETY: sockaddr_storage is plain data for which all zeroes is a valid value (family AF_UNSPEC).
        let storage = unsafe { MaybeUninit::<libc::sockaddr_storage>::zeroed().assume_init() };
        RawAddress { storage, length: size_of::<libc::sockaddr_storage>() as libc::socklen_t }
    }

    fn holding<T: Copy>(value: T) -> Self {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        let mut address = Self::empty();
        // SAFETY: T is a sockaddr_* (plain data, asserted to fit), and sockaddr_storage is aligned for each of them.
        unsafe { (&raw mut address.storage).cast::<T>().write(value) };
        address.length = size_of::<T>() as libc::socklen_t;
        address
    }

    /// Creates the kernel's form of an IP address and port.
    pub(crate) fn ip(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self::holding(libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(v6) => Self::holding(libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            }),
        }
    }

    /// Creates the kernel's form of a Unix socket's path; a path that is too long or contains a zero byte is an error. A name that
    /// begins with `@` is in Linux's abstract name space: no file, and gone with its socket.
    pub(crate) fn path(path: &str) -> io::Result<Self> {
        let mut raw = libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
        if path.len() >= raw.sun_path.len() || path.as_bytes().contains(&0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{path}` is too long for the path of a Unix socket: at most {} bytes", raw.sun_path.len() - 1),
            ));
        }
        for (place, byte) in raw.sun_path.iter_mut().zip(path.bytes()) {
            *place = byte as libc::c_char;
        }
        if !path.starts_with('@') {
            return Ok(Self::holding(raw));
        }
        raw.sun_path[0] = 0;
        let mut address = Self::holding(raw);
        // Zeros behind such a name would be part of it.
        address.length = (std::mem::offset_of!(libc::sockaddr_un, sun_path) + path.len()) as libc::socklen_t;
        Ok(address)
    }

    /// Returns the IP address and port, if it is an IP address.
    pub(crate) fn to_ip(self) -> Option<SocketAddr> {
        match c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that the kernel or `holding` wrote a sockaddr_in here.
                let raw = unsafe { (&raw const self.storage).cast::<libc::sockaddr_in>().read() };
                let ip = Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr));
                Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: the family says that the kernel or `holding` wrote a sockaddr_in6 here.
                let raw = unsafe { (&raw const self.storage).cast::<libc::sockaddr_in6>().read() };
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                let port = u16::from_be(raw.sin6_port);
                Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    /// Returns the path of a Unix socket; an empty one if it has none.
    pub(crate) fn to_path(self) -> String {
        if c_int::from(self.storage.ss_family) != libc::AF_UNIX {
            return String::new();
        }
        // SAFETY: the family says that the kernel or `holding` wrote a sockaddr_un here.
        let raw = unsafe { (&raw const self.storage).cast::<libc::sockaddr_un>().read() };
        let is_abstract = raw.sun_path[0] == 0 && raw.sun_path[1] != 0;
        let name = raw.sun_path.iter().skip(usize::from(is_abstract)).map(|byte| *byte as u8);
        let bytes: Vec<u8> =
            is_abstract.then_some(b'@').into_iter().chain(name.take_while(|byte| *byte != 0)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the pointer and length that system calls read.
    pub(crate) fn as_parts(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        ((&raw const self.storage).cast(), self.length)
    }

    /// Returns the pointer and the room that system calls write.
    pub(crate) fn as_room(&mut self) -> (*mut libc::sockaddr, libc::socklen_t) {
        ((&raw mut self.storage).cast(), size_of::<libc::sockaddr_storage>() as libc::socklen_t)
    }
}

/// Creates a socket that is closed on exec.
pub(crate) fn socket(family: c_int, kind: c_int) -> io::Result<OwnedFd> {
    socket_of(family, kind, 0)
}

/// Creates a socket of this protocol that is closed on exec.
pub(crate) fn socket_of(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; a non-negative answer is a descriptor that nobody else owns.
    unsafe { check(libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Binds a socket to an address.
pub(crate) fn bind(fd: BorrowedFd<'_>, address: &RawAddress) -> io::Result<()> {
    let (pointer, length) = address.as_parts();
    // SAFETY: pointer and length are those of a live, initialised sockaddr_storage.
    unsafe { check(libc::bind(fd.as_raw_fd(), pointer, length)).map(drop) }
}

/// Begins to connect, and returns whether the socket is connected already.
pub(crate) fn connect(fd: BorrowedFd<'_>, address: &RawAddress) -> io::Result<bool> {
    let (pointer, length) = address.as_parts();
    // SAFETY: pointer and length are those of a live, initialised sockaddr_storage.
    match unsafe { check(libc::connect(fd.as_raw_fd(), pointer, length)) } {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a socket accept connections.
pub(crate) fn listen(fd: BorrowedFd<'_>, queue: c_int) -> io::Result<()> {
    // SAFETY: takes no pointers.
    unsafe { check(libc::listen(fd.as_raw_fd(), queue)).map(drop) }
}

/// Accepts the next connection, and returns it with the address of its client.
pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<(OwnedFd, RawAddress)> {
    let mut from = RawAddress::empty();
    let (pointer, mut length) = from.as_room();
    // SAFETY: `pointer` has room for `length` bytes; a non-negative answer is a descriptor that nobody else owns.
    let accepted = unsafe {
        let fd = check(libc::accept4(fd.as_raw_fd(), pointer, &raw mut length, libc::SOCK_CLOEXEC))?;
        OwnedFd::from_raw_fd(fd)
    };
    Ok((accepted, from))
}

/// Ends a connection both ways, whoever else holds its descriptor.
pub(crate) fn shut_down(fd: BorrowedFd<'_>) {
    // SAFETY: takes no pointers. One that has ended already needs nothing.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Ends what goes out over a connection: its far end reads the end behind everything that was sent, and may go on sending.
pub(crate) fn end_sending(fd: BorrowedFd<'_>) {
    // SAFETY: takes no pointers. A connection that has ended needs nothing.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) };
}

/// Returns the user id of the process that connected a Unix socket, or that listened for it.
pub(crate) fn user_at_far_end(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the place has room for `length` bytes, and any bytes are a ucred.
    let outcome = unsafe {
        let place = (&raw mut credentials).cast();
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut length)
    };
    check(outcome).map(|_| credentials.uid)
}

/// Returns the address at this end of a socket.
pub(crate) fn local_address(fd: BorrowedFd<'_>) -> io::Result<RawAddress> {
    let mut address = RawAddress::empty();
    let (pointer, mut length) = address.as_room();
    // SAFETY: `pointer` has room for `length` bytes.
    unsafe { check(libc::getsockname(fd.as_raw_fd(), pointer, &raw mut length))? };
    Ok(address)
}

/// Returns the address at the far end of a connected socket.
pub(crate) fn remote_address(fd: BorrowedFd<'_>) -> io::Result<RawAddress> {
    let mut address = RawAddress::empty();
    let (pointer, mut length) = address.as_room();
    // SAFETY: `pointer` has room for `length` bytes.
    unsafe { check(libc::getpeername(fd.as_raw_fd(), pointer, &raw mut length))? };
    Ok(address)
}

/// Sets an option that is one integer.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: pointer and size are those of `value`, which lives through the call.
    unsafe { check(libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), size)).map(drop) }
}

/// Reads an option that is one integer.
pub(crate) fn option(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<c_int> {
    let (mut value, mut size) = (0 as c_int, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: pointer and size are those of `value`, which lives through the call.
    unsafe { check(libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut size))? };
    Ok(value)
}

/// Sets how long a blocking receive or send may take.
pub(crate) fn set_timeout(fd: BorrowedFd<'_>, name: c_int, span: Duration) -> io::Result<()> {
    let value = libc::timeval { tv_sec: span.as_secs() as i64, tv_usec: i64::from(span.subsec_micros()) };
    let size = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: pointer and size are those of `value`, which lives through the call.
    unsafe {
        check(libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, (&raw const value).cast(), size)).map(drop)
    }
}

/// Makes closing a stream cut it, so that no TIME-WAIT state is left.
pub(crate) fn set_cut_on_close(fd: BorrowedFd<'_>) -> io::Result<()> {
    let value = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: pointer and size are those of `value`, which lives through the call.
    unsafe {
        let answer =
            libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const value).cast(), size);
        check(answer).map(drop)
    }
}

/// Chooses a TCP congestion control by name.
pub(crate) fn set_congestion(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    set_text(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name)
}

/// Sets an option that is a text.
pub(crate) fn set_text(fd: BorrowedFd<'_>, level: c_int, name: c_int, text: &str) -> io::Result<()> {
    let (pointer, length) = (text.as_ptr().cast(), text.len() as libc::socklen_t);
    // SAFETY: pointer and length are those of `text`, which lives through the call.
    unsafe { check(libc::setsockopt(fd.as_raw_fd(), level, name, pointer, length)).map(drop) }
}

/// Sets the most bytes per second that a TCP socket sends.
pub(crate) fn set_pace(fd: BorrowedFd<'_>, bytes_per_s: u64) -> io::Result<()> {
    let size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: pointer and size are those of `bytes_per_s`, which lives through the call.
    unsafe {
        let pointer = (&raw const bytes_per_s).cast();
        check(libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, pointer, size)).map(drop)
    }
}

/// Returns the TCP congestion control in use.
pub(crate) fn congestion(fd: BorrowedFd<'_>) -> io::Result<String> {
    text(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION)
}

/// Reads an option that is a text of at most 16 bytes.
pub(crate) fn text(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<String> {
    let mut text = [0u8; 16];
    let mut length = text.len() as libc::socklen_t;
    // SAFETY: pointer and length are those of `text`, which lives through the call.
    unsafe {
        let pointer = text.as_mut_ptr().cast();
        check(libc::getsockopt(fd.as_raw_fd(), level, name, pointer, &raw mut length))?;
    }
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// Reads the kernel's `struct tcp_info` for this connection, and returns how many bytes the kernel knows.
pub(crate) fn tcp_info(fd: BorrowedFd<'_>, bytes: &mut [u8; 256]) -> io::Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the pointer has room for `length` bytes, of which the kernel fills some and says how many.
    unsafe {
        let pointer = bytes.as_mut_ptr().cast();
        check(libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, pointer, &raw mut length))?;
    }
    Ok(length as usize)
}

/// Switches a descriptor between returning at once and waiting.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // SAFETY: takes no pointers.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        let flags = if on { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags)).map(drop)
    }
}

/// Receives into `buffer`; 0 is the end of a stream.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8], flags: c_int) -> io::Result<usize> {
    // The system call itself: the library's function is a cancellation point, which costs twenty nanoseconds.
    // SAFETY: pointer and length are those of `buffer`, which is initialised and writable; no name is asked for.
    check_size(unsafe {
        let (pointer, length) = (buffer.as_mut_ptr(), buffer.len());
        libc::syscall(libc::SYS_recvfrom, fd.as_raw_fd(), pointer, length, flags, 0usize, 0usize) as isize
    })
}

/// Receives into `first`, and the bytes that do not fit there into `second`, with one call; 0 is the end of a stream.
#[inline]
pub(crate) fn receive_both(fd: BorrowedFd<'_>, first: &mut [u8], second: &mut [u8], flags: c_int) -> io::Result<usize> {
    let mut slices = [IoSliceMut::new(first), IoSliceMut::new(second)];
    // SAFETY: all zeroes is a valid msghdr: no name, no control.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = slices.as_mut_ptr().cast();
    header.msg_iovlen = slices.len();
    // SAFETY: IoSliceMut is ABI-compatible with iovec (documented); both slices are writable and live through the call.
    check_size(unsafe { libc::syscall(libc::SYS_recvmsg, fd.as_raw_fd(), &raw mut header, flags) as isize })
}

/// Sends one buffer, and returns how many bytes were taken.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8], flags: c_int) -> io::Result<usize> {
    let flags = flags | libc::MSG_NOSIGNAL;
    // SAFETY: pointer and length are those of `bytes`; no name is given.
    check_size(unsafe {
        libc::syscall(libc::SYS_sendto, fd.as_raw_fd(), bytes.as_ptr(), bytes.len(), flags, 0usize, 0usize) as isize
    })
}

/// Sends slices one behind the other, and returns how many bytes were taken.
#[inline]
pub(crate) fn send_vectored(fd: BorrowedFd<'_>, slices: &[IoSlice<'_>], flags: c_int) -> io::Result<usize> {
    if let [one] = slices {
        return send(fd, one, flags);
    }
    // SAFETY: all zeroes is a valid msghdr: no name, no control.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = slices.as_ptr().cast_mut().cast();
    header.msg_iovlen = slices.len();
    let flags = flags | libc::MSG_NOSIGNAL;
    // SAFETY: IoSlice is ABI-compatible with iovec (documented), and sendmsg only reads through msg_iov.
    check_size(unsafe { libc::syscall(libc::SYS_sendmsg, fd.as_raw_fd(), &raw const header, flags) as isize })
}

/// Sleeps until a socket can be read or written, at most for `span`.
pub(crate) fn wait_ready(fd: BorrowedFd<'_>, span: Duration) -> io::Result<()> {
    poll(fd, libc::POLLIN | libc::POLLOUT, span).map(drop)
}

/// Sleeps until one of these sockets can be read or accepted from, at most for `span`.
pub(crate) fn wait_readable<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>, span: Duration) -> io::Result<()> {
    let poll = |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polls: Vec<_> = fds.map(poll).collect();
    // SAFETY: pointer and length are those of live pollfds.
    let answer = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, span.as_millis() as c_int) };
    match check(answer) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other.map(drop),
    }
}

/// Returns whether a socket has something to be read or accepted.
pub(crate) fn is_readable(fd: BorrowedFd<'_>) -> io::Result<bool> {
    poll(fd, libc::POLLIN, Duration::ZERO)
}

fn poll(fd: BorrowedFd<'_>, events: libc::c_short, span: Duration) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    // SAFETY: the pointer is that of one live pollfd.
    let answer = unsafe { libc::poll(&raw mut poll, 1, span.as_millis() as c_int) };
    match check(answer) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => other.map(|ready| ready > 0),
    }
}

/// Returns whether a call has found nothing, and may be repeated.
#[inline]
pub(crate) fn is_vain(error: &io::Error) -> bool {
    // Not by its kind, which takes as long to find as the rest of an empty look in user space.
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR))
}

/// Creates a counter that another thread can raise to wake a poller.
pub(crate) fn event_counter() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; a non-negative answer is a descriptor that nobody else owns.
    unsafe { check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Raises an event counter.
pub(crate) fn raise(fd: BorrowedFd<'_>) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: pointer and length are those of `one`. A full counter has woken its reader already.
    unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Lowers an event counter to 0.
pub(crate) fn lower(fd: BorrowedFd<'_>) {
    let mut count = [0u8; 8];
    // SAFETY: pointer and length are those of `count`. An empty counter needs no lowering.
    unsafe { libc::read(fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}

/// Joins a multicast group on the interface of this index; 0 means the one that the routes select.
pub(crate) fn join_group(fd: BorrowedFd<'_>, group: IpAddr, interface: u32) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => {
            let request = libc::ip_mreqn {
                imr_multiaddr: libc::in_addr { s_addr: u32::from(group).to_be() },
                imr_address: libc::in_addr { s_addr: 0 },
                imr_ifindex: interface as c_int,
            };
            set_value(fd, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &request)
        }
        IpAddr::V6(group) => {
            let ipv6mr_multiaddr = libc::in6_addr { s6_addr: group.octets() };
            let request = libc::ipv6_mreq { ipv6mr_multiaddr, ipv6mr_interface: interface };
            set_value(fd, libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, &request)
        }
    }
}

/// Lets a socket receive only from the groups that it has joined itself; otherwise it would from those of any socket of the host.
pub(crate) fn receive_from_own_groups(fd: BorrowedFd<'_>, is_ipv4: bool) -> io::Result<()> {
    const IPV6_MULTICAST_ALL: c_int = 29;
    set_option(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
    if !is_ipv4 {
        // A kernel before 4.20 does not know it.
        let _ = set_option(fd, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
    }
    Ok(())
}

/// Sets the interface by which what is sent to a group leaves, and how many hops it may go. The groups of this host receive it, too.
pub(crate) fn set_multicast(fd: BorrowedFd<'_>, is_ipv4: bool, interface: u32, hops: u8) -> io::Result<()> {
    let (index, hops) = (interface as c_int, c_int::from(hops));
    if !is_ipv4 {
        set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, index)?;
        set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, hops)?;
        return set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP, 1);
    }
    let any = libc::in_addr { s_addr: 0 };
    let request = libc::ip_mreqn { imr_multiaddr: any, imr_address: any, imr_ifindex: index };
    set_value(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)?;
    set_option(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, hops)?;
    set_option(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, 1)
}

/// Sets an option that is a structure of the kernel's.
fn set_value<T: Copy>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and size are those of `value`, which lives through the call.
    unsafe { check(libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size)).map(drop) }
}

/// Lets other threads run that are waiting for this processor.
#[inline]
pub(crate) fn yield_now() {
    // SAFETY: takes nothing, and cannot fail on Linux.
    unsafe { libc::sched_yield() };
}

/// Creates an epoll instance.
pub(crate) fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; a non-negative answer is a descriptor that nobody else owns.
    unsafe { check(libc::epoll_create1(libc::EPOLL_CLOEXEC)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Adds, changes or removes a descriptor.
pub(crate) fn epoll_control(
    epoll: BorrowedFd<'_>,
    operation: c_int,
    fd: BorrowedFd<'_>,
    events: c_int,
    token: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: token };
    // SAFETY: the pointer is that of a live epoll_event.
    unsafe { check(libc::epoll_ctl(epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event)).map(drop) }
}

/// Waits for events; `None` waits without end. Returns how many there are; an interrupted wait has none.
pub(crate) fn epoll_wait(
    epoll: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    wait: Option<Duration>,
) -> io::Result<usize> {
    let span =
        wait.map(|span| libc::timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) });
    let span = span.as_ref().map_or(std::ptr::null(), |span| &raw const *span);
    // SAFETY: pointer and length are those of `events`; the timespec lives through the call; no signal mask is given.
    let answer = unsafe {
        let count = events.len() as c_int;
        libc::syscall(libc::SYS_epoll_pwait2, epoll.as_raw_fd(), events.as_mut_ptr(), count, span, 0usize, 0usize)
    };
    match check_size(answer as isize) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        other => other,
    }
}

/// Reads the kernel's monotonic clock, which needs no system call; it takes a few nanoseconds less than through
/// `std::time`.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is room for what the call writes. It cannot fail: the clock and the address are valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
