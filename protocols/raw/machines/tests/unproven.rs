//! A server over UDP sends no more to an address that is not proven than came from it.

use core::time::Duration;
use hodo_machine::{Bytes, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_raw::wire::updates::{SUBSCRIBE, Subscribe, UNSUBSCRIBE, encode_unsubscribe};
use hodo_raw::wire::{FLAG_FACTS, GREETING, GREETING_MAX, HEADER, Header, Kind, PROOF, encode_greeting};
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

    fn greet(&mut self, peer: u32, flags: u8, length: usize) -> Vec<u8> {
        self.server.handle(self.now, Input::Opened(Peer::accepted(peer), &Ends::nodes(0, peer)));
        let hello = Header { flags, ..Header::new(Kind::Hello, length as u32, 0) };
        let mut message = [&hello.encode()[..], &encode_greeting(1 << 16)].concat();
        message.resize(HEADER + length, 0);
        let mut answers = self.tell(peer, &message, 0);
        assert_eq!((answers.len(), kind(&answers[0])), (1, Kind::Welcome));
        assert!(answers[0].len() <= message.len(), "more than came");
        answers.remove(0)
    }

    /// Returns the proof that the server tells a peer.
    fn proof(&mut self, peer: u32) -> u64 {
        let welcome = self.greet(peer, FLAG_FACTS, GREETING_MAX);
        let (proof, facts) = welcome[HEADER + GREETING..].split_at(PROOF);
        assert_eq!(facts, FACTS);
        u64::from_le_bytes(proof.try_into().expect("eight bytes"))
    }
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
        let welcome = There::new(Transport::Datagram).greet(0, flags, length);
        assert_eq!(welcome.len(), HEADER + answer, "{flags} {length}");
    }
    // On a stream the connection is proof enough, and nothing has to be filled up.
    let welcome = There::new(Transport::Stream).greet(0, FLAG_FACTS, GREETING_MAX - GREETING_MAX / 4 * 3);
    assert!(welcome.ends_with(FACTS));
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

#[test]
fn a_new_session_has_another_proof() {
    let mut there = There::new(Transport::Datagram);
    let old = there.proof(0);
    assert_ne!(there.proof(0), old);
    assert!(there.tell(0, &subscribe(old), 1_000).is_empty());
}

/// SipHash-2-4 of the number 1, with the key of the reference's vectors: nobody guesses it who does not know the key.
#[test]
fn the_proof_is_the_keyed_hash_of_the_session() {
    assert_eq!(There::new(Transport::Datagram).proof(0), 0x2B91_B2B0_85E6_D1F6);
}
