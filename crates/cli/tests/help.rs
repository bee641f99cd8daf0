//! The help and the version of the program.

use crate::common;
use common::{assert_snapshot, run};

#[test]
fn help_is_as_accepted() {
    for (name, arguments) in [
        ("hodo.txt", &["--help"][..]),
        ("bench.txt", &["bench", "--help"]),
        ("watch.txt", &["watch", "--help"]),
        ("serve.txt", &["serve", "--help"]),
        ("hub.txt", &["hub", "--help"]),
        ("farm.txt", &["farm", "--help"]),
        ("pva.txt", &["pva", "--help"]),
        ("pva-get.txt", &["pva", "get", "--help"]),
        ("pva-put.txt", &["pva", "put", "--help"]),
        ("pva-monitor.txt", &["pva", "monitor", "--help"]),
        ("limits.txt", &["limits", "--help"]),
        ("report.txt", &["report", "--help"]),
        ("spacewire.txt", &["spacewire", "--help"]),
        ("spacewire-bridge.txt", &["spacewire", "bridge", "--help"]),
        ("compare.txt", &["compare", "--help"]),
    ] {
        let help = run(arguments);
        assert_eq!((help.status, help.stderr.as_str()), (0, ""), "{arguments:?}");
        assert_snapshot(name, &help.stdout);
    }
}

#[test]
fn netperfs_users_find_their_tests() {
    let help = run(&["bench", "--help"]).stdout;
    for test in ["TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR"] {
        let line = help.lines().find(|line| line.trim_start().starts_with(test)).expect(test);
        assert!(line.contains("hodo bench "), "{line}");
    }
}

#[test]
fn the_version_is_told() {
    let version = run(&["--version"]);
    assert_eq!((version.status, version.stdout), (0, format!("hodo {}\n", env!("CARGO_PKG_VERSION"))));
}
