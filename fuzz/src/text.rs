use hodo_catalog::uri as parse;
use hodo_measure::Document;

/// Checks that a URI, once written, parses to itself.
pub fn uri(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match parse(text) {
        Ok(uri) => assert_eq!(parse(&uri.to_string()), Ok(uri)),
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

/// Checks that a result, once written, can be parsed again.
pub fn result_json(input: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Document>(input) else { return };
    let text = serde_json::to_string(&document).expect("what was parsed can be written");
    let again: Document = serde_json::from_str(&text).expect("what was written can be parsed");
    assert_eq!(again.measurements.len(), document.measurements.len());
}
