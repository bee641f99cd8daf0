//! Native verbs: RDMA adapters through libibverbs, which is opened at run time and needed for nothing else.
//!
//! A [`Library`] opens a [`Context`] of a device; that has a [`Domain`] with its [`Region`]s of memory, a [`CompletionQueue`], and
//! [`QueuePair`]s of the reliable-connection service. Each keeps alive what it was made from, so that they may be dropped in any order.
//!
//! Memory that a device may write is only copied into and out of, never borrowed. No safe function lets a device reach other
//! memory than that of regions: entries of requests are checked by the device against its regions, inline payloads are
//! slices, and a region of the whole address space ([`Paging::Implicit`]) gives no rights to the far end and is checked here.

mod completions;
mod context;
mod error;
mod functions;
mod layout;
mod library;
mod memory;
mod pair;
mod port;

pub use completions::{CompletionQueue, WorkCompletion};
pub use context::{AsyncEvent, Context, DeviceFacts, OnDemandPaging};
pub use error::Error;
pub use library::{LIBRARY, Library};
pub use memory::{Domain, Paging, Placement, Region, Rights};
pub use pair::{Capacity, Entry, Operation, PairFacts, Path, Payload, QueuePair, RemotePlace, SendWork, State, Timing};
pub use port::{GidEntry, LinkLayer, PortFacts};
