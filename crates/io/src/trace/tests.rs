use super::*;
use crate::{Attendant, ServeOptions, Server, Stop};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

/// A relay of bytes from its client to a board, and back.
struct Relay {
    board: Address,
    client: Option<Peer>,
    opened: bool,
    to_send: VecDeque<(Peer, Vec<u8>)>,
}

impl Machine for Relay {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) if peer.is_accepted() => self.client = Some(peer),
            Input::Received(peer, bytes) if peer.is_accepted() => self.to_send.push_back((Peer(0), bytes.to_owned())),
            Input::Received(_, bytes) => self.to_send.extend(self.client.map(|client| (client, bytes.to_owned()))),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if !std::mem::replace(&mut self.opened, true) {
            return Output::Open(Peer(0), self.board.clone());
        }
        match self.to_send.pop_front() {
            Some((peer, bytes)) => {
                out.copy(&bytes);
                Output::Send(peer)
            }
            None => Output::Idle(None),
        }
    }
}

struct Nobody;

impl Attendant for Nobody {
    type Machine = Relay;
    fn told(&mut self, (): ()) -> Option<()> {
        None
    }
}

/// Relays messages of these lengths, and returns the counters of the trace and its files: the one before, and the last.
fn relay(name: &str, size_max: u64, messages: &[usize]) -> (TraceCounters, Vec<u8>, Vec<u8>) {
    let folder = std::env::temp_dir().join(format!("hodo-trace-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("hub.pcapng");
    let options = TraceOptions { file: file.clone(), size_max, paused: false };
    let trace = Arc::new(Trace::start(&options).unwrap());
    trace.note("it begins");
    let board = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = ServeOptions::default();
    let board_at = Address::Udp(board.local_addr().unwrap());
    let server = Server::bind(&Address::Tcp(([127, 0, 0, 1], 0).into()), options).unwrap().traced(Arc::clone(&trace));
    let Address::Tcp(at) = *server.address() else { unreachable!("it is bound to an IP address") };
    let stop = Stop::new(false);
    std::thread::scope(|scope| {
        let make = |_| {
            let relay = Relay { board: board_at.clone(), client: None, opened: false, to_send: VecDeque::new() };
            (relay, Nobody)
        };
        let until = &stop;
        let serving = scope.spawn(move || server.attend(make, until));
        let mut client = TcpStream::connect(at).unwrap();
        let mut buffer = vec![0; 70_000];
        for &length in messages {
            client.write_all(&vec![7; length]).unwrap();
            let mut there = 0;
            while there < length {
                let (count, from) = board.recv_from(&mut buffer).unwrap();
                board.send_to(&buffer[..count], from).unwrap();
                there += count;
            }
            client.read_exact(&mut buffer[..length]).unwrap();
        }
        stop.store(true, Relaxed);
        serving.join().unwrap().unwrap();
    });
    let shared = Arc::clone(&trace.shared);
    // Then all is written.
    drop(trace);
    let counters = shared.counters();
    let before = std::fs::read(folder.join("hub.pcapng.1")).unwrap_or_default();
    let last = std::fs::read(&file).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    (counters, before, last)
}

/// Returns the blocks of a file: the type and the body of each.
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let mut found = Vec::new();
    while !file.is_empty() {
        let length = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
        assert_eq!(file[4..8], file[length - 4..length], "a block ends with its length");
        found.push((u32::from_le_bytes(file[..4].try_into().unwrap()), &file[8..length - 4]));
        file = &file[length..];
    }
    found
}

#[test]
fn what_goes_between_a_client_and_a_board_is_in_the_file() {
    let (counters, before, file) = relay("whole", 1 << 20, &[5, 1400]);
    assert_eq!(counters, TraceCounters { packets: 8, lost: 0, failed: None });
    assert!(before.is_empty());
    let blocks = blocks(&file);
    assert_eq!(blocks.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [0x0A0D_0D0A, 1, 1, 6, 6, 6, 6, 6, 6, 6, 6]);
    let packets: Vec<&[u8]> = blocks[3..].iter().map(|(_, inside)| *inside).collect();
    let interfaces: Vec<u8> = packets.iter().map(|packet| packet[0]).collect();
    assert_eq!(interfaces, [1, 0, 0, 1, 1, 0, 0, 1]);
    assert!(packets[0].windows(9).any(|window| window == b"it begins"));
    let lengths: Vec<u32> =
        packets.iter().map(|packet| u32::from_le_bytes(packet[12..16].try_into().unwrap())).collect();
    assert_eq!(lengths, [45, 33, 33, 45, 1440, 1428, 1428, 1440]);
}

#[test]
fn files_stay_under_the_bound_and_hold_the_latest() {
    let (counters, before, last) = relay("ring", TraceOptions::SIZE_MIN, &[8000; 200]);
    assert!(counters.packets + counters.lost >= 800 && counters.failed.is_none(), "{counters:?}");
    let half = TraceOptions::SIZE_MIN as usize / 2;
    assert!((1..=half).contains(&before.len()) && (1..=half).contains(&last.len()));
    assert_eq!((blocks(&before)[0].0, blocks(&last)[0].0), (0x0A0D_0D0A, 0x0A0D_0D0A));
}

#[test]
fn a_file_that_cannot_be_written_is_told_at_the_start() {
    let nowhere = TraceOptions { file: "/nowhere/trace".into(), size_max: 0, paused: false };
    assert_eq!(Trace::start(&nowhere).unwrap_err().kind(), io::ErrorKind::NotFound);
    let device = TraceOptions { file: "/dev/null".into(), ..nowhere };
    assert!(Trace::start(&device).is_err());
}
