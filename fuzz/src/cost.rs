//! What a machine costs that strangers talk to: memory, and work for each byte that came.
//!
//! Nothing is measured in seconds, so that a bound holds on every computer: memory is what is allocated and not given back,
//! work is what was allocated in all and the number of outputs.

use std::cell::Cell;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Counts bytes that this thread allocates, or gives back where they are negative. A test's allocator calls it; without
/// one, memory counts as nothing.
pub fn note(bytes: i64) {
    // A thread that ends has no counter any more.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
    let _ = TAKEN.try_with(|taken| taken.set(taken.get() + u64::try_from(bytes).unwrap_or(0)));
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
        Cost { live: LIVE.get(), taken: TAKEN.get(), steps: 0, bytes_in: 0, bytes_out: 0, outputs: 0, peers: 0 }
    }

    /// Panics where a bound is passed.
    pub(crate) fn check(&self, bounds: &Bounds) {
        let live = u64::try_from(LIVE.get() - self.live).unwrap_or(0);
        let most = bounds.memory + bounds.memory_per_peer * self.peers + bounds.memory_per_byte * self.bytes_in;
        assert!(live <= most, "{live} bytes of memory are over {most}: {self:?}");
        let most = OUTPUTS + bounds.outputs * (self.steps + self.bytes_in);
        assert!(self.outputs <= most, "{} outputs are over {most}: {self:?}", self.outputs);
        let taken = TAKEN.get() - self.taken;
        let most = bounds.memory + bounds.allocated * (self.steps + self.bytes_in + self.bytes_out);
        assert!(taken <= most, "{taken} bytes allocated in all are over {most}: {self:?}");
    }
}
