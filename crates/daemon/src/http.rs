use crate::callers::{ALL_MAX, Caller, EACH_MAX, Names};
use crate::request::{BODY_MAX, HEAD_MAX, Method, Refusal, parse};
use hodo_machine::{Bytes, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A connection whose client asks nothing more, or does not read an answer, for this long is closed.
const SILENCE: Duration = Duration::from_secs(30);
/// The head of a request has to be there this long after its first byte, the first one this long after the connection.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a connection that wait to be parsed: a request, with its body or the start of the next.
const INPUT_MAX: usize = HEAD_MAX + BODY_MAX;
/// The interval of checks for silent connections.
const SWEEP: Duration = Duration::from_secs(1);

/// A server of HTTP/1.1: pages to read and actions to request. It accepts no bodies, and answers one request of a
/// connection at a time.
///
/// A new connection is always accepted: where there are too many of one caller or of all, another one is closed for it. Those
/// of the daemon's owner and root are closed for no other caller.
#[derive(Debug, Default)]
pub struct Http {
    names: Names,
    owner: u32,
    connections: BTreeMap<Peer, Connection>,
    outputs: VecDeque<Act>,
    sweep: Option<Instant>,
    next_tag: u64,
}

/// A request for a page or an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The tag that the answer has to carry.
    pub tag: u64,
    /// The client.
    pub peer: Peer,
    /// The path of the page or action.
    pub path: String,
    /// The text behind the path's question mark.
    pub query: String,
    /// `true` for an action.
    pub acts: bool,
    /// The client, as far as it is known.
    pub caller: Caller,
    /// `true` if a page in a browser sent the request.
    pub from_page: bool,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The tag of the request.
    pub tag: u64,
    /// The client.
    pub peer: Peer,
    /// The page or the error.
    pub reply: Reply,
}

/// A page, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status, after RFC 9110.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
    /// The methods that are allowed, for status 405.
    pub allow: &'static str,
}

/// The methods of a page.
pub(crate) const TO_READ: &str = "GET, HEAD";
/// The method of an action.
pub(crate) const TO_ACT: &str = "POST";

#[derive(Debug)]
struct Connection {
    input: Vec<u8>,
    /// The request that is being answered.
    answering: Option<Wants>,
    /// Some input was dropped, so that no request after this one can be parsed.
    overrun: bool,
    blocked: bool,
    /// Nothing more is read from it.
    ending: bool,
    /// Since when it waits for a request, or for the client to read an answer.
    since: Instant,
    /// Whether a request has been answered.
    answered: bool,
    caller: Caller,
}

#[derive(Debug, Clone, Copy)]
struct Wants {
    tag: u64,
    head_only: bool,
    keeps: bool,
}

#[derive(Debug)]
enum Act {
    Ask(PageRequest),
    Send(Peer, Reply, Wants),
    Close(Peer),
}

impl Act {
    fn peer(&self) -> Peer {
        let (Act::Ask(PageRequest { peer, .. }) | Act::Send(peer, ..) | Act::Close(peer)) = self;
        *peer
    }
}

impl Connection {
    fn new(now: Instant, caller: Caller) -> Self {
        Connection {
            input: Vec::new(),
            answering: None,
            overrun: false,
            blocked: false,
            ending: false,
            since: now,
            answered: false,
            caller,
        }
    }

    /// Returns when the connection has to be closed.
    fn deadline(&self) -> Instant {
        let is_idle = self.blocked || (self.answered && self.input.is_empty());
        self.since + if is_idle { SILENCE } else { HEAD_WITHIN }
    }
}

impl Reply {
    /// Creates a page of plain text.
    #[must_use]
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Reply { status, content_type: "text/plain; charset=utf-8", body: body.into(), allow: "" }
    }

    /// Creates a page of JSON.
    #[must_use]
    pub fn json(body: impl Into<String>) -> Self {
        Reply { status: 200, content_type: "application/json", body: body.into(), allow: "" }
    }

    /// Creates the reply to a method that this path does not have.
    pub(crate) fn not_allowed(allow: &'static str) -> Self {
        let text = format!("this page accepts {allow} only\n");
        Reply { allow, ..Reply::text(405, text) }
    }

    /// Creates the reply to a request for another host.
    fn misdirected(host: &str) -> Self {
        let text = format!(
            "this daemon is not `{}`: ask for its address, or start it with --pages-name\n",
            host.escape_debug()
        );
        Reply::text(421, text)
    }

    fn refusal(refusal: Refusal) -> Self {
        let status = refusal.status();
        let allow = if status == 405 { "GET, HEAD, POST" } else { "" };
        let text = format!("{}: this server has pages to read over HTTP/1.1, and accepts no bodies\n", reason(status));
        Reply { allow, ..Reply::text(status, text) }
    }

    /// Returns the status line and headers.
    fn head(&self, keeps: bool) -> String {
        let Reply { status, content_type, body, allow } = self;
        let allow = if allow.is_empty() { String::new() } else { format!("Allow: {allow}\r\n") };
        let connection = if keeps { "keep-alive" } else { "close" };
        format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}\
             Cache-Control: no-store\r\nConnection: {connection}\r\n\r\n",
            reason(*status),
            body.len(),
        )
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Other",
    }
}

impl Http {
    /// Creates a server for requests for these names, of a daemon of this user.
    #[must_use]
    pub fn new(owner: u32, names: Names) -> Self {
        Http { names, owner, ..Http::default() }
    }

    /// Takes a connection, and closes another one for it where there are too many.
    fn opened(&mut self, now: Instant, peer: Peer, caller: Caller) {
        let of = |other: Caller| move |connection: &Connection| connection.caller == other;
        if let Some(oldest) = self.oldest(EACH_MAX, of(caller)) {
            self.end(oldest);
        }
        let owner = self.owner;
        if !caller.is_operator(owner)
            && let Some(oldest) = self.oldest(ALL_MAX, |connection| !connection.caller.is_operator(owner))
        {
            self.end(oldest);
        }
        self.connections.insert(peer, Connection::new(now, caller));
        self.sweep.get_or_insert(now + SWEEP);
    }

    /// Returns the connection of these that has waited longest, if there are as many as there may be.
    fn oldest(&self, most: usize, of: impl Fn(&Connection) -> bool) -> Option<Peer> {
        let these = || self.connections.iter().filter(|(_, connection)| !connection.ending && of(connection));
        let oldest = these().min_by_key(|(_, connection)| connection.since).map(|(peer, _)| *peer);
        oldest.filter(|_| these().count() >= most)
    }

    /// Passes on the next request of a connection, unless an earlier one is being answered.
    fn read_on(&mut self, peer: Peer) {
        let Some(connection) = self.connections.get_mut(&peer) else { return };
        if connection.answering.is_some() || connection.blocked || connection.ending {
            return;
        }
        match parse(&connection.input) {
            Ok(Some((request, length))) => {
                connection.input.drain(..length);
                let tag = self.next_tag;
                let keeps = request.keeps && !connection.overrun;
                let (head_only, acts) = (request.method == Method::Head, request.method == Method::Post);
                connection.answering = Some(Wants { tag, head_only, keeps });
                self.next_tag += 1;
                let (caller, from_page) = (connection.caller, request.from_page);
                // A page in a browser reaches no Unix socket, and HTTP/1.0 had no hosts.
                if matches!(caller, Caller::Host(_)) && !request.host.is_empty() && !self.names.holds(&request.host) {
                    return self.refuse(peer, Reply::misdirected(&request.host));
                }
                let (path, query) = (request.path, request.query);
                self.outputs.push_back(Act::Ask(PageRequest { tag, peer, path, query, acts, caller, from_page }));
            }
            Ok(None) => {}
            Err(refusal) => self.refuse(peer, Reply::refusal(refusal)),
        }
    }

    fn refuse(&mut self, peer: Peer, reply: Reply) {
        let wants = Wants { tag: u64::MAX, head_only: false, keeps: false };
        self.outputs.push_back(Act::Send(peer, reply, wants));
        self.end(peer);
    }

    fn answer(&mut self, now: Instant, Answer { tag, peer, reply }: Answer) {
        let Some(connection) = self.connections.get_mut(&peer) else { return };
        let Some(wants) = connection.answering.take_if(|wants| wants.tag == tag) else { return };
        (connection.since, connection.answered) = (now, true);
        self.outputs.push_back(Act::Send(peer, reply, wants));
        if wants.keeps {
            self.read_on(peer);
        } else {
            self.end(peer);
        }
    }

    /// Closes the connection when pending answers have gone out.
    fn end(&mut self, peer: Peer) {
        if let Some(connection) = self.connections.get_mut(&peer)
            && !std::mem::replace(&mut connection.ending, true)
        {
            connection.input = Vec::new();
            self.outputs.push_back(Act::Close(peer));
        }
    }

    fn received(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&peer) else { return };
        if connection.ending {
            return;
        }
        if connection.input.is_empty() && connection.answered && connection.answering.is_none() {
            connection.since = now;
        }
        let room = INPUT_MAX - connection.input.len();
        if bytes.len() > room {
            connection.overrun = true;
            if let Some(wants) = &mut connection.answering {
                wants.keeps = false;
            }
        }
        connection.input.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.read_on(peer);
    }

    /// Closes connections that take too long: for a request, for the next one, or to read an answer.
    fn sweep(&mut self, now: Instant) {
        let silent: Vec<Peer> = self
            .connections
            .iter()
            .filter(|(_, connection)| now >= connection.deadline())
            .map(|(peer, _)| *peer)
            .collect();
        silent.into_iter().for_each(|peer| self.end(peer));
    }
}

impl Machine for Http {
    type Command = Answer;
    type Event = PageRequest;

    fn handle(&mut self, now: Instant, input: Input<'_, Answer>) {
        match input {
            Input::Opened(peer, ends) => self.opened(now, peer, Caller::at(ends)),
            Input::Received(peer, bytes) => self.received(now, peer, bytes),
            Input::Closed(peer, _) => {
                self.connections.remove(&peer);
                self.outputs.retain(|act| act.peer() != peer);
            }
            Input::Blocked(peer) | Input::Drained(peer) => {
                let is_blocked = matches!(input, Input::Blocked(_));
                if let Some(connection) = self.connections.get_mut(&peer) {
                    connection.blocked = is_blocked;
                    connection.since = now;
                    self.read_on(peer);
                }
            }
            Input::Command(answer) => self.answer(now, answer),
            Input::Elapsed | Input::Landed(..) => {}
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<PageRequest> {
        if self.sweep.is_some_and(|due| now >= due) {
            self.sweep(now);
            self.sweep = (!self.connections.is_empty()).then(|| now + SWEEP);
        }
        match self.outputs.pop_front() {
            Some(Act::Ask(asked)) => Output::Event(asked),
            Some(Act::Send(peer, reply, wants)) => {
                out.copy(reply.head(wants.keeps).as_bytes());
                if !wants.head_only {
                    out.share(Bytes::from(reply.body));
                }
                Output::Send(peer)
            }
            Some(Act::Close(peer)) => {
                self.connections.remove(&peer);
                Output::Close(peer)
            }
            None => Output::Idle(self.sweep),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::{Address, Ends};

    const PEER: Peer = Peer(Peer::FIRST_ACCEPTED);

    /// Returns the events of a connection: `asks /x`, `said ...` with the status line and the body, `closed`.
    fn outcome(http: &mut Http, now: Instant) -> Vec<String> {
        let (mut found, mut out) = (Vec::new(), Outbox::new());
        loop {
            match http.poll(now, &mut out) {
                Output::Event(PageRequest { tag, peer, path, .. }) => {
                    let reply = Reply::text(if path == "/" { 200 } else { 404 }, "page");
                    http.handle(now, Input::Command(Answer { tag, peer, reply }));
                    found.push(format!("asks {path}"));
                }
                Output::Send(_) => {
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect();
                    let text = String::from_utf8(bytes).expect("a page is text");
                    let (head, body) = text.split_once("\r\n\r\n").expect("a head ends");
                    let length = head.split_once("Content-Length: ").expect("a length is told").1;
                    assert!(body.is_empty() || length.starts_with(&format!("{}\r\n", body.len())), "{text}");
                    found.push(format!("{}: {body}", head.lines().next().expect("a status")));
                    out.clear();
                }
                Output::Close(_) => found.push("closed".to_owned()),
                Output::Open(..) => unreachable!("it reaches nobody"),
                Output::Idle(_) => return found,
            }
        }
    }

    fn opened() -> Http {
        let mut http = Http::default();
        http.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(1, 0)));
        http
    }

    fn told(http: &mut Http, bytes: &[u8]) -> Vec<String> {
        http.handle(Instant::ZERO, Input::Received(PEER, bytes));
        outcome(http, Instant::ZERO)
    }

    const OK: &str = "HTTP/1.1 200 OK: page";

    #[test]
    fn answers_one_request_after_the_other_however_they_are_cut() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\nGET /";
        let expected = ["asks /", OK, "asks /b", "HTTP/1.1 404 Not Found: ", "asks /", OK, "closed"];
        for cut in [1, 10, 1000] {
            let mut http = opened();
            let found: Vec<String> = text.chunks(cut).flat_map(|chunk| told(&mut http, chunk)).collect();
            assert_eq!(found, expected, "cut every {cut} bytes");
        }
    }

    #[test]
    fn refuses_and_closes() {
        let found = told(&mut opened(), b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
        assert!(found[0].starts_with("HTTP/1.1 413 Content Too Large: ") && found[1] == "closed", "{found:?}");
        let found = told(&mut opened(), b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(found[0].starts_with("HTTP/1.1 405 Method Not Allowed: ") && found[1] == "closed", "{found:?}");
        let found = told(&mut opened(), &[b'a'; 100_000]);
        assert!(found[0].starts_with("HTTP/1.1 431 ") && found[1] == "closed", "{found:?}");
    }

    #[test]
    fn who_asks_on_and_on_gets_what_fits_and_no_more() {
        let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let found = told(&mut opened(), request.repeat(10_000).as_bytes());
        assert_eq!(found, ["asks /", OK, "closed"]);
    }

    #[test]
    fn reads_no_further_while_its_answers_are_not_taken() {
        let mut http = opened();
        http.handle(Instant::ZERO, Input::Blocked(PEER));
        assert!(told(&mut http, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_empty());
        http.handle(Instant::ZERO, Input::Drained(PEER));
        assert_eq!(outcome(&mut http, Instant::ZERO), ["asks /", OK]);
    }

    #[test]
    fn the_silent_are_closed() {
        let mut http = opened();
        assert!(told(&mut http, b"GET / HT").is_empty());
        assert!(outcome(&mut http, Instant::ZERO + (HEAD_WITHIN - SWEEP)).is_empty());
        assert_eq!(outcome(&mut http, Instant::ZERO + HEAD_WITHIN), ["closed"]);
        assert!(matches!(http.poll(Instant::ZERO + 2 * SILENCE, &mut Outbox::new()), Output::Idle(None)));
        let mut http = opened();
        assert_eq!(told(&mut http, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), ["asks /", OK]);
        assert!(outcome(&mut http, Instant::ZERO + (SILENCE - SWEEP)).is_empty());
        assert_eq!(outcome(&mut http, Instant::ZERO + SILENCE), ["closed"]);
    }

    #[test]
    fn a_head_that_comes_byte_by_byte_has_its_deadline_too() {
        let mut http = opened();
        let mut now = Instant::ZERO;
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ".iter().chain([b'a'; 100].iter()) {
            now = now + Duration::from_millis(100);
            http.handle(now, Input::Received(PEER, &[*byte]));
            if !outcome(&mut http, now).is_empty() {
                break;
            }
        }
        assert!(now <= Instant::ZERO + HEAD_WITHIN + SWEEP, "{now:?}");
    }

    /// Returns the connections that are closed when `count` of a caller are opened at once, behind those with lower numbers.
    fn opens(http: &mut Http, first: u32, count: u32, caller: Caller) -> Vec<u32> {
        let mut closed = Vec::new();
        for number in first..first + count {
            let now = Instant::from_nanos(u64::from(number));
            http.opened(now, Peer::accepted(number), caller);
            while let Output::Close(peer) = http.poll(now, &mut Outbox::new()) {
                closed.push(peer.index() as u32);
            }
        }
        closed
    }

    #[test]
    fn whoever_holds_connections_keeps_nobody_else_out() {
        let host = |number: u8| Caller::Host([10, 0, 0, number].into());
        let mut http = Http::new(1000, Names::default());
        assert!(opens(&mut http, 0, 2, Caller::User(1000)).is_empty(), "the owner's");
        assert!(opens(&mut http, 2, 1, host(1)).is_empty());
        // Of one caller the oldest of its own goes.
        assert_eq!(opens(&mut http, 10, 10, host(2)), [10, 11]);
        // Of many the oldest of all, except for the operator's.
        let closed: Vec<u32> =
            (3..30).flat_map(|number| opens(&mut http, 100 + u32::from(number) * 10, 4, host(number))).collect();
        assert_eq!(closed[..3], [2, 12, 13]);
        assert!(http.connections.contains_key(&Peer::accepted(0)) && http.connections.len() == ALL_MAX + 2);
        assert!(opens(&mut http, 900, 6, Caller::User(1000)).is_empty());
        assert_eq!(opens(&mut http, 910, 1, Caller::User(1000)), [0]);
        assert!(opens(&mut http, 920, 8, Caller::User(0)).is_empty(), "root has places of its own");
        assert_eq!(opens(&mut http, 930, 1, Caller::User(1001)).len(), 1, "other users have none");
    }

    #[test]
    fn a_request_for_another_host_is_refused() {
        let from = Address::Tcp(([127, 0, 0, 1], 40_000).into());
        let mut http = Http::new(0, Names::new(["farm7".to_owned()]));
        for (host, expected) in [("farm7:9205", 200), ("127.0.0.1:9205", 200), ("evil.example:9205", 421)] {
            http.handle(Instant::ZERO, Input::Opened(PEER, &Ends::new(from.clone(), from.clone())));
            let found = told(&mut http, format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
            assert!(found.iter().any(|line| line.contains(&format!("HTTP/1.1 {expected}"))), "{host}: {found:?}");
        }
    }

    #[test]
    fn an_answer_reaches_nobody_else() {
        let mut http = opened();
        http.handle(Instant::ZERO, Input::Received(PEER, b"GET / HTTP/1.0\r\n\r\n"));
        let Output::Event(PageRequest { tag, peer, .. }) = http.poll(Instant::ZERO, &mut Outbox::new()) else {
            panic!("it asks")
        };
        http.handle(Instant::ZERO, Input::Closed(PEER, hodo_machine::Closed::Reset));
        http.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(1, 0)));
        http.handle(Instant::ZERO, Input::Received(PEER, b"GET /b HTTP/1.0\r\n\r\n"));
        http.handle(Instant::ZERO, Input::Command(Answer { tag, peer, reply: Reply::text(200, "not theirs") }));
        assert_eq!(outcome(&mut http, Instant::ZERO), ["asks /b", "HTTP/1.1 404 Not Found: page", "closed"]);
    }
}
