use hodo_machine::Instant;
use std::collections::VecDeque;

/// The operations in flight in the order in which they were started, and which of them were overtaken.
///
/// An operation is overtaken once one has been answered that was started some time later: a quarter of the usual answer time, or as much
/// as answers were observed to swap places. It is most likely lost then, although the link waits longer before it gives it up.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// The flight of each slot.
    flights: Vec<Flight>,
    order: VecDeque<(u32, Instant)>,
    overtaken: usize,
    /// When the newest of the answered operations was started.
    newest: Instant,
    /// The longest time between the starts of two operations whose answers swapped places.
    swapped_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Flight {
    #[default]
    None,
    Since(Instant),
    Overtaken,
}

impl Flights {
    /// Takes over operations in flight, each with its slot and the time at which it was started.
    pub fn new(in_flight: impl Iterator<Item = (u32, Instant)>) -> Self {
        let mut all: Vec<(u32, Instant)> = in_flight.collect();
        all.sort_by_key(|(_, started)| *started);
        let mut flights = Flights::default();
        all.into_iter().for_each(|(slot, started)| flights.started(slot, started));
        flights
    }

    /// Returns how many operations in flight have been overtaken.
    #[inline]
    pub fn overtaken(&self) -> usize {
        self.overtaken
    }

    /// Notes that an operation has been started.
    #[inline]
    pub fn started(&mut self, slot: u32, now: Instant) {
        if self.flights.len() <= slot as usize {
            self.flights.resize(slot as usize + 1, Flight::None);
        }
        self.flights[slot as usize] = Flight::Since(now);
        self.order.push_back((slot, now));
    }

    /// Notes that an operation has been answered, and returns whether it had been overtaken.
    #[inline]
    pub fn answered(&mut self, slot: u32, started: Instant) -> bool {
        let was_overtaken = self.ended(slot);
        if was_overtaken {
            self.swapped_ns = self.swapped_ns.max(self.newest.nanos_since(started));
        }
        self.newest = self.newest.max(started);
        was_overtaken
    }

    /// Returns how many more operations are overtaken now, of those that were started at `since` or later.
    #[inline]
    pub fn overtake(&mut self, answer_ns: u64, since: Instant) -> u64 {
        let (mut more, margin_ns) = (0, self.swapped_ns.max(answer_ns / 4));
        while let Some(&(slot, started)) = self.order.front()
            && self.newest.nanos_since(started) > margin_ns
        {
            self.order.pop_front();
            more += u64::from(self.lose(slot, started) && started >= since);
        }
        more
    }

    /// Counts all operations in flight as overtaken.
    pub fn overtake_all(&mut self) {
        while let Some((slot, started)) = self.order.pop_front() {
            self.lose(slot, started);
        }
    }

    /// Notes that an operation has ended, and returns whether it had been overtaken.
    #[inline]
    pub fn ended(&mut self, slot: u32) -> bool {
        let flight = self.flights.get_mut(slot as usize).map(std::mem::take).unwrap_or_default();
        self.overtaken -= usize::from(flight == Flight::Overtaken);
        flight == Flight::Overtaken
    }

    /// Counts an operation as overtaken, and returns whether it was in flight.
    fn lose(&mut self, slot: u32, started: Instant) -> bool {
        let flight = &mut self.flights[slot as usize];
        let is_in_flight = *flight == Flight::Since(started);
        if is_in_flight {
            *flight = Flight::Overtaken;
            self.overtaken += 1;
        }
        is_in_flight
    }
}
