//! A client of a device that others may use, where another host takes numbers: each operation has its end.

use crate::rack::Board;
use hodo_ipbus::client::{Client, ClientConfig, Command, Event, Path};
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::wire::packet::{Kind, Packet};
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

const PEER: Peer = Peer(0);
/// One way through the network.
const WAY: Duration = Duration::from_micros(50);

/// Writes blocks of so many words over a network without losses, while another host takes the numbers of these packets of ours just before they
/// come; returns how many came to their ends in a minute.
fn ends(blocks: u64, words: u32, taken: Range<u32>) -> u64 {
    let mut client = Client::new(ClientConfig::new(Path::SharedUdp, Version::V2_0, Address::Node(1)));
    let (mut board, mut out, mut now) = (Board::new(0), Outbox::new(), Instant::ZERO);
    board.is_shared = true;
    let mut under_way: VecDeque<(Instant, bool, Vec<u8>)> = VecDeque::new();
    let (mut numbered, mut ended) = (0, 0);
    for tag in 0..blocks {
        let data = (0..words).collect::<Vec<u32>>().into();
        client.handle(now, Input::Command(Command::WriteBlock { tag, mode: Mode::Incrementing, address: 0x100, data }));
    }
    client.handle(now, Input::Command(Command::Flush));
    while ended < blocks && now < Instant::ZERO + Duration::from_secs(60) {
        let due = loop {
            match client.poll(now, &mut out) {
                Output::Open(..) => client.handle(now, Input::Opened(PEER, &Ends::nodes(0, 1))),
                Output::Send(_) => {
                    let bytes = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                    out.clear();
                    under_way.push_back((now + WAY, true, bytes));
                }
                Output::Event(Event::Done { .. } | Event::Failed { .. }) => ended += 1,
                Output::Event(_) | Output::Close(_) => {}
                Output::Idle(due) => break due,
            }
        };
        let Some(at) = under_way.front().map(|(at, ..)| *at).into_iter().chain(due).min() else { break };
        now = now.max(at);
        while under_way.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((_, to_board, bytes)) = under_way.pop_front()
        {
            if !to_board {
                client.handle(now, Input::Received(PEER, &bytes));
                continue;
            }
            let header = Packet::decode(&bytes).expect("clients send packets").header;
            if header.kind == Kind::Control && header.id != 0 {
                numbered += 1;
                board.serve_another(u32::from(taken.contains(&numbered)));
            }
            under_way.extend(board.answer(&bytes).map(|reply| (now + WAY, false, reply)));
        }
        client.handle(now, Input::Elapsed);
    }
    ended
}

#[test]
fn whatever_numbers_another_host_takes_each_operation_has_its_end() {
    for first in 1..6 {
        for last in first..first + 6 {
            for (blocks, words) in [(1, 1000), (1, 10_000), (9, 100), (9, 1)] {
                let ended = ends(blocks, words, first..last + 1);
                assert_eq!(ended, blocks, "packets {first}..={last} of {blocks} blocks of {words} words");
            }
        }
        assert_eq!(ends(1, 1000, first..u32::MAX), 1, "packets {first}.. of a block");
    }
}
