//! Servers from URIs.

use crate::open::{check_congestion, check_options};
use crate::{Error, Payload, Uri, path};
use hodo_io::nic::{Interface, interfaces};
use hodo_io::{IpVersion, PathOptions, PortOptions, ServeOptions, SocketSettings, Trace, any_address};
use hodo_machine::{Address, Apart, Machine, Transport, Wait};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The address at which a server listens unless the URI names one: any free port of loopback.
pub const LOOPBACK: &str = "127.0.0.1:0";
/// Any free port of loopback in IPv6.
const LOOPBACK_V6: &str = "[::1]:0";

/// How a server runs.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Threads that share the peers; 0: one for each processor in `cpus`, or for each of the machine.
    pub threads: usize,
    /// Processors to run on, one thread each; empty: wherever the kernel puts them.
    pub cpus: Vec<usize>,
    /// How it waits.
    pub wait: Wait,
    /// TCP congestion control; `None` leaves the system's.
    pub congestion: Option<String>,
    /// The marks of the packets, and the way on which they leave.
    pub path: PathOptions,
    /// Socket buffer sizes in bytes; `None` leaves the system's.
    pub socket_buffer: Option<usize>,
    /// The bytes that operations from here carry, where that can be chosen; `None` for the protocol's own.
    pub payload: Option<Payload>,
    /// The largest operation in bytes.
    pub size_max: u32,
    /// The most peers at once; one more is refused.
    pub peers_max: usize,
}

impl ServeSettings {
    /// Returns the number of threads that share the peers.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        match (self.threads, self.cpus.len()) {
            (0, 0) => std::thread::available_parallelism().map_or(1, usize::from),
            (0, cpus) => cpus,
            (threads, _) => threads,
        }
    }
}

/// Binds a server to the port of a multicast group on all addresses, so that it is reached by its own address, too, and joins the group.
fn joined(server: hodo_io::Server, group: SocketAddr, settings: &ServeSettings) -> io::Result<hodo_io::Server> {
    let is_it = |one: &Interface| settings.path.device.as_ref() == Some(&one.name);
    let interface = interfaces().into_iter().find(is_it).map_or(0, |one| one.index);
    let options = PortOptions { groups: vec![(group.ip(), interface)], ..PortOptions::default() };
    server.and_port(&Address::Udp(any_address(group.is_ipv4(), group.port())), &options).map_err(|error| {
        match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(error.kind(), "no interface leads to the group; name one by --device")
            }
            _ => error,
        }
    })
}

/// A function that serves on the bound sockets until the flag is set.
type Run = Box<dyn FnOnce(hodo_io::Server, &AtomicBool) -> io::Result<()> + Send>;

/// A function that serves by itself until the flag is set.
type RunAlone = Box<dyn FnOnce(&AtomicBool) -> Result<(), Error> + Send>;

/// A server that listens, and has not begun to serve.
pub struct Server {
    uris: Vec<Uri>,
    serving: Serving,
}

enum Serving {
    /// Machines on sockets.
    Machines(Box<hodo_io::Server>, Run),
    /// A device that is no machine, as an adapter.
    Device(RunAlone),
}

/// The machines of a server.
pub struct Service<Make, Answer> {
    /// Makes the machine of a thread, or of the listener with this number where each has its own.
    pub make: Make,
    /// Returns the application's answer to an event.
    pub answer: Answer,
    /// The transport of the server.
    pub transport: Transport,
    /// Threads that share the peers.
    pub threads: usize,
    /// Listeners on successive ports, each with a machine of its own.
    pub listeners: u16,
}

impl Server {
    /// Binds machines to an address. The server's URIs are like `uri`, with the addresses that were bound.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are not as many ports, [`Error::Failed`] if an address cannot be listened on.
    pub fn bind<M, Make, Answer>(
        uri: &Uri,
        address: &Address,
        settings: &ServeSettings,
        service: Service<Make, Answer>,
    ) -> Result<Server, Error>
    where
        M: Machine,
        Make: Fn(usize) -> M + Sync + Send + 'static,
        Answer: Fn(M::Event) -> Option<M::Command> + Sync + Send + 'static,
    {
        let Service { make, answer, transport, threads, listeners } = service;
        let address = address.clone().over(transport);
        let group = address.group();
        let options = ServeOptions {
            // Each socket of a group receives everything.
            threads: if group.is_some() { 1 } else { threads },
            cpus: settings.cpus.clone(),
            wait: settings.wait,
            settings: SocketSettings {
                congestion: settings.congestion.clone(),
                path: settings.path.clone(),
                socket_buffer: settings.socket_buffer,
                peers_max: settings.peers_max * usize::from(listeners.max(1)),
                ..SocketSettings::default()
            },
        };
        if transport == Transport::Stream && listeners > 1 {
            return Err(Error::Usage(format!(
                "`{uri}`: a process has one listener over TCP; start one process per port"
            )));
        }
        let server = hodo_io::Server::new(options);
        let bound = match group {
            Some(group) => joined(server, group, settings),
            None if listeners > 1 => ports(&address, listeners)?.iter().try_fold(server, hodo_io::Server::and),
            None => server.and(&address),
        };
        let bound = bound.map_err(|error| {
            Error::Failed(format!(
                "cannot listen on {address}: {error}; choose another port, or stop the process that holds it"
            ))
        })?;
        let uri_of = |address: &Address| match (address, group) {
            // A group is where it is reached, although it is bound to all addresses.
            (Address::Udp(bound), Some(group)) => Uri {
                authority: SocketAddr::new(group.ip(), bound.port()).to_string(),
                path: String::new(),
                ..uri.clone()
            },
            (Address::Path(path), _) => Uri { authority: String::new(), path: path.clone(), ..uri.clone() },
            (other, _) => Uri { authority: other.to_string(), path: String::new(), ..uri.clone() },
        };
        let uris = bound.addresses().iter().map(uri_of).collect();
        let run = move |bound: hodo_io::Server, stop: &AtomicBool| {
            if listeners <= 1 {
                return bound.run(|| make(0), answer, stop);
            }
            let addresses = bound.addresses().to_vec();
            let machines = || Apart::new(addresses.iter().cloned().zip((0..).map(&make)));
            bound.run(machines, |(number, event)| Some((number, answer(event)?)), stop)
        };
        Ok(Server { uris, serving: Serving::Machines(Box::new(bound), Box::new(run)) })
    }

    /// Creates a server that is bound at a URI, and serves by itself until the flag is set.
    #[must_use]
    pub fn of(uri: Uri, run: impl FnOnce(&AtomicBool) -> Result<(), Error> + Send + 'static) -> Server {
        Server { uris: vec![uri], serving: Serving::Device(Box::new(run)) }
    }

    /// Returns the URI where it listens, with the port that it got; the first one of several listeners.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uris[0]
    }

    /// Returns the URI of each listener.
    #[must_use]
    pub fn uris(&self) -> &[Uri] {
        &self.uris
    }

    /// Takes a trace of the server's packets, or of one thread's packets where there are several.
    ///
    /// # Errors
    /// [`Error::Usage`] if the packets of this server do not pass through sockets that can be traced.
    pub fn traced(self, trace: Arc<Trace>) -> Result<Self, Error> {
        match self.serving {
            Serving::Machines(bound, run) => {
                Ok(Server { serving: Serving::Machines(Box::new(bound.traced(trace)), run), ..self })
            }
            Serving::Device(_) => Err(Error::Usage(format!(
                "--trace does not apply to `{}`: an adapter sends its packets; capture them with tcpdump",
                self.uris[0]
            ))),
        }
    }

    /// Serves until `stop` is set, which is noticed within a tenth of a second.
    ///
    /// # Errors
    /// [`Error::Failed`] if the system refuses to go on.
    pub fn run(self, stop: &AtomicBool) -> Result<(), Error> {
        let Server { uris, serving } = self;
        let failed = |error: &dyn fmt::Display| Error::Failed(format!("serving {}: {error}", uris[0]));
        match serving {
            Serving::Machines(bound, run) => run(*bound, stop).map_err(|error| failed(&error)),
            Serving::Device(run) => run(stop).map_err(|error| failed(&error)),
        }
    }
}

/// Binds the server that a URI names. Without host and port it listens on a free port of loopback; without a host, or with `*`, at all addresses
/// of this host.
///
/// # Errors
/// [`Error::Usage`] if the URI or a setting is wrong, [`Error::Failed`] if the address cannot be listened on.
pub fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    if uri.simulated {
        return Err(Error::Usage(format!("`{uri}` needs no server: a simulated link has its far end in itself")));
    }
    check_options(uri, settings.congestion.as_deref(), &settings.path, false, settings.wait)?;
    check_congestion(settings.congestion.as_deref())?;
    path::check_host(uri, &settings.path)?;
    let port = uri.protocol.port(uri).unwrap_or_default();
    let everywhere = hodo_io::every_address(&uri.authority, port, settings.path.version);
    let uri = everywhere.map_or_else(|| uri.clone(), |at| Uri { authority: at.to_string(), ..uri.clone() });
    let mut uri = path::resolved(&uri, &settings.path)?;
    if uri.wants_far_end() && settings.path.version == Some(IpVersion::V6) {
        LOOPBACK_V6.clone_into(&mut uri.authority);
    }
    uri.protocol.serve(&uri, settings)
}

/// Returns `count` addresses with successive ports from that of `first` on; free ports if it has none.
fn ports(first: &Address, count: u16) -> Result<Vec<Address>, Error> {
    let Address::Udp(first) = first else {
        return Err(Error::Usage(format!("{first} has no ports, and {count} are needed")));
    };
    let at = |number: u16| {
        let port = if first.port() == 0 { Some(0) } else { first.port().checked_add(number) };
        port.map(|port| Address::Udp(SocketAddr::new(first.ip(), port)))
    };
    (0..count)
        .map(at)
        .collect::<Option<_>>()
        .ok_or_else(|| Error::Usage(format!("there are not {count} ports from {} on", first.port())))
}
