use alloc::vec::Vec;
use hodo_machine::Instant;

/// When each of many things wants to be looked at: a heap, in which everything has one place at most.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    heap: Vec<(Instant, u32)>,
    /// Where in the heap each thing is, plus 1; 0 where it is not.
    places: Vec<u32>,
}

impl Alarms {
    /// The next, if it is due.
    pub(super) fn due(&self, now: Instant) -> Option<u32> {
        self.heap.first().filter(|(at, _)| *at <= now).map(|(_, thing)| *thing)
    }

    /// When the next is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Sets the one alarm of a thing, or takes it away.
    pub(super) fn set(&mut self, thing: u32, at: Option<Instant>) {
        let index = thing as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        let place = (self.places[index] as usize).checked_sub(1);
        match (place, at) {
            (None, None) => {}
            (None, Some(at)) => {
                self.heap.push((at, thing));
                self.rise(self.heap.len() - 1);
            }
            (Some(place), Some(at)) => {
                self.heap[place].0 = at;
                self.settle(place);
            }
            (Some(place), None) => {
                self.heap.swap_remove(place);
                self.places[index] = 0;
                if place < self.heap.len() {
                    self.settle(place);
                }
            }
        }
    }

    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.heap.swap(place, (place - 1) / 2);
            self.note(place);
            place = (place - 1) / 2;
        }
        self.note(place);
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1)..self.heap.len().min(2 * place + 3);
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if self.heap[place] <= self.heap[least] {
                break;
            }
            self.heap.swap(place, least);
            self.note(place);
            place = least;
        }
        self.note(place);
    }

    fn note(&mut self, place: usize) {
        self.places[self.heap[place].1 as usize] = place as u32 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn the_next_is_the_earliest_of_all_that_are_set() {
        let mut random = hodo_sim::Random::new(1);
        let (mut alarms, mut truth) = (Alarms::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let thing = random.below(40) as u32;
            let at = random.chance(0.7).then(|| Instant::from_nanos(random.below(1000)));
            alarms.set(thing, at);
            match at {
                Some(at) => truth.insert(thing, at),
                None => truth.remove(&thing),
            };
            assert_eq!(alarms.next_at(), truth.values().min().copied());
            let now = Instant::from_nanos(random.below(1000));
            assert_eq!(alarms.due(now).map(|thing| truth[&thing]), alarms.next_at().filter(|at| *at <= now));
        }
    }
}
