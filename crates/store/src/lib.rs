//! Permanent storage of events and their verdicts: append-only, checksummed files that survive a crash.
//!
//! A [`Store`] is a folder with one writer. [`Store::put`] gathers records and [`Store::commit`] makes them durable;
//! [`Store::open`] finds again what was. An event with data (accepted, quarantined) is one block of a segment, and that
//! block is the decision; of the others only the numbers are kept, as ranges. A [`Reader`] goes through segments and checks
//! every byte, [`verify`] checks a folder. The format is in `docs/farm-files.md`.

mod block;
pub mod bytes;
mod catalogue;
#[cfg(feature = "cloud")]
mod cloud;
mod directory;
mod error;
#[cfg(feature = "parquet")]
mod export;
mod files;
mod given;
mod index;
mod ledger;
mod ranges;
mod reader;
mod record;
mod recovery;
mod repair;
mod scan;
mod settle;
mod store;
#[cfg(feature = "parquet")]
pub mod table;
mod tail;
mod upload;
mod verdicts;
mod verify;

#[cfg(feature = "cloud")]
pub use cloud::Cloud;
pub use error::Error;
#[cfg(feature = "parquet")]
pub use export::{Exported, Selection, export};
pub use files::{Files, OpenFile, System};
pub use given::Checksums;
pub use ranges::Ranges;
pub use reader::{Item, Reader};
pub use record::{Record, Verdict};
pub use recovery::{Damage, Recovered, RunLedger};
pub use repair::{Repair, Repaired, repair};
pub use scan::Source;
pub use settle::{Sync, Synced};
pub use store::{Committed, DATA_MAX, Durability, Options, Put, Store};
pub use upload::{Destination, Folder, Pace, Uploader, Uploads};
pub use verify::{Finding, Verified, verify};
