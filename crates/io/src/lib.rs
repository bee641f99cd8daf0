//! Sockets, threads, clocks and processor placement: the endpoint that runs a machine on a real transport.
//!
//! This is the only crate with sockets and shared memory, and the only one with `unsafe`, all of it in its `sys` modules, in `verbs`,
//! and in the modules that query the kernel for facts; each block says why it is sound.

pub mod affinity;
mod attended;
mod backlog;
mod bell;
mod clock;
mod connect;
mod datagram;
mod endpoint;
mod fairness;
pub mod files;
pub mod floor;
pub mod host;
mod hunch;
mod joining;
mod listener;
mod mailbox;
mod netlink;
pub mod nic;
mod notice;
pub mod notify;
mod numbering;
mod path;
mod path_options;
mod patience;
mod poller;
pub mod polling;
pub mod probe;
pub mod process;
mod programs;
mod random;
mod resolve;
mod room;
mod route;
pub mod scheduling;
mod serve;
mod settings;
pub mod shared_memory;
mod snapshot;
mod sockets;
mod stream;
mod sys;
mod sys_datagram;
mod tcp;
mod trace;
mod transport;
mod untaken;
pub mod usage;
pub mod verbs;

pub use attended::{Attendant, Waker};
pub use bell::Bell;
pub use clock::{Clock, sleep, unix_time_ns};
pub use connect::{check_congestion, connect_from};
pub use datagram::{Multicast, Port, PortOptions};
pub use endpoint::Endpoint;
pub use listener::Listener;
pub use mailbox::Mailbox;
pub use path::{PathProbe, TcpPath, path_mtu, probe_path, tcp_path};
pub use path_options::{Dscp, LocalAddress, PathError, PathOptions};
pub use patience::{Begin, LINGER, Patience, Poll};
pub use programs::Programs;
pub use random::random_bits;
pub use resolve::{
    IpVersion, any_address, every_address, host_and_port, is_local, listen_address, port_of_loopback, resolve,
    resolve_as, source_towards, with_port,
};
pub use route::Route;
pub use serve::{LISTENING_ON, ServeOptions, Server, Stop};
pub use settings::{SocketFacts, SocketSettings};
pub use snapshot::Snapshot;
pub use sockets::Sockets;
pub use tcp::TcpCounters;
pub use trace::{Direction, Recorder, Sighting, Trace, TraceCounters, TraceOptions};
pub use transport::Transport;
