//! In steady state nothing is allocated for a get, a put or an update of numbers, texts and unions.

use crate::counting;

use counting::allocations_here;
use hodo_machine::Outbox;
use hodo_pva::normative::{Alarm, Normative, TimeStamp};
use hodo_pva::wire::operation::{Operation, Reply, Subcommand};
use hodo_pva::wire::{Command, Inbound, Incoming, Side, Status};
use hodo_pva::{BitSet, Limits, Order, Scalar, Type, TypeCache, Value, Writer};

/// One round: the client asks, the server answers with what has changed, the client reads it.
struct Round {
    requests: Writer,
    replies: Writer,
    at_server: Inbound,
    at_client: Inbound,
    served: Value,
    read: Value,
    types: TypeCache,
    out: Outbox,
    bytes: Vec<u8>,
}

impl Round {
    fn new(order: Order) -> Self {
        let of = Normative::scalar(Scalar::F64).alarm().time_stamp().display().control();
        let either = Type::union("", [("number", Scalar::F64.into()), ("text", Scalar::Text.into())]);
        let served = Value::of(of.field("either", either).build());
        Round {
            requests: Writer::new(Side::Client, order),
            replies: Writer::new(Side::Server, order),
            at_server: Inbound::new(Side::Client),
            at_client: Inbound::new(Side::Server),
            read: Value::new(served.plan()),
            served,
            types: TypeCache::new(),
            out: Outbox::new(),
            bytes: Vec::new(),
        }
    }

    /// Moves what a writer holds into `bytes`, as a driver would send it.
    fn carry(writer: &mut Writer, out: &mut Outbox, bytes: &mut Vec<u8>) {
        writer.flush(out);
        bytes.clear();
        for piece in out.pieces() {
            bytes.extend_from_slice(out.bytes(piece));
        }
        out.clear();
    }

    fn run(&mut self, number: f64) {
        let limits = Limits::DEFAULT;
        Operation { sid: 1, ioid: 2, subcommand: Subcommand::NONE }.encode(Command::Get, &mut self.requests);
        Self::carry(&mut self.requests, &mut self.out, &mut self.bytes);
        let mut rest = &self.bytes[..];
        while let Ok(Some(Incoming::Message(message))) = self.at_server.next(&mut rest, &limits) {
            let front = Operation::decode(&mut message.reader(&limits)).expect("it is one");
            self.served.set("value", number).expect("it fits");
            let reply = Reply { ioid: front.ioid, subcommand: front.subcommand, status: Status::OK };
            reply.begin(Command::Get, &mut self.replies);
            self.served.encode_changed(&mut self.replies);
            self.replies.end();
        }
        Self::carry(&mut self.replies, &mut self.out, &mut self.bytes);
        let mut rest = &self.bytes[..];
        while let Ok(Some(Incoming::Message(message))) = self.at_client.next(&mut rest, &limits) {
            let mut reader = message.reader(&limits);
            Reply::decode(Command::Get, &mut reader).expect("it is one");
            self.read.decode_changed(&mut reader, &mut self.types).expect("it is whole");
        }
        assert_eq!(self.read.get("value").and_then(hodo_pva::Item::as_f64), Some(number));
    }
}

#[test]
fn a_get_in_steady_state_allocates_nothing() {
    for order in Order::BOTH {
        let mut round = Round::new(order);
        round.served.set_alarm(&Alarm { severity: 1, status: 2, message: "a text".into() }).expect("it has one");
        round.served.set_time_stamp(TimeStamp { seconds: 9, ..TimeStamp::default() }).expect("it has one");
        round
            .served
            .set("either", hodo_pva::Datum::Member("text".into(), Box::new("chosen".into())))
            .expect("it has it");
        for number in 0..10 {
            round.run(f64::from(number));
        }
        let before = allocations_here();
        for number in 0..1000 {
            round.run(f64::from(number));
        }
        assert_eq!(allocations_here() - before, 0, "{order:?}");
        assert_eq!(round.read, round.served);
    }
}

#[test]
fn updates_that_are_merged_allocate_nothing_and_tell_what_they_overwrote() {
    let round = Round::new(Order::NATIVE);
    let (all, value) = (BitSet::from_iter([0]), BitSet::from_iter([1]));
    let (mut queued, mut overrun) = (round.served.clone(), BitSet::new());
    let mut merge = |set: &BitSet| {
        overrun.clear();
        queued.unmark();
        queued.merge(&round.served, set, &mut overrun);
        assert!(overrun.is_empty());
        queued.merge(&round.served, &value, &mut overrun);
        assert_eq!(overrun, value);
    };
    merge(&all);
    let before = allocations_here();
    for _ in 0..100 {
        merge(&all);
    }
    assert_eq!(allocations_here() - before, 0);
}
