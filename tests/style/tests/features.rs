//! Each protocol is a feature of the catalog and of the command: each alone, and none, compiles.

use hodo_style::cargo;

const PROTOCOLS: &[&str] = &["raw", "ipbus", "farm"];

#[test]
fn each_protocol_alone_and_none_compiles() {
    for protocol in PROTOCOLS.iter().copied().chain([""]) {
        let features =
            if protocol.is_empty() { String::new() } else { format!("hodo-catalog/{protocol},hodo-cli/{protocol}") };
        let packages = ["--package", "hodo-catalog", "--package", "hodo-cli", "--lib", "--bins"];
        let check =
            ["check", "--quiet", "--locked", "--profile", "gate", "--no-default-features", "--features", &features];
        let _ = cargo(&[&check[..], &packages[..]].concat());
    }
}
