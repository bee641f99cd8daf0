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

use crate::device::{AddressOfQueuePair, Gid};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// The TCP port of `ibv_rc_pingpong`.
pub const PORT: u16 = 18_515;
/// Bytes of an address with its zero.
pub const ADDRESS: usize = 52;
pub(crate) const DONE: &[u8; 5] = b"done\0";
/// The first bytes of a line of this program: no address begins so.
pub const MARK: &str = "hodo ";
/// The first bytes of an address of a client that can be queried, and those that stock tools write.
const QUERYABLE: &str = "0x00:";
const STOCK: &str = "0000:";
/// Bytes of a line at most.
pub const LINE_MAX: u64 = 1024;

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
    /// The far end refused what was asked for.
    #[error("{0} refused: {1}")]
    Refused(SocketAddr, String),
}

/// Returns what to do about an error of TCP.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            "; start `hodo pingpong` or `ibv_rc_pingpong` there first, with the same --port, and `hodo` with --listen 0.0.0.0 on another host"
        }
        ErrorKind::AddrInUse => "; choose another --port at both ends, or end the program that has it",
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "; is the far end stopped?",
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

    /// Waits for a client.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the listener has failed.
    pub fn accept(listener: &TcpListener, patience: Duration) -> Result<Self, ExchangeError> {
        let failed = |error| ExchangeError::Tcp { what: "waiting for a client".into(), error };
        let (stream, from) = listener.accept().map_err(failed)?;
        Self::over(stream, from, patience).map_err(failed)
    }

    fn over(stream: TcpStream, far: SocketAddr, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Exchange { stream, far })
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

    /// Sends the address of a client that can be queried, and receives the server's. A server of this program queries `parameters` before.
    ///
    /// # Errors
    /// [`ExchangeError`] if the connection is closed, or the far end is something else.
    pub fn offer(
        &mut self,
        address: &AddressOfQueuePair,
        parameters: &Request,
    ) -> Result<AddressOfQueuePair, ExchangeError> {
        let message = format!("{address}\0").replacen(STOCK, QUERYABLE, usize::from(address.lid == 0));
        self.stream.write_all(message.as_bytes()).map_err(|error| self.failed("sending the address to", error))?;
        match self.greeting()? {
            Greeting::Address(address) | Greeting::Queryable(address) => Ok(address),
            Greeting::Request(query) => {
                self.unless_refused(query)?;
                self.request(parameters)?;
                self.hear()
            }
        }
    }

    /// Queries a client for its ping-pong.
    ///
    /// # Errors
    /// [`ExchangeError`] if the connection is closed, or the client answers something else.
    pub fn query(&mut self) -> Result<Request, ExchangeError> {
        self.request(&Request::default().with("query", &"ping-pong"))?;
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
        let mut bytes = vec![0; MARK.len()];
        self.read(&mut bytes)?;
        if bytes == MARK.as_bytes() {
            return self.line().map(Greeting::Request);
        }
        let is_queryable = bytes == QUERYABLE.as_bytes();
        let mut message = if is_queryable { STOCK.into() } else { bytes };
        message.resize(ADDRESS, 0);
        self.read(&mut message[MARK.len()..])?;
        let text = String::from_utf8_lossy(&message).into_owned();
        let address = text.split('\0').next().and_then(|text| text.parse().ok());
        let greeting = if is_queryable { Greeting::Queryable } else { Greeting::Address };
        address.map(greeting).ok_or(ExchangeError::NotAnAddress(self.far, text))
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), ExchangeError> {
        self.stream.read_exact(bytes).map_err(|error| self.failed("receiving the address of", error))
    }

    /// Receives the rest of a line.
    fn line(&mut self) -> Result<Request, ExchangeError> {
        let (mut text, mut byte) = (String::new(), [0]);
        while (text.len() as u64) < LINE_MAX {
            self.read(&mut byte)?;
            if byte == *b"\n" {
                return text.parse().map_err(|()| ExchangeError::NotAnAddress(self.far, text));
            }
            text.push(char::from(byte[0]));
        }
        Err(ExchangeError::NotAnAddress(self.far, text))
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
        self.stream.read_exact(&mut bytes).map_err(|error| self.failed("waiting for", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

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
            let mut exchange = Exchange::accept(&listener, patience).unwrap();
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
