//! A client reads, writes, subscribes to and calls the channels of servers; every execution ends once, and what was lost comes back.

use crate::rig;

use hodo_machine::{Address, Input, Machine, Peer};
use hodo_pva::client::{ArrayRequest, ClientConfig, Command, Event, Failure, Kind, Lost};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command as Ask, Event as Asked};
use hodo_pva::wire::Status;
use hodo_pva::{Array, Datum, Order, Scalar, SessionConfig, Type, Value};
use rig::{Rig, Served, sample, server};
use std::time::Duration;

const DONE: fn(u32) -> Event = |operation| Event::Done { operation };
const READY: fn(u32) -> Event = |operation| Event::Ready { operation };
const CONNECTED: fn(u32) -> Event = |channel| Event::Connected { channel };

fn failed(operation: u32, why: Failure) -> Event {
    Event::Failed { operation, why }
}

#[test]
fn a_channel_is_opened_and_read_whatever_the_byte_order_and_however_the_stream_is_cut() {
    for order in Order::BOTH {
        for chunk in [1, 7, usize::MAX] {
            let session = SessionConfig { order, ..SessionConfig::default() };
            let mut rig = Rig::new(ClientConfig::default(), vec![server(session)]);
            rig.chunk = chunk;
            rig.open(3, "fixed", 1);
            rig.prepare(5, 3, Kind::Get, "field(value)");
            rig.command(Command::Execute { operation: 5 });
            assert_eq!(rig.told(), [CONNECTED(3), READY(5), DONE(5)]);
            assert_eq!(rig.number(5), Some(1.5));
            assert_eq!(rig.client.value(5).map(|value| value.changed().len()), Some(1), "what was asked for");
            assert_eq!(rig.execute(5), [DONE(5)]);
            assert_eq!(rig.client.server(3), Some(&Address::Node(1)));
        }
    }
}

#[test]
fn the_requests_of_one_turn_leave_in_one_write() {
    const CHANNELS: u32 = 1000;
    let mut rig = Served::pair();
    for number in 0..CHANNELS {
        rig.open(number, "box", 1);
        rig.prepare(number, number, Kind::Get, "value");
    }
    assert_eq!(rig.told().len(), 2 * CHANNELS as usize);
    assert_eq!(rig.tries.len(), 1, "one connection for all channels of a server");
    let writes = rig.writes;
    for operation in 0..CHANNELS {
        rig.command(Command::Execute { operation });
    }
    assert_eq!(rig.told(), (0..CHANNELS).map(DONE).collect::<Vec<_>>());
    assert_eq!(rig.writes - writes, 1);
}

#[test]
fn what_is_put_is_there_and_read_back() {
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    rig.prepare(1, 0, Kind::Put, "field(value)");
    rig.prepare(2, 0, Kind::PutGet, "");
    rig.prepare(3, 0, Kind::Process, "");
    assert_eq!(rig.told(), [CONNECTED(0), READY(1), READY(2), READY(3)]);
    assert_eq!(rig.put(1, 2.5), [DONE(1)]);
    rig.command(Command::ReadBack { operation: 1 });
    assert_eq!((rig.told(), rig.number(1)), (vec![DONE(1)], Some(2.5)));
    assert_eq!((rig.put(2, 3.5), rig.number(2)), (vec![DONE(2)], Some(3.5)));
    assert_eq!(rig.put(1, 4.5), [DONE(1)]);
    assert_eq!((rig.execute(2), rig.number(2)), (vec![DONE(2)], Some(4.5)), "what a put-get would get");
    rig.command(Command::ReadBack { operation: 2 });
    assert_eq!((rig.told(), rig.number(2)), (vec![DONE(2)], Some(4.5)));
    assert_eq!(rig.execute(3), [DONE(3)]);
    let other = Value::of(Type::structure("", [("value", Scalar::I32.into())]));
    rig.command(Command::Put { operation: 1, value: Box::new(other) });
    assert!(matches!(&rig.told()[..], [Event::Failed { operation: 1, why: Failure::Unsuitable(_) }]));
    assert_eq!(rig.put(1, 5.5), [DONE(1)], "and it goes on");
}

#[test]
fn a_call_returns_a_value_or_nothing_or_is_refused() {
    let mut rig = Served::pair();
    rig.open(0, "asked", 1);
    rig.prepare(1, 0, Kind::Call, "");
    for result in [Ok(Some(Box::new(sample(9.0)))), Ok(None), Err(Status::error("not today"))] {
        rig.command(Command::Call { operation: 1, argument: Some(Box::new(sample(2.0))) });
        rig.settle();
        let Some(Asked::Call { call, argument, .. }) = rig.far[0].1.pop() else { panic!("no call") };
        assert_eq!(argument.as_deref(), Some(&sample(2.0)));
        rig.told();
        rig.ask(1, Ask::Answer { call, result: result.clone() });
        match result {
            Ok(value) => {
                assert_eq!(rig.told(), [DONE(1)]);
                assert_eq!(rig.client.value(1), value.as_deref());
            }
            Err(status) => assert_eq!(rig.told(), [failed(1, Failure::Refused(status))]),
        }
    }
}

#[test]
fn types_are_described() {
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    rig.command(Command::Describe { operation: 1, channel: 0, field: "alarm".into() });
    rig.command(Command::Describe { operation: 2, channel: 0, field: "absent".into() });
    assert!(matches!(
        &rig.told()[..],
        [
            Event::Connected { .. },
            Event::Done { operation: 1 },
            Event::Failed { operation: 2, why: Failure::Refused(_) }
        ]
    ));
    assert_eq!(rig.client.plan(1).map(|plan| plan.of().id()), Some("alarm_t"));
    rig.cut(1);
    rig.told();
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.told(), [CONNECTED(0)], "nobody has asked again");
    assert_eq!(rig.execute(1), [DONE(1)]);
}

#[test]
fn a_monitor_tells_each_update_in_order() {
    for request in ["", "record[queueSize=3,pipeline=true]"] {
        let mut rig = Served::pair();
        rig.open(0, "box", 1);
        rig.prepare(1, 0, Kind::Monitor, request);
        assert_eq!(rig.told(), [CONNECTED(0), READY(1)]);
        rig.post("box", 2.0);
        assert!(rig.told().is_empty(), "not started");
        assert_eq!(rig.execute(1), [Event::Updates { operation: 1 }]);
        assert_eq!(rig.updates(1), [(1.5, false), (2.0, false)]);
        for number in 3..=30 {
            rig.post("box", number.into());
            assert_eq!(rig.told(), [Event::Updates { operation: 1 }], "{request}: {number}");
            assert_eq!(rig.updates(1), [(number.into(), false)]);
        }
        rig.command(Command::Stop { operation: 1 });
        rig.post("box", 31.0);
        assert!(rig.told().is_empty() && rig.updates(1).is_empty());
        assert_eq!(rig.execute(1), [Event::Updates { operation: 1 }]);
        assert_eq!((rig.updates(1), rig.number(1)), (vec![(31.0, false)], Some(31.0)));
    }
}

#[test]
fn a_value_is_whole_whatever_the_last_update_brought() {
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    rig.prepare(1, 0, Kind::Monitor, "");
    rig.execute(1);
    let mut value = sample(0.0);
    value.unmark();
    value.set("alarm.message", "hot").expect("it fits");
    rig.ask(1, Ask::Post { name: "box".into(), value: Box::new(value) });
    rig.post("box", 2.0);
    let mut expected = [(1.5, ""), (1.5, "hot"), (2.0, "hot")].into_iter();
    while let Some(update) = rig.client.next_update(1) {
        let number = update.value.get("value").and_then(hodo_pva::Item::as_f64).expect("a number");
        let message = update.value.alarm().expect("one").message;
        assert_eq!(Some((number, message.as_str())), expected.next());
    }
    assert_eq!(expected.next(), None);
}

/// Nobody takes the updates for a while. Without a pipeline they are merged; with one the server keeps them, and merges what does not
/// fit into its own queue.
#[test]
fn what_is_not_taken_in_time_is_told_as_overrun() {
    for (request, most) in [("record[queueSize=2]", 2), ("record[queueSize=2,pipeline=true]", 4)] {
        let mut rig = Served::pair();
        rig.open(0, "box", 1);
        rig.prepare(1, 0, Kind::Monitor, request);
        rig.execute(1);
        for number in 2..=9 {
            rig.post("box", number.into());
        }
        let mut taken = Vec::new();
        loop {
            let some = rig.updates(1);
            if some.is_empty() {
                break;
            }
            taken.extend(some);
            rig.settle();
        }
        assert_eq!(taken.len(), most, "{request}: {taken:?}");
        assert_eq!((taken[0], taken[most - 1]), ((1.5, false), (9.0, true)), "{request}");
        assert!(taken.windows(2).all(|pair| pair[0].0 < pair[1].0), "{taken:?}");
    }
}

#[test]
fn refusals_are_told_and_the_channel_is_asked_for_again() {
    let mut rig = Served::pair();
    rig.open(0, "later", 1);
    rig.prepare(1, 0, Kind::Get, "");
    rig.command(Command::Execute { operation: 1 });
    assert!(matches!(&rig.told()[..], [Event::Refused { channel: 0, .. }]));
    rig.ask(1, Ask::Serve { name: "later".into(), value: Box::new(sample(7.0)), access: Access::ReadOnly });
    rig.pass(Duration::from_secs(1));
    assert_eq!((rig.told(), rig.number(1)), (vec![CONNECTED(0), READY(1), DONE(1)], Some(7.0)));
    rig.prepare(2, 0, Kind::Get, "absent");
    rig.command(Command::Execute { operation: 2 });
    assert!(
        matches!(&rig.told()[..], [Event::Failed { operation: 2, why: Failure::Refused(_) }]),
        "one failure for both"
    );
    assert!(matches!(&rig.execute(2)[..], [Event::Failed { operation: 2, .. }]), "it is asked again");
}

#[test]
fn a_channel_that_the_server_closes_is_opened_again() {
    let mut rig = Served::pair();
    rig.open(0, "asked", 1);
    rig.open(1, "box", 1);
    rig.prepare(1, 0, Kind::Put, "");
    rig.prepare(2, 1, Kind::Get, "");
    rig.told();
    assert!(rig.put(1, 2.0).is_empty(), "not answered");
    rig.ask(1, Ask::Remove { name: "asked".into() });
    assert_eq!(rig.told(), [failed(1, Failure::Disconnected), Event::Disconnected { channel: 0, why: Lost::Removed }]);
    assert_eq!(rig.execute(2), [DONE(2)], "the others go on");
    rig.ask(1, Ask::Serve { name: "asked".into(), value: Box::new(sample(0.0)), access: Access::Mailbox });
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.told(), [CONNECTED(0), READY(1)]);
    assert_eq!(rig.put(1, 3.0), [DONE(1)]);
}

#[test]
fn a_cancelled_execution_fails_once_and_its_late_reply_is_no_other_ones() {
    let mut rig = Served::pair();
    rig.open(0, "asked", 1);
    rig.prepare(1, 0, Kind::Put, "");
    rig.told();
    rig.put(1, 2.0);
    let Some(Asked::Put { call: first, .. }) = rig.far[0].1.pop() else { panic!("no put") };
    rig.command(Command::Cancel { operation: 1 });
    let value = rig.client.blank(1).expect("it was set up");
    rig.command(Command::Put { operation: 1, value });
    assert_eq!(rig.told(), [failed(1, Failure::Cancelled), READY(1)]);
    let Some(Asked::Put { call: second, .. }) = rig.far[0].1.pop() else { panic!("no put") };
    rig.ask(1, Ask::Answer { call: first, result: Err(Status::error("too late")) });
    assert!(rig.told().is_empty());
    rig.ask(1, Ask::Answer { call: second, result: Ok(None) });
    assert_eq!(rig.told(), [DONE(1)]);
    rig.command(Command::Cancel { operation: 1 });
    assert!(rig.told().is_empty(), "there is none");
}

#[test]
fn numbers_are_used_again_and_nothing_is_told_of_what_had_them_before() {
    let mut rig = Served::pair();
    for round in 0..2000_u32 {
        rig.open(0, if round % 2 == 0 { "box" } else { "fixed" }, 1);
        rig.prepare(0, 0, Kind::Get, "");
        rig.command(Command::Execute { operation: 0 });
        if round % 3 == 0 {
            assert_eq!(rig.told(), [CONNECTED(0), READY(0), DONE(0)], "{round}");
            rig.command(Command::Execute { operation: 0 });
        }
        if round % 2 == 0 {
            rig.command(Command::Finish { operation: 0 });
        }
        rig.command(Command::Close { channel: 0 });
        assert!(rig.told().is_empty(), "{round}");
    }
    rig.open(0, "box", 1);
    rig.prepare(0, 0, Kind::Get, "");
    assert_eq!(rig.told(), [CONNECTED(0), READY(0)]);
    assert_eq!(rig.tries.len(), 1, "the connection stays");
}

#[test]
fn mistakes_of_the_application_are_told() {
    let mut rig = Rig::new(
        ClientConfig { channels_max: 2, operations_max: 2, ..ClientConfig::default() },
        vec![server(SessionConfig::default())],
    );
    let refused = |rig: &mut Served| matches!(&rig.told()[..], [Event::Refused { .. }]);
    let no_such = |rig: &mut Served| matches!(&rig.told()[..], [Event::Failed { why: Failure::Number(_), .. }]);
    rig.open(2, "box", 1);
    assert!(refused(&mut rig));
    rig.open(0, "box", 1);
    rig.told();
    rig.open(0, "box", 1);
    assert!(refused(&mut rig));
    for (operation, channel) in [(2, 0), (0, 1), (0, 7)] {
        rig.prepare(operation, channel, Kind::Get, "");
        assert!(no_such(&mut rig));
    }
    rig.command(Command::Execute { operation: 9 });
    assert!(no_such(&mut rig));
    rig.prepare(0, 0, Kind::Get, "");
    rig.told();
    rig.prepare(0, 0, Kind::Get, "");
    assert!(no_such(&mut rig));
    rig.command(Command::Call { operation: 0, argument: None });
    assert!(matches!(&rig.told()[..], [Event::Failed { why: Failure::Unsuitable(_), .. }]));
    rig.command(Command::Execute { operation: 0 });
    rig.command(Command::Execute { operation: 0 });
    assert_eq!(rig.told(), [failed(0, Failure::Busy), DONE(0)]);
    for command in [Command::Finish { operation: 1 }, Command::Close { channel: 1 }, Command::Stop { operation: 0 }] {
        rig.command(command);
        assert!(rig.told().is_empty());
    }
}

#[test]
fn an_operation_on_parts_of_a_number_is_refused() {
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    rig.prepare(1, 0, Kind::Array, "value");
    rig.command(Command::Array { operation: 1, request: Box::new(ArrayRequest::Length) });
    assert!(matches!(&rig.told()[..], [Event::Connected { .. }, Event::Failed { why: Failure::Refused(_), .. }]));
}

/// A long array is received into the memory where it stays, and that memory is used again.
#[test]
fn large_arrays_arrive_whole_and_in_the_same_memory() {
    let mut rig = Served::pair();
    rig.chunk = 100_000;
    let mut value = Value::of(Normative::scalar_array(Scalar::F64).build());
    let numbers: Vec<f64> = (0..200_000).map(f64::from).collect();
    value.set("value", Datum::Array(Array::from(numbers.clone()))).expect("it fits");
    rig.ask(1, Ask::Serve { name: "wave".into(), value: Box::new(value), access: Access::Mailbox });
    rig.open(0, "wave", 1);
    rig.prepare(1, 0, Kind::Get, "");
    let mut places = Vec::new();
    for _ in 0..8 {
        rig.execute(1);
        let array = rig.client.value(1).and_then(|value| value.get("value")?.as_array().cloned()).expect("an array");
        assert_eq!(array.to_slice::<f64>().expect("of f64").as_ref(), numbers);
        places.push(array.bytes().as_ptr() as usize);
    }
    places.drain(..2);
    places.sort_unstable();
    // Within its buffer an array moves a little each time.
    let buffers = 1 + places.windows(2).filter(|pair| pair[1] - pair[0] > 4096).count();
    assert!(buffers <= 2, "{places:?}");
}

#[test]
fn a_server_that_reads_nothing_is_not_asked_for_more() {
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    for operation in 0..100 {
        rig.prepare(operation, 0, Kind::Get, "");
    }
    rig.told();
    rig.client.handle(rig.now, Input::Blocked(Peer(1)));
    let sent = rig.sent_bytes;
    for operation in 0..100 {
        rig.command(Command::Execute { operation });
    }
    assert!(rig.told().is_empty());
    assert_eq!(rig.sent_bytes, sent);
    rig.client.handle(rig.now, Input::Drained(Peer(1)));
    assert_eq!(rig.told().len(), 100);
}

#[test]
fn what_was_lost_comes_back_and_monitors_begin_with_a_whole_value() {
    let mut rig = Served::pair();
    rig.open(0, "asked", 1);
    rig.prepare(1, 0, Kind::Put, "");
    rig.prepare(2, 0, Kind::Get, "");
    rig.prepare(3, 0, Kind::Monitor, "record[queueSize=4,pipeline=true]");
    rig.execute(3);
    assert_eq!(rig.updates(3), [(1.5, false)]);
    rig.put(1, 2.0);
    rig.events.clear();
    rig.cut(1);
    let why = Lost::Closed(hodo_machine::Closed::Reset);
    assert_eq!(rig.told(), [failed(1, Failure::Disconnected), Event::Disconnected { channel: 0, why: why.clone() }]);
    assert_eq!(rig.client.trouble(0), Some(&why));
    assert!(rig.execute(2).is_empty(), "it waits");
    rig.pass(Duration::from_millis(100));
    assert_eq!(rig.told(), [CONNECTED(0), READY(1), READY(2), READY(3), DONE(2), Event::Updates { operation: 3 }]);
    assert_eq!((rig.updates(3), rig.client.trouble(0)), (vec![(1.5, false)], None));
    for number in 10..50 {
        rig.post("asked", number.into());
        rig.settle();
        assert_eq!(rig.updates(3), [(number.into(), false)]);
    }
}

#[test]
fn a_server_that_is_down_is_tried_seldom_and_found_within_a_second() {
    let mut rig = Served::pair();
    for channel in 0..1000 {
        rig.open(channel, "box", 1);
    }
    assert_eq!(rig.told().len(), 1000);
    rig.deaf = vec![1];
    rig.cut(1);
    rig.pass(Duration::from_secs(60));
    let tries = rig.tries.len() - 1;
    assert!((60..=90).contains(&tries), "{tries}: one at a time for all channels");
    rig.events.clear();
    rig.deaf.clear();
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.told().len(), 1000);
    rig.cut(1);
    rig.events.clear();
    rig.pass(Duration::from_millis(100));
    assert_eq!(rig.told().len(), 1000, "the first try is quick again");
}

#[test]
fn a_connection_is_kept_alive_and_closed_when_nobody_needs_it() {
    let mut rig = Served::pair();
    rig.open(0, "box", 1);
    rig.pass(Duration::from_secs(300));
    assert_eq!((rig.told(), rig.tries.len()), (vec![CONNECTED(0)], 1), "echoes keep it");
    rig.command(Command::Close { channel: 0 });
    rig.pass(Duration::from_secs(9));
    assert_eq!(rig.open.len(), 1);
    rig.pass(Duration::from_secs(2));
    assert!(rig.open.is_empty());
    rig.open(0, "box", 1);
    assert_eq!((rig.told(), rig.tries.len()), (vec![CONNECTED(0)], 2));
}
