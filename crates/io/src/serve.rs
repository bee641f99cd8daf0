use crate::attended::{Answering, Attendant, Waker, attend};
use crate::connect::set_buffers;
use crate::datagram::{Port, PortOptions};
use crate::listener::{LOOK_AGAIN, is_short, prepared};
use crate::room::{Next, Room};
use crate::sys::{self, RawAddress};
use crate::trace::Served;
use crate::{Bell, Clock, Endpoint, Listener, Mailbox, SocketSettings, Sockets, Trace, affinity};
use hodo_machine::{Address, Machine, Transport, Wait};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// The time within which a request to stop is noticed.
pub(crate) const NOTICE: Duration = Duration::from_millis(80);

/// The beginning of the first line that a server's program writes, behind which the address stands.
pub const LISTENING_ON: &str = "listening on ";

/// The flag that stops a server once it is set.
pub type Stop = AtomicBool;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The number of threads that share the peers, at least 1.
    pub threads: usize,
    /// The processors for the threads in turn; an empty list leaves the choice to the kernel.
    pub cpus: Vec<usize>,
    /// The way in which the threads wait.
    pub wait: Wait,
    /// The settings of every socket.
    pub settings: SocketSettings,
}

impl Default for ServeOptions {
    /// Returns one thread, wherever the kernel puts it, that sleeps while it waits.
    fn default() -> Self {
        ServeOptions { threads: 1, cpus: Vec::new(), wait: Wait::Block, settings: SocketSettings::default() }
    }
}

/// A server that runs one machine per thread, each with its share of the peers. The machines share nothing.
///
/// One server takes connections to any number of listeners, and datagrams to any number of ports. It distributes TCP
/// and Unix connections over the threads; the kernel distributes the senders of datagrams. Without either the machines
/// have the peers that they open. One thread is the caller's.
pub struct Server {
    listeners: Vec<Listener>,
    /// The ports of each thread.
    ports: Vec<Vec<Port>>,
    addresses: Vec<Address>,
    options: ServeOptions,
    datagrams: Option<SocketSettings>,
    drain: Duration,
    trace: Option<Arc<Trace>>,
    turned_away: Arc<AtomicU64>,
    bell: Option<Bell>,
}

/// The end of a thread: unless it is in order, the others end too, so that it is noticed.
struct Ending<'a> {
    stop: &'a Stop,
    boxes: &'a [Arc<Mailbox>],
    in_order: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.in_order {
            self.stop.store(true, Ordering::Relaxed);
            self.boxes.iter().for_each(|mailbox| mailbox.call());
        }
    }
}

/// The sockets of a thread, and what wakes it.
struct Place {
    sockets: Sockets,
    mailbox: Option<Arc<Mailbox>>,
}

/// The origins of the peers of a thread that its machine has not opened.
struct Origins {
    listeners: Vec<Listener>,
    ports: Vec<Port>,
    mailbox: Option<Arc<Mailbox>>,
    /// Whether the mailbox wakes the thread for the rest of the program, too.
    is_woken: bool,
}

impl Server {
    /// Creates a server without any listener or port.
    #[must_use]
    pub fn new(options: ServeOptions) -> Self {
        Server {
            listeners: Vec::new(),
            ports: (0..options.threads.max(1)).map(|_| Vec::new()).collect(),
            addresses: Vec::new(),
            options,
            datagrams: None,
            drain: Duration::ZERO,
            trace: None,
            turned_away: Arc::default(),
            bell: None,
        }
    }

    /// Creates a server at one address; port 0 is any free one.
    ///
    /// # Errors
    /// Returns the operating system's error if the address is in use or does not belong to this host.
    pub fn bind(address: &Address, options: ServeOptions) -> io::Result<Self> {
        Self::new(options).and(address)
    }

    /// Binds the server to one more address, of any kind.
    ///
    /// # Errors
    /// Returns the operating system's error if the address is in use or does not belong to this host.
    pub fn and(mut self, address: &Address) -> io::Result<Self> {
        if address.transport() == Some(Transport::Datagram) {
            return self.and_port(address, &PortOptions::default());
        }
        let listener = Listener::bind_with(address, &self.options.settings.path)?.counting(&self.turned_away);
        if let Some(size) = self.options.settings.socket_buffer {
            // Connections inherit it; set after they are accepted, the kernel could have taken in more by then.
            set_buffers(listener.as_fd(), size)?;
        }
        self.addresses.push(listener.address().clone());
        self.listeners.push(listener);
        Ok(self)
    }

    /// Binds the server to one more port for datagrams, of which each thread has a socket.
    ///
    /// # Errors
    /// Returns the operating system's error, as [`Port::bind`] does.
    pub fn and_port(mut self, address: &Address, options: &PortOptions) -> io::Result<Self> {
        let shared = options.shared || self.ports.len() > 1;
        let mut address = address.clone();
        if shared && !options.shared {
            // Sockets that share an address are taken for ours, whoever has them: another server's show only to one that does
            // not share.
            Port::bind(&address, options)?;
        }
        let options = PortOptions { shared, ..options.clone() };
        for ports in &mut self.ports {
            let port = Port::bind(&address, &options)?;
            address = port.address().clone();
            ports.push(port);
        }
        self.addresses.push(address);
        Ok(self)
    }

    /// Sets other settings for datagrams than for streams.
    #[must_use]
    pub fn with_datagrams(self, settings: SocketSettings) -> Self {
        Server { datagrams: Some(settings), ..self }
    }

    /// Sets the time that the machines have to answer pending requests when they are to stop.
    #[must_use]
    pub fn with_drain(self, drain: Duration) -> Self {
        Server { drain, ..self }
    }

    /// Lets a bell call the threads, so that they look in, or stop, within a fraction of a millisecond.
    #[must_use]
    pub fn with_bell(self, bell: &Bell) -> Self {
        Server { bell: Some(bell.clone()), ..self }
    }

    /// Traces the packets of the first thread; for a server of one thread these are all packets.
    #[must_use]
    pub fn traced(self, trace: Arc<Trace>) -> Self {
        Server { trace: Some(trace), ..self }
    }

    /// Returns the address that the server is bound to, the first of several.
    ///
    /// # Panics
    /// Panics if the server is bound nowhere.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.addresses[0]
    }

    /// Returns the addresses that the server is bound to, in the order of binding.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the counter of connections that were closed at once because the limit on peers was reached.
    #[must_use]
    pub fn turned_away(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.turned_away)
    }

    /// Serves until `stop` is set. `answer` is the application's part: it takes an event of a machine, and may return a
    /// command.
    ///
    /// # Errors
    /// Returns the operating system's error if it refuses a resource that the server needs.
    pub fn run<M, F, A>(self, make: F, answer: A, stop: &Stop) -> io::Result<()>
    where
        M: Machine,
        F: Fn() -> M + Sync,
        A: Fn(M::Event) -> Option<M::Command> + Sync,
    {
        let answer = &answer;
        self.serve(stop, false, |_, _| (make(), Answering::new(answer)))
    }

    /// Serves with an attendant for each thread until `stop` is set, then until every machine is drained or the time
    /// for that is over; no new connections are accepted meanwhile. `make` creates the machine of each thread, and its
    /// attendant, on that thread.
    ///
    /// # Errors
    /// Returns the operating system's error if it refuses a resource that the server needs.
    pub fn attend<A: Attendant>(self, make: impl Fn(usize) -> (A::Machine, A) + Sync, stop: &Stop) -> io::Result<()> {
        self.serve(stop, false, |index, _| make(index))
    }

    /// Serves as [`Server::attend`] does, for attendants that the rest of the program wakes.
    ///
    /// # Errors
    /// Returns the operating system's error if it refuses a resource that the server needs.
    pub fn attend_woken<A: Attendant>(
        self,
        make: impl Fn(usize, Waker) -> (A::Machine, A) + Sync,
        stop: &Stop,
    ) -> io::Result<()> {
        self.serve(stop, true, |index, mailbox| make(index, Waker(mailbox.expect("a woken thread has a mailbox"))))
    }

    /// Serves as [`Server::attend`] does, on the caller's thread alone.
    ///
    /// # Errors
    /// Returns the operating system's error if it refuses a resource that the server needs.
    pub fn attend_here<A: Attendant>(self, make: impl FnOnce() -> (A::Machine, A), stop: &Stop) -> io::Result<()> {
        let mailbox = self.bell.is_some().then(|| self.mailbox()).transpose()?;
        self.serve_here(stop, mailbox, make)
    }

    /// Serves as [`Server::attend_here`] does, for an attendant that the rest of the program wakes.
    ///
    /// # Errors
    /// Returns the operating system's error if it refuses a resource that the server needs.
    pub fn attend_here_woken<A: Attendant>(
        self,
        make: impl FnOnce(Waker) -> (A::Machine, A),
        stop: &Stop,
    ) -> io::Result<()> {
        let mailbox = self.mailbox()?;
        let waker = Waker(Arc::clone(&mailbox));
        self.serve_here(stop, Some(mailbox), || make(waker))
    }

    /// Creates a mailbox that the bell reaches.
    fn mailbox(&self) -> io::Result<Arc<Mailbox>> {
        let mailbox = Arc::new(Mailbox::new()?);
        self.bell.iter().for_each(|bell| bell.reach(&mailbox));
        Ok(mailbox)
    }

    fn serve_here<A: Attendant>(
        mut self,
        stop: &Stop,
        mailbox: Option<Arc<Mailbox>>,
        make: impl FnOnce() -> (A::Machine, A),
    ) -> io::Result<()> {
        let listeners = std::mem::take(&mut self.listeners);
        let ports = std::mem::take(&mut self.ports).into_iter().next().unwrap_or_default();
        let place = self.place(Origins { is_woken: mailbox.is_some(), listeners, ports, mailbox })?;
        affinity::keep(|| self.shard(0, Clock::start(), stop, place, make))
    }

    /// Runs every thread.
    fn serve<A: Attendant>(
        mut self,
        stop: &Stop,
        is_woken: bool,
        make: impl Fn(usize, Option<Arc<Mailbox>>) -> (A::Machine, A) + Sync,
    ) -> io::Result<()> {
        let clock = Clock::start();
        let ports = std::mem::take(&mut self.ports);
        let deals = !self.listeners.is_empty() && (is_woken || self.options.threads > 1);
        // A thread that the bell calls is to sleep where it can be woken.
        let is_woken = is_woken || self.bell.is_some();
        let mailboxes = match is_woken || deals {
            true => (0..ports.len()).map(|_| self.mailbox()).collect::<io::Result<Vec<_>>>()?,
            false => Vec::new(),
        };
        let listeners = std::mem::take(&mut self.listeners);
        let (listeners, mut not_dealt) = if deals { (listeners, Vec::new()) } else { (Vec::new(), listeners) };
        // All are there before the first connection is accepted: those who connect may use up the descriptors.
        let places = (0..).zip(ports).map(|(index, ports)| {
            let (listeners, mailbox) = (std::mem::take(&mut not_dealt), mailboxes.get(index).cloned());
            self.place(Origins { is_woken, listeners, ports, mailbox })
        });
        let mut places = places.collect::<io::Result<Vec<_>>>()?;
        let (server, make) = (&self, &make);
        let shard = |index: usize, place: Place| {
            let to_wake = place.mailbox.clone();
            server.shard(index, clock, stop, place, || make(index, to_wake))
        };
        if places.len() == 1
            && !deals
            && let Some(place) = places.pop()
        {
            return affinity::keep(|| shard(0, place));
        }
        let (shard, boxes) = (&shard, &mailboxes);
        std::thread::scope(|scope| {
            let start = |(index, place): (usize, Place)| {
                let thread = Builder::new().name(format!("serve {index}"));
                thread.spawn_scoped(scope, move || {
                    let mut ending = Ending { stop, boxes, in_order: false };
                    let outcome = shard(index, place);
                    ending.in_order = outcome.is_ok();
                    outcome
                })
            };
            let shards: io::Result<Vec<_>> = (0..).zip(places).map(start).collect();
            let shards = shards.map_err(|error| {
                drop(Ending { stop, boxes, in_order: false });
                io::Error::new(error.kind(), format!("a thread cannot be started: {error}; serve with fewer --threads"))
            })?;
            let has_failed = || shards.iter().any(std::thread::ScopedJoinHandle::is_finished);
            let accepted = if deals { server.accept(&listeners, boxes, stop, has_failed) } else { Ok(()) };
            drop(listeners);
            if deals {
                stop.store(true, Ordering::Relaxed);
                boxes.iter().for_each(|mailbox| mailbox.call());
            }
            shards.into_iter().map(|shard| shard.join().expect("a shard does not panic")).fold(accepted, Result::and)
        })
    }

    /// Creates the sockets of one thread.
    fn place(&self, origins: Origins) -> io::Result<Place> {
        let Origins { is_woken, listeners, ports, mailbox } = origins;
        let ServeOptions { threads, settings, .. } = &self.options;
        let datagrams = self.datagrams.as_ref().unwrap_or(settings);
        // The kernel distributes the senders of datagrams, so that each thread has an even part of the limit.
        let threads = (*threads).max(1);
        let peers_max = datagrams.peers_max.div_ceil(threads);
        let streams = SocketSettings { backlogs_max: settings.backlogs_max / threads, ..settings.clone() };
        let mut sockets = Sockets::with(streams, SocketSettings { peers_max, ..datagrams.clone() })?;
        listeners.into_iter().try_for_each(|listener| sockets.listen(listener))?;
        ports.into_iter().try_for_each(|port| sockets.bind(port))?;
        if let Some(mailbox) = &mailbox {
            sockets.collect(Arc::clone(mailbox))?;
        }
        if is_woken {
            sockets.set_woken();
        }
        Ok(Place { sockets, mailbox })
    }

    /// Runs one thread's part.
    fn shard<A: Attendant>(
        &self,
        index: usize,
        clock: Clock,
        stop: &Stop,
        place: Place,
        make: impl FnOnce() -> (A::Machine, A),
    ) -> io::Result<()> {
        let Place { sockets, mailbox: called } = place;
        let ServeOptions { cpus, wait, .. } = &self.options;
        if !cpus.is_empty() {
            affinity::pin_thread(cpus[index % cpus.len()])?;
        }
        let (machine, attendant) = make();
        let served = Served::new(sockets, self.trace.as_deref().and_then(Trace::tap), clock);
        attend(Endpoint::new(machine, served, clock), attendant, *wait, self.drain, stop, called.as_deref())
    }

    /// Accepts connections for the threads until `stop` is set, or one of them has failed.
    fn accept(
        &self,
        listeners: &[Listener],
        mailboxes: &[Arc<Mailbox>],
        stop: &Stop,
        failed: impl Fn() -> bool,
    ) -> io::Result<()> {
        listeners.iter().try_for_each(Listener::set_impatient)?;
        let (called, clock, mut room) = (self.mailbox()?, Clock::start(), Room::default());
        let mut next = |now| {
            let is_full =
                mailboxes.iter().map(|mailbox| mailbox.peers()).sum::<usize>() >= self.options.settings.peers_max;
            room.next(now, is_full, !mailboxes.iter().any(|mailbox| mailbox.has_some()))
        };
        while !stop.load(Ordering::Relaxed) && !failed() {
            let now = clock.now();
            let (heard, span): (&[Listener], _) = match next(now) {
                Next::Waits(_) => (&[], LOOK_AGAIN),
                _ => (listeners, NOTICE),
            };
            sys::wait_readable(heard.iter().map(Listener::as_fd).chain([called.event()]), span)?;
            if called.is_called() {
                called.take();
            }
            for listener in heard {
                let next = next(now);
                if matches!(next, Next::Waits(_)) {
                    break;
                }
                match listener.accept() {
                    Ok(Some(accepted)) if next == Next::Accepted => self.deal(mailboxes, accepted),
                    Ok(Some(_)) => {
                        self.turned_away.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(None) => {}
                    Err(error) if is_short(&error) => std::thread::sleep(NOTICE),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Gives a connection to the thread on the processor where its packets arrive, or to the one that has the fewest.
    fn deal(&self, mailboxes: &[Arc<Mailbox>], accepted: (OwnedFd, RawAddress)) {
        let Some((fd, from)) = prepared(accepted, &self.options.settings) else { return };
        let cpus = &self.options.cpus;
        let arrives_at = sys::option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_INCOMING_CPU).ok();
        let near = (cpus.len() == mailboxes.len() && matches!(from, Address::Tcp(_)))
            .then(|| cpus.iter().position(|cpu| i32::try_from(*cpu).ok() == arrives_at))
            .flatten();
        let fewest = || (0..mailboxes.len()).min_by_key(|index| mailboxes[*index].peers()).unwrap_or(0);
        mailboxes[near.unwrap_or_else(fewest)].post(fd, from);
    }
}
