//! SpaceWire (ECSS-E-ST-50-12C) and RMAP (ECSS-E-ST-50-52C): links exact to the character, and what is sent over them.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod bits;
pub mod bridge;
pub mod character;
pub mod client;
pub mod end;
mod end_of_packet;
pub mod far_end;
pub mod formula;
pub mod gresb;
pub mod network;
pub mod ptp;
pub mod rmap;
pub mod ssdtp2;
mod stream;
mod time;

pub use end_of_packet::EndOfPacket;
pub use time::Picos;
