//! The cost of a machine that strangers talk to: memory, work for each byte that came, and bytes to whoever has proved nothing.
//!
//! The fuzz harness and the simulation count alike and hold the same [`Allowance`]. Nothing is measured in seconds, so that a
//! bound holds on every computer: memory is what the machine has allocated and not given back, work is what it has
//! allocated in all and the number of its outputs.

use hodo_machine::Peer;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Returns the bytes that this thread has and has not given back, and those that it has taken in all.
pub type Meter = fn() -> (i64, u64);

thread_local! {
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

/// Has memory measured so from now on, on this thread; it counts as nothing before.
pub fn measure_by(meter: Meter) {
    METER.set(Some(meter));
}

fn bytes_here() -> (i64, u64) {
    METER.get().map_or((0, 0), |meter| meter())
}

/// Outputs with which a machine may begin.
const OUTPUTS: u64 = 64;

/// The most that a machine may cost. Peers are those that were ever there at once.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Bytes of memory, whoever is there.
    pub memory: u64,
    /// Bytes of memory for a peer.
    pub memory_per_peer: u64,
    /// Bytes of memory for a byte that came.
    pub memory_per_byte: u64,
    /// Outputs for an input and for a byte that came.
    pub outputs: u64,
    /// Bytes allocated in all for an input, for a byte that came and for one that went out.
    pub allocated: u64,
    /// Bytes that go to the sender of a datagram for each byte that came, while nothing proves its address.
    pub to_strangers: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance {
            memory: 512 << 10,
            memory_per_peer: 16 << 10,
            memory_per_byte: 16,
            outputs: 4,
            allocated: 4096,
            to_strangers: 1,
        }
    }
}

impl Allowance {
    /// Returns the outputs that are allowed for so many inputs and bytes.
    #[must_use]
    pub const fn outputs_for(&self, inputs: u64, bytes: u64) -> u64 {
        OUTPUTS + self.outputs * (inputs + bytes)
    }
}

/// The cost since a machine was made.
#[derive(Debug, Clone, Default)]
pub struct Cost {
    /// Inputs.
    pub inputs: u64,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Bytes that went out.
    pub bytes_out: u64,
    /// Outputs, but for being idle.
    pub outputs: u64,
    live: i64,
    taken: u64,
    peers_max: u64,
    peers: BTreeMap<Peer, Exchange>,
}

/// The bytes exchanged with a peer.
#[derive(Debug, Clone, Copy, Default)]
struct Exchange {
    came: u64,
    went: u64,
    is_proven: bool,
}

impl Cost {
    /// Makes a call into the machine, whose memory is counted.
    #[inline]
    pub fn of<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let (live, taken) = bytes_here();
        let result = call();
        let (live_then, taken_then) = bytes_here();
        self.live += live_then - live;
        self.taken += taken_then - taken;
        result
    }

    /// Counts a peer. The address of one that came with a datagram is proven by nothing unless it has been answered before.
    pub fn opened(&mut self, peer: Peer, is_proven: bool) {
        self.peers.insert(peer, Exchange { is_proven, ..Exchange::default() });
        self.peers_max = self.peers_max.max(self.peers.len() as u64);
    }

    /// Counts bytes from a peer.
    pub fn received(&mut self, peer: Peer, bytes: usize) {
        self.bytes_in += bytes as u64;
        if let Some(exchange) = self.peers.get_mut(&peer) {
            exchange.came += bytes as u64;
        }
    }

    /// Counts bytes to a peer.
    pub fn sent(&mut self, peer: Peer, bytes: usize) {
        self.bytes_out += bytes as u64;
        if let Some(exchange) = self.peers.get_mut(&peer) {
            exchange.went += bytes as u64;
        }
    }

    /// Counts a peer no more.
    pub fn closed(&mut self, peer: Peer) {
        self.peers.remove(&peer);
    }

    /// Checks a machine that is idle.
    ///
    /// # Errors
    /// Says which bound is passed.
    pub fn check(&self, allowance: &Allowance) -> Result<(), String> {
        let live = u64::try_from(self.live).unwrap_or(0);
        let memory = allowance.memory_per_peer * self.peers_max + allowance.memory_per_byte * self.bytes_in;
        let done = self.inputs + self.bytes_in + self.bytes_out;
        let over = |count: u64, what: &str, most: u64| {
            if count <= most { Ok(()) } else { Err(format!("{count} {what} are over {most}: {self:?}")) }
        };
        over(live, "bytes of memory", allowance.memory + memory)?;
        over(self.outputs, "outputs", allowance.outputs_for(self.inputs, self.bytes_in))?;
        over(self.taken, "bytes allocated in all", allowance.memory + allowance.allocated * done)?;
        for Exchange { came, went, .. } in self.peers.values().filter(|exchange| !exchange.is_proven) {
            over(*went, "bytes to a stranger", allowance.to_strangers * came)?;
        }
        Ok(())
    }
}
