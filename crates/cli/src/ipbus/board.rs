//! The device that a command names.

use super::files;
use crate::Error;
use crate::args::{self, Spot};
use hodo_catalog::ipbus::connections::Connection;
use hodo_catalog::ipbus::finding::Finding;
use hodo_catalog::ipbus::table::{Mask, Node, Table};
use hodo_catalog::ipbus::uri::Uri;
use hodo_catalog::ipbus::{Access, At, Files, Queued, Session, SessionError, SessionSettings};
use serde_json::{Value, json};
use std::sync::Arc;

/// A device, its name where it has one, and its address table.
pub struct Board {
    name: Option<String>,
    pub session: Session,
}

/// A register's name, address and bits, as results show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The node's path; `""` for an address.
    pub node: String,
    pub address: u32,
    pub mask: Mask,
}

impl Board {
    /// Finds the device, and the names of its registers. Nothing is sent as yet.
    pub fn open(device: &args::Device) -> Result<Self, Error> {
        let settings =
            SessionSettings { timeout: device.timeout, reliable: device.reliable, ..SessionSettings::default() };
        let table = device.table.as_deref().map(files::table).transpose()?;
        if device.device.contains("://") {
            if !device.connections.is_empty() {
                return Err(Error::Usage(
                    "--connections does not go with a URI; name a device of those files".to_owned(),
                ));
            }
            let uri: Uri = device.device.parse().map_err(usage)?;
            return Board::with(None, Session::open(&uri, &settings).map_err(failed)?, table);
        }
        let connection = connection(&device.device, &device.connections)?;
        let session = match table {
            None => Session::of_connection(&connection, &settings),
            Some(_) => connection.uri.parse().map_err(SessionError::Uri).and_then(|uri| Session::open(&uri, &settings)),
        };
        let session = session.map_err(|error| match failed(error) {
            Error::Usage(text) => Error::Usage(format!("{text} (device `{}` at {})", connection.id, connection.place)),
            failed => failed,
        })?;
        Board::with(Some(connection.id), session, table)
    }

    fn with(name: Option<String>, session: Session, table: Option<Table>) -> Result<Self, Error> {
        let mut session = session;
        if let Some(table) = table {
            session = session.with_table(Arc::new(table));
        }
        if let Some(table) = session.table() {
            warn(table.warnings());
        }
        Ok(Board { name, session })
    }

    /// The name, address and bits of a register.
    pub fn label(&self, spot: &Spot) -> Result<Label, Error> {
        let (node, address, mask) = match spot {
            Spot::Address(address) => (String::new(), *address, Mask::ALL),
            Spot::Bits(address, mask) => (String::new(), *address, Mask(*mask)),
            Spot::Node(path) => return self.node(path).map(Label::of),
        };
        Ok(Label { node, address, mask })
    }

    /// The node of a path.
    pub fn node(&self, path: &str) -> Result<Node<'_>, Error> {
        let Some(table) = self.session.table() else {
            return Err(Error::Usage(format!(
                "`{path}` is the name of a node, and there is no address table; name one with --table FILE, or write an \
                 address, as 0x1000"
            )));
        };
        table.node(path).map_err(SessionError::NoNode).map_err(failed)
    }

    /// Queues all of several accesses, or none where one is not possible.
    pub fn queue_all<T: Clone>(&mut self, accesses: Vec<Access<'_, T>>) -> Result<Vec<Queued<T>>, Error> {
        accesses.iter().try_for_each(|access| self.session.check(access)).map_err(failed)?;
        accesses.into_iter().map(|access| self.session.queue(access)).collect::<Result<_, _>>().map_err(failed)
    }

    /// Dispatches what is queued. What each access came to is with the access; here only what kept all from being done.
    pub fn dispatch(&mut self) -> Result<(), Error> {
        match self.session.dispatch() {
            Err(error) if !matches!(error, SessionError::Failed(_)) => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// What it is called in messages: its name, or its URI.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.session.uri())
    }

    /// What it is called in a document.
    pub fn document(&self) -> Value {
        json!({ "name": self.name, "uri": self.session.uri() })
    }
}

impl Label {
    /// Of a node.
    pub fn of(node: Node<'_>) -> Self {
        Label { node: node.path(), address: node.address(), mask: node.mask() }
    }

    /// The mask, where it is not the whole register.
    pub fn mask_text(&self) -> String {
        if self.mask == Mask::ALL { String::new() } else { self.mask.to_string() }
    }

    /// The node's path in a document.
    pub fn node_or_null(&self) -> Option<&str> {
        (!self.node.is_empty()).then_some(&self.node)
    }

    /// How messages name the register.
    pub fn text(&self) -> String {
        if self.node.is_empty() {
            format!("0x{:08X}", self.address)
        } else {
            format!("node `{}` at 0x{:08X}", self.node, self.address)
        }
    }
}

/// Where a register of the command line is.
pub fn at(spot: &Spot) -> At<'_> {
    match spot {
        Spot::Address(address) => At::Address(*address),
        Spot::Bits(address, mask) => At::Bits(*address, Mask(*mask)),
        Spot::Node(path) => At::Node(path),
    }
}

/// The device of an id in connection files.
pub fn connection(id: &str, files: &[String]) -> Result<Connection, Error> {
    if files.is_empty() {
        return Err(Error::Usage(format!(
            "`{id}` is no URI of a device, as ipbusudp-2.0://board:50001; if it is in connection files, say --connections \
             FILE"
        )));
    }
    let all = files::connections(files).map_err(usage)?;
    warn(all.warnings());
    all.connection(id).cloned().map_err(usage)
}

/// The address table of a connection.
pub fn table_of(connection: &Connection) -> Result<Table, Error> {
    let file = connection.table_file(&Files).map_err(usage)?;
    files::read_table(&file)
}

/// Says on standard error that there are warnings, and who tells them.
pub fn warn(warnings: &[Finding]) {
    let Some(first) = warnings.first() else { return };
    let more = match warnings.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more; `hodo ipbus check` tells all)"),
    };
    eprintln!("hodo: {}{more}", super::grid::plain(&first.to_string()));
}

/// So many of something.
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// A wrong command line, or a wrong file on it.
pub fn usage(error: impl std::fmt::Display) -> Error {
    Error::Usage(error.to_string())
}

/// What became of a session's part.
pub fn failed(error: SessionError) -> Error {
    hodo_catalog::Error::from(error).into()
}
