//! The exchange of queue pairs' addresses over TCP, as `ibv_rc_pingpong` does it.
//!
//! | direction | bytes | content |
//! |---|---|---|
//! | client to server | 52 | `LID:QPN:PSN:GID`, in 4, 6, 6 and 32 hexadecimal digits, and a zero |
//! | server to client | 52 | its own; its queue pair is ready to receive and to send |
//! | client to server | 5 | `done` and a zero |
//!
//! A client of this program that requests another test begins with a line of its own, [`Request`]. The server answers it with a line of the
//! same form. One that requests a ping-pong writes its LID, if that is 0, as `0x00`, which stock tools read as 0: a server of this program then
//! queries the size and the number of the messages, with a line each way before its address.

mod arrivals;

use crate::device::{AddressOfQueuePair, Gid};
use hodo_io::Clock;
use hodo_machine::Instant;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// The TCP port of `ibv_rc_pingpong`.
pub const PORT: u16 = 18_515;
/// Bytes of an address with its zero.
pub(crate) const ADDRESS: usize = 52;
pub(crate) const DONE: &[u8; 5] = b"done\0";
/// The first bytes of a line of this program: no address begins so.
pub(crate) const MARK: &str = "hodo ";
/// The first bytes of an address of a client that can be queried, and those that stock tools write.
const QUERYABLE: &str = "0x00:";
const STOCK: &str = "0000:";
/// Bytes of a line at most.
pub(crate) const LINE_MAX: u64 = 1024;

/// Why two ends could not be connected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The TCP connection failed.
    #[error("{what}: {error}{}", remedy(error))]
    Tcp {
        /// The step that failed, with the address.
        what: String,
        /// The operating system's error.
        error: io::Error,
    },
    /// The far end sent something else than an address.
    #[error("{0} is no ping-pong: it sent {1:?} where an address as 0000:000011:f946cf:… was expected")]
    NotAnAddress(SocketAddr, String),
    /// A client closed its connection without a byte.
    #[error("{0} connected and sent nothing")]
    Silent(SocketAddr),
    /// A client did not send the whole of an address.
    #[error("{0} connected and sent no whole address in time")]
    Late(SocketAddr),
    /// A number of connections beyond which those that are no client's are not reported.
    #[error("{0} connections were no client's; further ones are closed and counted")]
    Many(u64),
    /// The number of connections that were no client's, and not reported.
    #[error("{0} further connections were no client's, and have been closed")]
    Further(u64),
    /// The far end refused what was asked for.
    #[error("{0} refused: {1}")]
    Refused(SocketAddr, String),
}

/// Returns what to do about an error of TCP.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            "; start `hodo pingpong` or `ibv_rc_pingpong` there first, with the same --port"
        }
        ErrorKind::AddrInUse => "; choose another --port at both ends, or end the program that has it",
        ErrorKind::TimedOut => "; is the far end stopped?",
        _ => "",
    }
}

impl fmt::Display for AddressOfQueuePair {
    /// Writes it as it is sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:06x}:{:06x}:", self.lid, self.number, self.psn)?;
        self.gid.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for AddressOfQueuePair {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut fields = text.split(':');
        let mut hex = |most: u32| {
            let field = fields.next().ok_or(())?;
            u32::from_str_radix(field.trim(), 16).ok().filter(|value| *value <= most).ok_or(())
        };
        let (lid, number, psn) = (hex(0xFFFF)? as u16, hex(0xFF_FFFF)?, hex(0xFF_FFFF)?);
        let digits = fields.next().filter(|digits| digits.len() == 32 && digits.is_ascii()).ok_or(())?;
        let mut gid = [0; 16];
        for (place, byte) in gid.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).map_err(|_| ())?;
        }
        if fields.next().is_some() {
            return Err(());
        }
        Ok(AddressOfQueuePair { lid, number, psn, gid: Gid(gid) })
    }
}

/// A connection for the exchange.
#[derive(Debug)]
pub struct Exchange {
    stream: TcpStream,
    far: SocketAddr,
    /// The time within which the far end has to answer, from the first byte that is awaited to the last one.
    patience: Duration,
    clock: Clock,
}

/// The first thing that a client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Greeting {
    /// The address of its queue pair: `ibv_rc_pingpong`, or this program with the same options.
    Address(AddressOfQueuePair),
    /// The address of a queue pair of this program, which can be queried for its ping-pong.
    Queryable(AddressOfQueuePair),
    /// A line of this program.
    Request(Request),
}

impl Greeting {
    /// Returns the greeting that these bytes begin with, once it is whole.
    ///
    /// # Errors
    /// What they are instead.
    fn of(bytes: &[u8]) -> Result<Option<Greeting>, String> {
        let instead = || String::from_utf8_lossy(&bytes[..bytes.len().min(ADDRESS)]).into_owned();
        if let Some(line) = bytes.strip_prefix(MARK.as_bytes()) {
            return match line.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let request = std::str::from_utf8(&line[..end]).ok().and_then(|text| text.parse().ok());
                    request.map(|request| Some(Greeting::Request(request))).ok_or_else(instead)
                }
                None if line.len() as u64 >= LINE_MAX => Err(instead()),
                None => Ok(None),
            };
        }
        let Some(message) = bytes.get(..ADDRESS) else {
            let is_one = |byte: &u8| byte.is_ascii_hexdigit() || b":x ".contains(byte);
            let may_be = MARK.as_bytes().starts_with(bytes) || bytes.iter().all(is_one);
            return if may_be { Ok(None) } else { Err(instead()) };
        };
        let text = String::from_utf8_lossy(message);
        let (greeting, text): (fn(_) -> _, _) = match text.strip_prefix(QUERYABLE) {
            Some(rest) => (Greeting::Queryable, format!("{STOCK}{rest}")),
            None => (Greeting::Address, text.into_owned()),
        };
        let address = text.split('\0').next().and_then(|text| text.parse().ok());
        address.map(|address| Some(greeting(address))).ok_or_else(instead)
    }
}

/// A line of `name=value` pairs, separated by spaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request(Vec<(String, String)>);

impl Request {
    /// Adds a pair.
    #[must_use]
    pub fn with(mut self, name: &str, value: &dyn ToString) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Returns the value of a name, if it is there and is one of its type.
    #[must_use]
    pub fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        value.parse().ok()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = self.0.iter();
        if let Some((name, value)) = pairs.next() {
            write!(f, "{name}={value}")?;
        }
        pairs.try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl FromStr for Request {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or(());
        text.split_ascii_whitespace().map(pair).collect::<Result<_, _>>().map(Request)
    }
}

impl Exchange {
    /// Connects to a server.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if nothing listens there.
    pub fn connect(to: SocketAddr, patience: Duration) -> Result<Self, ExchangeError> {
        let failed = |error| ExchangeError::Tcp { what: format!("connecting to {to}"), error };
        let stream = TcpStream::connect_timeout(&to, patience).map_err(failed)?;
        Self::over(stream, to, patience).map_err(failed)
    }

    fn over(stream: TcpStream, far: SocketAddr, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Exchange { stream, far, patience, clock: Clock::start() })
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the connection is gone.
    pub fn local(&self) -> Result<SocketAddr, ExchangeError> {
        self.stream.local_addr().map_err(|error| self.failed("the connection to", error))
    }

    /// Returns the address of the far end.
    #[must_use]
    pub fn far(&self) -> SocketAddr {
        self.far
    }

    fn failed(&self, what: &str, error: io::Error) -> ExchangeError {
        ExchangeError::Tcp { what: format!("{what} {}", self.far), error }
    }

    /// Sends an address.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the connection is gone.
    pub fn tell(&mut self, address: &AddressOfQueuePair) -> Result<(), ExchangeError> {
        let message = format!("{address}\0");
        self.stream.write_all(message.as_bytes()).map_err(|error| self.failed("sending the address to", error))
    }

    /// Sends the address of a client that can be queried, and receives the server's. A server of this program queries `parameters` before:
    /// then its line is returned, too.
    ///
    /// # Errors
    /// [`ExchangeError`] if the connection is closed, or the far end is something else.
    pub fn offer(
        &mut self,
        address: &AddressOfQueuePair,
        parameters: &Request,
    ) -> Result<(AddressOfQueuePair, Option<Request>), ExchangeError> {
        let message = format!("{address}\0").replacen(STOCK, QUERYABLE, usize::from(address.lid == 0));
        self.stream.write_all(message.as_bytes()).map_err(|error| self.failed("sending the address to", error))?;
        match self.greeting()? {
            Greeting::Address(address) | Greeting::Queryable(address) => Ok((address, None)),
            Greeting::Request(query) => {
                let query = self.unless_refused(query)?;
                self.request(parameters)?;
                Ok((self.hear()?, Some(query)))
            }
        }
    }

    /// Queries a client for its ping-pong.
    ///
    /// # Errors
    /// [`ExchangeError`] if the connection is closed, or the client answers something else.
    pub fn query(&mut self, query: &Request) -> Result<Request, ExchangeError> {
        self.request(query)?;
        self.answer()
    }

    /// Receives an address.
    ///
    /// # Errors
    /// [`ExchangeError`] if the connection is gone, or the far end is something else.
    pub fn hear(&mut self) -> Result<AddressOfQueuePair, ExchangeError> {
        match self.greeting()? {
            Greeting::Address(address) | Greeting::Queryable(address) => Ok(address),
            Greeting::Request(request) => {
                let request = self.unless_refused(request)?;
                Err(ExchangeError::NotAnAddress(self.far, request.to_string()))
            }
        }
    }

    /// Receives the far end's answer to a request.
    ///
    /// # Errors
    /// [`ExchangeError`] if the connection is gone, or the far end refuses, or does not know requests.
    pub fn answer(&mut self) -> Result<Request, ExchangeError> {
        match self.greeting()? {
            Greeting::Request(request) => self.unless_refused(request),
            Greeting::Address(address) | Greeting::Queryable(address) => {
                Err(ExchangeError::NotAnAddress(self.far, address.to_string()))
            }
        }
    }

    fn unless_refused(&self, request: Request) -> Result<Request, ExchangeError> {
        match request.get::<String>("error") {
            Some(why) => Err(ExchangeError::Refused(self.far, why.replace('_', " "))),
            None => Ok(request),
        }
    }

    /// Tells the far end why it does not get what it asked for.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the connection is gone.
    pub fn refuse(&mut self, why: &dyn fmt::Display) -> Result<(), ExchangeError> {
        let words = why.to_string().replace(char::is_whitespace, "_");
        let why: String = words.chars().take(LINE_MAX as usize / 5).collect();
        self.request(&Request::default().with("error", &why))
    }

    /// Returns whether the far end has sent something, or is gone; the next call that receives says which.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the connection is broken.
    pub fn has_come(&self) -> Result<bool, ExchangeError> {
        let failed = |error| self.failed("listening to", error);
        self.stream.set_nonblocking(true).map_err(failed)?;
        let came = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).map_err(failed)?;
        match came {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            other => other.map(|_| true).map_err(failed),
        }
    }

    /// Receives what a client begins with.
    ///
    /// # Errors
    /// [`ExchangeError`] if the connection is gone, or the client is something else.
    pub fn greeting(&mut self) -> Result<Greeting, ExchangeError> {
        let until = self.until();
        let mut bytes = vec![0; MARK.len()];
        self.read(until, &mut bytes)?;
        while Greeting::of(&bytes).map_err(|said| ExchangeError::NotAnAddress(self.far, said))?.is_none() {
            let missing = if bytes.starts_with(MARK.as_bytes()) { 1 } else { ADDRESS.saturating_sub(bytes.len()) };
            let here = bytes.len();
            bytes.resize(here + missing, 0);
            self.read(until, &mut bytes[here..])?;
        }
        Greeting::of(&bytes).ok().flatten().ok_or_else(|| ExchangeError::NotAnAddress(self.far, String::new()))
    }

    /// Returns when patience ends with an answer that is awaited from now on.
    fn until(&self) -> Instant {
        self.clock.now() + self.patience
    }

    fn read(&mut self, until: Instant, bytes: &mut [u8]) -> Result<(), ExchangeError> {
        self.fill(until, bytes).map_err(|error| self.failed("receiving the address of", error))
    }

    /// Receives that many bytes. A far end that sends one now and then does not prolong the wait.
    fn fill(&mut self, until: Instant, bytes: &mut [u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let left = until - self.clock.now();
            if left.is_zero() {
                let why = format!("nothing more within {} s", self.patience.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(rest) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it has closed the connection")),
                Ok(count) => rest = &mut rest[count..],
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a line.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the connection is gone.
    pub fn request(&mut self, request: &Request) -> Result<(), ExchangeError> {
        let line = format!("{MARK}{request}\n");
        self.stream.write_all(line.as_bytes()).map_err(|error| self.failed("asking", error))
    }

    /// Tells the server that its address has arrived.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the connection is gone.
    pub fn done(&mut self) -> Result<(), ExchangeError> {
        self.stream.write_all(DONE).map_err(|error| self.failed("answering", error))
    }

    /// Waits until the client has this end's address.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the connection is gone.
    pub fn wait_done(&mut self) -> Result<(), ExchangeError> {
        let mut bytes = [0; DONE.len()];
        self.fill(self.until(), &mut bytes).map_err(|error| self.failed("waiting for", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, TcpListener};

    /// Compares with what stock `ibv_rc_pingpong` sent in `rc_pingpong.pcap`.
    #[test]
    fn addresses_are_written_as_stock_tools_write_them() {
        let text = "0000:000011:f946cf:00000000000000000000ffff0a090001";
        let gid = Gid::of(IpAddr::from([10, 9, 0, 1]));
        let address = AddressOfQueuePair { lid: 0, number: 0x11, psn: 0xF9_46CF, gid };
        assert_eq!((address.to_string().as_str(), text.parse()), (text, Ok(address)));
        assert_eq!(text.len() + 1, ADDRESS);
        assert_eq!(address.gid.to_string(), "::ffff:10.9.0.1");
        for wrong in
            ["", "0000:000011:f946cf", "0000:1000011:f946cf:00000000000000000000ffff0a090001", "GET / HTTP/1.1"]
        {
            assert_eq!(wrong.parse::<AddressOfQueuePair>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn both_ends_learn_of_each_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let patience = Duration::from_secs(10);
        let address = |number| AddressOfQueuePair { lid: 0, number, psn: 5, gid: Gid([7; 16]) };
        let server = std::thread::spawn(move || {
            let mut exchange = Exchange::accept(&listener, patience, &mut |_| {}).unwrap();
            let Greeting::Request(request) = exchange.greeting().unwrap() else { panic!("a request was sent") };
            let Greeting::Address(heard) = exchange.greeting().unwrap() else { panic!("an address was sent") };
            exchange.tell(&address(2)).unwrap();
            exchange.wait_done().unwrap();
            (request.get::<u32>("size"), request.get::<u32>("mtu"), heard.number)
        });
        let mut client = Exchange::connect(to, patience).unwrap();
        client.request(&Request::default().with("size", &64).with("mtu", &"x")).unwrap();
        client.tell(&address(1)).unwrap();
        assert_eq!(client.hear().unwrap().number, 2);
        client.done().unwrap();
        assert_eq!(server.join().unwrap(), (Some(64), None, 1));
    }
}
