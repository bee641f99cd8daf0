use crate::connect::socket_for;
use crate::listener::{Arrivals, bound, is_short, prepared};
use crate::sys::{self, RawAddress};
use crate::trace::Traced;
use crate::{Clock, Datagrams, Endpoint, Listener, Mailbox, SocketSettings, Streams, Trace, Transport, affinity};
use hodo_machine::{Address, Driver, Machine, Wait};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How soon a request to stop is noticed.
pub(crate) const NOTICE: Duration = Duration::from_millis(80);

/// Set this to end a server.
pub type Stop = AtomicBool;

/// How a server runs.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Threads that share the peers, at least 1.
    pub threads: usize,
    /// Processors for them in turn; empty: wherever the kernel puts them.
    pub cpus: Vec<usize>,
    /// How they wait.
    pub wait: Wait,
    /// What is set on every socket.
    pub settings: SocketSettings,
}

/// Accepts TCP or Unix connections and deals them over threads, one machine each; they share nothing.
pub struct StreamServer {
    listener: Listener,
    options: ServeOptions,
    trace: Option<Arc<Trace>>,
    turned_away: Arc<AtomicU64>,
}

impl StreamServer {
    /// Listens at an address; port 0 is any free one.
    pub fn bind(address: &Address, options: ServeOptions) -> io::Result<Self> {
        Ok(StreamServer { listener: Listener::bind(address)?, options, trace: None, turned_away: Arc::default() })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// Connections that were closed at once because there were as many as may be; of a server that is attended.
    #[must_use]
    pub fn turned_away(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.turned_away)
    }

    /// Serves until `stop` is set. `answer` is the application's part: what a machine is told, and what it is told back.
    pub fn run<M, F, A>(self, make: F, answer: A, stop: &Stop) -> io::Result<()>
    where
        M: Machine,
        F: Fn() -> M + Sync,
        A: Fn(M::Event) -> Option<M::Command> + Sync,
    {
        let (options, trace) = (self.options.clone(), self.trace.clone());
        self.run_shards(stop, |index, arrivals, clock| {
            let streams = Streams::with(options.settings.clone(), arrivals)?;
            traced_shard(index, streams, trace.as_deref(), &options, clock, &make, &answer, stop)
        })
    }

    /// Takes a trace of one thread's packets; for a server of one thread that is all.
    #[must_use]
    pub fn traced(self, trace: Arc<Trace>) -> Self {
        StreamServer { trace: Some(trace), ..self }
    }

    /// Runs `body` on each thread, with where its connections come from. One thread is this one; of several, each begins to
    /// stop when `stop` is set, and nobody can connect from then on.
    pub(crate) fn run_shards(
        self,
        stop: &Stop,
        body: impl Fn(usize, Arrivals, Clock) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        if self.options.threads <= 1 {
            let clock = Clock::start();
            let arrivals = Arrivals::listening(self.listener)?;
            return affinity::keep(|| body(0, arrivals, clock));
        }
        self.run_mailboxes(stop, |index, mailbox, clock| body(index, Arrivals::Mailbox(mailbox), clock))
    }

    /// The options that it was bound with.
    pub(crate) fn options(&self) -> &ServeOptions {
        &self.options
    }

    /// Runs `body` on a thread of its own each, while this one accepts.
    pub(crate) fn run_mailboxes(
        self,
        stop: &Stop,
        body: impl Fn(usize, Arc<Mailbox>, Clock) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let clock = Clock::start();
        let mailboxes =
            (0..self.options.threads.max(1)).map(|_| Mailbox::new().map(Arc::new)).collect::<io::Result<Vec<_>>>()?;
        let (body, boxes) = (&body, &mailboxes);
        std::thread::scope(|scope| {
            let shards: Vec<_> = (0..)
                .zip(boxes)
                .map(|(index, mailbox)| scope.spawn(move || body(index, Arc::clone(mailbox), clock)))
                .collect();
            let accepted = self.accept(boxes, stop, || shards.iter().any(std::thread::ScopedJoinHandle::is_finished));
            drop(self);
            stop.store(true, Ordering::Relaxed);
            boxes.iter().for_each(|mailbox| mailbox.wake());
            shards.into_iter().map(|shard| shard.join().expect("a shard does not panic")).fold(accepted, Result::and)
        })
    }

    fn accept(&self, mailboxes: &[Arc<Mailbox>], stop: &Stop, failed: impl Fn() -> bool) -> io::Result<()> {
        self.listener.set_patience(Some(NOTICE))?;
        while !stop.load(Ordering::Relaxed) && !failed() {
            match self.listener.accept() {
                Ok(Some(accepted)) => self.deal(mailboxes, accepted),
                Ok(None) => {}
                Err(error) if is_short(&error) => std::thread::sleep(NOTICE),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives a connection to the thread on the processor where its packets arrive, or to the one that has the fewest; closes
    /// it at once where the bound on peers is reached.
    fn deal(&self, mailboxes: &[Arc<Mailbox>], accepted: (OwnedFd, RawAddress)) {
        if mailboxes.iter().map(|mailbox| mailbox.peers()).sum::<usize>() >= self.options.settings.peers_max {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Some((fd, from)) = prepared(accepted, &self.options.settings) else { return };
        let cpus = &self.options.cpus;
        let arrives_at = sys::option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_INCOMING_CPU).ok();
        let near = (cpus.len() == mailboxes.len() && matches!(from, Address::Socket(_)))
            .then(|| cpus.iter().position(|cpu| i32::try_from(*cpu).ok() == arrives_at))
            .flatten();
        let fewest = || (0..mailboxes.len()).min_by_key(|index| mailboxes[*index].peers()).unwrap_or(0);
        mailboxes[near.unwrap_or_else(fewest)].post(fd, from);
    }
}

/// Answers UDP datagrams, on one socket a thread; the kernel deals the senders over them.
pub struct DatagramServer {
    sockets: Vec<OwnedFd>,
    address: Address,
    options: ServeOptions,
    trace: Option<Arc<Trace>>,
}

impl DatagramServer {
    /// Binds at an address; port 0 is any free one.
    pub fn bind(address: &Address, options: ServeOptions) -> io::Result<Self> {
        let mut sockets = Vec::new();
        let mut address = address.clone();
        for _ in 0..options.threads.max(1) {
            let (socket, raw) = socket_for(&address, libc::SOCK_DGRAM)?;
            if options.threads > 1 {
                sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
            }
            sys::bind(socket.as_fd(), &raw)?;
            address = bound(&socket, &address)?;
            sockets.push(socket);
        }
        Ok(DatagramServer { sockets, address, options, trace: None })
    }

    /// Where it is bound.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// See [`StreamServer::traced`].
    #[must_use]
    pub fn traced(self, trace: Arc<Trace>) -> Self {
        DatagramServer { trace: Some(trace), ..self }
    }

    /// Serves until `stop` is set. See [`StreamServer::run`].
    pub fn run<M, F, A>(self, make: F, answer: A, stop: &Stop) -> io::Result<()>
    where
        M: Machine,
        F: Fn() -> M + Sync,
        A: Fn(M::Event) -> Option<M::Command> + Sync,
    {
        let clock = Clock::start();
        let (options, trace, make, answer) = (&self.options, self.trace.as_deref(), &make, &answer);
        let each = |index, socket| {
            let peers_max = options.settings.peers_max.div_ceil(options.threads.max(1));
            let settings = SocketSettings { peers_max, ..options.settings.clone() };
            let datagrams = Datagrams::new(settings, Some(socket))?;
            traced_shard(index, datagrams, trace, options, clock, make, answer, stop)
        };
        let mut sockets = self.sockets;
        if sockets.len() == 1
            && let Some(socket) = sockets.pop()
        {
            return affinity::keep(|| each(0, socket));
        }
        let each = &each;
        std::thread::scope(|scope| {
            let shards: Vec<_> =
                (0..).zip(sockets).map(|(index, socket)| scope.spawn(move || each(index, socket))).collect();
            shards.into_iter().map(|shard| shard.join().expect("a shard does not panic")).fold(Ok(()), Result::and)
        })
    }
}

/// One thread's part of a server, traced where that is asked for: two copies of the code, so that a server without a
/// trace pays nothing for it.
#[expect(clippy::too_many_arguments, reason = "the thread's parts, and the server's")]
fn traced_shard<M: Machine, T: Transport>(
    index: usize,
    transport: T,
    trace: Option<&Trace>,
    options: &ServeOptions,
    clock: Clock,
    make: &impl Fn() -> M,
    answer: &impl Fn(M::Event) -> Option<M::Command>,
    stop: &Stop,
) -> io::Result<()> {
    match trace.and_then(Trace::tap) {
        None => shard(index, transport, options, clock, make, answer, stop),
        Some(tap) => shard(index, Traced::new(transport, tap, clock), options, clock, make, answer, stop),
    }
}

/// One thread's part of a server.
fn shard<M: Machine, T: Transport>(
    index: usize,
    transport: T,
    options: &ServeOptions,
    clock: Clock,
    make: &impl Fn() -> M,
    answer: &impl Fn(M::Event) -> Option<M::Command>,
    stop: &Stop,
) -> io::Result<()> {
    if !options.cpus.is_empty() {
        affinity::pin_thread(options.cpus[index % options.cpus.len()])?;
    }
    let mut endpoint = Endpoint::new(make(), transport, clock);
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let until = endpoint.last_turn() + NOTICE;
        endpoint.step(options.wait, until, &mut |event| answers.extend(answer(event)))?;
        for command in answers.drain(..) {
            endpoint.command(command);
        }
    }
    Ok(())
}
