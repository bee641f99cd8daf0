//! Boards that go away and come back, behind the hub.
use crate::rack;
use crate::rig;

use hodo_ipbus::hub::{HubConfig, HubEvent};
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::hub::Code;
use hodo_machine::Peer;
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
fn whoever_asks_for_an_absent_board_is_told_after_the_patience_each_time() {
    let (mut rig, client) = with_a_dead_board(HubConfig::default());
    let wishes = [read(0, 1), read(0, 2)];
    for _ in 0..5 {
        rig.ask(client, &wishes);
        rig.wait(90 * MILLI);
        assert_eq!(rig.chunk(client), None);
        rig.wait(30 * MILLI);
        assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply; 2]);
    }
    assert!(rig.events.contains(&HubEvent::Dead(target(0), Version::V2_0, Code::NoStatusReply)));
}

/// Has the board begin at each moment of a request's patience, whether its absence is told of at once, as where nothing listens, or by silence.
#[test]
fn a_board_that_begins_while_a_request_waits_serves_it() {
    for (refuses, after) in
        [false, true].into_iter().flat_map(|refuses| (0..=70).step_by(5).map(move |ms| (refuses, ms)))
    {
        let (mut rig, client) = with_a_dead_board(HubConfig::default());
        rig.exchange_with_a_dead_board(client);
        rig.refuses = refuses;
        rig.wait(14 * MILLI);
        let wishes = [rig::write(0, 7)];
        rig.ask(client, &wishes);
        rig.wait(after * MILLI);
        assert!(rig.chunk_is_missing(client), "{after} ms");
        (rig.refuses, rig.boards[0].dead) = (false, false);
        rig.wait(40 * MILLI);
        assert_eq!(rig.codes(client, &wishes), [Code::Done], "{after} ms, refuses: {refuses}");
    }
}

/// Counts what a reader that asks again as soon as it is answered loses to a board that is silent for 0.4 s.
#[test]
fn a_hiccup_costs_a_reader_a_few_requests() {
    for in_flight in [1, 32] {
        let mut rig = Rig::new(1, HubConfig::default());
        let client = rig.client();
        let wishes = vec![read(0, 1); in_flight];
        assert_eq!(rig.exchange(client, &wishes), vec![Code::Done; in_flight]);
        let mut refused = 0;
        for ms in 0..1_000_u32 {
            rig.boards[0].dead = ms < 400;
            if !rig.chunk_is_missing(client) {
                refused += rig.codes(client, &wishes).iter().filter(|code| **code != Code::Done).count();
                rig.ask(client, &wishes);
            } else if ms == 0 {
                rig.ask(client, &wishes);
            }
            rig.wait(MILLI);
        }
        assert!((1..=4 * in_flight).contains(&refused), "{refused} with {in_flight} in flight");
    }
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

/// Has a port answer that nothing listens there, which says no more than silence: what is there may be about to begin.
#[test]
fn where_nothing_listens_the_client_is_told_after_the_patience() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    let wishes = [read(0, 1)];
    rig.refuses = true;
    for _ in 0..3 {
        rig.ask(client, &wishes);
        rig.wait(90 * MILLI);
        assert!(rig.chunk_is_missing(client));
        rig.wait(40 * MILLI);
        assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
    }
    assert!(rig.tries < 20, "{} sockets", rig.tries);
    rig.refuses = false;
    assert_eq!(rig.exchange(client, &wishes), [Code::Done], "it was opened again, and there it is");
}

#[test]
fn a_board_to_which_no_network_leads_is_tried_less_and_less_often() {
    let mut rig = Rig::new(0, HubConfig { forget: Duration::from_secs(3600), ..HubConfig::default() });
    let client = rig.client();
    let wishes = [read(NOWHERE, 1)];
    rig.ask(client, &wishes);
    rig.wait(120 * MILLI);
    assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
    rig.tries = 0;
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
fn a_flood_of_requests_for_a_dead_board_makes_forty_probes_a_second_and_each_is_answered_in_its_time() {
    for version in [Version::V2_0, Version::V1_3] {
        let (mut rig, client) = with_a_dead_board(HubConfig::default());
        let wishes = [Wish { version, ..read(0, 1) }];
        let mut asked = std::collections::VecDeque::new();
        for ms in 0..5_000_u32 {
            rig.ask(client, &wishes);
            asked.push_back(ms);
            rig.wait(MILLI);
            while !rig.chunk_is_missing(client) {
                assert_eq!(rig.codes(client, &wishes), [Code::NoStatusReply]);
                let waited = ms - asked.pop_front().expect("it was asked for");
                assert!((90..130).contains(&waited), "{version}: {waited} ms");
            }
        }
        assert!(asked.len() < 130 && statuses(&rig) <= 250, "{version}: {} in 5 s", statuses(&rig));
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
