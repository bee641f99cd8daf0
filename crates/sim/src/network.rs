use crate::{Congestion, OptionError};
use hodo_machine::{Instant, Transport};
use std::ops::Range;
use std::time::Duration;

/// Bytes of IPv4 and UDP headers in every datagram's packet.
pub const DATAGRAM_HEADERS: u32 = 28;
/// Bytes of IPv4 and TCP headers, with timestamps, in every segment's packet.
pub const STREAM_HEADERS: u32 = 52;
/// The largest payload of an unlimited packet: of a UDP datagram, and of what a kernel hands an adapter as one segment.
const PAYLOAD_MAX: u32 = 65_507;

/// One direction of the simulated network.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// From a packet's last bit on the wire to its arrival: the shortest time.
    pub delay: Duration,
    /// Added to the delay, uniformly from 0 to this, for each packet by itself; so datagrams may overtake each other.
    pub jitter: Duration,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The probability that a packet arrives twice.
    pub duplicate: f64,
    /// The probability that a packet is held back, for delay + jitter + 1 us, so that later ones overtake it.
    pub reorder: f64,
    /// The probability that a bit of a packet is flipped. A datagram is delivered so; a segment is sent again.
    pub corrupt: f64,
    /// Bits per second on the wire; `None` takes no time.
    pub rate: Option<u64>,
    /// Bytes that may wait for the wire: a datagram beyond them is dropped, a stream is held back.
    pub queue_bytes: u64,
    /// The largest IP packet, headers included. A larger datagram is dropped and counted, as UDP that must not be
    /// fragmented; a stream is cut into segments. `None` sets no limit but that of UDP, 65,507 bytes of payload.
    pub mtu: Option<u32>,
    /// Bytes that each packet takes on the wire beside the IP packet; 38 for Ethernet.
    pub overhead_bytes: u32,
    /// Times during which every packet is lost.
    pub partitions: Vec<Range<Instant>>,
    /// The probability, for each segment, that its stream is reset when it arrives.
    pub cut: f64,
    /// Times at which every stream is reset.
    pub cuts: Vec<Instant>,
    /// The processor time of each message at the node that sends in this direction: each one that it sends, and each
    /// that it receives from whatever side. A stream's message is one `Send`, or one chunk received.
    pub cost: Duration,
    /// The congestion control of streams.
    pub congestion: Congestion,
    /// Bytes that a stream may have in flight or unread, and that may wait at the node that receives datagrams.
    pub buffer_bytes: u64,
    /// How long connecting may take before it is given up.
    pub connect_timeout: Duration,
    /// For everything drawn at random.
    pub seed: u64,
}

impl Default for Network {
    /// Returns a clean network: 5 us one way, 100 ns of processor per message, and nothing goes wrong.
    fn default() -> Self {
        Network {
            delay: Duration::from_micros(5),
            jitter: Duration::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            rate: None,
            queue_bytes: 256 << 10,
            mtu: None,
            overhead_bytes: 0,
            partitions: Vec::new(),
            cut: 0.0,
            cuts: Vec::new(),
            cost: Duration::from_nanos(100),
            congestion: Congestion::Cubic,
            buffer_bytes: 4 << 20,
            connect_timeout: Duration::from_secs(1),
            seed: 1,
        }
    }
}

impl Network {
    /// Returns the network that these options describe; what is not named is as in [`Network::default`].
    ///
    /// # Errors
    /// Names the option that is unknown, or whose value is wrong.
    pub fn from_options(options: &[(String, String)]) -> Result<Self, OptionError> {
        let mut network = Network::default();
        for (name, value) in options {
            crate::options::set(&mut network, name, value)?;
        }
        Ok(network)
    }

    /// Returns the networks out and back: an option counts for both, or for one if its name starts with `out.` or `back.`.
    ///
    /// # Errors
    /// Names the option that is unknown, or whose value is wrong.
    pub fn both_ways(options: &[(String, String)]) -> Result<(Self, Self), OptionError> {
        let (mut out, mut back) = (Network::default(), Network::default());
        for (name, value) in options {
            if let Some(name) = name.strip_prefix("out.") {
                crate::options::set(&mut out, name, value)?;
            } else if let Some(name) = name.strip_prefix("back.") {
                crate::options::set(&mut back, name, value)?;
            } else {
                crate::options::set(&mut out, name, value)?;
                crate::options::set(&mut back, name, value)?;
            }
        }
        Ok((out, back))
    }

    /// Returns the facts from which the limit of this direction follows.
    #[must_use]
    pub fn model(&self, transport: Transport) -> Model {
        let headers = match transport {
            Transport::Datagram => DATAGRAM_HEADERS,
            Transport::Stream => STREAM_HEADERS,
        };
        let payload_max = self.mtu.map_or(PAYLOAD_MAX, |mtu| mtu.saturating_sub(headers).clamp(1, PAYLOAD_MAX));
        Model {
            transport,
            delay: self.delay,
            jitter: self.jitter,
            loss: self.loss,
            rate: self.rate,
            payload_max,
            packet_overhead: headers + self.overhead_bytes,
            cost: self.cost,
            congestion: self.congestion,
            buffer_bytes: self.buffer_bytes,
        }
    }
}

/// The facts of one direction from which a link's theoretical limit follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The transport that it carries.
    pub transport: Transport,
    /// The shortest time from a packet's last bit to its arrival.
    pub delay: Duration,
    /// The most that is added to it.
    pub jitter: Duration,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// Bits per second on the wire.
    pub rate: Option<u64>,
    /// The largest payload of one packet.
    pub payload_max: u32,
    /// Bytes on the wire for each packet beside its payload.
    pub packet_overhead: u32,
    /// Processor time for each message that the sending node sends or receives.
    pub cost: Duration,
    /// The congestion control of streams.
    pub congestion: Congestion,
    /// Bytes of a stream in flight or unread, at most.
    pub buffer_bytes: u64,
}

impl Model {
    /// Returns whether an operation of this many bytes fits: every size on a stream, up to the MTU as a datagram.
    #[must_use]
    pub const fn fits(&self, size: u64) -> bool {
        matches!(self.transport, Transport::Stream) || size <= self.payload_max as u64
    }

    /// Bytes on the wire for one operation of this many bytes sent alone.
    #[must_use]
    pub fn wire_bytes(&self, size: u64) -> u64 {
        size + size.div_ceil(u64::from(self.payload_max)).max(1) * u64::from(self.packet_overhead)
    }

    /// Returns the shortest time from sending one operation of this many bytes to its arrival, without processor time.
    #[must_use]
    pub fn transit(&self, size: u64) -> Duration {
        let wire = self.rate.map_or(0, |rate| u128::from(self.wire_bytes(size)) * 8_000_000_000 / u128::from(rate));
        self.delay + Duration::from_nanos(u64::try_from(wire).unwrap_or(u64::MAX))
    }

    /// Returns the most payload bits per second in operations of this many bytes that the wire takes.
    ///
    /// Datagrams pay for their headers one by one; a stream's operations share full segments. `None` without a rate.
    #[must_use]
    pub fn payload_bits_per_s(&self, size: u64) -> Option<f64> {
        let payload = match self.transport {
            Transport::Datagram => size,
            Transport::Stream => u64::from(self.payload_max),
        };
        self.rate.map(|rate| rate as f64 * payload as f64 / (payload + u64::from(self.packet_overhead)) as f64)
    }

    /// Returns the most payload bits per second that a stream's buffer allows over this delay; `None` without a delay.
    #[must_use]
    pub fn buffer_bits_per_s(&self) -> Option<f64> {
        (self.delay > Duration::ZERO).then(|| self.buffer_bytes as f64 * 8.0 / self.delay.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the published figures of Gigabit Ethernet: 941.5 Mbit/s of TCP, 957.1 Mbit/s of UDP.
    #[test]
    fn ethernet_gives_the_published_payload_rates() {
        let network = Network { rate: Some(1_000_000_000), mtu: Some(1500), overhead_bytes: 38, ..Network::default() };
        let stream = network.model(Transport::Stream).payload_bits_per_s(1 << 20).unwrap();
        assert!((stream / 1e6 - 941.48).abs() < 0.01, "{stream}");
        let datagram = network.model(Transport::Datagram);
        assert!((datagram.payload_bits_per_s(1472).unwrap() / 1e6 - 957.09).abs() < 0.01);
        assert!(datagram.fits(1472) && !datagram.fits(1473));
        assert_eq!(datagram.transit(1472), Duration::from_nanos(5_000 + 1538 * 8));
        assert_eq!(network.model(Transport::Stream).wire_bytes(2 * 1448), 2 * 1538);
    }
}
