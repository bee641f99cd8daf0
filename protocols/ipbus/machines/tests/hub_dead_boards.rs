//! Boards that go away and come back, behind the hub.
use crate::rack;
use crate::rig;

use hodo_ipbus::hub::{HubConfig, HubEvent};
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::hub::Code;
use hodo_machine::{Closed, Input, Peer};
use rack::{Wish, target};
use rig::{MILLI, NOWHERE, Rig, read};
use std::time::Duration;

/// Returns a hub with a client, before one board that does not answer.
fn with_a_dead_board(config: HubConfig) -> (Rig, Peer) {
    let mut rig = Rig::new(1, config);
    let client = rig.client();
    rig.boards[0].dead = true;
    (rig, client)
}

/// Status requests that the hub has sent to its one board.
fn statuses(rig: &Rig) -> u64 {
    rig.hub.boards().next().expect("it is remembered").counters.link.statuses
}

#[test]
fn an_absent_board_is_told_of_after_its_time_and_at_once_from_then_on() {
    let (mut rig, client) = with_a_dead_board(HubConfig::default());
    let wishes = [read(0, 1), read(0, 2)];
    rig.ask(client, &wishes);
    rig.wait(90 * MILLI);
    assert_eq!(rig.chunk(client), None);
    rig.wait(30 * MILLI);
    assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply; 2]);
    rig.ask(client, &wishes);
    assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply; 2], "at once");
    assert!(rig.events.contains(&HubEvent::Dead(target(0), Version::V2_0, Code::NoStatusReply)));
}

#[test]
fn a_dead_board_is_probed_less_and_less_often_and_found_when_it_is_back() {
    let (mut rig, client) = with_a_dead_board(HubConfig { forget: Duration::from_secs(3600), ..HubConfig::default() });
    let wishes = [read(0, 1)];
    rig.ask(client, &wishes);
    rig.wait(200 * MILLI);
    assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
    let before = statuses(&rig);
    rig.wait(Duration::from_secs(60));
    let probes = statuses(&rig) - before;
    assert!((12..25).contains(&probes), "{probes}");
    rig.boards[0].dead = false;
    rig.wait(Duration::from_secs(6));
    assert_eq!(rig.exchange(client, &wishes), [Code::Done]);
    assert_eq!(rig.events.last(), Some(&HubEvent::Alive(target(0), Version::V2_0)));
}

#[test]
fn where_nothing_listens_the_client_is_told_at_once() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    let wishes = [read(0, 1)];
    rig.ask(client, &wishes);
    rig.wire.clear();
    rig.peers.clear();
    rig.handle(Input::Closed(Peer(0), Closed::Refused));
    assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
    rig.wait(100 * MILLI);
    assert_eq!(rig.exchange(client, &wishes), [Code::Done], "it was opened again, and there it is");
}

#[test]
fn a_board_to_which_no_network_leads_is_tried_less_and_less_often() {
    let mut rig = Rig::new(0, HubConfig { forget: Duration::from_secs(3600), ..HubConfig::default() });
    let client = rig.client();
    let wishes = [read(NOWHERE, 1)];
    rig.ask(client, &wishes);
    assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
    rig.wait(Duration::from_secs(60));
    assert!((12..25).contains(&rig.tries), "{}", rig.tries);
}

/// Waits for longer than the hub probes a board by itself for the first seconds.
#[test]
fn the_first_request_after_a_board_is_back_is_served() {
    for (version, away) in
        [Version::V2_0, Version::V1_3].into_iter().flat_map(|v| [150, 1_000, 7_300].map(|ms| (v, ms)))
    {
        let mut rig = Rig::new(1, HubConfig::default());
        let client = rig.client();
        let wishes = [Wish { version, ..read(0, 1) }];
        assert_eq!(rig.exchange(client, &wishes), [Code::Done]);
        rig.boards[0].dead = true;
        rig.ask(client, &wishes);
        rig.wait(MILLI * away);
        assert_ne!(rig.codes(client, &wishes), [Code::Done]);
        rig.wait(200 * MILLI);
        rig.boards[0].dead = false;
        rig.boards[0].reboot();
        assert_eq!(rig.exchange(client, &wishes), [Code::Done], "{version}, {away} ms");
    }
}

#[test]
fn a_board_that_nobody_has_heard_of_yet_is_served_when_it_comes() {
    for version in [Version::V2_0, Version::V1_3] {
        let (mut rig, client) = with_a_dead_board(HubConfig::default());
        let wishes = [Wish { version, ..read(0, 1) }];
        rig.ask(client, &wishes);
        rig.wait(Duration::from_secs(3));
        rig.boards[0].dead = false;
        assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
        assert_eq!(rig.exchange(client, &wishes), [Code::Done], "{version}");
    }
}

#[test]
fn a_flood_of_requests_for_a_dead_board_makes_ten_probes_a_second_and_each_is_answered_soon() {
    for version in [Version::V2_0, Version::V1_3] {
        let (mut rig, client) = with_a_dead_board(HubConfig::default());
        let wishes = [Wish { version, ..read(0, 1) }];
        rig.ask(client, &wishes);
        rig.wait(120 * MILLI);
        assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
        let (before, mut at_once) = (statuses(&rig), 0);
        for _ in 0..5_000 {
            rig.ask(client, &wishes);
            let soon = !rig.chunk_is_missing(client);
            rig.wait(MILLI);
            for _ in 0..15 {
                if rig.chunk_is_missing(client) {
                    rig.wait(MILLI);
                }
            }
            assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply], "within an eighth of the patience");
            at_once += u32::from(soon);
        }
        let probes = statuses(&rig) - before;
        assert!((40..=60).contains(&probes) && at_once > 4_500, "{version}: {probes} in 5 s and a bit, {at_once}");
    }
}

#[test]
fn what_waits_for_a_probe_is_served_in_its_order_by_the_board_that_came_back() {
    let (mut rig, client) = with_a_dead_board(HubConfig::default());
    rig.exchange_with_a_dead_board(client);
    rig.wait(Duration::from_secs(1));
    let wishes: Vec<Wish> = (0..40).map(|word| rig::write(0, word)).collect();
    rig.ask(client, &wishes);
    rig.boards[0].dead = false;
    rig.wait(MILLI);
    assert_eq!(rig.codes(client, &wishes), [Code::Done; 40]);
    assert_eq!(rig.boards[0].written, (0..40).collect::<Vec<u32>>());
}
