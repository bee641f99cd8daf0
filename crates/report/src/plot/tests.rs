use super::drawing::{Anchor, Area, Drawing, Font, INK, OWN, Shape, Stroke};
use super::*;
use crate::sample;
use tiny_skia::Pixmap;

fn drawn(what: Picture, document: &hodo_measure::Document) -> Option<String> {
    Some(picture(what, document)?.svg())
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn a_picture_has_a_panel_for_every_test_with_something_to_show() {
    let document = sample::document();
    let rate = drawn(Picture::Rate, &document).unwrap();
    assert!(rate.contains(">tcp · rate<") && rate.contains(">udp · rate<"));
    assert_eq!(count(&rate, ">limit (plain loop)<"), 6);
    let operations = drawn(Picture::Operations, &document).unwrap();
    assert_eq!(count(&operations, ">Average time<"), 6);
    let cpu = drawn(Picture::Cpu, &document).unwrap();
    for title in [">CPU of the machine<", ">CPU of this process<", ">CPU of the far end<"] {
        assert!(cpu.contains(title), "{title}");
    }
    assert!(count(&cpu, ">50 %<") >= 3, "a low chart has more than its zero");
    let distribution = drawn(Picture::Distribution, &document).unwrap();
    assert!(distribution.contains(">99.99 %<"));
    assert!(drawn(Picture::OverTime, &document).unwrap().contains(">2 s<"));
    assert!(drawn(Picture::Latency, &document).unwrap().contains("band up to p99"));
}

#[test]
fn a_simulation_has_its_speed_where_a_link_has_cpu() {
    let measurements = vec![sample::simulated(64), sample::simulated(1024)];
    let document = hodo_measure::Document { measurements, ..sample::document() };
    for picture in [Picture::Rate, Picture::Cpu] {
        let drawn = drawn(picture, &document).unwrap();
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
    let drawn = drawn(Picture::OverTime, &document).unwrap();
    assert!(drawn.contains(">alone<") && drawn.contains(">beside tcp rate send<"), "{drawn}");
    let page = crate::html(&document);
    assert!(page.contains(">nothing<") && page.contains(">tcp rate send<"));
}

/// Takes a row on its limit, whose dashes would be hidden under it.
#[test]
fn a_limit_is_seen_under_a_curve_that_reaches_it() {
    let drawn = drawn(Picture::Rate, &sample::document()).unwrap();
    assert_eq!(count(&drawn, r#"class="trail""#), count(&drawn, r#"class="limit""#));
}

#[test]
fn every_file_names_host_kernel_date_and_commit() {
    let mut document = sample::document();
    let pictures = |document: &hodo_measure::Document| {
        let mut all: Vec<String> = Picture::ALL.into_iter().filter_map(|picture| drawn(picture, document)).collect();
        all.extend(sheet(document).map(|sheet| sheet.svg()));
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
    assert!(Picture::ALL.into_iter().all(|picture| drawn(picture, &document).is_none()));
    document.measurements.clear();
    assert!(drawn(Picture::Rate, &document).is_none());
    assert!(sheet(&document).is_none());
}

#[test]
fn figures_that_are_not_finite_leave_no_trace() {
    let mut document = sample::document();
    for m in &mut document.measurements {
        m.rate.payload_bits_per_s.median = f64::NAN;
        m.limit.as_mut().unwrap().payload_bits_per_s = Some(f64::INFINITY);
    }
    let drawn = sheet(&document).unwrap().svg();
    assert!(!drawn.contains("NaN") && !drawn.contains("inf\""));
}

#[test]
fn names_are_no_markup() {
    let mut document = sample::document();
    for m in &mut document.measurements {
        m.protocol = "<script>alert(1)</script>\u{0}&".into();
        m.wait = format!("<b>{}", m.wait);
    }
    let sheet = sheet(&document).unwrap();
    let drawn = sheet.svg();
    assert!(!drawn.contains("<script") && !drawn.contains("<b>") && !drawn.contains('\u{0}'));
    assert!(sheet.png(0.2).is_ok());
}

#[test]
fn a_sheet_becomes_a_png_with_its_text() {
    let mut sheet = sheet(&sample::document()).unwrap();
    let bytes = sheet.png(0.5).unwrap();
    assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
    assert!(matches!(sheet.png(1000.0), Err(PlotError::BadSize { .. })));
    assert!(matches!(sheet.png(0.0), Err(PlotError::BadSize { .. })));
    sheet.drawing.shapes.retain(|shape| !matches!(shape, Shape::Text { .. }));
    assert!(sheet.png(0.5).unwrap().len() < bytes.len() * 3 / 4, "the text is missing");
}

/// Paints a drawing of 100 by 100 units at two pixels a unit.
fn painted(draw: impl FnOnce(&mut Drawing)) -> Pixmap {
    let mut drawing = Drawing::default();
    draw(&mut drawing);
    Pixmap::decode_png(&png::file(&drawing, 100.0, 100.0, 2.0).unwrap()).unwrap()
}

/// Returns the colour at a place in units.
fn color_at(pixels: &Pixmap, x: f64, y: f64) -> [u8; 3] {
    let color = pixels.pixel((x * 2.0) as u32, (y * 2.0) as u32).unwrap();
    [color.red(), color.green(), color.blue()]
}

#[test]
fn shapes_are_painted_as_they_are_written() {
    const WHITE: [u8; 3] = [255; 3];
    let dashed = Stroke { class: "limit", color: OWN, width: 2.0, dashes: "10 10" };
    let pixels = painted(|drawing| {
        drawing.series("", 1, None, |drawing| {
            drawing.path(&[(20.0, 10.0), (95.0, 10.0)], dashed);
            drawing.band(&[(10.0, 20.0), (90.0, 20.0), (90.0, 40.0), (10.0, 40.0)]);
            drawing.dot((50.0, 60.0));
        });
        drawing.bar("node", 0, Area { left: 10.0, top: 80.0, width: 80.0, height: 10.0 }, "");
    });
    let orange = [0xd5, 0x5e, 0x00];
    assert_eq!([25.0, 45.0].map(|x| color_at(&pixels, x, 10.0)), [orange; 2]);
    assert_eq!([35.0, 55.0].map(|x| color_at(&pixels, x, 10.0)), [WHITE; 2], "between dashes");
    assert_eq!(color_at(&pixels, 50.0, 30.0), [248, 229, 214], "a band is pale");
    assert_eq!([15.0, 45.0].map(|y| color_at(&pixels, 50.0, y)), [WHITE; 2], "and ends at its outline");
    assert_eq!(color_at(&pixels, 50.0, 60.0), orange);
    assert_eq!(color_at(&pixels, 50.0, 85.0), [0x00, 0x72, 0xb2]);
}

#[test]
fn a_text_is_painted_at_its_anchor_and_a_character_without_a_glyph_leaves_a_gap() {
    let font = Font { class: "label", size: 12.0, bold: false, color: INK };
    let inked = |anchor, text: &str| {
        let pixels = painted(|drawing| drawing.text((50.0, 50.0), anchor, font, text));
        let is_inked = |column: &u32| (0..200).any(|row| pixels.pixel(*column, row).unwrap().red() < 128);
        let columns: Vec<u32> = (0..200).filter(is_inked).collect();
        (f64::from(columns[0]) / 2.0, f64::from(columns[columns.len() - 1]) / 2.0)
    };
    let (start, middle, end) = (inked(Anchor::Start, "HIH"), inked(Anchor::Middle, "HIH"), inked(Anchor::End, "HIH"));
    assert!(start.0 >= 50.0 && end.1 <= 50.0, "{start:?} {end:?}");
    assert!((middle.0 + middle.1 - 100.0).abs() <= 1.0, "{middle:?}");
    assert!(inked(Anchor::Start, "HI電H").1 > start.1 + 2.0);
}
