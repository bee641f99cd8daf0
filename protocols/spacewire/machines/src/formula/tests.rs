use super::*;

const R: f64 = 200e6;
const M: f64 = 1e6;

fn near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} is not {expected} within {within}");
}

/// Bytes, Mbit/s one way, Mbit/s both ways, and microseconds at 200 Mbit/s.
const TABLE: &[(u64, f64, f64, f64)] = &[
    (1, 114.286, 106.667, 0.070),
    (4, 145.455, 137.634, 0.220),
    (8, 152.381, 144.633, 0.420),
    (16, 156.098, 148.406, 0.820),
    (60, 158.940, 151.300, 3.020),
    (256, 159.750, 152.126, 12.82),
    (1024, 159.938, 152.317, 51.22),
];

#[test]
fn the_table_of_sizes_at_200_mbit_per_s() {
    for &(size, one, both, latency_us) in TABLE {
        near(one_way(R, size) / M, one, 0.0005);
        near(both_ways(R, size) / M, both, 0.0006);
        near(latency(R, size, 0.0) * 1e6, latency_us, 1e-9);
    }
}

#[test]
fn a_packet_waits_for_the_null_on_the_line_and_for_the_parity_bit_behind_it() {
    let bits = |seconds: f64| seconds * R;
    near(bits(confirmation(R)), 2.0, 1e-9);
    // The NULL behind the packet has sent the two bits that confirm it, and a bit for each metre of cable.
    near(bits(rest_of_null(R, 0.0)), 6.0, 1e-9);
    near(bits(rest_of_null(R, 5.0)), 1.0, 1e-6);
    near(bits(rest_of_null(R, 6.0)), 0.0, 1e-6);
    near(bits(rest_of_null(R, 7.0)), 7.0, 1e-6);
}

#[test]
fn both_directions_cost_7_6_to_7_8_mbit_per_s_at_every_size() {
    for &(size, ..) in TABLE {
        let cost = (one_way(R, size) - both_ways(R, size)) / M;
        assert!((7.61..7.83).contains(&cost), "{size} bytes: {cost}");
    }
}

#[test]
fn both_ways_is_one_way_beside_its_own_rate() {
    for &(size, ..) in TABLE {
        let both = both_ways(R, size);
        let nchars = both / 8.0 / size as f64 * (size + 1) as f64;
        near(loaded(R, size, Load { reverse_nchars_per_s: nchars, time_codes_per_s: 0.0 }), both, 1.0);
    }
}

#[test]
fn time_codes_cost_14_bits() {
    let load = Load { reverse_nchars_per_s: 0.0, time_codes_per_s: 1_000.0 };
    near(loaded(R, 60, load), (R - 14_000.0) * 480.0 / 604.0, 1e-3);
    assert_eq!(loaded(R, 60, Load { reverse_nchars_per_s: 1e12, time_codes_per_s: 0.0 }), 0.0);
}

#[test]
fn the_window_lasts_for_48_to_56_nchars() {
    // Long packets: an N-char is 50 ns. Up to 48 of them the line is the limit; far beyond, 56 in a loop.
    let size = 1_000_000;
    near(longest_loop(R, size, 56) * 1e6, 2.4, 1e-4);
    near(credit_limit(R, size, 56, 2.3e-6), one_way(R, size), 1.0);
    near(credit_limit(R, size, 56, 2.4e-6), one_way(R, size), 1e3);
    near(credit_limit(R, size, 56, 100e-6), 8.0 * 56.0 / 100.4e-6, 10.0);
    // A buffer of 8 is one FCT: eight N-chars, then a whole loop.
    near(credit_limit(R, size, 15, 1e-6), 8.0 * 8.0 / 1.4e-6, 100.0);
}

#[test]
fn a_kilometre_of_cable_leaves_56_nchars_in_10_45_us() {
    // 10 us of cable; 10 bits of FCT, confirmation and half a NULL; 80 of eight N-chars.
    near(credit_loop(R, 1000.0, false) * 1e6, 10.05, 1e-9);
    near(credit_loop(R, 1000.0, true) * 1e6, 10.055, 1e-9);
    near(
        credit_packets(R, packet_bits(1_000_000) as f64, 1_000_001.0, 56, 10.05e-6) * 1_000_001.0,
        56.0 / 10.45e-6,
        10.0,
    );
}

#[test]
fn a_cable_delays_by_5_ns_per_metre() {
    near(latency(R, 60, 10.0) * 1e9, 3_070.0, 1e-6);
}

#[test]
fn the_spw_10x_takes_546_7_ns_and_133_3_to_switch() {
    let router = CutThrough::SPW_10X;
    near(router.through(R) * 1e9, 546.6, 0.1);
    near(latency_through(R, 60, 0.0, 2, &router) * 1e9, 3_120.0 + 2.0 * (133.3 + 546.67), 0.1);
    near(latency_through(R, 60, 3.0, 0, &router), latency(R, 60, 3.0), 1e-12);
}

#[test]
fn reads_of_four_bytes() {
    let read = Transaction::read(4);
    assert_eq!((packet_bits(read.command), packet_bits(read.reply)), (164, 174));
    near(read.serial(R, 0.0) / 1e3, 591.7, 0.05);
    // 1.149 M/s if the FCTs for the commands cost nothing; they cost 8.5 bits of the 182.5.
    near(read.pipelined(R) / 1e3, 1_095.9, 0.05);
}

#[test]
fn writes_are_bound_by_their_commands() {
    near(Transaction::write(4).pipelined(R), R / (214.0 + 4.5), 1e-3);
}

#[test]
fn an_output_that_switches_leaves_whole_nulls() {
    let router = CutThrough::SPW_10X;
    for (rate, bits) in [(10e6, 0.0), (50e6, 8.0), (66e6, 8.0), (100e6, 16.0), (200e6, 24.0), (400e6, 56.0)] {
        near(router.gap_bits(rate), bits, 0.0);
        near(router.gap_bits_beside(rate, 634.5, 0.0), bits, 0.0);
    }
}

/// Takes 26.7 bits to switch at 200 Mbit/s: the end and an FCT leave 18.7 for NULLs, which are three as without it. At 400 Mbit/s they
/// leave 45.3, which are six instead of seven.
#[test]
fn an_fct_spares_a_null_where_the_others_last_long_enough() {
    let router = CutThrough::SPW_10X;
    near(router.gap_bits_beside(200e6, 634.5, 61.0), 24.0, 0.0);
    near(router.gap_bits_beside(400e6, 634.5, 61.0), 56.0 - 8.0 * 52.0 * 61.0 / 8.0 / 634.5, 1e-9);
    near(router.gap_bits_beside(100e6, 634.5, 61.0), 16.0 - 8.0 * 12.0 * 61.0 / 8.0 / 634.5, 1e-9);
}

#[test]
fn a_command_holds_the_path_of_its_reply_in_whole_words() {
    let read = Transaction::read(4).through(1, 1);
    assert_eq!((read.command, read.reply), (16 + 1 + 4, 17 + 1));
    let write = Transaction::write(4).through(5, 5);
    assert_eq!((write.command, write.reply), (21 + 5 + 8, 8 + 5));
    assert_eq!(write.through(0, 0), write);
}
