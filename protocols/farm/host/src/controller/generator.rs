use hodo_farm::emulation::{Generator, GeneratorConfig};
use hodo_farm::{Next, NoSupply, Ranges, Supply};
use hodo_machine::Instant;

/// The events that one thread of a controller makes itself.
pub enum Made {
    Nothing,
    Events(Box<Generator>),
}

impl Made {
    /// Gives thread `index` of `threads` its part of the events: numbers without a gap, less those that are `done`.
    pub fn part(all: Option<&GeneratorConfig>, index: usize, threads: usize, done: &Ranges) -> Made {
        let Some(config) = all else { return Made::Nothing };
        let mut config = config.clone();
        if let Some(count) = config.count {
            let part = count.div_ceil(threads as u64);
            config.first += part * index as u64;
            config.count = Some(part.min(count.saturating_sub(part * index as u64)));
        }
        config.rate = config.rate.map(|rate| rate / threads as f64);
        Made::Events(Box::new(Generator::new(config, done.clone())))
    }
}

impl Supply for Made {
    #[inline]
    fn next(&mut self, now: Instant) -> Next {
        match self {
            // Sources may come at any time.
            Made::Nothing => NoSupply.next(now),
            Made::Events(generator) => generator.next(now),
        }
    }

    fn is_paced(&self) -> bool {
        matches!(self, Made::Events(generator) if generator.is_paced())
    }
}
