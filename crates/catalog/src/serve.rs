use crate::raw::{self, server_config};
use crate::{Error, Uri};
use hodo_io::{DatagramServer, ServeOptions, SocketSettings, StreamServer};
use hodo_machine::{Address, Wait};
use hodo_raw::Transport;
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
    settings: ServeSettings,
}

enum Bound {
    Streams(StreamServer),
    Datagrams(DatagramServer),
}

impl Server {
    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Serves until `stop` is set, which is noticed within a tenth of a second.
    pub fn run(self, stop: &AtomicBool) -> Result<(), Error> {
        let outcome = match self.bound {
            Bound::Streams(server) => {
                let config = server_config(&self.settings, Transport::Stream);
                server.run(|| raw::server(config), raw::answer, stop)
            }
            Bound::Datagrams(server) => {
                let config = server_config(&self.settings, Transport::Datagram);
                server.run(|| raw::server(config), raw::answer, stop)
            }
        };
        outcome.map_err(|error| Error::Failed(format!("serving {}: {error}", self.uri)))
    }
}

/// Binds the server that a URI names. Without a host it listens on loopback; without a port on any free one.
pub fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    if uri.simulated {
        return Err(Error::Usage(format!("`{uri}` needs no server: a simulated link has its far end in itself")));
    }
    raw::check_congestion(settings.congestion.as_deref())?;
    let address = raw::address(uri, LOOPBACK)?;
    let options = ServeOptions {
        threads: threads(settings),
        cpus: settings.cpus.clone(),
        wait: settings.wait,
        settings: SocketSettings {
            congestion: settings.congestion.clone(),
            socket_buffer: settings.socket_buffer,
            peers_max: settings.peers_max,
            ..SocketSettings::default()
        },
    };
    let bound = if uri.scheme == "udp" {
        DatagramServer::bind(&address, options).map(Bound::Datagrams)
    } else {
        StreamServer::bind(&address, options).map(Bound::Streams)
    };
    let bound = bound.map_err(|error| {
        Error::Failed(format!("cannot listen on {address}: {error}; choose another address or port, or end who has it"))
    })?;
    let at = match &bound {
        Bound::Streams(server) => server.address(),
        Bound::Datagrams(server) => server.address(),
    };
    let uri = match at {
        Address::Path(path) => Uri { authority: String::new(), path: path.clone(), ..uri.clone() },
        other => Uri { authority: other.to_string(), path: String::new(), ..uri.clone() },
    };
    Ok(Server { uri, bound, settings: settings.clone() })
}

fn threads(settings: &ServeSettings) -> usize {
    match (settings.threads, settings.cpus.len()) {
        (0, 0) => std::thread::available_parallelism().map_or(1, usize::from),
        (0, cpus) => cpus,
        (threads, _) => threads,
    }
}
