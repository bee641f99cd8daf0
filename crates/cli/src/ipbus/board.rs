//! The device that a command names, for messages and documents.

use crate::Error;
use clap::Args;
use hodo_ipbus_host::SessionError;
use hodo_ipbus_host::registers::{self, Board, DeviceName, Filter};
use hodo_measure::units;
use serde_json::{Value, json};
use std::time::Duration;

/// Opens the device that a command names.
pub fn open(device: &DeviceOptions) -> Result<Board, Error> {
    let name = DeviceName {
        device: device.device.clone(),
        connections: device.connections.clone(),
        table: device.table.clone(),
        timeout: device.timeout,
        reliable: device.reliable,
    };
    Ok(Board::open(&name)?)
}

/// Returns the patterns of a command.
pub fn filter(filter: &FilterOptions) -> Filter {
    Filter { patterns: filter.patterns.clone(), glob: filter.glob }
}

/// Returns the device for a document.
pub fn document(board: &Board) -> Value {
    json!({ "name": board.name(), "uri": board.session.uri() })
}

/// Returns the error of a session.
pub fn failed(error: SessionError) -> Error {
    registers::Error::from(error).into()
}

/// Returns a count with its noun.
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// The device, and how it is spoken to.
#[derive(Debug, Args)]
pub struct DeviceOptions {
    /// A URI, or with --connections the id of a device in those files.
    #[arg(value_name = "DEVICE")]
    pub device: String,
    /// Connection file, as a path or an expression of uHAL's: 'file://$BOARDS/*.xml'.
    #[arg(short, long, value_name = "FILE", help_heading = "Device")]
    pub connections: Vec<String>,
    /// Address table, in place of the connection file's.
    #[arg(short, long, value_name = "FILE", help_heading = "Device")]
    pub table: Option<String>,
    /// How long to wait without progress before giving up.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration, help_heading = "Device")]
    pub timeout: Duration,
    /// Give packets over UDP ids, so that what is lost is recovered, always or never. By default reads have none, and all
    /// else only if nobody has sent the board ids since it was reset: a hub or another client that does would be disturbed.
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, help_heading = "Device")]
    pub reliable: Option<bool>,
}

/// Which nodes.
#[derive(Debug, Args)]
pub struct FilterOptions {
    /// Regular expressions that match whole paths, as 'links\.link[0-3]\..*'; a match includes the nodes below it
    /// [default: all].
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// Use patterns of the shell: *, ? and [0-3] match within one name, ** matches anything.
    #[arg(long)]
    pub glob: bool,
}
