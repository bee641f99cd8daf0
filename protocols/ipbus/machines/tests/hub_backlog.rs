//! Clients that together ask a board for more than its queue holds: they wait, and nobody is refused.
use crate::rack;
use crate::rig;

use hodo_ipbus::hub::{Ended, HubCommand, HubConfig};
use hodo_ipbus::wire::hub::Code;
use hodo_machine::{Closed, Input, Peer};
use rack::Wish;
use rig::{MILLI, Rig, read, write};

/// uHAL's packets in flight, and how many it sends in a chunk.
const IN_FLIGHT: u32 = 60;
const IN_CHUNK: usize = 3;

/// Returns the bounds of a hub whose queue for a board holds little.
fn small() -> HubConfig {
    HubConfig { board_packets: 4, ..HubConfig::default() }
}

/// Returns the writes of a client's dispatch, each with a word that nobody else writes.
fn writes(client: u32) -> Vec<Wish> {
    (0..IN_FLIGHT).map(|place| write(0, client * IN_FLIGHT + place)).collect()
}

fn all_done(rig: &mut Rig, client: Peer, wishes: &[Wish]) -> bool {
    wishes.chunks(IN_CHUNK).all(|chunk| rig.codes(client, chunk) == [Code::Done; IN_CHUNK])
}

#[test]
fn three_hundred_clients_of_a_slow_board_are_all_served_and_hold_up_no_other_board() {
    const CLIENTS: u32 = 300;
    let mut rig = Rig::new(2, HubConfig::default());
    let other = rig.client();
    assert_eq!(rig.exchange(other, &[read(1, 0)]), [Code::Done]);
    let clients: Vec<Peer> = (0..CLIENTS).map(|_| rig.client()).collect();
    for (client, peer) in (0..).zip(&clients) {
        writes(client).chunks(IN_CHUNK).for_each(|chunk| rig.ask(*peer, chunk));
    }
    let waiting: usize = rig.hub.clients().map(|client| client.waiting).sum();
    assert_eq!(waiting, (CLIENTS * IN_FLIGHT) as usize);
    assert!(rig.hub.held().0 < 16_500, "the rest is not taken in");

    // The slow board has answered nothing yet.
    rig.ask(other, &[read(1, 1)]);
    let (peer, datagram) = rig.wire.pop_back().expect("it was sent");
    let reply = rig.boards[1].answer(&datagram).expect("the board is well");
    rig.handle(Input::Received(peer, &reply));
    assert_eq!(rig.codes(other, &[read(1, 1)]), [Code::Done]);
    assert!(rig.boards[0].written.is_empty());

    rig.wait(MILLI);
    for (client, peer) in (0..).zip(&clients) {
        assert!(all_done(&mut rig, *peer, &writes(client)), "client {client}");
        let of_client = rig.boards[0].written.iter().filter(|word| **word / IN_FLIGHT == client);
        assert!(of_client.eq(&(client * IN_FLIGHT..(client + 1) * IN_FLIGHT).collect::<Vec<u32>>()), "client {client}");
    }
    assert_eq!(rig.hub.held().0, 0);
}

#[test]
fn a_client_that_waits_for_a_board_is_answered_in_order_whatever_it_asks_for_next() {
    let mut rig = Rig::new(2, small());
    let client = rig.client();
    let asked = [writes(0), vec![read(1, 1)], writes(1), vec![Wish::new(1, rack::Deed::Read(2, 4))]].concat();
    asked.chunks(7).for_each(|chunk| rig.ask(client, chunk));
    rig.wait(MILLI);
    for chunk in asked.chunks(7) {
        assert!(rig.codes(client, chunk).iter().all(|code| *code == Code::Done));
    }
    assert_eq!(rig.boards[0].written, (0..2 * IN_FLIGHT).collect::<Vec<u32>>());
}

#[test]
fn what_waits_of_a_client_that_goes_is_done() {
    let mut rig = Rig::new(1, small());
    let [client, other] = [rig.client(), rig.client()];
    for (number, peer) in [(0, client), (1, other)] {
        writes(number).chunks(IN_CHUNK).for_each(|chunk| rig.ask(peer, chunk));
    }
    rig.handle(Input::Closed(client, Closed::Finished));
    rig.wait(MILLI);
    assert!(all_done(&mut rig, other, &writes(1)));
    rig.boards[0].written.sort_unstable();
    assert_eq!(rig.boards[0].written, (0..2 * IN_FLIGHT).collect::<Vec<u32>>());
    assert_eq!(rig.hub.held().0, 0);
}

#[test]
fn what_waits_when_the_hub_drains_is_answered_first() {
    let mut rig = Rig::new(1, small());
    let client = rig.client();
    writes(0).chunks(IN_CHUNK).for_each(|chunk| rig.ask(client, chunk));
    rig.handle(Input::Command(HubCommand::Drain));
    assert!(rig.closed.is_empty());
    rig.wait(MILLI);
    assert!(all_done(&mut rig, client, &writes(0)));
    assert_eq!((&rig.closed[..], rig.hub.is_drained()), (&[client][..], true));
}

#[test]
fn what_waits_of_a_client_whose_board_restarts_fails_as_what_was_queued_does() {
    let mut rig = Rig::new(1, small());
    let [client, other] = [rig.client(), rig.client()];
    rig.exchange(client, &[read(0, 0)]);
    writes(0).chunks(IN_CHUNK).for_each(|chunk| rig.ask(client, chunk));
    writes(1).chunks(IN_CHUNK).for_each(|chunk| rig.ask(other, chunk));
    rig.restart_after(5);
    for chunk in writes(0).chunks(IN_CHUNK) {
        assert_eq!(rig.codes(client, chunk), [Code::NoResendReply; IN_CHUNK]);
    }
    assert!(all_done(&mut rig, other, &writes(1)));
    assert_eq!(rig.boards[0].written, (0..5).chain(IN_FLIGHT..2 * IN_FLIGHT).collect::<Vec<u32>>());
}

#[test]
fn who_waits_for_a_board_that_dies_is_told_so() {
    let mut rig = Rig::new(1, small());
    let client = rig.client();
    rig.exchange(client, &[read(0, 0)]);
    rig.boards[0].dead = true;
    writes(0).chunks(IN_CHUNK).for_each(|chunk| rig.ask(client, chunk));
    rig.wait(1000 * MILLI);
    for chunk in writes(0).chunks(IN_CHUNK) {
        assert!(rig.codes(client, chunk).iter().all(|code| matches!(code, Code::NoStatusReply | Code::NoControlReply)));
    }
    rig.boards[0].dead = false;
    assert_eq!(rig.exchange(client, &[read(0, 0)]), [Code::Done]);
}

#[test]
fn a_client_that_sends_more_than_it_may_wait_for_is_ended_though_its_board_is_full() {
    let mut rig = Rig::new(1, HubConfig { client_packets: 12, ..small() });
    let client = rig.client();
    let asked = writes(0);
    asked[..12].chunks(IN_CHUNK).for_each(|chunk| rig.ask(client, chunk));
    assert!(rig.closed.is_empty());
    rig.ask(client, &asked[12..13]);
    assert_eq!(rig.hub.counters().ended[Ended::TooManyPackets as usize], 1);
    rig.wait(MILLI);
    assert_eq!(rig.boards[0].written, (0..12).collect::<Vec<u32>>(), "what was received is done");
}

#[test]
fn chunks_without_a_packet_do_not_pile_up() {
    let mut rig = Rig::new(1, HubConfig { client_packets: 12, ..small() });
    let client = rig.client();
    writes(0)[..12].chunks(IN_CHUNK).take(3).for_each(|chunk| rig.ask(client, chunk));
    (0..4).for_each(|_| rig.handle(Input::Received(client, &[0; 4])));
    assert_eq!(rig.hub.counters().ended[Ended::TooManyPackets as usize], 1);
}

#[test]
fn a_client_that_waits_for_a_board_is_not_idle() {
    let bounds = HubConfig { clients: 2, idle: MILLI, ..small() };
    let mut rig = Rig::new(1, bounds);
    let [client, waiting] = [rig.client(), rig.client()];
    writes(0).chunks(IN_CHUNK).for_each(|chunk| rig.ask(client, chunk));
    rig.ask(waiting, &writes(1)[..1]);
    rig.now = rig.now + 2 * MILLI;
    let third = rig.client();
    assert_eq!(rig.closed, [third]);
    rig.wait(MILLI);
    assert_eq!(rig.codes(waiting, &writes(1)[..1]), [Code::Done]);
}

#[test]
fn bytes_that_wait_are_bounded_and_what_goes_beyond_is_taken_in() {
    let mut rig = Rig::new(1, HubConfig { backlog_bytes: 200, ..small() });
    let client = rig.client();
    writes(0).chunks(IN_CHUNK).for_each(|chunk| rig.ask(client, chunk));
    assert!(rig.hub.held().0 > 50);
    rig.wait(MILLI);
    assert!(all_done(&mut rig, client, &writes(0)));
}

#[test]
fn clients_of_several_boards_that_ask_for_more_than_the_hub_holds_wait_and_none_is_refused() {
    const BOARDS: u32 = 3;
    let mut rig = Rig::new(BOARDS, HubConfig { packets: 20, ..HubConfig::default() });
    let clients: Vec<Peer> = (0..4 * BOARDS).map(|_| rig.client()).collect();
    let wishes = |client: u32| -> Vec<Wish> {
        writes(client).into_iter().map(|wish| Wish { board: client % BOARDS, ..wish }).collect()
    };
    for (client, peer) in (0..).zip(&clients) {
        wishes(client).chunks(IN_CHUNK).for_each(|chunk| rig.ask(*peer, chunk));
    }
    assert!((18..=20).contains(&rig.hub.held().0), "{}", rig.hub.held().0);
    rig.handle(Input::Closed(clients[0], Closed::Finished));
    assert!(rig.hub.held().0 <= 20);
    rig.wait(MILLI);
    for (client, peer) in (0..).zip(&clients).skip(1) {
        assert!(all_done(&mut rig, *peer, &wishes(client)), "client {client}");
        let of_client =
            rig.boards[(client % BOARDS) as usize].written.iter().filter(|word| **word / IN_FLIGHT == client);
        assert!(of_client.eq(&(client * IN_FLIGHT..(client + 1) * IN_FLIGHT).collect::<Vec<u32>>()), "client {client}");
    }
    let of_gone: Vec<u32> = rig.boards[0].written.iter().copied().filter(|word| word / IN_FLIGHT == 0).collect();
    assert!(!of_gone.is_empty() && of_gone.iter().copied().eq(0..of_gone.len() as u32), "its first ones: {of_gone:?}");
    assert_eq!(rig.hub.held().0, 0);
}

#[test]
fn only_a_chunk_that_the_hub_can_never_hold_is_refused() {
    let mut rig = Rig::new(1, HubConfig { packets: 20, ..HubConfig::default() });
    let [client, other] = [rig.client(), rig.client()];
    rig.ask(client, &writes(0)[..10]);
    rig.ask(other, &writes(1)[..25]);
    rig.wait(MILLI);
    assert_eq!(rig.codes(client, &writes(0)[..10]), [Code::Done; 10]);
    let codes = rig.codes(other, &writes(1)[..25]);
    assert_eq!((&codes[..20], &codes[20..]), (&[Code::Done; 20][..], &[Code::HubTimeout; 5][..]));
}
