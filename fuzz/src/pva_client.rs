use crate::drive;
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva::client::{ArrayRequest, Client, ClientConfig, Command, Event, Kind};
use hodo_pva::normative::Normative;
use hodo_pva::session::SessionConfig;
use hodo_pva::wire::operation::{ArrayPlace, ArraySlice};
use hodo_pva::{Array, Limits, Scalar, Value};

const LIMITS: Limits = Limits {
    message_bytes: 1 << 14,
    nesting: 20,
    fields: 200,
    cached_fields: 1000,
    value_bytes: 1 << 12,
    recycled_bytes: 1 << 14,
};

/// Kinds of operations, by their place in a script.
const KINDS: [Kind; 7] = [Kind::Get, Kind::Put, Kind::PutGet, Kind::Monitor, Kind::Array, Kind::Process, Kind::Call];

/// Drives a client through a script, in which a server says what it likes.
pub fn client(input: &[u8]) {
    let session = SessionConfig { limits: LIMITS, ..SessionConfig::default() };
    let config = ClientConfig { session, channels_max: 5, operations_max: 16, queue_max: 4, ..ClientConfig::default() };
    drive(Application(Client::new(config)), input, None, command);
}

/// A client whose updates are taken as they come.
struct Application(Client);

impl Machine for Application {
    type Command = Command;
    type Event = Event;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        let input = match input {
            // A value of the operation's type, where that is known.
            Input::Command(Command::Put { operation, value }) => {
                let mut value = self.0.blank(operation).unwrap_or(value);
                value.mark_all();
                Input::Command(Command::Put { operation, value })
            }
            other => other,
        };
        self.0.handle(now, input);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        let output = self.0.poll(now, out);
        if let Output::Event(Event::Updates { operation }) = output {
            while let Some(update) = self.0.next_update(operation) {
                assert!(update.overrun.next(update.value.plan().len()).is_none(), "a field that there is not");
            }
        }
        if let Output::Event(Event::Done { operation }) = output {
            // Whatever was read can be looked at.
            let _ = self.0.value(operation).map(|value| format!("{value:?}").len());
        }
        output
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.0.landing(peer)
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        self.0.admits(now, ends, datagram, out)
    }
}

/// Returns a command that an application would give: its kind, the operation, the channel, and what it takes beside.
fn command(bytes: &[u8]) -> Option<Command> {
    let ([kind, operation, channel], rest) = bytes.split_first_chunk::<3>()?;
    let (operation, channel) = (u32::from(operation % 18), u32::from(channel % 5));
    let text = || String::from_utf8_lossy(rest).into_owned();
    let value = || Box::new(Value::of(Normative::scalar(Scalar::F64).alarm().build()));
    Some(match kind % 13 {
        0 => Command::Open { channel, name: text(), server: Some(Address::Node(channel / 4)) },
        1 => Command::Close { channel },
        2 => {
            let (kind, request) = rest.split_first()?;
            let kind = KINDS[usize::from(*kind) % KINDS.len()];
            let request = core::str::from_utf8(request).ok()?.parse().ok()?;
            Command::Prepare { operation, channel, kind, request: Box::new(request) }
        }
        3 => Command::Describe { operation, channel, field: text() },
        4 | 5 => Command::Execute { operation },
        6 => Command::Put { operation, value: value() },
        7 => Command::ReadBack { operation },
        8 => Command::Call { operation, argument: rest.first().map(|_| value()) },
        9 => {
            let place = ArrayPlace { offset: 1, stride: 1 };
            let request = match channel {
                0 => ArrayRequest::Read(ArraySlice { offset: 0, count: 0, stride: 1 }),
                1 => ArrayRequest::Write(place, Array::from(vec![1, 2])),
                2 => ArrayRequest::SetLength(5),
                _ => ArrayRequest::Length,
            };
            Command::Array { operation, request: Box::new(request) }
        }
        10 => Command::Stop { operation },
        11 => Command::Cancel { operation },
        _ => Command::Finish { operation },
    })
}
