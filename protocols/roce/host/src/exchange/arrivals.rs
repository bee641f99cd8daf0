//! How a server finds its client among whatever connects to its port.
//!
//! | what connects | outcome |
//! |---|---|
//! | a whole [`Greeting`] | it is the client |
//! | other bytes, or a connection that is closed without any | closed and reported |
//! | nothing, or a part of a greeting | closed and reported once patience ends |
//!
//! All of them are looked at in turn, so that nobody who says nothing keeps a client waiting.

use super::{ADDRESS, Exchange, ExchangeError, Greeting, LINE_MAX, MARK};
use hodo_io::{Clock, sleep};
use hodo_machine::Instant;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Connections without a whole greeting. Beyond these the oldest one is closed for another.
const ARRIVALS_MAX: usize = 64;
/// Strangers that are reported one by one; more of them are counted.
const REPORTS_MAX: u64 = 20;
/// The time between two looks at connections without a whole greeting.
const LOOK: Duration = Duration::from_millis(1);

/// A connection that may be the client's.
struct Arrival {
    exchange: Exchange,
    until: Instant,
}

impl Exchange {
    /// Waits for a client, of which the greeting has arrived. Whatever else connects is closed, and reported to `stranger`: the first ones one by
    /// one, then that no more will be, and with the client how many there were.
    ///
    /// # Errors
    /// [`ExchangeError::Tcp`] if the listener has failed.
    pub fn accept(
        listener: &TcpListener,
        patience: Duration,
        stranger: &mut dyn FnMut(&ExchangeError),
    ) -> Result<Self, ExchangeError> {
        let failed = |error| ExchangeError::Tcp { what: "waiting for a client".into(), error };
        let (clock, mut strangers) = (Clock::start(), 0);
        let mut arrivals: VecDeque<Arrival> = VecDeque::new();
        let mut report = |why: &ExchangeError| {
            strangers += 1;
            match strangers {
                ..=REPORTS_MAX => stranger(why),
                more if more == REPORTS_MAX + 1 => stranger(&ExchangeError::Many(REPORTS_MAX)),
                _ => {}
            }
        };
        loop {
            listener.set_nonblocking(!arrivals.is_empty()).map_err(failed)?;
            match listener.accept().and_then(|(stream, from)| Self::arrived(stream, from, patience)) {
                Ok(exchange) => arrivals.push_back(Arrival { exchange, until: clock.now() + patience }),
                Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(LOOK),
                // One that was gone before it was accepted.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(error) => return Err(failed(error)),
            }
            if arrivals.len() > ARRIVALS_MAX
                && let Some(oldest) = arrivals.pop_front()
            {
                report(&ExchangeError::Late(oldest.exchange.far));
            }
            let now = clock.now();
            for _ in 0..arrivals.len() {
                let Some(arrival) = arrivals.pop_front() else { break };
                match arrival.look(now) {
                    Ok(false) => arrivals.push_back(arrival),
                    Ok(true) => {
                        if strangers > REPORTS_MAX {
                            stranger(&ExchangeError::Further(strangers - REPORTS_MAX));
                        }
                        return Ok(arrival.exchange);
                    }
                    Err(why) => report(&why),
                }
            }
        }
    }

    fn arrived(stream: TcpStream, from: SocketAddr, patience: Duration) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::over(stream, from, patience)
    }
}

impl Arrival {
    /// Returns whether the greeting is whole. It is left on the connection, which waits for what is received from then on.
    fn look(&self, now: Instant) -> Result<bool, ExchangeError> {
        let Exchange { stream, far, .. } = &self.exchange;
        let failed = |error| self.exchange.failed("receiving the address of", error);
        let mut bytes = [0; ADDRESS + MARK.len() + LINE_MAX as usize];
        let here = match stream.peek(&mut bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Ok(0) => return Err(ExchangeError::Silent(*far)),
            Ok(count) => count,
            Err(error) => return Err(failed(error)),
        };
        let greeting = Greeting::of(&bytes[..here]).map_err(|said| ExchangeError::NotAnAddress(*far, said))?;
        if greeting.is_some() {
            return stream.set_nonblocking(false).map(|()| true).map_err(failed);
        }
        if now < self.until { Ok(false) } else { Err(ExchangeError::Late(*far)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressOfQueuePair, Gid};
    use std::io::Write;

    /// The bytes of each stranger: nothing, garbage, and parts of an address and of a line.
    const STRANGERS: [&[u8]; 5] = [b"", b"GET / HTTP/1.1\r\n\r\n", &[0xFF; 80], b"0000:0000", b"hodo link=1"];

    #[test]
    fn a_client_is_found_among_strangers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let connect = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(to).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        };
        let strangers = STRANGERS.map(connect);
        drop(connect(b""));
        let address = AddressOfQueuePair { lid: 0, number: 5, psn: 6, gid: Gid([7; 16]) };
        let mut client = connect(&address.to_string().as_bytes()[..20]);
        let late = client.try_clone().unwrap();
        let rest = format!("{address}\0").split_off(20);
        let mut said = Vec::new();
        let mut accepted = Exchange::accept(&listener, Duration::from_secs(60), &mut |why| {
            said.push(why.to_string());
            // The rest comes once all that can be told apart has been.
            if said.len() == 3 {
                client.write_all(rest.as_bytes()).unwrap();
            }
        })
        .unwrap();
        assert_eq!(accepted.greeting().unwrap(), Greeting::Address(address));
        assert_eq!(accepted.far(), late.local_addr().unwrap());
        assert_eq!(said.iter().filter(|said| said.contains("is no ping-pong: it sent")).count(), 2, "{said:?}");
        assert_eq!(said.iter().filter(|said| said.contains("sent nothing")).count(), 1, "{said:?}");
        drop(strangers);
    }

    #[test]
    fn strangers_that_are_not_reported_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        (0..REPORTS_MAX + 10).for_each(|_| drop(TcpStream::connect(to).unwrap()));
        let mut client = TcpStream::connect(to).unwrap();
        let mut said = Vec::new();
        let accepted = Exchange::accept(&listener, Duration::from_secs(60), &mut |why| {
            said.push(why.to_string());
            if matches!(why, ExchangeError::Many(_)) {
                client.write_all(b"hodo query=1\n").unwrap();
            }
        });
        assert!(accepted.is_ok() && said.len() == REPORTS_MAX as usize + 2, "{said:?}");
        assert!(said[20].starts_with("20 connections were no client's"), "{said:?}");
        assert!(said[21].ends_with("further connections were no client's, and have been closed"), "{said:?}");
    }

    #[test]
    fn more_strangers_than_there_is_room_for_make_room_for_a_client() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let strangers: Vec<_> = (0..ARRIVALS_MAX + 3).map(|_| TcpStream::connect(to).unwrap()).collect();
        let mut client = TcpStream::connect(to).unwrap();
        client.write_all(b"hodo query=1\n").unwrap();
        let mut late = 0;
        let mut accepted = Exchange::accept(&listener, Duration::from_secs(60), &mut |_| late += 1).unwrap();
        assert!(matches!(accepted.greeting(), Ok(Greeting::Request(_))));
        assert_eq!((late, strangers.len()), (4, ARRIVALS_MAX + 3));
    }

    #[test]
    fn a_part_of_a_greeting_is_given_up_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let mut half = TcpStream::connect(to).unwrap();
        half.write_all(b"0000:00").unwrap();
        let mut client = None;
        let mut said = String::new();
        let accepted = Exchange::accept(&listener, Duration::from_millis(20), &mut |why| {
            said = why.to_string();
            let mut stream = TcpStream::connect(to).unwrap();
            stream.write_all(b"hodo query=1\n").unwrap();
            client = Some(stream);
        });
        assert!(accepted.is_ok() && said.contains("no whole address in time"), "{said}");
    }
}
