//! Faults on purpose and bit errors: what the far end makes of them, and how the link comes back.
use super::*;
use crate::end::{Fault, LinkError};

/// Sends a fault while a long packet is on its way. Returns the network 100 us later, and the packets received.
fn with_fault(fault: Fault) -> (Network, NodeId, NodeId, Vec<Packet>) {
    let (mut network, one, other) = pair(&LinkSettings::default());
    network.send(one, &packet(0, 4000), EndOfPacket::Eop).unwrap();
    network.send(one, &packet(1, 40), EndOfPacket::Eop).unwrap();
    network.inject_at(one, fault, micros(60)).unwrap();
    network.run_until(micros(160));
    let received = receive_all(&mut network, other);
    (network, one, other, received)
}

#[test]
fn every_fault_ends_the_packet_with_an_eep_and_the_next_is_whole() {
    for fault in [Fault::Parity, Fault::Escape, Fault::Fct, Fault::Disconnect] {
        let (network, one, other, received) = with_fault(fault);
        assert_eq!(received.len(), 2, "{fault:?}");
        assert_eq!(received[0].header.end, EndOfPacket::Eep);
        let length = received[0].bytes.len();
        assert!((500..1000).contains(&length) && received[0].bytes == packet(0, 4000)[..length], "{fault:?} {length}");
        assert_eq!((&received[1].bytes, received[1].header.end), (&packet(1, 40), EndOfPacket::Eop));
        // The fault comes at 60 us, the link is back within 20 us and the start-up of the first time.
        let back = received[1].header.ended - micros(60);
        assert!(back < Picos::from_nanos(26_000), "{fault:?} {back:?}");
        let errors = network.statistics(other).unwrap().errors;
        let counted = match fault {
            Fault::Parity => errors.parity,
            Fault::Escape => errors.escape,
            Fault::Disconnect => errors.disconnect,
            _ => errors.credit,
        };
        assert_eq!(counted, 1, "{fault:?} {errors:?}");
        assert_eq!(network.statistics(one).unwrap().errors.disconnect, 1, "{fault:?}");
        assert_eq!(network.faults(one).unwrap().cut, 1);
    }
}

#[test]
fn a_silent_line_is_noticed_after_850_ns() {
    #[derive(Default)]
    struct Failures(Vec<(Picos, Place, LinkError)>);
    impl Observer for Failures {
        fn record(&mut self, at: Picos, place: Place, record: Record<'_>) {
            if let Record::Failed(failure) = record {
                self.0.push((at, place, failure.error));
            }
        }
    }
    let settings = LinkSettings { cable: Picos::from_nanos(100), ..LinkSettings::default() };
    let nodes = [NodeSettings::default(), NodeSettings::default()];
    let (mut network, one, other) = pair_with(&settings, nodes, Engine::Fast, Failures::default());
    network.inject_at(one, Fault::Disconnect, micros(50)).unwrap();
    network.run_until(micros(52));
    let [first, second] = &network.observer().0[..] else { panic!("{:?}", network.observer().0) };
    assert_eq!((first.1, first.2), (other.into(), LinkError::Disconnect));
    let noticed = (first.0 - micros(50)).as_nanos();
    assert!((945..=990).contains(&noticed), "{noticed}");
    assert_eq!((second.1, second.2), (one.into(), LinkError::Disconnect));
    assert!((945..=950).contains(&(second.0 - first.0).as_nanos()));
}

#[test]
fn an_nchar_without_credit_is_an_error() {
    let asked = NodeSettings { sink: Sink::Asked, ..NodeSettings::default() };
    let nodes = [NodeSettings::default(), asked];
    let (mut network, one, other) = pair_with(&LinkSettings::default(), nodes, Engine::Fast, ());
    network.send(one, &packet(0, 100), EndOfPacket::Eop).unwrap();
    network.inject_after(one, Fault::WithoutCredit, 56).unwrap();
    network.run_until(micros(30));
    assert_eq!(network.statistics(other).unwrap().errors.credit, 1);
    assert_eq!(network.take(other, 100), 57);
    let cut = network.receive(other).unwrap();
    assert_eq!((cut.bytes.len(), cut.header.end), (56, EndOfPacket::Eep));
}

#[test]
fn a_fault_after_n_nchars_cuts_there() {
    let (mut network, one, other) = pair(&LinkSettings::default());
    network.send(one, &packet(0, 1000), EndOfPacket::Eop).unwrap();
    network.inject_after(one, Fault::Parity, 123).unwrap();
    network.run_until(micros(200));
    let cut = network.receive(other).unwrap();
    assert_eq!((cut.bytes.len(), cut.header.end), (123, EndOfPacket::Eep));
}

#[test]
fn a_link_that_is_disabled_stays_down_until_it_is_enabled() {
    let (mut network, one, other) = pair(&LinkSettings::default());
    network.run_until(micros(50));
    network.configure(one, |settings| settings.disabled = true).unwrap();
    network.run_until(micros(1_000));
    assert_eq!(network.end(one).unwrap().state(), State::Ready);
    assert_ne!(network.end(other).unwrap().state(), State::Run);
    network.configure(one, |settings| settings.disabled = false).unwrap();
    network.run_until(micros(1_100));
    assert_eq!(network.end(other).unwrap().state(), State::Run);
}

#[test]
fn bit_errors_come_as_often_as_asked_and_few_pass_parity() {
    let errors = Some(BitErrors { rate: 1e-4, seed: 1 });
    let settings = LinkSettings { bit_errors: [errors, None], ..LinkSettings::default() };
    let (mut network, one, other) = pair(&settings);
    network.run_until(micros(100_000));
    let parity = network.statistics(other).unwrap().errors.parity as f64;
    // A link that fails every 50 us and is down for 22 us.
    assert!((1_250.0..1_550.0).contains(&parity), "{parity}");
    assert!(network.unnoticed(one).unwrap() < 10);
}
