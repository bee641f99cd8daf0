//! A small hub, which passes requests of clients over TCP on to boards over UDP, and the replies back.

use hodo_io::{Attendant, ServeOptions, Server, SocketSettings, Stop};
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// The number of requests that one board may have in flight.
const WINDOW: usize = 16;
/// The longest payload.
pub const PAYLOAD_MAX: usize = 1400;
/// The length that says that the board is not there.
const ABSENT: u16 = 0xFFFF;
/// A timeout that nothing here reaches.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The hub's machine. A request is the board's number, a length and as many bytes; a reply has the same form, or says
/// [`ABSENT`]. A board receives and returns the bytes alone, in order.
pub struct Forwarder {
    boards: Vec<Board>,
    clients: Vec<Option<Vec<u8>>>,
    to_open: VecDeque<usize>,
    to_send: VecDeque<(Peer, Range<usize>)>,
    bytes: Vec<u8>,
    events: VecDeque<Event>,
    draining: bool,
    /// Whether it closes a client that does not read, instead of holding back.
    pub cuts: bool,
    to_close: VecDeque<Peer>,
}

struct Board {
    address: SocketAddr,
    open: bool,
    opening: bool,
    /// The clients that wait for a reply, those in flight first.
    asked: VecDeque<usize>,
    in_flight: usize,
    queue: VecDeque<u8>,
    lengths: VecDeque<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Came,
    Left,
    Blocked,
    Drained,
    Refused,
}

impl Forwarder {
    pub fn new(boards: &[SocketAddr]) -> Self {
        let board = |address: &SocketAddr| Board {
            address: *address,
            open: false,
            opening: false,
            asked: VecDeque::new(),
            in_flight: 0,
            queue: VecDeque::new(),
            lengths: VecDeque::new(),
        };
        Forwarder {
            boards: boards.iter().map(board).collect(),
            clients: Vec::new(),
            to_open: VecDeque::new(),
            to_send: VecDeque::new(),
            bytes: Vec::new(),
            events: VecDeque::new(),
            draining: false,
            cuts: false,
            to_close: VecDeque::new(),
        }
    }

    fn take_request(&mut self, client: usize, bytes: &[u8]) {
        let Some(mut input) = self.clients[client].take() else {
            assert!(self.cuts, "a client is there before its bytes");
            return;
        };
        input.extend_from_slice(bytes);
        let mut rest = &input[..];
        while let Some((header, after)) = rest.split_first_chunk::<4>() {
            let (board, length) = (half(header, 0), usize::from(half(header, 2)));
            let Some(payload) = after.get(..length) else { break };
            self.ask(usize::from(board), client, payload);
            rest = &after[length..];
        }
        let taken = input.len() - rest.len();
        input.drain(..taken);
        self.clients[client] = Some(input);
    }

    fn ask(&mut self, number: usize, client: usize, payload: &[u8]) {
        let board = &mut self.boards[number];
        board.asked.push_back(client);
        board.queue.extend(payload);
        board.lengths.push_back(payload.len());
        if !board.open && !std::mem::replace(&mut board.opening, true) {
            self.to_open.push_back(number);
        }
        self.fill(number);
    }

    /// Sends as many requests as the board's window allows.
    fn fill(&mut self, number: usize) {
        let board = &mut self.boards[number];
        while board.open
            && board.in_flight < WINDOW
            && let Some(length) = board.lengths.pop_front()
        {
            let start = self.bytes.len();
            self.bytes.extend(board.queue.drain(..length));
            self.to_send.push_back((Peer(number as u32), start..self.bytes.len()));
            board.in_flight += 1;
        }
    }

    fn take_answer(&mut self, number: usize, payload: &[u8]) {
        let board = &mut self.boards[number];
        board.in_flight -= 1;
        let client = board.asked.pop_front().expect("a board answers once");
        self.answer(client, number, payload.len() as u16, payload);
        self.fill(number);
    }

    fn refused(&mut self, number: usize) {
        let board = &mut self.boards[number];
        (board.open, board.opening, board.in_flight) = (false, false, 0);
        board.queue.clear();
        board.lengths.clear();
        for client in std::mem::take(&mut board.asked) {
            self.answer(client, number, ABSENT, &[]);
        }
        self.events.push_back(Event::Refused);
    }

    fn answer(&mut self, client: usize, board: usize, length: u16, payload: &[u8]) {
        if self.clients[client].is_some() {
            let start = self.bytes.len();
            self.bytes.extend((board as u16).to_be_bytes());
            self.bytes.extend(length.to_be_bytes());
            self.bytes.extend(payload);
            self.to_send.push_back((Peer(Peer::FIRST_ACCEPTED + client as u32), start..self.bytes.len()));
        }
    }

    fn is_drained(&self) -> bool {
        self.draining && self.to_send.is_empty() && self.boards.iter().all(|board| board.asked.is_empty())
    }
}

fn half(bytes: &[u8; 4], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn client(peer: Peer) -> usize {
    (peer.0 - Peer::FIRST_ACCEPTED) as usize
}

impl Machine for Forwarder {
    type Command = ();
    type Event = Event;

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) if peer.is_accepted() => {
                let index = client(peer);
                self.clients.resize_with(self.clients.len().max(index + 1), || None);
                assert!(self.clients[index].replace(Vec::new()).is_none(), "one client in the place of another");
                self.events.push_back(Event::Came);
            }
            Input::Opened(peer, _) => {
                let number = peer.0 as usize;
                (self.boards[number].open, self.boards[number].opening) = (true, false);
                self.fill(number);
            }
            Input::Received(peer, bytes) if peer.is_accepted() => self.take_request(client(peer), bytes),
            Input::Received(peer, bytes) => self.take_answer(peer.0 as usize, bytes),
            Input::Closed(peer, _) if peer.is_accepted() => {
                assert!(self.clients[client(peer)].take().is_some(), "a client leaves once");
                self.events.push_back(Event::Left);
            }
            Input::Closed(peer, why) => {
                assert_eq!(why, Closed::Refused);
                self.refused(peer.0 as usize);
            }
            // A board that has had its share of a round: what is due to it is due to the others as well.
            Input::Blocked(peer) | Input::Drained(peer) if !peer.is_accepted() => {}
            Input::Blocked(peer) => {
                self.events.push_back(Event::Blocked);
                if self.cuts {
                    self.clients[client(peer)] = None;
                    self.to_close.push_back(peer);
                }
            }
            Input::Drained(_) => self.events.push_back(Event::Drained),
            Input::Command(()) => self.draining = true,
            Input::Landed(..) => unreachable!("no place was offered"),
            Input::Elapsed => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<Event> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(peer) = self.to_close.pop_front() {
            return Output::Close(peer);
        }
        if let Some(number) = self.to_open.pop_front() {
            return Output::Open(Peer(number as u32), Address::Udp(self.boards[number].address));
        }
        match self.to_send.pop_front() {
            Some((peer, bytes)) => {
                out.copy(&self.bytes[bytes]);
                Output::Send(peer)
            }
            None => {
                self.bytes.clear();
                Output::Idle(None)
            }
        }
    }
}

/// The counts of a forwarder's events.
#[derive(Debug, Default)]
pub struct Tally {
    pub came: AtomicU32,
    pub left: AtomicU32,
    pub blocked: AtomicU32,
    pub drained: AtomicU32,
    pub refused: AtomicU32,
}

struct Counting<'a>(&'a Tally);

impl Attendant for Counting<'_> {
    type Machine = Forwarder;

    fn told(&mut self, event: Event) -> Option<()> {
        let counter = match event {
            Event::Came => &self.0.came,
            Event::Left => &self.0.left,
            Event::Blocked => &self.0.blocked,
            Event::Drained => &self.0.drained,
            Event::Refused => &self.0.refused,
        };
        counter.fetch_add(1, Relaxed);
        None
    }

    fn drain(&mut self) -> Option<()> {
        Some(())
    }

    fn is_drained(&self, machine: &Forwarder) -> bool {
        machine.is_drained()
    }
}

/// The options of a hub in the tests.
pub struct Hub {
    pub options: ServeOptions,
    pub drain: Duration,
    pub cuts: bool,
}

impl Hub {
    pub fn new(wait: Wait) -> Self {
        let settings =
            SocketSettings { backlog_max: 64 << 10, socket_buffer: Some(64 << 10), ..SocketSettings::default() };
        Hub { options: ServeOptions { wait, settings, ..ServeOptions::default() }, drain: TIMEOUT, cuts: false }
    }

    /// Serves these boards while `during` runs with the hub's address, and stops afterwards.
    pub fn serve(self, boards: &[SocketAddr], during: impl FnOnce(SocketAddr, &Tally, &Stop)) -> Tally {
        let anywhere = Address::Tcp(([127, 0, 0, 1], 0).into());
        let server = Server::bind(&anywhere, self.options).expect("a free port");
        let server = server.with_datagrams(SocketSettings::default()).with_drain(self.drain);
        let Address::Tcp(at) = *server.address() else { panic!("a TCP address") };
        let (stop, tally) = (Stop::new(false), Tally::default());
        let make = |_| (Forwarder { cuts: self.cuts, ..Forwarder::new(boards) }, Counting(&tally));
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| server.attend(make, &stop));
            {
                let _ends = Ends(&stop);
                during(at, &tally, &stop);
            }
            serving.join().expect("the hub does not panic").expect("it ends in order");
        });
        tally
    }
}

/// A guard that stops the other threads, also if the test fails: it would wait for them for ever.
struct Ends<'a>(&'a Stop);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Runs `during` with the addresses of `count` boards, which echo meanwhile.
pub fn with_boards<A>(count: usize, during: impl FnOnce(&[SocketAddr]) -> A) -> A {
    let boards: Vec<UdpSocket> = (0..count).map(|_| board()).collect();
    let addresses: Vec<SocketAddr> = boards.iter().map(|board| board.local_addr().expect("it is bound")).collect();
    let stop = Stop::new(false);
    std::thread::scope(|scope| {
        for board in &boards {
            scope.spawn(|| echo(board, &stop));
        }
        let _ends = Ends(&stop);
        during(&addresses)
    })
}

pub fn board() -> UdpSocket {
    let board = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    board.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
    board
}

/// The time after which a board checks whether to stop.
const LOOK_UP: Duration = Duration::from_millis(20);

fn echo(board: &UdpSocket, stop: &Stop) {
    board.set_read_timeout(Some(LOOK_UP)).expect("a time-out can be set");
    let mut buffer = [0; 2048];
    while !stop.load(Relaxed) {
        match board.recv_from(&mut buffer) {
            // One that has been closed meanwhile may have refused the last.
            Ok((length, from)) => drop(board.send_to(&buffer[..length], from)),
            Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused)),
        }
    }
}

/// Returns what lies in the sockets of this host, and what it has dropped: whether a datagram that is missing was lost, or is not fetched.
fn queues() -> String {
    let read = |name: &&str| std::fs::read_to_string(format!("/proc/self/net/{name}"));
    ["udp", "tcp", "snmp", "softnet_stat"].iter().filter_map(|name| read(name).ok()).collect()
}

/// One client of a hub.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub fn connect(hub: SocketAddr) -> Self {
        let stream = TcpStream::connect(hub).expect("the hub listens");
        stream.set_nodelay(true).expect("an option of TCP");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
        Client { stream, buffer: Vec::with_capacity(4 + PAYLOAD_MAX) }
    }

    /// Returns a second handle to the same connection.
    pub fn twin(&self) -> Self {
        Client { stream: self.stream.try_clone().expect("a descriptor is free"), buffer: Vec::new() }
    }

    pub fn ask(&mut self, board: usize, payload: &[u8]) {
        self.try_to_ask(board, payload).expect("the hub is there");
    }

    pub fn try_to_ask(&mut self, board: usize, payload: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend((board as u16).to_be_bytes());
        self.buffer.extend((payload.len() as u16).to_be_bytes());
        self.buffer.extend(payload);
        self.stream.write_all(&self.buffer)
    }

    /// Returns the next reply: the number of its board and the bytes, or `None` from a board that is not there.
    pub fn answer(&mut self) -> (usize, Option<&[u8]>) {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).unwrap_or_else(|error| panic!("the hub answers: {error}\n{}", queues()));
        let (board, length) = (usize::from(half(&header, 0)), half(&header, 2));
        if length == ABSENT {
            return (board, None);
        }
        self.buffer.resize(usize::from(length), 0);
        self.stream.read_exact(&mut self.buffer).expect("the hub answers");
        (board, Some(&self.buffer))
    }
}
