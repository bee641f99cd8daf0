use super::*;
use crate::sample;

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn a_picture_has_a_panel_for_every_test_with_something_to_show() {
    let document = sample::document();
    let rate = svg(Picture::Rate, &document).unwrap();
    assert!(rate.contains(">tcp · rate<") && rate.contains(">udp · rate<"));
    assert_eq!(count(&rate, ">limit (plain loop)<"), 6);
    let operations = svg(Picture::Operations, &document).unwrap();
    assert_eq!(count(&operations, ">Average time<"), 6);
    let cpu = svg(Picture::Cpu, &document).unwrap();
    for title in [">CPU of the machine<", ">CPU of this process<", ">CPU of the far end<"] {
        assert!(cpu.contains(title), "{title}");
    }
    assert!(count(&cpu, ">50 %<") >= 3, "a low chart has more than its zero");
    let distribution = svg(Picture::Distribution, &document).unwrap();
    assert!(distribution.contains(">99.99 %<"));
    assert!(svg(Picture::OverTime, &document).unwrap().contains(">2 s<"));
    assert!(svg(Picture::Latency, &document).unwrap().contains("band up to p99"));
}

#[test]
fn a_simulation_has_its_speed_where_a_link_has_cpu() {
    let measurements = vec![sample::simulated(64), sample::simulated(1024)];
    let document = hodo_measure::Document { measurements, ..sample::document() };
    for picture in [Picture::Rate, Picture::Cpu] {
        let drawn = svg(picture, &document).unwrap();
        assert!(drawn.contains(">This host<") && drawn.contains("2 ×"), "{picture:?}");
        assert!(!drawn.contains(">CPU<") && !drawn.contains(">CPU of the machine<"), "{picture:?}");
    }
}

#[test]
fn a_row_alone_and_beside_another_are_told_apart() {
    let alone = sample::rate("tcp", hodo_measure::Mode::Send, 64);
    let mut under = alone.clone();
    under.beside = Some(hodo_measure::Beside::of(&alone));
    assert!(crate::figure::plan_text(&under).ends_with(" beside tcp rate send"));
    let document = hodo_measure::Document { measurements: vec![alone, under], ..sample::document() };
    let drawn = svg(Picture::OverTime, &document).unwrap();
    assert!(drawn.contains(">alone<") && drawn.contains(">beside tcp rate send<"), "{drawn}");
    let page = crate::html(&document);
    assert!(page.contains(">nothing<") && page.contains(">tcp rate send<"));
}

/// Takes a row on its limit, whose dashes would be hidden under it.
#[test]
fn a_limit_is_seen_under_a_curve_that_reaches_it() {
    let drawn = svg(Picture::Rate, &sample::document()).unwrap();
    assert_eq!(count(&drawn, r#"class="trail""#), count(&drawn, r#"class="limit""#));
}

#[test]
fn every_file_names_host_kernel_date_and_commit() {
    let mut document = sample::document();
    let pictures = |document: &hodo_measure::Document| {
        let mut all: Vec<String> = Picture::ALL.into_iter().filter_map(|picture| svg(picture, document)).collect();
        all.extend(sheet(document));
        all
    };
    for picture in pictures(&document) {
        assert!(picture.contains(">bench1 · 6.1.0-18-amd64 · Example CPU at 2.9 GHz<"), "{}", &picture[..600]);
        assert!(picture.contains(">2024-05-17T09:30:00Z · hodo 0.1.0, commit 0123abc<"), "{}", &picture[..600]);
    }
    (document.environment.host, document.tool.commit) = (None, None);
    assert!(pictures(&document).iter().all(|picture| picture.contains(">unknown · 6.1.0")));
}

#[test]
fn nothing_measured_is_no_picture() {
    let mut measurement = sample::rate("tcp", hodo_measure::Mode::Send, 64);
    measurement.latency_ns = None;
    measurement.intervals.clear();
    let mut document = hodo_measure::Document { measurements: vec![measurement], ..sample::document() };
    assert!(Picture::ALL.into_iter().all(|picture| svg(picture, &document).is_none()));
    document.measurements.clear();
    assert!(svg(Picture::Rate, &document).is_none());
    assert!(sheet(&document).is_none());
}

#[test]
fn figures_that_are_not_finite_leave_no_trace() {
    let mut document = sample::document();
    for m in &mut document.measurements {
        m.rate.payload_bits_per_s.median = f64::NAN;
        m.limit.as_mut().unwrap().payload_bits_per_s = Some(f64::INFINITY);
    }
    let drawn = sheet(&document).unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("inf\""));
}

#[test]
fn names_are_no_markup() {
    let mut document = sample::document();
    for m in &mut document.measurements {
        m.protocol = "<script>alert(1)</script>\u{0}&".into();
        m.wait = format!("<b>{}", m.wait);
    }
    let drawn = sheet(&document).unwrap();
    assert!(!drawn.contains("<script") && !drawn.contains("<b>") && !drawn.contains('\u{0}'));
    assert!(png(&drawn, 0.2).is_ok());
}

#[test]
fn a_sheet_becomes_a_png_with_its_text() {
    let drawn = sheet(&sample::document()).unwrap();
    let bytes = png(&drawn, 0.5).unwrap();
    assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
    let without_text = drawn.lines().filter(|line| !line.starts_with("<text")).collect::<Vec<_>>().join("\n");
    assert!(png(&without_text, 0.5).unwrap().len() < bytes.len() * 3 / 4, "the text is missing");
    assert!(matches!(png("no", 1.0), Err(PlotError::NotSvg(_))));
    assert!(matches!(png(&drawn, 1000.0), Err(PlotError::BadSize { .. })));
}
