//! A far end on loopback, which is looked at step by step.

use super::*;
use crate::SoftDevice;
use crate::exchange::MARK;
use crate::link::options::Kind;
use crate::link::served::CONTROL;
use crate::{AddressOfQueuePair, Gid};
use hodo_roce::{Completed, Remote, Status};
use std::net::{Ipv4Addr, SocketAddr};

const MIB: u32 = 1 << 20;

/// A far end that may retain so many bytes for its clients, of so many channels.
struct There {
    far_end: FarEnd<SoftDevice>,
    at: SocketAddr,
    now: Instant,
}

/// Returns a wish for channels with so many receives each, and operations of this size.
fn wish(channels: u32, receive_depth: u32, size: u32) -> Wish {
    Wish {
        channels,
        size,
        receive_depth,
        kind: Kind::Send,
        mtu: 1024,
        inline: 0,
        entries: 1,
        send_entries: 1,
        receive_entries: 1,
        timeout: 16,
        reads: 1,
        udp_port: 4791,
        memory: Remote { address: 0x1000, key: 1 },
    }
}

fn greeting_of(wish: &Wish) -> Vec<u8> {
    let address = AddressOfQueuePair { lid: 0, number: 7, psn: 1, gid: Gid::of(Ipv4Addr::LOCALHOST.into()) };
    let addresses = vec![address; wish.channels as usize + 1];
    (greeting::line(&wish.request()) + &greeting::addresses(&addresses)).into_bytes()
}

/// Returns the line that a client receives next.
fn line(stream: &mut TcpStream) -> String {
    let (mut line, mut byte) = (String::new(), [0]);
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(char::from(byte[0]));
    }
    line
}

fn is_welcome(stream: &mut TcpStream) -> bool {
    let line = line(stream);
    assert!(line.starts_with(MARK), "{line}");
    line.contains("udp=")
}

impl There {
    fn new(memory: u32, channels_max: usize) -> There {
        let listener = TcpListener::bind("127.0.0.77:0").unwrap();
        let at = listener.local_addr().unwrap();
        let far_end = FarEnd::new(
            listener,
            FarEndSettings {
                place: Place::default(),
                wait: Wait::Never,
                socket_buffer: None,
                path: PathOptions::default(),
                size_max: 1 << 30,
                channels_max,
                memory: memory.into(),
                facts: FarEndFacts::default(),
            },
        );
        let far_end = far_end.unwrap();
        There { now: far_end.clock.now(), far_end, at }
    }

    /// Connects, says this, and lets the far end look until it has replied or asks for more.
    fn say(&mut self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(bytes).unwrap();
        self.look();
        stream
    }

    fn greet(&mut self, wish: &Wish) -> TcpStream {
        self.say(&greeting_of(wish))
    }

    /// Lets the far end look until nobody lacks a queue pair.
    fn look(&mut self) {
        for look in 0..1000 {
            self.now = self.now + LOOK_GREETING;
            self.far_end.look(self.now);
            // The longest greeting takes four looks to read.
            if look > 4 && self.far_end.starting.is_empty() && self.far_end.welcoming.is_empty() {
                return;
            }
        }
        panic!("it is never done");
    }

    fn retained(&self) -> u64 {
        self.far_end.charges.bytes()
    }

    fn clients(&self) -> usize {
        self.far_end.clients.iter().flatten().count()
    }
}

#[test]
fn whoever_asks_for_more_than_is_allowed_gets_none_of_it() {
    let mut there = There::new(64 * MIB, 10_000);
    let large = wish(1, 1, 1 << 30);
    let deep = Wish { receive_depth: 1 << 16, entries: 32, ..wish(64, 1, 8) };
    let inline = Wish { receive_depth: 4000, inline: 1 << 16, ..wish(64, 1, 8) };
    let many = wish(4096, 500, 8);
    for wish in [large, deep, inline, many] {
        let mut stream = there.greet(&wish);
        let said = line(&mut stream);
        assert!(said.contains("bytes_of_memory") && said.contains("67108864_are_allowed"), "{said}");
        assert_eq!((there.retained(), there.clients()), (0, 0));
    }
    let mut stream = there.greet(&wish(4, 500, 65_536));
    assert!(is_welcome(&mut stream));
}

#[test]
fn whoever_has_most_is_ended_for_others_and_told_why() {
    let mut there = There::new(16 * MIB, 10_000);
    let mut greedy = there.greet(&wish(1, 8, 10 * MIB));
    let mut modest = there.greet(&wish(1, 8, 2 * MIB));
    assert!(is_welcome(&mut greedy) && is_welcome(&mut modest));
    let mut next = there.greet(&wish(1, 8, 5 * MIB));
    assert!(is_welcome(&mut next));
    let rest = (0..200).map(|_| line(&mut greedy)).find(|line| line.contains("error="));
    assert!(rest.is_some_and(|line| line.contains("this_connection_has_the_most")));
    assert_eq!(there.clients(), 2);
    let mut last = there.greet(&wish(1, 8, 12 * MIB));
    let said = line(&mut last);
    assert!(said.contains("this_connection_has_the_most"), "{said}");
    assert_eq!(there.clients(), 2, "it has most itself");
    drop((modest, next));
    there.look();
    assert_eq!((there.retained(), there.clients(), there.far_end.pairs, there.far_end.channels), (0, 0, 0, 0));
}

#[test]
fn an_order_waits_for_what_had_arrived_when_it_was_given() {
    let mut there = There::new(16 * MIB, 10_000);
    let mut client = there.greet(&wish(1, 8, 64));
    assert!(is_welcome(&mut client));
    // A device that looks at the control queue pair first finds in the next turn what arrived before the order.
    there.far_end.completions.push(Completion {
        id: CONTROL,
        queue_pair: there.far_end.clients[0].as_ref().unwrap().control.number,
        status: Status::Flushed,
        kind: Completed::Receive,
        length: 0,
        immediate: None,
        invalidated: None,
        is_solicited: false,
    });
    // Obeyed is told by its failure, which ends the client.
    for clients in [1, 0] {
        there.far_end.take_completions();
        assert_eq!(there.clients(), clients);
    }
}

#[test]
fn greetings_that_say_nothing_give_their_places_up() {
    let mut there = There::new(64 * MIB, 10_000);
    let mut silent: Vec<TcpStream> = Vec::new();
    for _ in 0..10 {
        silent.extend((0..30).map(|_| TcpStream::connect(there.at).unwrap()));
        there.look();
    }
    assert_eq!((there.far_end.greetings.len(), silent.len()), (256, 300));
    let mut client = there.greet(&wish(1, 8, 64));
    assert!(is_welcome(&mut client));
    let said = line(&mut silent[0]);
    assert!(said.contains("others_greet"), "{said}");
    assert_eq!(there.far_end.greetings.len(), 255);
    // The others have their time.
    there.now = there.now + Duration::from_secs(5);
    there.look();
    assert!(there.far_end.greetings.is_empty());
    assert_eq!(there.clients(), 1);
}

#[test]
fn a_greeting_that_does_not_end_is_charged() {
    let mut there = There::new(64 * MIB, 10_000);
    let whole = greeting_of(&wish(1000, 1, 64));
    let mut stream = there.say(&whole[..50_000]);
    assert!((50_000..200_000).contains(&there.retained()), "{} bytes", there.retained());
    stream.write_all(&whole[50_000..]).unwrap();
    there.look();
    assert!(is_welcome(&mut stream) && there.far_end.greetings.is_empty());
    assert_eq!(there.retained(), Served::retained(&wish(1000, 1, 64)));
}

#[test]
fn a_short_greeting_does_not_wait_for_long_ones() {
    let mut there = There::new(256 * MIB, 1_000_000);
    let long = greeting_of(&wish(4096, 1, 64));
    let others: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(there.at).unwrap();
            stream.set_nonblocking(true).unwrap();
            assert!(stream.write(&long[..long.len() - 1]).unwrap() > 20_000);
            stream
        })
        .collect();
    there.far_end.look(there.now);
    let mut short = TcpStream::connect(there.at).unwrap();
    short.write_all(&greeting_of(&wish(1, 8, 64))).unwrap();
    (0..4).for_each(|_| there.far_end.look(there.now));
    assert_eq!((there.clients(), there.far_end.greetings.len()), (1, others.len()));
    assert!(is_welcome(&mut short));
}

#[test]
fn a_client_of_many_queue_pairs_holds_up_no_other() {
    let mut there = There::new(1 << 30, 10_000);
    let mut large = TcpStream::connect(there.at).unwrap();
    large.write_all(&greeting_of(&wish(1000, 500, 64))).unwrap();
    there.far_end.look(there.now);
    assert_eq!(there.far_end.starting.len(), 1);
    let mut small = TcpStream::connect(there.at).unwrap();
    small.write_all(&greeting_of(&wish(1, 500, 64))).unwrap();
    there.far_end.look(there.now);
    assert!(is_welcome(&mut small));
    assert_eq!(there.far_end.starting.len(), 1, "the other goes on");
    there.look();
    assert!(is_welcome(&mut large));
}

#[test]
fn clients_that_are_idle_give_their_channels_up() {
    let mut there = There::new(64 * MIB, 4);
    let mut idle = there.greet(&wish(3, 8, 64));
    assert!(is_welcome(&mut idle));
    let mut early = there.greet(&wish(2, 8, 64));
    let said = line(&mut early);
    assert!(said.contains("no_room_for_2_more"), "{said}");
    let mut never = there.greet(&wish(5, 8, 64));
    let said = line(&mut never);
    assert!(said.contains("no_room_for_5_more"), "{said}");
    there.now = there.now + Duration::from_secs(11);
    let mut late = there.greet(&wish(2, 8, 64));
    assert!(is_welcome(&mut late));
    assert_eq!((there.clients(), there.far_end.channels), (1, 2));
}
