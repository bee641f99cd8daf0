//! Short measurements of this host: waking an idle processor, the share of a processor that a program gets, the cost of a packet.

mod frequency;
mod occupancy;
mod packets;
mod wake_up;

pub use frequency::slow_start;
pub use occupancy::{Occupancy, occupancy};
pub use packets::{PacketCost, SEGMENT, SEGMENTS, packet_cost};
pub use wake_up::{WakeUp, wake_up};

/// Returns the time that a quarter of them does not exceed: those that another program delayed do not count. `None` of nothing.
fn undisturbed(mut times: Vec<u64>) -> Option<u64> {
    times.sort_unstable();
    times.get(times.len() / 4).copied()
}
