use super::undisturbed;
use crate::{Clock, connect, sys_datagram};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// The bytes of payload of one packet: those of a full Ethernet frame over TCP.
pub const SEGMENT: usize = 1448;
/// The number of packets that the kernel moves as one where it may.
pub const SEGMENTS: usize = 44;
const SPAN: Duration = Duration::from_millis(40);

/// The time that packets take through this host's network stack, there and back up, on one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketCost {
    /// The time of [`SEGMENTS`] packets one by one.
    pub one_by_one: Duration,
    /// The time of the same packets moved as one, as segmentation offload and receive offload let the kernel do.
    pub as_one: Duration,
}

/// Measures what packets cost on loopback, with datagrams. Takes a twelfth of a second.
///
/// # Errors
/// Returns the operating system's error, also where the kernel cannot move several packets as one (before 5.0).
pub fn packet_cost() -> io::Result<PacketCost> {
    let here = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let there = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    here.connect(there.local_addr()?)?;
    there.connect(here.local_addr()?)?;
    for socket in [&here, &there] {
        connect::set_buffers(socket.as_fd(), 1 << 20)?;
    }
    let one_by_one = typical(&here, &there, SEGMENT)?;
    sys_datagram::join(there.as_fd())?;
    Ok(PacketCost { one_by_one, as_one: typical(&here, &there, SEGMENTS * SEGMENT)? })
}

/// Returns the undisturbed time in which all segments pass, `bytes` of them with each call.
fn typical(here: &UdpSocket, there: &UdpSocket, bytes: usize) -> io::Result<Duration> {
    there.set_read_timeout(Some(SPAN))?;
    let (out, mut into) = (vec![0x55; bytes], vec![0; 1 << 16]);
    let clock = Clock::start();
    let (end, mut times) = (clock.now() + SPAN, Vec::new());
    while clock.now() < end || times.is_empty() {
        let begin = clock.now();
        for _ in 0..SEGMENTS * SEGMENT / bytes {
            let cut = (bytes > SEGMENT).then_some(SEGMENT as u16);
            sys_datagram::send(here.as_fd(), None, None, &[IoSlice::new(&out)], cut)?;
        }
        let mut arrived = 0;
        while arrived < SEGMENTS * SEGMENT {
            arrived += there.recv(&mut into)?;
        }
        times.push(clock.now().nanos_since(begin));
    }
    Ok(Duration::from_nanos(undisturbed(times).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_pass_as_one_are_cheaper() {
        let cost = packet_cost().expect("loopback");
        assert!(cost.as_one > Duration::ZERO && cost.as_one < cost.one_by_one, "{cost:?}");
    }
}
