use crate::{Error, Uri};
use hodo_machine::Wait;
use std::sync::atomic::AtomicBool;

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
}

impl Server {
    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Serves until `stop` is set, which is noticed within a tenth of a second.
    pub fn run(self, stop: &AtomicBool) -> Result<(), Error> {
        let _ = stop;
        Ok(())
    }
}

/// Binds the server that a URI names. Without a host it listens on loopback; without a port on any free one.
pub fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    let _ = settings;
    Err(Error::Failed(format!("{uri}: not there yet")))
}
