use super::*;

fn lines(complaints: &[Complaint]) -> Vec<usize> {
    complaints.iter().map(|complaint| complaint.line).collect()
}

fn rust(text: &str) -> Source {
    Source::new("protocols/raw/machines/src/a.rs", text)
}

#[test]
fn a_file_is_measured_without_its_tests() {
    let code = "const A: u8 = 1;\n".repeat(590);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// line\n".repeat(200));
    assert!(file_length(&rust(&format!("{code}{tests}"))).is_empty());
    assert_eq!(lines(&file_length(&rust(&code.repeat(2)))), [1]);
    assert!(file_length(&Source::new("protocols/raw/machines/src/a/tests.rs", &code.repeat(2))).is_empty());
    assert!(file_length(&rust(&format!("#[cfg(test)]\nmod tests;\n{code}"))).is_empty());
    assert_eq!(file_length(&Source::new("a.py", &"a = 1\n".repeat(601))).len(), 1);
}

#[test]
fn a_long_function_is_named_with_its_line() {
    let long = format!("\nfn far(a: [u8; 4]) -> u8 {{\n{}}}\nfn near() {{}}\n", "    \"}\";\n".repeat(80));
    let found = function_length(&rust(&long));
    assert_eq!(lines(&found), [2]);
    assert!(found[0].text.contains("`far` has 82 lines"), "{}", found[0].text);
    assert!(function_length(&rust("trait A { fn b(&self); }\ntype C = fn(u8) -> u8;\n")).is_empty());
}

#[test]
fn a_long_python_function_is_found_by_its_indent() {
    let long = format!("def far(\n    a,\n):\n{}\ndef near():\n    pass\n", "    pass\n\n".repeat(40));
    assert_eq!(lines(&function_length(&Source::new("a.py", &long))), [1]);
    assert_eq!(python_functions("def a(\n  b,\n):\n    c\n\nd = 1\n"), [(1, "a".to_owned(), 4)]);
}

#[test]
fn only_io_and_the_command_have_a_clock() {
    let text = "// Instant::now in words\nlet a = Instant::now();\nstd::thread::sleep(a);\n";
    assert_eq!(lines(&clock(&rust(text))), [2, 3]);
    assert!(clock(&Source::new("crates/io/src/clock.rs", text)).is_empty());
    assert!(clock(&Source::new("crates/cli/src/main.rs", text)).is_empty());
}

#[test]
fn a_shared_crate_names_no_protocol() {
    let named = |path: &str, text: &str| lines(&protocol_names(&Source::new(path, text)));
    assert_eq!(named("crates/io/src/a.rs", "// A node of a farm.\nuse hodo_raw::Client;\nlet ipbus = 1;\n"), [1, 2, 3]);
    assert!(named("crates/io/src/a.rs", "// See docs/farm-files.md, farmer.\nlet a = \"farm\";\n").is_empty());
    assert!(named("protocols/farm/host/src/a.rs", "// A farm.\n").is_empty());
}

#[test]
fn unsafe_stays_in_io() {
    let text = "#![allow(unsafe_code)]\nunsafe { a() }\n";
    assert_eq!(lines(&unsafe_code(&rust(text))), [2]);
    assert!(unsafe_code(&Source::new("crates/io/src/sys.rs", text)).is_empty());
    assert!(unsafe_code(&Source::new("protocols/raw/machines/tests/allocations.rs", text)).is_empty());
}

#[test]
fn unfinished_work_is_found_in_code_and_comments_but_not_in_strings() {
    assert_eq!(lines(&unfinished(&rust("a();\n// TODO later\ntodo!()\n\"TODO\"\n"))), [3, 2]);
    assert_eq!(lines(&unfinished(&rust("#[ignore = \"slow\"]\nfn a() {}\n"))), [1]);
    assert!(unfinished(&rust("#[ignore = \"timing\"]\nfn a() {}\n")).is_empty());
    assert_eq!(lines(&unfinished(&Source::new("a.py", "# FIXME\n"))), [1]);
    assert!(unfinished(&rust("let TODOS = 1;\n")).is_empty());
}

#[test]
fn files_read_without_a_bound_are_found() {
    let code = "let a = fs::read(file);\n#[cfg(test)]\nmod tests {\n    let b = fs::read(file);\n}\n";
    let found = |path: &str| lines(&reading(&Source::new(path, code)));
    for path in ["crates/cli/src/pva/options.rs", "crates/cli/src/input.rs", "protocols/pva/host/src/serve/file.rs"] {
        assert_eq!(found(path), [1], "{path}");
    }
    assert!(found("crates/io/src/host.rs").is_empty() && found("crates/cli/tests/report.rs").is_empty());
}

#[test]
fn printing_macros_are_found_in_what_is_shipped() {
    let code = "fn a() {\n    eprintln!();\n    // println!\n    fingerprint!();\n}\n";
    let found = |path: &str| lines(&printing(&Source::new(path, code)));
    for path in ["protocols/raw/link/src/lib.rs", "crates/cli/src/main.rs"] {
        assert_eq!(found(path), [2], "{path}");
    }
    for path in ["crates/io/examples/a.rs", "crates/io/tests/a.rs", "crates/io/src/a/tests.rs"] {
        assert!(found(path).is_empty(), "{path}");
    }
}

#[test]
fn operations_are_not_counted_against_a_time() {
    let code =
        "assert one[\"operations\"] > 0\nassert one[\"operations\"] > 10_000\nassert one[\"operations\"] == 20\n";
    assert_eq!(lines(&operations_in_a_time(&Source::new("tests/cli/test_a.py", code))), [2]);
    assert!(operations_in_a_time(&Source::new("benches/a.py", code)).is_empty());
}

#[test]
fn names_say_what_a_thing_is() {
    assert_eq!(lines(&names(&rust("fn get_size() {}\nstruct LinkManager;\nfn target() {}\n"))), [1, 2]);
    assert_eq!(lines(&names(&Source::new("a.py", "def get_size():\n    pass\n"))), [1]);
    assert_eq!(lines(&names(&Source::new("protocols/raw/machines/src/util.rs", ""))), [1]);
}

#[test]
fn a_crate_says_what_it_is() {
    assert_eq!(crate_docs(&Source::new("protocols/raw/machines/src/lib.rs", "#![no_std]\n")).len(), 1);
    for text in ["//! Raw.\n", "#![doc = include_str!(\"../README.md\")]\n"] {
        assert!(crate_docs(&Source::new("protocols/raw/machines/src/lib.rs", text)).is_empty(), "{text}");
    }
}

#[test]
fn a_protocol_crate_is_no_std() {
    assert_eq!(no_std_attribute(&Source::new("protocols/raw/machines/src/lib.rs", "// #![no_std]\n")).len(), 1);
    assert!(no_std_attribute(&Source::new("protocols/raw/machines/src/lib.rs", "#![no_std]\n")).is_empty());
    assert!(no_std_attribute(&Source::new("crates/io/src/lib.rs", "")).is_empty());
}
