//! The device that a command names, for messages and documents.

use super::grid::plain;
use crate::{Error, args};
use hodo_ipbus_host::SessionError;
use hodo_ipbus_host::finding::Finding;
use hodo_ipbus_host::registers::{Board, DeviceName, Filter};
use serde_json::{Value, json};

/// Opens the device that a command names.
pub fn open(device: &args::Device) -> Result<Board, Error> {
    let name = DeviceName {
        device: device.device.clone(),
        connections: device.connections.clone(),
        table: device.table.clone(),
        timeout: device.timeout,
        reliable: device.reliable,
    };
    Ok(Board::open(&name, &warn)?)
}

/// Returns the patterns of a command.
pub fn filter(filter: &args::Filter) -> Filter {
    Filter { patterns: filter.patterns.clone(), glob: filter.glob }
}

/// Returns the device for a document.
pub fn document(board: &Board) -> Value {
    json!({ "name": board.name(), "uri": board.session.uri() })
}

/// Returns the error of a session.
pub fn failed(error: SessionError) -> Error {
    hodo_catalog::Error::from(error).into()
}

/// Returns a count with its noun.
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Says on standard error that there are warnings, and which command shows them.
pub fn warn(warnings: &[Finding]) {
    let Some(first) = warnings.first() else { return };
    let more = match warnings.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more; `hodo ipbus check` tells all)"),
    };
    eprintln!("hodo: {}{more}", plain(&first.to_string()));
}
