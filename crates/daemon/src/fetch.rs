use crate::request::HEADERS_MAX;
use crate::target::Way;
use crate::{Error, Target};
use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use httparse::{EMPTY_HEADER, Status};
use std::time::Duration;

/// Bytes of a page at most.
const PAGE_MAX: usize = 64 << 20;
const PEER: Peer = Peer(0);
const ROOT: u32 = 0;

/// Reads a page of a running daemon, within this time: over its Unix socket if it is on this host and one of this user's, else over TCP.
///
/// # Errors
/// [`Error::Page`] if the daemon cannot be reached, does not answer in time, or answers with another status than 200;
/// [`Error::NoDaemon`] or [`Error::Several`] if it is not one daemon, [`Error::Stranger`] if another user's process listens there.
pub fn fetch(of: &Target, path: &str, within: Duration) -> Result<String, Error> {
    visit("GET", of, path, within)
}

/// Requests an action of a running daemon, within this time: over its Unix socket, or over TCP if an address was written and no daemon of
/// this user has it. Returns the text of the answer.
///
/// # Errors
/// The errors of [`fetch`].
pub fn act(of: &Target, path: &str, within: Duration) -> Result<String, Error> {
    visit("POST", of, path, within)
}

fn visit(method: &str, of: &Target, path: &str, within: Duration) -> Result<String, Error> {
    let way = of.way(method == "POST")?;
    let (address, host, expected, page_is) = match &way {
        Way::Tcp(address) => (Address::Tcp(*address), address.to_string(), None, format!("http://{address}{path}")),
        Way::Socket { path: socket, owner, name } => {
            let place = socket.to_string_lossy().into_owned();
            let page_is = format!("{path} of `{name}` at {place}");
            (Address::Path(place), "localhost".to_owned(), Some(*owner), page_is)
        }
    };
    let failed = |why: String| Error::Page { page: page_is.clone(), why };
    let streams = Sockets::new(SocketSettings::default()).map_err(|error| failed(error.to_string()))?;
    let visitor = Visitor::new(method, &host, path, address.clone(), expected);
    let mut endpoint = Endpoint::new(visitor, streams, Clock::start());
    let until = endpoint.now() + within;
    let mut told = None;
    while told.is_none() && endpoint.now() < until {
        endpoint.turn(Wait::Block, until, &mut |read| told = Some(read)).map_err(|error| failed(error.to_string()))?;
    }
    match told.unwrap_or(Err(Failure::Closed(Closed::TimedOut))) {
        Ok(read) => page(&read).map(str::to_owned).map_err(failed),
        Err(Failure::Closed(why)) => Err(failed(why.to_string())),
        Err(Failure::Stranger(user)) => {
            let expected = expected.map_or_else(String::new, |owner| format!("one of user {owner}"));
            Err(Error::Stranger { place: address.to_string(), user, expected })
        }
    }
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
    place: Address,
    /// The user who has to answer, where the socket tells who does; root may, too.
    expected: Option<u32>,
    request: Vec<u8>,
    read: Vec<u8>,
    state: State,
}

/// Why there is no answer.
enum Failure {
    Closed(Closed),
    /// A process of another user listens there.
    Stranger(Option<u32>),
}

enum State {
    New,
    Waiting,
    Opened,
    Ended(Result<(), Failure>),
    Told,
}

impl Visitor {
    fn new(method: &str, host: &str, path: &str, place: Address, expected: Option<u32>) -> Self {
        let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{length}Connection: close\r\n\r\n");
        Visitor { place, expected, request: request.into_bytes(), read: Vec::new(), state: State::New }
    }
}

impl Machine for Visitor {
    type Command = ();
    type Event = Result<Vec<u8>, Failure>;

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        if matches!(self.state, State::Ended(_) | State::Told) {
            return;
        }
        self.state = match input {
            Input::Opened(_, ends) => match self.expected {
                Some(owner) if ![Some(owner), Some(ROOT)].contains(&ends.user) => {
                    State::Ended(Err(Failure::Stranger(ends.user)))
                }
                _ => State::Opened,
            },
            Input::Received(_, bytes) if self.read.len() + bytes.len() <= PAGE_MAX => {
                self.read.extend_from_slice(bytes);
                return;
            }
            Input::Received(..) => State::Ended(Err(Failure::Closed(Closed::OverBound))),
            Input::Closed(_, Closed::Finished) => State::Ended(Ok(())),
            Input::Closed(_, why) => State::Ended(Err(Failure::Closed(why))),
            _ => return,
        };
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<Self::Event> {
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::New => Output::Open(PEER, self.place.clone()),
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
    use crate::{Choice, Pages, Reply, Site};
    use std::net::SocketAddr;

    const LONG: Duration = Duration::from_secs(30);

    fn open(pages: Pages) -> Site {
        let anywhere = Choice::Asked(SocketAddr::from(([127, 0, 0, 1], 0)));
        Site::open(&anywhere, &Choice::Usual("fetched".to_owned()), pages, &[]).expect("a port is free")
    }

    fn at(site: &Site) -> Target {
        site.address().into()
    }

    #[test]
    fn reads_what_a_site_gives() {
        let body = "line\n".repeat(100_000);
        let pages = Pages::default().with("/long", move || Reply::text(200, body.clone()));
        let site = open(pages);
        assert_eq!(fetch(&at(&site), "/long", LONG).map(|page| page.len()), Ok(500_000));
        let error = fetch(&at(&site), "/none", LONG).expect_err("there is none");
        assert!(error.to_string().contains("404 Not Found"), "{error}");
    }

    #[test]
    fn has_done_what_a_site_does() {
        let act_on = |query: &str| Reply::text(if query == "number=7" { 200 } else { 400 }, query);
        let pages = Pages::default().with("/page", || Reply::text(200, "")).with_action("/run", act_on);
        let site = open(pages);
        assert_eq!(act(&at(&site), "/run?number=7", LONG).as_deref(), Ok("number=7"));
        for (says, done) in [
            ("400 Bad Request", act(&at(&site), "/run", LONG)),
            ("405 Method Not Allowed`: this page accepts POST only", fetch(&at(&site), "/run", LONG)),
            ("405 Method Not Allowed`: this page accepts GET, HEAD only", act(&at(&site), "/page", LONG)),
            ("404 Not Found", act(&at(&site), "/none", LONG)),
        ] {
            let error = done.expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn says_where_nobody_answers() {
        let site = open(Pages::default());
        let address = site.address();
        drop(site);
        let error = fetch(&address.into(), "/", LONG).expect_err("nobody is there").to_string();
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
