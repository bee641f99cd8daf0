use hodo_farm::Policy;
use hodo_machine::Wait;
use hodo_measure::Until;

/// A controller of the published study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Version 1: a generator in a process of its own fills a queue that has no bound but memory.
    LhcbV1,
    /// Version 2: events of 32,000 bytes, one credit, tokens strictly in their order.
    LhcbV2,
    /// Version 3: the same events, and no tokens.
    LhcbV3,
}

/// Settings of a benchmark of a farm.
#[derive(Debug, Clone)]
pub struct BenchSettings {
    /// A farm of the published study; other settings go before it.
    pub preset: Option<Preset>,
    /// Numbers of nodes, each of which is measured.
    pub nodes: Vec<u32>,
    /// Events that a node may have at once.
    pub credits: Option<u32>,
    /// Bytes of an event.
    pub size: Option<u64>,
    /// Different events that are sent again and again.
    pub pool: u32,
    /// One event in this many is accepted.
    pub every: u64,
    /// Bytes behind the token of an accepted event.
    pub token_data: u64,
    /// The time of a decision, as `hodo farm node --time` has it.
    pub time: String,
    /// When the counted time ends.
    pub until: Until,
    /// Events per second of the generator of [`Preset::LhcbV1`].
    pub rate: Option<f64>,
    /// Bytes of waiting events at which [`Preset::LhcbV1`] ends.
    pub memory: u64,
    /// Threads of the controller.
    pub threads: Option<usize>,
    /// The policy by which nodes get events.
    pub policy: Policy,
    /// How many events a node may be ahead of an equal one; 0: tokens strictly in their order.
    pub ahead: Option<u64>,
    /// Processors to use; empty: all.
    pub cpus: Vec<usize>,
    /// How both sides wait.
    pub wait: Wait,
    /// TCP congestion control; `None` for the system's.
    pub congestion: Option<String>,
    /// Send and receive buffer of each socket; `None` for the system's.
    pub socket_buffer: Option<usize>,
}
