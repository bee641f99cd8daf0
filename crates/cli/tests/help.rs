//! The help and the version of the program.

use crate::common;
use common::{assert_snapshot, hodo, ran, run};

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

/// The screen of a terminal that nobody has made larger, without the line of the next prompt.
const LINES: usize = 23;
const COLUMNS: usize = 80;

/// Returns what a command says to `-h` or `--help` on that terminal.
fn help(path: &[&str], asked: &str) -> String {
    let mut command = hodo(&[path, &[asked]].concat());
    let help = ran(command.env("COLUMNS", COLUMNS.to_string()).output().expect("the program runs"));
    assert_eq!((help.status, help.stderr.as_str()), (0, ""), "{path:?} {asked}");
    help.stdout
}

/// Returns the paths of this command and of all below it.
fn commands(path: &[String]) -> Vec<Vec<String>> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let help = help(&words, "-h");
    let (_, listed) = help.split_once("\nCommands").unwrap_or_default();
    let below = listed.lines().skip(1).take_while(|line| line.starts_with("  "));
    let names = below.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let all = names.flat_map(|name| commands(&[path, &[name.to_owned()]].concat()));
    [vec![path.to_vec()], all.collect()].concat()
}

#[test]
fn a_short_help_fits_one_screen_and_the_long_one_has_the_rest() {
    let mut all = commands(&[]);
    assert!(all.len() > 60, "{all:?}");
    all.extend([vec!["completions".to_owned()], vec!["man".to_owned()]]);
    let mut shown = String::new();
    for path in all {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let (short, long) = (help(&path, "-h"), help(&path, "--help"));
        assert!(short.lines().count() <= LINES, "hodo {} -h:\n{short}", path.join(" "));
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= COLUMNS, "hodo {}:\n{line}", path.join(" "));
        }
        for option in short.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(
                long.contains(option.trim_end_matches([',', '.', ';', ')', '\'', '`'])),
                "{path:?} {option}:\n{long}"
            );
        }
        shown += &format!("$ hodo {}\n{short}\n", [&path[..], &["-h"]].concat().join(" "));
    }
    assert_snapshot("short.txt", &shown);
}

#[test]
fn the_version_names_sources_features_and_c_library() {
    let version = run(&["--version"]);
    assert_eq!((version.status, &version.stdout), (0, &run(&["-V"]).stdout));
    let lines: Vec<&str> = version.stdout.lines().collect();
    let ["hodo 0.1.0", commit, features, libc] = lines[..] else { panic!("{lines:?}") };
    let commit = commit.strip_prefix("commit: ").expect(commit);
    assert!(commit == "not known: built without git" || commit.trim_end_matches("-dirty").len() >= 12, "{commit}");
    assert_eq!(features, "features: raw, ipbus, farm, pva, roce, spacewire");
    assert!(libc.starts_with("libc: glibc 2.") || libc == "libc: musl", "{libc}");
}
