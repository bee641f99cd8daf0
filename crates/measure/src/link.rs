use crate::{ClockDifference, Loss, Mode, TcpTimes};
use hodo_io::usage::Usage;
use hodo_machine::{Closed, Instant, Sampling, Spans, Stamp, Wait};
use std::time::Duration;
use thiserror::Error;

/// One thing to be done over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The caller's name for it; comes back in its [`Completion`].
    pub tag: u64,
    /// Over which channel, from 0.
    pub channel: u32,
    /// Bytes of payload.
    pub size: u32,
    /// Which way the payload goes.
    pub mode: Mode,
}

/// A subscription to updates, which the far end sends without a request for each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subscription {
    /// The channel, from 0; its updates carry this number as their tag.
    pub channel: u32,
    /// Bytes of payload of an update.
    pub size: u32,
    /// Updates per second; `None` for as fast as the far end can.
    pub rate: Option<f64>,
    /// The time from the beginning of the subscription to its first update.
    pub first_after: Duration,
    /// The updates that may wait at the far end while this side is behind. With one more, the oldest is skipped.
    pub queue: u32,
}

/// The end of an operation, or an arrival, at [`Link::now`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the operation, or the channel of what has arrived.
    pub tag: u64,
    /// How the operation ended, or what has arrived.
    pub outcome: Outcome,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done: the payload is where it was to go.
    Done,
    /// Given up: there was no sign of it in time.
    Lost,
    /// Arrived after it had been reported lost. Follows [`Outcome::Lost`] with the same tag.
    Recovered,
    /// The far end refused it.
    Refused,
    /// Not begun, and forgotten after [`Link::withdraw`].
    Withdrawn,
    /// An update has arrived. It was not started here; more may follow with the same tag.
    Update {
        /// The time since it was due, or sent where nothing says when it is due.
        took_ns: u64,
    },
    /// The subscription has ended; no update follows.
    Unsubscribed,
    /// Sent, and not waited for: without a window.
    Sent,
    /// More of what was sent without a window has arrived at the far end.
    Arrived {
        /// Operations.
        count: u64,
    },
}

/// The far end's report of itself and of what it received, since the link was opened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FarEnd {
    /// The usage of its process, if it reports that.
    pub usage: Option<Usage>,
    /// Operations of [`Mode::Send`] whose payload it received, each counted once.
    pub received: u64,
    /// Operations done by each of its nodes, if the link distributes operations over nodes by itself; else empty.
    pub served: Vec<u64>,
    /// Where each receiver is, and the operations that it received, if the far end is a group of them; else empty. [`received`](Self::received)
    /// is what all of them did.
    pub receivers: Vec<(String, u64)>,
    /// Duplicates and reordered ones among what it received; `lost` stays 0, because it cannot know.
    pub loss: Loss,
    /// The time by which it has fallen behind the pace that it is to keep, if it keeps one and says so.
    pub shortfall_s: Option<f64>,
    /// How far its clock is ahead, if ages of updates depend on that.
    pub clock: Option<ClockDifference>,
    /// How long its stages took, by their names and in their order, while this link samples any.
    pub stages: Vec<(&'static str, Spans)>,
}

/// The wait for a far end's report. It is in vain once nothing has come to its end, or got through, for as long as it was to last.
#[derive(Debug, Clone)]
pub struct ReportWait {
    patience: Duration,
    heard: Instant,
    ended: usize,
}

impl ReportWait {
    /// Begins `now`, to last until `until`, with what has come to its end before.
    #[must_use]
    pub fn begin(now: Instant, until: Instant, done: &[Completion]) -> ReportWait {
        ReportWait { patience: until - now, heard: now, ended: done.len() }
    }

    /// Returns until when the wait lasts by what is known `now`: the [progress](Link::progress) of the link, and what has come to its end;
    /// `None` if it is over.
    pub fn until(&mut self, now: Instant, progress: Instant, done: &[Completion]) -> Option<Instant> {
        let is_heard = |completion: &Completion| !matches!(completion.outcome, Outcome::Lost | Outcome::Sent);
        if done.iter().skip(self.ended).any(is_heard) {
            self.heard = now;
        }
        self.ended = done.len();
        let until = self.heard.max(progress) + self.patience;
        (now < until).then_some(until)
    }
}

/// A link that the tester drives: operations of a size, over channels, with a window in flight.
pub trait Link {
    /// Starts an operation. It is on its way after the next [`Link::poll`].
    fn start(&mut self, operation: Operation);

    /// Drives the link, waits at most to `until` for something to happen, and appends what is done.
    ///
    /// # Errors
    /// Any [`LinkError`]: the link cannot go on. Completions from before it are appended.
    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError>;

    /// Returns the time now, on this link's clock: real, or virtual for a simulated link.
    fn now(&self) -> Instant;

    /// Returns when a part of an operation last got through, if this link knows: one that takes long is no sign of a far end that
    /// has stalled.
    fn progress(&self) -> Instant {
        Instant::ZERO
    }

    /// Returns whether nothing below this link holds operations back, as with datagrams, so that its window is to be opened by answers.
    fn opens_window(&self) -> bool {
        false
    }

    /// Withdraws the operations that nothing has been sent of, if this link holds such back; each ends as [`Outcome::Withdrawn`].
    fn withdraw(&mut self) {}

    /// Makes sure that every started operation will complete without another being started after it.
    fn flush(&mut self) {}

    /// Subscribes a channel to updates, which arrive as [`Outcome::Update`] from then on.
    ///
    /// # Errors
    /// [`LinkError::Unsupported`] if the far end of this link sends nothing by itself.
    fn subscribe(&mut self, subscription: Subscription) -> Result<(), LinkError> {
        let _ = subscription;
        Err(LinkError::Unsupported("the far end of this link sends no updates".to_owned()))
    }

    /// Ends all subscriptions; [`Outcome::Unsubscribed`] follows for each, and updates may arrive until then.
    fn unsubscribe(&mut self) {}

    /// Requests the counters and the CPU usage of the far end. Operations in flight go on; their completions are
    /// appended. The report may stand behind much else, so it is waited for beyond `until` as long as anything gets through
    /// ([`ReportWait`]). `None` if the far end does not report, or not in this time.
    ///
    /// # Errors
    /// Any [`LinkError`]: the link cannot go on.
    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError>;

    /// Returns the losses that this side has seen since the link was opened, beside [`Outcome::Lost`]: duplicated,
    /// reordered, retransmitted; refused, which are those of the lost that its kernel did not send; and of updates those
    /// that were lost or skipped.
    fn losses(&self) -> Loss {
        Loss::default()
    }

    /// Returns what this side's TCP reports of its connections since they were opened; `None` if the link is not TCP.
    fn tcp(&self) -> Option<TcpTimes> {
        None
    }

    /// Stamps from now on the stages of those operations that `taken` selects, and of no others. At first none are
    /// stamped. Returns whether this link can stamp stages.
    fn sample_stages(&mut self, taken: Sampling) -> bool {
        let _ = taken;
        false
    }

    /// Returns the stage within which those of the far end are, if it is not the last of this link.
    fn stage_of_far_end(&self) -> Option<&'static str> {
        None
    }

    /// Appends the stamps made since the last call; those of one operation in their order.
    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        let _ = stamps;
    }
}

/// Why a link cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A channel's far end is gone.
    #[error("channel {channel}: {why}")]
    Closed {
        /// Which channel.
        channel: u32,
        /// Why.
        why: Closed,
    },
    /// The far end does not speak this protocol, or broke its rules.
    #[error("channel {channel}: {what}")]
    PeerMisbehaved {
        /// Which channel.
        channel: u32,
        /// The violation, in words.
        what: String,
    },
    /// Nothing came from the far end for this many milliseconds.
    #[error("the far end has stalled: nothing came from it for {millis} ms; is it stopped or overloaded?")]
    Stalled {
        /// How long.
        millis: u64,
    },
    /// A far end that had reported what it received does not report any more.
    #[error(
        "{who} has not reported for {millis} ms: it is gone or stopped, or was started anew; what arrived there of the rest is not known"
    )]
    Unreported {
        /// The far end, or one receiver of a group.
        who: String,
        /// How long it was waited for.
        millis: u64,
    },
    /// The user interrupted the run.
    #[error("interrupted")]
    Interrupted,
    /// The operating system refused something that is needed, with this `errno`.
    #[error("the operating system refused: {}", std::io::Error::from_raw_os_error(*.0))]
    System(i32),
    /// The link cannot do what the plan asks.
    #[error("{0}")]
    Unsupported(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a report stand behind 400 ms of data, of which something ends, or gets through, now and then.
    #[test]
    fn a_report_behind_much_else_is_waited_for_and_one_that_never_comes_is_not() {
        let at = Instant::from_nanos;
        let ms = |ms: u64| at(1_000_000_000 + ms * 1_000_000);
        let mut done = vec![Completion { tag: 1, outcome: Outcome::Done }];
        let mut wait = ReportWait::begin(ms(0), ms(100), &done);
        assert_eq!(wait.until(ms(90), at(0), &done), Some(ms(100)));
        done.push(Completion { tag: 2, outcome: Outcome::Done });
        assert_eq!(wait.until(ms(95), at(0), &done), Some(ms(195)));
        assert_eq!(wait.until(ms(190), ms(180), &done), Some(ms(280)));
        // What is given up, or leaves, is no sign of the far end.
        done.push(Completion { tag: 3, outcome: Outcome::Lost });
        done.push(Completion { tag: 4, outcome: Outcome::Sent });
        assert_eq!(wait.until(ms(280), ms(180), &done), None);
    }
}
