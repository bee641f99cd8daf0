//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod by_time;
mod checked;
mod fairness;
mod group;
mod overtaken;
mod reconnect;
mod stages;
mod unbounded;
mod unproven;
mod updates;
