use crate::connect::{prepare_stream, socket_for};
use crate::mailbox::Mailbox;
use crate::sys::{self, RawAddress};
use crate::{Clock, Datagrams, Endpoint, SocketSettings, Streams, Transport, affinity};
use hodo_machine::{Address, Driver, Machine, Wait};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connections that may wait to be accepted.
const QUEUE: i32 = 4096;
/// How soon a request to stop is noticed.
const NOTICE: Duration = Duration::from_millis(80);

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
    listener: OwnedFd,
    address: Address,
    options: ServeOptions,
    unlink: Option<String>,
}

impl StreamServer {
    /// Listens at an address; port 0 is any free one.
    pub fn bind(address: &Address, options: ServeOptions) -> io::Result<Self> {
        let (listener, raw) = socket_for(address, libc::SOCK_STREAM)?;
        sys::set_option(listener.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        let unlink = match address {
            Address::Path(path) => {
                remove_stale(path)?;
                Some(path.clone())
            }
            _ => None,
        };
        sys::bind(listener.as_fd(), &raw)?;
        sys::listen(listener.as_fd(), QUEUE)?;
        let address = bound(&listener, address)?;
        Ok(StreamServer { listener, address, options, unlink })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves until `stop` is set. `answer` is the application's part: what a machine is told, and what it is told back.
    pub fn run<M, F, A>(self, make: F, answer: A, stop: &Stop) -> io::Result<()>
    where
        M: Machine,
        F: Fn() -> M + Sync,
        A: Fn(M::Event) -> Option<M::Command> + Sync,
    {
        let mailboxes =
            (0..self.options.threads.max(1)).map(|_| Mailbox::new().map(Arc::new)).collect::<io::Result<Vec<_>>>()?;
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let shards: Vec<_> = mailboxes
                .iter()
                .enumerate()
                .map(|(index, mailbox)| {
                    let (options, make, answer) = (&self.options, &make, &answer);
                    scope.spawn(move || {
                        let streams = Streams::new(options.settings.clone(), Some(mailbox.clone()))?;
                        shard(index, streams, options, clock, make, answer, stop)
                    })
                })
                .collect();
            let accepted =
                self.accept(&mailboxes, stop, || shards.iter().any(std::thread::ScopedJoinHandle::is_finished));
            stop.store(true, Ordering::Relaxed);
            mailboxes.iter().for_each(|mailbox| mailbox.wake());
            shards.into_iter().map(|shard| shard.join().expect("a shard does not panic")).fold(accepted, Result::and)
        })
    }

    fn accept(&self, mailboxes: &[Arc<Mailbox>], stop: &Stop, failed: impl Fn() -> bool) -> io::Result<()> {
        sys::set_timeout(self.listener.as_fd(), libc::SO_RCVTIMEO, NOTICE)?;
        while !stop.load(Ordering::Relaxed) && !failed() {
            match sys::accept(self.listener.as_fd()) {
                Ok((fd, from)) => self.deal(mailboxes, fd, &from),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED) => {}
                    // Out of descriptors or memory: those who are connected go on, and the next waits in the queue.
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => std::thread::sleep(NOTICE),
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Gives a connection to the thread on the processor where its packets arrive, or to the one that has the fewest; closes
    /// it at once where the bound on peers is reached.
    fn deal(&self, mailboxes: &[Arc<Mailbox>], fd: OwnedFd, from: &RawAddress) {
        let from = from.to_ip().map_or_else(|| Address::Path(String::new()), Address::Socket);
        if mailboxes.iter().map(|mailbox| mailbox.peers()).sum::<usize>() >= self.options.settings.peers_max {
            return;
        }
        if prepare_stream(fd.as_fd(), &from, &self.options.settings).is_err() {
            return;
        }
        let cpus = &self.options.cpus;
        let arrives_at = sys::option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_INCOMING_CPU).ok();
        let near = (cpus.len() == mailboxes.len() && matches!(from, Address::Socket(_)))
            .then(|| cpus.iter().position(|cpu| i32::try_from(*cpu).ok() == arrives_at))
            .flatten();
        let fewest = || (0..mailboxes.len()).min_by_key(|index| mailboxes[*index].peers()).unwrap_or(0);
        mailboxes[near.unwrap_or_else(fewest)].post(fd, from);
    }
}

impl Drop for StreamServer {
    fn drop(&mut self) {
        if let Some(path) = &self.unlink {
            // Nothing is lost where it is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Answers UDP datagrams, on one socket a thread; the kernel deals the senders over them.
pub struct DatagramServer {
    sockets: Vec<OwnedFd>,
    address: Address,
    options: ServeOptions,
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
        Ok(DatagramServer { sockets, address, options })
    }

    /// Where it is bound.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves until `stop` is set. See [`StreamServer::run`].
    pub fn run<M, F, A>(self, make: F, answer: A, stop: &Stop) -> io::Result<()>
    where
        M: Machine,
        F: Fn() -> M + Sync,
        A: Fn(M::Event) -> Option<M::Command> + Sync,
    {
        let clock = Clock::start();
        let (options, make, answer) = (&self.options, &make, &answer);
        std::thread::scope(|scope| {
            let shards: Vec<_> = self
                .sockets
                .into_iter()
                .enumerate()
                .map(|(index, socket)| {
                    scope.spawn(move || {
                        let peers_max = options.settings.peers_max.div_ceil(options.threads.max(1));
                        let settings = SocketSettings { peers_max, ..options.settings.clone() };
                        let datagrams = Datagrams::new(settings, Some(socket))?;
                        shard(index, datagrams, options, clock, make, answer, stop)
                    })
                })
                .collect();
            shards.into_iter().map(|shard| shard.join().expect("a shard does not panic")).fold(Ok(()), Result::and)
        })
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

/// A socket's path is left behind by a server that was killed; one that answers is still in use.
fn remove_stale(path: &str) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("`{path}` is in use by another server")));
            }
            std::fs::remove_file(path)
        }
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("`{path}` is there and is no socket"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn bound(socket: &OwnedFd, asked: &Address) -> io::Result<Address> {
    Ok(sys::local_address(socket.as_fd())?.to_ip().map_or_else(|| asked.clone(), Address::Socket))
}
