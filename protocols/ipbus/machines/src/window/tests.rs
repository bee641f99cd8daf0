use super::*;
use crate::wire::packet::{Header, following};
use crate::wire::{Order, WORD};
use alloc::collections::BTreeMap;
use alloc::vec;
use hodo_sim::Random;

const MICRO: u64 = 1_000;
/// One way through the network.
const WAY: u64 = 20 * MICRO;

/// A device that keeps the rules of its ids, and remembers what it did.
struct Board {
    next_id: u16,
    buffers: usize,
    replies: VecDeque<(u16, Vec<u8>)>,
    did: Vec<u32>,
    /// Takes no control packets.
    deaf: bool,
}

impl Board {
    fn new(next_id: u16, buffers: usize) -> Self {
        Board { next_id, buffers, replies: VecDeque::new(), did: Vec::new(), deaf: false }
    }

    fn restart(&mut self) {
        self.next_id = 1;
        self.replies.clear();
    }

    /// Returns the device's answer. Its packets hold a number behind the header; a greeting holds none.
    fn answer(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let packet = Packet::decode(bytes).expect("windows send packets");
        match packet.header.kind {
            Kind::Status => {
                let (buffers, next_id) = (self.buffers as u32, self.next_id);
                Some(Status { buffer_bytes: 1500, buffers, next_id, ..Status::default() }.encode().to_vec())
            }
            Kind::Resend => self.replies.iter().find(|(id, _)| *id == packet.header.id).map(|(_, reply)| reply.clone()),
            Kind::Control => {
                if self.deaf || packet.header.id != self.next_id {
                    return None;
                }
                self.next_id = following(self.next_id);
                if packet.body.len() == WORD {
                    self.did.push(number(packet.body));
                }
                self.replies.push_back((packet.header.id, bytes.to_vec()));
                if self.replies.len() > self.buffers {
                    self.replies.pop_front();
                }
                Some(bytes.to_vec())
            }
        }
    }
}

fn number(body: &[u8]) -> u32 {
    u32::from_be_bytes(body.try_into().expect("a number"))
}

/// A window and a board, with a network between them that loses, doubles and delays.
struct World {
    window: Window,
    board: Board,
    random: Random,
    loss: f64,
    duplicate: f64,
    jitter: u64,
    /// How long the board takes for a datagram, how much longer for the next ones, and until when it is busy.
    service: u64,
    hiccups: VecDeque<u64>,
    busy: u64,
    /// Datagrams under way: when each arrives, and whether at the board.
    under_way: BTreeMap<(u64, u64), (bool, Vec<u8>)>,
    sent: u64,
    now: u64,
    /// The outcome of each key: `None` if it was answered.
    ends: Vec<(u64, Option<Cause>)>,
    down: Vec<Cause>,
}

impl World {
    fn new(seed: u64, next_id: u16) -> Self {
        let mut window = Window::new(WindowConfig { patience: Duration::from_secs(2), ..WindowConfig::default() });
        window.open(Instant::ZERO);
        World {
            window,
            board: Board::new(next_id, 4),
            random: Random::new(seed),
            loss: 0.0,
            duplicate: 0.0,
            jitter: 0,
            service: 0,
            hiccups: VecDeque::new(),
            busy: 0,
            under_way: BTreeMap::new(),
            sent: 0,
            now: 0,
            ends: Vec::new(),
            down: Vec::new(),
        }
    }

    fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn send(&mut self, to_board: bool, bytes: &[u8]) {
        let copies = if self.random.chance(self.duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            if !self.random.chance(self.loss) {
                self.sent += 1;
                let from = if to_board { self.now } else { self.busy.max(self.now) };
                let at = from + WAY + self.random.below(self.jitter + 1);
                self.under_way.insert((at, self.sent), (to_board, bytes.to_vec()));
            }
        }
    }

    fn push(&mut self, key: u64) {
        let order = if key.is_multiple_of(2) { Order::Big } else { Order::Little };
        let at = self.at();
        self.window.push(at, key, |packet| {
            order.push(Header { id: 0, kind: Kind::Control }.encode(), packet);
            packet.extend_from_slice(&(key as u32).to_be_bytes());
        });
    }

    /// Carries out what the window wants; answers until when it would wait.
    fn pump(&mut self) -> Option<Instant> {
        loop {
            let at = Instant::from_nanos(self.now);
            match self.window.poll(at) {
                Step::Send(bytes) => {
                    let bytes = bytes.to_vec();
                    self.send(true, &bytes);
                }
                Step::Failed { key, cause } => self.ends.push((key, Some(cause))),
                Step::Down(cause) => self.down.push(cause),
                Step::Idle(deadline) => return deadline,
            }
        }
    }

    /// Lets the next thing happen; answers whether there was one.
    fn step(&mut self) -> bool {
        let deadline = self.pump().map(Instant::as_nanos);
        let arrival = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        let Some(next) = deadline.into_iter().chain(arrival).min() else { return false };
        self.now = next.max(self.now);
        if arrival == Some(next) {
            let (_, (to_board, bytes)) = self.under_way.pop_first().expect("something arrives");
            if to_board {
                self.busy = self.busy.max(self.now) + self.service + self.hiccups.pop_front().unwrap_or(0);
                if let Some(answer) = self.board.answer(&bytes) {
                    self.send(false, &answer);
                }
            } else {
                let (at, ends) = (self.at(), &mut self.ends);
                self.window.received(at, &bytes, |answer| {
                    assert_eq!(number(&answer.packet[WORD..]), answer.key as u32, "another packet's reply");
                    ends.push((answer.key, None));
                    true
                });
            }
        }
        self.pump();
        true
    }

    /// Pushes so many packets, from this key on, as there is room, and runs until each has ended.
    fn run(&mut self, keys: core::ops::Range<u64>) {
        let due = self.ends.len() + (keys.end - keys.start) as usize;
        let mut keys = keys.peekable();
        for _ in 0..1_000_000 {
            while self.window.room() > 0 && keys.peek().is_some() {
                let key = keys.next().expect("it was there");
                self.push(key);
            }
            if self.window.is_down() {
                let at = self.at();
                self.window.open(at);
            }
            assert!(self.window.len() <= 4, "more in flight than the device has buffers");
            if self.ends.len() >= due || !self.step() {
                break;
            }
        }
        assert_eq!(self.ends.len(), due, "not all ended");
    }

    fn answered(&self) -> Vec<u64> {
        self.ends.iter().filter(|(_, cause)| cause.is_none()).map(|(key, _)| *key).collect()
    }
}

#[test]
fn packets_are_numbered_from_the_devices_next_id_on_and_answered() {
    let mut world = World::new(1, 0x1234);
    world.run(0..10);
    assert_eq!(world.answered(), (0..10).collect::<Vec<_>>());
    assert_eq!(world.board.did, (0..10).collect::<Vec<_>>());
    assert_eq!(world.board.next_id, 0x1234 + 11, "ten, and a greeting");
    let counters = world.window.counters();
    assert_eq!((counters.packets, counters.statuses, counters.late, counters.strays), (11, 1, 0, 0));
    assert_eq!(world.window.round_trip().smoothed(), Some(Duration::from_nanos(2 * WAY)));
}

#[test]
fn the_headers_of_a_packet_and_its_reply_are_in_its_byte_order() {
    let mut world = World::new(1, 7);
    world.run(0..1);
    let mut seen = Vec::new();
    for (key, first) in [(2, [0x20, 0, 9, 0xF0]), (3, [0xF0, 10, 0, 0x20])] {
        world.push(key);
        let at = world.at();
        let Step::Send(bytes) = world.window.poll(at) else { panic!("it is to be sent") };
        assert_eq!(bytes[..4], first);
        let reply = bytes.to_vec();
        world.window.received(at, &reply, |answer| {
            seen.push((answer.key, answer.header));
            true
        });
    }
    assert_eq!(seen, [(2, [0x20, 0, 0, 0xF0]), (3, [0xF0, 0, 0, 0x20])], "as they were pushed");
}

/// Loses, doubles and reorders datagrams, with ids that go round: each packet is done once, in order.
#[test]
fn every_packet_is_done_once_and_in_order_whatever_the_network_does() {
    for seed in 0..2_000 {
        let mut world = World::new(seed, if seed % 2 == 0 { 0xFFF0 } else { 1 });
        world.loss = [0.0, 0.01, 0.1, 0.3][seed as usize % 4];
        world.duplicate = [0.0, 0.3][seed as usize / 4 % 2];
        world.jitter = [0, 10, 100][seed as usize / 8 % 3] * MICRO;
        world.run(0..60);
        let mut answered = world.answered();
        answered.sort_unstable();
        assert_eq!(answered, (0..60).collect::<Vec<_>>(), "seed {seed}: {:?}", world.ends);
        assert_eq!(world.board.did, (0..60).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// Restarts the device: nothing is sent into it that it may have done before, and what was in flight fails.
#[test]
fn a_restart_never_makes_a_device_do_a_packet_twice() {
    let mut restarts_seen = 0;
    for seed in 0..2_000 {
        let mut world = World::new(seed, [1, 0xFFF8, 300][seed as usize % 3]);
        world.loss = [0.0, 0.05, 0.3][seed as usize / 3 % 3];
        for part in 0..4 {
            // Restarts while packets are in flight, at any moment.
            let steps = world.random.below(40);
            for key in part * 20..part * 20 + 3 {
                if world.window.room() > 0 {
                    world.push(key);
                }
            }
            for _ in 0..steps {
                world.step();
            }
            world.board.restart();
            world.run(part * 20 + 3..part * 20 + 20);
        }
        while !world.window.is_empty() {
            world.step();
        }
        let mut did = world.board.did.clone();
        let count = did.len();
        assert!(did.is_sorted(), "seed {seed}: out of order: {did:?}");
        did.dedup();
        assert_eq!(did.len(), count, "seed {seed}: something was done twice");
        for (key, cause) in &world.ends {
            assert!(cause.is_some() || did.contains(&(*key as u32)), "seed {seed}: {key} was not done");
            assert!(matches!(cause, None | Some(Cause::Restarted | Cause::ReplyLost)), "seed {seed}: {cause:?}");
        }
        restarts_seen += world.window.counters().restarts;
    }
    assert!(restarts_seen > 1_000, "{restarts_seen}");
}

#[test]
fn a_lost_reply_is_asked_for_as_soon_as_a_later_one_arrives() {
    let mut world = World::new(1, 9);
    world.run(0..1);
    for key in 1..4 {
        world.push(key);
    }
    world.pump();
    // The reply of the first is lost.
    let mut replies = Vec::new();
    while let Some((_, (true, bytes))) = world.under_way.pop_first() {
        replies.push(world.board.answer(&bytes).expect("it is in turn"));
    }
    let at = world.at();
    assert_eq!(world.window.received(at, &replies[1], |_| true), Heard::Reply);
    assert_eq!(world.window.poll(at), Step::Send(&packet::resend(11)));
    assert!(matches!(world.window.poll(at), Step::Idle(Some(_))));
    assert_eq!(world.window.received(at, &replies[1], |_| unreachable!("taken twice")), Heard::Stray);
}

#[test]
fn a_reply_with_the_number_of_another_packet_is_not_taken() {
    let mut world = World::new(1, 9);
    world.run(0..1);
    let at = world.at();
    // Reads of one word, which are told apart by the numbers of their transactions.
    let read = |number: u32| [0x2000_010F | number << 16, 0x10];
    for key in 1..3 {
        world.window.push(at, key, |packet| {
            Order::Little.push(Header { id: 0, kind: Kind::Control }.encode(), packet);
            Order::Little.append(&read(key as u32), packet);
        });
    }
    let mut sent = Vec::new();
    while let Step::Send(bytes) = world.window.poll(at) {
        sent.push(Packet::decode(bytes).expect("a packet").header.id);
    }
    let reply = |id: u16, number: u32| {
        let mut bytes = Vec::new();
        Order::Little.append(&[Header { id, kind: Kind::Control }.encode(), 0x2000_0100 | number << 16, 7], &mut bytes);
        bytes
    };
    let heard = world.window.received(at, &reply(sent[1], 1), |_| unreachable!("it answers the other"));
    assert_eq!(heard, Heard::NotTaken);
    assert!(matches!(world.window.poll(at), Step::Send(_)), "it is asked for again");
    for (id, key) in sent.into_iter().zip(1..) {
        assert_eq!(world.window.received(at, &reply(id, key as u32), |answer| answer.key == key), Heard::Reply);
    }
}

#[test]
fn a_device_that_is_gone_is_given_up_and_can_be_tried_again() {
    let mut world = World::new(1, 9);
    world.run(0..1);
    world.loss = 1.0;
    world.push(1);
    world.push(2);
    while world.step() {}
    assert_eq!(world.ends[1..], [(1, Some(Cause::Silent)), (2, Some(Cause::Silent))]);
    assert_eq!(world.down, [Cause::Silent]);
    assert!(world.window.is_down() && world.window.room() == 0);
    assert!((2_000..2_300).contains(&(world.now / 1_000_000)), "at {} ns", world.now);
    world.loss = 0.0;
    world.run(3..6);
    assert_eq!(world.board.did, [0, 3, 4, 5]);
}

#[test]
fn a_device_that_takes_no_packets_is_told_from_one_that_is_gone() {
    let mut world = World::new(1, 9);
    world.run(0..1);
    world.push(1);
    world.board.deaf = true;
    while world.step() {}
    assert_eq!((&world.ends[1..], &world.down[..]), (&[(1, Some(Cause::Ignored))][..], &[Cause::Ignored][..]));
}

#[test]
fn another_client_with_ids_of_its_own_is_told_from_a_restart() {
    let mut world = World::new(1, 9);
    world.run(0..1);
    world.board.next_id = 40;
    world.run(1..3);
    assert_eq!(world.ends[1..], [(1, Some(Cause::Contended)), (2, Some(Cause::Contended))]);
    world.run(3..5);
    assert_eq!(world.board.did, [0, 3, 4]);
}

#[test]
fn a_lone_packet_on_a_calm_link_gets_a_far_timer() {
    let calm = Duration::from_millis(50);
    let mut world = World::new(1, 9);
    world.window.config.calm = calm;
    world.run(0..1);
    world.push(1);
    assert_eq!(world.pump(), Some(world.at() + calm));
    world.push(2);
    assert_eq!(world.pump(), Some(world.at() + Duration::from_micros(200)));
}

#[test]
fn a_reply_that_is_not_taken_is_asked_for_again() {
    let mut world = World::new(1, 9);
    world.run(0..1);
    world.push(1);
    world.pump();
    let (_, (_, bytes)) = world.under_way.pop_first().expect("it is under way");
    let reply = world.board.answer(&bytes).expect("it is in turn");
    let at = world.at();
    assert_eq!(world.window.received(at, &reply, |_| false), Heard::NotTaken);
    // Which packet it answers, nobody knows: the status says what the device has done.
    assert_eq!(world.window.poll(at), Step::Send(&status::REQUEST));
    let status = world.board.answer(&status::REQUEST).expect("the status");
    let at = at + Duration::from_nanos(2 * WAY);
    assert_eq!(world.window.received(at, &status, |_| true), Heard::Status);
    assert_eq!(world.window.poll(at), Step::Send(&packet::resend(11)));
    assert_eq!(world.window.received(at, &reply, |_| true), Heard::Reply);
    assert!(world.window.is_empty());
}

#[test]
fn a_reply_with_the_number_of_a_lost_packet_does_not_show_that_one_as_done() {
    let mut world = World::new(1, 9);
    world.run(0..1);
    world.push(1);
    world.push(2);
    world.pump();
    let (_, (_, first)) = world.under_way.pop_first().expect("it is under way");
    let (_, (_, lost)) = world.under_way.pop_first().expect("it is under way too");
    let mut reply = world.board.answer(&first).expect("it is in turn");
    let number = lost[..HEADER].to_vec();
    reply[..HEADER].copy_from_slice(&number);
    let at = world.at();
    assert_eq!(world.window.received(at, &reply, |_| false), Heard::NotTaken);
    let due = Instant::from_nanos(world.now + 1_000_000_000);
    while !world.window.is_empty() && world.at() < due {
        world.step();
    }
    assert_eq!(world.answered(), [0, 1, 2]);
}

#[test]
fn any_bytes_never_panic() {
    let mut random = Random::new(5);
    for seed in 0..200 {
        let mut world = World::new(seed, 0xFFFE);
        world.run(0..2);
        for key in 2..200 {
            if world.window.room() > 0 {
                world.push(key);
            }
            world.pump();
            let mut bytes =
                if random.chance(0.5) { status::REQUEST.to_vec() } else { vec![0x20, 0, 2, 0xF0, 0, 0, 0, 2] };
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.bits() as u8;
            }
            world.now += random.below(1_000_000);
            let at = world.at();
            world.window.received(at, &bytes, |_| random.chance(0.9));
            world.pump();
            if world.window.is_down() {
                world.window.open(at);
            }
        }
    }
}

/// Has a board take longer for one packet than any did before, and the next question come before it has caught up. What
/// was asked then is judged by the answer to it, and shows no loss.
#[test]
fn one_late_answer_makes_a_few_status_requests_and_doubles_no_packet() {
    for hiccups in (100..1_000).step_by(100).flat_map(|first| [0, 300, 900].map(|second| [first, second])) {
        for (service, in_flight) in [0, 30, 70, 100].into_iter().flat_map(|service| [(service, 1), (service, 4)]) {
            let mut world = World::new(1, 0x1234);
            world.window.config.in_flight = in_flight;
            world.service = service * MICRO;
            world.run(0..1_000);
            let before = world.window.counters();
            world.hiccups = hiccups.iter().map(|micros| micros * MICRO).collect();
            world.run(1_000..10_000);
            let after = world.window.counters();
            let case = alloc::format!("{hiccups:?} us, {service} us a packet, {in_flight} in flight");
            assert_eq!((after.requests_lost, after.replies_lost), (0, 0), "{case}");
            assert!(after.statuses - before.statuses < 20, "{case}: {}", after.statuses - before.statuses);
        }
    }
}

/// Loses packets, replies, and with as good a chance status requests and statuses. A status that is lost hides no other
/// loss, so that hardly any loss waits until it is late; and where losses are rare, hardly any status is asked for.
#[test]
fn a_lost_status_delays_the_recovery_of_nothing_that_is_sent_after_it() {
    const PACKETS: u64 = 20_000;
    for (service, in_flight) in [0, 10, 70].into_iter().flat_map(|service| [(service, 1), (service, 4)]) {
        // In percent: how many of the losses may be late, and for how many of the packets a status may be asked for.
        for (loss, late_max, statuses_max) in [(0.3, 350, 400), (0.1, 150, 150), (0.01, 20, 110), (0.001, 90, 50)] {
            let mut world = World::new(1, 0x1234);
            world.window.config.in_flight = in_flight;
            (world.service, world.loss) = (service * MICRO, loss);
            world.run(0..PACKETS);
            let counters = world.window.counters();
            let lost = counters.requests_lost + counters.replies_lost;
            let case = alloc::format!("{service} us a packet, {in_flight} in flight, {loss} lost: {counters:?}");
            assert!(lost > 0 && counters.late * 100 <= lost * late_max, "{case}");
            assert!(counters.statuses * 100 <= PACKETS * statuses_max, "{case}");
        }
    }
}

/// Has a device do a packet, and restart; others then bring its numbers back to where they were. The status that shows the
/// packet's number as the next one may answer any of the requests since the packet was sent.
#[test]
fn a_late_status_never_shows_a_packet_as_not_done_that_was_done_before_a_restart() {
    const OTHERS: u32 = 0x0123_0040;
    let mut world = World::new(1, 9);
    world.run(0..1);
    world.window.trouble();
    world.push(2);
    world.pump();
    let sent: Vec<_> = core::mem::take(&mut world.under_way).into_values().map(|(_, bytes)| bytes).collect();
    assert_eq!((sent.len(), &sent[1][..]), (2, &status::REQUEST[..]), "the status is asked for right behind it");
    assert!(world.board.answer(&sent[0]).is_some());
    world.loss = 1.0;
    while world.at() < Instant::ZERO + 5 * RESTART {
        world.step();
    }
    world.board.restart();
    let mut reply = Vec::new();
    Order::Big.append(&[Header { id: 10, kind: Kind::Control }.encode(), OTHERS], &mut reply);
    (world.board.next_id, world.loss) = (11, 0.0);
    world.board.replies.push_back((10, reply));
    while !world.window.is_empty() {
        world.step();
    }
    assert_eq!((&world.board.did[..], world.ends.last()), (&[0, 2][..], Some(&(2, Some(Cause::Restarted)))));
}
