use hodo_io::host::{Busy, HostFacts, Idle, SocketLimits, Softnet, Throttling};
use hodo_io::nic::{Interrupt, Nic, NicCounters, QueueDiscipline, ReceiveQueues, Rings};
use hodo_io::probe::{Occupancy, PacketCost, WakeUp};
use hodo_io::{PathProbe, Route, TcpPath};
use hodo_measure::limits::Carrier;
use std::net::SocketAddr;
use std::time::Duration;

/// Everything that was read or measured. What could not be is `None` or empty.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The host.
    pub host: HostFacts,
    /// The processors that are switched on.
    pub online: Vec<usize>,
    /// The processors that this process may use.
    pub allowed: Vec<usize>,
    /// The treatment of idle processors.
    pub idle: Idle,
    /// The share by which a processor is slower right after it was idle.
    pub slow_start: Option<f64>,
    /// The cost of a reading of the clock in nanoseconds.
    pub clock_cost_ns: f64,
    /// The counters of the host while it was examined.
    pub watched: Watched,
    /// The cost of waking an idle processor.
    pub wake_up: Option<WakeUp>,
    /// The share of each processor that a busy thread gets.
    pub occupancy: Vec<Occupancy>,
    /// The cost of packets on loopback.
    pub packets: Option<PacketCost>,
    /// Rates of TCP over loopback.
    pub tcp: TcpRates,
    /// The limits of socket buffers.
    pub limits: SocketLimits,
    /// Whether TCP searches for a packet size that passes.
    pub probes_mtu: Option<bool>,
    /// The interfaces that are examined.
    pub interfaces: Vec<InterfaceFacts>,
    /// The path to the far end.
    pub path: Option<PathFacts>,
}

/// The counters of the host over the time in which it was examined.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The seconds for which this program slept and observed the others.
    pub span_s: f64,
    /// The processors that other programs used meanwhile, as 1.98.
    pub others: Option<f64>,
    /// The processes that ran meanwhile, the busiest first.
    pub busiest: Vec<Busy>,
    /// The share of that time in which some thread waited for a processor.
    pub pressure: Option<f64>,
    /// The share of all processors' time that the hypervisor gave to other machines, over the whole examination.
    pub stolen: Option<f64>,
    /// This process's quota, with the counters over the whole examination.
    pub throttling: Option<Throttling>,
    /// Packets since the machine started, and over the whole examination.
    pub softnet: Option<(Softnet, Softnet)>,
}

/// Rates of one TCP stream over loopback, in bits per second: the best of short looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TcpRates {
    /// As the system sets sockets up.
    pub system: Option<f64>,
    /// With large buffers.
    pub large_buffers: Option<f64>,
    /// With another congestion control: its name and the rate.
    pub other_control: Option<(String, f64)>,
    /// With both ends on one processor.
    pub one_processor: Option<f64>,
}

/// An interface.
#[derive(Debug, Clone, Default)]
pub struct InterfaceFacts {
    /// The settings.
    pub nic: Nic,
    /// The rings.
    pub rings: Option<Rings>,
    /// The receive queues.
    pub queues: Option<ReceiveQueues>,
    /// The interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Features that are off and could be on.
    pub dormant: Vec<String>,
    /// The counters since it was made, and over the whole examination.
    pub counters: Option<(NicCounters, NicCounters)>,
    /// The queue disciplines, with their counters since they were made.
    pub disciplines: Vec<QueueDiscipline>,
    /// The packets that its queue disciplines dropped over the whole examination.
    pub dropped_now: u64,
}

/// The path to the far end.
#[derive(Debug, Clone)]
pub struct PathFacts {
    /// The far end.
    pub remote: SocketAddr,
    /// The route there.
    pub route: Route,
    /// The transport of the link.
    pub carrier: Option<Carrier>,
    /// Echo requests along it, or why there were none.
    pub probe: Result<PathProbe, String>,
    /// A TCP connection to it, or why there was none; `None` where the link is not over TCP.
    pub tcp: Option<Result<TcpPath, String>>,
    /// Operations over the link itself, where the far end is ours; or why there were none.
    pub operations: Option<Result<Operations, String>>,
    /// The largest packet that the kernel believes the path to take after all of this, if that is not the interface's.
    pub known_mtu: Option<u32>,
    /// The process at the far end, if it runs on this machine.
    pub far_process: Option<FarProcess>,
}

impl PathFacts {
    /// Returns the shortest round-trip that was measured: of packets, else of a handshake, else of an operation.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        let of_packets = self.probe.as_ref().ok().and_then(|probe| probe.round_trip);
        of_packets.or(self.handshake()).or(self.operation())
    }

    /// Returns the time after which a program has its answer, and a full window its next room: of an operation, else of a handshake, else
    /// of packets, in which no program takes part.
    #[must_use]
    pub fn exchange(&self) -> Option<Duration> {
        self.operation().or(self.handshake()).or(self.round_trip())
    }

    fn handshake(&self) -> Option<Duration> {
        self.tcp.as_ref()?.as_ref().ok().map(|tcp| tcp.round_trip)
    }

    fn operation(&self) -> Option<Duration> {
        self.operations.as_ref()?.as_ref().ok().map(|operations| operations.small)
    }
}

/// Operations over the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations {
    /// The median time of an operation of 64 bytes.
    pub small: Duration,
    /// The bytes of a larger operation, which fills packets.
    pub large_bytes: u32,
    /// The median time of the larger operation; `None` if none completed.
    pub large: Option<Duration>,
}

/// A process of this machine at the far end of a link.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FarProcess {
    /// The number.
    pub process: u32,
    /// The processors that it may use.
    pub cpus: Vec<usize>,
    /// The quota.
    pub throttling: Option<Throttling>,
}
