//! The threads that run handlers.
//!
//! Puts and calls wait by PV and client: the PVs take turns, and the clients of each. Where the queue is full, the client with the most in it
//! makes room for those with less, so that a flood of one client refuses nobody else.

use super::handlers::{Call, Put};
use super::pv::Shared;
use super::{Core, ServerError};
use hodo_machine::Peer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Puts and calls that wait for a handler.
pub(crate) struct Workers {
    queue: Mutex<Queue>,
    some: Condvar,
    waiting_max: usize,
    pub(crate) overloaded: AtomicU64,
}

/// The place of a PV in memory, which tells PVs apart.
type Key = usize;

#[derive(Default)]
struct Queue {
    /// PVs that have a job for a thread, once for each that may begin.
    turns: VecDeque<Key>,
    lanes: BTreeMap<Key, Lane>,
    /// Jobs of each client that wait, by PV.
    clients: BTreeMap<Peer, BTreeMap<Key, usize>>,
    waiting: usize,
    /// Clients that are connected.
    present: BTreeSet<Peer>,
    is_over: bool,
}

/// The puts and calls of one PV: those of each client in their order, and the clients in turn.
struct Lane {
    pv: Arc<Shared>,
    waiting: VecDeque<(Peer, VecDeque<Job>)>,
    /// Handlers that run or have a turn.
    running: usize,
}

/// A put or a call.
pub(crate) enum Job {
    Put(Put),
    Call(Call),
}

/// Threads that end with this.
pub(crate) struct Crew {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
}

impl Queue {
    /// Returns the number of jobs of a client that wait.
    fn of(&self, client: Peer) -> usize {
        self.clients.get(&client).map_or(0, |jobs| jobs.values().sum())
    }

    fn add(&mut self, pv: &Arc<Shared>, client: Peer, job: Job) {
        let key = key(pv);
        let new = || Lane { pv: Arc::clone(pv), waiting: VecDeque::new(), running: 0 };
        let lane = self.lanes.entry(key).or_insert_with(new);
        match lane.waiting.iter_mut().find(|(of, _)| *of == client) {
            Some((_, jobs)) => jobs.push_back(job),
            None => lane.waiting.push_back((client, VecDeque::from([job]))),
        }
        *self.clients.entry(client).or_default().entry(key).or_default() += 1;
        self.waiting += 1;
    }

    /// Takes the next job of a PV: the first one of the client whose turn it is.
    fn take(&mut self, key: Key) -> Option<Job> {
        let lane = self.lanes.get_mut(&key)?;
        let (client, mut jobs) = lane.waiting.pop_front()?;
        let job = jobs.pop_front()?;
        if !jobs.is_empty() {
            lane.waiting.push_back((client, jobs));
        }
        self.discount(client, key, 1);
        Some(job)
    }

    /// Takes the newest job of the client with the most, if those are more than `than`.
    fn take_newest(&mut self, than: usize) -> Option<Job> {
        let count = |jobs: &BTreeMap<Key, usize>| jobs.values().sum::<usize>();
        let (client, jobs) =
            self.clients.iter().max_by_key(|(_, jobs)| count(jobs)).filter(|(_, jobs)| count(jobs) > than)?;
        let (client, key) = (*client, *jobs.iter().max_by_key(|(_, jobs)| **jobs)?.0);
        let lane = self.lanes.get_mut(&key)?;
        let at = lane.waiting.iter().position(|(of, _)| *of == client)?;
        let job = lane.waiting[at].1.pop_back()?;
        if lane.waiting[at].1.is_empty() {
            lane.waiting.remove(at);
        }
        self.discount(client, key, 1);
        Some(job)
    }

    /// Takes all jobs of a client.
    fn take_all(&mut self, client: Peer) -> Vec<Job> {
        let keys: Vec<Key> = self.clients.get(&client).into_iter().flat_map(BTreeMap::keys).copied().collect();
        let mut taken = Vec::new();
        for key in keys {
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            let Some(at) = lane.waiting.iter().position(|(of, _)| *of == client) else { continue };
            let jobs = lane.waiting.remove(at).map(|(_, jobs)| jobs).unwrap_or_default();
            self.discount(client, key, jobs.len());
            taken.extend(jobs);
        }
        taken
    }

    fn discount(&mut self, client: Peer, key: Key, jobs: usize) {
        self.waiting -= jobs;
        let Some(of) = self.clients.get_mut(&client) else { return };
        if let Some(count) = of.get_mut(&key) {
            *count -= jobs;
            if *count == 0 {
                of.remove(&key);
            }
        }
        if of.is_empty() {
            self.clients.remove(&client);
        }
    }

    /// Ends the turn of a PV: it has another one if there is more.
    fn pass_on(&mut self, key: Key) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if !lane.waiting.is_empty() {
            // Behind the others, so that one PV does not keep them waiting.
            return self.turns.push_back(key);
        }
        lane.running -= 1;
        if lane.running == 0 {
            self.lanes.remove(&key);
        }
    }
}

impl Workers {
    pub(crate) fn new(waiting_max: usize) -> Self {
        Workers { queue: Mutex::default(), some: Condvar::new(), waiting_max, overloaded: AtomicU64::new(0) }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// [`ServerError::NoThread`] if one cannot be started.
    pub(crate) fn start(core: &Arc<Core>, count: usize) -> Result<Crew, ServerError> {
        let mut crew = Crew { core: Arc::clone(core), threads: Vec::new() };
        for number in 0..count.max(1) {
            let core = Arc::clone(core);
            let thread = Builder::new().name(format!("pva worker {number}")).spawn(move || core.workers.work());
            crew.threads.push(thread.map_err(|why| ServerError::NoThread(why.to_string()))?);
        }
        Ok(crew)
    }

    /// Returns the number of puts and calls that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.queue().waiting
    }

    /// Returns whether a client waits for answers: it is connected, and the server has not ended.
    pub(crate) fn is_needed_by(&self, client: Peer) -> bool {
        let queue = self.queue();
        !queue.is_over && queue.present.contains(&client)
    }

    /// Notes a client that has connected.
    pub(crate) fn welcome(&self, client: Peer) {
        self.queue().present.insert(client);
    }

    /// Queues a job of a client for a PV. Refuses it if too many wait, unless another client has more than this one.
    pub(crate) fn push(&self, pv: &Arc<Shared>, client: Peer, job: Job) {
        let mut queue = self.queue();
        let (of, clients) = (queue.of(client), queue.clients.len().max(1));
        let mut refused = None;
        if queue.waiting >= self.waiting_max {
            // Who has an even share already makes nobody else go.
            let is_modest = of < self.waiting_max / clients;
            match if is_modest { queue.take_newest(of + 1) } else { None } {
                None => refused = Some(job),
                newest => {
                    refused = newest;
                    self.enter(&mut queue, pv, client, job);
                }
            }
        } else {
            self.enter(&mut queue, pv, client, job);
        }
        drop(queue);
        if let Some(refused) = refused {
            self.overloaded.fetch_add(1, Ordering::Relaxed);
            refused.refuse("too many requests are waiting for this server's handlers: try again later");
        }
    }

    fn enter(&self, queue: &mut Queue, pv: &Arc<Shared>, client: Peer, job: Job) {
        queue.add(pv, client, job);
        // A PV stands once in the queue for each handler that may begin.
        if let Some(lane) = queue.lanes.get_mut(&key(pv)).filter(|lane| lane.running < pv.concurrent) {
            lane.running += 1;
            queue.turns.push_back(key(pv));
            self.some.notify_one();
        }
    }

    /// Discards the jobs of a client that is gone.
    pub(crate) fn forget(&self, client: Peer) {
        let mut queue = self.queue();
        queue.present.remove(&client);
        let jobs = queue.take_all(client);
        drop(queue);
        jobs.into_iter().for_each(Job::discard);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.queue();
        loop {
            while queue.turns.is_empty() && !queue.is_over {
                queue = self.some.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(key) = queue.turns.pop_front() else { return };
            if let Some(job) = queue.take(key) {
                let pv = queue.lanes.get(&key).map(|lane| Arc::clone(&lane.pv));
                drop(queue);
                if let Some(pv) = pv {
                    job.run(&pv);
                }
                queue = self.queue();
            }
            queue.pass_on(key);
        }
    }

    /// Ends the threads, each after the handler that it runs. Jobs that wait are refused.
    pub(crate) fn end(&self) {
        let mut queue = self.queue();
        queue.is_over = true;
        queue.turns.clear();
        let clients: Vec<Peer> = queue.clients.keys().copied().collect();
        let jobs: Vec<Job> = clients.into_iter().flat_map(|client| queue.take_all(client)).collect();
        drop(queue);
        jobs.into_iter().for_each(|job| job.refuse("the server is about to stop: try again in a moment"));
        self.some.notify_all();
    }
}

fn key(pv: &Arc<Shared>) -> Key {
    Arc::as_ptr(pv).addr()
}

impl Job {
    fn run(self, pv: &Shared) {
        let run = || match self {
            Job::Put(put) => {
                if let Some(handler) = &pv.handlers.put {
                    handler(put);
                }
            }
            Job::Call(call) => {
                if let Some(handler) = &pv.handlers.call {
                    handler(call);
                }
            }
        };
        // What it was to answer is refused when it is dropped.
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            tracing::error!("{}: the handler panicked; the client was told that it has no answer", pv.name);
        }
    }

    fn refuse(self, why: &str) {
        match self {
            Job::Put(put) => put.refuse(why),
            Job::Call(call) => call.refuse(why),
        }
    }

    /// Drops the job without an answer, because its client is gone.
    fn discard(self) {
        match self {
            Job::Put(put) => put.discard(),
            Job::Call(call) => call.discard(),
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.core.workers.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
