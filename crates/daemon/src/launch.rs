//! Programs that run together, here or on other hosts, and end together: where each is placed, how it is started there,
//! and what becomes of it.
//!
//! A child is tied to us by its standard input: it is to end, in order, when that does. So none outlives us, however we
//! end, be it behind `ssh` or `srun`, which pass the end of the input on.

mod allocation;
mod crew;
mod hosts;
mod launcher;
mod quote;

pub use allocation::{Allocation, Asked};
pub use crew::{Crew, News};
pub use hosts::expand;
pub use launcher::{Launcher, Task};
pub use quote::quoted;
