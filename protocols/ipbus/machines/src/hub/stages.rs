use super::packets::{NONE, Packet};
use super::router::Router;
use alloc::string::String;
use core::fmt::Write;
use hodo_machine::{Instant, Moment, Outbox, Sampling, Spans, Stamp};

/// From a packet's arrival in the hub until right before it is written to its board: a board on the same processor answers before the
/// system call has returned.
pub const QUEUE: &str = "hub queue";
/// From then on until the board's reply has arrived: the writing, the network both ways, and the board.
pub const BOARD: &str = "wire and board";
/// From then on until its chunk was written to the client: what it waits for is the rest of the chunk, and those before.
pub const ANSWER: &str = "hub answer";

/// How long the stages of packets took that a board has answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubStages {
    queue: Spans,
    board: Spans,
    answer: Spans,
}

impl HubStages {
    /// Iterates over the stages in order, each with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Spans)> {
        [(QUEUE, &self.queue), (BOARD, &self.board), (ANSWER, &self.answer)].into_iter()
    }

    /// Returns all of it as text, for whoever measures through the hub: a line for each stage, with its name, its sum
    /// in ns and its buckets with their counts, separated by tabs.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, spans) in self.iter() {
            write!(text, "{name}\t{}", spans.sum_ns()).expect("a string takes whatever is written");
            for (bucket, count) in spans.buckets() {
                write!(text, "\t{bucket}={count}").expect("a string takes whatever is written");
            }
            text.push('\n');
        }
        text
    }

    /// Reads what [`HubStages::text`] wrote; nothing where that is something else. Other stages are passed over.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let mut stages = HubStages::default();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let spans = match fields.next()? {
                QUEUE => &mut stages.queue,
                BOARD => &mut stages.board,
                ANSWER => &mut stages.answer,
                _ => continue,
            };
            spans.add_sum_ns(fields.next()?.parse().ok()?);
            for field in fields {
                let (bucket, count) = field.split_once('=')?;
                spans.add_bucket(bucket.parse().ok()?, count.parse().ok()?).then_some(())?;
            }
        }
        Some(stages)
    }
}

/// The times of a packet's stages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// When it came, where it is one of those that are stamped.
    pub(super) came: Option<Instant>,
    sent: Option<Instant>,
    replied: Option<Instant>,
}

impl Times {
    pub(super) fn replied(&mut self, now: Instant) {
        self.replied = self.sent.map(|_| now);
    }
}

/// Which packets are stamped, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Stages {
    pub(super) sampling: Sampling,
    taken: u64,
    pub(super) seen: HubStages,
}

impl Stages {
    /// Returns the times of a packet that comes now.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) -> Times {
        self.taken = self.taken.wrapping_add(1);
        Times { came: self.sampling.takes(self.taken).then_some(now), ..Times::default() }
    }
}

/// Marks a packet that goes to its board with what this poll sends.
#[inline]
pub(super) fn mark_sent(number: u32, packet: &Packet, out: &mut Outbox) {
    if packet.times.came.is_some() && packet.client != NONE {
        out.mark(QUEUE, u64::from(number), Moment::Sending);
    }
}

/// Marks a packet whose answer goes to its client with what this poll sends.
#[inline]
pub(super) fn mark_answered(number: u32, packet: &Packet, out: &mut Outbox) {
    if packet.times.replied.is_some() {
        out.mark(ANSWER, u64::from(number), Moment::Sent);
    }
}

impl Router {
    /// Takes the stamp of a mark. It was made since the last input, so that the packet's place is not another's yet.
    pub(super) fn stamped(&mut self, stamp: Stamp) {
        let times = &mut self.packets[stamp.tag as u32].times;
        if stamp.stage == QUEUE {
            times.sent = Some(stamp.at);
        } else if let Times { came: Some(came), sent: Some(sent), replied: Some(replied) } = *times {
            self.stages.seen.queue.record(sent.nanos_since(came));
            self.stages.seen.board.record(replied.nanos_since(sent));
            self.stages.seen.answer.record(stamp.at.nanos_since(replied));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_all_of_it() {
        let mut stages = HubStages::default();
        assert_eq!(HubStages::of_text(&stages.text()), Some(stages.clone()));
        (0..1000).for_each(|n| stages.board.record(n * n));
        stages.queue.record(64);
        assert!(stages.text().starts_with("hub queue\t64\t1=1\nwire and board\t332833500\t0=8\t"), "{}", stages.text());
        assert_eq!(HubStages::of_text(&(stages.text() + "a later one\t1\n")), Some(stages));
    }

    #[test]
    fn what_is_no_such_text_is_nothing() {
        for text in ["hub queue", "hub queue\tx", "hub queue\t1\t5", "hub queue\t1\t65535=1", "hub queue\t1\t1=-1"] {
            assert_eq!(HubStages::of_text(text), None, "{text}");
        }
    }
}
