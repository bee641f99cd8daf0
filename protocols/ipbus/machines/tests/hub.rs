//! The hub between clients and boards, one step after the other.
use crate::rack;
use crate::rig;

use hodo_ipbus::hub::{ANSWER, AllowList, BOARD, Ended, HubCommand, HubConfig, HubEvent, QUEUE};
use hodo_ipbus::wire::hub::{Code, Replies};
use hodo_ipbus::wire::{Order, Version, WORD, chunk};
use hodo_machine::{Closed, Input, Peer, Sampling};
use rack::{Deed, Wish, chunk_of, chunk_of_packets, target};
use rig::{ADDRESS, MILLI, Rig, WRITING, read, write};
use std::time::Duration;

#[test]
fn a_chunk_is_answered_by_one_chunk_with_the_clients_own_headers() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    for version in [Version::V2_0, Version::V1_3] {
        for order in Order::BOTH {
            let wishes = [1, 77, 0].map(|id| Wish { version, order, id, ..Wish::new(0, Deed::Read(7, 5)) });
            assert_eq!(rig.exchange(client, &wishes), [Code::Done; 3], "{version} {order}");
        }
    }
    assert_eq!(rig.chunk(client), None);
}

#[test]
fn each_packet_of_a_chunk_goes_to_its_own_board_and_the_answers_wait_for_the_last() {
    let mut rig = Rig::new(3, HubConfig::default());
    let client = rig.client();
    rig.boards[1].dead = true;
    let wishes = [read(0, 1), read(1, 2), read(2, 3)];
    rig.ask(client, &wishes);
    rig.wait(5 * MILLI);
    assert_eq!(rig.chunk(client), None, "one board has not answered");
    rig.boards[1].dead = false;
    rig.wait(50 * MILLI);
    assert_eq!(rig.codes(client, &wishes), [Code::Done; 3]);
}

#[test]
fn a_clients_chunks_are_answered_in_its_order() {
    let mut rig = Rig::new(2, HubConfig::default());
    let client = rig.client();
    rig.exchange(client, &[read(0, 0), read(1, 0)]);
    rig.boards[0].dead = true;
    rig.ask(client, &[read(0, 1)]);
    rig.ask(client, &[read(1, 2)]);
    rig.settle();
    assert_eq!(rig.chunk(client), None);
    rig.boards[0].dead = false;
    rig.wait(50 * MILLI);
    assert_eq!(rig.codes(client, &[read(0, 1)]), [Code::Done]);
    assert_eq!(rig.codes(client, &[read(1, 2)]), [Code::Done]);
}

#[test]
fn clients_of_one_board_take_turns() {
    let mut rig = Rig::new(1, HubConfig::default());
    let [greedy, modest] = [rig.client(), rig.client()];
    rig.exchange(greedy, &[read(0, 0)]);
    let many: Vec<Wish> = (0..100).map(|word| write(0, word)).collect();
    rig.ask(greedy, &many);
    rig.ask(modest, &[write(0, 1000), write(0, 1001)]);
    rig.settle();
    assert_eq!(rig.codes(modest, &[write(0, 1000), write(0, 1001)]), [Code::Done; 2]);
    let place = |word| rig.boards[0].written.iter().position(|written| *written == word);
    assert!(place(1001) < Some(24), "16 were in flight before: {:?}", place(1001));
    assert_eq!(rig.codes(greedy, &many), [Code::Done; 100]);
}

#[test]
fn after_a_restart_nothing_is_sent_again_nor_what_its_client_had_queued_and_others_go_on() {
    let mut rig = Rig::new(1, HubConfig::default());
    let [client, other] = [rig.client(), rig.client()];
    rig.exchange(client, &[read(0, 0)]);
    let wishes: Vec<Wish> = (0..60).map(|word| write(0, word)).collect();
    let others: Vec<Wish> = (100..140).map(|word| write(0, word)).collect();
    rig.ask(client, &wishes);
    rig.ask(other, &others);
    rig.restart_after(5);
    let codes = rig.codes(client, &wishes);
    assert_eq!(codes, [Code::NoResendReply; 60]);
    assert_eq!(rig.codes(other, &others), [Code::Done; 40]);
    let expected: Vec<u32> = (0..5).chain(100..140).collect();
    assert_eq!(rig.boards[0].written, expected);
    assert_eq!(rig.exchange(client, &[write(0, 60)]), [Code::Done], "what it asks next is done");
    assert!(rig.events.contains(&HubEvent::Restarted(target(0))));
}

#[test]
fn ids_go_round_without_anything_being_done_twice() {
    let mut rig = Rig::new(1, HubConfig::default());
    rig.boards[0].skip_to(0xFFF8);
    let client = rig.client();
    let wishes: Vec<Wish> = (0..40).map(|word| write(0, word)).collect();
    assert_eq!(rig.exchange(client, &wishes), [Code::Done; 40]);
    assert_eq!(rig.boards[0].written, (0..40).collect::<Vec<u32>>());
}

#[test]
fn a_board_that_tells_its_status_and_takes_nothing_is_told_of_as_such() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    rig.exchange(client, &[read(0, 0)]);
    let wishes: Vec<Wish> = (0..20).map(|address| read(0, address)).collect();
    rig.ask(client, &wishes);
    rig.boards[0].ignores = true;
    rig.wait(300 * MILLI);
    assert_eq!(rig.codes(client, &wishes), [Code::NoControlReply; 20]);
    rig.boards[0].ignores = false;
    rig.wait(300 * MILLI);
    assert_eq!(rig.exchange(client, &wishes), [Code::Done; 20]);
}

#[test]
fn a_packet_that_is_too_long_for_its_board_is_refused_and_in_nobodys_way() {
    let mut rig = Rig::new(1, HubConfig::default());
    let (client, other) = (rig.client(), rig.client());
    let wishes: Vec<Wish> = (0..20).map(|address| read(0, address)).collect();
    let mut packet = write(0, 7).request();
    packet.extend(packet[WORD..].repeat(200));
    rig.ask(other, &wishes);
    rig.handle(Input::Received(client, &chunk_of_packets([(0, packet)])));
    rig.ask(other, &wishes);
    rig.wait(MILLI);
    let refused = rig.chunk(client).expect("it is told at once");
    let codes: Vec<Code> = Replies::new(&refused).map(|reply| reply.expect("a whole entry").code).collect();
    assert_eq!(codes, [Code::HubTimeout]);
    assert_eq!([rig.codes(other, &wishes), rig.codes(other, &wishes)], [[Code::Done; 20]; 2]);
    assert!(rig.boards[0].written.is_empty());
}

#[test]
fn what_a_board_says_in_place_of_its_status_is_told() {
    let cases: [(&[u8], Code); 3] = [
        (&[0x20, 0, 0, 0xF1, 1, 2, 3], Code::MalformedStatus),
        (b"HTTP/1.1 400 Bad Request", Code::MalformedStatus),
        (&[0x10, 0, 0, 0xFC], Code::WrongVersion),
    ];
    for (nonsense, code) in cases {
        let mut rig = Rig::new(1, HubConfig::default());
        let client = rig.client();
        rig.ask(client, &[read(0, 1)]);
        while rig.chunk_is_missing(client) {
            for (peer, _) in std::mem::take(&mut rig.wire) {
                rig.handle(Input::Received(peer, nonsense));
            }
            rig.now = rig.deadline.expect("something is waited for");
            rig.handle(Input::Elapsed);
        }
        assert_eq!(rig.codes(client, &[read(0, 1)]), [code]);
    }
}

#[test]
fn what_is_no_request_of_a_version_that_is_known_is_refused() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    for first in [[0x30, 0, 0, 0xF0], [0x20, 0, 0, 0xF1], [0x20, 0, 0, 0xF2], [0xF1, 0, 0, 0x20]] {
        let mut chunk = chunk_of(&[Wish { order: Order::Big, ..read(0, 1) }]);
        chunk[12..16].copy_from_slice(&first);
        rig.handle(Input::Received(client, &chunk));
        assert_eq!(rig.codes(client, &[read(0, 1)]), [Code::WrongVersion]);
    }
    assert!(rig.wire.is_empty() && rig.hub.boards().count() == 0);
}

/// Sends transactions that nobody can read: of another version, without their data, of a type that is not assigned.
#[test]
fn a_packet_that_cannot_be_read_is_refused_at_once_and_holds_up_nobody() {
    let mut rig = Rig::new(1, HubConfig::default());
    let [client, other] = [rig.client(), rig.client()];
    rig.exchange(other, &[read(0, 0)]);
    for body in [&[0x3000_010F, 0x10][..], &[0x2000_021F, 0x10, 1], &[0x2000_018F, 0x10], &[0x2000_0100, 0x10]] {
        let mut packet = Order::Big.bytes_32(0x2000_00F0).to_vec();
        Order::Big.append(body, &mut packet);
        rig.handle(Input::Received(client, &chunk_of_packets([(0, packet)])));
        let refused = rig.chunk(client).expect("it is told at once");
        let codes: Vec<Code> = Replies::new(&refused).map(|reply| reply.expect("a whole entry").code).collect();
        assert_eq!(codes, [Code::MalformedStatus], "{body:08X?}");
        assert!(rig.wire.is_empty());
        rig.ask(other, &[read(0, 1)]);
        rig.settle();
        assert_eq!(rig.codes(other, &[read(0, 1)]), [Code::Done]);
    }
}

#[test]
fn only_boards_on_the_list_are_reached() {
    let mut rig = Rig::new(3, HubConfig::default());
    let client = rig.client();
    let list = AllowList::parse("10.0.0.1\n10.0.0.2:50002").expect("a list");
    rig.handle(Input::Command(HubCommand::Allow(list)));
    let wishes = [read(0, 1), read(1, 1), read(2, 1)];
    assert_eq!(rig.exchange(client, &wishes), [Code::NotAllowed, Code::Done, Code::NotAllowed]);
    assert_eq!(rig.hub.counters().codes[..], [1, 0, 0, 0, 0, 0, 0, 2]);
}

#[test]
fn nothing_of_a_chunk_that_is_cut_short_is_done() {
    let whole = chunk_of(&[write(0, 1), write(1, 2)]);
    let entry = (whole.len() - chunk::HEADER) / 2;
    for length in 0..2 * entry {
        let mut rig = Rig::new(2, HubConfig::default());
        let client = rig.client();
        let cut = [&chunk::length(length), &whole[chunk::HEADER..][..length]].concat();
        rig.handle(Input::Received(client, &cut));
        rig.wait(MILLI);
        let told = (6..).step_by(entry).take_while(|needs| *needs <= length).count();
        let code = if length == entry { Code::Done } else { Code::MalformedStatus };
        let wishes = &[write(0, 1), write(1, 2)][..told];
        if told == 0 {
            assert_eq!(rig.closed, [client], "{length}");
            assert_eq!(rig.hub.counters().ended[Ended::Malformed as usize], 1);
        } else {
            assert_eq!(rig.codes(client, wishes), vec![code; told], "{length}");
        }
        assert_eq!(rig.boards[0].written.len(), usize::from(code == Code::Done && told > 0));
    }
}

#[test]
fn a_chunk_over_the_bound_ends_its_client() {
    let mut rig = Rig::new(0, HubConfig::default());
    let client = rig.client();
    rig.handle(Input::Received(client, b"GET / HTTP/1.1\r\n"));
    assert_eq!((&rig.closed[..], rig.hub.clients().count()), (&[client][..], 0));
    assert!(rig.events.contains(&HubEvent::Ended(ADDRESS, Ended::ChunkTooLong)));
}

#[test]
fn a_client_that_does_not_read_is_ended_and_delays_nobody() {
    let mut rig = Rig::new(1, HubConfig { client_packets: 50, ..HubConfig::default() });
    let [deaf, other] = [rig.client(), rig.client()];
    rig.exchange(deaf, &[read(0, 0)]);
    rig.handle(Input::Blocked(deaf));
    for address in 0..25 {
        rig.ask(deaf, &[read(0, address), read(0, address)]);
        assert_eq!(rig.exchange(other, &[read(0, address)]), [Code::Done]);
    }
    assert_eq!((rig.chunk(deaf), rig.hub.held().0), (None, 50));
    rig.ask(deaf, &[read(0, 0)]);
    assert_eq!((&rig.closed[..], rig.hub.held().0), (&[deaf][..], 0));
    assert_eq!(rig.hub.counters().ended[Ended::TooManyPackets as usize], 1);
    assert_eq!(rig.exchange(other, &[read(0, 1)]), [Code::Done]);
}

#[test]
fn a_client_that_reads_again_gets_everything_in_order() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    rig.handle(Input::Blocked(client));
    for address in 0..25 {
        rig.ask(client, &[read(0, address)]);
    }
    rig.wait(MILLI);
    assert_eq!(rig.chunk(client), None);
    rig.handle(Input::Drained(client));
    for address in 0..25 {
        assert_eq!(rig.codes(client, &[read(0, address)]), [Code::Done]);
    }
}

#[test]
fn what_was_received_of_a_client_that_is_gone_is_done_and_nobody_elses() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    rig.exchange(client, &[read(0, 0)]);
    let wishes: Vec<Wish> = (0..120).map(|word| write(0, word)).collect();
    rig.ask(client, &wishes);
    rig.handle(Input::Closed(client, Closed::Reset));
    assert_eq!(rig.hub.held().0, 120);
    // The next client gets the same number.
    rig.clients = 0;
    let next = rig.client();
    rig.received.clear();
    assert_eq!(rig.exchange(next, &[write(0, 200)]), [Code::Done]);
    rig.boards[0].written.sort_unstable();
    assert_eq!(rig.boards[0].written, (0..120).chain([200]).collect::<Vec<u32>>());
    assert_eq!((rig.chunk(next), rig.hub.held().0), (None, 0));
}

#[test]
fn boards_are_forgotten_when_nobody_asks_for_them() {
    let mut rig = Rig::new(2, HubConfig { boards: 1, ..HubConfig::default() });
    let client = rig.client();
    rig.exchange(client, &[write(0, 0)]);
    let before = rig.hub.counters().boards;
    rig.wait(Duration::from_secs(20));
    assert_eq!((rig.hub.boards().count(), rig.closed.clone()), (0, vec![Peer(0)]));
    assert_eq!(rig.hub.counters().boards, before, "counters only grow");
    assert_eq!(rig.exchange(client, &[write(0, 1)]), [Code::Done]);
    assert_eq!(rig.exchange(client, &[write(1, 2)]), [Code::Done], "the idle one makes room");
    rig.boards[1].dead = true;
    rig.ask(client, &[write(1, 3)]);
    rig.ask(client, &[write(0, 4)]);
    rig.boards[1].dead = false;
    rig.wait(50 * MILLI);
    assert_eq!(rig.codes(client, &[write(1, 3)]), [Code::Done]);
    assert_eq!(rig.codes(client, &[write(0, 4)]), [Code::HubTimeout], "the only place is taken");
}

#[test]
fn what_waits_in_all_is_bounded() {
    let mut rig = Rig::new(1, HubConfig { packets: 4, ..HubConfig::default() });
    let client = rig.client();
    let wishes: Vec<Wish> = (0..6).map(|word| write(0, word)).collect();
    rig.ask(client, &wishes);
    rig.wait(MILLI);
    let codes = rig.codes(client, &wishes);
    assert_eq!(codes[..4], [Code::Done; 4]);
    assert_eq!(codes[4..], [Code::HubTimeout; 2]);
}

#[test]
fn packets_over_the_bound_are_refused_both_ways() {
    let mut rig = Rig::new(1, HubConfig { packet_bytes: 40, ..HubConfig::default() });
    let client = rig.client();
    let long = Wish { version: Version::V1_3, ..read(0, 1) };
    let wishes = [Wish::new(0, Deed::Read(1, 8)), Wish::new(0, Deed::Read(1, 9))];
    assert_eq!(rig.exchange(client, &wishes), [Code::Done, Code::HubTimeout]);
    let mut rig = Rig::new(1, HubConfig { packet_bytes: 30, ..HubConfig::default() });
    let client = rig.client();
    assert_eq!(rig.exchange(client, &[long, read(0, 1)]), [Code::HubTimeout, Code::Done]);
}

#[test]
fn clients_have_a_bound_and_those_that_never_ask_make_room() {
    let mut rig = Rig::new(0, HubConfig { clients: 2, ..HubConfig::default() });
    let [_, _, third] = [rig.client(), rig.client(), rig.client()];
    assert_eq!(rig.closed, [third]);
    rig.wait(Duration::from_secs(40));
    assert_eq!((rig.closed.len(), rig.hub.clients().count()), (3, 0));
    let ended = rig.hub.counters().ended;
    assert_eq!((ended[Ended::TooManyClients as usize], ended[Ended::Silent as usize]), (1, 2));
}

#[test]
fn idle_clients_make_room_when_all_places_are_taken_and_can_come_again() {
    let idle = HubConfig::default().idle;
    let mut rig = Rig::new(1, HubConfig { clients: 3, ..HubConfig::default() });
    let [silent, owed, asker] = [rig.client(), rig.client(), rig.client()];
    rig.exchange(asker, &[write(0, 1)]);
    rig.wait(idle - 2 * MILLI);
    let early = rig.client();
    assert_eq!(rig.closed, [early], "nobody has been idle for long enough");
    rig.wait(MILLI);
    let second = rig.client();
    assert_eq!(rig.closed, [early, silent], "one that never asked goes before one that did");
    rig.handle(Input::Blocked(owed));
    rig.ask(owed, &[write(0, 2)]);
    rig.wait(idle);
    let third = rig.client();
    assert_eq!(rig.closed[2..], [second]);
    let fourth = rig.client();
    assert_eq!(rig.closed[3..], [asker], "one that asked long ago goes too");
    let fifth = rig.client();
    assert_eq!(rig.closed[4..], [fifth], "nobody goes who is owed an answer");
    rig.handle(Input::Drained(owed));
    assert_eq!(rig.codes(owed, &[write(0, 2)]), [Code::Done]);
    let again = rig.client();
    assert_eq!(rig.closed[5..], [owed], "it has its answer");
    for client in [third, fourth, again] {
        assert_eq!(rig.exchange(client, &[write(0, 3)]), [Code::Done]);
    }
    let ended = rig.hub.counters().ended;
    assert_eq!((ended[Ended::TooManyClients as usize], ended[Ended::Idle as usize]), (2, 4));
}

#[test]
fn a_hub_that_drains_answers_what_is_under_way_and_ends_its_clients() {
    let mut rig = Rig::new(1, HubConfig::default());
    let [busy, idle] = [rig.client(), rig.client()];
    rig.ask(busy, &[write(0, 1)]);
    rig.handle(Input::Command(HubCommand::Drain));
    assert_eq!((&rig.closed[..], rig.hub.is_drained()), (&[idle][..], false));
    rig.ask(busy, &[write(0, 2)]);
    rig.wait(MILLI);
    assert_eq!(rig.codes(busy, &[write(0, 1)]), [Code::Done]);
    assert_eq!((&rig.closed[..], rig.hub.is_drained()), (&[idle, busy][..], true));
    assert_eq!(rig.boards[0].written, [1]);
}

#[test]
fn a_write_of_version_1_3_is_never_sent_twice_and_a_late_reply_is_nobody_elses() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    let legacy = |deed| Wish { version: Version::V1_3, ..Wish::new(0, deed) };
    rig.exchange(client, &[legacy(Deed::Read(1, 1))]);
    let [lost, next] = [legacy(Deed::Write(1)), legacy(Deed::Read(2, 1))];
    rig.ask(client, &[lost, next]);
    let (peer, datagram) = rig.wire.pop_front().expect("it was sent");
    assert!(rig.wire.is_empty(), "one at a time");
    let late = rig.boards[0].answer(&datagram).expect("the board did it");
    rig.wait(101 * MILLI);
    rig.handle(Input::Received(peer, &late));
    rig.wait(MILLI);
    assert_eq!(rig.codes(client, &[lost, next]), [Code::NoControlReply, Code::Done]);
    assert_eq!(rig.boards[0].written, [1]);
}

#[test]
fn a_read_of_version_1_3_is_sent_again() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    let wishes = [Wish { version: Version::V1_3, ..read(0, 1) }];
    rig.exchange(client, &wishes);
    rig.ask(client, &wishes);
    rig.wire.clear();
    rig.wait(20 * MILLI);
    assert_eq!(rig.codes(client, &wishes), [Code::Done]);
}

#[test]
fn the_stages_of_a_packet_follow_each_other() {
    let mut rig = Rig::new(2, HubConfig::default());
    let client = rig.client();
    let wishes = [read(0, 1), read(1, 2)];
    rig.exchange(client, &wishes);
    assert!(rig.hub.stages().iter().all(|(_, spans)| spans.count() == 0));
    rig.handle(Input::Command(HubCommand::Sample(Sampling::ALL)));
    rig.ask(client, &wishes);
    // The first reply waits for the second.
    for _ in 0..2 {
        rig.now = rig.now + 100 * WRITING;
        let (peer, datagram) = rig.wire.pop_front().expect("both were sent");
        let reply = rig.boards[rig.peers[&peer.0] as usize].answer(&datagram).expect("it is well");
        rig.handle(Input::Received(peer, &reply));
    }
    assert_eq!(rig.codes(client, &wishes), [Code::Done; 2]);
    let stages: Vec<_> = rig.hub.stages().iter().map(|(stage, spans)| (stage, spans.count(), spans.sum_ns())).collect();
    let writing = WRITING.as_nanos() as u64;
    assert_eq!(stages, [(QUEUE, 2, 2 * writing), (BOARD, 2, 298 * writing), (ANSWER, 2, 104 * writing)]);
}

#[test]
fn counters_tell_what_went_where() {
    let mut rig = Rig::new(2, HubConfig::default());
    let client = rig.client();
    let wishes = [read(0, 1), read(0, 2), read(1, 3)];
    rig.exchange(client, &wishes);
    let told = rig.hub.clients().next().expect("it is there");
    let bytes_in = chunk_of(&wishes).len() as u64;
    assert_eq!((told.counters.chunks, told.counters.packets, told.counters.replies), (1, 3, 3));
    assert_eq!((told.counters.bytes_in, told.waiting, told.blocked), (bytes_in, 0, false));
    let boards: Vec<_> = rig.hub.boards().collect();
    let told = boards.iter().map(|board| (board.target, board.state, board.counters.packets, board.counters.replies));
    assert!(told.eq([(target(0), Some(Code::Done), 2, 2), (target(1), Some(Code::Done), 1, 1)]));
    assert!(boards.iter().all(|board| board.round_trip.is_some() && board.round_trip_min.is_some()));
    let all = rig.hub.counters();
    assert_eq!((all.came, all.clients.packets, all.boards.replies, all.codes[0]), (1, 3, 3, 3));
}
