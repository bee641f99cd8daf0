//! Writes and reads the document as JSON.

use hodo_measure::{Document, OLDER_SCHEMAS, SCHEMA};
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// The longest text of a document in bytes; what is longer is cut where it is read.
pub const TEXT_MAX: usize = 4 << 10;
/// The longest histogram in bytes: several times what one takes in which every value is there.
const HISTOGRAM_MAX: usize = 1 << 20;

/// The reason that a text is not a result document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is not JSON at all, or ends early.
    #[error("not JSON at line {line}, column {column}: {what}; is this a file that `hodo bench --json` wrote in full?")]
    NotJson {
        /// Line of the mistake, from 1.
        line: usize,
        /// Column of the mistake, from 1.
        column: usize,
        /// The parser's message.
        what: String,
    },
    /// The text is JSON, but does not say that it is a result document.
    #[error("JSON, but no result: the field `schema` is missing; `hodo bench --json FILE` writes one")]
    NotAResult,
    /// The text is a result document of another version.
    #[error(
        "this is schema `{found}`, and this program reads `{SCHEMA}` and those before it; use the version of hodo that \
         wrote the file"
    )]
    OtherSchema {
        /// The version that the document names.
        found: String,
    },
    /// A field is missing, or has a wrong value.
    #[error("field `{path}`: {what}")]
    BadField {
        /// The field, as `measurements[2].rate.payload_bits_per_s`.
        path: String,
        /// The fault.
        what: String,
    },
}

/// Writes a document; a float that is not finite becomes null. Ends in a newline.
#[must_use]
pub fn to_string(document: &Document) -> String {
    let mut text =
        serde_json::to_string_pretty(document).expect("a document has string keys and no failing serializer");
    text.push('\n');
    text
}

/// Returns the JSON Schema (draft 2020-12) of the documents that [`to_string`] writes, made from their types. Ends in a newline.
#[must_use]
pub fn schema() -> String {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Document>();
    schema.insert("title".into(), format!("A result of hodo, {SCHEMA}").into());
    if let Some(version) = schema.pointer_mut("/properties/schema").and_then(Value::as_object_mut) {
        version.insert("const".into(), SCHEMA.into());
    }
    let text = serde_json::to_string_pretty(&schema).expect("a schema has string keys");
    // The comments of the types are written for rustdoc, whose links mean nothing here.
    text.replace("[`", "`").replace("`]", "`") + "\n"
}

/// Reads a document of this version or of an earlier one, which becomes one of this version. Texts in it that are longer
/// than [`TEXT_MAX`] are cut, because they come from anywhere and are printed.
///
/// # Errors
///
/// A [`JsonError`] that says what is wrong with the text, and where.
pub fn from_str(text: &str) -> Result<Document, JsonError> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| JsonError::NotJson {
        line: error.line(),
        column: error.column(),
        what: without_position(&error.to_string()),
    })?;
    cut(&mut value, TEXT_MAX);
    match value.get("schema") {
        Some(Value::String(schema)) if schema == SCHEMA => {}
        Some(Value::String(schema)) if OLDER_SCHEMAS.contains(&schema.as_str()) => upgrade(&mut value),
        Some(Value::String(schema)) => return Err(JsonError::OtherSchema { found: schema.clone() }),
        _ => return Err(JsonError::NotAResult),
    }
    let mut track = serde_path_to_error::Track::new();
    let document = Document::deserialize(serde_path_to_error::Deserializer::new(&value, &mut track))
        .map_err(|error| JsonError::BadField { path: track.path().to_string(), what: error.to_string() })?;
    Ok(Document { schema: SCHEMA.into(), ..document })
}

/// Turns a document of an earlier version into one of this version: a baseline of bare sockets is a plain loop, which is no bound of which
/// there is a share; and sides that waited by `block` polled before they slept, which is `adaptive`.
fn upgrade(document: &mut Value) {
    if let Some(wait) = document.pointer_mut("/environment/far_end/wait") {
        upgrade_wait(wait);
    }
    let Some(Value::Array(measurements)) = document.get_mut("measurements") else { return };
    for measurement in measurements {
        measurement.get_mut("wait").into_iter().for_each(upgrade_wait);
        let kind = measurement.pointer("/limit/kind").and_then(Value::as_str);
        if matches!(kind, Some("baseline" | "floor"))
            && let Some(fields) = measurement.as_object_mut()
            && let Some(share) = fields.insert("share_of_limit".into(), Value::Null)
        {
            fields.insert("times_plain_loop".into(), share);
        }
    }
}

fn upgrade_wait(wait: &mut Value) {
    if wait == "block" {
        *wait = "adaptive".into();
    }
}

/// Cuts every text in a value after `max` bytes, with an ellipsis as its end.
fn cut(value: &mut Value, max: usize) {
    match value {
        Value::String(text) if text.len() > max => {
            let end = (0..=max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            *text = format!("{}…", &text[..end]);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, max)),
        Value::Object(fields) => {
            for (name, value) in fields {
                cut(value, if name == "histogram" { HISTOGRAM_MAX } else { TEXT_MAX });
            }
        }
        _ => {}
    }
}

/// Returns the parser's message without ` at line 1 column 2`, which the error has as numbers.
fn without_position(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(what, _)| what).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figure, sample};

    #[test]
    fn comes_back_as_it_went() {
        let document = sample::document();
        assert_eq!(from_str(&to_string(&document)), Ok(document));
    }

    #[test]
    fn the_schema_in_the_documentation_is_that_of_the_types() {
        sample::snapshot("../../docs/result.schema.json", &schema());
    }

    #[test]
    fn says_that_it_is_not_json_and_where() {
        let error = from_str("{\"schema\":\n oops}").unwrap_err();
        assert_eq!(error, JsonError::NotJson { line: 2, column: 2, what: "expected value".into() });
        assert!(error.to_string().starts_with("not JSON at line 2, column 2: expected value;"));
    }

    #[test]
    fn says_that_it_is_no_result_or_another_version() {
        assert_eq!(from_str("[1, 2]"), Err(JsonError::NotAResult));
        assert_eq!(from_str("{}"), Err(JsonError::NotAResult));
        let other = from_str("{\"schema\": \"hodo.result/4\"}").unwrap_err();
        assert_eq!(other, JsonError::OtherSchema { found: "hodo.result/4".into() });
    }

    /// A row of each kind that versions 1 and 2 wrote, and the same made by this program. What they call `block` polls before it
    /// sleeps, so that the plans are those of `adaptive`.
    #[test]
    fn documents_of_earlier_versions_are_read_for_ever() {
        let texts =
            [include_str!("../../../tests/report/sample-1.json"), include_str!("../../../tests/report/sample-2.json")];
        for text in texts {
            let old = from_str(text).expect("a version that is read");
            let new = sample::document();
            assert_eq!((old.schema.as_str(), old.measurements.len()), (SCHEMA, 7));
            for old in &old.measurements {
                let plan = figure::plan_text(old);
                let new = new.measurements.iter().find(|new| figure::plan_text(new) == plan).expect("the same row");
                let kind = |m: &hodo_measure::Measurement| m.limit.as_ref().map(|limit| (limit.kind, limit.binds));
                assert_eq!((kind(old), &old.rate, old.loss), (kind(new), &new.rate, new.loss));
                let reached = |m: &hodo_measure::Measurement| (m.share_of_limit, m.times_plain_loop);
                assert_eq!(reached(old), reached(new), "{plan}");
            }
            let far_wait = |document: &Document| document.environment.far_end.clone().and_then(|far| far.wait);
            assert!(far_wait(&old).is_none_or(|wait| wait == "adaptive"));
            let comparison = crate::compare(&old, &new, 0.03);
            assert_eq!(comparison.pairs.len(), old.measurements.len());
            assert!(comparison.pairs.iter().all(|pair| pair.ratio == Some(1.0)));
        }
    }

    #[test]
    fn names_the_field_that_is_missing_or_wrong() {
        let mut value = serde_json::to_value(sample::document()).unwrap();
        value["measurements"][1]["rate"]["operations_per_s"].as_object_mut().unwrap().remove("median");
        let error = from_str(&value.to_string()).unwrap_err();
        assert_eq!(error.to_string(), "field `measurements[1].rate.operations_per_s`: missing field `median`");

        let mut value = serde_json::to_value(sample::document()).unwrap();
        value["measurements"][0]["window"] = "many".into();
        let error = from_str(&value.to_string()).unwrap_err();
        assert!(error.to_string().starts_with("field `measurements[0].window`: invalid type"), "{error}");
    }

    #[test]
    fn a_text_of_any_length_is_cut_and_a_histogram_that_can_be_is_whole() {
        let mut document = sample::document();
        let one = &mut document.measurements[0];
        one.link = "é".repeat(1 << 20);
        one.protocol = "p".repeat(TEXT_MAX);
        let latency = document.measurements.iter_mut().find_map(|one| one.latency_ns.as_mut()).expect("a latency");
        latency.histogram = "A".repeat(HISTOGRAM_MAX);
        let read = from_str(&to_string(&document)).unwrap();
        let link = &read.measurements[0].link;
        assert!(link.ends_with("é…") && link.len() <= TEXT_MAX + '…'.len_utf8(), "{}", link.len());
        assert_eq!(read.measurements[0].protocol.len(), TEXT_MAX);
        assert_eq!(read.measurements.iter().find_map(|one| one.latency_ns.as_ref()), {
            document.measurements.iter().find_map(|one| one.latency_ns.as_ref())
        });
        let other = serde_json::json!({ "schema": "s".repeat(1 << 20) }).to_string();
        assert!(from_str(&other).unwrap_err().to_string().len() < 2 * TEXT_MAX);
        let mut value = serde_json::to_value(sample::document()).unwrap();
        value["measurements"][0]["mode"] = "m".repeat(1 << 20).into();
        assert!(from_str(&value.to_string()).unwrap_err().to_string().len() < 2 * TEXT_MAX);
    }

    #[test]
    fn a_float_that_is_not_finite_is_written_as_null() {
        let mut document = sample::document();
        document.measurements[0].share_of_limit = Some(f64::NAN);
        document.measurements[0].rate.payload_bits_per_s.high = Some(f64::INFINITY);
        let text = to_string(&document);
        assert!(!text.contains("NaN") && !text.contains("inf"));
        let read = from_str(&text).unwrap();
        assert_eq!(read.measurements[0].share_of_limit, None);
        assert_eq!(read.measurements[0].rate.payload_bits_per_s.high, None);
    }
}
