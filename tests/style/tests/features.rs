//! Each protocol is a feature of the catalog: each alone, and none, compiles.

use hodo_style::cargo;

const PROTOCOLS: &[&str] = &["raw", "ipbus", "farm"];

#[test]
fn each_protocol_alone_and_none_compiles() {
    for features in PROTOCOLS.iter().copied().chain([""]) {
        let _ = cargo(&[
            "check",
            "--quiet",
            "--locked",
            "--package",
            "hodo-catalog",
            "--lib",
            "--no-default-features",
            "--features",
            features,
        ]);
    }
}
