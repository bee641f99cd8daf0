//! The messages of an operation on the wire: all that a limit has to know of a protocol.
//!
//! A protocol fills in [`OnTheWire`] from a plan, without a socket; the bounds of line, window and model, and the shape
//! of the baseline on bare sockets, are computed from it for every protocol alike.

use super::{Bound, Packing, Path, WireCost};
use crate::Size;

/// Sizes that stand for all those drawn uniformly: the mean over them is within 1 % of the mean over all.
const SAMPLES: u64 = 64;

/// The transport that carries the messages of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// A TCP stream.
    Tcp,
    /// UDP datagrams, one a message.
    Udp,
    /// A Unix stream socket: there is no line.
    Unix,
}

/// Several messages of one size and their answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages {
    /// The number of messages.
    pub count: u64,
    /// Bytes of each, with the protocol's headers and without those of TCP, UDP and IP; 0 where nothing goes out.
    pub out_bytes: u64,
    /// Bytes of the answer to each; 0 where one answer covers so many that it does not count.
    pub back_bytes: u64,
}

/// A resource of the far end that operations take in turn, as known from its settings and not from a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Time that one operation takes it.
    pub ns_per_operation: f64,
    /// The number of such resources.
    pub servers: u32,
    /// The resource in words: `20 nodes / 100 us a decision`.
    pub name: String,
}

/// The messages of a hop behind the far end, which has to be done before it can answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    /// The transport of the hop.
    pub carrier: Carrier,
    /// The messages that [`OnTheWire::operations`] operations take.
    pub messages: Vec<Messages>,
    /// The hop in words: `by UDP from the hub to the board`.
    pub name: String,
}

/// The operations of a plan, as they are on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct OnTheWire {
    /// The transport of the messages.
    pub carrier: Carrier,
    /// Sockets of this side in all that the messages go through: one, or one for each channel.
    pub sockets: u32,
    /// Operations that [`OnTheWire::messages`] belong to: more than 1 where the protocol concatenates them.
    pub operations: u32,
    /// Payload of one operation in bytes, on average.
    pub payload_bytes: f64,
    /// The messages of those operations together, in their order.
    pub messages: Vec<Messages>,
    /// Messages in flight on a channel at most, whatever the window is; `None` where only the window bounds them.
    pub in_flight_max: Option<u64>,
    /// The far end's own time for an operation, if its settings give it.
    pub service: Option<Service>,
    /// The hop behind the far end that has to be done before it can answer.
    pub behind: Option<Hop>,
    /// The messages as they are handed to the kernel, where it cuts them into those of [`OnTheWire::messages`]: what bare sockets
    /// are to send for a baseline. Empty where both are alike.
    pub handed_over: Vec<Messages>,
    /// The limit by the theory of a link whose every bit is known; the bounds of sockets do not count then.
    pub theory: Option<Theory>,
}

/// The limit of a link by its own theory.
#[derive(Debug, Clone, PartialEq)]
pub struct Theory {
    /// The bounds of the rate, with as many operations in flight as it takes.
    pub bounds: Vec<Bound>,
    /// The shortest time of an operation.
    pub latency_ns: f64,
    /// The computation of the time, with the numbers put in.
    pub latency_formula: String,
    /// The assumptions.
    pub assumes: String,
    /// Whether the link is a model.
    pub is_model: bool,
}

impl OnTheWire {
    /// Describes operations of one message and one answer each.
    #[must_use]
    pub fn single(carrier: Carrier, payload_bytes: u64, out_bytes: u64, back_bytes: u64) -> Self {
        OnTheWire {
            carrier,
            sockets: 1,
            operations: 1,
            payload_bytes: payload_bytes as f64,
            messages: vec![Messages { count: 1, out_bytes, back_bytes }],
            in_flight_max: None,
            service: None,
            behind: None,
            handed_over: Vec::new(),
            theory: None,
        }
    }

    /// Returns the operations with the messages that are handed to the kernel.
    #[must_use]
    pub fn as_handed_over(&self) -> OnTheWire {
        let messages = if self.handed_over.is_empty() { &self.messages } else { &self.handed_over };
        OnTheWire { messages: messages.clone(), ..self.clone() }
    }

    /// Returns the mean over the sizes of a plan; `of_size` gives the operations of one size.
    ///
    /// Sizes that are drawn are represented by 65 of them, evenly apart.
    #[must_use]
    pub fn over_sizes(size: Size, of_size: impl Fn(u32) -> OnTheWire) -> Self {
        let (min, max) = size.bounds();
        if min >= max {
            return of_size(max);
        }
        let steps = SAMPLES.min(u64::from(max - min));
        let sampled = |step: u64| of_size(min + (u64::from(max - min) * step / steps) as u32);
        let mut all = sampled(0);
        for step in 1..=steps {
            let next = sampled(step);
            all.operations += next.operations;
            all.messages.extend(next.messages);
            all.handed_over.extend(next.handed_over);
            if let (Some(hop), Some(more)) = (&mut all.behind, next.behind) {
                hop.messages.extend(more.messages);
            }
        }
        OnTheWire { payload_bytes: size.mean(), ..all }
    }

    /// Returns the messages out for one operation, on average.
    #[must_use]
    pub fn messages_per_operation(&self) -> f64 {
        self.messages.iter().map(|messages| messages.count).sum::<u64>() as f64 / f64::from(self.operations.max(1))
    }

    /// Returns whether an operation is one message out and one back by itself, so that a lone one has the line for
    /// itself.
    #[must_use]
    pub fn is_one_message(&self) -> bool {
        self.operations == 1 && self.messages.iter().map(|messages| messages.count).sum::<u64>() == 1
    }

    /// Returns the messages and bytes that go out for one operation, on average.
    #[must_use]
    pub fn out(&self) -> Way {
        Way::of(&self.messages, self.operations, |messages| messages.out_bytes)
    }

    /// Returns the messages and bytes that come back for one operation, on average.
    #[must_use]
    pub fn back(&self) -> Way {
        Way::of(&self.messages, self.operations, |messages| messages.back_bytes)
    }

    /// Returns the cost of one operation on the line, on average.
    #[must_use]
    pub fn cost(&self, path: &Path, packing: Packing) -> WireCost {
        let packing = if self.carrier == Carrier::Udp { Packing::Own } else { packing };
        let share = f64::from(self.operations.max(1)).recip();
        let sum = |bytes: fn(&Messages) -> u64| -> f64 {
            let each = |messages: &Messages| messages.count as f64 * path.wire_bytes(bytes(messages), packing);
            self.messages.iter().map(each).sum::<f64>() * share
        };
        WireCost {
            payload_bytes: self.payload_bytes,
            out_bytes: sum(|messages| messages.out_bytes),
            back_bytes: sum(|messages| messages.back_bytes),
        }
    }
}

/// One direction of an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    /// Messages that carry anything.
    pub messages: f64,
    /// Bytes of all those messages.
    pub bytes: f64,
}

impl Way {
    fn of(messages: &[Messages], operations: u32, bytes: fn(&Messages) -> u64) -> Way {
        let share = f64::from(operations.max(1)).recip();
        let all = messages.iter().filter(|messages| bytes(messages) > 0);
        let (count, sum) = all.fold((0.0, 0.0), |(count, sum), messages| {
            (count + messages.count as f64, sum + messages.count as f64 * bytes(messages) as f64)
        });
        Way { messages: count * share, bytes: sum * share }
    }

    /// Returns the bytes of one message; 0 without messages.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        if self.messages > 0.0 { self.bytes / self.messages } else { 0.0 }
    }
}

impl Hop {
    /// Returns the messages and bytes that go out for one of `operations` operations.
    #[must_use]
    pub fn out(&self, operations: u32) -> Way {
        Way::of(&self.messages, operations, |messages| messages.out_bytes)
    }

    /// Returns the messages and bytes that come back for one of `operations` operations.
    #[must_use]
    pub fn back(&self, operations: u32) -> Way {
        Way::of(&self.messages, operations, |messages| messages.back_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Ip, Line, Transport};

    fn path() -> Path {
        Path::new(Line::new(1e9, 1500), Ip::V4, Transport::Udp).expect("a path")
    }

    /// Takes a read of a block of registers with 1,388 payload bytes a packet: 1388 of 1466 byte times.
    #[test]
    fn a_block_costs_what_its_packets_cost() {
        let block = OnTheWire {
            payload_bytes: 13_880.0,
            messages: vec![Messages { count: 10, out_bytes: 20, back_bytes: 1400 }],
            ..OnTheWire::single(Carrier::Udp, 0, 0, 0)
        };
        let cost = block.cost(&path(), Packing::Stream);
        assert_eq!((cost.back_bytes, block.messages_per_operation()), (14_660.0, 10.0));
        assert!(!block.is_one_message());
        assert_eq!((block.out(), block.back().mean_bytes()), (Way { messages: 10.0, bytes: 200.0 }, 1400.0));
    }

    #[test]
    fn concatenated_operations_share_their_packet() {
        let many = OnTheWire { operations: 4, ..OnTheWire::single(Carrier::Udp, 4, 100, 40) };
        assert_eq!(many.messages_per_operation(), 0.25);
        assert_eq!(many.cost(&path(), Packing::Own).out_bytes, 166.0 / 4.0);
    }

    #[test]
    fn drawn_sizes_are_represented_by_some_of_them() {
        let echo = |size: u32| OnTheWire::single(Carrier::Udp, size.into(), size.into(), size.into());
        let drawn = OnTheWire::over_sizes(Size::Uniform { min: 100, max: 1124 }, echo);
        assert_eq!((drawn.payload_bytes, drawn.messages_per_operation()), (612.0, 1.0));
        assert_eq!((drawn.out().mean_bytes(), drawn.back().bytes), (612.0, 612.0));
        assert_eq!(OnTheWire::over_sizes(Size::Fixed(64), echo), echo(64));
        assert_eq!(OnTheWire::over_sizes(Size::Uniform { min: 7, max: 8 }, echo).operations, 2);
    }
}
