use hodo_machine::Instant;

/// Which of a plan's channels one link owns: those numbers that leave `index` when divided by `links`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub index: u32,
    pub links: u32,
    pub channels_in_all: u32,
}

impl Share {
    /// Returns the number of this link's channels.
    pub fn channels(self) -> u32 {
        self.channels_in_all / self.links + u32::from(self.index < self.channels_in_all % self.links)
    }

    /// Returns this link's part of a number of operations; the parts of all links add up to it.
    pub fn of(self, operations: u64) -> u64 {
        let channels = u64::from(self.channels_in_all);
        let before = (0..self.index).map(|index| Share { index, ..self }.channels()).sum::<u32>();
        let up_to = |channel: u32| (u128::from(operations) * u128::from(channel) / u128::from(channels)) as u64;
        up_to(before + self.channels()) - up_to(before)
    }
}

/// When operations are due, whatever the link does: number k of all is due `k / rate` after the start, on channel
/// k modulo channels. An operation that finds its channel's window full waits; nothing but its number is kept.
pub(super) struct Schedule {
    share: Share,
    origin: Instant,
    spacing_ns: f64,
    /// The next arrival to be looked at: which round over all channels, which of this link's channels.
    round: u64,
    channel: u32,
    /// Operations that have been started on each channel.
    started: Vec<u64>,
}

impl Schedule {
    pub fn new(share: Share, rate: f64, origin: Instant) -> Self {
        let started = vec![0; share.channels() as usize];
        Schedule { share, origin, spacing_ns: 1e9 / rate, round: 0, channel: 0, started }
    }

    /// Returns the time at which the next operation is due that has not been looked at.
    pub fn next_due(&self) -> Instant {
        self.due(self.channel, self.round)
    }

    /// Looks at the next arrival. Returns its channel, unless it has been started already after [`Schedule::waiting`].
    pub fn arrive(&mut self) -> Option<u32> {
        let (channel, round) = (self.channel, self.round);
        self.channel += 1;
        if self.channel as usize == self.started.len() {
            (self.channel, self.round) = (0, round + 1);
        }
        (self.started[channel as usize] == round).then_some(channel)
    }

    /// Starts the channel's oldest operation that has not been started. Returns the time at which it was due.
    pub fn start(&mut self, channel: u32) -> Instant {
        let number = &mut self.started[channel as usize];
        *number += 1;
        let round = *number - 1;
        self.due(channel, round)
    }

    /// Returns whether an operation of this channel is due and not started.
    pub fn waiting(&self, channel: u32, now: Instant) -> bool {
        self.due(channel, self.started[channel as usize]) <= now
    }

    fn due(&self, channel: u32, round: u64) -> Instant {
        let among_all = u64::from(channel) * u64::from(self.share.links) + u64::from(self.share.index);
        let number = round * u64::from(self.share.channels_in_all) + among_all;
        Instant::from_nanos(self.origin.as_nanos() + (number as f64 * self.spacing_ns) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_and_counts_are_dealt_without_a_rest() {
        for links in 1..=5 {
            for channels_in_all in [1, 4, 7, 100] {
                let shares: Vec<_> = (0..links).map(|index| Share { index, links, channels_in_all }).collect();
                assert_eq!(shares.iter().map(|share| share.channels()).sum::<u32>(), channels_in_all);
                assert_eq!(shares.iter().map(|share| share.of(1001)).sum::<u64>(), 1001);
            }
        }
    }

    #[test]
    fn arrivals_of_all_links_interleave_evenly() {
        let due = |index| {
            let share = Share { index, links: 2, channels_in_all: 3 };
            let mut schedule = Schedule::new(share, 1e6, Instant::from_nanos(500));
            let mut next = || {
                let at = schedule.next_due().as_nanos();
                let channel = schedule.arrive().expect("nobody else starts them");
                assert_eq!(schedule.start(channel).as_nanos(), at);
                (at - 500) / 1000
            };
            (0..6).map(|_| next()).collect::<Vec<_>>()
        };
        assert_eq!(due(0), [0, 2, 3, 5, 6, 8]);
        assert_eq!(due(1), [1, 4, 7, 10, 13, 16]);
    }

    #[test]
    fn one_that_waited_is_not_started_twice() {
        let share = Share { index: 0, links: 1, channels_in_all: 1 };
        let mut schedule = Schedule::new(share, 1e9, Instant::ZERO);
        assert!(schedule.waiting(0, Instant::from_nanos(1)));
        assert_eq!(schedule.start(0), Instant::ZERO);
        assert_eq!(schedule.arrive(), None);
        assert_eq!(schedule.arrive(), Some(0));
    }
}
