//! Raw streams and datagrams: the netperf tests, and the floor that the other protocols stand on.
//!
//! An operation is one message of its size, out and back ([`Direction::Both`]), out with an acknowledgement
//! ([`Direction::Send`]), or asked for and received ([`Direction::Receive`]). The [`Client`] counts every one of them,
//! the [`Server`] answers many clients at once. Updates are sent to a subscription without being asked for one by one. The wire is described in [`wire`].
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod channel;
mod client;
mod error;
mod group;
mod lane;
mod payload;
mod server;
mod session;
pub mod stages;
mod subscriber;
mod subscription;
mod tracker;
pub mod wire;

pub use client::{Client, ClientConfig, Command, Event, Noticed};
pub use error::Error;
pub use hodo_machine::Transport;
pub use server::{Server, ServerCommand, ServerConfig, ServerEvent};
pub use wire::{Counters, Direction};
