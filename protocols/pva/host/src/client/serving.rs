//! The parts of a client that only the thread of a context uses.

use super::{Address, Channel, Client, ClientError, Command, Operation, Value};
use crate::client::Notice;
use crate::machines::Type;
use hodo_machine::Instant;
use std::net::SocketAddr;

impl Client {
    /// Opens a channel whose server is resolved, or returns the one of that name.
    pub(crate) fn channel_at(&mut self, name: &str, channel: &str, server: Option<SocketAddr>) -> Channel {
        if let Some(known) = self.tables.channel_of(name) {
            return Channel(known);
        }
        let server = server.map(Address::Tcp).or_else(|| self.server.clone());
        let number = self.tables.open(name);
        self.hand(Command::Open { channel: number, name: channel.to_owned(), server });
        Channel(number)
    }

    /// Has the numbers of executions that are over kept for [`Client::next_finished`].
    pub(crate) fn keep_finished(&mut self) {
        self.tables.keep_finished();
    }

    /// Returns the next execution that is over, unless it was given up.
    pub(crate) fn next_finished(&mut self) -> Option<Operation> {
        self.tables.next_finished().map(Operation)
    }

    /// Takes a notice that is there already.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.tables.next_notice()
    }

    /// Waits for input, at most to a time, and takes it in.
    ///
    /// # Errors
    /// A [`ClientError`] if the operating system refuses what is needed.
    pub(crate) fn turn_until(&mut self, until: Instant) -> Result<(), ClientError> {
        self.turn(self.wait, until)
    }

    pub(crate) fn now(&self) -> Instant {
        self.driver.now()
    }

    /// Returns an empty value of the type that an operation puts, once it is set up.
    pub(crate) fn blank(&mut self, operation: Operation) -> Option<Box<Value>> {
        self.driver.machine_mut().blank(operation.0)
    }

    /// Waits for the set-up of an operation as for an execution.
    pub(crate) fn await_set_up(&mut self, operation: Operation) {
        self.tables.awaits_set_up(operation.0);
    }

    /// Requests the type of a channel, or of a field. The operation has to be finished.
    pub(crate) fn describe(&mut self, channel: Channel, field: &str) -> Operation {
        let operation = self.tables.operation(channel.0, None);
        self.command(Command::Describe { operation, channel: channel.0, field: field.into() });
        Operation(operation)
    }

    /// Returns the type that was described.
    pub(crate) fn described(&self, operation: Operation) -> Option<Type> {
        self.driver.machine().plan(operation.0).map(|plan| plan.of().clone())
    }
}
