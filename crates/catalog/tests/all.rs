//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod conformance;
mod farm_link;
mod hostile;
mod ipbus_boards;
mod ipbus_lossy;
mod known_truth;
mod library;
mod limits;
mod one_thread;
mod plain_loops;
mod plans;
mod updates;
