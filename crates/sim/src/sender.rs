use crate::congestion::{Congestion, Timeout, Window};
use hodo_machine::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// A transmission counts as lost once one that was sent so many later was acknowledged: segments of a stream keep their
/// order here, so the third duplicate acknowledgement of RFC 5681 says the same.
const OVERTAKEN: u64 = 3;

/// The sending half of a stream with congestion control: what is in flight, what was acknowledged, what is lost.
///
/// Acknowledgements cover all that has arrived before them, as selective ones do (RFC 2018), take no room on the wire,
/// and are lost as often as any packet. They are looked at when somebody wants to send, and are happenings of their own
/// only while the window is full or something is missing.
#[derive(Debug)]
pub(crate) struct Sender {
    window: Window,
    timeout: Timeout,
    segment_bytes: usize,
    /// The transmissions that are not known to have arrived, or to be lost, in order of sending.
    sent: VecDeque<Transmission>,
    /// How often something was sent before the first of those.
    first: u64,
    /// Everything sent before this one was looked at.
    acknowledged: u64,
    /// Losses of what was sent before this one were paid for.
    recovered: u64,
    flight_bytes: usize,
    /// The segments to be sent again.
    lost: VecDeque<u32>,
    acknowledgements: VecDeque<(Instant, u64)>,
    /// Whether one more segment goes out although the window is full: the first that is sent again.
    is_urgent: bool,
    /// Whether the window, and nothing else, holds back what is to be sent.
    pub(crate) is_limited: bool,
    /// Whether a packet was lost that nobody has noticed yet.
    pub(crate) in_doubt: bool,
    /// Whether the schedule will look at the next acknowledgement.
    pub(crate) acknowledgement_awaited: bool,
    /// Whether the schedule will look at the timeout.
    pub(crate) timeout_awaited: bool,
    /// When something was last acknowledged, or sent with nothing in flight: the timeout counts from then.
    progress: Instant,
    last_sent: Instant,
}

#[derive(Debug)]
struct Transmission {
    number: u32,
    bytes: usize,
    at: Instant,
    is_first: bool,
    has_arrived: bool,
    is_acknowledged: bool,
}

impl Sender {
    /// Creates a sender for segments of this size.
    pub(crate) fn new(congestion: Congestion, segment_bytes: usize, now: Instant) -> Self {
        Sender {
            window: Window::new(congestion),
            timeout: Timeout::new(),
            segment_bytes,
            sent: VecDeque::new(),
            first: 0,
            acknowledged: 0,
            recovered: 0,
            flight_bytes: 0,
            lost: VecDeque::new(),
            acknowledgements: VecDeque::new(),
            is_urgent: false,
            is_limited: false,
            in_doubt: false,
            acknowledgement_awaited: false,
            timeout_awaited: false,
            progress: now,
            last_sent: now,
        }
    }

    /// Takes in how long connecting took.
    pub(crate) fn connected(&mut self, round_trip: Duration) {
        self.timeout.measured(round_trip);
    }

    /// Returns whether so many bytes may be sent now.
    pub(crate) fn may_send(&self, bytes: usize) -> bool {
        let window = (self.window.segments * self.segment_bytes as f64) as usize;
        self.is_urgent || self.flight_bytes == 0 || self.flight_bytes + bytes <= window
    }

    /// Returns the next segment to be sent again.
    pub(crate) fn next_lost(&self) -> Option<u32> {
        self.lost.front().copied()
    }

    pub(crate) fn take_lost(&mut self) {
        self.lost.pop_front();
    }

    /// Notes that a segment is sent; returns which transmission it is.
    pub(crate) fn send(&mut self, number: u32, bytes: usize, now: Instant, is_first: bool) -> u64 {
        if self.sent.is_empty() {
            if Duration::from_nanos(now.nanos_since(self.last_sent)) > self.timeout.span() {
                self.window.idle();
            }
            self.progress = now;
        }
        self.is_urgent &= is_first;
        self.last_sent = now;
        self.flight_bytes += bytes;
        self.sent.push_back(Transmission {
            number,
            bytes,
            at: now,
            is_first,
            has_arrived: false,
            is_acknowledged: false,
        });
        self.first + self.sent.len() as u64 - 1
    }

    /// Notes that a transmission has arrived, and when its acknowledgement will be here, unless that is lost.
    pub(crate) fn arrived(&mut self, transmission: u64, acknowledged_at: Option<Instant>) {
        let index = transmission.checked_sub(self.first).map(|index| index as usize);
        if let Some(sent) = index.and_then(|index| self.sent.get_mut(index)) {
            sent.has_arrived = true;
        }
        match acknowledged_at {
            Some(at) => {
                let last = self.acknowledgements.back().map_or(at, |(last, _)| at.max(*last));
                self.acknowledgements.push_back((last, transmission));
            }
            None => self.in_doubt = true,
        }
    }

    /// Returns when the schedule has to look at the next acknowledgement, if anybody waits for it and it does not yet.
    pub(crate) fn awaited_acknowledgement(&mut self) -> Option<Instant> {
        let (at, _) = *self.acknowledgements.front()?;
        let awaits = (self.is_limited || self.in_doubt) && !self.acknowledgement_awaited;
        self.acknowledgement_awaited |= awaits;
        awaits.then_some(at)
    }

    /// Returns when the schedule has to look for a timeout, if something is missing and it does not look yet.
    pub(crate) fn awaited_timeout(&mut self) -> Option<Instant> {
        let awaits = self.in_doubt && !self.timeout_awaited;
        self.timeout_awaited |= awaits;
        awaits.then(|| self.progress + self.timeout.span())
    }

    /// Takes in the acknowledgements that have come by now.
    pub(crate) fn look(&mut self, now: Instant) {
        while let Some((at, transmission)) = self.acknowledgements.front().copied().filter(|(at, _)| *at <= now) {
            self.acknowledgements.pop_front();
            self.acknowledge(at, transmission);
        }
        if self.sent.is_empty() && self.lost.is_empty() {
            self.in_doubt = false;
        }
    }

    /// Takes in that everything up to this transmission has arrived, or never will.
    fn acknowledge(&mut self, at: Instant, transmission: u64) {
        let mut bytes = 0;
        for number in self.acknowledged.max(self.first)..=transmission {
            let Some(sent) = self.sent.get_mut((number - self.first) as usize) else { break };
            if sent.has_arrived {
                sent.is_acknowledged = true;
                bytes += sent.bytes;
                if sent.is_first {
                    self.timeout.measured(Duration::from_nanos(at.nanos_since(sent.at)));
                }
            }
        }
        self.acknowledged = self.acknowledged.max(transmission + 1);
        self.flight_bytes -= bytes;
        (self.progress, self.timeout.passed) = (at, 0);
        let before = self.flight_bytes + bytes;
        let has_lost = self.give_up(|number| number + OVERTAKEN <= transmission);
        if has_lost {
            self.shrink(before);
        } else if self.is_limited && transmission >= self.recovered && bytes > 0 {
            let segments = bytes as f64 / self.segment_bytes as f64;
            self.window.acknowledged(segments, at, self.timeout.round_trip());
        }
    }

    /// Gives up the oldest transmissions that are not acknowledged, as far as they are `overdue`; returns whether one of
    /// them was sent after the last loss was paid for.
    fn give_up(&mut self, overdue: impl Fn(u64) -> bool) -> bool {
        let mut is_new = false;
        while let Some(sent) = self.sent.front().filter(|sent| sent.is_acknowledged || overdue(self.first)) {
            if !sent.is_acknowledged {
                self.flight_bytes -= sent.bytes;
                self.lost.push_back(sent.number);
                is_new |= self.first >= self.recovered;
            }
            self.sent.pop_front();
            self.first += 1;
        }
        is_new
    }

    fn shrink(&mut self, flight_bytes: usize) {
        self.recovered = self.first + self.sent.len() as u64;
        self.window.lost(flight_bytes as f64 / self.segment_bytes as f64);
        self.is_urgent = true;
    }

    /// Looks whether too long nothing was acknowledged. Returns how often that has been so, if it is.
    pub(crate) fn time_out(&mut self, now: Instant) -> Option<u32> {
        self.timeout_awaited = false;
        if !self.in_doubt || self.progress + self.timeout.span() > now {
            return None;
        }
        let flight = self.flight_bytes as f64 / self.segment_bytes as f64;
        self.give_up(|_| true);
        self.acknowledged = self.first;
        self.recovered = self.first;
        // Once more without an answer says nothing new of the path.
        if self.timeout.passed == 0 {
            self.window.timed_out(flight);
        }
        self.timeout.passed += 1;
        self.progress = now;
        Some(self.timeout.passed)
    }
}
