//! Emulators: events of random sizes at a rate, and decisions that take their time. All of it follows from a seed.

use crate::supply::{EventData, Next, Supply};
use crate::wire::Verdict;
use bytes::{Bytes, BytesMut};
use hodo_machine::{Instant, Random};

/// How a quantity is spread: bytes of an event, or nanoseconds of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Always this much.
    Fixed(u64),
    /// Between the two, both included.
    Uniform(u64, u64),
    /// With this mean.
    Exponential(f64),
    /// With this mean and standard deviation, and not below 0.
    Normal(f64, f64),
}

impl Spread {
    /// Draws one value.
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let unit = |random: &mut Random| ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        match *self {
            Spread::Fixed(value) => value,
            Spread::Uniform(low, high) => low + random.below(high.saturating_sub(low).saturating_add(1)),
            Spread::Exponential(mean) => (-libm::log(unit(random)) * mean) as u64,
            Spread::Normal(mean, deviation) => {
                let radius = libm::sqrt(-2.0 * libm::log(unit(random)));
                let angle = core::f64::consts::TAU * unit(random);
                (mean + deviation * radius * libm::cos(angle)).max(0.0) as u64
            }
        }
    }

    /// Returns the largest value that is drawn, but for a few in a million.
    #[must_use]
    pub fn largest(&self) -> u64 {
        match *self {
            Spread::Fixed(value) => value,
            Spread::Uniform(_, high) => high,
            Spread::Exponential(mean) => (mean * 14.0) as u64,
            Spread::Normal(mean, deviation) => (mean + 5.0 * deviation) as u64,
        }
    }

    /// Returns the mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Spread::Fixed(value) => value as f64,
            Spread::Uniform(low, high) => (low as f64 + high as f64) / 2.0,
            Spread::Exponential(mean) | Spread::Normal(mean, _) => mean,
        }
    }
}

/// Which events are accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accept {
    /// This part of all events; which ones follows from their numbers.
    Fraction(f64),
    /// Each whose number divides by this, as the study's every 200th.
    Every(u64),
}

/// The decisions of an emulated node.
#[derive(Debug, Clone)]
pub struct Decisions {
    /// Which events it accepts.
    pub accept: Accept,
    /// Data of the token of an accepted event; if it is empty, the event itself is stored.
    pub output: Bytes,
    /// How long a decision takes, in nanoseconds.
    pub time: Spread,
    /// Seed of the times and of the events that are accepted.
    pub seed: u64,
}

impl Decisions {
    /// Returns the verdict on an event: the same for every node, however often it is asked.
    #[must_use]
    #[inline]
    pub fn verdict(&self, event: u64) -> Verdict {
        let accepted = match self.accept {
            Accept::Fraction(fraction) => fraction > 0.0 && Random::for_purpose(self.seed, event).chance(fraction),
            Accept::Every(count) => count > 0 && event.is_multiple_of(count),
        };
        if accepted { Verdict::Accepted } else { Verdict::Rejected }
    }
}

/// The settings of an emulated source.
#[derive(Debug, Clone)]
pub struct GeneratorConfig {
    /// The first event's number.
    pub first: u64,
    /// From one event's number to the next: more than 1 where several make one run's events.
    pub step: u64,
    /// Events to make; `None` for no end.
    pub count: Option<u64>,
    /// Bytes of an event.
    pub size: Spread,
    /// Events per second, at times of their own; `None`: one for each token.
    pub rate: Option<f64>,
    /// Whether rates are kept on the average only, with times between events that are exponentially spread.
    pub poisson: bool,
    /// Different events in memory.
    pub pool: usize,
    /// Whether each event begins with its number, so that it can be told from all others.
    pub numbered: bool,
    /// Seed of sizes, times and bytes.
    pub seed: u64,
}

/// Events at times of their own.
#[derive(Debug)]
pub struct Pace {
    /// Nanoseconds between two events, on the average.
    mean: f64,
    poisson: bool,
    random: Random,
    due: Option<Instant>,
}

impl Pace {
    /// Schedules `rate` events per second, the first at once; for `poisson` with exponentially distributed times
    /// between them.
    #[must_use]
    pub fn new(rate: f64, poisson: bool, seed: u64) -> Self {
        Pace { mean: 1e9 / rate.max(1e-9), poisson, random: Random::new(seed), due: None }
    }

    /// Takes the event that is due; where none is, when the next one will be.
    ///
    /// # Errors
    /// The instant of the next event, if none is due.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let due = *self.due.get_or_insert(now);
        if now < due {
            return Err(due);
        }
        let gap = if self.poisson { Spread::Exponential(self.mean).draw(&mut self.random) } else { self.mean as u64 };
        self.due = Some(due + core::time::Duration::from_nanos(gap));
        Ok(())
    }
}

/// Makes events.
#[derive(Debug)]
pub struct Generator {
    config: GeneratorConfig,
    /// The different events, one behind the other.
    slab: Bytes,
    largest: usize,
    made: u64,
    pace: Option<Pace>,
    /// Events that are not to be made again: they have their verdict.
    done: crate::Ranges,
}

impl GeneratorConfig {
    /// Returns the number of an event, by how many are made before it; `None` beyond the highest.
    #[must_use]
    pub fn number(&self, before: u64) -> Option<u64> {
        let number = before.checked_mul(self.step.max(1)).and_then(|behind| self.first.checked_add(behind));
        number.filter(|number| *number < u64::MAX)
    }
}

impl Generator {
    /// Creates a generator that leaves out the events in `done`.
    #[must_use]
    pub fn new(config: GeneratorConfig, done: crate::Ranges) -> Self {
        let largest = config.size.largest() as usize;
        // One piece of memory with one count of shares: a count of its own for each event would be a line of the
        // cache that is never there when it is wanted.
        let mut slab = BytesMut::zeroed(largest * config.pool.max(1));
        let mut random = Random::for_purpose(config.seed, 0);
        for chunk in slab.chunks_mut(8) {
            chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
        }
        let slab = slab.freeze();
        let pace = config.rate.map(|rate| Pace::new(rate, config.poisson, config.seed));
        Generator { slab, largest, made: 0, pace, done, config }
    }

    /// Bytes of the event with this number, where its size is spread: it follows from the number.
    fn size(&self, number: u64) -> usize {
        match self.config.size {
            Spread::Fixed(size) => size as usize,
            spread => {
                let drawn = spread.draw(&mut Random::for_purpose(self.config.seed ^ 1, number));
                drawn.min(self.largest as u64) as usize
            }
        }
    }

    fn event(&mut self, number: u64) -> EventData {
        let size = self.size(number);
        let start = (self.made % self.config.pool.max(1) as u64) as usize * self.largest;
        let payload = if self.config.numbered && size >= 8 {
            let mut bytes = BytesMut::with_capacity(size);
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&self.slab[start + 8..start + size]);
            bytes.freeze()
        } else {
            self.slab.slice(start..start + size)
        };
        EventData { number, payload, partial: false }
    }
}

impl Supply for Generator {
    #[inline]
    fn next(&mut self, now: Instant) -> Next {
        loop {
            if self.config.count.is_some_and(|count| self.made >= count) {
                return Next::Ended;
            }
            let Some(number) = self.config.number(self.made) else { return Next::Ended };
            if !self.done.contains(number) {
                if let Some(Err(due)) = self.pace.as_mut().map(|pace| pace.take(now)) {
                    return Next::Later(due);
                }
                let event = self.event(number);
                self.made += 1;
                return Next::Event(event);
            }
            // A whole range at once: a run that goes on may have hundreds of millions.
            let missing = self.done.first_missing(number);
            self.made += (missing - number).div_ceil(self.config.step.max(1)).max(1);
        }
    }

    fn is_paced(&self) -> bool {
        self.pace.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ranges;
    use alloc::vec::Vec;

    fn config() -> GeneratorConfig {
        GeneratorConfig {
            first: 0,
            step: 1,
            count: Some(10),
            size: Spread::Fixed(100),
            rate: None,
            poisson: false,
            pool: 2,
            numbered: true,
            seed: 1,
        }
    }

    fn numbers(mut generator: Generator) -> Vec<u64> {
        core::iter::from_fn(|| match generator.next(Instant::ZERO) {
            Next::Event(event) => Some(event.number),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn leaves_out_what_is_done() {
        let mut done = Ranges::default();
        done.insert_range(0..4);
        done.insert_range(6..7);
        assert_eq!(numbers(Generator::new(config(), done.clone())), [4, 5, 7, 8, 9]);
        assert_eq!(
            numbers(Generator::new(GeneratorConfig { first: 1, step: 2, count: Some(5), ..config() }, done)),
            [5, 7, 9]
        );
    }

    #[test]
    fn ends_at_the_highest_number() {
        let made =
            |first, step| numbers(Generator::new(GeneratorConfig { first, step, ..config() }, Ranges::default()));
        assert_eq!(made(u64::MAX - 3, 1), [u64::MAX - 3, u64::MAX - 2, u64::MAX - 1]);
        assert_eq!(made(u64::MAX - 3, 2), [u64::MAX - 3, u64::MAX - 1]);
        assert_eq!(made(7, u64::MAX / 2), [7, 7 + u64::MAX / 2]);
    }

    #[test]
    fn keeps_its_rate() {
        let mut generator = Generator::new(GeneratorConfig { rate: Some(1000.0), ..config() }, Ranges::default());
        assert!(matches!(generator.next(Instant::ZERO), Next::Event(_)));
        let Next::Later(at) = generator.next(Instant::ZERO) else { panic!("too early") };
        assert_eq!(at.as_nanos(), 1_000_000);
        let late = Instant::from_nanos(5_000_000);
        let caught_up = core::iter::from_fn(|| matches!(generator.next(late), Next::Event(_)).then_some(())).count();
        assert_eq!(caught_up, 5, "a schedule does not forget what was due while nobody asked");
    }

    #[test]
    fn spreads_have_their_means() {
        let mut random = Random::new(4);
        for spread in [Spread::Uniform(10, 30), Spread::Exponential(500.0), Spread::Normal(1000.0, 50.0)] {
            let sum: u64 = (0..20_000).map(|_| spread.draw(&mut random)).sum();
            let mean = sum as f64 / 20_000.0;
            assert!((mean / spread.mean() - 1.0).abs() < 0.03, "{spread:?}: {mean}");
        }
        let decisions =
            Decisions { accept: Accept::Fraction(0.01), output: Bytes::new(), time: Spread::Fixed(0), seed: 3 };
        let accepted = (0..100_000).filter(|event| decisions.verdict(*event) == Verdict::Accepted).count();
        assert!((900..1100).contains(&accepted), "{accepted}");
    }
}
