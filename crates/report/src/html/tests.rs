use super::*;
use crate::sample;
use serde_json::Value;

fn embedded(page: &str) -> Value {
    let from = page.split_once(r#"type="application/json">"#).unwrap().1;
    serde_json::from_str(from.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn holds_the_document_and_its_curves() {
    let document = sample::document();
    let page = html(&document);
    let value = embedded(&page);
    assert_eq!(value["measurements"].as_array().unwrap().len(), document.measurements.len());
    assert_eq!(
        value["measurements"][0]["latency_ns"]["p50"],
        document.measurements[0].latency_ns.as_ref().unwrap().p50
    );
    assert_eq!(value["measurements"][0]["latency_ns"]["histogram"], "");
    let figure = page.split_once("<h3>Distribution of times</h3>").unwrap().1;
    let curve = figure.split_once(r#"<path class="curve" d=""#).unwrap().1.split_once('"').unwrap().0;
    assert!(curve.matches('L').count() > 50, "{curve}");
}

#[test]
fn a_search_has_its_answer_and_its_curve() {
    let point = |rate: f64, held: bool| hodo_measure::LoadPoint {
        rate,
        operations_per_s: rate,
        p50_ns: Some(20_000),
        p99_ns: Some(if held { 90_000 } else { 3_000_000 }),
        lost: 0,
        repeats: 2,
        repeats_held: if held { 2 } else { 0 },
        held,
        missed: (!held).then(|| "p99<1ms is not met".to_owned()),
    };
    let curve = vec![point(10e3, true), point(20e3, true), point(22e3, false)];
    let slo = hodo_measure::Slo::new("udp://there", vec!["p99<1ms".to_owned()], 21e3, curve);
    let page = html(&Document { slo: Some(slo), ..sample::document() });
    assert!(page.contains("p99&lt;1ms holds up to 20.00 k/s") && page.contains("<h3>Times over load</h3>"));
    assert!(page.contains("0 of 2"));
    assert!(!html(&sample::document()).contains("Times over load"));
}

/// Returns the value and the line under it of the card of the only test.
fn card_of(rows: Vec<hodo_measure::Measurement>) -> (String, String) {
    let page = html(&Document { measurements: rows, ..sample::document() });
    let within = |class: &str| {
        let from = page.split_once(&format!(r#"<span class="{class}">"#)).expect("a card").1;
        from.split_once("</span>").expect("an end").0.to_owned()
    };
    (within("value"), within("about"))
}

#[test]
fn a_card_quotes_the_size_that_its_test_is_about() {
    let row = |size, state| {
        let mut m = sample::rate("tcp", hodo_measure::Mode::Send, size);
        m.verdict.state = state;
        m
    };
    let mut lucky = row(64, State::Stable);
    lucky.rate.payload_bits_per_s.median = 99e9;
    let rows = vec![lucky, row(32_768, State::Stable), row(32_768, State::Noisy)];
    assert_eq!(card_of(rows), ("40.96 Gbit/s".into(), "at 32 KiB, 0.94 × plain loop".into()));
    let rows = vec![row(32_768, State::Stable), row(1 << 20, State::Drifting)];
    assert_eq!(card_of(rows), ("not stable".into(), "49.66 Gbit/s at 1 MiB, drifting".into()));
    let mut over = row(1 << 20, State::Stable);
    let limit = over.limit.as_mut().expect("the sample has one");
    (limit.kind, limit.binds) = (hodo_measure::LimitKind::Line, hodo_measure::Binding::Line);
    over.share_of_limit = Some(2.47);
    assert_eq!(card_of(vec![over]).1, "49.66 Gbit/s at 1 MiB, over the line's limit");
    assert_eq!(card_of(vec![row(64, State::Failed)]).1, "nothing measured");
    let times = [64, 32_768].map(sample::latency).to_vec();
    assert!(card_of(times).1.starts_with("p50 at 64 B"));
}

#[test]
fn a_page_begins_with_what_the_run_showed() {
    use hodo_measure::{Binding, Confidence, Diagnosis, Experiment};
    let mut said = Diagnosis {
        bottleneck: Binding::Window,
        confidence: Confidence::High,
        evidence: vec!["two of <three> fit".to_owned()],
        experiments: Vec::new(),
        advice: "To try: more in flight.".to_owned(),
    };
    let of = |said: &Diagnosis| html(&Document { diagnosis: Some(said.clone()), ..sample::document() });
    let page = of(&said);
    let (before, rest) = page.split_once("In short").expect("a summary");
    assert!(
        !before.contains("Measurements")
            && rest.contains("<p>Two of &lt;three&gt; fit</p><p>To try: more in flight.</p>")
    );
    said.experiments = vec![Experiment { change: "window 1 -> 2".to_owned(), predicted: 2000.0, found: 1900.0 }];
    let page = of(&said);
    assert!(
        page.contains("`window` is the bottleneck, and an experiment confirms it.") && page.contains("<td>95.0 %</td>"),
        "{page}"
    );
    assert!(!html(&sample::document()).contains(r#"id="summary""#));
}

#[test]
fn no_name_becomes_markup_or_ends_the_script() {
    let mut document = sample::document();
    let hostile = "</script><script>alert(1)</script><!--{{script}}\u{2028}&\"'";
    document.measurements[0].link = hostile.into();
    document.measurements[0].protocol = hostile.into();
    document.measurements[0].wait = hostile.into();
    document.environment.host = Some(hostile.into());
    let page = html(&document);
    assert_eq!(page.matches("<script").count(), 2, "the data and the program");
    let data = page.split_once(r#"type="application/json">"#).unwrap().1.split_once("</script>").unwrap().0;
    assert!(!data.contains(['<', '>', '&', '\u{2028}']) && !page.contains("<!--"));
    assert_eq!(embedded(&page)["measurements"][0]["link"], hostile);
}

#[test]
fn tables_stand_beside_the_measurements() {
    let row = vec!["0".to_owned(), "</script>".to_owned()];
    let columns = vec!["node".to_owned(), "events".to_owned()];
    let table = Table { title: "Nodes".to_owned(), note: "One.".to_owned(), columns, rows: vec![row] };
    let page = html_with(&sample::document(), &[table]);
    assert!(page.contains(r#"<tr><td>0</td><td class="left">&lt;/script&gt;</td></tr>"#));
    assert!(html(&sample::document()).contains(r#"<div id="tables"></div>"#));
}

#[test]
fn style_and_script_cannot_end_their_element_and_name_no_address() {
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
    let page = html(&Document { measurements: Vec::new(), ..sample::document() });
    let addresses: Vec<&str> = page.match_indices("://").map(|(at, _)| &page[at - 5..at + 20]).collect();
    assert!(addresses.iter().all(|address| address.contains("www.w3.org")), "{addresses:?}");
}

#[test]
fn a_large_seed_stays_exact_and_what_is_not_finite_is_null() {
    let mut document = sample::document();
    document.measurements[0].seed = u64::MAX;
    document.measurements[0].share_of_limit = Some(f64::NAN);
    let page = html(&document);
    let read = page.split_once("<script").unwrap().0;
    assert!(read.contains("<dt>seed</dt><dd>18446744073709551615</dd>") && !read.contains("NaN"));
    let value = embedded(&page);
    assert_eq!(value["measurements"][0]["seed"], u64::MAX);
    assert!(value["measurements"][0]["share_of_limit"].is_null());
}

/// A reader without JavaScript sees every plot and every row.
#[test]
fn nothing_needs_the_script() {
    let document = sample::document();
    let page = html(&document);
    assert_eq!(page.matches(r#"<section class="group""#).count(), 6);
    assert_eq!(page.matches("<tr title=").count(), document.measurements.len());
}
