use super::Error;
use super::names;
use super::spot::Spot;
use crate::{Access, At, Files, Queued, Session, SessionError, SessionSettings};
use hodo_uhal::connections::Connection;
use hodo_uhal::table::{Mask, Node, Table};
use hodo_uhal::uri::Uri;
use std::sync::Arc;
use std::time::Duration;

/// A device as people name it, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct DeviceName {
    /// A URI, or the id of a device in the connection files.
    pub device: String,
    /// Connection files.
    pub connections: Vec<String>,
    /// The address table in place of the connection file's.
    pub table: Option<String>,
    /// How long nothing may get on before an access fails.
    pub timeout: Duration,
    /// See [`SessionSettings::reliable`].
    pub reliable: Option<bool>,
}

/// A device that can be spoken to, with its name and its address table.
pub struct Board {
    name: Option<String>,
    /// The session with it.
    pub session: Session,
}

/// A register's name, address and bits, as results show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The node's path; `""` for an address.
    pub node: String,
    /// The address.
    pub address: u32,
    /// The bits.
    pub mask: Mask,
}

impl Board {
    /// Finds the device, and the names of its registers. Nothing is sent as yet.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such device, or its files are wrong.
    pub fn open(device: &DeviceName) -> Result<Self, Error> {
        let settings =
            SessionSettings { timeout: device.timeout, reliable: device.reliable, ..SessionSettings::default() };
        let table = device.table.as_deref().map(names::table).transpose()?;
        if device.device.contains("://") {
            if !device.connections.is_empty() {
                return Err(Error::Usage(
                    "--connections does not go with a URI; name a device of those files".to_owned(),
                ));
            }
            let uri: Uri = device.device.parse().map_err(|why| usage(&why))?;
            return Ok(Board::with(None, Session::open(&uri, &settings)?, table));
        }
        let connection = connection(&device.device, &device.connections)?;
        let session = match table {
            None => Session::of_connection(&connection, &settings),
            Some(_) => connection.uri.parse().map_err(SessionError::Uri).and_then(|uri| Session::open(&uri, &settings)),
        };
        let session = session.map_err(|error| match Error::from(error) {
            Error::Usage(text) => Error::Usage(format!("{text} (device `{}` at {})", connection.id, connection.place)),
            failed => failed,
        })?;
        Ok(Board::with(Some(connection.id), session, table))
    }

    fn with(name: Option<String>, session: Session, table: Option<Table>) -> Self {
        let mut session = session;
        if let Some(table) = table {
            session = session.with_table(Arc::new(table));
        }
        Board { name, session }
    }

    /// Returns the name, address and bits of a register.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such node.
    pub fn label(&self, spot: &Spot) -> Result<Label, Error> {
        let (node, address, mask) = match spot {
            Spot::Address(address) => (String::new(), *address, Mask::ALL),
            Spot::Bits(address, mask) => (String::new(), *address, Mask(*mask)),
            Spot::Node(path) => return self.node(path).map(Label::of),
        };
        Ok(Label { node, address, mask })
    }

    /// Returns the node of a path.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such node, or no address table.
    pub fn node(&self, path: &str) -> Result<Node<'_>, Error> {
        let Some(table) = self.session.table() else {
            return Err(Error::Usage(format!(
                "`{path}` is the name of a node, and there is no address table; name one with --table FILE, or write an \
                 address, as 0x1000"
            )));
        };
        Ok(table.node(path).map_err(SessionError::NoNode)?)
    }

    /// Queues several accesses, or none if one of them is not possible.
    ///
    /// # Errors
    /// Why one of them is not possible.
    pub fn queue_all<T: Clone>(&mut self, accesses: Vec<Access<'_, T>>) -> Result<Vec<Queued<T>>, Error> {
        accesses.iter().try_for_each(|access| self.session.check(access))?;
        Ok(accesses.into_iter().map(|access| self.session.queue(access)).collect::<Result<_, _>>()?)
    }

    /// Dispatches what is queued. The outcome of each access is with the access.
    ///
    /// # Errors
    /// What kept all of them from being done.
    pub fn dispatch(&mut self) -> Result<(), Error> {
        match self.session.dispatch() {
            Err(error) if !matches!(error, SessionError::Failed(_)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Reads registers. Those that a device leaves out, because it met an error earlier in the packet, are read again.
    ///
    /// # Errors
    /// What kept all of them from being read.
    pub fn read(&mut self, places: &[At<'_>]) -> Result<Vec<Result<u32, SessionError>>, Error> {
        let mut found: Vec<Option<Result<u32, SessionError>>> = places.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..places.len()).collect();
        while !left.is_empty() {
            let queued = self.queue_all(left.iter().map(|index| Access::read(places[*index])).collect())?;
            self.dispatch()?;
            let before = left.len();
            let mut again = Vec::new();
            for (index, queued) in left.into_iter().zip(queued) {
                let value = self.session.take(queued);
                if value.as_ref().is_err_and(is_left_out) {
                    again.push(index);
                }
                found[index] = Some(value);
            }
            // A device that answers nothing else would be asked for ever.
            left = if again.len() < before { again } else { Vec::new() };
        }
        found.into_iter().map(|value| value.ok_or_else(|| SessionError::NotDone.into())).collect()
    }

    /// Returns the name of the device, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns what messages call it: its name, or its URI.
    #[must_use]
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.session.uri())
    }
}

fn is_left_out(error: &SessionError) -> bool {
    matches!(error, SessionError::Failed(failure) if failure.error == hodo_ipbus::Error::LeftOut)
}

impl Label {
    /// Returns the label of a node.
    #[must_use]
    pub fn of(node: Node<'_>) -> Self {
        Label { node: node.path(), address: node.address(), mask: node.mask() }
    }

    /// Returns the mask, or nothing for a whole register.
    #[must_use]
    pub fn mask_text(&self) -> String {
        if self.mask == Mask::ALL { String::new() } else { self.mask.to_string() }
    }

    /// Returns the node's path in a document.
    #[must_use]
    pub fn node_or_null(&self) -> Option<&str> {
        (!self.node.is_empty()).then_some(&self.node)
    }

    /// Returns what messages call the register.
    #[must_use]
    pub fn text(&self) -> String {
        if self.node.is_empty() {
            format!("0x{:08X}", self.address)
        } else {
            format!("node `{}` at 0x{:08X}", self.node, self.address)
        }
    }
}

/// Returns where a register is.
#[must_use]
pub fn at(spot: &Spot) -> At<'_> {
    match spot {
        Spot::Address(address) => At::Address(*address),
        Spot::Bits(address, mask) => At::Bits(*address, Mask(*mask)),
        Spot::Node(path) => At::Node(path),
    }
}

/// Finds the device of an id in connection files.
///
/// # Errors
/// [`Error::Usage`] if there is no such device, or the files are wrong.
pub fn connection(id: &str, files: &[String]) -> Result<Connection, Error> {
    if files.is_empty() {
        return Err(Error::Usage(format!(
            "`{id}` is no URI of a device, as ipbusudp-2.0://board:50001; if it is in connection files, say --connections \
             FILE"
        )));
    }
    let all = names::connections(files).map_err(|why| usage(&why))?;
    all.connection(id).cloned().map_err(|why| match all.warnings().first() {
        None => usage(&why),
        Some(remark) => Error::Usage(format!("{why} ({remark})")),
    })
}

/// Reads the address table of a connection.
///
/// # Errors
/// [`Error::Usage`] if the connection names none, or it is wrong.
pub fn table_of(connection: &Connection) -> Result<Table, Error> {
    let file = connection.table_file(&Files).map_err(|why| usage(&why))?;
    names::read_table(&file)
}

fn usage(why: &dyn std::fmt::Display) -> Error {
    Error::Usage(why.to_string())
}
