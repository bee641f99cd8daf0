use crate::device::{self, Served};
use crate::raw::{self, server_config};
use crate::{Error, Uri};
use hodo_io::{DatagramServer, ServeOptions, SocketSettings, StreamServer, Trace};
use hodo_machine::{Address, Machine, Transport, Wait};
use std::io;
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
    uri: Uri,
    bound: Bound,
    far_end: FarEnd,
}

enum Bound {
    Streams(StreamServer),
    Datagrams(DatagramServer),
}

/// What answers there.
enum FarEnd {
    Raw(ServeSettings),
    Device(Box<Served>),
}

impl Server {
    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Takes a trace of its packets, or of one thread's where there are several.
    #[must_use]
    pub fn traced(self, trace: Arc<Trace>) -> Self {
        let bound = match self.bound {
            Bound::Streams(server) => Bound::Streams(server.traced(trace)),
            Bound::Datagrams(server) => Bound::Datagrams(server.traced(trace)),
        };
        Server { bound, ..self }
    }

    /// Serves until `stop` is set, which is noticed within a tenth of a second.
    pub fn run(self, stop: &AtomicBool) -> Result<(), Error> {
        let Server { uri, bound, far_end } = self;
        let outcome = match far_end {
            FarEnd::Raw(settings) => {
                let config = server_config(&settings, bound.transport());
                bound.run(|| raw::server(config), raw::answer, stop)
            }
            FarEnd::Device(served) if served.is_faulty() => bound.run(|| served.faulty_device(), |_| None, stop),
            FarEnd::Device(served) => bound.run(|| served.device(), |_| None, stop),
        };
        outcome.map_err(|error| Error::Failed(format!("serving {uri}: {error}")))
    }
}

impl Bound {
    fn transport(&self) -> Transport {
        match self {
            Bound::Streams(_) => Transport::Stream,
            Bound::Datagrams(_) => Transport::Datagram,
        }
    }

    fn address(&self) -> &Address {
        match self {
            Bound::Streams(server) => server.address(),
            Bound::Datagrams(server) => server.address(),
        }
    }

    fn run<M: Machine>(
        self,
        make: impl Fn() -> M + Sync,
        answer: impl Fn(M::Event) -> Option<M::Command> + Sync,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        match self {
            Bound::Streams(server) => server.run(make, answer, stop),
            Bound::Datagrams(server) => server.run(make, answer, stop),
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
        FarEnd::Device(_) => Uri { options: Vec::new(), ..uri.clone() },
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
    let bound = match transport {
        Transport::Datagram => DatagramServer::bind(&address, options).map(Bound::Datagrams),
        Transport::Stream => StreamServer::bind(&address, options).map(Bound::Streams),
    };
    let bound = bound.map_err(|error| {
        Error::Failed(format!("cannot listen on {address}: {error}; choose another address or port, or end who has it"))
    })?;
    let uri = match bound.address() {
        Address::Path(path) => Uri { authority: String::new(), path: path.clone(), ..uri },
        other => Uri { authority: other.to_string(), path: String::new(), ..uri },
    };
    Ok(Server { uri, bound, far_end })
}

/// What answers at a URI, and over what.
fn far_end(uri: &Uri, settings: &ServeSettings) -> Result<(FarEnd, Transport), Error> {
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
