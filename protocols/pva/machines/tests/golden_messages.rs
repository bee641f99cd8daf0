//! Recorded conversations of the field's own clients and servers: every message is decoded to its last byte, and encodes to the same
//! bytes again.

use crate::golden;

use golden::session::{Heard, Session};
use golden::{hex, lines};
use hodo_pva::data::Item;
use hodo_pva::normative::{Alarm, Normative};
use hodo_pva::wire::discovery::{
    Beacon, ResponseFront, Search, SearchFront, SearchResponse, decode_origin_tag, encode_origin_tag,
};
use hodo_pva::wire::operation::Subcommand;
use hodo_pva::wire::{Command, Control, Inbound, Incoming, Message, Side};
use hodo_pva::{Limits, Order, Scalar, TypeCache, Value, Writer};
use std::collections::BTreeSet;

const PVXS: [&str; 2] = [include_str!("golden/pvxs-little.txt"), include_str!("golden/pvxs-big.txt")];
const OLDER: [&str; 2] = [include_str!("golden/pvaccesscpp-little.txt"), include_str!("golden/pvaccesscpp-big.txt")];

/// Follows the connections of a file in chunks of so many bytes, and returns what was said. `each` is given every message that is
/// not segmented, and what became of it.
fn follow(text: &str, chunk: usize, mut each: impl FnMut(&[u8], &[u8])) -> Vec<Heard> {
    let limits = Limits::default();
    let mut heard = Vec::new();
    let mut session = Session::default();
    let mut sides = [(Side::Client, Inbound::new(Side::Client)), (Side::Server, Inbound::new(Side::Server))];
    for line in lines(text) {
        let Some((sign, digits)) = line.split_once(' ') else {
            heard.append(&mut session.heard);
            session = Session::default();
            sides = [(Side::Client, Inbound::new(Side::Client)), (Side::Server, Inbound::new(Side::Server))];
            continue;
        };
        let (from, inbound) = &mut sides[usize::from(sign == "<")];
        let bytes = hex(digits);
        for mut rest in bytes.chunks(chunk) {
            while let Some(incoming) =
                inbound.next(&mut rest, &limits).unwrap_or_else(|error| panic!("{line}: {error}"))
            {
                let mut writer = Writer::new(*from, Order::Little);
                let left = match incoming {
                    Incoming::Control(header) => {
                        writer.set_order(header.order);
                        writer.control(Control::from_code(header.command), header.size);
                        0
                    }
                    Incoming::Message(message) => {
                        session.follow(*from, &message, &mut writer).unwrap_or_else(|error| panic!("{line}: {error}"))
                    }
                };
                assert_eq!(left, 0, "{line}: bytes are left");
                if golden::session::is_whole(&bytes) {
                    each(&bytes, &writer.to_vec());
                }
            }
        }
    }
    heard.append(&mut session.heard);
    heard
}

#[test]
fn what_pvxs_says_is_understood_and_said_again_byte_for_byte() {
    for text in PVXS {
        for chunk in [usize::MAX, 1, 7, 100] {
            let mut commands = BTreeSet::new();
            follow(text, chunk, |bytes, again| {
                assert_eq!(bytes, again);
                commands.insert(bytes[3]);
            });
            assert_eq!(commands.into_iter().collect::<Vec<_>>(), [1, 2, 7, 8, 9, 10, 11, 13, 15, 17, 18, 20]);
        }
    }
}

/// pvAccessCPP sends types by number, so that what we say instead is longer.
#[test]
fn what_pvaccesscpp_says_is_understood_and_says_the_same_without_numbers_of_types() {
    for text in OLDER {
        for chunk in [usize::MAX, 1, 999] {
            let mut commands = BTreeSet::new();
            let mut numbered = 0;
            follow(text, chunk, |bytes, again| {
                let has_number = bytes.contains(&0xFD) || bytes.contains(&0xFE);
                numbered += usize::from(has_number && bytes != again);
                assert!(has_number || bytes == again, "{bytes:02X?} {again:02X?}");
                commands.insert(bytes[3]);
            });
            assert!(numbered > 10, "types by number: {numbered}");
            for command in [Command::PutGet, Command::Array, Command::Process, Command::DestroyChannel] {
                assert!(commands.contains(&command.code()), "{command:?}");
            }
        }
    }
}

/// Returns the values that were said with a command by a side.
fn said(heard: &[Heard], command: Command, from: Side) -> Vec<&Value> {
    heard.iter().filter(|heard| heard.command == command && heard.from == from).map(|heard| &heard.value).collect()
}

fn number(value: &Value, path: &str) -> Option<f64> {
    value.get(path)?.as_f64()
}

#[test]
fn the_values_of_pvxs_are_those_that_its_program_set() {
    for text in PVXS {
        let heard = follow(text, usize::MAX, |_, _| {});
        let got = said(&heard, Command::Get, Side::Server);
        let [scalar, selected, mixed, image] = got[..] else { panic!("{} gets", got.len()) };
        assert_eq!(number(scalar, "value"), Some(1.5));
        assert_eq!(scalar.alarm(), Some(Alarm { severity: 1, status: 0, message: "minor".into() }));
        assert_eq!(scalar.time_stamp().map(|at| at.seconds), Some(1_000_000_000));
        assert!(scalar.get("display.units").is_some_and(|units| units.as_text().is_some_and(|text| *text == "V")));
        let of = Normative::scalar(Scalar::F64).alarm().time_stamp().display().control().value_alarm().build();
        assert_eq!(*scalar.plan().of(), of);
        assert_eq!(number(selected, "value"), Some(1.5));
        assert!(!selected.has_changed(selected.plan().number("timeStamp").expect("it is there")));
        assert_eq!(number(mixed, "any"), Some(5.0));
        let Some(Item::Union(Some(("words", words)))) = mixed.get("choice") else { panic!("{mixed:?}") };
        let words = words.at(0).and_then(|item| item.as_array().cloned()).expect("an array");
        assert_eq!(words.iter_texts().expect("of texts").collect::<Vec<_>>(), [&b"one"[..], b"two"]);
        let shorts = mixed.get("shorts").and_then(|item| item.as_array().cloned()).expect("an array");
        assert_eq!(shorts.to_slice::<u16>().expect("of u16").as_ref(), [1, 2, 3]);
        assert_eq!(*image.plan().of(), Normative::nd_array().build());
        let Some(Item::Elements(dimension)) = image.get("dimension") else { panic!("{image:?}") };
        let sizes: Vec<_> = dimension.iter().flatten().map(|one| number(one, "size")).collect();
        assert_eq!(sizes, [Some(2.0), Some(3.0)]);
        let put: Vec<_> = said(&heard, Command::Put, Side::Client).iter().map(|value| number(value, "value")).collect();
        assert_eq!(put[..2], [Some(2.5), Some(3.5)]);
        let updates = said(&heard, Command::Monitor, Side::Server);
        assert!(updates.len() >= 8, "{}", updates.len());
        let returned = said(&heard, Command::Rpc, Side::Server);
        assert_eq!(number(returned[0], "query.a"), Some(1.0));
    }
}

#[test]
fn the_values_of_pvaccesscpp_are_those_that_its_program_set() {
    for text in OLDER {
        let heard = follow(text, usize::MAX, |_, _| {});
        let got = said(&heard, Command::Get, Side::Server);
        let [once, again, large] = got[..] else { panic!("{} gets", got.len()) };
        assert_eq!(once, again);
        assert_eq!((number(once, "value"), number(once, "limits.high")), (Some(0.75), Some(-3.0)));
        let bytes = large.get("bytes").and_then(|item| item.as_array().cloned()).expect("an array");
        assert!(bytes.len() == 70_000 && bytes.to_slice::<u8>().is_some_and(|all| all.iter().all(|byte| *byte == 7)));
        assert_eq!(number(large, "limits.high"), Some(-3.0), "what stands behind the segmented array");
        let put_get: Vec<_> = heard.iter().filter(|heard| heard.command == Command::PutGet).collect();
        let subcommands: Vec<_> = put_get.iter().map(|heard| (heard.from, heard.subcommand)).collect();
        let last = Subcommand::GET.with(Subcommand::DESTROY);
        let expected = [
            (Side::Client, Subcommand::NONE),
            (Side::Server, Subcommand::NONE),
            (Side::Server, Subcommand::GET_PUT),
            (Side::Server, last),
        ];
        assert_eq!(subcommands, expected);
        assert_eq!(number(&put_get[1].value, "value"), Some(4.5));
        let arrays = said(&heard, Command::Array, Side::Server);
        let elements = arrays[0].at(0).and_then(|item| item.as_array().cloned()).expect("an array");
        assert_eq!(elements.to_slice::<i32>().expect("of i32").as_ref(), [-5, -5, -5]);
    }
}

#[test]
fn normative_types_are_those_that_p4p_serves() {
    let ours = [
        ("text", Normative::scalar(Scalar::Text).alarm().time_stamp()),
        ("array", Normative::scalar_array(Scalar::F64).alarm().time_stamp()),
        ("enum", Normative::enumeration().alarm().time_stamp()),
        ("table", Normative::table([("n", Scalar::I32), ("name", Scalar::Text)]).descriptor().alarm().time_stamp()),
        ("image", Normative::nd_array()),
        ("channels", Normative::multi_channel()),
    ];
    let text = include_str!("golden/normative.txt");
    let mut count = 0;
    for (line, (name, of)) in lines(text).zip(ours) {
        let bytes = hex(line.strip_prefix(name).expect("the types are in this order").trim());
        let limits = Limits::default();
        let mut reader = hodo_pva::Reader::new(&bytes, Order::Little, &limits);
        let found = TypeCache::new().decode_type(&mut reader).expect("it is whole");
        assert_eq!(found, Some(of.build()), "{name}");
        count += 1;
    }
    assert_eq!(count, 6);
}

/// Returns a datagram's message as it is encoded again.
fn discovered(message: &Message<'_>, from: Side) -> Vec<u8> {
    let limits = Limits::default();
    let mut reader = message.reader(&limits);
    let mut writer = Writer::new(from, message.order);
    match Command::from_code(message.command) {
        Command::Beacon => {
            let beacon = Beacon::decode(&mut reader, &mut TypeCache::new()).expect("it is whole");
            assert_eq!(beacon.protocol, b"tcp");
            beacon.encode(&mut writer);
        }
        Command::Search => {
            let search = Search::decode(&mut reader).expect("it is whole");
            let Search { sequence, flags, address, port, .. } = search;
            assert_eq!(search.protocols().collect::<Vec<_>>(), [b"tcp"]);
            let front = SearchFront { sequence, flags, address, port, protocols: &["tcp"] };
            let channels: Vec<_> = search.channels().collect();
            assert_eq!(channels.len(), 2);
            front.encode(channels.into_iter(), &mut writer);
        }
        Command::SearchResponse => {
            let response = SearchResponse::decode(&mut reader).expect("it is whole");
            let SearchResponse { guid, sequence, address, port, found, .. } = response;
            let channels: Vec<u32> = response.channels().collect();
            assert_eq!((sequence, found, &channels[..]), (0x0102_0304, true, &[7][..]));
            let front = ResponseFront { guid, sequence, address, port, protocol: "tcp", found };
            front.encode(channels.into_iter(), &mut writer);
        }
        Command::OriginTag => encode_origin_tag(decode_origin_tag(&mut reader).expect("it is whole"), &mut writer),
        other => panic!("{other:?}"),
    }
    assert!(reader.rest().is_empty());
    writer.to_vec()
}

#[test]
fn datagrams_are_understood_and_said_again_byte_for_byte() {
    let limits = Limits::default();
    let mut commands = BTreeSet::new();
    for line in lines(include_str!("golden/discovery.txt")) {
        let (name, digits) = line.split_once(' ').expect("a name and digits");
        let from = if matches!(name, "beacon" | "answer") { Side::Server } else { Side::Client };
        let bytes = hex(digits);
        let mut inbound = Inbound::new(from);
        let (mut rest, mut again) = (&bytes[..], Vec::new());
        while let Some(incoming) = inbound.next(&mut rest, &limits).expect("a message") {
            let Incoming::Message(message) = incoming else { panic!("a control message over UDP") };
            commands.insert(message.command);
            again.extend(discovered(&message, from));
        }
        assert_eq!(again, bytes, "{name}");
    }
    assert_eq!(commands.into_iter().collect::<Vec<_>>(), [0, 3, 4, 22]);
}
