use super::*;
use crate::data::TypeCache;
use crate::normative::Normative;
use crate::wire::Side;
use crate::{Limits, Order, Reader, Writer};
use alloc::vec;

fn parsed(text: &str) -> Request {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn texts_are_read_in_every_form() {
    for (text, shown) in [
        ("", "field()"),
        ("field()", "field()"),
        ("value", "field(value)"),
        ("value, alarm", "field(value,alarm)"),
        ("field(value)field(alarm.severity)", "field(value,alarm{severity})"),
        ("field(alarm{severity , status},alarm.message)", "field(alarm{severity,status,message})"),
        ("field( a , b{c,d} ) record[queueSize=4,pipeline=true]", "record[queueSize=4,pipeline=true]field(a,b{c,d})"),
        ("record[a=1]record[a=2]", "record[a=2]field()"),
        ("value[deadband=abs:0.1]", "field(value[deadband=abs:0.1])"),
        ("putField(a)getField(b,c)", "putField(a)getField(b,c)"),
        ("record[process=true]field(field,record)", "record[process=true]field(field,record)"),
        ("record[]", "field()"),
    ] {
        let request = parsed(text);
        assert_eq!(request.to_string(), shown, "{text}");
        assert_eq!(parsed(shown), request, "{text}");
    }
}

#[test]
fn what_is_no_request_is_refused_with_its_place() {
    let deep = "a{".repeat(30);
    for (text, at) in [
        ("field(a", 8),
        ("field(a}", 8),
        ("a{b", 4),
        ("record[x]", 9),
        ("record[x=1", 11),
        ("a..b", 3),
        ("field(=)", 7),
        (&*deep, 41),
    ] {
        let found = text.parse::<Request>();
        assert_eq!(found.map_err(|error| error.at), Err(at), "{text}");
    }
}

#[test]
fn what_is_sent_is_what_is_received() {
    let limits = Limits::default();
    for text in ["field()", "record[queueSize=4,pipeline=true]field(a[x=y],b{c{d}})", "putField(a)getField()"] {
        let request = parsed(text);
        for order in Order::BOTH {
            let mut writer = Writer::new(Side::Client, order);
            Value::encode_any(Some(&request.to_value()), &mut writer);
            let bytes = writer.to_vec();
            let found = Value::decode_any(&mut Reader::new(&bytes, order, &limits), &mut TypeCache::new());
            let value = found.expect("it is whole").expect("it is there");
            assert_eq!(Request::from_value(&value), request, "{text}");
        }
    }
}

#[test]
fn options_may_be_numbers_and_bools() {
    let options = [("queueSize", Scalar::U32.into()), ("pipeline", Scalar::Bool.into()), ("x", Scalar::I16.into())];
    let record = Type::structure("", [(OPTIONS, Type::structure("", options))]);
    let mut value = Value::of(Type::structure("", [("record", record)]));
    value.set("record._options.queueSize", 9u32).expect("it fits");
    value.set("record._options.pipeline", true).expect("it fits");
    value.set("record._options.x", -3i16).expect("it fits");
    let request = Request::from_value(&value);
    let found = ["queueSize", "pipeline", "x", "y"].map(|name| request.option(name));
    assert_eq!(found, [Some("9"), Some("true"), Some("-3"), None]);
}

#[test]
fn a_monitor_is_delivered_as_its_options_say() {
    let delivery = |queue, pipeline, acknowledge_every| Delivery { queue, pipeline, acknowledge_every };
    for (options, expected) in [
        ("", delivery(4, false, 2)),
        ("queueSize=10,pipeline=true", delivery(10, true, 5)),
        ("queueSize=8,pipeline=true,ackAny=25%", delivery(8, true, 2)),
        ("queueSize=8,ackAny=7", delivery(8, false, 7)),
        ("queueSize=0,ackAny=0", delivery(1, false, 1)),
        ("queueSize=4000000000,ackAny=100%", delivery(100, false, 100)),
        ("queueSize=many,pipeline=maybe,ackAny=%", delivery(4, false, 2)),
    ] {
        assert_eq!(Delivery::of(&parsed(&alloc::format!("record[{options}]")), 100), expected, "{options}");
    }
}

#[test]
fn a_mask_has_the_leaves_that_are_asked_for() {
    let plan = Plan::new(Normative::scalar(Scalar::F64).alarm().time_stamp().build());
    let names = |text: &str| {
        let mask = parsed(text).field.mask(&plan)?;
        Ok(mask.iter().map(|number| plan.name(number).to_string()).collect::<Vec<_>>())
    };
    assert_eq!(names("field(value)"), Ok(vec!["value".to_string()]));
    assert_eq!(names("alarm{status},value.x"), Ok(vec!["value".to_string(), "status".to_string()]));
    assert_eq!(names("alarm,nothing").map(|names| names.len()), Ok(3));
    assert_eq!(names("").map(|names| names.len()), Ok(7));
    assert_eq!(names("nothing,alarm.none"), Err(NothingSelected));
}
