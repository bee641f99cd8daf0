//! SpaceWire (ECSS-E-ST-50-12C) and RMAP (ECSS-E-ST-50-52C): links exact to the character, and what is sent over them.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod bits;
pub mod character;
pub mod end;
pub mod formula;
mod time;

pub use time::Picos;
