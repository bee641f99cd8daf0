//! Waiting for completions: looks at the rings while polling, sleeps on the channels otherwise.

use super::queue_pair::QueuePair;
use super::rendezvous::Origin;
use super::{SharedMemoryDevice, system};
use crate::device::DeviceError;
use hodo_io::{Begin, Poll, polling};
use hodo_machine::{Instant, Wait};
use hodo_roce::Completion;
use std::io;
use std::time::Duration;

/// Looks at the rings between two readings of the clock, and calls between two readings if there is always a completion.
const LOOKS: u32 = 32;
const CALLS: u32 = 1024;
/// The time between two looks at the channels while nothing sleeps on them: how soon the death of a far end is noticed.
const CHANNELS_EVERY: Duration = Duration::from_millis(1);
/// The time while a far end is yet to connect, or a region of it is yet to be mapped.
const CHANNELS_EVERY_WHILE_CONNECTING: Duration = Duration::from_micros(20);

impl SharedMemoryDevice {
    #[inline]
    pub(super) fn wait(
        &mut self,
        wait: Wait,
        until: Instant,
        completions: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let before = completions.len();
        self.look(completions);
        self.looks += 1;
        if completions.len() > before {
            return if self.looks < CALLS { Ok(()) } else { self.look_at_clock().map(drop) };
        }
        match wait {
            Wait::Never => {
                self.look_at_clock()?;
                self.look(completions);
                Ok(())
            }
            Wait::Block => self.sleep(until, completions),
            Wait::Adaptive => self.linger(until, completions),
            Wait::Spin => self.spin(until, completions).map(drop),
            Wait::SpinThenBlock(span) => {
                let spin_until = (self.resources.clock.now() + span).min(until);
                if self.spin(spin_until, completions)? || spin_until == until {
                    return Ok(());
                }
                self.sleep(until, completions)
            }
        }
    }

    /// Polls before a sleep where that has paid lately.
    fn linger(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let before = completions.len();
        let mut poll = Poll::begin(self.resources.clock.now());
        let begin = self.patience.begin(poll.began());
        if begin == Begin::Sleep {
            self.sleep(until, completions)?;
            if completions.len() > before {
                self.patience.slept(poll.took_ns(self.resources.clock.now()));
            }
            return Ok(());
        }
        loop {
            let is_found = self.look_often(true, completions);
            let now = self.look_at_clock()?;
            if is_found {
                self.patience.found(poll.took_ns(now), poll.polled_ns(), now);
            } else if poll.looked(now) && now < until {
                if begin == Begin::Yield {
                    std::thread::yield_now();
                }
                continue;
            } else {
                self.patience.found_nothing(poll.polled_ns(), now);
            }
            polling::add(poll.polled_ns());
            return if is_found { Ok(()) } else { self.sleep(until, completions) };
        }
    }

    /// Takes the completions that are there.
    #[inline]
    fn look(&mut self, completions: &mut Vec<Completion>) {
        if !self.resources.ready.is_empty() {
            self.take_ready(completions);
        }
        for queue_pair in self.queue_pairs.iter_mut().flatten() {
            queue_pair.look(completions, &mut self.resources);
        }
    }

    #[inline]
    fn take_ready(&mut self, completions: &mut Vec<Completion>) {
        while let Some(completion) = self.resources.ready.pop_front() {
            if let Ok((queue_pair, _)) = self.find(completion.queue_pair) {
                queue_pair.polled(&completion);
            }
            completions.push(completion);
        }
    }

    /// Looks until there is a completion, which it returns, or until a time.
    fn spin(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<bool, DeviceError> {
        let mut last = self.resources.clock.now();
        // Without pauses at first: each delays a message by 20 ns in the mean, a tenth of what a short one takes.
        let mut pauses = false;
        loop {
            if self.look_often(pauses, completions) {
                return Ok(true);
            }
            pauses = true;
            let now = self.look_at_clock()?;
            polling::add(now.nanos_since(last).min(polling::ROUND_NS_MAX));
            last = now;
            if now >= until {
                return Ok(false);
            }
        }
    }

    /// Looks again and again between two readings of the clock, until there is a completion, which it returns.
    #[inline]
    fn look_often(&mut self, pauses: bool, completions: &mut Vec<Completion>) -> bool {
        let before = completions.len();
        for _ in 0..LOOKS {
            self.look(completions);
            if completions.len() > before {
                return true;
            }
            if pauses {
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Sleeps until there is a completion, or until a time.
    fn sleep(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let before = completions.len();
        loop {
            self.table.arm();
            self.look(completions);
            let now = self.resources.clock.now();
            if completions.len() > before || now >= until || !self.resources.ready.is_empty() {
                self.table.disarm();
                self.look(completions);
                return Ok(());
            }
            let wake_at = self.look_again(now).min(until);
            let span = (wake_at != Instant::MAX).then(|| wake_at - now);
            let slept = self.rendezvous.set.wait(span);
            self.table.disarm();
            slept.map_err(|error| system("completion channel", &error))?;
            self.read_channels()?;
            self.expire(self.resources.clock.now());
        }
    }

    /// Returns when there may be something to do that no channel tells of.
    fn look_again(&self, now: Instant) -> Instant {
        let of = |queue_pair: &QueuePair| {
            let news = if queue_pair.has_news() { now + CHANNELS_EVERY } else { Instant::MAX };
            queue_pair.look_again(now).min(news)
        };
        self.queue_pairs.iter().flatten().map(|queue_pair| of(queue_pair)).min().unwrap_or(Instant::MAX)
    }

    /// Reads the clock, and does what is due.
    fn look_at_clock(&mut self) -> Result<Instant, DeviceError> {
        self.looks = 0;
        let now = self.resources.clock.now();
        if now >= self.channels_due || self.resources.needs_channels {
            self.look_at_channels()?;
        }
        self.expire(now);
        Ok(now)
    }

    /// Reads what has come on the channels.
    pub(super) fn look_at_channels(&mut self) -> Result<(), DeviceError> {
        self.resources.needs_channels = false;
        let polled = self.rendezvous.set.wait(Some(Duration::ZERO));
        polled.map_err(|error| system("completion channel", &error))?;
        self.read_channels()?;
        for queue_pair in self.queue_pairs.iter_mut().flatten().filter(|queue_pair| queue_pair.has_news()) {
            queue_pair.announce(&self.resources.regions);
        }
        let is_connecting = self.queue_pairs.iter().flatten().any(|queue_pair| queue_pair.waits_for_channel());
        let every = if is_connecting { CHANNELS_EVERY_WHILE_CONNECTING } else { CHANNELS_EVERY };
        self.channels_due = self.resources.clock.now() + every;
        Ok(())
    }

    /// Reads the channels that the last wait has found ready.
    fn read_channels(&mut self) -> Result<(), DeviceError> {
        let mut has_newcomers = false;
        while let Some(token) = self.rendezvous.set.next() {
            match Origin::of(token) {
                Origin::Listener => {
                    self.rendezvous.accept(&mut self.resources.inbox).map_err(|error| cannot_accept(&error))?;
                    has_newcomers = true;
                }
                Origin::Newcomer(number) => {
                    self.rendezvous.hear(number, &mut self.resources.inbox);
                    has_newcomers = true;
                }
                Origin::Far(index) => self.hear(index),
                Origin::Outgoing(index) => {
                    // A far end that has connected, sent and left before this end looked is heard first.
                    self.rendezvous.accept(&mut self.resources.inbox).map_err(|error| cannot_accept(&error))?;
                    self.admit()?;
                    self.lose(index);
                }
            }
        }
        if has_newcomers {
            self.admit()?;
        }
        Ok(())
    }

    /// Reads what the far end of a queue pair has sent.
    fn hear(&mut self, index: usize) {
        let Some(Some(queue_pair)) = self.queue_pairs.get_mut(index) else { return };
        queue_pair.hear(&mut self.resources);
    }

    /// Closes the channels of a queue pair whose far end has closed the one that this end had opened.
    fn lose(&mut self, index: usize) {
        let Some(Some(queue_pair)) = self.queue_pairs.get_mut(index) else { return };
        // Whatever it sent last comes before its end.
        queue_pair.hear(&mut self.resources);
        queue_pair.lose(&mut self.resources);
    }

    /// Fails the requests whose time is over.
    fn expire(&mut self, now: Instant) {
        for queue_pair in self.queue_pairs.iter_mut().flatten() {
            queue_pair.expire(now, &mut self.resources);
        }
    }
}

#[cold]
fn cannot_accept(error: &io::Error) -> DeviceError {
    system("connection of a far end", error)
}
