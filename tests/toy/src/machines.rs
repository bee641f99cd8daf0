//! The toy protocol on a stream: a request is a length and as many bytes, its reply is the length. Replies come in order.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | length of the payload, big-endian |
//! | length | payload, of a request only |

use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::VecDeque;

/// Bytes of a header.
pub const HEADER: usize = 4;

const SERVER: Peer = Peer(0);

/// The client's command: an operation with this tag and payload.
#[derive(Debug)]
pub struct Request {
    /// The application's tag.
    pub tag: u64,
    /// Bytes of payload.
    pub size: u32,
}

/// An event of the client.
#[derive(Debug)]
pub enum Event {
    /// The server is connected.
    Ready,
    /// The operation with this tag is done.
    Done(u64),
    /// The connection is closed.
    Closed(Closed),
}

/// Sends requests over one connection.
#[derive(Debug)]
pub struct Client {
    address: Option<Address>,
    requests: VecDeque<Request>,
    in_flight: VecDeque<u64>,
    events: VecDeque<Event>,
    received: usize,
}

impl Client {
    /// Creates a client of the server at an address.
    #[must_use]
    pub fn new(address: Address) -> Client {
        let (requests, in_flight, events) = Default::default();
        Client { address: Some(address), requests, in_flight, events, received: 0 }
    }
}

impl Machine for Client {
    type Command = Request;
    type Event = Event;

    fn handle(&mut self, _now: Instant, input: Input<'_, Request>) {
        match input {
            Input::Opened(..) => self.events.push_back(Event::Ready),
            Input::Received(_, bytes) => {
                self.received += bytes.len();
                let replies = (self.received / HEADER).min(self.in_flight.len());
                self.received -= replies * HEADER;
                self.events.extend(self.in_flight.drain(..replies).map(Event::Done));
            }
            Input::Closed(_, why) => self.events.push_back(Event::Closed(why)),
            Input::Command(request) => self.requests.push_back(request),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<Event> {
        if let Some(address) = self.address.take() {
            return Output::Open(SERVER, address);
        }
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        let Some(Request { tag, size }) = self.requests.pop_front() else { return Output::Idle(None) };
        self.in_flight.push_back(tag);
        out.copy(&size.to_be_bytes());
        out.copy(&vec![0x5A; size as usize]);
        Output::Send(SERVER)
    }
}

/// The far end: a reply to each request, in order.
#[derive(Debug, Default)]
pub struct Server {
    peers: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    peer: Peer,
    header: Vec<u8>,
    payload_left: usize,
    replies: Vec<u8>,
}

impl Session {
    fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() || self.header.len() == HEADER {
            if self.header.len() < HEADER {
                let (header, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
                self.header.extend(header);
                bytes = rest;
                if let Ok(length) = <[u8; HEADER]>::try_from(&self.header[..]) {
                    self.payload_left = u32::from_be_bytes(length) as usize;
                }
                continue;
            }
            let taken = bytes.len().min(self.payload_left);
            self.payload_left -= taken;
            bytes = &bytes[taken..];
            if self.payload_left > 0 {
                return;
            }
            self.replies.append(&mut self.header);
        }
    }
}

impl Machine for Server {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => {
                let (header, replies) = Default::default();
                self.peers.push(Session { peer, header, payload_left: 0, replies });
            }
            Input::Received(peer, bytes) => {
                if let Some(session) = self.peers.iter_mut().find(|session| session.peer == peer) {
                    session.receive(bytes);
                }
            }
            Input::Closed(peer, _) => self.peers.retain(|session| session.peer != peer),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<()> {
        let Some(session) = self.peers.iter_mut().find(|session| !session.replies.is_empty()) else {
            return Output::Idle(None);
        };
        out.copy(&session.replies);
        session.replies.clear();
        Output::Send(session.peer)
    }
}
