//! The study's version 1: a generator in a process of its own, a thread that takes its events into a queue without a bound,
//! and another thread that gives them to nodes; one lock between the two.
//!
//! The queue alone does not decay, however long it grows. It is a list that is walked for its length, as that of a list was
//! found in the study's day: its 222,875 events without a token at 8 ns each are the 1.8 ms that an event took longer.

use super::shape::Shape;
use hodo_farm::emulation::Generator;
use hodo_farm::node::{Command, Event};
use hodo_farm::wire::Verdict;
use hodo_farm::{self as farm, Next, Node, NodeConfig, Supply};
use hodo_farm_host::Error;
use hodo_io::{Attendant, Server, Stop, random_bits};
use hodo_machine::{Address, Instant};
use std::collections::LinkedList;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// When the queue is looked at again that had nothing for a token.
const AGAIN: Duration = Duration::from_micros(20);
/// Events that the generator may have on their way: what is queued is answered at once.
const CREDITS: u32 = 256;

/// Events on their way from one thread to the other.
#[derive(Debug, Default)]
pub struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    events: LinkedList<farm::EventData>,
    /// The number of events when a token was last looked at.
    length: u64,
    /// A token waits for an event.
    token: bool,
    no_token: u64,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: farm::EventData) {
        let mut waiting = self.lock();
        if !waiting.token {
            waiting.no_token += 1;
        }
        waiting.events.push_back(event);
    }

    fn pop(&self) -> Option<farm::EventData> {
        let mut waiting = self.lock();
        waiting.length = waiting.events.iter().map(|_| 1).sum();
        let event = waiting.events.pop_front();
        waiting.token = event.is_none();
        event
    }

    /// Returns the number of waiting events, and of events that found no token when they arrived.
    pub fn counts(&self) -> (u64, u64) {
        let waiting = self.lock();
        (waiting.length, waiting.no_token)
    }
}

/// Where a controller's events come from.
pub enum Supplied {
    Made(Box<Generator>),
    Queue(Arc<Queue>),
}

impl Supply for Supplied {
    #[inline]
    fn next(&mut self, now: Instant) -> Next {
        match self {
            Supplied::Made(generator) => generator.next(now),
            Supplied::Queue(queue) => match queue.pop() {
                Some(event) => Next::Event(event),
                None => Next::Later(now + AGAIN),
            },
        }
    }
}

/// Moves the generator's events into the queue until `stop` is set.
pub fn fill(queue: &Queue, shape: &Shape, generator: SocketAddr, stop: &Stop) -> Result<(), Error> {
    let config = NodeConfig {
        credits: CREDITS,
        event_max: shape.size as u32,
        instance: random_bits(),
        ..NodeConfig::new(vec![Address::Tcp(generator)])
    };
    let make = || (Node::new(config), Filling { queue });
    Server::new(shape.serve_options())
        .attend_here(make, stop)
        .map_err(|why| Error::run("taking events from the generator", &why))
}

struct Filling<'a> {
    queue: &'a Queue,
}

impl Attendant for Filling<'_> {
    type Machine = Node;

    #[inline]
    fn told(&mut self, event: Event) -> Option<Command> {
        let Event::Work { job, payload, .. } = event else { return None };
        self.queue.push(farm::EventData { number: job.event, payload, partial: false });
        Some(Command::Decided { job, verdict: Verdict::Rejected, output: Vec::new().into(), began: job.came })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_measure::{Interval, State, verdict};

    /// Returns the rates of ten seconds in virtual time: `per_s` events arrive each second, and each token takes 300 us
    /// plus `walk_ns` for each event that waits.
    fn rates(per_s: u64, walk_ns: u64) -> Vec<Interval> {
        let queue = Queue::default();
        let (mut now, mut came, mut done) = (0, 0, 0);
        let mut intervals = Vec::new();
        for piece in 1..=100 {
            let before = done;
            while now < piece * 100_000_000 {
                let due = now * per_s / 1_000_000_000;
                while came < due {
                    came += 1;
                    queue.push(farm::EventData { number: came, payload: Vec::new().into(), partial: false });
                }
                done += u64::from(queue.pop().is_some());
                now += 300_000 + walk_ns * queue.counts().0;
            }
            let operations = done - before;
            intervals.push(Interval { t_s: now as f64 * 1e-9, operations, payload_bytes: operations * 32_000 });
        }
        intervals
    }

    #[test]
    fn a_queue_that_grows_and_is_walked_decays_and_is_convicted() {
        let found = verdict(&rates(4000, 100));
        assert_eq!(found.state, State::Drifting, "{}", found.text);
        assert!(found.text.contains("the rate falls"), "{}", found.text);
    }

    #[test]
    fn one_that_only_grows_does_not() {
        let found = verdict(&rates(4000, 0));
        assert_eq!(found.state, State::Stable, "{}", found.text);
    }

    #[test]
    fn an_event_that_finds_a_token_is_not_counted() {
        let queue = Queue::default();
        let event = |number| farm::EventData { number, payload: Vec::new().into(), partial: false };
        assert!(queue.pop().is_none());
        queue.push(event(0));
        assert_eq!((queue.pop().map(|event| event.number), queue.counts()), (Some(0), (1, 0)));
        queue.push(event(1));
        queue.push(event(2));
        assert_eq!(queue.counts().1, 2);
    }
}
