//! A server reads, writes and cuts parts of arrays, within bounds; and answers what it does not know.

use crate::rig;

use hodo_pva::client::{ArrayRequest, ClientConfig, Command, Event, Failure, Kind};
use hodo_pva::data::Length;
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command as Ask, Event as Asked};
use hodo_pva::wire::operation::{ArrayPlace, ArraySlice};
use hodo_pva::{Array, Datum, Limits, Scalar, SessionConfig, Type, Value};
use rig::{Rig, Served, server};

const DONE: Event = Event::Done { operation: 1 };

fn wave(elements: impl Into<Datum>, scalar: Scalar) -> Box<Value> {
    let mut value = Value::of(Normative::scalar_array(scalar).alarm().build());
    value.set("value", elements).expect("it fits");
    Box::new(value)
}

/// Serves an array to a client that has set up an operation on parts of it.
fn scene(value: Box<Value>, access: Access, limits: Limits) -> Served {
    let session = SessionConfig { limits, ..SessionConfig::default() };
    let mut rig = Rig::new(ClientConfig::default(), vec![server(session)]);
    rig.ask(1, Ask::Serve { name: "wave".into(), value, access });
    rig.open(0, "wave", 1);
    rig.prepare(1, 0, Kind::Array, "alarm,value");
    assert_eq!(rig.told(), [Event::Connected { channel: 0 }, Event::Ready { operation: 1 }]);
    rig
}

fn ask(rig: &mut Served, request: ArrayRequest) -> Vec<Event> {
    rig.command(Command::Array { operation: 1, request: Box::new(request) });
    rig.told()
}

fn read(rig: &mut Served, offset: u64, count: u64, stride: u64) -> Array {
    assert_eq!(ask(rig, ArrayRequest::Read(ArraySlice { offset, count, stride })), [DONE]);
    rig.client.value(1).and_then(|value| value.at(0)?.as_array().cloned()).expect("an array")
}

fn numbers(array: &Array) -> Vec<i32> {
    array.iter::<i32>().expect("numbers").collect()
}

fn length(rig: &mut Served) -> Option<u64> {
    assert_eq!(ask(rig, ArrayRequest::Length), [DONE]);
    rig.client.length(1)
}

fn is_refused(events: &[Event]) -> bool {
    matches!(events, [Event::Failed { operation: 1, why: Failure::Refused(_) }])
}

#[test]
fn parts_are_read_written_and_cut_and_subscribers_are_told() {
    let array = Array::from((0..10).collect::<Vec<i32>>());
    let mut rig = scene(wave(array, Scalar::I32), Access::Mailbox, Limits::DEFAULT);
    rig.prepare(2, 0, Kind::Monitor, "value");
    rig.execute(2);
    assert!(rig.client.next_update(2).is_some());
    assert_eq!(numbers(&read(&mut rig, 0, 0, 1)), (0..10).collect::<Vec<_>>());
    assert_eq!(numbers(&read(&mut rig, 2, 3, 3)), [2, 5, 8]);
    assert_eq!(numbers(&read(&mut rig, 100, 3, 1)), []);
    assert_eq!(numbers(&read(&mut rig, u64::MAX, u64::MAX, u64::MAX)), []);
    let place = ArrayPlace { offset: 9, stride: 2 };
    assert!(ask(&mut rig, ArrayRequest::Write(place, Array::from(vec![-1, -2]))).contains(&DONE));
    assert_eq!(numbers(&read(&mut rig, 8, 0, 1)), [8, -1, 0, -2]);
    assert_eq!(length(&mut rig), Some(12));
    assert!(ask(&mut rig, ArrayRequest::SetLength(3)).contains(&DONE));
    assert_eq!(numbers(&read(&mut rig, 0, 0, 1)), [0, 1, 2]);
    let mut lengths = Vec::new();
    while let Some(update) = rig.client.next_update(2) {
        lengths.push(update.value.get("value").and_then(|item| item.as_array().map(Array::len)));
    }
    assert_eq!(lengths, [Some(12), Some(3)]);
}

#[test]
fn texts_have_parts_too() {
    let mut rig = scene(wave(Array::texts(["a", "b", "c"]), Scalar::Text), Access::Mailbox, Limits::DEFAULT);
    let place = ArrayPlace { offset: 1, stride: 1 };
    assert_eq!(ask(&mut rig, ArrayRequest::Write(place, Array::texts(["long"]))), [DONE]);
    let array = read(&mut rig, 1, 2, 1);
    assert_eq!(array.iter_texts().expect("texts").collect::<Vec<_>>(), [&b"long"[..], b"c"]);
}

#[test]
fn an_array_grows_no_longer_than_it_may() {
    let limits = Limits { value_bytes: 4000, ..Limits::DEFAULT };
    let mut rig = scene(wave(Array::from(vec![1, 2]), Scalar::I32), Access::Mailbox, limits);
    for length in [1001, 1 << 40, u64::MAX] {
        assert!(is_refused(&ask(&mut rig, ArrayRequest::SetLength(length))), "{length}");
    }
    for (offset, stride) in [(999, 1), (u64::MAX, 1), (0, u64::MAX), (1 << 62, 1 << 62)] {
        let write = ArrayRequest::Write(ArrayPlace { offset, stride }, Array::from(vec![1, 2]));
        assert!(is_refused(&ask(&mut rig, write)), "{offset} {stride}");
    }
    assert_eq!(length(&mut rig), Some(2));
    assert_eq!(ask(&mut rig, ArrayRequest::SetLength(1000)), [DONE]);

    let of = Type::structure("", [("value", Type::Array(Scalar::I32, Length::Bounded(5)))]);
    let mut bounded = Value::of(of);
    bounded.set("value", Array::from(vec![1])).expect("it fits");
    rig.ask(1, Ask::Serve { name: "bounded".into(), value: Box::new(bounded), access: Access::Mailbox });
    rig.open(3, "bounded", 1);
    rig.command(Command::Finish { operation: 1 });
    rig.prepare(1, 3, Kind::Array, "value");
    rig.told();
    assert!(is_refused(&ask(&mut rig, ArrayRequest::SetLength(6))));
    assert_eq!(ask(&mut rig, ArrayRequest::SetLength(5)), [DONE]);
}

#[test]
fn what_is_written_to_a_part_is_the_applications_decision_if_the_channel_is_handled() {
    let mut rig = scene(wave(Array::from(vec![1, 2, 3]), Scalar::I32), Access::Handled, Limits::DEFAULT);
    let place = ArrayPlace { offset: 1, stride: 1 };
    assert!(ask(&mut rig, ArrayRequest::Write(place, Array::from(vec![9]))).is_empty());
    let asked = std::mem::take(&mut rig.far[0].1);
    let Some(Asked::Put { call, value, .. }) = asked.into_iter().find(|asked| matches!(asked, Asked::Put { .. }))
    else {
        panic!("no put")
    };
    let array = value.get("value").and_then(|item| item.as_array().cloned()).expect("an array");
    assert_eq!((numbers(&array), value.changed().len()), (vec![1, 9, 3], 1));
    rig.ask(1, Ask::Answer { call, result: Ok(None) });
    assert_eq!(rig.told(), [DONE]);

    let mut rig = scene(wave(Array::from(vec![1, 2, 3]), Scalar::I32), Access::ReadOnly, Limits::DEFAULT);
    assert!(is_refused(&ask(&mut rig, ArrayRequest::SetLength(0))));
    assert_eq!(numbers(&read(&mut rig, 0, 0, 2)), [1, 3]);
}
