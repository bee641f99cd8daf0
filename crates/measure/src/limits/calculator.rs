use super::{Bound, Bus, Fan, Packing, Path, least};
use crate::{Limit, LimitKind};
use serde::Serialize;
use std::time::Duration;

/// Everything between two ends that bounds the operations on a stream of messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Calculator {
    /// The line, and the headers on it.
    pub path: Path,
    /// How the line is shared.
    pub sharing: Sharing,
    /// Bytes of the protocol's own header on top of each payload.
    pub header_bytes: u64,
    /// Bytes of the answer to each operation.
    pub answer_bytes: u64,
    /// Operations in flight, and the round-trip.
    pub window: Option<(u64, Duration)>,
    /// The processors of the busier side.
    pub processors: Option<Processors>,
    /// The buses that every operation passes.
    pub buses: Vec<Bus>,
}

/// How several senders or receivers share a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sharing {
    /// One sender has the whole line.
    Alone,
    /// Each of several senders has an equal share, and perhaps a line of its own before the shared one.
    Flows(u32, Option<Path>),
    /// One sender serves several receivers, each behind a line of its own.
    Leaves(u32, Path),
}

/// The processors that handle operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processors {
    /// The number of processors that share the work.
    pub cores: u32,
    /// The time of one operation on one of them.
    pub cost: Duration,
    /// How often each copies an operation's bytes, and at how many bits per second.
    pub copies: Option<(u32, f64)>,
}

/// The limit of operations of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calculated {
    /// Bytes of payload.
    pub size_bytes: u32,
    /// Bytes on the line of one operation alone.
    pub wire_bytes: f64,
    /// The time that these take on the line, in nanoseconds.
    pub wire_ns: f64,
    /// The least bound, with the others beside it.
    pub limit: Limit,
}

impl Calculator {
    /// Returns the bytes on the stream of an operation and of its answer.
    #[must_use]
    pub fn messages(&self, size: u32) -> (u64, u64) {
        (u64::from(size) + self.header_bytes, self.answer_bytes)
    }

    /// Returns the limit of operations of this many bytes.
    #[must_use]
    pub fn limit(&self, size: u32) -> Calculated {
        let (out, back) = self.messages(size);
        let mut bounds = vec![self.line(size)];
        bounds.extend(self.window.map(|(in_flight, rtt)| Bound::window(in_flight, rtt.as_secs_f64() * 1e9)));
        bounds.extend(self.processors.map(|processors| processors.bound((out + back) as f64)));
        bounds.extend(self.buses.iter().map(|bus| bus.bound(out.max(back) as f64)));
        let limit = least(LimitKind::Line, bounds, f64::from(size)).expect("a line's rate is finite");
        let wire_bytes = self.path.wire_bytes(out, Packing::Own);
        Calculated { size_bytes: size, wire_bytes, wire_ns: self.path.latency_ns(out, 0, 0.0), limit }
    }

    fn line(&self, size: u32) -> Bound {
        let (out, back) = self.messages(size);
        let cost = self.path.cost(u64::from(size), out, back, Packing::Stream);
        let trunk = Bound::line(&self.path, &cost);
        match self.sharing {
            Sharing::Alone => trunk,
            Sharing::Leaves(leaves, leaf) => Fan { leaves, leaf, trunk: self.path }.bound(&cost, &cost),
            Sharing::Flows(flows, None) => trunk.shared_by(flows),
            Sharing::Flows(flows, Some(own)) => {
                let (shared, own) = (trunk.shared_by(flows), Bound::line(&own, &cost));
                let formula = format!("own line [{}], shared line [{}]", own.formula, shared.formula);
                let least = if own.operations_per_s < shared.operations_per_s { own } else { shared };
                Bound { formula, ..least }
            }
        }
    }
}

impl Processors {
    fn bound(&self, bytes: f64) -> Bound {
        let cost_ns = self.cost.as_secs_f64() * 1e9;
        match self.copies {
            Some((copies, rate)) => Bound::copies(self.cores, cost_ns, copies, bytes, rate),
            None => Bound::cpu(self.cores, cost_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Ip, Line, Pci, Transport};

    fn path(rate: f64) -> Path {
        Path::new(Line::new(rate, 1500), Ip::V4, Transport::Tcp { timestamps: true }).expect("it is possible")
    }

    fn calculator() -> Calculator {
        Calculator {
            path: path(1e9),
            sharing: Sharing::Alone,
            header_bytes: 12,
            answer_bytes: 28,
            window: None,
            processors: None,
            buses: Vec::new(),
        }
    }

    fn rate(calculator: &Calculator) -> f64 {
        calculator.limit(32_000).limit.operations_per_s.expect("it is known").round()
    }

    #[test]
    fn the_least_bound_is_the_limit() {
        let alone = calculator();
        assert_eq!(rate(&alone), 3676.0);
        let in_flight = Calculator { window: Some((4, Duration::from_millis(2))), ..alone.clone() };
        assert_eq!(rate(&in_flight), 2000.0);
        let processors = Processors { cores: 2, cost: Duration::from_millis(2), copies: None };
        assert_eq!(rate(&Calculator { processors: Some(processors), ..alone.clone() }), 1000.0);
        let copying = Processors { cost: Duration::ZERO, copies: Some((1, 1e8)), ..processors };
        assert_eq!(rate(&Calculator { processors: Some(copying), ..alone.clone() }), 780.0);
        let bus = Bus::Pci(Pci::new(32, 33e6).expect("it is possible"));
        assert_eq!(alone.limit(32_000).limit.binds, Calculator { buses: vec![bus], ..alone }.limit(32_000).limit.binds);
    }

    #[test]
    fn a_line_is_shared_in_both_directions() {
        let sharing = |sharing| rate(&Calculator { sharing, ..calculator() });
        assert_eq!(sharing(Sharing::Flows(4, None)), 919.0);
        assert_eq!(sharing(Sharing::Flows(4, Some(path(1e8)))), 368.0);
        assert_eq!(sharing(Sharing::Leaves(4, path(1e8))), 1471.0);
        assert_eq!(sharing(Sharing::Leaves(20, path(1e8))), 3676.0);
    }
}
