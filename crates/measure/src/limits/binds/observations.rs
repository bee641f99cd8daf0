//! Observations beside a row, and the word for the one that explains its rate.

use crate::limits::{Carrier, OnTheWire};
use crate::units::text::{formula_time, percent};
use crate::{Binding, Measurement, Mode, Observed, ProcessCpu, TcpTimes, Test, Whose};

/// An end, or the way between, that stood still for this share of the time binds.
const STILL: f64 = 0.3;
/// A quota binds where it kept a side from running for this share of the time.
const THROTTLED: f64 = 0.1;
/// Others bind where a thread of either side waited for its processor for this share of the time ...
const WAITED: f64 = 0.2;
/// ... while others used this share of a processor, or the hypervisor took it.
const OTHERS: f64 = 0.2;
/// A processor is nearly full from here on.
const FULL_PERCENT: f64 = 90.0;
/// Losses bind from this share of packets, or of operations, on.
const LOSSES: f64 = 0.002;
const OPERATIONS_LOST: f64 = 0.01;
/// Fewer packets than this say nothing of their losses, unless so many of them were lost.
const PACKETS_MIN: u64 = 100;
const MOST_LOST: f64 = 0.1;
/// A stream that receives has lost packets where this share of them came out of order.
const OUT_OF_ORDER: f64 = 0.003;
/// Packets stand in a queue where the round-trip is this many times the least one, and that is of a network. A full line loses what its queue
/// has no space for, and would be no faster without these losses.
const QUEUED: f64 = 2.0;
const NETWORK_NS: u64 = 200_000;
/// A queue of any length makes the round-trip this many times the least one.
const STANDING: f64 = 1.25;
/// The least timeout of TCP: it sends nothing meanwhile.
const TIMEOUT_S: f64 = 0.2;
/// A send buffer binds where this share of it is on its way: the rest is the kernel's own.
const BUFFER_IN_FLIGHT: f64 = 0.35;
/// A window or a buffer binds where it held data back for this share of the time, or for less if it holds less than an operation.
const HELD_BACK: f64 = 0.5;
const HELD_BACK_IN_PARTS: f64 = 0.3;
/// Ticks of the processors' counters are 10 ms: over less time than this their load is not known.
const COUNTED_MIN_S: f64 = 0.2;
/// Bytes of a full packet of TCP on Ethernet.
const SEGMENT: u64 = 1448;

/// The observations beside a row.
pub(super) struct Observations<'a> {
    found: &'a Measurement,
    tcp: Option<&'a TcpTimes>,
    observed: Observed,
    carrier: Carrier,
}

impl<'a> Observations<'a> {
    pub(super) fn of(found: &'a Measurement, wire: &OnTheWire) -> Self {
        let tcp = found.tcp.as_ref().filter(|_| wire.carrier == Carrier::Tcp);
        Observations { found, tcp, observed: found.observed.unwrap_or_default(), carrier: wire.carrier }
    }

    /// Returns what explains that no bound was reached, and why; `None` if nothing does.
    pub(super) fn word(&self) -> Option<(Binding, String)> {
        let is_lone = self.found.test == Test::Latency;
        self.quota()
            .or_else(|| self.still())
            .or_else(|| self.others())
            // One side is idle while the other has a lone operation.
            .or_else(|| {
                if is_lone {
                    None
                } else {
                    self.processors().or_else(|| self.losses()).or_else(|| self.buffer()).or_else(|| self.reading())
                }
            })
    }

    /// Returns a share of the counted time.
    fn share(&self, seconds: f64) -> f64 {
        if self.found.elapsed_s > 0.0 { seconds / self.found.elapsed_s } else { 0.0 }
    }

    /// Returns a share of the counted time of all connections.
    fn share_of_connections(&self, seconds: f64) -> f64 {
        self.share(seconds) / f64::from(self.tcp.map_or(1, |tcp| tcp.connections.max(1)))
    }

    fn still(&self) -> Option<(Binding, String)> {
        let still = |whose| {
            let stalls = self.found.stalls.iter().filter(|stall| stall.whose == Some(whose));
            self.share(stalls.map(|stall| stall.lasted_s).sum())
        };
        let each = [
            (Whose::FarEnd, Binding::FarEnd, "the far end stood still"),
            (Whose::Host, Binding::Others, "this side had no processor"),
            (Whose::Link, Binding::Loss, "nothing passed the link"),
        ];
        let (share, binds, what) = each
            .map(|(whose, binds, what)| (still(whose), binds, what))
            .into_iter()
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        (share >= STILL).then(|| (binds, format!("{what} for {} of the time", percent(share))))
    }

    fn quota(&self) -> Option<(Binding, String)> {
        let sides = [(self.observed.throttled_s, "this side"), (self.observed.far_throttled_s, "the far end")];
        let throttled = sides.map(|(seconds, side)| (self.share(seconds.unwrap_or(0.0)), side));
        let (share, side) = throttled.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        (share >= THROTTLED).then(|| {
            (
                Binding::Quota,
                format!("the quota of its control group kept {side} from running for {} of the time", percent(share)),
            )
        })
    }

    /// Returns the share of the time for which a thread could run and had no processor, of the side that waited longer.
    fn waited(&self) -> f64 {
        let Observed { waited_for_processor_s, far_waited_for_processor_s, .. } = self.observed;
        self.share(waited_for_processor_s.into_iter().chain(far_waited_for_processor_s).fold(0.0, f64::max))
    }

    fn others(&self) -> Option<(Binding, String)> {
        let Observed { others_s, steal_s, .. } = self.observed;
        let (others, steal) = (self.share(others_s.unwrap_or(0.0)), self.share(steal_s.unwrap_or(0.0)));
        // Of two flows each has threads that the other counts as others.
        if self.found.beside.is_some() {
            return None;
        }
        if steal >= OTHERS {
            return Some((Binding::Others, format!("the hypervisor took {} of a processor", percent(steal))));
        }
        let waited = self.waited();
        (waited >= WAITED && others >= OTHERS).then(|| {
            let (waited, others) = (percent(waited), percent(others));
            (
                Binding::Others,
                format!("a side waited for its processor for {waited} of the time, while others used {others} of one"),
            )
        })
    }

    fn processors(&self) -> Option<(Binding, String)> {
        // Of two flows each has the CPU time of both.
        if self.found.elapsed_s < COUNTED_MIN_S || self.found.beside.is_some() {
            return None;
        }
        let cpu = &self.found.cpu;
        let sides = [(cpu.local, "this side"), (cpu.remote, "the far end")];
        let work = |side: &ProcessCpu| 100.0 * self.share(side.cpu_s()) - self.polling_percent(side);
        let fullest = sides
            .iter()
            .filter_map(|(side, name)| Some((work(side.as_ref()?), *name)))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let own = sides.iter().filter_map(|(side, _)| side.as_ref().map(work)).sum::<f64>();
        let busiest = cpu.busiest_percent? - self.polling_of_both();
        // Both sides may share a full processor by the scheduler's choice, with another one free: then neither has to wait.
        if busiest >= FULL_PERCENT && own >= busiest / 2.0 && self.waited() >= WAITED {
            return Some((Binding::Cpu, format!("the busiest processor worked {busiest:.0} % of the time")));
        }
        fullest
            .filter(|(percent, _)| *percent >= FULL_PERCENT)
            .map(|(percent, name)| (Binding::Cpu, format!("{name} worked {percent:.0} % of the time")))
    }

    /// Returns the part of a side's time that it spent looking without finding, in percent. All of it, if that is not known of a side that
    /// may poll.
    fn polling_percent(&self, side: &ProcessCpu) -> f64 {
        let unknown_s = if self.found.wait == "block" { 0.0 } else { side.cpu_s() };
        100.0 * self.share(side.polling_s.unwrap_or(unknown_s))
    }

    fn polling_of_both(&self) -> f64 {
        [self.found.cpu.local, self.found.cpu.remote].iter().flatten().map(|side| self.polling_percent(side)).sum()
    }

    fn losses(&self) -> Option<(Binding, String)> {
        let Measurement { loss, operations, .. } = self.found;
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        if let Some(tcp) = self.tcp {
            let timeouts = self.share_of_connections(tcp.timeouts as f64 * TIMEOUT_S);
            // What had arrived already was late, and not lost.
            let again = share(tcp.retransmitted.saturating_sub(tcp.spurious), tcp.segments);
            let is_lossy = tcp.segments >= PACKETS_MIN && (again >= LOSSES || timeouts >= STILL);
            // A path that passes next to nothing carries too few packets to count, but waits for timeouts.
            let is_blocked = timeouts >= STILL && again >= MOST_LOST;
            if (is_lossy || is_blocked) && !has_queue(tcp) {
                return Some((
                    Binding::Loss,
                    format!("{} of the segments were sent again, {} timeouts", percent(again), tcp.timeouts),
                ));
            }
            let received = self.found.payload_bytes / SEGMENT;
            let early = share(tcp.out_of_order, received);
            let is_received = self.found.mode == Mode::Receive && received >= PACKETS_MIN;
            return (is_received && early >= OUT_OF_ORDER).then(|| {
                (Binding::Loss, format!("{} of the packets came before one that was sent earlier", percent(early)))
            });
        }
        let (lost, again) =
            (share(loss.lost, operations + loss.lost), share(loss.retransmitted, loss.retransmitted.max(*operations)));
        if lost >= OPERATIONS_LOST {
            return Some((Binding::Loss, format!("{} of the operations were lost", percent(lost))));
        }
        // A simulated stream does not count its segments; behind one that is lost all wait.
        let least = if self.carrier == Carrier::Tcp { LOSSES } else { OPERATIONS_LOST };
        (again >= least).then(|| {
            (Binding::Loss, format!("{} packets were sent again for {operations} operations", loss.retransmitted))
        })
    }

    fn buffer(&self) -> Option<(Binding, String)> {
        let tcp = self.tcp?;
        let size = self.found.size_bytes.unwrap_or(0) * u64::from(tcp.connections.max(1));
        let (window, buffer) = (
            self.share_of_connections(tcp.receive_window_limited_s),
            self.share_of_connections(tcp.send_buffer_limited_s),
        );
        let held = window + buffer;
        let sends = self.found.mode != Mode::Receive;
        let in_flight = self.found.rate.payload_bits_per_s.median / 8.0 * tcp.min_rtt_ns.unwrap_or(0) as f64 * 1e-9;
        if sends && in_flight >= BUFFER_IN_FLIGHT * tcp.send_buffer_bytes as f64 && tcp.send_buffer_bytes > 0 {
            let (in_flight, bytes) = (in_flight as u64, tcp.send_buffer_bytes);
            return Some((
                Binding::Buffer,
                format!(
                    "this side's send buffer: {in_flight} B were on their way, and the kernel keeps {bytes} B for both"
                ),
            ));
        }
        if buffer >= HELD_BACK {
            return Some((
                Binding::Buffer,
                format!("this side's send buffer was full for {} of the time", percent(buffer)),
            ));
        }
        let is_small = tcp.send_buffer_bytes > 0 && tcp.send_buffer_bytes < size;
        (sends && is_small && held >= HELD_BACK_IN_PARTS).then(|| {
            (Binding::Buffer, format!("the socket buffers of {} B hold less than an operation", tcp.send_buffer_bytes))
        })
    }

    fn reading(&self) -> Option<(Binding, String)> {
        let share = self.share_of_connections(self.tcp?.receive_window_limited_s);
        (share >= HELD_BACK).then(|| {
            let share = percent(share.min(1.0));
            (
                Binding::FarEnd,
                format!(
                    "the far end's receive window held data back for {share} of the time: its buffer, or its reading"
                ),
            )
        })
    }

    /// Returns whether packets may have stood in a queue: the round-trip is longer than the least one, or is not known. Whoever sends a
    /// datagram again has waited for its answer before, and a queue was empty by then.
    pub(super) fn may_have_queue(&self) -> bool {
        let has_waited = self.carrier == Carrier::Udp && self.found.loss.retransmitted > 0;
        !has_waited && self.tcp.and_then(stretch).is_none_or(|stretch| stretch >= STANDING)
    }

    /// Returns the observations in words, whether they explain anything or not.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        [self.processors_text(), self.tcp_text()].into_iter().flatten()
    }

    fn processors_text(&self) -> Option<String> {
        let percent = self.found.cpu.busiest_percent.filter(|_| self.found.elapsed_s >= COUNTED_MIN_S)?;
        let polling = self.polling_of_both();
        let but = if polling >= 1.0 { format!(", polling of both sides {polling:.0} %") } else { String::new() };
        Some(format!("the busiest processor {percent:.0} % busy{but}"))
    }

    fn tcp_text(&self) -> Option<String> {
        let tcp = self.tcp?;
        let percent = |seconds: f64| (100.0 * self.share_of_connections(seconds)).min(100.0);
        let time = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), |ns| formula_time(ns as f64));
        Some(format!(
            "TCP here: data on its way {:.0} % of the time, held by the far end's window {:.0} %, by this side's buffer {:.0} %, least round-trip \
             {}, at the end {}",
            percent(tcp.busy_s),
            percent(tcp.receive_window_limited_s),
            percent(tcp.send_buffer_limited_s),
            time(tcp.min_rtt_ns),
            time(tcp.rtt_ns),
        ))
    }
}

/// Returns whether packets of these connections stood in a queue on their way.
fn has_queue(tcp: &TcpTimes) -> bool {
    tcp.min_rtt_ns.is_some_and(|least| least >= NETWORK_NS) && stretch(tcp).is_some_and(|stretch| stretch >= QUEUED)
}

/// Returns the round-trip at the end over the least one.
fn stretch(tcp: &TcpTimes) -> Option<f64> {
    tcp.rtt_ns.zip(tcp.min_rtt_ns).map(|(now, least)| now as f64 / least as f64)
}
