//! IPbus: registers of electronics, read and written over UDP and TCP, versions 2.0 and 1.3.
//!
//! A host concatenates transactions into packets and keeps several packets in flight; a device answers each; a hub
//! stands between many hosts and many devices. The bytes are described in [`wire`]; [`client`] is a host's side of one
//! device, [`device`] a device in software, [`hub`] what is between them.
//!
//! The files of its users, address tables and connections, are read by the crate `hodo-uhal`.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod client;
pub mod device;
mod error;
pub mod hub;
pub mod single;
pub mod window;
pub mod wire;

pub use client::{Block, Client, ClientConfig, Clients, Command, Data, Event, Path};
pub use device::{Device, DeviceCommand, DeviceConfig, DeviceEvent};
pub use error::Error;
