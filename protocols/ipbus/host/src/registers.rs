//! Devices and registers by the names that people give them: URIs, ids of connection files, paths of nodes, addresses.

mod block;
mod board;
mod check;
mod error;
mod filter;
mod names;
mod spot;
mod words;

pub use block::{Block, Kind};
pub use board::{Board, DeviceName, Label, at, connection, table_of};
pub use check::{Checked, Entries, Remark, RemarkKind, check};
pub use error::Error;
pub use filter::Filter;
pub use names::{connections, read_table, table, tables};
pub use spot::Spot;
pub use words::{FILE_BYTES_MAX, Form, WORDS_MAX, decode, encode, lines};
