//! `hodo ipbus` on files, and on a device that `hodo serve` makes from one of them.

use crate::common;
use common::{Ran, Served, assert_snapshot, hodo, ran};

/// Runs it where the address tables are, so that what it prints names no folder.
fn ipbus(arguments: &[&str]) -> Ran {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ipbus");
    let whole: Vec<&str> = ["ipbus"].iter().chain(arguments).copied().collect();
    ran(hodo(&whole).current_dir(folder).output().expect("the program runs"))
}

/// Serves a device with the registers of `board.xml`, and nothing else.
fn board(scheme: &str) -> Served {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ipbus/board.xml");
    Served::start(&format!("{scheme}://127.0.0.1:0?table={table}&others=error"))
}

#[test]
fn help_is_as_accepted() {
    let mut all = String::new();
    for command in [
        "",
        "read",
        "write",
        "block",
        "block read",
        "block write",
        "fifo",
        "rmw",
        "rmw bits",
        "rmw sum",
        "dump",
        "nodes",
    ]
    .iter()
    .chain(&["devices", "check"])
    {
        let arguments: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = ipbus(&arguments);
        assert_eq!((help.status, help.stderr.as_str()), (0, ""), "{arguments:?}");
        all += &format!("$ hodo ipbus {}\n{}\n", arguments.join(" "), help.stdout);
    }
    assert_snapshot("ipbus.txt", &all);
}

/// Compares each command with its output and status, as a user at a terminal sees them.
#[test]
fn files_are_listed_and_checked_as_accepted() {
    let commands: &[&[&str]] = &[
        &["devices", "-c", "connections.xml"],
        &["devices", "-c", "connections.xml", r"crate1\..*"],
        &["devices", "-c", "connections.xml", "--glob", "*.readout"],
        &["devices", "-c", "file://con*.xml", "--tsv", "-"],
        &["nodes", "board.xml"],
        &["nodes", "-c", "connections.xml", "crate2.readout"],
        &["nodes", "links.xml", "link0", "--tsv", "-"],
        &["nodes", "links.xml", "--glob", "link[01].*"],
        &["nodes", "links.xml", "spy", "--json", "-"],
        &["check", "board.xml", "links.xml"],
        &["check", "-c", "connections.xml"],
        &["check", "cycle.xml"],
        &["check", "missing.xml"],
        &["check", "wrong.xml"],
        &["check", "overlaps.xml"],
        &["check", "overlaps.xml", "--allow-overlaps", "--tsv", "-"],
        &["check", "overlaps.xml", "--json", "-"],
        &["check", "unclosed.xml"],
        &["check", "remarks.xml"],
        &["check", "remarks.xml", "--strict"],
        &["check", "nowhere.xml"],
        &["check", "file://no*.xml"],
        &["check", "-c", "bad_connections.xml"],
    ];
    assert_snapshot("ipbus-files.txt", &session(commands));
}

/// Runs commands, and returns them with their output; standard error follows standard output.
fn session(commands: &[&[&str]]) -> String {
    let mut all = String::new();
    for arguments in commands {
        let Ran { status, stdout, stderr } = ipbus(arguments);
        all += &format!("$ hodo ipbus {}\n{stdout}{stderr}[{status}]\n\n", arguments.join(" "));
    }
    all
}

#[test]
fn each_mistake_is_named() {
    let uri = "ipbusudp-2.0://127.0.0.1:1";
    let with = |table: &'static str| ["read", uri, "--table", table, "magic"];
    let mistakes: &[(&[&str], &[&str])] = &[
        (&["read", "board", "0"], &["`board`", "--connections"]),
        (&["read", "-c", "connections.xml", "crate3", "0"], &["`crate3`", "crate1.readout"]),
        (&["read", "-c", "connections.xml", uri, "0"], &["--connections", "URI"]),
        (&["read", "-c", "nowhere.xml", "board", "0"], &["nowhere.xml", "no such file"]),
        (&["read", "-c", "board.xml", "board", "0"], &["board.xml:2:1", "connections", "`board`"]),
        (&["read", "-c", "bad_connections.xml", "no-port", "0"], &["`board`", "board:50001", "bad_connections.xml:2"]),
        (
            &["read", "-c", "bad_connections.xml", "no-file", "0"],
            &["nowhere.xml", "no such file", "bad_connections.xml:5"],
        ),
        (&["read", "-c", "bad_connections.xml", "pcie", "0"], &["ipbuspcie-2.0", "chtcp", "bad_connections.xml:6"]),
        (&["read", uri, "magic"], &["`magic`", "--table FILE", "0x1000"]),
        (&with("cycle.xml"), &["cycle_daq.xml:2:20", "cycle.xml -> cycle_daq.xml -> cycle.xml"]),
        (&with("missing.xml"), &["missing.xml:3:33", "`nowhere.xml` cannot be read"]),
        (&with("wrong.xml"), &["wrong.xml:2:30", "mask=\"0xG0\"", "and 6 more"]),
        (&with("unclosed.xml"), &["unclosed.xml:4:1", "not XML", "</node>"]),
        (&with("nowhere.xml"), &["nowhere.xml", "no such file"]),
        (&with("file://l*.xml"), &["l*.xml", "2 files", "name one"]),
        (&["read", uri, "--table", "board.xml", "status.stat"], &["`status.stat`", "state, enable, threshold"]),
        (&["read", uri, "--table", "board.xml", "command"], &["`command`", "may not be read", "`w`"]),
        (&["write", uri, "--table", "board.xml", "magic", "1"], &["`magic`", "may not be written", "`r`"]),
        (&["write", uri, "--table", "board.xml", "status.enable", "2"], &["0x2", "`status.enable`", "0x00000001"]),
        (&["write", uri, "0x4/0xF0", "0x10"], &["0x10", "0x000000F0", "0x00000004", "0xF"]),
        (&["write", uri, "0x4", "x"], &["`0x4`", "`x`", "0x10"]),
        (&["write", uri, "0x4", "0x100000000"], &["0x100000000", "32 bits"]),
        (&["write", uri, "0x4", "1", "0x5"], &["`0x5` has no value"]),
        (&["write", uri, "0x4"], &["<VALUE>"]),
        (&["read", uri, "0x4/0"], &["0x4/0", "without bits"]),
        (&["block", "read", uri, "0x4"], &["0x00000004", "--words"]),
        (&["block", "read", uri, "0x4", "-n", "0"], &["--words", "1..=4194304"]),
        (&["block", "read", uri, "0x4/0xF", "-n", "1"], &["mask", "address alone"]),
        (
            &["block", "read", uri, "--table", "board.xml", "daq.table", "--offset", "16"],
            &["`daq.table`", "16", "--offset"],
        ),
        (
            &["block", "read", uri, "--table", "board.xml", "daq.table", "--offset", "9", "-n", "8"],
            &["`daq.table`", "16 words", "17"],
        ),
        (&["block", "read", uri, "--table", "board.xml", "scratch", "-n", "2"], &["`scratch`", "one register"]),
        (&["block", "read", uri, "--table", "board.xml", "magic", "--configuration"], &["configuration", "address"]),
        (&["block", "write", uri, "--table", "board.xml", "rom", "1"], &["`rom`", "may not be written"]),
        (&["block", "write", uri, "0", "--input", "nowhere"], &["--input", "nowhere", "No such file"]),
        (&["block", "write", uri, "0", "--input", "board.xml"], &["board.xml", "line 1", "0x10"]),
        (&["fifo", "read", uri, "--table", "board.xml", "daq.fifo"], &["`daq.fifo`", "--words"]),
        (&["fifo", "read", uri, "--table", "board.xml", "ram", "-n", "1"], &["`ram`", "hodo ipbus block"]),
        (&["fifo", "read", uri, "0", "-n", "1", "--offset", "1"], &["--offset", "hodo ipbus block"]),
        (&["rmw", "sum", uri, "--table", "board.xml", "status.enable", "1"], &["`status.enable`", "0x00000004"]),
        (&["rmw", "sum", uri, "0x4", "-x"], &["-x", "-0x80000000"]),
        (&["rmw", "bits", uri, "--table", "board.xml", "magic", "1", "2"], &["`magic`", "may not be written"]),
        (&["rmw", "bits", uri, "0x4/0xF", "1", "2"], &["mask", "address alone"]),
        (&["dump", uri], &["--table"]),
        (&["dump", uri, "--table", "board.xml", "nothing.*"], &["`nothing.*`", "hodo ipbus nodes"]),
        (&["dump", uri, "--table", "board.xml", "["], &["`[`", "regular expression"]),
        (&["dump", uri, "--table", "board.xml", "ram"], &["readable register", "hodo ipbus block read"]),
        (&["nodes", "links.xml", "x.*"], &["`x.*`"]),
        (&["devices", "-c", "connections.xml", "x.*"], &["3 devices", "`x.*`"]),
        (&["devices"], &["--connections"]),
        (&["read", uri, "0", "--tsv", "-", "--json", "-"], &["standard output"]),
        (&["read", uri, "0", "--tsv", "/no/such/folder/a.tsv"], &["--tsv", "/no/such/folder/a.tsv"]),
        (&["read", uri, "0", "--timeout", "fast"], &["--timeout", "`fast`", "200ms"]),
        (&["read", "http://board", "0"], &["`http`", "ipbusudp-2.0"]),
        (&["read", "ipbusudp-2.0://board", "0"], &["`board`", "board:50001"]),
        (&["read", "ipbusudp-2.0://board:1?wait=1", "0"], &["`wait`", "max_payload_size"]),
        (&["read", "chtcp-2.0://hub:10203", "0"], &["?target=board:50001"]),
        (&["read", "ipbusudp-2.0://no-such-board.invalid:50001", "0"], &["`no-such-board.invalid`", "check the name"]),
    ];
    for (arguments, said) in mistakes {
        let wrong = ipbus(arguments);
        assert_eq!((wrong.status, wrong.stdout.as_str()), (2, ""), "{arguments:?}: {}", wrong.stderr);
        for words in *said {
            assert!(wrong.stderr.contains(words), "{arguments:?} does not say {words}: {}", wrong.stderr);
        }
        assert!(wrong.stderr.lines().count() < 8, "one message: {}", wrong.stderr);
    }
}

/// Runs the commands one after the other on one device: each command sees the values that earlier ones wrote.
#[test]
fn registers_are_read_and_written_as_accepted() {
    let board = board("ipbusudp-2.0");
    let mut all = String::new();
    for line in [
        "read magic status.state status 0x4/0xF0",
        "read status --decimal --values",
        "write scratch 0xCAFE status.threshold 0xFFFF status.enable 1",
        "read scratch status",
        "write command 1",
        "rmw bits scratch 0xFF 0x1000",
        "rmw sum scratch -1",
        "rmw sum scratch -0x10 --decimal",
        "block write ram 1 2 3 4 5 6 7 8 9 10",
        "block read ram -n 10",
        "block read ram -n 2 --offset 8 --decimal",
        "block read rom",
        "block read daq.table --values --offset 13",
        "block read 0 --configuration -n 4",
        "fifo write daq.fifo 0xA 0xB 0xC",
        "fifo read daq.fifo -n 2",
        "read daq.fifo",
        "fifo read daq.stream -n 3 --values",
        "dump",
        "dump status",
        r"dump .*\.control",
        "dump --glob *.control.*",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let commands = if ["block", "fifo", "rmw"].contains(&words[0]) { 2 } else { 1 };
        let (command, rest) = words.split_at(commands);
        let Ran { status, stdout, stderr } = ipbus(&[command, &[board.uri(), "--table", "board.xml"], rest].concat());
        assert_eq!((status, stderr.as_str()), (0, ""), "{line}");
        all += &format!("$ hodo ipbus {} BOARD {}\n{}\n", command.join(" "), rest.join(" "), stdout);
    }
    assert_snapshot("ipbus-registers.txt", &all.replace(board.uri(), "BOARD"));
}

#[test]
fn version_1_3_does_not_tell_what_was_there_before_bits_were_changed() {
    let board = board("ipbustcp-1.3");
    let run = |arguments: &[&str]| {
        let (command, rest) = arguments.split_at(2);
        let done = ipbus(&[command, &[board.uri(), "--table", "board.xml", "scratch"], rest].concat());
        assert_eq!((done.status, done.stderr.as_str()), (0, ""));
        done.stdout
    };
    assert_eq!(
        run(&["rmw", "sum", "5"]),
        "node     address     before      after\nscratch  0x00000001  0x00000000  0x00000005\n"
    );
    assert_eq!(run(&["rmw", "bits", "1", "2"]), "node     address     after\nscratch  0x00000001  0x00000003\n");
}

#[test]
fn what_a_device_refuses_is_named_and_the_rest_is_shown() {
    let board = board("ipbustcp-2.0");
    let done = ipbus(&["read", board.uri(), "0x1", "0x2", "0x3", "0x4/0xF0"]);
    assert_eq!(done.status, 1);
    assert_eq!(
        done.stdout,
        "address     mask        value\n0x00000001              0x00000000\n0x00000002\n0x00000003              0x00000000\n\
         0x00000004  0x000000F0  0x5\n"
    );
    let why = format!(
        "hodo: cannot read 0x00000002 of {}: bus error on read: nothing to be read at that address\n",
        board.uri()
    );
    assert_eq!(done.stderr, why);
    let cases: &[(&[&str], &str)] = &[
        (
            &["read", "0x5", "0x6"],
            "cannot read 0x00000005 of URI: bus error on read: nothing to be read at that address (and 1 more for this reason)",
        ),
        (
            &["write", "0x0", "1"],
            "cannot write 0x00000000 of URI: bus error on write: nothing to be written at that address",
        ),
        (
            &["block write", "0x37FFFE", "1", "2", "3"],
            "cannot write 0x00380000 of URI: bus error on write: nothing to be written at that address (after 2 words)",
        ),
        (
            &["fifo read", "0x1001", "-n", "2"],
            "cannot read 0x00001001 of URI: bus error on read: nothing to be read at that address",
        ),
        (
            &["rmw sum", "0x0", "1"],
            "cannot modify 0x00000000 of URI: bus error on write: nothing to be written at that address",
        ),
        (
            &["block read", "2", "--configuration", "-n", "3"],
            "cannot read 0x00000004 of URI: bus error on read: nothing to be read at that address (after 2 words)",
        ),
    ];
    for (arguments, said) in cases {
        let command: Vec<&str> = arguments[0].split(' ').collect();
        let failed = ipbus(&[&command[..], &[board.uri()], &arguments[1..]].concat());
        assert_eq!((failed.status, failed.stdout.as_str()), (1, ""), "{arguments:?}");
        assert_eq!(failed.stderr, format!("hodo: {}\n", said.replace("URI", board.uri())), "{arguments:?}");
    }
}

#[test]
fn a_board_that_is_not_there_is_told_of_at_once() {
    for (scheme, tail) in
        [("ipbusudp-2.0", ""), ("ipbusudp-1.3", ""), ("ipbustcp-2.0", ""), ("chtcp-2.0", "?target=127.0.0.1:2")]
    {
        // Nothing listens at port 1 of loopback.
        let uri = format!("{scheme}://127.0.0.1:1{tail}");
        let failed = ipbus(&["read", &uri, "0", "1", "--timeout", "30s"]);
        assert_eq!((failed.status, failed.stdout.as_str()), (1, ""), "{uri}");
        let hub = if tail.is_empty() { "" } else { "the hub: " };
        let why = format!("cannot read 0x00000000 of {uri}: {hub}connection refused: nothing listens there");
        assert!(failed.stderr.contains(&why) && failed.stderr.contains("(and 1 more"), "{}", failed.stderr);
    }
}
