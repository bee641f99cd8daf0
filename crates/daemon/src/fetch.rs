use crate::Error;
use crate::request::HEADERS_MAX;
use crate::site::operators_socket;
use hodo_io::{Clock, Endpoint, SocketSettings, Sockets, is_local};
use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use httparse::{EMPTY_HEADER, Status};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Bytes of a page at most.
const PAGE_MAX: usize = 64 << 20;
const PEER: Peer = Peer(0);

/// Reads a page of a running daemon, within this time. The daemon's Unix socket is tried first, if the address is this host's.
///
/// # Errors
/// [`Error::Page`] if the daemon cannot be reached, does not answer in time, or answers with another status than 200.
pub fn fetch(address: SocketAddr, path: &str, within: Duration) -> Result<String, Error> {
    visit("GET", address, path, within)
}

/// Requests an action of a running daemon, within this time: over its Unix socket if that is on this host, else over TCP. Returns
/// the text of the answer.
///
/// # Errors
/// [`Error::Page`], as [`fetch`].
pub fn act(address: SocketAddr, path: &str, within: Duration) -> Result<String, Error> {
    visit("POST", address, path, within)
}

fn visit(method: &str, address: SocketAddr, path: &str, within: Duration) -> Result<String, Error> {
    let failed = |why: String| Error::Page { page: format!("http://{address}{path}"), why };
    let streams = Sockets::new(SocketSettings::default()).map_err(|error| failed(error.to_string()))?;
    let mut places = vec![Address::Tcp(address)];
    if is_local(address.ip()) {
        // Of one that listens at every address, and of one that listens at this one; the last is tried first.
        places.push(operators_socket((Ipv4Addr::UNSPECIFIED, address.port()).into()));
        places.push(operators_socket(address));
    }
    let mut endpoint = Endpoint::new(Visitor::new(method, address, path, places), streams, Clock::start());
    let until = endpoint.now() + within;
    let mut told = None;
    while told.is_none() && endpoint.now() < until {
        endpoint.turn(Wait::Block, until, &mut |read| told = Some(read)).map_err(|error| failed(error.to_string()))?;
    }
    let read = told.unwrap_or(Err(Closed::TimedOut)).map_err(|why| failed(why.to_string()))?;
    page(&read).map(str::to_owned).map_err(failed)
}

/// Returns the body of an answer of status 200.
fn page(answer: &[u8]) -> Result<&str, String> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let Ok(Status::Complete(length)) = head.parse(answer) else {
        return Err("the answer is not HTTP/1.1; is it the port of a daemon's pages?".to_owned());
    };
    let body = str::from_utf8(&answer[length..]).map_err(|_| "the answer is not text".to_owned())?;
    let (status, reason) = (head.code.unwrap_or_default(), head.reason.unwrap_or_default());
    // The first line of an error's page says more.
    let says = body.lines().next().unwrap_or_default();
    if status == 200 { Ok(body) } else { Err(format!("the answer is `HTTP/1.1 {status} {reason}`: {says}")) }
}

/// A machine that requests one page and reads until the far end closes.
struct Visitor {
    /// Where the page may be; the last is tried first.
    places: Vec<Address>,
    request: Vec<u8>,
    read: Vec<u8>,
    state: State,
    is_open: bool,
}

enum State {
    New,
    Waiting,
    Opened,
    Ended(Result<(), Closed>),
    Told,
}

impl Visitor {
    fn new(method: &str, address: SocketAddr, path: &str, places: Vec<Address>) -> Self {
        let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{length}Connection: close\r\n\r\n");
        let request = request.into_bytes();
        Visitor { places, request, read: Vec::new(), state: State::New, is_open: false }
    }
}

impl Machine for Visitor {
    type Command = ();
    type Event = Result<Vec<u8>, Closed>;

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(..) => (self.state, self.is_open) = (State::Opened, true),
            Input::Received(_, bytes) if self.read.len() + bytes.len() <= PAGE_MAX => {
                self.read.extend_from_slice(bytes);
            }
            Input::Received(..) => self.state = State::Ended(Err(Closed::OverBound)),
            Input::Closed(_, Closed::Finished) => self.state = State::Ended(Ok(())),
            // A socket that is not there: the next place, and in the end the reason of the last.
            Input::Closed(..) if !self.places.is_empty() && !self.is_open => {
                self.state = State::New;
            }
            Input::Closed(_, why) => self.state = State::Ended(Err(why)),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<Self::Event> {
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::New => match self.places.pop() {
                Some(place) => Output::Open(PEER, place),
                None => Output::Idle(None),
            },
            State::Opened => {
                out.copy(&self.request);
                Output::Send(PEER)
            }
            State::Ended(how) => {
                self.state = State::Told;
                Output::Event(how.map(|()| std::mem::take(&mut self.read)))
            }
            state @ (State::Waiting | State::Told) => {
                self.state = state;
                Output::Idle(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pages, Reply, Site};

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn reads_what_a_site_gives() {
        let body = "line\n".repeat(100_000);
        let pages = Pages::default().with("/long", move || Reply::text(200, body.clone()));
        let site = Site::open(([127, 0, 0, 1], 0).into(), pages, &[]).expect("a port is free");
        assert_eq!(fetch(site.address(), "/long", LONG).map(|page| page.len()), Ok(500_000));
        let error = fetch(site.address(), "/none", LONG).expect_err("there is none");
        assert!(error.to_string().contains("404 Not Found"), "{error}");
    }

    #[test]
    fn has_done_what_a_site_does() {
        let act_on = |query: &str| Reply::text(if query == "number=7" { 200 } else { 400 }, query);
        let pages = Pages::default().with("/page", || Reply::text(200, "")).with_action("/run", act_on);
        let site = Site::open(([127, 0, 0, 1], 0).into(), pages, &[]).expect("a port is free");
        assert_eq!(act(site.address(), "/run?number=7", LONG).as_deref(), Ok("number=7"));
        for (says, done) in [
            ("400 Bad Request", act(site.address(), "/run", LONG)),
            ("405 Method Not Allowed`: this page accepts POST only", fetch(site.address(), "/run", LONG)),
            ("405 Method Not Allowed`: this page accepts GET, HEAD only", act(site.address(), "/page", LONG)),
            ("404 Not Found", act(site.address(), "/none", LONG)),
        ] {
            let error = done.expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn says_where_nobody_answers() {
        let site = Site::open(([127, 0, 0, 1], 0).into(), Pages::default(), &[]).expect("a port is free");
        let address = site.address();
        drop(site);
        let error = fetch(address, "/", LONG).expect_err("nobody is there").to_string();
        assert!(error.contains(&format!("http://{address}/")) && error.contains("refused"), "{error}");
    }

    #[test]
    fn what_is_no_page_is_told() {
        assert_eq!(page(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nx\r\n\r\ny"), Ok("x\r\n\r\ny"));
        let why = "the answer is `HTTP/1.1 503 Service Unavailable`: draining".to_owned();
        assert_eq!(page(b"HTTP/1.1 503 Service Unavailable\r\n\r\ndraining\nand more"), Err(why));
        assert!(page(b"hello").is_err() && page(&[0xFF]).is_err());
    }
}
