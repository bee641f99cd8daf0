//! EPICS pvAccess: structured values, and the messages that carry them over TCP and UDP.
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | headers, segments, and the typed messages of every command |
//! | [`data`] | types, values with a set of changed fields, arrays, and their encoding |
//! | [`client`] | channels on any number of servers, and operations on them |
//! | [`normative`] | the types that the field agreed on, and their alarm and time stamp |
//! | [`discovery`] | the datagrams by which clients find servers |
//! | [`server`] | channels with values, and the clients that read, write, subscribe to and call them |
//! | [`session`] | the beginning, the pulse and the end of a connection |
//! | [`request`] | which fields a client asks for, and with which options |
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod client;
pub mod data;
pub mod discovery;
mod error;
mod limits;
pub mod normative;
pub mod request;
pub mod server;
pub mod session;
pub mod wire;

pub use client::{Client, ClientConfig};
pub use data::{Array, BitSet, Datum, Item, Plan, Scalar, Type, TypeCache, Value};
pub use error::Error;
pub use limits::Limits;
pub use request::Request;
pub use server::{Server, ServerConfig};
pub use session::{Session, SessionConfig};
pub use wire::{Order, Reader, Writer};
