use super::*;
use crate::sample;

fn drawn(m: &Measurement) -> Bars {
    let mut drawn = waterfalls(&[m]);
    assert_eq!(drawn.len(), 1);
    drawn.remove(0)
}

/// Returns the class, the left edge and the width of each bar.
fn bars(svg: &str) -> Vec<(String, f64, f64)> {
    let attribute = |rect: &str, name: &str| {
        let from = rect.split_once(&format!(r#" {name}=""#)).expect("an attribute").1;
        from.split_once('"').expect("an end").0.to_owned()
    };
    let number = |rect: &str, name: &str| attribute(rect, name).parse::<f64>().expect("a number");
    let rects = svg.split("<rect").skip(1);
    rects.map(|rect| (attribute(rect, "class"), number(rect, "x"), number(rect, "width"))).collect()
}

#[test]
fn each_bar_begins_where_the_last_one_ended() {
    let m = sample::latency(64);
    let Bars { svg, keys, .. } = drawn(&m);
    let bars = bars(&svg);
    let places: Vec<&str> = bars.iter().map(|bar| bar.0.split(' ').nth(1).expect("a place")).collect();
    let order = ["here", "here", "around", "between", "far", "far", "between", "here", "around"];
    assert_eq!(places, order);
    let (around, whole) = (&bars[2], &bars[8]);
    for pair in [0, 1, 3, 4, 5].map(|at| (&bars[at], &bars[at + 1])) {
        assert!((pair.0.1 + pair.0.2 - pair.1.1).abs() < 0.01, "{pair:?}");
    }
    let end = |bar: &(String, f64, f64)| bar.1 + bar.2;
    assert!((bars[3].1 - around.1).abs() < 0.01 && (end(&bars[6]) - end(around)).abs() < 0.01);
    assert!((bars[7].1 - end(around)).abs() < 0.01 && (end(&bars[7]) - end(whole)).abs() < 0.01);
    assert!(whole.1.abs() < 0.01 && (around.2 / whole.2 - 0.62).abs() < 1e-3);
    let labels: Vec<&str> = keys.iter().map(|key| key.label.as_str()).collect();
    assert_eq!(labels, ["here", "far end", "between, drawn as two halves"]);
}

#[test]
fn a_row_has_its_figures_and_the_last_one_those_of_the_whole() {
    let svg = drawn(&sample::latency(64)).svg;
    for text in [">network, waking, out<", ">network, waking, back<", ">979 ns<", ">16.0 %<", ">together<", ">100.0 %<"]
    {
        assert!(svg.contains(text), "{text} in {svg}");
    }
    assert!(svg.find(">network, waking, out<") < svg.find(">network, waking, back<"));
    assert!(svg.contains(">0<") && svg.contains(">2 µs<"), "an axis: {svg}");
}

#[test]
fn a_stage_of_no_time_is_seen_and_a_long_tail_does_not_shrink_the_rest() {
    let mut m = sample::latency(64);
    m.stages[0].share = 0.0;
    m.stages[1].p99_ns = Some(10_000_000);
    let bars = bars(&drawn(&m).svg);
    assert!((bars[0].2 - NARROWEST).abs() < 1e-3);
    assert!(bars[8].2 > WIDTH * 0.6, "{bars:?}");
    assert!(bars.iter().all(|bar| bar.1 + bar.2 <= WIDTH + 0.01));
}

#[test]
fn stages_of_one_side_alone_have_one_colour() {
    let mut m = sample::latency(64);
    m.stages.retain(|stage| stage.side == Side::Local);
    let Bars { svg, keys, .. } = drawn(&m);
    assert_eq!((keys.len(), bars(&svg).len()), (1, 5));
}

#[test]
fn what_cannot_be_drawn_is_left_out() {
    let mut m = sample::latency(64);
    m.stages.iter_mut().for_each(|stage| (stage.mean_ns, stage.share) = (0.0, 0.0));
    assert!(waterfalls(&[&m]).is_empty());
    m.stages.clear();
    assert!(waterfalls(&[&m]).is_empty());
}

#[test]
fn a_long_name_ends_before_the_figures() {
    let name = fitted(&"decode, source, encode and ".repeat(9), NAME_RIGHT);
    assert!(name.ends_with('…') && text_width(&name, LABEL.size) <= NAME_RIGHT + LABEL.size, "{name}");
    assert_eq!(fitted("send", NAME_RIGHT), "send");
}
