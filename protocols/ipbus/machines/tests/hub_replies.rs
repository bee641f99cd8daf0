//! Replies that the hub takes for the answer to a packet, and those that it does not.
use crate::rack;
use crate::rig;

use hodo_ipbus::hub::HubConfig;
use hodo_ipbus::wire::hub::Code;
use hodo_ipbus::wire::packet::{Header, Kind, Packet};
use hodo_ipbus::wire::{Order, WORD};
use hodo_machine::Input;
use rack::{Board, Deed, Wish};
use rig::{MILLI, Rig, read, write};

/// Has another host do this on a board, in a packet with this number.
fn another_host(board: &mut Board, id: u16, wish: &Wish) {
    let mut packet = wish.request();
    let header = Header { id, kind: Kind::Control };
    packet[..WORD].copy_from_slice(&wish.order.bytes_32(header.encode()));
    assert!(board.answer(&packet).is_some(), "it is the next");
}

/// Lets another hub's packet, whose client numbers its transactions alike, come to the board before ours, with the same
/// number; and its reply be asked for in place of our own.
#[test]
fn the_reply_to_another_hubs_packet_is_never_taken_for_ones_own() {
    for order in Order::BOTH {
        let mut rig = Rig::new(1, HubConfig::default());
        let client = rig.client();
        rig.exchange(client, &[read(0, 0)]);
        let [ours, others] = [7, 9].map(|word| Wish { order, ..write(0, word) });
        rig.ask(client, &[ours]);
        let id = Packet::decode(&rig.wire[0].1).expect("a packet").header.id;
        another_host(&mut rig.boards[0], id, &others);
        rig.wait(300 * MILLI);
        assert_eq!(rig.codes(client, &[ours]), [Code::Done]);
        assert_eq!(rig.boards[0].written, [9, 7]);
    }
}

/// Cuts replies, or makes them longer: each is asked for again, and what can never be had is told of.
#[test]
fn a_reply_is_taken_whole_or_not_at_all() {
    let wish = Wish::new(0, Deed::Read(7, 5));
    for length in (0..30).chain([32, 48]) {
        let mut rig = Rig::new(1, HubConfig::default());
        let client = rig.client();
        rig.exchange(client, &[read(0, 0)]);
        rig.ask(client, &[wish]);
        let (peer, datagram) = rig.wire.pop_front().expect("it was sent");
        let whole = rig.boards[0].answer(&datagram).expect("it is the next");
        let mut cut = whole.clone();
        cut.resize(length, 0);
        rig.handle(Input::Received(peer, &cut));
        assert_eq!(rig.chunk_is_missing(client), length != whole.len(), "{length} bytes");
        rig.wait(20 * MILLI);
        assert_eq!(rig.codes(client, &[wish]), [Code::Done], "{length} bytes");
    }
}

#[test]
fn a_board_that_cuts_all_its_replies_is_told_of() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    rig.exchange(client, &[read(0, 0)]);
    rig.boards[0].cuts = Some(9);
    rig.ask(client, &[read(0, 1)]);
    rig.wait(300 * MILLI);
    assert_eq!(rig.codes(client, &[read(0, 1)]), [Code::NoResendReply]);
}

/// Lets the hub say nothing for two seconds: it looks at the board's next number before it sends anything.
#[test]
fn what_others_did_while_nobody_asked_costs_no_packet() {
    for sent in [0_u16, 1, 5, 40] {
        let mut rig = Rig::new(1, HubConfig::default());
        let client = rig.client();
        rig.exchange(client, &[read(0, 0)]);
        rig.wait(2_000 * MILLI);
        if sent == 0 {
            rig.boards[0].reboot();
        }
        // The greeting, and the read, have had numbers before.
        (3..3 + sent).for_each(|id| another_host(&mut rig.boards[0], id, &write(0, 9)));
        let wishes: Vec<Wish> = (100..120).map(|word| write(0, word)).collect();
        rig.ask(client, &wishes);
        rig.wait(100 * MILLI);
        assert_eq!(rig.codes(client, &wishes), [Code::Done; 20], "{sent} packets of another host");
        assert_eq!(rig.boards[0].written[usize::from(sent)..], (100..120).collect::<Vec<u32>>());
    }
}
