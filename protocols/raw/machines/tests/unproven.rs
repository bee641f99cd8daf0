//! A server over UDP sends no more to an address that is not proven than came from it.

use core::time::Duration;
use hodo_machine::{Bytes, Ends, Input, Instant, Machine, Outbox, Output, Peer, Random};
use hodo_raw::wire::updates::{SUBSCRIBE, Subscribe, UNSUBSCRIBE, encode_unsubscribe};
use hodo_raw::wire::{
    FLAG_FACTS, FLAG_PROVE, GREETING, GREETING_MAX, HEADER, Header, Kind, PROOF, RECEIVE_MAX, encode_greeting,
};
use hodo_raw::{Server, ServerConfig, Transport};

const FACTS: &[u8] = b"kernel=6.1.0-18-amd64";
const LEASE: Duration = Duration::from_secs(1);

struct There {
    server: Server,
    now: Instant,
}

impl There {
    fn new(transport: Transport) -> There {
        let server = Server::new(ServerConfig {
            transport,
            size_max: 1 << 16,
            pending_max: 100,
            greeting_timeout: Duration::from_secs(5),
            silence_timeout: Duration::from_secs(60),
            lease: LEASE,
            secret: [0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908],
        });
        There { server: server.telling(Bytes::from_static(FACTS)), now: Instant::ZERO }
    }

    /// Returns what the server sends back for a message of a new or known peer, and in the `millis` behind it.
    fn tell(&mut self, peer: u32, message: &[u8], millis: u64) -> Vec<Vec<u8>> {
        self.server.handle(self.now, Input::Received(Peer::accepted(peer), message));
        let (until, mut all) = (self.now + Duration::from_millis(millis), Vec::new());
        let mut out = Outbox::new();
        loop {
            match self.server.poll(self.now, &mut out) {
                Output::Send(_) => {
                    out.seal();
                    all.push(out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect());
                    out.clear();
                    assert!(all.len() < 5_000, "it does not end");
                }
                Output::Idle(Some(at)) if at <= until => {
                    self.now = self.now.max(at);
                    self.server.handle(self.now, Input::Elapsed);
                }
                Output::Idle(_) => break,
                other => panic!("{other:?}"),
            }
        }
        self.now = until;
        all
    }

    /// Returns whether the sender of a datagram becomes a peer, and what goes back to it otherwise.
    fn stranger(&mut self, from: u32, message: &[u8]) -> (bool, Vec<u8>) {
        let mut out = Outbox::new();
        let is_taken = self.server.admits(self.now, &Ends::nodes(0, from), message, &mut out);
        (is_taken, out.pieces().iter().flat_map(|piece| out.bytes(piece)).copied().collect())
    }

    /// Returns the answer of a stream to its greeting.
    fn greet_on_a_stream(&mut self, peer: u32) -> Vec<u8> {
        self.server.handle(self.now, Input::Opened(Peer::accepted(peer), &Ends::nodes(0, peer)));
        self.tell(peer, &hello(FLAG_FACTS, GREETING, 0), 0).remove(0)
    }

    /// Greets as a client does, and returns the proof that the server tells it.
    fn proof(&mut self, peer: u32) -> u64 {
        let (is_taken, welcome) = self.stranger(peer, &hello(FLAG_FACTS, GREETING_MAX, 0));
        assert!(!is_taken && welcome[1] == FLAG_PROVE, "it greets again");
        let proof = proof_in(&welcome);
        let again = hello(FLAG_FACTS, GREETING_MAX, proof);
        assert!(self.stranger(peer, &again).0, "with the proof");
        self.server.handle(self.now, Input::Opened(Peer::accepted(peer), &Ends::nodes(0, peer)));
        let welcome = self.tell(peer, &again, 0).remove(0);
        assert_eq!((welcome[1], proof_in(&welcome)), (0, proof));
        assert!(welcome.ends_with(FACTS));
        proof
    }
}

fn hello(flags: u8, length: usize, proof: u64) -> Vec<u8> {
    let header = Header { flags, ..Header::new(Kind::Hello, length as u32, 0) };
    let mut message = [&header.encode()[..], &encode_greeting(1 << 16), &proof.to_le_bytes()].concat();
    message.resize(HEADER + length, 0);
    message
}

fn proof_in(welcome: &[u8]) -> u64 {
    u64::from_le_bytes(*welcome[HEADER + GREETING..].first_chunk().expect("eight bytes"))
}

/// Returns a RECEIVE for this many operations of 60,000 bytes.
fn receive(count: u16, sequence: u64, proof: u64) -> Vec<u8> {
    let header = Header { count, ..Header::new(Kind::Receive, 60_000, sequence) };
    [&header.encode()[..], &proof.to_le_bytes()].concat()
}

fn kind(message: &[u8]) -> Kind {
    Header::decode(message.first_chunk().expect("a header")).expect("one of ours").kind
}

fn subscribe(proof: u64) -> Vec<u8> {
    // A hundred a second.
    let ask = Subscribe { proof, rate_micro: 100_000_000, size: 60_000, queue: 4, ..Subscribe::default() };
    [&Header::new(Kind::Subscribe, SUBSCRIBE as u32, 1).encode()[..], &ask.encode()].concat()
}

#[test]
fn a_greeting_is_answered_with_no_more_bytes_than_it_has() {
    for (flags, length, answer) in [
        (0, GREETING, GREETING),
        (0, GREETING_MAX, GREETING),
        (FLAG_FACTS, GREETING, GREETING),
        (FLAG_FACTS, GREETING + 7, GREETING),
        (FLAG_FACTS, GREETING + 8, GREETING + PROOF),
        (FLAG_FACTS, GREETING + PROOF + FACTS.len() - 1, GREETING + PROOF),
        (FLAG_FACTS, GREETING + PROOF + FACTS.len(), GREETING + PROOF + FACTS.len()),
        (FLAG_FACTS, 60_000, GREETING + PROOF + FACTS.len()),
    ] {
        let hello = hello(flags, length, 0);
        let (is_taken, welcome) = There::new(Transport::Datagram).stranger(0, &hello);
        assert_eq!(
            (is_taken, welcome.len(), kind(&welcome)),
            (false, HEADER + answer, Kind::Welcome),
            "{flags} {length}"
        );
        assert!(welcome.len() <= hello.len());
    }
    // On a stream the connection is proof enough, and nothing has to be filled up.
    assert!(There::new(Transport::Stream).greet_on_a_stream(0).ends_with(FACTS));
}

#[test]
fn nothing_that_a_stranger_sends_is_answered_with_more_or_makes_it_a_peer() {
    let mut there = There::new(Transport::Datagram);
    let theirs = there.proof(1);
    let mut random = Random::new(7);
    for kind in 0xA0..=0xAF_u8 {
        for length in [0, 8, 16, 24, 40, 240, 60_000] {
            for proof in [0, u64::MAX, theirs] {
                let mut message = hello(FLAG_FACTS, length, proof);
                (message[0], message[2]) = (kind, 255);
                message.truncate(HEADER + length.min(random.below(2 * length as u64 + 1) as usize));
                let (is_taken, answer) = there.stranger(9, &message);
                assert!(!is_taken && answer.len() <= message.len(), "{kind:X} {length}");
            }
        }
    }
}

#[test]
fn what_is_answered_with_more_takes_the_proof_each_time() {
    let mut there = There::new(Transport::Datagram);
    let (mine, theirs) = (there.proof(0), there.proof(1));
    // In the name of the second peer, with all that the first one knows.
    for guess in [0, 1, u64::MAX, mine, mine.wrapping_add(1), theirs ^ 1] {
        assert!(there.tell(1, &receive(9, 0, guess), 100).is_empty(), "{guess}");
        let report = [&Header::new(Kind::Report, PROOF as u32, 1).encode()[..], &guess.to_le_bytes()].concat();
        assert!(there.tell(1, &report, 100).is_empty(), "{guess}");
    }
    assert_eq!(there.tell(1, &receive(9, 0, theirs), 100).len(), 9);
}

#[test]
fn one_message_asks_for_so_many_operations_at_most() {
    let mut there = There::new(Transport::Datagram);
    let proof = there.proof(0);
    assert!(there.tell(0, &receive(RECEIVE_MAX + 1, 0, proof), 0).is_empty());
    assert_eq!(there.tell(0, &receive(RECEIVE_MAX, 0, proof), 0).len(), usize::from(RECEIVE_MAX));
}

#[test]
fn a_peer_that_has_gone_is_sent_nothing_after_the_lease() {
    let mut there = There::new(Transport::Datagram);
    let proof = there.proof(0);
    there.server.handle(there.now, Input::Blocked(Peer::accepted(0)));
    assert!(there.tell(0, &receive(RECEIVE_MAX, 0, proof), 0).is_empty());
    there.now = there.now + LEASE;
    there.server.handle(there.now, Input::Drained(Peer::accepted(0)));
    let sent = there.server.poll(there.now, &mut Outbox::new());
    assert!(matches!(sent, Output::Idle(_)), "{sent:?}");
}

#[test]
fn a_stranger_who_cannot_receive_gets_no_updates() {
    let mut there = There::new(Transport::Datagram);
    let (mine, theirs) = (there.proof(0), there.proof(1));
    assert_ne!(mine, theirs);
    // In the name of the second peer, with all that the first one knows.
    for guess in [0, 1, u64::MAX, mine, mine.wrapping_add(1), theirs ^ 1] {
        assert!(there.tell(1, &subscribe(guess), 2_000).is_empty(), "{guess}");
    }
    let sent = there.tell(1, &subscribe(theirs), 500);
    assert_eq!(kind(&sent[0]), Kind::Subscribed);
    assert!(sent.len() > 40 && sent[1..].iter().all(|update| kind(update) == Kind::Update && update.len() == 60_000));
    // Nor can it end what is not its own.
    let end = [&Header::new(Kind::Unsubscribe, UNSUBSCRIBE as u32, 1).encode()[..], &encode_unsubscribe(mine)].concat();
    assert!(there.tell(1, &end, 100).iter().all(|message| kind(message) == Kind::Update));
}

#[test]
fn updates_end_with_the_lease() {
    let mut there = There::new(Transport::Datagram);
    let proof = there.proof(0);
    let count = there.tell(0, &subscribe(proof), 10_000).len();
    assert!((101..=102).contains(&count), "one second of them, and SUBSCRIBED: {count}");
}
