//! Programs that run together, here or on other hosts, and end together: placement, start and supervision.
//!
//! A child is tied to this process by its standard input: it has to end, in order, when that does. So no child outlives this
//! process, not even behind `ssh` or `srun`, which pass the end of the input on.

mod allocation;
mod crew;
mod hosts;
mod launcher;
mod quote;

pub use allocation::{Allocation, PendingAllocation};
pub use crew::{Crew, News};
pub use hosts::expand;
pub use launcher::{Launcher, Task};
pub use quote::quoted;
