//! One self-contained page: works offline, asks nothing of the network, escapes every name.

use crate::distribution::percentiles;
use crate::figure;
use crate::layout::clean;
use hodo_measure::Document;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../html/page.html");
const STYLE: &str = include_str!("../html/page.css");
const SCRIPT: &str = concat!(
    "'use strict';\n",
    include_str!("../html/chart.js"),
    include_str!("../html/stages.js"),
    include_str!("../html/nodes.js"),
    include_str!("../html/page.js"),
    include_str!("../html/full.js")
);

/// A table beside the measurements, of what they have no place for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// What it is of.
    pub title: String,
    /// What it says, in a sentence.
    pub note: String,
    /// The heads of its columns; the first one names the rows.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// The page, complete in one file: style, script and data are inside.
///
/// The data is the document as JSON, without the stored histograms; their curves stand beside it as points.
#[must_use]
pub fn html(document: &Document) -> String {
    html_with(document, &[])
}

/// The page with tables of more.
#[must_use]
pub fn html_with(document: &Document, tables: &[Table]) -> String {
    let data = data(document, tables);
    let title = escape_markup(&title(document));
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + data.len());
    let mut rest = PAGE;
    while let Some((before, from_name)) = rest.split_once("{{") {
        let (name, after) = from_name.split_once("}}").expect("the template closes what it opens");
        page.push_str(before);
        page.push_str(match name {
            "title" => &title,
            "style" => STYLE,
            "data" => &data,
            "script" => SCRIPT,
            other => unreachable!("the template names {other}"),
        });
        rest = after;
    }
    page.push_str(rest);
    page
}

fn title(document: &Document) -> String {
    let mut protocols: Vec<String> = Vec::new();
    for protocol in document.measurements.iter().map(figure::protocol_text) {
        if !protocols.contains(&protocol) {
            protocols.push(protocol);
        }
    }
    let parts = [Some(protocols.join(", ")), document.environment.host.clone()];
    let known: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    clean(&format!("Hodoscope: {}", known.join(" on ")))
}

fn data(document: &Document, tables: &[Table]) -> String {
    let mut value = serde_json::to_value(document).expect("a document has string keys and no failing serializer");
    for measurement in value["measurements"].as_array_mut().into_iter().flatten() {
        if let Some(latency) = measurement["latency_ns"].as_object_mut() {
            latency.remove("histogram");
        }
        if measurement["seed"].as_u64().is_some_and(|seed| seed > SAFE_INTEGER_MAX) {
            measurement["seed"] = Value::String(measurement["seed"].to_string());
        }
    }
    let curves: Vec<Vec<[f64; 2]>> = document
        .measurements
        .iter()
        .map(|m| m.latency_ns.as_ref().map_or_else(Vec::new, |latency| curve(&latency.histogram)))
        .collect();
    let table = |Table { title, note, columns, rows }: &Table| json!({ "title": title, "note": note, "columns": columns, "rows": rows });
    let tables: Vec<Value> = tables.iter().map(table).collect();
    escape_script(&json!({ "document": value, "curves": curves, "tables": tables }).to_string())
}

/// Above this, JavaScript's numbers are no longer exact.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

fn curve(histogram: &str) -> Vec<[f64; 2]> {
    percentiles(histogram).into_iter().map(|point| [1.0 / (1.0 - point.share), point.time_ns]).collect()
}

/// JSON that cannot end the script element it stands in, nor break a line of it.
fn escape_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn embedded(page: &str) -> Value {
        let from = page.split_once(r#"id="data">"#).unwrap().1;
        serde_json::from_str(from.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn holds_the_document_and_its_curves() {
        let document = sample::document();
        let value = embedded(&html(&document));
        assert_eq!(value["document"]["measurements"].as_array().unwrap().len(), document.measurements.len());
        assert_eq!(
            value["document"]["measurements"][0]["latency_ns"]["p50"],
            document.measurements[0].latency_ns.as_ref().unwrap().p50
        );
        assert!(value["document"]["measurements"][0]["latency_ns"].get("histogram").is_none());
        assert!(value["curves"][0].as_array().unwrap().len() > 50);
    }

    #[test]
    fn no_name_becomes_markup_or_ends_the_script() {
        let mut document = sample::document();
        let hostile = "</script><script>alert(1)</script><!--{{script}}\u{2028}&\"'";
        document.measurements[0].link = hostile.into();
        document.measurements[0].protocol = hostile.into();
        document.environment.host = Some(hostile.into());
        let page = html(&document);
        assert_eq!(page.matches("<script").count(), 2, "the data and the program");
        let data = page.split_once(r#"id="data">"#).unwrap().1.split_once("</script>").unwrap().0;
        assert!(!data.contains(['<', '>', '&', '\u{2028}']) && !page.contains("<!--"));
        assert_eq!(embedded(&page)["document"]["measurements"][0]["link"], hostile);
    }

    #[test]
    fn tables_stand_beside_the_measurements() {
        let row = vec!["0".to_owned(), "</script>".to_owned()];
        let columns = vec!["node".to_owned(), "events".to_owned()];
        let table = Table { title: "Nodes".to_owned(), note: "One.".to_owned(), columns, rows: vec![row] };
        let value = embedded(&html_with(&sample::document(), &[table]));
        assert_eq!(value["tables"][0]["rows"][0][1], "</script>");
        assert_eq!(embedded(&html(&sample::document()))["tables"].as_array().map(Vec::len), Some(0));
    }

    #[test]
    fn the_template_files_cannot_end_their_element_and_name_no_address() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
        let addresses = html(&Document { measurements: Vec::new(), ..sample::document() });
        let addresses: Vec<&str> = addresses.match_indices("://").map(|(at, _)| &addresses[at - 5..at + 20]).collect();
        assert!(addresses.iter().all(|address| address.contains("www.w3.org")), "{addresses:?}");
    }

    #[test]
    fn a_large_seed_stays_exact_and_what_is_not_finite_is_null() {
        let mut document = sample::document();
        document.measurements[0].seed = u64::MAX;
        document.measurements[0].share_of_limit = Some(f64::NAN);
        let value = embedded(&html(&document));
        assert_eq!(value["document"]["measurements"][0]["seed"], "18446744073709551615");
        assert!(value["document"]["measurements"][0]["share_of_limit"].is_null());
    }
}
