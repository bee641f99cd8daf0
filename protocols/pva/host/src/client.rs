//! The client for applications, run inline on the caller's thread.

mod error;
mod lookout;
mod open;
mod place;
mod serving;
mod tables;

use crate::machines::client::{Client as Machine, Command, Event, Kind, Update};
use hodo_machine::{Address, Driver, Wait};
use hodo_pva::{Request, Type, Value};
use std::time::Duration;
use tables::{Outcome, Tables};

pub use error::{ClientError, Trouble};
pub use lookout::Lookout;
pub use open::ClientOptions;
pub use place::{DEFAULT_PORT, Place};

/// A channel of a client: a number, which may be copied and sent to other threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub(crate) u32);

/// An operation of a client, which is set up once and executed as often as is wanted: a number, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub(crate) u32);

/// Something that happened while nobody waited for it in particular.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A channel was opened, lost or refused: [`Client::trouble`] says which. Several changes may be one notice.
    Channel(Channel),
    /// A monitor has updates, to be taken until there is none; or it has [ended](Client::outcome).
    Monitor(Operation),
    /// A server's text for people.
    Message(Operation, String),
    /// This server has a channel, too, that was found at another one first.
    Twice(Channel, Address),
}

/// A client of any number of channels.
///
/// Methods with a name open the channel, keep it open, and wait for the reply; for many channels, and for operations that are repeated,
/// [`prepare`](Client::prepare) them once. Nothing happens between calls: there is no thread, so that a call costs one system call to send and
/// one to receive, and monitors are served while a call waits. It may be sent to another thread.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hodo_pva_host::{machines::{normative::Normative, Scalar, Value}, server::{Server, ServerOptions}};
/// # let server = Server::start(ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into()))?;
/// # let _pv = server.pv("TEMPERATURE", Value::of(Normative::scalar(Scalar::F64).build())).accept_puts().serve();
/// # let server = Some(server.address().to_string());
/// use hodo_pva_host::{Client, ClientOptions};
/// let mut client = Client::open(&ClientOptions { server, ..ClientOptions::default() })?;
/// client.put("TEMPERATURE", |value| value.set("value", 20.5))?;
/// let value = client.get("TEMPERATURE")?;
/// assert_eq!(value.get("value").and_then(|item| item.as_f64()), Some(20.5));
/// # Ok(())
/// # }
/// ```
pub struct Client {
    driver: Box<dyn Driver<Machine = Machine> + Send>,
    /// How to wait for replies.
    pub wait: Wait,
    /// How long a reply may take.
    pub timeout: Duration,
    server: Option<Address>,
    tables: Tables,
}

impl Client {
    /// Creates a client on a driver: on sockets, or in a simulated network. Channels that name no server are on this one, or searched for.
    #[must_use]
    pub fn over(driver: Box<dyn Driver<Machine = Machine> + Send>, server: Option<Address>) -> Self {
        Client { driver, wait: Wait::Adaptive, timeout: Duration::from_secs(5), server, tables: Tables::default() }
    }

    /// Reads all fields of a channel.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel, or no reply.
    pub fn get(&mut self, name: &str) -> Result<Value, ClientError> {
        let channel = self.channel(name)?;
        let operation = self.prepared(channel, Kind::Get, &Request::default());
        self.command(Command::Execute { operation: operation.0 });
        self.finish_one(operation)?;
        self.value(operation).cloned().ok_or_else(|| self.failed(channel, Trouble::Nothing))
    }

    /// Reads fields of many channels at once, and returns a value or an error for each.
    ///
    /// # Errors
    /// A [`ClientError`] only if the operating system refuses what is needed.
    pub fn read_many<N: AsRef<str>>(
        &mut self,
        names: &[N],
        request: &Request,
    ) -> Result<Vec<Result<Value, ClientError>>, ClientError> {
        let mut values = Vec::with_capacity(names.len());
        self.read_each(names, request, |_, value| values.push(value.cloned()))?;
        Ok(values)
    }

    /// Reads fields of many channels at once, and hands on each value or error in the order of the names, as soon as it and all before it are
    /// there.
    ///
    /// # Errors
    /// A [`ClientError`] only if the operating system refuses what is needed.
    pub fn read_each<N: AsRef<str>>(
        &mut self,
        names: &[N],
        request: &Request,
        mut told: impl FnMut(usize, Result<&Value, ClientError>),
    ) -> Result<(), ClientError> {
        let asked: Vec<_> = names.iter().map(|name| self.ask(name.as_ref(), request)).collect();
        let until = self.driver.now() + self.timeout;
        for (at, asked) in asked.into_iter().enumerate() {
            let operation = match asked {
                Ok(operation) => operation,
                Err(why) => {
                    told(at, Err(why));
                    continue;
                }
            };
            while self.tables.runs(operation) {
                self.turn(self.wait, until)?;
                if self.driver.now() >= until {
                    self.give_up_all();
                }
            }
            match self.result(operation) {
                Err(why) => told(at, Err(why)),
                Ok(()) => match self.value(operation) {
                    Some(value) => told(at, Ok(value)),
                    None => told(at, Err(self.failed(self.channel_of(operation), Trouble::Nothing))),
                },
            }
        }
        Ok(())
    }

    /// Begins to read a channel, unless that is under way.
    fn ask(&mut self, name: &str, request: &Request) -> Result<Operation, ClientError> {
        let channel = self.channel(name)?;
        let operation = self.prepared(channel, Kind::Get, request);
        if !self.tables.runs(operation) {
            self.execute(operation);
        }
        Ok(operation)
    }

    /// Writes the fields that `change` sets in the present value of a channel.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel, the server refuses, or `change` returns an error, which is [`Trouble::Value`].
    pub fn put<E: std::fmt::Display>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Value) -> Result<(), E>,
    ) -> Result<(), ClientError> {
        self.put_with(name, &Request::default(), true, change)
    }

    /// Writes the fields that `change` sets, with options of a request, such as `record[block=true,process=true]`. Without reading the
    /// present value first, `change` is given one that is empty.
    ///
    /// # Errors
    /// As [`Client::put`].
    pub fn put_with<E: std::fmt::Display>(
        &mut self,
        name: &str,
        request: &Request,
        reads_first: bool,
        change: impl FnOnce(&mut Value) -> Result<(), E>,
    ) -> Result<(), ClientError> {
        let channel = self.channel(name)?;
        let operation = self.prepared(channel, Kind::Put, request);
        if reads_first {
            self.command(Command::ReadBack { operation: operation.0 });
            self.finish_one(operation)?;
        } else if self.driver.machine().put_plan(operation.0).is_none() {
            // The set-up states the type, so that a channel that can only be written is not read.
            self.tables.awaits_set_up(operation.0);
            // One that failed is not remembered: it is set up again.
            self.finish_one(operation).inspect_err(|_| self.finish(operation))?;
        }
        let present = self.value(operation).cloned().filter(|_| reads_first);
        let blank =
            self.driver.machine_mut().blank(operation.0).ok_or_else(|| self.failed(channel, Trouble::Nothing))?;
        let mut value = present.map_or(blank, Box::new);
        value.unmark();
        change(&mut value).map_err(|error| self.failed(channel, Trouble::Value(error.to_string())))?;
        self.command(Command::Put { operation: operation.0, value });
        self.finish_one(operation)
    }

    /// Calls a channel with an argument, or with nothing, and returns what it returns.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel, the server refuses, or there is no reply.
    pub fn call(&mut self, name: &str, argument: Option<Value>) -> Result<Option<Value>, ClientError> {
        let channel = self.channel(name)?;
        let operation = self.prepared(channel, Kind::Call, &Request::default());
        self.command(Command::Call { operation: operation.0, argument: argument.map(Box::new) });
        self.finish_one(operation)?;
        Ok(self.value(operation).cloned())
    }

    /// Returns the type of a channel, or of one of its fields.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel or field, or no reply.
    pub fn info(&mut self, name: &str, field: &str) -> Result<Type, ClientError> {
        let channel = self.channel(name)?;
        let operation = self.describe(channel, field);
        let result = self.finish_one(operation);
        let of = self.described(operation);
        self.finish(operation);
        result.and_then(|()| of.ok_or_else(|| self.failed(channel, Trouble::Nothing)))
    }

    /// Subscribes to a channel. It goes on over reconnections until it is [finished](Client::finish).
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none.
    pub fn monitor(&mut self, name: &str, request: &Request) -> Result<Operation, ClientError> {
        let channel = self.channel(name)?;
        let operation = self.prepare(channel, Kind::Monitor, request);
        self.command(Command::Execute { operation: operation.0 });
        Ok(operation)
    }

    /// Waits for the next update of a monitor, at most this long. `None` if there was none, or it has [ended](Client::outcome).
    ///
    /// # Errors
    /// A [`ClientError`] if the server refuses the monitor, or the operating system refuses what is needed.
    pub fn next_update(&mut self, monitor: Operation, within: Duration) -> Result<Option<Update<'_>>, ClientError> {
        let until = self.driver.now() + within;
        while !self.driver.machine().has_update(monitor.0) {
            if self.tables.is_over(monitor) {
                self.result(monitor)?;
                return Ok(None);
            }
            if self.driver.now() >= until {
                return Ok(None);
            }
            self.turn(self.wait, until)?;
        }
        Ok(self.take_update(monitor))
    }

    /// Takes an update of a monitor that waits already, without looking at the network.
    pub fn take_update(&mut self, monitor: Operation) -> Option<Update<'_>> {
        self.driver.machine_mut().next_update(monitor.0)
    }

    /// Opens a channel, or returns the one of that name. It is kept open, and opened again whenever it was lost.
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none, or its server has no address.
    pub fn channel(&mut self, name: &str) -> Result<Channel, ClientError> {
        if let Some(channel) = self.tables.channel_of(name) {
            return Ok(Channel(channel));
        }
        let wrong = |why: Trouble| ClientError::new(name, why);
        let place: Place = name.parse().map_err(|why| wrong(Trouble::Name(why)))?;
        let server = place.resolved().map_err(|why| wrong(Trouble::Name(why)))?;
        Ok(self.channel_at(name, &place.name, server))
    }

    /// Closes a channel and ends its operations.
    pub fn close(&mut self, channel: Channel) {
        self.hand(Command::Close { channel: channel.0 });
        self.tables.close(channel.0);
    }

    /// Returns the name with which a channel was opened.
    #[must_use]
    pub fn name(&self, channel: Channel) -> &str {
        self.tables.name(channel.0)
    }

    /// Returns the channel of an operation.
    #[must_use]
    pub fn channel_of(&self, operation: Operation) -> Channel {
        Channel(self.tables.channel(operation.0))
    }

    /// Tells whether a channel is open.
    pub fn is_open(&self, channel: Channel) -> bool {
        self.driver.machine().is_open(channel.0)
    }

    /// Returns the server of a channel, if it is known.
    pub fn server(&self, channel: Channel) -> Option<Address> {
        self.driver.machine().server(channel.0).cloned()
    }

    /// Returns why a channel is not open; `None` if it is open, or nothing has gone wrong yet.
    pub fn trouble(&self, channel: Channel) -> Option<Trouble> {
        if self.is_open(channel) {
            return None;
        }
        if let Some(why) = self.tables.trouble(channel.0) {
            return Some(why.clone());
        }
        let server = self.server(channel)?;
        let why = self.driver.machine().trouble(channel.0)?.to_string();
        Some(Trouble::Unreachable { server: server.to_string(), why })
    }

    /// Sets an operation up, now and whenever its channel is opened again. It may be executed at once.
    pub fn prepare(&mut self, channel: Channel, kind: Kind, request: &Request) -> Operation {
        let operation = self.tables.operation(channel.0, Some(kind));
        self.hand(Command::Prepare { operation, channel: channel.0, kind, request: Box::new(request.clone()) });
        Operation(operation)
    }

    /// Hands the machine a command that executes an operation. The next [`Client::poll`] or wait sends it.
    pub fn command(&mut self, command: Command) {
        self.tables.asked(&command);
        self.hand(command);
    }

    /// Hands the machine a command, behind those that follow from what it told and from what was given up: these are about earlier
    /// executions, and operations, of the same numbers.
    fn hand(&mut self, command: Command) {
        self.hand_due();
        self.driver.command(command);
    }

    fn hand_due(&mut self) {
        while let Some(command) = self.tables.next_command() {
            self.driver.command(command);
        }
    }

    /// Executes an operation that needs no value: a get, a process. The next [`Client::poll`] or wait sends it.
    pub fn execute(&mut self, operation: Operation) {
        self.command(Command::Execute { operation: operation.0 });
    }

    /// Ends an operation.
    pub fn finish(&mut self, operation: Operation) {
        self.hand(Command::Finish { operation: operation.0 });
        self.tables.finish(operation.0);
    }

    /// Returns how the last execution came out; `None` while it is under way, and for a monitor that goes on.
    #[must_use]
    pub fn outcome(&self, operation: Operation) -> Option<Result<(), ClientError>> {
        (!self.tables.runs(operation) && self.tables.is_over(operation)).then(|| self.result(operation))
    }

    /// Returns what the last execution brought, or a monitor's value as of the last update that was taken.
    pub fn value(&self, operation: Operation) -> Option<&Value> {
        self.driver.machine().value(operation.0)
    }

    /// Sends what was asked for, and takes in what has come, without waiting.
    ///
    /// # Errors
    /// A [`ClientError`] if the operating system refuses what is needed.
    pub fn poll(&mut self) -> Result<(), ClientError> {
        let now = self.driver.now();
        self.turn(Wait::Never, now)
    }

    /// Waits for something that nobody asked for in particular, at most this long.
    ///
    /// # Errors
    /// A [`ClientError`] if the operating system refuses what is needed.
    pub fn next_notice(&mut self, within: Duration) -> Result<Option<Notice>, ClientError> {
        let until = self.driver.now() + within;
        loop {
            if let Some(notice) = self.tables.next_notice() {
                return Ok(Some(notice));
            }
            self.turn(self.wait, until)?;
            if self.driver.now() >= until {
                return Ok(self.tables.next_notice());
            }
        }
    }

    /// Waits until every execution is over. Those that are not by [`Client::timeout`] have failed.
    ///
    /// # Errors
    /// A [`ClientError`] if the operating system refuses what is needed; how each came out is its [outcome](Client::outcome).
    pub fn finish_all(&mut self) -> Result<(), ClientError> {
        let until = self.driver.now() + self.timeout;
        while self.tables.running() > 0 {
            self.turn(self.wait, until)?;
            if self.tables.running() > 0 && self.driver.now() >= until {
                self.give_up_all();
            }
        }
        Ok(())
    }

    fn finish_one(&mut self, operation: Operation) -> Result<(), ClientError> {
        let until = self.driver.now() + self.timeout;
        while self.tables.runs(operation) {
            self.turn(self.wait, until)?;
            if self.tables.runs(operation) && self.driver.now() >= until {
                self.give_up(operation);
            }
        }
        self.result(operation)
    }

    fn give_up_all(&mut self) {
        for operation in self.tables.all_running() {
            self.give_up(operation);
        }
    }

    fn give_up(&mut self, operation: Operation) {
        self.give_up_after(operation, self.timeout);
    }

    /// Gives an execution up that was not over within this time.
    pub(crate) fn give_up_after(&mut self, operation: Operation, within: Duration) {
        let channel = self.channel_of(operation);
        let why = if self.is_open(channel) {
            Trouble::NoReply { within }
        } else {
            let unknown = if self.server(channel).is_some() {
                Trouble::NotConnected { within }
            } else {
                Trouble::NotFound { within }
            };
            self.trouble(channel).unwrap_or(unknown)
        };
        self.tables.give_up(operation.0, why);
    }

    /// Returns the operation of a kind and a request that a channel has already, or prepares it.
    fn prepared(&mut self, channel: Channel, kind: Kind, request: &Request) -> Operation {
        if let Some(operation) = self.tables.known(channel.0, kind, request) {
            return Operation(operation);
        }
        let (operation, former) = self.tables.remembered(channel.0, kind, request);
        if let Some(former) = former {
            self.hand(Command::Finish { operation: former });
        }
        self.hand(Command::Prepare { operation, channel: channel.0, kind, request: Box::new(request.clone()) });
        Operation(operation)
    }

    fn result(&self, operation: Operation) -> Result<(), ClientError> {
        match self.tables.outcome(operation.0) {
            Outcome::Failed(why) => Err(self.failed(self.channel_of(operation), why.clone())),
            _ => Ok(()),
        }
    }

    fn failed(&self, channel: Channel, why: Trouble) -> ClientError {
        ClientError::new(self.name(channel), why)
    }

    #[inline]
    fn turn(&mut self, wait: Wait, until: hodo_machine::Instant) -> Result<(), ClientError> {
        self.hand_due();
        let Client { driver, tables, .. } = self;
        driver.turn(wait, until, &mut |event: Event| tables.note(event)).map_err(ClientError::System)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("wait", &self.wait).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
