use super::*;
use crate::window::WindowConfig;
use crate::wire::legacy::Info;
use alloc::vec;

const MILLI: Duration = Duration::from_millis(1);

fn config() -> WindowConfig {
    WindowConfig { patience: 80 * MILLI, ..WindowConfig::default() }
}

fn request(operation: Operation<&[u32]>, order: Order) -> Vec<u8> {
    let mut packet = Vec::new();
    legacy::begin(5, order, &mut packet);
    Request::new(6, operation).expect("1.3 has it").encode(order, &mut packet);
    legacy::end(&mut packet, 0, order);
    packet
}

fn read() -> Vec<u8> {
    request(Operation::Read { mode: Mode::Incrementing, address: 1, words: 1 }, Order::Little)
}

fn write() -> Vec<u8> {
    request(Operation::Write { mode: Mode::Incrementing, address: 1, data: &[2] }, Order::Big)
}

/// Returns a device's reply to the first word of a datagram.
fn reply_to(datagram: &[u8]) -> Vec<u8> {
    let order = Packet::decode(datagram).expect("a packet").order;
    let first = Header::decode(order.u32(*datagram.first_chunk().expect("a word"))).expect("a header");
    let mut reply = order.bytes_32(first.answered(0, Info::Done).encode()).to_vec();
    reply.extend_from_slice(&[7; 8]);
    reply
}

fn sent(single: &mut Single, now: Instant) -> Vec<u8> {
    match single.poll(now) {
        Step::Send(datagram) => datagram.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn open(now: Instant) -> Single {
    let mut single = Single::new(config());
    single.open(now);
    assert_eq!(single.room(), 0);
    let probe = sent(&mut single, now);
    assert_eq!(probe.len(), legacy::REQUEST_MIN);
    assert_eq!(single.received(now, &reply_to(&probe), |_| panic!("it is nobody's")), Heard::Status);
    assert_eq!(single.room(), 1);
    single
}

#[test]
fn a_packet_has_an_id_of_its_own_and_its_reply_the_clients() {
    let mut single = open(Instant::ZERO);
    let write: Operation<&[u32]> = Operation::Write { mode: Mode::Incrementing, address: 1, data: &[2] };
    for operation in [Operation::Read { mode: Mode::Incrementing, address: 1, words: 1 }, write] {
        let (order, packet) = (Order::NATIVE, request(operation, Order::NATIVE));
        single.push(Instant::ZERO, 9, |buffer| buffer.extend_from_slice(&packet));
        assert_eq!(single.room(), 0);
        let datagram = sent(&mut single, Instant::ZERO);
        assert_ne!(datagram[..4], packet[..4]);
        assert_eq!(datagram[4..], packet[4..]);
        let due = Header::request(5, Kind::ByteOrder, 0).answered(0, Info::Done).encode();
        let take = |answer: Answer<'_>| {
            assert_eq!((answer.key, answer.header, &answer.packet[4..]), (9, order.bytes_32(due), &[7; 8][..]));
            true
        };
        let reply = reply_to(&datagram);
        assert_eq!(single.received(Instant::ZERO, &reply, take), Heard::Reply);
        assert_eq!(single.received(Instant::ZERO, &reply, |_| panic!("it was taken")), Heard::Stray);
    }
}

#[test]
fn a_read_is_sent_again_and_given_up_at_last() {
    let mut single = open(Instant::ZERO);
    single.push(Instant::ZERO, 3, |buffer| *buffer = read());
    let first = sent(&mut single, Instant::ZERO);
    let mut sendings = 1;
    loop {
        match single.poll(Instant::MAX) {
            Step::Idle(_) | Step::Down(_) => panic!("it was not told"),
            Step::Failed { key, cause } => {
                assert_eq!((key, cause), (3, Cause::Ignored));
                break;
            }
            Step::Send(datagram) => assert_eq!(datagram, first),
        }
        sendings += 1;
    }
    assert_eq!(sendings, TRIES_MIN);
    assert_ne!(sent(&mut single, Instant::MAX), first, "is the device there?");
}

#[test]
fn anything_else_is_sent_once() {
    let harmless = |operation| {
        let packet = request(operation, Order::Big);
        Packet::decode(&packet).expect("a packet").requests().all(is_harmless)
    };
    assert!(harmless(Operation::Read { mode: Mode::Incrementing, address: 1, words: 3 }));
    assert!(!harmless(Operation::Read { mode: Mode::Fifo, address: 1, words: 3 }));
    assert!(!harmless(Operation::Write { mode: Mode::Incrementing, address: 1, data: &[1] }));
    assert!(!harmless(Operation::RmwBits { address: 1, and: 1, or: 1 }));
    assert!(!harmless(Operation::RmwSum { address: 1, addend: 1 }));
    let mut single = open(Instant::ZERO);
    single.push(Instant::ZERO, 3, |buffer| *buffer = write());
    sent(&mut single, Instant::ZERO);
    let late = Instant::ZERO + 80 * MILLI;
    assert_eq!(single.poll(Instant::ZERO), Step::Idle(Some(late)));
    assert_eq!(single.poll(late), Step::Failed { key: 3, cause: Cause::Ignored });
}

#[test]
fn a_device_that_is_not_there_is_given_up() {
    let mut single = Single::new(config());
    single.open(Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut sendings = 0;
    loop {
        match single.poll(now) {
            Step::Send(_) => sendings += 1,
            Step::Idle(at) => now = at.expect("the answer is waited for"),
            Step::Down(cause) => break assert_eq!(cause, Cause::Silent),
            Step::Failed { .. } => panic!("nothing was pushed"),
        }
    }
    assert!(sendings > 3 && now <= Instant::ZERO + 100 * MILLI, "{sendings} by {now:?}");
    assert!(single.is_down() && single.poll(now) == Step::Idle(None));
}

#[test]
fn any_datagram_never_panics_and_answers_nothing_but_what_was_asked() {
    let mut random = hodo_sim::Random::new(1);
    let mut single = open(Instant::ZERO);
    for key in 0..20_000 {
        single.push(Instant::ZERO, key, |buffer| *buffer = read());
        let mut reply = reply_to(&sent(&mut single, Instant::ZERO));
        let whole = reply.clone();
        for _ in 0..random.below(3) {
            let at = random.below(reply.len() as u64) as usize;
            reply[at] ^= random.bits() as u8;
        }
        reply.truncate(random.below(reply.len() as u64 + 1) as usize);
        if single.received(Instant::ZERO, &reply, |answer| answer.key == key) != Heard::Reply {
            assert_eq!(single.received(Instant::ZERO, &whole, |answer| answer.key == key), Heard::Reply);
        }
        assert!(single.is_empty());
    }
    assert_eq!(vec![single.counters().packets], [20_000]);
}

/// Returns the answer of a device that knows one order: to another, four bytes of error.
fn device_of(order: Order, datagram: &[u8]) -> Vec<u8> {
    if Packet::decode(datagram).is_ok_and(|packet| packet.order == order) {
        reply_to(datagram)
    } else {
        order.bytes_32(Header::request(0, Kind::Read, 0).answered(0, Info::Other).encode()).to_vec()
    }
}

#[test]
fn a_device_is_asked_in_this_processors_order_and_then_in_the_other() {
    for order in Order::BOTH {
        let mut single = Single::new(config());
        single.open(Instant::ZERO);
        let probe = sent(&mut single, Instant::ZERO);
        assert_eq!(Packet::decode(&probe).map(|packet| packet.order), Ok(Order::NATIVE));
        single.received(Instant::ZERO, &device_of(order, &probe), |_| panic!("it is nobody's"));
        if order != Order::NATIVE {
            assert_eq!(single.room(), 0);
            let again = sent(&mut single, Instant::ZERO);
            assert_eq!(
                single.received(Instant::ZERO, &device_of(order, &again), |_| panic!("nobody's")),
                Heard::Status
            );
        }
        assert_eq!(single.room(), 1, "{order:?}");
    }
}

#[test]
fn a_device_that_is_silent_in_one_order_is_asked_in_both_in_turns() {
    let mut single = Single::new(config());
    single.open(Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut orders = Vec::new();
    while orders.len() < 4 {
        match single.poll(now) {
            Step::Send(datagram) => orders.push(Packet::decode(datagram).expect("a packet").order),
            Step::Idle(at) => now = at.expect("the answer is waited for"),
            other => panic!("{other:?}"),
        }
    }
    let other = if Order::NATIVE == Order::Big { Order::Little } else { Order::Big };
    assert_eq!(orders, [Order::NATIVE, other, Order::NATIVE, other]);
}

#[test]
fn nonsense_is_answered_by_one_more_question_and_not_by_two() {
    let mut single = Single::new(config());
    single.open(Instant::ZERO);
    let mut sendings = 0;
    while let Step::Send(_) = single.poll(Instant::ZERO) {
        sendings += 1;
        single.received(Instant::ZERO, &[0; 4], |_| panic!("it is nobody's"));
    }
    assert_eq!(sendings, 2);
}

#[test]
fn a_client_of_the_other_order_is_translated_there_and_back() {
    for (order, packet) in [(Order::Big, read()), (Order::Little, write())] {
        let asked = Packet::decode(&packet).expect("a packet").order;
        assert_ne!(asked, order);
        let mut single = Single::new(config());
        single.open(Instant::ZERO);
        while single.room() == 0 {
            let probe = sent(&mut single, Instant::ZERO);
            single.received(Instant::ZERO, &device_of(order, &probe), |_| panic!("it is nobody's"));
        }
        single.push(Instant::ZERO, 9, |buffer| buffer.extend_from_slice(&packet));
        let mut datagram = sent(&mut single, Instant::ZERO);
        let mut reply = device_of(order, &datagram);
        reply.truncate(WORD);
        reply.extend_from_slice(&order.bytes_32(0x0102_0304));
        swap(&mut datagram);
        assert_eq!(datagram[WORD..], packet[WORD..]);
        let taken = single.received(Instant::ZERO, &reply, |answer| {
            assert_eq!(answer.packet[WORD..], asked.bytes_32(0x0102_0304));
            true
        });
        assert_eq!(taken, Heard::Reply);
    }
}
