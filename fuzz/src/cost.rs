//! The cost of a machine that strangers talk to: memory, and work for each byte that came.
//!
//! Nothing is measured in seconds, so that a bound holds on every computer: memory is what is allocated and not given back,
//! work is what was allocated in all and the number of outputs.

use std::sync::OnceLock;

/// Returns the bytes that this thread has and has not given back, and those that it has taken in all.
pub type Meter = fn() -> (i64, u64);

static METER: OnceLock<Meter> = OnceLock::new();

/// Has memory measured so from now on; it counts as nothing before.
pub fn measure_by(meter: Meter) {
    METER.get_or_init(|| meter);
}

fn bytes_here() -> (i64, u64) {
    METER.get().map_or((0, 0), |meter| meter())
}

/// Outputs with which a machine may begin.
const OUTPUTS: u64 = 64;

/// The most that a machine may cost. Peers are those that were ever there at once.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of memory, whoever is there.
    pub memory: u64,
    /// Bytes of memory for a peer.
    pub memory_per_peer: u64,
    /// Bytes of memory for a byte that came.
    pub memory_per_byte: u64,
    /// Outputs for a step of the script and for a byte that came.
    pub outputs: u64,
    /// Bytes allocated in all for a step of the script, for a byte that came and for one that went out.
    pub allocated: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { memory: 512 << 10, memory_per_peer: 16 << 10, memory_per_byte: 16, outputs: 4, allocated: 4096 }
    }
}

/// The cost since a machine was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    live: i64,
    taken: u64,
    pub(crate) steps: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) outputs: u64,
    pub(crate) peers: u64,
}

impl Cost {
    pub(crate) fn begin() -> Self {
        let (live, taken) = bytes_here();
        Cost { live, taken, steps: 0, bytes_in: 0, bytes_out: 0, outputs: 0, peers: 0 }
    }

    /// Panics where a bound is passed.
    pub(crate) fn check(&self, bounds: &Bounds) {
        let (live, taken) = bytes_here();
        let live = u64::try_from(live - self.live).unwrap_or(0);
        let most = bounds.memory + bounds.memory_per_peer * self.peers + bounds.memory_per_byte * self.bytes_in;
        assert!(live <= most, "{live} bytes of memory are over {most}: {self:?}");
        let most = OUTPUTS + bounds.outputs * (self.steps + self.bytes_in);
        assert!(self.outputs <= most, "{} outputs are over {most}: {self:?}", self.outputs);
        let taken = taken - self.taken;
        let most = bounds.memory + bounds.allocated * (self.steps + self.bytes_in + self.bytes_out);
        assert!(taken <= most, "{taken} bytes allocated in all are over {most}: {self:?}");
    }
}
