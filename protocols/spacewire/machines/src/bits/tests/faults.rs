//! Every mistake on request, and the recovery of both ends.
use super::*;

/// Returns the causes that an end reported.
fn causes(end: &mut BitEnd) -> Vec<LinkError> {
    core::iter::from_fn(|| end.pop_failure()).map(|failure| failure.error).collect()
}

/// Injects a fault, waits until the link runs again, and returns the causes that both ends report.
fn injected(fault: Fault, edition: Edition) -> (Vec<LinkError>, Vec<LinkError>) {
    let mut pair = Pair::running(&Settings { edition, ..Settings::default() });
    pair.steps(2_000);
    if fault == Fault::WithoutCredit {
        // The far host takes nothing, so that credit runs out.
        pair.one.push_packet(&packet(100, 0));
    }
    pair.one.inject(fault);
    let starts = pair.one.statistics().starts;
    let give_up = pair.one.now() + Picos::from_nanos(100_000);
    while pair.one.statistics().starts == starts || pair.other.statistics().starts == starts {
        pair.step();
        // Without room in the receive buffer a link does not start.
        while pair.other.end().state() != State::Run && pair.other.pop().is_some() {}
        assert!(pair.one.now() < give_up, "{fault:?} {edition:?}: the link does not come back");
    }
    pair.run_until_running();
    while pair.other.pop().is_some() {}
    assert_packets_pass(&mut pair);
    (causes(&mut pair.one), causes(&mut pair.other))
}

fn assert_packets_pass(pair: &mut Pair) {
    for end in [&mut pair.one, &mut pair.other] {
        assert!(end.push_packet(&packet(100, 9)));
    }
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for _ in 0..4_000 {
        pair.step();
        there.extend(pair.other.pop());
        back.extend(pair.one.pop());
    }
    let expected: Vec<Code> = packet(100, 9).into_iter().map(Code::Data).chain([Code::Eop]).collect();
    assert_eq!((&there, &back), (&expected, &expected));
}

#[test]
fn every_fault_leads_to_a_restart_in_both_editions() {
    for edition in [Edition::Of2008, Edition::Rev1] {
        for (fault, error) in [
            (Fault::Parity, LinkError::Parity),
            (Fault::Escape, LinkError::Escape),
            (Fault::Fct, LinkError::Credit),
            (Fault::WithoutCredit, LinkError::Credit),
            (Fault::Disconnect, LinkError::Disconnect),
        ] {
            let (near, far) = injected(fault, edition);
            assert_eq!(far.first(), Some(&error), "{fault:?} {edition:?}");
            // The far end falls silent, and this end notices that within 850 ns.
            assert_eq!(near.first(), Some(&LinkError::Disconnect), "{fault:?} {edition:?}");
        }
    }
}

#[test]
fn a_fault_in_a_packet_ends_it_with_an_eep_and_discards_the_rest() {
    let mut pair = Pair::running(&Settings::default());
    assert!(pair.one.push_packet(&packet(1_000, 1)));
    assert!(pair.one.push_packet(&packet(10, 2)));
    let mut received = Vec::new();
    for step in 0..30_000 {
        if step == 3_000 {
            pair.one.inject(Fault::Parity);
        }
        pair.step();
        received.extend(pair.other.pop());
    }
    let cut = received.iter().position(|nchar| *nchar == Code::Eep).expect("the first packet is cut");
    let data = |bytes: &[u8]| bytes.iter().map(|byte| Code::Data(*byte)).collect::<Vec<_>>();
    assert_eq!(received[..cut], data(&packet(1_000, 1)[..cut]));
    assert_eq!(received[cut + 1..], [data(&packet(10, 2)), [Code::Eop].to_vec()].concat());
    assert_eq!(pair.other.recovered().eeps, 1);
    // N-chars that left after the fault, until this end noticed, are neither received nor discarded.
    let lost = 1_001 - pair.one.recovered().discarded - cut as u64;
    assert!(lost < 100, "{lost} N-chars lost on the line");
}

#[test]
fn a_packet_that_was_cut_is_discarded_as_the_host_pushes_it() {
    let mut pair = Pair::running(&Settings::default());
    for byte in packet(30, 0) {
        pair.one.push(Code::Data(byte));
    }
    pair.steps(1_000);
    pair.one.fail(LinkError::Disconnect);
    pair.run_until_running();
    for nchar in [Code::Data(1), Code::Data(2), Code::Eop, Code::Data(3), Code::Eop] {
        assert!(pair.one.push(nchar));
    }
    pair.steps(10_000);
    let received: Vec<Code> = core::iter::from_fn(|| pair.other.pop()).collect();
    assert_eq!(received[30..], [Code::Eep, Code::Data(3), Code::Eop]);
    assert_eq!(pair.one.recovered().discarded, 3);
}

#[test]
fn an_eep_is_passed_on() {
    let mut pair = Pair::running(&Settings::default());
    for nchar in [Code::Data(1), Code::Eep] {
        pair.one.push(nchar);
    }
    pair.steps(200);
    assert_eq!((pair.other.pop(), pair.other.pop(), pair.other.pop()), (Some(Code::Data(1)), Some(Code::Eep), None));
    assert_eq!(pair.other.recovered().eeps, 0);
    assert!(!pair.one.push(Code::Fct), "no N-char");
}

#[test]
fn a_babbler_is_stopped_by_credit() {
    let mut pair = Pair::running(&Settings::default());
    pair.one.babble(Some(0x55));
    pair.steps(10_000);
    assert_eq!((pair.other.received(), pair.one.end().credit()), (56, 0));
    assert_eq!(pair.other.end().state(), State::Run);
    pair.one.babble(None);
    pair.one.push(Code::Eop);
    let mut received = Vec::new();
    for _ in 0..2_000 {
        pair.step();
        received.extend(pair.other.pop());
    }
    assert!(received.len() >= 57 && received.ends_with(&[Code::Data(0x55), Code::Eop]));
}

#[test]
fn a_cut_cable_is_noticed_after_850_ns_and_the_link_returns_with_it() {
    let mut pair = Pair::running(&Settings::default());
    let cut_at = pair.one.now();
    while pair.other.end().state() == State::Run {
        pair.step_with(|_| Line::default());
    }
    let noticed = pair.one.now() - cut_at;
    assert!(noticed >= DISCONNECTED && noticed < DISCONNECTED + Picos::from_nanos(30), "{noticed:?}");
    for _ in 0..20_000 {
        pair.step_with(|_| Line::default());
    }
    assert_ne!(pair.other.end().state(), State::Run);
    pair.run_until_running();
    assert_packets_pass(&mut pair);
}

#[test]
fn a_disabled_end_stays_down_and_an_enabled_one_starts_again() {
    let mut pair = Pair::running(&Settings::default());
    pair.one.configure(|settings| settings.disabled = true);
    pair.steps(20_000);
    assert_ne!(pair.one.end().state(), State::Run);
    assert_eq!(causes(&mut pair.one).first(), Some(&LinkError::Disabled));
    pair.one.configure(|settings| settings.disabled = false);
    pair.run_until_running();
    assert_packets_pass(&mut pair);
}
