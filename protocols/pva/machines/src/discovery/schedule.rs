//! When names are asked for: at first soon, then after 1, 2, 3 and up to 30 seconds, as pvxs does.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{Instant, Random, between};

/// The time that names are gathered in which are asked for together at first.
const GATHERED: Duration = Duration::from_millis(10);
/// The longest additional wait of names whose server went away, so that its clients do not search all at once.
const SPREAD_MS: u32 = 200;
/// The tick of the wheel.
const TICK: Duration = Duration::from_secs(1);
/// The longest wait, in ticks.
const WAIT_MAX: usize = 30;
/// Slots of the wheel: one for each wait, and one more for the jitter.
const SLOTS: usize = WAIT_MAX + 2;

/// The names to be asked for, by their numbers on the wire, each at one place.
#[derive(Debug)]
pub(crate) struct Schedule {
    fresh: Vec<u32>,
    fresh_at: Option<Instant>,
    wheel: [Vec<u32>; SLOTS],
    position: usize,
    /// The next tick, while any name waits in the wheel.
    tick_at: Option<Instant>,
    waiting: usize,
    /// Names to be asked for now, in turn.
    pub(crate) due: VecDeque<u32>,
    random: Random,
}

impl Schedule {
    pub(crate) fn new(seed: u64) -> Self {
        Schedule {
            fresh: Vec::new(),
            fresh_at: None,
            wheel: [const { Vec::new() }; SLOTS],
            position: 0,
            tick_at: None,
            waiting: 0,
            due: VecDeque::new(),
            random: Random::new(seed),
        }
    }

    /// Adds a name that has not been asked for; one whose server went away waits a little longer.
    pub(crate) fn add(&mut self, now: Instant, cid: u32, is_lost: bool) {
        self.fresh.push(cid);
        if self.fresh_at.is_none() || !is_lost {
            let spread = if is_lost { between(self.random.bits(), 0, SPREAD_MS) } else { 0 };
            let at = now + GATHERED + Duration::from_millis(spread.into());
            self.fresh_at = Some(self.fresh_at.map_or(at, |before| before.min(at)));
        }
    }

    /// Adds a name that has been asked for so many times.
    pub(crate) fn add_again(&mut self, now: Instant, cid: u32, attempts: u8) {
        let jitter = (self.random.bits() & 1) as usize;
        let wait = usize::from(attempts).clamp(1, WAIT_MAX) + jitter;
        self.wheel[(self.position + wait) % SLOTS].push(cid);
        self.waiting += 1;
        self.tick_at.get_or_insert(now + TICK);
    }

    /// Makes every name due that waits.
    pub(crate) fn hurry(&mut self) {
        for slot in &mut self.wheel {
            self.due.extend(slot.drain(..));
        }
        (self.waiting, self.tick_at) = (0, None);
    }

    /// Makes the names due whose time has come.
    pub(crate) fn advance(&mut self, now: Instant) {
        if self.fresh_at.is_some_and(|at| at <= now) {
            self.fresh_at = None;
            self.due.extend(self.fresh.drain(..));
        }
        // After a long sleep of the host each slot comes once.
        for _ in 0..SLOTS {
            let Some(at) = self.tick_at.filter(|at| *at <= now) else { return };
            self.position = (self.position + 1) % SLOTS;
            let slot = &mut self.wheel[self.position];
            self.waiting -= slot.len();
            self.due.extend(slot.drain(..));
            self.tick_at = (self.waiting > 0).then(|| at + TICK);
        }
        self.tick_at = self.tick_at.map(|_| now + TICK);
    }

    /// Returns when the next names become due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.fresh_at.into_iter().chain(self.tick_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn every_name_is_asked_for_after_1_2_3_and_up_to_30_seconds() {
        let mut schedule = Schedule::new(3);
        let mut random = Random::new(9);
        let mut now = Instant::from_nanos(5_000_000_000);
        let mut asked: BTreeMap<u32, Vec<Instant>> = BTreeMap::new();
        let mut added: u32 = 0;
        let end = now + Duration::from_secs(2000);
        while now < end {
            if added < 500 && random.chance(0.3) {
                schedule.add(now, added, random.chance(0.5));
                asked.insert(added, alloc::vec![now]);
                added += 1;
            }
            now = schedule.next().unwrap_or(now + TICK).max(now).min(end);
            if random.chance(0.2) {
                now = now + Duration::from_millis(random.below(50));
            }
            schedule.advance(now);
            while let Some(cid) = schedule.due.pop_front() {
                let times = asked.get_mut(&cid).expect("it was added");
                times.push(now);
                schedule.add_again(now, cid, times.len() as u8 - 1);
            }
        }
        assert_eq!(added, 500);
        assert!(asked[&0].len() > 60);
        for times in asked.values() {
            for (number, pair) in times.windows(2).enumerate() {
                let wait = (pair[1] - pair[0]).as_millis() as u64;
                let (least, most) = match number {
                    0 => (10, 10 + u64::from(SPREAD_MS) + 50),
                    _ => ((number.min(WAIT_MAX) as u64 - 1) * 1000, (number.min(WAIT_MAX) as u64 + 1) * 1000 + 200),
                };
                assert!((least..=most).contains(&wait), "attempt {number}: {wait} ms");
            }
            assert!(times.len() > 10);
        }
    }

    #[test]
    fn after_a_long_sleep_and_in_a_hurry_every_name_comes_once() {
        let mut schedule = Schedule::new(1);
        let now = Instant::from_nanos(1);
        (0..100).for_each(|cid| schedule.add_again(now, cid, 1 + (cid % 30) as u8));
        schedule.advance(now + Duration::from_secs(3600));
        assert_eq!((schedule.due.len(), schedule.next()), (100, None));
        schedule.due.clear();
        (0..100).for_each(|cid| schedule.add_again(now, cid, 30));
        schedule.hurry();
        assert_eq!((schedule.due.len(), schedule.next()), (100, None));
    }
}
