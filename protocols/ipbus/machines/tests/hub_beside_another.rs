//! A hub on a board that another host numbers packets for, seen step by step: what its packets find, and what it tells.
use crate::rack;
use crate::rig;

use hodo_ipbus::hub::HubConfig;
use hodo_ipbus::wire::hub::Code;
use hodo_ipbus::wire::packet::{Kind, Packet};
use hodo_machine::{Closed, Input, Peer};
use rack::Wish;
use rig::{MILLI, Rig, read, write};

/// More packets than a board keeps replies.
const MANY: u32 = 40;

fn kind(datagram: &[u8]) -> Kind {
    Packet::decode(datagram).expect("the hub sends packets").header.kind
}

/// Has the board take in what is on its way, one datagram after the other; `before` comes before each.
fn deliver(rig: &mut Rig, mut before: impl FnMut(&mut Rig, &[u8])) {
    while let Some((peer, datagram)) = rig.wire.pop_front() {
        before(rig, &datagram);
        if let Some(reply) = rig.boards[0].answer(&datagram) {
            rig.handle(Input::Received(peer, &reply));
        }
    }
}

/// Lets time go on until the client has an answer.
fn wait_for_chunk(rig: &mut Rig, client: Peer, mut before: impl FnMut(&mut Rig, &[u8])) {
    loop {
        deliver(rig, &mut before);
        if !rig.chunk_is_missing(client) {
            return;
        }
        rig.now = rig.deadline.expect("it waits for the board");
        rig.handle(Input::Elapsed);
    }
}

#[test]
fn a_packet_whose_number_another_took_is_done_at_once_though_the_board_keeps_nothing_of_ours() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    assert_eq!(rig.exchange(client, &[write(0, 0)]), [Code::Done]);
    rig.boards[0].serve_another(MANY);
    rig.ask(client, &[write(0, 1)]);
    wait_for_chunk(&mut rig, client, |_, _| {});
    assert_eq!(rig.codes(client, &[write(0, 1)]), [Code::NoResendReply], "nobody can say whether it was done");
    rig.ask(client, &[write(0, 2)]);
    let mut was_first = false;
    deliver(&mut rig, |rig, datagram| {
        if kind(datagram) == Kind::Control && !std::mem::replace(&mut was_first, true) {
            rig.boards[0].serve_another(1);
        }
    });
    assert!(was_first);
    assert_eq!(rig.codes(client, &[write(0, 2)]), [Code::Done], "and no time has passed");
    assert_eq!(rig.boards[0].written, [0, 2]);
}

#[test]
fn a_packet_of_which_nothing_can_be_proved_any_more_is_told_of_soon_and_the_next_is_served() {
    let mut rig = Rig::new(1, HubConfig::default());
    let client = rig.client();
    assert_eq!(rig.exchange(client, &[write(0, 0)]), [Code::Done]);
    rig.ask(client, &[write(0, 1)]);
    rig.boards[0].serve_another(5);
    let (began, mut resends) = (rig.now, 0);
    wait_for_chunk(&mut rig, client, |rig, datagram| {
        resends += u32::from(kind(datagram) == Kind::Resend);
        match kind(datagram) {
            // The first is for the hub's own last reply, which is not kept any more when it comes.
            Kind::Resend if resends == 1 => rig.boards[0].forget(2),
            Kind::Status if resends >= 2 => rig.boards[0].serve_another(MANY),
            _ => {}
        }
    });
    assert_eq!(rig.codes(client, &[write(0, 1)]), [Code::NoResendReply]);
    assert!(rig.now - began < 50 * MILLI, "half of the patience: {:?}", rig.now - began);
    assert_eq!(rig.exchange(client, &[write(0, 2)]), [Code::Done]);
}

#[test]
fn what_a_client_that_has_gone_sent_keeps_its_order_beside_another_host() {
    let mut rig = Rig::new(1, HubConfig::default());
    let [client, other] = [rig.client(), rig.client()];
    assert_eq!(rig.exchange(client, &[read(0, 0)]), [Code::Done]);
    let writes: Vec<Wish> = (0..40).map(|word| write(0, word)).collect();
    // Some are in flight when it goes, and others are queued.
    rig.ask(client, &writes);
    rig.handle(Input::Closed(client, Closed::Finished));
    let mut seen = 0;
    deliver(&mut rig, |rig, datagram| {
        seen += u32::from(kind(datagram) == Kind::Control);
        if seen == 15 && kind(datagram) == Kind::Control {
            rig.boards[0].serve_another(2);
        }
    });
    rig.wait(200 * MILLI);
    assert!(rig.boards[0].written.is_sorted(), "{:?}", rig.boards[0].written);
    assert_eq!(rig.exchange(other, &[read(0, 1)]), [Code::Done]);
}
