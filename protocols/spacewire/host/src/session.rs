//! A host with a program: packets out and in, RMAP transactions, over a port of a bridge.

mod rmap;

pub use rmap::{RmapError, RmapSession, Transfer};

use crate::port::{NamedPort, PortError};
use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Closed, Driver, Instant, Wait};
use hodo_spacewire::EndOfPacket;
use hodo_spacewire::bridge::MalformedStream;
pub use hodo_spacewire::client::Directions;
use hodo_spacewire::client::{CannotSend, Client, ClientEvent, ClientSettings, Inbox, InboxSettings};
use std::time::Duration;
use thiserror::Error;

/// Bytes that wait before they are passed to the kernel without being flushed.
const SEND_AFTER: usize = 64 << 10;
/// Bytes of the longest packet that RMAP makes, of 16 MiB less one of data, with a path and headers.
pub(crate) const PACKET_MAX: usize = (16 << 20) + 1024;

/// Packets over this may be more than a port takes.
const LONG: usize = 64 << 10;

/// Returns what else to check when a port that was sent a packet of this length has ended the connection.
#[must_use]
pub fn or_too_long(length: usize) -> String {
    match length {
        0..=LONG => String::new(),
        _ => {
            format!("; check that it takes packets of {length} bytes (`packet_max` in the file of a bridge's network)")
        }
    }
}

/// How a port is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSettings {
    /// How long connecting may take, and nothing may get on before sending fails.
    pub timeout: Duration,
    /// How to wait.
    pub wait: Wait,
    /// Bytes of the longest packet that may arrive.
    pub packet_max: usize,
    /// The directions that are used: GRESB has a connection for each.
    pub directions: Directions,
}

impl Default for SessionSettings {
    /// Returns one second, sleeping waits, and packets up to the longest of RMAP in both directions.
    fn default() -> Self {
        let timeout = Duration::from_secs(1);
        SessionSettings { timeout, wait: Wait::Adaptive, packet_max: PACKET_MAX, directions: Directions::Both }
    }
}

/// The reason that a port cannot be used. Each message names the port.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The text names no port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The port cannot be reached, or the connection was lost.
    #[error(
        "{port}: {why}; check that a bridge runs there and listens at that address (`hodo spacewire bridge --listen`), and that no other host took its place{}",
        or_too_long(*.longest)
    )]
    Closed {
        /// The port.
        port: String,
        /// The reason.
        why: Closed,
        /// The bytes of the longest packet sent.
        longest: usize,
    },
    /// Nothing answers there.
    #[error("{port}: no connection within {} ms; check address and network", .timeout.as_millis())]
    NoConnection {
        /// The port.
        port: String,
        /// The time.
        timeout: Duration,
    },
    /// The far end speaks another protocol.
    #[error("{port}: the far end was disconnected: {why}")]
    Malformed {
        /// The port.
        port: String,
        /// The defect.
        why: MalformedStream,
    },
    /// The far end does not read.
    #[error("{port}: {bytes} bytes were not taken within {} ms: the far end, or the network behind it, is stuck", .timeout.as_millis())]
    Stuck {
        /// The port.
        port: String,
        /// Bytes that wait to leave.
        bytes: usize,
        /// The time.
        timeout: Duration,
    },
    /// The packet cannot be sent.
    #[error("{port}: {why}")]
    CannotSend {
        /// The port.
        port: String,
        /// The reason.
        why: CannotSend,
    },
    /// The operating system refused something that is needed.
    #[error("{port}: {why}")]
    System {
        /// The port.
        port: String,
        /// The message of the system.
        why: String,
    },
}

/// Something that arrived at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// A packet.
    Packet(&'a [u8], EndOfPacket),
    /// A time-code.
    TimeCode(u8),
}

/// A port in use.
///
/// What is sent leaves when 64 KiB wait, with [`flush`](Self::flush), and while the session receives. End a session that has sent something
/// with [`finish`](Self::finish), unless the far end has answered it. Packets that arrive wait in the session,
/// up to 65536 of them or 16 MiB, beyond which the bridge is held back.
pub struct Session {
    name: String,
    settings: SessionSettings,
    line: Endpoint<Client<Inbox>, Sockets>,
    /// Whether the last arrival was a packet of the inbox, which is still there because the caller looks at it.
    lent: bool,
    /// The bytes of the longest packet sent.
    longest: usize,
}

impl Session {
    /// Connects to the port of a name: see [`port`](crate::port).
    ///
    /// # Errors
    /// The reason that it cannot be reached.
    pub fn connect(name: &str, settings: &SessionSettings) -> Result<Session, SessionError> {
        Session::open(&NamedPort::resolve(name)?, settings)
    }

    /// Connects to a port.
    ///
    /// # Errors
    /// The reason that it cannot be reached.
    pub fn open(port: &NamedPort, settings: &SessionSettings) -> Result<Session, SessionError> {
        let name = port.name.clone();
        let system = |error: std::io::Error| SessionError::System { port: name.clone(), why: error.to_string() };
        let sockets = Sockets::new(SocketSettings { peers_max: 2, ..SocketSettings::default() }).map_err(system)?;
        let SessionSettings { packet_max, directions, .. } = *settings;
        let client = ClientSettings { packet_max, directions, ..ClientSettings::new(port.port.clone()) };
        let client = Client::new(client, Inbox::new(InboxSettings::default()));
        let line = Endpoint::new(client, sockets, Clock::start());
        let mut session = Session { name, settings: *settings, line, lent: false, longest: 0 };
        let until = session.line.now() + settings.timeout;
        while !session.line.machine().is_connected() {
            if session.step(settings.wait, until)? >= until && !session.line.machine().is_connected() {
                return Err(SessionError::NoConnection { port: session.name, timeout: settings.timeout });
            }
        }
        Ok(session)
    }

    /// Returns the name of the port.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// The reason that it cannot be sent.
    #[inline]
    pub fn send(&mut self, packet: &[u8], end: EndOfPacket) -> Result<(), SessionError> {
        self.longest = self.longest.max(packet.len());
        self.queue(|client| client.send(packet, end))
    }

    /// Sends a packet whose bytes are not copied.
    ///
    /// # Errors
    /// The reason that it cannot be sent.
    pub fn send_shared(&mut self, packet: &bytes::Bytes, end: EndOfPacket) -> Result<(), SessionError> {
        self.longest = self.longest.max(packet.len());
        self.queue(|client| client.send_shared(packet.clone(), end))
    }

    /// Sends a time-code.
    ///
    /// # Errors
    /// The reason that it cannot be sent.
    pub fn send_time_code(&mut self, code: u8) -> Result<(), SessionError> {
        self.queue(|client| client.send_time_code(code))
    }

    /// Waits until everything sent has been passed to the kernel.
    ///
    /// # Errors
    /// If the connection is lost, or the far end takes nothing for as long as the timeout.
    pub fn flush(&mut self) -> Result<(), SessionError> {
        self.drain(0)
    }

    /// Discards what has arrived, and everything that arrives from now on, so that a program that only sends is never held up by what
    /// comes back.
    pub fn discard_arrivals(&mut self) {
        self.lent = false;
        self.line.machine_mut().receiver_mut().discard();
    }

    /// Ends the session in order: passes on everything that was sent, and waits until the far end has read it and closed the
    /// connection, at most for the timeout. What arrives meanwhile is discarded. Returns `false` if the far end left the connection
    /// open, so that it may not have read everything.
    ///
    /// A session that is dropped instead may reset the connection, because something arrived that nobody read. The far end then loses what it
    /// has not read yet.
    ///
    /// # Errors
    /// If the connection is lost, or the far end takes nothing for as long as the timeout.
    pub fn finish(mut self) -> Result<bool, SessionError> {
        self.discard_arrivals();
        self.flush()?;
        self.line.transport().end_sending();
        let until = self.line.now() + self.settings.timeout;
        loop {
            match self.step(self.settings.wait, until) {
                Err(SessionError::Closed { why: Closed::Finished, .. }) => return Ok(true),
                Ok(now) if now >= until => return Ok(false),
                other => other?,
            };
        }
    }

    /// Returns the next packet or time-code, or `None` if nothing arrives within a time. Time-codes come before the packets that wait.
    ///
    /// # Errors
    /// If the connection is lost and nothing waits any more.
    pub fn receive(&mut self, within: Duration) -> Result<Option<Arrival<'_>>, SessionError> {
        let until = self.line.now() + within;
        self.receive_until(until)
    }

    /// Returns whether something waits that [`receive`](Self::receive) returns at once.
    #[must_use]
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        self.line.machine().receiver().len() > usize::from(self.lent)
    }

    /// Returns the clock's time.
    pub(crate) fn now(&self) -> Instant {
        self.line.now()
    }

    pub(crate) fn receive_until(&mut self, until: Instant) -> Result<Option<Arrival<'_>>, SessionError> {
        if std::mem::take(&mut self.lent) {
            self.line.machine_mut().receiver_mut().pop();
        }
        loop {
            if let Some(code) = self.line.machine_mut().receiver_mut().time_code() {
                return Ok(Some(Arrival::TimeCode(code)));
            }
            if !self.line.machine().receiver().is_empty() {
                self.lent = true;
                let front = self.line.machine().receiver().front();
                return Ok(front.map(|(data, end)| Arrival::Packet(data, end)));
            }
            let now = self.step(self.settings.wait, until)?;
            let inbox = self.line.machine_mut().receiver_mut();
            if now >= until && inbox.is_empty() && !inbox.has_time_codes() {
                return Ok(None);
            }
        }
    }

    #[inline]
    fn queue(&mut self, send: impl Fn(&mut Client<Inbox>) -> Result<(), CannotSend>) -> Result<(), SessionError> {
        loop {
            match send(self.line.machine_mut()) {
                Ok(()) => break,
                Err(CannotSend::Full(_)) => self.drain(SEND_AFTER)?,
                Err(why) => return Err(SessionError::CannotSend { port: self.name.clone(), why }),
            }
        }
        let client = self.line.machine();
        if client.queued() >= SEND_AFTER && !client.is_blocked() {
            self.step(Wait::Never, Instant::ZERO)?;
        }
        Ok(())
    }

    /// Waits until no more than `bytes` wait.
    fn drain(&mut self, bytes: usize) -> Result<(), SessionError> {
        let mut left = usize::MAX;
        let mut until = self.line.now() + self.settings.timeout;
        loop {
            // The first turn hands over what only the machine knows of.
            let wait = if left == usize::MAX { Wait::Never } else { self.settings.wait };
            let now = self.step(wait, until)?;
            let waiting = self.line.machine().queued() + self.line.transport().unwritten();
            if waiting <= bytes {
                return Ok(());
            }
            if waiting < left {
                (left, until) = (waiting, now + self.settings.timeout);
            } else if now >= until {
                return Err(SessionError::Stuck {
                    port: self.name.clone(),
                    bytes: waiting,
                    timeout: self.settings.timeout,
                });
            }
        }
    }

    /// Takes one turn, and returns when it ended.
    fn step(&mut self, wait: Wait, until: Instant) -> Result<Instant, SessionError> {
        let (mut failed, longest) = (None, self.longest);
        let turned = self.line.step(wait, until, &mut |event| match event {
            ClientEvent::Closed(why) => failed = Some(SessionError::Closed { port: self.name.clone(), why, longest }),
            ClientEvent::Malformed(why) => failed = Some(SessionError::Malformed { port: self.name.clone(), why }),
            _ => {}
        });
        turned.map_err(|error| SessionError::System { port: self.name.clone(), why: error.to_string() })?;
        failed.map_or_else(|| Ok(self.line.last_turn()), Err)
    }
}
