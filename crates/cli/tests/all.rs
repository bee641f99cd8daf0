//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod broken_output;
mod common;
mod help;
mod ipbus;
mod limits;
mod report;
mod usage;
