//! Congestion control of simulated streams, against the law that it is known to follow.
use crate::common;

use common::{Ask, Echo, PEER, ideal, sim};
use hodo_machine::{Driver, Wait};
use hodo_sim::{Congestion, Network, Transport};
use std::time::Duration;

const SEGMENT_BITS: f64 = 1448.0 * 8.0;

/// Returns the bits per second that a stream carries one way, without the first seconds.
fn rate_over(out: &Network, from_s: u64, to_s: u64) -> f64 {
    let mut sim = sim(Transport::Stream, out, Echo::silent());
    sim.command(Ask::Stream(PEER, u64::MAX >> 1));
    let mut received = [0; 2];
    for (end_s, received) in [from_s, to_s].into_iter().zip(&mut received) {
        let end = common::at_us(end_s * 1_000_000);
        while sim.now() < end {
            sim.turn(Wait::Block, end, &mut |_| {}).unwrap();
        }
        *received = sim.server(1).received;
    }
    (received[1] - received[0]) as f64 * 8.0 / (to_s - from_s) as f64
}

fn rate(out: &Network) -> f64 {
    rate_over(out, 5, 45)
}

/// Returns a network with a round-trip of 20 ms, in packets of Ethernet.
fn path(congestion: Congestion, loss: f64) -> Network {
    Network { congestion, loss, mtu: Some(1500), buffer_bytes: 64 << 20, seed: 5, ..ideal(10_000) }
}

/// Returns the rate by M. Mathis et al., The macroscopic behavior of TCP, 1997: with every segment
/// acknowledged, segment / round-trip x sqrt(3/2) / sqrt(loss).
fn law(loss: f64) -> f64 {
    SEGMENT_BITS / 0.020 * 1.5_f64.sqrt() / loss.sqrt()
}

/// Allows 0.7 to 1.3 of the law, which knows of no timeouts.
#[test]
fn reno_follows_the_law() {
    for loss in [0.001, 0.005, 0.02] {
        let share = rate(&path(Congestion::Reno, loss)) / law(loss);
        assert!((0.7..1.3).contains(&share), "{share} of the law at a loss of {loss}");
    }
}

/// Measures where the round-trip is so short and the loss so high that CUBIC is as fast as Reno (RFC 9438, 4.3).
#[test]
fn half_a_percent_of_loss_at_20_ms_leaves_ten_megabits() {
    let [cubic, reno] = [Congestion::Cubic, Congestion::Reno].map(|congestion| rate(&path(congestion, 0.005)));
    assert!((7e6..14e6).contains(&cubic) && (7e6..14e6).contains(&reno), "{cubic} {reno}");
    let gigabit = Network { rate: Some(1_000_000_000), ..path(Congestion::None, 0.005) };
    let none = rate_over(&gigabit, 1, 2);
    assert!(none > 500e6, "{none}");
}

/// Compares with RFC 9438, 5.1: a window of (C (3 + beta) / (4 (1 - beta)))^(1/4) x (round-trip / loss)^(3/4) segments.
#[test]
fn cubic_follows_its_own_law_where_losses_are_rare() {
    let (loss, round_trip_s) = (0.0001, 0.100_f64);
    let network = Network { delay: Duration::from_millis(50), ..path(Congestion::Cubic, loss) };
    let window = 1.054 * round_trip_s.powf(0.75) / loss.powf(0.75);
    let share = rate(&network) / (window * SEGMENT_BITS / round_trip_s);
    assert!((0.6..1.5).contains(&share), "{share} of the law");
    let reno = rate(&Network { congestion: Congestion::Reno, ..network });
    assert!(reno < 0.8 * share * window * SEGMENT_BITS / round_trip_s, "{reno}");
}

#[test]
fn a_stream_that_loses_nothing_reaches_its_line_and_its_buffer() {
    for congestion in [Congestion::Cubic, Congestion::Reno] {
        let line = Network { rate: Some(20_000_000), ..path(congestion, 0.0) };
        let limit = line.model(Transport::Stream).payload_bits_per_s(1).unwrap();
        assert!(rate_over(&line, 2, 4) > 0.999 * limit);
        let buffer = Network { buffer_bytes: 100_000, ..path(congestion, 0.0) };
        let share = rate_over(&buffer, 1, 2) / (100_000.0 * 8.0 / 0.010);
        // Whole segments of what the buffer leaves free.
        assert!((0.9..=1.001).contains(&share), "{share}");
    }
}

/// Checks that a stream goes on after its path was gone for longer than a timeout.
#[test]
fn a_stream_outlives_a_gap_and_the_loss_of_acknowledgements() {
    let gap = vec![common::at_us(12_000_000)..common::at_us(13_500_000)];
    let network = Network { partitions: gap, ..path(Congestion::Cubic, 0.001) };
    let (whole, holed) = (rate(&path(Congestion::Cubic, 0.001)), rate(&network));
    assert!((0.8..1.0).contains(&(holed / whole)), "{holed} of {whole}");
}
