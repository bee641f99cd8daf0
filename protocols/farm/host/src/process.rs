//! Settings that every process of a farm has.

use hodo_farm::wire::LENGTH_MAX;
use hodo_io::{ServeOptions, SocketSettings};
use hodo_machine::Wait;

/// Bytes that a part of a farm receives at once: two events of 32 KiB with their headers. With many nodes on a core the
/// buffers of all of them are to be in its cache.
pub const AT_ONCE: usize = 33 << 10;
/// Bytes that are received before they are answered: eight such events.
pub const TOGETHER: usize = 8 * AT_ONCE;

/// Settings of a process of a farm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSettings {
    /// How threads wait.
    pub wait: Wait,
    /// Processors for the threads in turn; empty: wherever the kernel puts them.
    pub cpus: Vec<usize>,
    /// TCP congestion control; `None` for the system's.
    pub congestion: Option<String>,
    /// Send and receive buffer of each socket; `None` for the system's.
    pub socket_buffer: Option<usize>,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        ProcessSettings { wait: Wait::Adaptive, cpus: Vec::new(), congestion: None, socket_buffer: None }
    }
}

impl ProcessSettings {
    /// Returns the options of a server with this many threads and connections.
    #[must_use]
    pub fn serve_options(&self, threads: usize, peers_max: usize) -> ServeOptions {
        self.options(threads, peers_max, AT_ONCE)
    }

    /// Returns the same for a part that takes in the events of several sources: it receives as much as is there.
    #[must_use]
    pub fn gathering_options(&self, threads: usize, peers_max: usize) -> ServeOptions {
        self.options(threads, peers_max, TOGETHER)
    }

    fn options(&self, threads: usize, peers_max: usize, at_once: usize) -> ServeOptions {
        // Each connection takes a descriptor; where that is not allowed, fewer are served.
        let _ = hodo_io::host::raise_descriptor_limit();
        ServeOptions {
            threads,
            cpus: self.cpus.clone(),
            wait: self.wait,
            settings: SocketSettings {
                congestion: self.congestion.clone(),
                socket_buffer: self.socket_buffer,
                peers_max,
                at_once,
                together: TOGETHER,
                ..SocketSettings::default()
            },
        }
    }
}

/// Returns a size as the wire can carry it.
#[must_use]
pub fn wire_length(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).min(LENGTH_MAX)
}
