//! The study's version 1: a generator in a process of its own, a thread that takes its events into a queue without a bound,
//! and another thread that gives them to nodes; one lock between the two.
//!
//! The queue alone does not decay, however long it grows. It is a list that is walked for its length, as that of a list was
//! found in the study's day: its 222,875 events without a token at 8 ns each are the 1.8 ms that an event took longer.

use super::shape::Shape;
use crate::Error;
use crate::farm::instance;
use hodo_catalog::farm::emulation::Generator;
use hodo_catalog::farm::node::{Command, Decide, Event};
use hodo_catalog::farm::wire::Verdict;
use hodo_catalog::farm::{self, Next, Node, NodeConfig, Supply};
use hodo_io::{Attendant, Stop, attend_opened};
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
    events: LinkedList<farm::Event>,
    /// How many they were when a token was last looked at.
    length: u64,
    /// A token waits for an event.
    token: bool,
    no_token: u64,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: farm::Event) {
        let mut waiting = self.lock();
        if !waiting.token {
            waiting.no_token += 1;
        }
        waiting.events.push_back(event);
    }

    fn pop(&self) -> Option<farm::Event> {
        let mut waiting = self.lock();
        waiting.length = waiting.events.iter().map(|_| 1).sum();
        let event = waiting.events.pop_front();
        waiting.token = event.is_none();
        event
    }

    /// Events that wait, and those that found no token when they came.
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

/// Takes the generator's events into the queue, until told to stop.
pub fn fill(queue: &Queue, shape: &Shape, generator: SocketAddr, stop: &Stop) -> Result<(), Error> {
    let config = NodeConfig {
        controllers: vec![Address::Socket(generator)],
        number: 0,
        credits: CREDITS,
        weight: 1,
        event_max: shape.size as u32,
        decide: Decide::Application,
        silence: Duration::from_secs(2),
        instance: instance(),
    };
    let make = || (Node::new(config), Filling { queue });
    attend_opened(&shape.serve_options(), Duration::ZERO, make, stop)
        .map_err(|error| Error::Failed(format!("taking events from the generator: {error}")))
}

struct Filling<'a> {
    queue: &'a Queue,
}

impl Attendant for Filling<'_> {
    type Machine = Node;

    #[inline]
    fn told(&mut self, event: Event) -> Option<Command> {
        let Event::Work { job, payload, .. } = event else { return None };
        self.queue.push(farm::Event { number: job.event, payload, partial: false });
        Some(Command::Decided { job, verdict: Verdict::Rejected, output: Vec::new().into(), began: job.came })
    }
}
