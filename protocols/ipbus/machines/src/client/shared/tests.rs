use crate::client::tests::greeted;
use crate::client::{Client, ClientConfig, Command, Data, Event, PEER, Path};
use crate::wire::status::{self, Status};
use crate::wire::{Order, Version};
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output};

const STATUS: Status = Status {
    buffer_bytes: 2040,
    buffers: 16,
    next_id: 1,
    history: [status::Event(0); 16],
    received: [0; 4],
    sent: [0; 4],
};

/// A client, the time, and what came of both.
struct Bench {
    client: Client,
    now: Instant,
    events: Vec<Event>,
}

impl Bench {
    fn new() -> Self {
        let config = ClientConfig::new(Path::SharedUdp, Version::V2_0, Address::Node(1));
        let client = Client::new(ClientConfig { order: Order::Big, ..config });
        let mut bench = Bench { client, now: Instant::ZERO, events: Vec::new() };
        assert!(bench.sent().is_empty());
        bench.client.handle(bench.now, Input::Opened(PEER, &Ends::nodes(0, 1)));
        assert!(bench.sent().is_empty());
        assert_eq!(bench.events(), [Event::Ready]);
        bench
    }

    fn ask(&mut self, command: Command) {
        self.client.handle(self.now, Input::Command(command));
        self.client.handle(self.now, Input::Command(Command::Flush));
    }

    fn hear(&mut self, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        self.client.handle(self.now, Input::Received(PEER, &bytes));
    }

    fn hear_status(&mut self, status: Status) {
        self.client.handle(self.now, Input::Received(PEER, &status.encode()));
    }

    /// Returns what is sent until the client has nothing to do, as words.
    fn sent(&mut self) -> Vec<Vec<u32>> {
        let (mut sent, mut out) = (Vec::new(), Outbox::new());
        loop {
            match self.client.poll(self.now, &mut out) {
                Output::Send(_) => {
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                    sent.push(bytes.chunks(4).map(|word| Order::Big.u32(word.try_into().unwrap())).collect());
                    out.clear();
                }
                Output::Event(event) => self.events.push(event),
                Output::Open(..) | Output::Close(_) => {}
                Output::Idle(_) => return sent,
            }
        }
    }

    fn events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }

    fn wait(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
        self.client.handle(self.now, Input::Elapsed);
    }
}

const READ: Command = Command::Read { tag: 1, address: 0x10 };
const WRITE: Command = Command::Write { tag: 2, address: 0x20, word: 7 };

fn is_status_request(packet: &[u32]) -> bool {
    packet[0] == 0x2000_00F1
}

#[test]
fn reads_have_no_id_and_are_sent_again_when_they_are_late() {
    let mut bench = Bench::new();
    bench.ask(READ);
    let first = bench.sent();
    assert_eq!(first, [[0x2000_00F0, 0x2000_010F, 0x10]]);
    for _ in 0..3 {
        bench.wait(124);
        assert!(bench.sent().is_empty());
        bench.wait(1);
        assert_eq!(bench.sent(), first);
    }
    bench.hear(&[0x2000_00F0, 0x2000_0100, 0xCAFE]);
    bench.hear(&[0x2000_00F0, 0x2000_0100, 0xCAFE]);
    assert!(bench.sent().is_empty());
    assert_eq!(bench.events(), [Event::Done { tag: 1, data: Data::Word(0xCAFE) }]);
    bench.ask(READ);
    assert_eq!(bench.sent(), [[0x2000_00F0, 0x2001_010F, 0x10]]);
    bench.wait(1000);
    assert!(bench.sent().is_empty());
    assert!(matches!(bench.events()[..], [Event::Failed { tag: 1, .. }]));
}

#[test]
fn a_write_has_an_id_where_nobody_elses_has() {
    let mut bench = Bench::new();
    bench.ask(WRITE);
    for _ in 0..2 {
        let sent = bench.sent();
        assert!(sent.len() == 1 && is_status_request(&sent[0]), "it is asked for again when it is late: {sent:?}");
        bench.wait(125);
    }
    bench.hear_status(STATUS);
    let greeting = bench.sent();
    assert!(!is_status_request(&greeting[0]), "one status decides, and opens");
    let greeting: Vec<u8> = greeting[0].iter().flat_map(|word| word.to_be_bytes()).collect();
    bench.client.handle(bench.now, Input::Received(PEER, &greeted(&greeting)));
    assert_eq!(bench.sent(), [[0x2000_02F0, 0x2000_011F, 0x20, 7]]);
    bench.hear(&[0x2000_02F0, 0x2000_0110]);
    bench.ask(READ);
    assert_eq!(bench.sent(), [[0x2000_03F0, 0x2001_010F, 0x10]], "so is the order kept");
}

#[test]
fn a_write_has_no_id_beside_others_and_is_sent_once() {
    let seen = |header| Status { received: [0, 0x2000_00F0, header, 0x2000_00F0], ..STATUS };
    for status in [Status { next_id: 7, ..STATUS }, seen(0x20FF_FFF0)] {
        let mut bench = Bench::new();
        bench.ask(WRITE);
        assert_eq!(bench.sent().len(), 1);
        bench.hear_status(status);
        assert_eq!(bench.sent(), [[0x2000_00F0, 0x2000_011F, 0x20, 7]]);
        bench.ask(READ);
        assert_eq!(bench.sent(), [[0x2000_00F0, 0x2001_010F, 0x10]]);
        bench.wait(125);
        assert_eq!(bench.sent(), [[0x2000_00F0, 0x2001_010F, 0x10]], "the read only");
        bench.hear(&[0x2000_00F0, 0x2001_0100, 5]);
        bench.wait(875);
        assert!(bench.sent().is_empty());
        assert!(matches!(bench.events()[..], [Event::Failed { tag: 2, .. }, Event::Done { tag: 1, .. }]));
    }
}

#[test]
fn a_read_that_is_sent_again_does_not_find_what_was_written_after_it() {
    let mut bench = Bench::new();
    bench.ask(READ);
    assert_eq!(bench.sent().len(), 1);
    bench.ask(WRITE);
    assert!(bench.sent().is_empty());
    bench.wait(125);
    assert_eq!(bench.sent(), [[0x2000_00F0, 0x2000_010F, 0x10]]);
    bench.hear(&[0x2000_00F0, 0x2000_0100, 3]);
    assert!(is_status_request(&bench.sent()[0]));
    bench.hear_status(Status { next_id: 9, ..STATUS });
    assert_eq!(bench.sent(), [[0x2000_00F0, 0x2001_011F, 0x20, 7]]);
}

#[test]
fn a_device_that_tells_no_status_is_given_up_in_time() {
    let mut bench = Bench::new();
    bench.ask(WRITE);
    for _ in 0..8 {
        assert_eq!(bench.sent().len(), 1);
        bench.wait(125);
    }
    assert!(bench.sent().is_empty());
    let events = bench.events();
    assert!(matches!(events[..], [Event::Failed { tag: 2, .. }, Event::Down(_), Event::Ready]), "{events:?}");
    bench.ask(READ);
    assert_eq!(bench.sent().len(), 1, "and asked again");
}
