use crate::{Accepts, drive};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command as Ask};
use hodo_pva::session::{ANONYMOUS, SessionConfig};
use hodo_pva::wire::connection::{
    AccessRights, ChannelCreated, CreateChannel, Credentials, DestroyChannel, Note, Validation, encode_echo,
};
use hodo_pva::wire::discovery::{Beacon, Search, SearchResponse, decode_origin_tag};
use hodo_pva::wire::operation::{ArrayPlace, ArraySlice, EndRequest, FieldReply, GetField, Operation, Reply};
use hodo_pva::wire::{Command, HEADER, Inbound, Incoming, Message, Side, Status};
use hodo_pva::{Datum, Error, Limits, Order, Reader, Request, Scalar, Server, ServerConfig, TypeCache, Value, Writer};

const LIMITS: Limits = Limits {
    message_bytes: 1 << 16,
    nesting: 20,
    fields: 500,
    cached_fields: 2000,
    value_bytes: 1 << 16,
    recycled_bytes: 1 << 16,
};

/// Splits the first byte off, which chooses the byte order.
fn ordered(input: &[u8]) -> Option<(Order, &[u8])> {
    let (choice, rest) = input.split_first()?;
    Some((Order::BOTH[usize::from(choice & 1)], rest))
}

/// Checks that values behind each other, each with its type, are encoded to bytes that mean the same, in both byte orders.
pub fn value(input: &[u8]) {
    let Some((order, bytes)) = ordered(input) else { return };
    let mut types = TypeCache::new();
    let mut reader = Reader::new(bytes, order, &LIMITS);
    let mut reused: Option<Value> = None;
    while let Ok(Some(found)) = Value::decode_any(&mut reader, &mut types) {
        for order in Order::BOTH {
            let mut writer = Writer::new(Side::Client, order);
            Value::encode_any(Some(&found), &mut writer);
            let again = writer.to_vec();
            let same = Value::decode_any(&mut Reader::new(&again, order, &LIMITS), &mut TypeCache::new());
            assert_eq!(same.expect("it was just made").as_ref(), Some(&found));
        }
        // What follows is read once more as a part of the value before.
        let mut before = reused.unwrap_or_else(|| Value::new(found.plan()));
        if before.decode_changed(&mut reader.clone(), &mut TypeCache::new()).is_ok() {
            let mut writer = Writer::new(Side::Server, order);
            before.encode_changed(&mut writer);
            let again = writer.to_vec();
            let mut same = before.clone();
            same.decode_changed(&mut Reader::new(&again, order, &LIMITS), &mut types).expect("it was just made");
            assert_eq!((&same, same.changed()), (&before, before.changed()));
        }
        reused = Some(found);
    }
}

/// Checks that a stream's messages are the same however it is cut, and decodes each. The first byte chooses the side.
pub fn stream(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else { return };
    let peer = if choice & 1 == 0 { Side::Client } else { Side::Server };
    let whole = messages(peer, bytes, bytes.len().max(1), false);
    for chunk in [1, 7, 1000] {
        for lands in [false, true] {
            assert_eq!(messages(peer, bytes, chunk, lands), whole);
        }
    }
}

fn messages(peer: Side, bytes: &[u8], chunk: usize, lands: bool) -> (Vec<(u8, Vec<u8>)>, Option<Error>) {
    let mut inbound = Inbound::new(peer);
    let mut types = TypeCache::new();
    let mut found = Vec::new();
    let mut note = |incoming: &Incoming<'_>| match incoming {
        Incoming::Control(header) => found.push((header.command, header.encode().to_vec())),
        Incoming::Message(message) => {
            found.push((message.command, message.payload().to_vec()));
            let _ = decoded(peer, message, &mut types);
        }
    };
    for mut rest in bytes.chunks(chunk) {
        if lands && let Some(place) = inbound.landing() {
            let count = place.len().min(rest.len());
            place[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            if let Some(incoming) = inbound.landed(count) {
                note(&incoming);
            }
        }
        loop {
            match inbound.next(&mut rest, &LIMITS) {
                Ok(Some(incoming)) => note(&incoming),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

/// Decodes a message as far as it can be without knowing what was said before.
fn decoded(from: Side, message: &Message<'_>, types: &mut TypeCache) -> Result<(), Error> {
    let mut reader = message.reader(&LIMITS);
    let command = Command::from_code(message.command);
    match (command, from) {
        (Command::Validation, Side::Server) => drop(Validation::decode(&mut reader)?),
        (Command::Validation, Side::Client) => drop(Credentials::decode(&mut reader, types)?),
        (Command::Validated, _) => drop(Status::decode(&mut reader)?),
        (Command::Beacon, _) => drop(Beacon::decode(&mut reader, types)?),
        (Command::Search, _) => {
            let search = Search::decode(&mut reader)?;
            assert!(search.protocols().count() + search.channels().count() <= message.payload().len());
        }
        (Command::SearchResponse, _) => {
            let response = SearchResponse::decode(&mut reader)?;
            assert!(response.channels().count() <= message.payload().len());
        }
        (Command::OriginTag, _) => drop(decode_origin_tag(&mut reader)?),
        (Command::AccessRights, _) => drop(AccessRights::decode(&mut reader)?),
        (Command::CreateChannel, Side::Client) => CreateChannel::decode(&mut reader, |_| {})?,
        (Command::CreateChannel, Side::Server) => drop(ChannelCreated::decode(&mut reader)?),
        (Command::DestroyChannel, _) => drop(DestroyChannel::decode(&mut reader)?),
        (Command::Message, _) => drop(Note::decode(&mut reader)?),
        (Command::DestroyRequest | Command::CancelRequest, _) => drop(EndRequest::decode(&mut reader)?),
        (Command::GetField, Side::Client) => drop(GetField::decode(&mut reader)?),
        (Command::GetField, Side::Server) => {
            FieldReply::decode(&mut reader)?;
            types.decode(&mut reader)?;
        }
        (Command::Array, Side::Client) => {
            Operation::decode(&mut reader)?;
            ArraySlice::decode(&mut reader.clone())?;
            ArrayPlace::decode(&mut reader)?;
        }
        (_, Side::Client) => {
            Operation::decode(&mut reader)?;
            if let Some(request) = Value::decode_any(&mut reader, types)? {
                let _ = Request::from_value(&request).field.mask(request.plan());
            }
        }
        (_, Side::Server) => {
            Reply::decode(command, &mut reader)?;
            types.decode(&mut reader)?;
        }
    }
    Ok(())
}

/// Checks that a request that is read is written and sent so that it is read as the same.
pub fn request(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let Ok(request) = text.parse::<Request>() else { return };
    let shown = request.to_string();
    assert_eq!(shown.parse::<Request>().as_ref(), Ok(&request), "{shown}");
    let _ = Request::from_value(&request.to_value());
}

/// Drives a server of three channels. The first byte chooses the byte order; the rest is a script.
pub fn server(input: &[u8]) {
    let Some((order, script)) = ordered(input) else { return };
    let session = SessionConfig { limits: LIMITS, order, ..SessionConfig::default() };
    let mut server = Server::new(ServerConfig {
        session,
        channels_max: 20,
        operations_max: 20,
        queue_max: 4,
        ..ServerConfig::default()
    });
    for (name, access) in [("a", Access::ReadOnly), ("b", Access::Mailbox), ("c", Access::Handled)] {
        let value = Box::new(Value::of(Normative::scalar(Scalar::F64).alarm().build()));
        let serve = Ask::Serve { name: name.into(), value, access };
        hodo_machine::Machine::handle(&mut server, hodo_machine::Instant::ZERO, hodo_machine::Input::Command(serve));
    }
    drive(server, script, Some(&newcomer()), command);
}

/// Returns a client that validates as nobody, and has an echo returned behind that.
fn newcomer() -> Accepts {
    let mut writer = Writer::new(Side::Client, Order::Little);
    let way = ANONYMOUS.to_string();
    Credentials { buffer_bytes: 0, types: 0, priority: 0, way, claim: None }.encode(&mut writer);
    encode_echo(b"hi", &mut writer);
    // The byte order, the ways of authentication, the acceptance, the echo.
    const GETS: usize = HEADER + (HEADER + 20) + (HEADER + 1) + (HEADER + 2);
    Accepts::new(hodo_machine::Transport::Stream, writer.to_vec(), GETS)
}

/// Returns a command that an application would give.
fn command(bytes: &[u8]) -> Option<Ask> {
    let (kind, rest) = bytes.split_first()?;
    let number = *rest.first()?;
    let name = ["a", "b", "c"][usize::from(number % 3)].to_string();
    let mut value = Box::new(Value::of(Normative::scalar(Scalar::F64).alarm().build()));
    value.set("value", Datum::from(f64::from(number))).ok()?;
    Some(match kind % 4 {
        0 | 1 => Ask::Post { name, value },
        2 => Ask::Answer { call: u64::from(number), result: Ok(Some(value)) },
        _ if number % 2 == 0 => Ask::Remove { name },
        _ => Ask::Serve { name, value, access: Access::Handled },
    })
}
