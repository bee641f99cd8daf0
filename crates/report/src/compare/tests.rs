use super::*;
use crate::sample;
use hodo_measure::Mode;

fn compare(a: &Document, b: &Document) -> Comparison {
    super::compare(a, b, 0.03)
}

#[test]
fn another_far_end_is_warned_of() {
    let (a, mut b) = (sample::document(), sample::document());
    let far_end = b.environment.far_end.as_mut().expect("the sample has one");
    (far_end.wait, far_end.line_bits_per_s) = (Some("spin".into()), Some(10_000_000_000));
    let warnings = environment_warnings(&a.environment, &b.environment);
    assert_eq!(
        warnings,
        ["far end's wait differs: A adaptive, B spin", "far end's line differs: A unknown, B 10.00 Gbit/s"]
    );
}

fn only(measurement: Measurement) -> Document {
    Document { measurements: vec![measurement], ..sample::document() }
}

fn faster(by: f64) -> Document {
    let mut m = sample::rate("tcp", Mode::Send, 64);
    let bits = &mut m.rate.payload_bits_per_s;
    *bits = Estimate { median: 100.0 * by, low: Some(98.0 * by), high: Some(103.0 * by), ..*bits };
    only(m)
}

#[test]
fn a_document_against_itself_is_one() {
    let document = sample::document();
    let comparison = compare(&document, &document);
    assert_eq!(comparison.pairs.len(), document.measurements.len());
    assert!(comparison.pairs.iter().all(|pair| pair.ratio == Some(1.0)));
    assert!(comparison.only_in_a.is_empty() && comparison.only_in_b.is_empty());
    assert!(comparison.warnings.iter().all(|warning| warning.contains(" is ")), "{:?}", comparison.warnings);
}

#[test]
fn a_simulated_link_is_not_compared_to_a_real_one() {
    let mut simulated = sample::rate("udp", Mode::Send, 64);
    simulated.link = "sim+udp://?delay=5us".into();
    let comparison = compare(&only(sample::rate("udp", Mode::Send, 64)), &only(simulated));
    assert_eq!(comparison.pairs.len(), 0);
    assert!(comparison.only_in_b[0].starts_with("sim+udp rate"), "{:?}", comparison.only_in_b);
}

#[test]
fn the_interval_combines_both() {
    let comparison = compare(&faster(1.0), &faster(1.2));
    let pair = &comparison.pairs[0];
    assert!((pair.ratio.unwrap() - 1.2).abs() < 1e-9);
    // sqrt(ln(100/98)^2 + ln(103/100)^2) = 0.03580
    assert!((pair.low.unwrap() - 1.2 * (-0.035_80f64).exp()).abs() < 1e-4, "{pair:?}");
    assert!((pair.high.unwrap() - 1.2 * 0.035_80f64.exp()).abs() < 1e-4, "{pair:?}");
    assert_eq!((pair.figure, pair.confidence), ("payload_bits_per_s", Some(95.0)));
}

#[test]
fn a_check_fails_what_is_slower_for_certain_and_leaves_open_what_nobody_can_tell() {
    let counts = |comparison: &Comparison, threshold| {
        let check = comparison.check(threshold);
        (check.failed.len(), check.open.len())
    };
    let comparison = compare(&faster(1.0), &faster(0.97));
    assert_eq!(counts(&comparison, 0.95), (0, 1), "0.97 could be 0.936");
    assert_eq!(counts(&comparison, 0.93), (0, 0));
    assert_eq!(counts(&compare(&faster(1.0), &faster(0.9)), 0.95), (1, 0));
}

#[test]
fn a_check_fails_rows_that_one_file_lacks() {
    let missing = |a: &Document, b: &Document| compare(a, b).check(0.95).missing;
    let nothing = Document { measurements: Vec::new(), ..sample::document() };
    assert_eq!(missing(&faster(1.0), &nothing), ["tcp rate send 64 B 32×1 adaptive: not in B"]);
    assert_eq!(missing(&nothing, &faster(1.0)), ["tcp rate send 64 B 32×1 adaptive: not in A"]);
    let mut failed = faster(1.0);
    failed.measurements[0].rate.payload_bits_per_s.median = 0.0;
    assert_eq!(missing(&faster(1.0), &failed), ["tcp rate send 64 B 32×1 adaptive: nothing was measured in B"]);
    let check = compare(&failed, &failed);
    let check = check.check(0.95);
    assert_eq!((check.missing.len(), check.open.len()), (0, 1), "what failed in both cannot be told");
}

#[test]
fn what_differs_by_less_than_matters_is_the_same() {
    let answer = |by, same_within| {
        let pair = super::compare(&faster(1.0), &faster(by), same_within).pairs.remove(0);
        (pair.answer, pair.repeats_needed)
    };
    // The interval reaches 3.6 % to each side.
    assert_eq!(answer(1.001, 0.04), (Answer::Same, None));
    assert_eq!(answer(1.005, 0.05), (Answer::Same, None));
    assert_eq!(answer(1.04, 0.08), (Answer::Same, None), "though it is faster for certain");
    // 5 repeats reach 0.0358 to each side, of the 0.0286 up to 3 %.
    assert_eq!(answer(1.001, 0.03), (Answer::CannotTell, Some(8)));
}

#[test]
fn a_check_asks_for_the_ratio_and_not_for_what_matters() {
    let comparison = super::compare(&faster(1.0), &faster(0.95), 0.1);
    assert_eq!(comparison.pairs[0].answer, Answer::Same);
    assert_eq!(comparison.check(0.96).failed.len(), 1);
}

#[test]
fn a_file_beside_itself_is_alike_for_certain() {
    let mut single = faster(1.0);
    (single.measurements[0].rate.payload_bits_per_s.low, single.measurements[0].repeats) = (None, 1);
    let comparison = compare(&single, &single);
    let check = comparison.check(0.95);
    assert!(check.failed.is_empty() && check.open.is_empty());
    assert_eq!((comparison.pairs[0].answer, comparison.pairs[0].repeats_needed), (Answer::Same, None));
}

#[test]
fn the_repeats_that_would_tell_grow_with_the_square_of_what_is_missing() {
    let answer = |by| {
        let pair = compare(&faster(1.0), &faster(by)).pairs.remove(0);
        (pair.answer, pair.repeats_needed)
    };
    assert_eq!(answer(1.2), (Answer::Faster, None));
    assert_eq!(answer(0.9), (Answer::Slower, None));
    // 5 repeats reach 0.0358, of the 0.0296 to 1: 5 x 1.21^2.
    assert_eq!(answer(1.03), (Answer::CannotTell, Some(8)));
    let mut single = faster(1.1);
    single.measurements[0].rate.payload_bits_per_s.low = None;
    assert_eq!(compare(&faster(1.0), &single).pairs[0].repeats_needed, Some(6));
}

/// Returns a document with a row for each speed, of a window of its own.
fn rows(speeds: &[f64]) -> Document {
    let rows = speeds.iter().zip(1..).map(|(by, window)| {
        let m = faster(*by).measurements.remove(0);
        Measurement { window: Some(window), ..m }
    });
    Document { measurements: rows.collect(), ..sample::document() }
}

#[test]
fn the_largest_effect_stands_first() {
    let comparison = compare(&rows(&[1.0, 1.0]), &rows(&[1.02, 0.8]));
    assert_eq!(comparison.pairs[0].plan, "tcp rate send 64 B 2×1 adaptive");
}

#[test]
fn a_sentence_sums_up() {
    let sentence = |a: &[f64], b: &[f64], same_within| super::compare(&rows(a), &rows(b), same_within).sentence();
    assert_eq!(
        sentence(&[1.0; 4], &[1.7, 1.75, 1.01, 0.99], 0.03),
        "B is 1.72 ± 0.07 times faster in 2 rows, cannot tell in 2."
    );
    assert_eq!(
        sentence(&[1.0; 2], &[2.0, 0.5], 0.03),
        "B is 2.00 ± 0.07 times faster in 1 row, 2.00 ± 0.07 times slower in 1."
    );
    assert_eq!(
        sentence(&[1.0; 2], &[1.01, 1.2], 0.07),
        "B is 1.20 ± 0.04 times faster in 1 row, the same within 7 % in 1."
    );
    assert_eq!(sentence(&[1.0; 3], &[1.01], 0.03), "Cannot tell in 1 row; 2 rows are in one file only.");
    assert_eq!(sentence(&[1.0], &[], 0.03), "No row is in both files.");
    // Rows that differ among themselves by more than their intervals.
    assert_eq!(sentence(&[1.0; 2], &[2.0, 4.0], 0.03), "B is 3 ± 1 times faster in 2 rows.");
}

#[test]
fn a_shorter_time_is_faster() {
    let mut fast = sample::document().measurements[0].clone();
    let slow = fast.clone();
    fast.latency_ns = Some(sample::latency_around(3_050.0, 1_000_000));
    let pair = compare(&only(slow), &only(fast)).pairs.remove(0);
    assert_eq!(pair.figure, "latency_p50_ns");
    assert!((pair.ratio.unwrap() - 2.0).abs() < 0.05, "{pair:?}");
    assert!(pair.low.unwrap() < pair.ratio.unwrap());
}

#[test]
fn names_what_else_differs_and_what_has_no_partner() {
    let a = sample::document();
    let mut b = sample::document();
    b.environment.kernel = Some("6.12.9".into());
    b.environment.governor = Some("performance".into());
    b.environment.nic = Some(Nic { name: "eth0".into(), ..Nic::default() });
    b.tool.commit = None;
    b.measurements[0].window = Some(2);
    let comparison = compare(&a, &b);
    let warned = |text: &str| comparison.warnings.iter().any(|warning| warning == text);
    assert!(warned("kernel differs: A 6.1.0-18-amd64, B 6.12.9"));
    assert!(warned("governor differs: A unknown, B performance"));
    assert!(warned("nic differs: A unknown, B eth0"));
    assert!(warned("hodo differs: A 0.1.0 (0123abc), B 0.1.0"));
    assert_eq!(comparison.only_in_a, ["tcp latency both 64 B 1×1 spin"]);
    assert_eq!(comparison.only_in_b, ["tcp latency both 64 B 2×1 spin"]);
}

#[test]
fn the_table_says_which_figure_and_which_way() {
    let comparison = compare(&faster(1.0), &faster(1.2));
    assert_eq!(
        comparison_table(&comparison, Style { width: 104, color: false }),
        "  plan                              figure                  A            B    B/A  interval      answer\n  \
         tcp rate send 64 B 32×1 adaptive  payload rate  100.0 bit/s  120.0 bit/s  1.200  1.158..1.244  faster\n  \
         B/A over 1: B is faster. For times the ratio is inverted. Same: the whole interval within ± 3 %.\n  \
         Intervals at 95 %.\n"
    );
    let nothing = Comparison { pairs: Vec::new(), ..comparison };
    assert_eq!(comparison_table(&nothing, Style { width: 100, color: false }), "");
}

#[test]
fn the_answer_stays_on_a_narrow_terminal() {
    let document = sample::document();
    let mut other = sample::document();
    let bits = &mut other.measurements[5].rate.payload_bits_per_s;
    (bits.median, bits.low) = (bits.median * 1.001, bits.low.map(|low| 0.9 * low));
    let table = comparison_table(&compare(&document, &other), Style { width: 80, color: false });
    let rows: Vec<&str> = table.lines().take_while(|line| !line.contains("B/A over 1")).collect();
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{table}");
    assert!(rows[0].ends_with("B/A  answer       would tell"), "{table}");
    assert!(rows[1].contains("cannot tell  ") && rows[1].ends_with(" repeats"), "{table}");
}

/// Returns whether the second of two runs of one link, with so many repeats that vary by 5 %, is faster or slower for certain.
fn differs_by_chance(link: &Measurement, seed: u64, repeats: u32) -> bool {
    let mut state = seed;
    // The sum of twelve uniform numbers has the spread of 1.
    let mut normal = || {
        (0..12).fold(-6.0, |sum, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum + (state >> 11) as f64 / (1u64 << 53) as f64
        })
    };
    let mut run = || {
        let repeats: Vec<f64> = (0..repeats).map(|_| 1e9 * (1.0 + 0.05 * normal())).collect();
        let mut m = link.clone();
        m.rate.payload_bits_per_s = hodo_measure::statistics::estimate(&repeats, 95.0);
        m
    };
    matches!(pair(&run(), &run(), 0.03).answer, Answer::Faster | Answer::Slower)
}

#[test]
fn two_runs_of_one_link_seldom_differ_for_certain() {
    let link = sample::rate("tcp", Mode::Send, 64);
    for repeats in [3, 5, 6, 10] {
        let wrong = (0..300).filter(|seed| differs_by_chance(&link, *seed * 7 + 1, repeats)).count();
        assert!(wrong < 24, "{repeats} repeats: {wrong} of 300");
    }
}

#[test]
fn coalescence_that_the_driver_adapts_is_told_apart() {
    let nic = |adaptive| Nic { rx_usecs: Some(3), rx_adaptive: adaptive, ..Nic::default() };
    assert_eq!(coalescence(&nic(Some(true))).as_deref(), Some("adaptive from 3/? µs"));
    assert_eq!(coalescence(&nic(Some(false))).as_deref(), Some("3/? µs"));
    assert_eq!(coalescence(&nic(None)).as_deref(), Some("3/? µs"));
    assert_eq!(coalescence(&Nic::default()), None);
}

#[test]
fn other_marks_make_another_plan_and_other_segments_do_not() {
    let with = |connection: Connection| {
        only(Measurement { connection: Some(connection), ..sample::rate("tcp", Mode::Send, 64) })
    };
    let plain = || with(Connection { mss: Some(1448), ..Connection::default() });
    let marked = compare(&plain(), &with(Connection { dscp: Some(46), mss: Some(1448), ..Connection::default() }));
    assert_eq!((marked.pairs.len(), marked.only_in_a.len()), (0, 1));
    assert!(marked.only_in_b[0].ends_with(", DSCP 46"), "{:?}", marked.only_in_b);
    let segments = compare(&plain(), &with(Connection { mss: Some(65_483), ..Connection::default() }));
    let older = compare(&plain(), &only(sample::rate("tcp", Mode::Send, 64)));
    assert_eq!((segments.pairs.len(), older.pairs.len()), (1, 1));
}
