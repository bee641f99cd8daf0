//! The house rules, applied to every source file of this repository.

use hodo_style::{Complaint, Source, expect_none, has_test, root, sources};
use std::fs;

fn check(rule: fn(&Source) -> Vec<Complaint>) {
    let complaints: Vec<Complaint> = sources().iter().flat_map(rule).collect();
    expect_none(&complaints);
}

#[test]
fn files_hold_one_idea() {
    check(hodo_style::file_length);
}

#[test]
fn functions_fit_on_a_screen() {
    check(hodo_style::function_length);
}

#[test]
fn time_is_an_argument() {
    check(hodo_style::clock);
}

#[test]
fn no_test_asks_how_fast_a_machine_is() {
    check(hodo_style::operations_in_a_time);
}

#[test]
fn unsafe_code_stays_in_io() {
    check(hodo_style::unsafe_code);
}

#[test]
fn nothing_prints_with_a_macro_that_panics() {
    check(hodo_style::printing);
}

#[test]
fn what_a_user_names_is_read_within_a_bound() {
    check(hodo_style::reading);
}

#[test]
fn nothing_is_left_unfinished() {
    check(hodo_style::unfinished);
}

#[test]
fn names_are_the_fields_own() {
    check(hodo_style::names);
}

#[test]
fn a_protocol_is_named_in_its_folder_alone() {
    check(hodo_style::protocol_names);
}

#[test]
fn sentences_stand_alone() {
    check(hodo_style::sentences);
}

#[test]
fn types_are_named_for_what_they_are() {
    check(hodo_style::type_names);
}

#[test]
fn every_crate_says_what_it_is() {
    check(hodo_style::crate_docs);
}

#[test]
fn the_walk_finds_the_sources() {
    let files = sources();
    for path in ["crates/machine/src/lib.rs", "tests/style/src/lib.rs", "benches/peers/run.py"] {
        assert!(files.iter().any(|file| file.path == path), "{path} was not found");
    }
    assert!(!files.iter().any(|file| file.path.starts_with("target/")));
}

/// A test that fails and then passes alone is a fault of the test: few of them wait to be mended.
#[test]
fn few_tests_are_unsteady() {
    let list = fs::read_to_string(root().join("tests/unsteady.tsv")).expect("it is there");
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["name", "date", "what is known"]);
    assert!(rows.len() <= 9, "tests/unsteady.tsv has more than 8 rows: mend one of these tests first");
    for row in rows {
        assert!(
            row.len() == 3 && row.iter().all(|cell| !cell.is_empty()),
            "not a name, a date and what is known: {row:?}"
        );
    }
}

/// Cases of a test that were merged are listed with the test that keeps their promise.
#[test]
fn what_was_merged_is_kept() {
    let list = fs::read_to_string(root().join("tests/merged.tsv")).expect("it is there");
    for line in list.lines().skip(1) {
        let [_, kept, left] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("not three cells: {line}") };
        let (place, name) = kept.rsplit_once("::").expect("a test has a file and a name");
        // A test in Python stands in the file that it is named with; of one in Rust, the program is named.
        let is_there =
            |source: &Source| has_test(&source.text, name) && (source.path == place || !place.ends_with(".py"));
        assert!(
            !left.is_empty() && sources().iter().any(is_there),
            "{kept} is not there: say where its promise is kept"
        );
    }
}
