//! Wrong command lines: exit status 2, and a message that names the option, its value and what is allowed.

use crate::common;
use common::{Folder, assert_snapshot, run, snapshot};

/// Every answer is in the file, behind its command, so that one who adds a slip adds one line.
#[test]
fn slips_are_answered_as_accepted() {
    const SLIPS: &str = "slips.txt";
    let mut found = String::new();
    for line in snapshot(SLIPS).lines() {
        let Some(command) = line.strip_prefix("$ hodo ") else { continue };
        let answer = run(&command.split_whitespace().collect::<Vec<_>>());
        assert_eq!(answer.stdout, "", "{line}");
        assert!(answer.status == 1 || answer.status == 2, "{line} has status {}", answer.status);
        found += &format!("{line}\n{}status {}\n\n", answer.stderr, answer.status);
    }
    assert!(found.matches("$ hodo").count() > 100, "there is no file of slips");
    assert_snapshot(SLIPS, &found);
}

#[test]
fn what_is_no_result_is_not_read() {
    let folder = Folder::new("no-result");
    for (text, said) in [("", "not JSON"), ("{}", "schema"), ("{\"schema\": \"hodo.result/9\"}", "hodo.result/9")] {
        let file = folder.file("a.json");
        std::fs::write(&file, text).unwrap();
        let wrong = run(&["report", &file]);
        assert_eq!(wrong.status, 2);
        assert!(wrong.stderr.contains(&file) && wrong.stderr.contains(said), "{}", wrong.stderr);
    }
}
