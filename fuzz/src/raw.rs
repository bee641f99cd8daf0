use crate::{Accepts, drive};
use hodo_machine::{Address, Bytes, Cursor, Outbox, Sampling};
use hodo_raw::stages::FarStages;
use hodo_raw::wire::updates::{Ended, STAMP, Stamp, Subscribe, Subscribed};
use hodo_raw::wire::{GREETING, HEADER, Header, Kind, decode_greeting, encode_greeting};
use hodo_raw::{Client, ClientConfig, Command, Counters, Direction, Server, ServerConfig, Transport};
use std::time::Duration;

const SIZE_MAX: u32 = 1 << 20;

/// Checks that a decoded message is encoded to the bytes that it came from, if those have one meaning only.
pub fn wire(input: &[u8]) {
    if let Some((bytes, _)) = input.split_first_chunk()
        && let Ok(header) = Header::decode(bytes)
    {
        assert_eq!(header.encode(), *bytes);
        // An update is never shorter than its stamp.
        assert!(header.body() <= (header.length as usize).max(STAMP));
    }
    if let Ok(size_max) = decode_greeting(input) {
        assert_eq!(decode_greeting(&encode_greeting(size_max)), Ok(size_max));
    }
    if let Ok(counters) = Counters::decode(input) {
        // CPU time that is not known has no polling.
        assert_eq!(Counters::decode(&counters.encode()), Ok(counters));
    }
    if let Ok(ask) = Subscribe::decode(input) {
        assert!(input.starts_with(&ask.encode()));
    }
    if let Ok(subscribed) = Subscribed::decode(input) {
        assert!(input.starts_with(&subscribed.encode()[..20]));
    }
    if let (Ok(stamp), Ok(ended)) = (Stamp::decode(input), Ended::decode(input)) {
        assert!(input.starts_with(&stamp.encode()) && input.starts_with(&ended.encode()));
    }
    if let Ok(stages) = FarStages::decode(input) {
        let mut out = Outbox::new();
        stages.encode(&mut out);
        let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
        assert_eq!(FarStages::decode(&bytes), Ok(stages));
    }
}

/// Drives a client. The first byte chooses the transport, new connections for each operation, stamps of stages and no window; the
/// rest is a script.
pub fn client(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let config = ClientConfig {
        transport: transport(*choice),
        address: Address::Node(1),
        channels: 3,
        size_max: SIZE_MAX,
        acknowledge_every: 4,
        unbounded: choice & 8 != 0,
        greeting_timeout: Duration::from_secs(1),
        timeout: Duration::from_millis(200),
        reconnect: choice & 2 != 0 && choice & 1 == 0,
        check: choice & 16 != 0,
        is_group: choice & 64 != 0,
        payload: Bytes::from_static(if choice & 32 != 0 { b"what is carried" } else { b"" }),
    };
    let mut client = Client::new(config);
    if choice & 4 != 0 {
        client.stamps().sampling = Sampling::ALL;
    }
    drive(client, script, None, command);
}

/// Drives a server. The first byte chooses the transport; the rest is a script.
pub fn server(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let config = ServerConfig {
        transport: transport(*choice),
        size_max: SIZE_MAX,
        // So few that a short script reaches it.
        pending_max: 20,
        greeting_timeout: Duration::from_secs(5),
        silence_timeout: Duration::from_secs(30),
        lease: Duration::from_secs(1),
        secret: [1, 2],
    };
    drive(Server::new(config), script, Some(&newcomer(transport(*choice))), |_| None);
}

/// Returns a client that greets; on a stream it has a payload echoed behind that.
fn newcomer(transport: Transport) -> Accepts {
    let mut says = Header::new(Kind::Hello, GREETING as u32, 0).encode().to_vec();
    says.extend(encode_greeting(SIZE_MAX));
    let greeted = says.len();
    match transport {
        Transport::Stream => {
            says.extend(Header::new(Kind::Echo, 64, 0).encode());
            says.resize(greeted + 64, 7);
            Accepts::new(hodo_machine::Transport::Stream, says, HEADER + GREETING + 64)
        }
        Transport::Datagram => Accepts::new(hodo_machine::Transport::Datagram, says, HEADER + GREETING),
    }
}

fn transport(choice: u8) -> Transport {
    if choice & 1 == 0 { Transport::Stream } else { Transport::Datagram }
}

/// Returns a command that a link within its own bounds would give.
fn command(bytes: &[u8]) -> Option<Command> {
    let mut cursor = Cursor::new(bytes);
    let (kind, channel, size) = (cursor.u8().ok()?, cursor.u8().ok()?, cursor.u32_le().unwrap_or(64));
    let operation = |direction| Command::Operation {
        tag: u64::from(kind),
        channel: u32::from(channel % 3),
        size: size % SIZE_MAX,
        direction,
    };
    Some(match kind % 7 {
        0 => operation(Direction::Both),
        1 => operation(Direction::Send),
        2 => operation(Direction::Receive),
        3 => Command::Flush,
        4 => Command::Subscribe {
            channel: u32::from(channel % 3),
            size: size % SIZE_MAX,
            rate_micro: u64::from(size) << (channel % 32),
            first_after: Duration::from_nanos(u64::from(size)),
            queue: u32::from(channel),
        },
        5 => Command::Unsubscribe,
        _ => Command::Report,
    })
}
