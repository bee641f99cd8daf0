#![doc = include_str!("../README.md")]

pub mod client;
pub mod context;
pub mod environment;
#[cfg(feature = "images")]
pub mod image;
mod orders;
pub mod parse;
#[cfg(feature = "record")]
pub mod record;
#[cfg(feature = "record")]
pub mod replay;
#[cfg(feature = "daemon")]
pub mod serve;
pub mod server;
pub mod show;

pub use client::{Client, ClientError, ClientOptions};
pub use context::{Context, ContextOptions};
pub use hodo_machine::Wait;
/// Values, types, requests and machines.
pub use hodo_pva as machines;
pub use hodo_pva::{Request, Scalar, Value, normative::Normative};
pub use server::{Server, ServerOptions};
pub use show::{Form, Show};
