//! A source of a farm whose events a program reads out of its detector, on threads of its own.

use hodo_farm::source::{Command, Event};
use hodo_farm::wire::Verdict;
use hodo_farm::{NoSupply, Source, SourceConfig};
use hodo_io::{Attendant, ServeOptions, Server, Stop, Waker, random_bits};
use hodo_machine::{Address, Bytes};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the last bytes of a connection may take when it ends.
const LAST_BYTES: Duration = Duration::from_millis(200);

/// How a read-out runs.
#[derive(Debug)]
pub struct ReadingOut {
    /// The settings of the thread that talks to the farm.
    pub serve: ServeOptions,
    /// The number of the source, and its far end: a builder, which makes events of the fragments of several sources, or
    /// a controller.
    pub source: SourceConfig,
    /// Bytes of events that may be without a verdict; a thread that submits more waits.
    pub memory: u64,
}

impl ReadingOut {
    /// Creates the settings of source 0 in run 1 for a builder or a controller, with 64 MiB for events that have no verdict.
    #[must_use]
    pub fn new(far_end: Address) -> Self {
        let source = SourceConfig { instance: random_bits(), ..SourceConfig::new(far_end, 0, 1) };
        ReadingOut { serve: ServeOptions::default(), source, memory: 64 << 20 }
    }
}

/// A source of a farm, to which threads of the program give what they read out.
///
/// Each event is kept until its verdict is durable, over however many connections and deaths of the far end, and the
/// farm decides on it once.
#[derive(Debug)]
pub struct Readout {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Why an event was not taken; it is handed back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// There is no memory for it before others have their verdicts.
    #[error("there is no memory for the event until earlier events have their verdicts; submit it again later")]
    Full(Bytes),
    /// One with this number and run is without a verdict.
    #[error("an event with this number and run is still without a verdict")]
    Twice(Bytes),
    /// The read-out has come to its end.
    #[error("the read-out has ended")]
    Ended(Bytes),
}

/// The counters of the events that were submitted, by their outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadoutCounters {
    /// Stored.
    pub accepted: u64,
    /// Not stored.
    pub rejected: u64,
    /// Stored as events over which nodes failed.
    pub quarantined: u64,
    /// Given up, because fragments of other sources were missing.
    pub incomplete: u64,
    /// Had their verdict already.
    pub duplicate: u64,
    /// Under the numbers of events with other data: a count that has begun anew, or two sources that are wired with the same
    /// numbers. In quarantine, where the farm has a store.
    pub conflicts: u64,
    /// Fragments that came when their events had gone on without them.
    pub late: u64,
    /// Larger than the far end takes, and left out.
    pub too_large: u64,
    /// Without a verdict.
    pub kept: u64,
    /// Why the far end is not there, where it is not.
    pub away: Option<String>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something has its verdict, or the end has come.
    changed: Condvar,
    /// Something waits for the thread that speaks to the farm.
    some: AtomicBool,
    memory: u64,
    stop: Stop,
}

struct State {
    commands: VecDeque<Command>,
    run: u32,
    /// Bytes of each event without a verdict, by run and number.
    in_hand: HashMap<(u32, u64), u64>,
    bytes: u64,
    counters: ReadoutCounters,
    ended: bool,
    waker: Option<Waker>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("counters", &self.counters).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Readout {
    /// Starts a thread that connects to the far end, and retries for as long as it is not there.
    ///
    /// # Errors
    /// The error of the system if the thread cannot be started.
    pub fn start(how: ReadingOut) -> io::Result<Readout> {
        let state = State {
            commands: VecDeque::new(),
            run: how.source.run,
            in_hand: HashMap::new(),
            bytes: 0,
            counters: ReadoutCounters { away: Some("it was not reached yet".to_owned()), ..ReadoutCounters::default() },
            ended: false,
            waker: None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            some: AtomicBool::new(false),
            memory: how.memory,
            stop: Stop::new(false),
        });
        let there = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("read-out".to_owned()).spawn(move || {
            let attended = Server::new(how.serve).with_drain(LAST_BYTES).attend_here_woken(
                |waker| {
                    there.state().waker = Some(waker);
                    let commands = VecDeque::new();
                    (Source::new(how.source, NoSupply), ReadoutThread { shared: Arc::clone(&there), commands })
                },
                &there.stop,
            );
            there.state().ended = true;
            there.changed.notify_all();
            attended
        })?;
        Ok(Readout { shared, thread: Some(thread) })
    }

    /// Submits an event, or this source's fragment of it, and waits as long as there is no memory for it: that is the
    /// dead time of the read-out. An event that is larger than the memory is accepted when nothing else is kept.
    ///
    /// # Errors
    /// [`NotTaken::Twice`] if an event with this number and run has no verdict yet, [`NotTaken::Ended`] if the read-out
    /// has ended.
    pub fn give(&self, event: u64, bytes: Bytes) -> Result<(), NotTaken> {
        let has_no_room = |state: &mut State| !state.ended && !self.shared.has_room(state, &bytes);
        let state = self.shared.changed.wait_while(self.shared.state(), has_no_room);
        self.shared.put(state.unwrap_or_else(PoisonError::into_inner), event, bytes)
    }

    /// Submits an event, or this source's fragment of it, without waiting.
    ///
    /// # Errors
    /// [`NotTaken::Full`] if there is no memory for it, and the errors of [`Self::give`].
    pub fn try_give(&self, event: u64, bytes: Bytes) -> Result<(), NotTaken> {
        let state = self.shared.state();
        if !state.ended && !self.shared.has_room(&state, &bytes) {
            return Err(NotTaken::Full(bytes));
        }
        self.shared.put(state, event, bytes)
    }

    /// Sets the run of the events that are submitted from now on.
    pub fn begin_run(&self, run: u32) {
        let mut state = self.shared.state();
        state.run = run;
        state.commands.push_back(Command::Run(run));
        self.shared.wake(&state);
    }

    /// Returns the counters of the events so far.
    #[must_use]
    pub fn counters(&self) -> ReadoutCounters {
        self.shared.state().counters()
    }

    /// Waits until every event has its verdict, but not longer than `within`, and ends the connection. Events that are
    /// kept then are lost with this process, unless the program submits them to the next read-out.
    ///
    /// # Errors
    /// The error of the system if the network has failed, or an error if the thread of the read-out has panicked.
    pub fn finish(mut self, within: Duration) -> io::Result<ReadoutCounters> {
        let is_busy = |state: &mut State| !state.ended && !state.in_hand.is_empty();
        let waited = self.shared.changed.wait_timeout_while(self.shared.state(), within, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.end()?;
        Ok(self.counters())
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wake(&self.shared.state());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(attended)) => attended,
            Some(Err(_)) => Err(io::Error::other("the thread that speaks to the farm has panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Readout {
    fn drop(&mut self) {
        // Who wants to know how it ended calls `finish`.
        let _ = self.end();
    }
}

impl State {
    fn counters(&self) -> ReadoutCounters {
        ReadoutCounters { kept: self.in_hand.len() as u64, ..self.counters.clone() }
    }

    fn release(&mut self, key: (u32, u64)) {
        self.bytes -= self.in_hand.remove(&key).unwrap_or(0);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, state: &State, bytes: &Bytes) -> bool {
        state.in_hand.is_empty() || state.bytes + bytes.len() as u64 <= self.memory
    }

    fn put(&self, mut state: MutexGuard<'_, State>, event: u64, bytes: Bytes) -> Result<(), NotTaken> {
        let key = (state.run, event);
        if state.ended {
            return Err(NotTaken::Ended(bytes));
        }
        if state.in_hand.contains_key(&key) {
            return Err(NotTaken::Twice(bytes));
        }
        let length = bytes.len() as u64;
        state.in_hand.insert(key, length);
        state.bytes += length;
        state.commands.push_back(Command::Event { number: event, payload: bytes });
        self.wake(&state);
        Ok(())
    }

    fn wake(&self, state: &State) {
        if !self.some.swap(true, Ordering::Release)
            && let Some(waker) = &state.waker
        {
            waker.wake();
        }
    }
}

struct ReadoutThread {
    shared: Arc<Shared>,
    commands: VecDeque<Command>,
}

impl ReadoutThread {
    fn note(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.shared.state());
        self.shared.changed.notify_all();
    }
}

impl Attendant for ReadoutThread {
    type Machine = Source<NoSupply>;

    fn told(&mut self, event: Event) -> Option<Command> {
        self.note(|state| match event {
            Event::Answered { run, event, verdict, duplicate, conflict, late } => {
                state.release((run, event));
                let counters = &mut state.counters;
                *match verdict {
                    _ if conflict => &mut counters.conflicts,
                    _ if duplicate => &mut counters.duplicate,
                    _ if late => &mut counters.late,
                    Verdict::Accepted => &mut counters.accepted,
                    Verdict::Rejected => &mut counters.rejected,
                    Verdict::Quarantined | Verdict::Failed => &mut counters.quarantined,
                    Verdict::Incomplete => &mut counters.incomplete,
                } += 1;
            }
            Event::TooLarge { event, .. } => {
                state.counters.too_large += 1;
                let keys: Vec<_> = state.in_hand.keys().filter(|(_, number)| *number == event).copied().collect();
                keys.into_iter().for_each(|key| state.release(key));
            }
            Event::Joined(_) => state.counters.away = None,
            Event::Left(error) => state.counters.away = Some(error.to_string()),
            Event::Ended => {}
        });
        None
    }

    fn wanted(&mut self, _: &mut Source<NoSupply>) -> Option<Command> {
        let some = &self.shared.some;
        if self.commands.is_empty() && some.load(Ordering::Relaxed) && some.swap(false, Ordering::Acquire) {
            std::mem::swap(&mut self.commands, &mut self.shared.state().commands);
        }
        self.commands.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn nowhere(memory: u64) -> Readout {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let source = SourceConfig::new(Address::Tcp(address), 0, 7);
        let how = ReadingOut { source, memory, ..ReadingOut::new(Address::Tcp(address)) };
        Readout::start(how).expect("it needs nobody at first")
    }

    #[test]
    fn what_nobody_takes_fills_the_memory_and_is_told_of_at_the_end() {
        let readout = nowhere(100);
        let bytes = Bytes::from_static(&[1; 60]);
        assert_eq!(readout.give(5, bytes.clone()), Ok(()));
        assert_eq!(readout.try_give(6, bytes.clone()), Err(NotTaken::Full(bytes.clone())));
        let small = bytes.slice(..40);
        assert_eq!(readout.try_give(5, small.clone()), Err(NotTaken::Twice(small.clone())));
        readout.begin_run(8);
        assert_eq!(readout.try_give(5, small), Ok(()), "another run's");
        let counters = readout.finish(Duration::from_millis(20)).expect("it ends in order");
        assert_eq!((counters.kept, counters.accepted + counters.rejected), (2, 0));
        assert!(counters.away.is_some_and(|why| !why.is_empty()));
    }

    #[test]
    fn one_event_is_taken_however_large_it_is() {
        let readout = nowhere(10);
        assert_eq!(readout.give(0, Bytes::from_static(&[1; 60])), Ok(()));
        let empty = Bytes::new();
        assert_eq!(readout.try_give(1, empty.clone()), Err(NotTaken::Full(empty)));
    }
}
