use crate::deciders::process_counters;
use crate::device::{self, Served};
use crate::farm_link;
use crate::farm_options::{self, FarmOptions};
use crate::raw::{self, server_config};
use crate::{Error, Uri};
use hodo_farm::{Node, NodeConfig};
use hodo_io::{DatagramServers, ServeOptions, SocketSettings, Trace};
use hodo_machine::{Address, Machine, Transport, Wait};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where a server listens, unless told otherwise.
const LOOPBACK: &str = "127.0.0.1:0";

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
    /// Socket buffer sizes in bytes; `None` leaves the system's.
    pub socket_buffer: Option<usize>,
    /// The largest operation in bytes.
    pub size_max: u32,
    /// At most so many peers at once; one more is refused.
    pub peers_max: usize,
}

/// A server that listens, and has not begun to serve.
pub struct Server {
    uris: Vec<Uri>,
    bound: Bound,
    far_end: FarEnd,
}

enum Bound {
    One(hodo_io::Server),
    Several(DatagramServers),
}

/// What answers there.
enum FarEnd {
    Raw(ServeSettings),
    Device(Box<Served>),
    /// A node for each connection.
    Farm(Box<NodeConfig>),
}

impl Server {
    /// Where it listens, with the port that it got; of several devices the first.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uris[0]
    }

    /// Where each device listens.
    #[must_use]
    pub fn uris(&self) -> &[Uri] {
        &self.uris
    }

    /// Takes a trace of its packets, or of one thread's where there are several. Of several devices none is traced.
    #[must_use]
    pub fn traced(self, trace: Arc<Trace>) -> Self {
        let bound = match self.bound {
            Bound::One(server) => Bound::One(server.traced(trace)),
            Bound::Several(servers) => Bound::Several(servers),
        };
        Server { bound, ..self }
    }

    /// Serves until `stop` is set, which is noticed within a tenth of a second.
    pub fn run(self, stop: &AtomicBool) -> Result<(), Error> {
        let Server { uris, bound, far_end } = self;
        let outcome = match far_end {
            FarEnd::Raw(settings) => {
                let config = server_config(&settings, bound.transport());
                bound.run(|_| raw::server(config), raw::answer, stop)
            }
            FarEnd::Device(served) if served.is_faulty() => {
                bound.run(|number| served.faulty_device(number), |_| None, stop)
            }
            FarEnd::Device(served) => bound.run(|_| served.device(), |_| None, stop),
            FarEnd::Farm(config) => {
                let answer = |event| farm_link::answer(event, process_counters);
                bound.run(|_| Node::new((*config).clone()), answer, stop)
            }
        };
        outcome.map_err(|error| Error::Failed(format!("serving {}: {error}", uris[0])))
    }
}

impl Bound {
    fn transport(&self) -> Transport {
        self.addresses()[0].transport().unwrap_or(Transport::Stream)
    }

    fn addresses(&self) -> &[Address] {
        match self {
            Bound::One(server) => std::slice::from_ref(server.address()),
            Bound::Several(servers) => servers.addresses(),
        }
    }

    fn run<M: Machine>(
        self,
        make: impl Fn(usize) -> M + Sync,
        answer: impl Fn(M::Event) -> Option<M::Command> + Sync,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        match self {
            Bound::One(server) => server.run(|| make(0), answer, stop),
            Bound::Several(servers) => servers.run(make, stop),
        }
    }
}

/// Binds the server that a URI names. Without a host it listens on loopback; without a port on any free one.
pub fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    if uri.simulated {
        return Err(Error::Usage(format!("`{uri}` needs no server: a simulated link has its far end in itself")));
    }
    raw::check_congestion(settings.congestion.as_deref())?;
    let (far_end, transport) = far_end(uri, settings)?;
    // What makes the device is nothing that its clients have to say.
    let uri = match far_end {
        FarEnd::Raw(_) => uri.clone(),
        FarEnd::Device(_) | FarEnd::Farm(_) => Uri { options: Vec::new(), ..uri.clone() },
    };
    let address = raw::address(&uri, LOOPBACK)?;
    let options = ServeOptions {
        threads: if matches!(far_end, FarEnd::Device(_)) { 1 } else { threads(settings) },
        cpus: settings.cpus.clone(),
        wait: settings.wait,
        settings: SocketSettings {
            congestion: settings.congestion.clone(),
            socket_buffer: settings.socket_buffer,
            peers_max: settings.peers_max,
            ..SocketSettings::default()
        },
    };
    let boards = match &far_end {
        FarEnd::Device(served) => served.boards(),
        FarEnd::Raw(_) | FarEnd::Farm(_) => 1,
    };
    let bound = match transport {
        Transport::Stream if boards > 1 => {
            return Err(Error::Usage(format!("boards={boards}: over TCP one is served; start one for each port")));
        }
        Transport::Datagram if boards > 1 => {
            DatagramServers::bind(ports(&address, boards)?, options).map(Bound::Several)
        }
        _ => hodo_io::Server::bind(&address, options).map(Bound::One),
    };
    let bound = bound.map_err(|error| {
        Error::Failed(format!("cannot listen on {address}: {error}; choose another address or port, or end who has it"))
    })?;
    let uri_of = |address: &Address| match address {
        Address::Path(path) => Uri { authority: String::new(), path: path.clone(), ..uri.clone() },
        other => Uri { authority: other.to_string(), path: String::new(), ..uri.clone() },
    };
    Ok(Server { uris: bound.addresses().iter().map(uri_of).collect(), bound, far_end })
}

/// So many ports from that of an address on; with none, free ones.
fn ports(address: &Address, count: u16) -> Result<Vec<Address>, Error> {
    let Address::Udp(first) = address else {
        return Err(Error::Usage(format!("boards={count}: {address} has no ports")));
    };
    let at = |number: u16| {
        let port = if first.port() == 0 { Some(0) } else { first.port().checked_add(number) };
        port.map(|port| Address::Udp(SocketAddr::new(first.ip(), port)))
    };
    (0..count)
        .map(at)
        .collect::<Option<_>>()
        .ok_or_else(|| Error::Usage(format!("boards={count}: there are not so many ports from {} on", first.port())))
}

/// What answers at a URI, and over what.
fn far_end(uri: &Uri, settings: &ServeSettings) -> Result<(FarEnd, Transport), Error> {
    if uri.scheme == farm_options::SCHEME {
        let nodes = FarmOptions::of(uri)?.nodes(settings.size_max);
        return Ok((FarEnd::Farm(Box::new(nodes)), Transport::Stream));
    }
    let Some(scheme) = device::scheme(uri) else {
        let transport = if uri.scheme == "udp" { Transport::Datagram } else { Transport::Stream };
        return Ok((FarEnd::Raw(settings.clone()), transport));
    };
    if settings.threads > 1 || settings.cpus.len() > 1 {
        return Err(Error::Usage(format!(
            "`{uri}` is one device, and one thread serves it; leave --threads out, and name one processor"
        )));
    }
    Ok((FarEnd::Device(Box::new(Served::new(uri, scheme)?)), scheme.transport))
}

fn threads(settings: &ServeSettings) -> usize {
    match (settings.threads, settings.cpus.len()) {
        (0, 0) => std::thread::available_parallelism().map_or(1, usize::from),
        (0, cpus) => cpus,
        (threads, _) => threads,
    }
}
