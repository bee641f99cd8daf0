//! The beginning, the pulse and the end of one connection, the same for every use that is made of it.
//!
//! The server speaks first: the byte order that it wants, and which ways of authentication it knows. The client chooses one and makes
//! its claim; the server accepts it or not. From then on a client sends an echo from time to time, which comes back; either side gives up
//! the other one that has been silent for too long.

use crate::wire::connection::{Credentials, Validation, encode_echo, encode_validated};
use crate::wire::{Command, Control, Incoming, Message, Side, Status};
use crate::{Error, Limits, Order, Scalar, Type, TypeCache, Value, Writer};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::Instant;

/// The way of authentication without a claim.
pub const ANONYMOUS: &str = "anonymous";
/// The way of authentication with the names of user and host, which nobody proves.
pub const CLAIMED: &str = "ca";

/// Bytes of a receive buffer that is stated to the other side, and types that it may number. No peer is known to heed them; these are those
/// of pvxs.
const BUFFER_BYTES: u32 = 0x1_0000;
const TYPES: u16 = 0x7FFF;

/// The settings of one side of a connection.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Bounds on what the other side may send.
    pub limits: Limits,
    /// Byte order of a server's messages, which it also asks of its clients.
    pub order: Order,
    /// The names of user and host that a client claims; none for an anonymous one.
    pub claim: Option<(String, String)>,
    /// How long the beginning may take.
    pub greeting_timeout: Duration,
    /// How long the other side may be silent.
    pub silence_timeout: Duration,
    /// The period of a client's echoes. It sends them whatever it hears: a server that posts to a client without a word from it would
    /// take it for gone.
    pub echo_every: Duration,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            limits: Limits::DEFAULT,
            order: Order::NATIVE,
            claim: None,
            greeting_timeout: Duration::from_secs(5),
            silence_timeout: Duration::from_secs(40),
            echo_every: Duration::from_secs(15),
        }
    }
}

/// One side of a connection.
#[derive(Debug)]
pub struct Session {
    side: Side,
    config: SessionConfig,
    state: State,
    /// Messages to the other side.
    pub writer: Writer,
    /// Types that the other side has numbered.
    pub types: TypeCache,
    opened: Instant,
    heard: Instant,
    echoed: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A client waits for the ways of authentication, a server for the choice.
    Greeting,
    /// The claim has been made, and is not decided.
    Claimed,
    Ready,
    Over,
}

/// The meaning of a message for the connection.
#[derive(Debug)]
pub enum Step {
    /// The message was for the connection itself.
    Done,
    /// A client makes its claim: [`Session::decide`] on it.
    Claim(Box<Credentials>),
    /// The server has accepted this client.
    Ready,
    /// The server has not accepted this client, and says why.
    Refused(Status),
    /// The message is about channels and operations.
    Pass,
}

impl Session {
    /// Creates one side of a connection that has just opened. A server's first messages are then in its writer.
    #[must_use]
    pub fn new(side: Side, config: SessionConfig, now: Instant) -> Self {
        let mut writer = Writer::new(side, config.order);
        if side == Side::Server {
            writer.control(Control::SetByteOrder, 0);
            // Older clients prefer the last.
            let ways = [ANONYMOUS, CLAIMED].map(String::from).to_vec();
            Validation { buffer_bytes: BUFFER_BYTES, types: TYPES, ways }.encode(&mut writer);
        }
        let state = State::Greeting;
        Session { side, config, state, writer, types: TypeCache::new(), opened: now, heard: now, echoed: now }
    }

    /// Returns the bounds on what the other side may send.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Returns when the other side was heard last, or the connection was opened.
    #[must_use]
    pub const fn heard(&self) -> Instant {
        self.heard
    }

    /// Tells whether channels may be opened.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Takes in a message. One that is about channels and operations is passed on once the connection is ready.
    ///
    /// # Errors
    /// An [`Error`] for what the other side may not send, after which the connection is to be closed.
    #[inline]
    pub fn take(&mut self, now: Instant, incoming: &Incoming<'_>) -> Result<Step, Error> {
        self.heard = now;
        match incoming {
            Incoming::Control(header) => {
                match Control::from_code(header.command) {
                    Control::SetByteOrder if self.side == Side::Client => self.writer.set_order(header.order),
                    Control::EchoRequest => self.writer.control(Control::EchoReply, header.size),
                    _ => {}
                }
                Ok(Step::Done)
            }
            Incoming::Message(message) => self.message(message),
        }
    }

    #[inline]
    fn message(&mut self, message: &Message<'_>) -> Result<Step, Error> {
        match (Command::from_code(message.command), self.side, self.state) {
            (Command::Echo, Side::Server, _) => {
                encode_echo(message.payload(), &mut self.writer);
                Ok(Step::Done)
            }
            // Answers to echoes; and steps that no way of authentication has which is spoken here.
            (Command::Echo | Command::Authentication, ..) => Ok(Step::Done),
            (Command::Validation, Side::Client, State::Greeting) => self.claim(message),
            (Command::Validation, Side::Server, State::Greeting) => {
                self.state = State::Claimed;
                let limits = self.config.limits;
                Ok(Step::Claim(Box::new(Credentials::decode(&mut message.reader(&limits), &mut self.types)?)))
            }
            (Command::Validated, Side::Client, State::Claimed) => {
                let limits = self.config.limits;
                let status = Status::decode(&mut message.reader(&limits))?;
                self.state = if status.is_success() { State::Ready } else { State::Over };
                Ok(if status.is_success() { Step::Ready } else { Step::Refused(status) })
            }
            (Command::Validation | Command::Validated, ..) => Err(Error::Unexpected { command: message.command }),
            (_, _, State::Ready) => Ok(Step::Pass),
            _ => Err(Error::Unexpected { command: message.command }),
        }
    }

    /// Replies to a server's first message: with a claim if there is one and the server knows the way, else as nobody.
    fn claim(&mut self, message: &Message<'_>) -> Result<Step, Error> {
        let limits = self.config.limits;
        let Validation { ways, .. } = Validation::decode(&mut message.reader(&limits))?;
        let knows = |way: &str| ways.iter().any(|known| known == way);
        let claim = self.config.claim.as_ref().filter(|_| knows(CLAIMED));
        if claim.is_none() && !knows(ANONYMOUS) {
            return Err(Error::NoCommonAuthentication);
        }
        let way = if claim.is_some() { CLAIMED } else { ANONYMOUS };
        let claim = claim.map(|(user, host)| claim_of(user, host));
        let credentials = Credentials { buffer_bytes: BUFFER_BYTES, types: TYPES, priority: 0, way: way.into(), claim };
        credentials.encode(&mut self.writer);
        self.state = State::Claimed;
        Ok(Step::Done)
    }

    /// Tells a client whether its claim is accepted. If it is not, the connection is to be closed once that is sent.
    pub fn decide(&mut self, status: &Status) {
        if self.state == State::Claimed && self.side == Side::Server {
            encode_validated(status, &mut self.writer);
            self.state = if status.is_success() { State::Ready } else { State::Over };
        }
    }

    /// Returns when [`Session::elapsed`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let silent = self.heard + self.config.silence_timeout;
        match (self.state, self.side) {
            (State::Ready, Side::Client) => silent.min(self.echo_at()),
            (State::Ready, Side::Server) => silent,
            _ => self.opened + self.config.greeting_timeout,
        }
    }

    /// Sends an echo if it is time to, and judges the other side's silence.
    ///
    /// # Errors
    /// [`Error::Silent`] if the other side has been silent for too long, or the beginning has taken too long.
    pub fn elapsed(&mut self, now: Instant) -> Result<(), Error> {
        let limit = if self.state == State::Ready {
            self.heard + self.config.silence_timeout
        } else {
            self.opened + self.config.greeting_timeout
        };
        if now >= limit {
            return Err(Error::Silent);
        }
        if self.side == Side::Client && self.state == State::Ready && now >= self.echo_at() {
            self.echoed = now;
            encode_echo(&[], &mut self.writer);
        }
        Ok(())
    }

    fn echo_at(&self) -> Instant {
        self.echoed + self.config.echo_every
    }
}

/// Returns the claim of a user at a host.
fn claim_of(user: &str, host: &str) -> Value {
    let fields: Vec<_> = [("user", user), ("host", host)].into();
    let mut value = Value::of(Type::structure("", fields.iter().map(|(name, _)| (name, Scalar::Text.into()))));
    for (name, text) in fields {
        value.set(name, text).expect("the type was made with this field");
    }
    value
}

/// Returns the user and the host that a client claims to be, if it makes such a claim.
#[must_use]
pub fn claimed(credentials: &Credentials) -> Option<(String, String)> {
    let claim = credentials.claim.as_ref().filter(|_| credentials.way == CLAIMED)?;
    let text = |name| claim.get(name)?.as_text().map(|text| text.to_str().into_owned());
    Some((text("user")?, text("host")?))
}
