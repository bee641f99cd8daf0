//! A program of twenty lines measures any link of the catalog.
#[path = "../examples/bench.rs"]
mod bench;

#[test]
fn the_example_measures_links() {
    for link in ["udp", "pva"] {
        let table = bench::table(link).unwrap_or_else(|error| panic!("{link}: {error}"));
        assert!(table.contains("latency"), "{table}");
    }
}

#[test]
fn a_far_end_that_is_another_daemon_names_it() {
    let error = bench::table("chtcp-2.0").expect_err("a hub is no thread").to_string();
    assert!(error.contains("hodo hub") && error.contains("program"), "{error}");
}
