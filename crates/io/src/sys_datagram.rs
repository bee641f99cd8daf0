//! Batches of datagrams: many with one system call, and many of one size as one large one that the kernel cuts or joins
//! (GSO on the way out, GRO on the way in).
#![allow(unsafe_code)]

use crate::datagram::Arrival;
use crate::sys::{self, RawAddress};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The number of datagrams, or joined runs of them, in one call.
const MESSAGES: usize = 16;
/// The bytes of one datagram or run, at most.
const ROOM: usize = 1 << 16;
/// The distance of their buffers. At a power of two, all of a batch would share the same few sets of the processor's caches; so,
/// full Ethernet frames lie beside each other there.
const STRIDE: usize = ROOM + 1536;
const _: () = assert!(STRIDE % 4096 >= 1472, "the caches have sets of 64 bytes, 4 KiB apart");
/// The number of calls for one datagram, after fewer came than were requested, before more are requested again.
const SINGLE: u32 = 8;
/// The room for control messages: an integer, and the destination or source of a datagram, of either IP version.
const CONTROL: usize = 64;
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

/// Lets the kernel join datagrams of one size from one sender, for good: where it is switched off again, what was joined before
/// comes as one datagram, and nothing tells (Linux, `udp_recvmsg`).
pub(crate) fn join(fd: BorrowedFd<'_>) -> io::Result<()> {
    sys::set_option(fd, libc::IPPROTO_UDP, UDP_GRO, 1 as libc::c_int)
}

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// The buffers of one receive; by default without any.
#[derive(Default)]
pub(crate) struct Received {
    buffers: Box<[u8]>,
    names: Box<[RawAddress]>,
    controls: Box<[Control]>,
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    want: usize,
    /// The number of calls for one datagram before two are requested again.
    single: u32,
    count: usize,
}

// SAFETY: the pointers in `headers` and `vectors` lead only to the boxes of the same value, which move with it, and are
// set anew before each use.
unsafe impl Send for Received {}

/// One datagram, or a run of joined ones of which each but the last has `each` bytes.
pub(crate) struct Run<'a> {
    pub(crate) from: &'a RawAddress,
    pub(crate) bytes: &'a [u8],
    pub(crate) each: usize,
}

impl Received {
    pub(crate) fn new() -> Self {
        // SAFETY: all zeroes is valid for mmsghdr and iovec: null pointers with zero lengths.
        let header: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Received {
            buffers: vec![0; MESSAGES * STRIDE].into_boxed_slice(),
            names: vec![RawAddress::empty(); MESSAGES].into_boxed_slice(),
            controls: vec![Control([0; CONTROL]); MESSAGES].into_boxed_slice(),
            headers: vec![header; MESSAGES].into_boxed_slice(),
            vectors: vec![vector; MESSAGES].into_boxed_slice(),
            want: 1,
            single: 0,
            count: 0,
        }
    }

    /// Receives the datagrams that are there; with no flags it waits for the first one. Returns how many runs came.
    #[inline]
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>, flags: libc::c_int, named: bool) -> io::Result<usize> {
        for index in 0..self.want {
            self.prepare(index, named);
        }
        self.count = 0;
        if self.want == 1 {
            let header = &mut self.headers[0];
            // SAFETY: `prepare` has pointed the header at boxes of this value with their true sizes.
            let length = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header.msg_hdr, flags) };
            header.msg_len = u32::try_from(length).map_err(|_| io::Error::last_os_error())?;
            self.count = 1;
        } else {
            let (pointer, want) = (self.headers.as_mut_ptr(), self.want as libc::c_uint);
            // SAFETY: as above, for `want` headers, which is at most their number; no time-out is given.
            let count = unsafe {
                let flags = flags | libc::MSG_WAITFORONE;
                libc::recvmmsg(fd.as_raw_fd(), pointer, want, flags, std::ptr::null_mut())
            };
            self.count = sys::check(count)? as usize;
        }
        self.ask_for_more_or_fewer();
        Ok(self.count)
    }

    /// Receives as [`Received::receive`] does, and takes a second datagram if one is waiting.
    #[inline]
    pub(crate) fn receive_two(&mut self, fd: BorrowedFd<'_>, flags: libc::c_int, named: bool) -> io::Result<usize> {
        self.want = self.want.max(2);
        self.receive(fd, flags, named)
    }

    /// Adapts the batch size, which grows only while full batches come: a single recvmsg is cheaper than a batch of
    /// one.
    #[inline]
    fn ask_for_more_or_fewer(&mut self) {
        if self.count < self.want {
            (self.want, self.single) = (self.count.max(1), SINGLE);
        } else if self.want > 1 || self.single == 0 {
            self.want = (self.want * 2).min(MESSAGES);
        } else {
            self.single -= 1;
        }
    }

    /// Receives one datagram from a socket that joins none, which is the cheapest call there is.
    #[inline]
    pub(crate) fn receive_one(&mut self, fd: BorrowedFd<'_>, flags: libc::c_int, named: bool) -> io::Result<usize> {
        let header = &mut self.headers[0];
        let (name, mut length) = self.names[0].as_room();
        let (name, length) = if named { (name, &raw mut length) } else { (std::ptr::null_mut(), std::ptr::null_mut()) };
        // SAFETY: the buffer has ROOM bytes, and the name the room that is told; both live through the call.
        let received = unsafe {
            libc::syscall(libc::SYS_recvfrom, fd.as_raw_fd(), self.buffers.as_mut_ptr(), ROOM, flags, name, length)
        };
        header.msg_len = u32::try_from(received).map_err(|_| io::Error::last_os_error())?;
        header.msg_hdr.msg_controllen = 0;
        self.count = 1;
        Ok(1)
    }

    #[inline]
    fn prepare(&mut self, index: usize, named: bool) {
        let (name, name_length) = self.names[index].as_room();
        self.vectors[index] =
            libc::iovec { iov_base: self.buffers[index * STRIDE..].as_mut_ptr().cast(), iov_len: ROOM };
        let header = &mut self.headers[index].msg_hdr;
        header.msg_name = if named { name.cast() } else { std::ptr::null_mut() };
        header.msg_namelen = if named { name_length } else { 0 };
        header.msg_iov = &raw mut self.vectors[index];
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut self.controls[index]).cast();
        header.msg_controllen = CONTROL;
        header.msg_flags = 0;
    }

    /// Returns one of the runs of the last receive.
    #[inline]
    pub(crate) fn run(&self, index: usize) -> Run<'_> {
        let length = (self.headers[index].msg_len as usize).min(ROOM);
        let each = self.segment(index).filter(|each| *each > 0).unwrap_or(length.max(1));
        Run { from: &self.names[index], bytes: &self.buffers[index * STRIDE..][..length], each }
    }

    fn segment(&self, index: usize) -> Option<usize> {
        self.controls(index).find_map(|control| match control {
            Said::Segment(size) => Some(size),
            Said::Arrival(_) => None,
        })
    }

    /// Returns where the datagrams of a run arrived, if the socket reports it.
    pub(crate) fn arrival(&self, index: usize) -> Option<Arrival> {
        self.controls(index).find_map(|control| match control {
            Said::Arrival(arrival) => Some(arrival),
            Said::Segment(_) => None,
        })
    }

    /// Iterates over the known control messages of a run.
    #[inline]
    fn controls(&self, index: usize) -> impl Iterator<Item = Said> + '_ {
        let header = &self.headers[index].msg_hdr;
        // SAFETY: the kernel has written `msg_controllen` bytes of control messages at msg_control, whose box is
        // aligned for cmsghdr; CMSG_FIRSTHDR returns null if they are too short for one.
        let mut next = if header.msg_controllen == 0 {
            std::ptr::null_mut()
        } else {
            unsafe { libc::CMSG_FIRSTHDR(&raw const *header) }
        };
        std::iter::from_fn(move || {
            while !next.is_null() {
                // SAFETY: `next` is a control message inside the box, and CMSG_NXTHDR answers null behind the last one.
                let (control, said) = unsafe { (next, said(&*next)) };
                next = unsafe { libc::CMSG_NXTHDR(&raw const *header, control) };
                if said.is_some() {
                    return said;
                }
            }
            None
        })
    }
}

/// The content of a control message.
enum Said {
    /// The size of each of the joined datagrams.
    Segment(usize),
    Arrival(Arrival),
}

/// Parses a control message; `None` for one that is not known, or is too short.
///
/// # Safety
/// The data of the message stands behind its header.
unsafe fn said(control: &libc::cmsghdr) -> Option<Said> {
    let holds = |size: usize| control.cmsg_len >= unsafe { libc::CMSG_LEN(size as u32) } as usize;
    match (control.cmsg_level, control.cmsg_type) {
        (libc::IPPROTO_UDP, UDP_GRO) if holds(size_of::<libc::c_int>()) => {
            // SAFETY: the data is there, and has the length of an int.
            let size = unsafe { libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned() };
            usize::try_from(size).ok().map(Said::Segment)
        }
        (libc::IPPROTO_IP, libc::IP_PKTINFO) if holds(size_of::<libc::in_pktinfo>()) => {
            // SAFETY: the data is there, and has the length of an in_pktinfo.
            let info = unsafe { libc::CMSG_DATA(control).cast::<libc::in_pktinfo>().read_unaligned() };
            let address = |raw: libc::in_addr| IpAddr::V4(u32::from_be(raw.s_addr).into());
            let here = Some(address(info.ipi_spec_dst)).filter(|here| !here.is_unspecified());
            Some(Said::Arrival(Arrival { to: address(info.ipi_addr), here, interface: info.ipi_ifindex as u32 }))
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if holds(size_of::<libc::in6_pktinfo>()) => {
            // SAFETY: the data is there, and has the length of an in6_pktinfo.
            let info = unsafe { libc::CMSG_DATA(control).cast::<libc::in6_pktinfo>().read_unaligned() };
            let to = IpAddr::V6(info.ipi6_addr.s6_addr.into());
            let here = (!to.is_multicast()).then_some(to);
            Some(Said::Arrival(Arrival { to, here, interface: info.ipi6_ifindex }))
        }
        _ => None,
    }
}

/// Sends slices as one datagram, or as several of `each` bytes that the kernel cuts. `to` is left out on a connected
/// socket.
#[inline]
pub(crate) fn send(
    fd: BorrowedFd<'_>,
    to: Option<&RawAddress>,
    from: Option<Arrival>,
    slices: &[IoSlice<'_>],
    each: Option<u16>,
) -> io::Result<()> {
    if let ([one], None, None) = (slices, to, each) {
        return sys::send(fd, one, 0).map(drop);
    }
    let from = from.and_then(|from| Some((from.here?, from.interface)));
    if let ([one], Some(to), None, None) = (slices, to, from, each) {
        let (name, length) = to.as_parts();
        // SAFETY: both pointers and lengths are those of live, initialised values.
        let sent = unsafe {
            libc::syscall(libc::SYS_sendto, fd.as_raw_fd(), one.as_ptr(), one.len(), libc::MSG_NOSIGNAL, name, length)
        };
        return if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    }
    let mut control = Control([0; CONTROL]);
    // SAFETY: all zeroes is a valid msghdr: no name, no control.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    if let Some(to) = to {
        let (pointer, length) = to.as_parts();
        header.msg_name = pointer.cast_mut().cast();
        header.msg_namelen = length;
    }
    header.msg_iov = slices.as_ptr().cast_mut().cast();
    header.msg_iovlen = slices.len();
    if each.is_some() || from.is_some() {
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = write_controls(&mut control, each, from);
    }
    // SAFETY: IoSlice is ABI-compatible with iovec; name, vectors and control live through the call, which reads only.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes the control messages that make the kernel cut the bytes into datagrams of this size, and set their source.
/// Returns the length of the messages.
fn write_controls(control: &mut Control, each: Option<u16>, from: Option<(IpAddr, u32)>) -> usize {
    let mut length = 0;
    if let Some(each) = each {
        length += write_control(control, length, (libc::IPPROTO_UDP, UDP_SEGMENT), each);
    }
    match from {
        Some((IpAddr::V4(here), _)) => {
            let ipi_spec_dst = libc::in_addr { s_addr: u32::from(here).to_be() };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: libc::in_addr { s_addr: 0 } };
            length += write_control(control, length, (libc::IPPROTO_IP, libc::IP_PKTINFO), info);
        }
        Some((IpAddr::V6(here), interface)) => {
            let ipi6_addr = libc::in6_addr { s6_addr: here.octets() };
            let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: interface };
            length += write_control(control, length, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), info);
        }
        None => {}
    }
    length
}

/// Writes one control message behind the first `at` bytes. Returns the room that it takes.
fn write_control<T: Copy>(control: &mut Control, at: usize, (level, kind): (i32, i32), value: T) -> usize {
    // SAFETY: takes no pointers, and neither does the next one.
    let (length, room) = unsafe { (libc::CMSG_LEN(size_of::<T>() as u32), libc::CMSG_SPACE(size_of::<T>() as u32)) };
    let place = &mut control.0[at..at + room as usize];
    let head = libc::cmsghdr { cmsg_len: length as usize, cmsg_level: level, cmsg_type: kind };
    // SAFETY: `place` has room for the head and the value behind it, as the kernel's macros say, and any alignment will
    // do.
    unsafe {
        place.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(head);
        place.as_mut_ptr().add(length as usize - size_of::<T>()).cast::<T>().write_unaligned(value);
    }
    room as usize
}
