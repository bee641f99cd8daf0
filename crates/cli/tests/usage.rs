//! Wrong command lines: exit status 2, and a message that names the option, its value and what is allowed.

use crate::common;
use common::{Folder, run};

#[test]
fn each_mistake_is_named() {
    let mistakes: &[(&[&str], &[&str])] = &[
        (&["bench"], &["<LINK>"]),
        (&["bench", "ftp://x"], &["`ftp`", "tcp, udp, unix"]),
        (&["bench", "tcp", "--test", "speed"], &["speed", "--test", "rate, latency, random, channels, open"]),
        (&["bench", "tcp", "--mode", "up"], &["up", "--mode", "both, send, receive"]),
        (&["bench", "tcp", "--window", "0"], &["--window", "'0'", "1..=1048576"]),
        (&["bench", "tcp", "--window", "1048577"], &["--window", "1048577", "1..=1048576"]),
        (&["bench", "tcp", "--window", "99999999999999999999"], &["--window", "99999999999999999999"]),
        (&["bench", "tcp", "--window", "-1"], &["-1"]),
        (&["bench", "tcp", "--channels", "0"], &["--channels", "1..=20000"]),
        (&["bench", "tcp", "--channels", "20001"], &["--channels", "20001", "1..=20000"]),
        (&["bench", "pva", "--channels", "100001"], &["--channels", "100001", "1..=100000"]),
        (
            &["bench", "tcp", "--test", "rate", "--channels", "20000", "--window", "1048576"],
            &["--window", "--channels"],
        ),
        (&["bench", "tcp", "--sizes", "0"], &["--sizes", "1..="]),
        (&["bench", "tcp", "--sizes", "2G"], &["--sizes", "2147483648", "1..=1073741824"]),
        (&["bench", "udp", "--sizes", "64K"], &["--sizes", "65536", "1..=65507"]),
        (&["bench", "tcp", "--sizes", "1..64"], &["--sizes", "1..64", "step"]),
        (&["bench", "tcp", "--duration", "0s"], &["--duration", "0s", "1ms..=24h"]),
        (&["bench", "tcp", "--duration", "2sec"], &["--duration", "`2sec`", "200ms"]),
        (&["bench", "tcp", "--duration", "25h"], &["--duration", "25h", "1ms..=24h"]),
        (&["bench", "tcp", "--duration", "1s", "--count", "5"], &["--duration", "--count"]),
        (&["bench", "tcp", "--repeat", "0"], &["--repeat", "1..=1000"]),
        (&["bench", "tcp", "--repeat", "3", "--interval", "5%"], &["--repeat", "--interval"]),
        (&["bench", "tcp", "--interval", "100%"], &["--interval", "100%"]),
        (&["bench", "tcp", "--wait", "never"], &["--wait", "never", "spin:50us"]),
        (&["bench", "tcp", "--cpu", "0,0"], &["--cpu", "0,0"]),
        (&["bench", "tcp", "--cpu", "4095"], &["--cpu", "4095", "may run on"]),
        (&["bench", "tcp", "--test", "open"], &["--rate"]),
        (&["bench", "tcp", "--rate", "5K"], &["--rate", "--test open"]),
        (&["bench", "tcp", "--test", "latency", "--window", "8"], &["--window", "8", "--test rate"]),
        (&["bench", "tcp", "--plot", "plot.gif"], &["--plot", "FILE.svg or FILE.png"]),
        (&["bench", "tcp", "--json", "/no/such/folder/a.json"], &["--json", "/no/such/folder/a.json", "No such file"]),
        (&["bench", "tcp", "--tsv", "/"], &["--tsv", "directory"]),
        (&["bench", "tcp", "--json", "-", "--tsv", "-"], &["standard output"]),
        (&["bench", "tcp", "--batch", "2"], &["--batch", "2"]),
        (&["serve", "ftp://x"], &["`ftp`"]),
        (&["serve", "tcp://127.0.0.1:0", "--peers-max", "0"], &["--peers-max", "1..="]),
        (&["limits", "--mtu", "10"], &["--mtu", "10", "68..=65535"]),
        (&["limits", "--pci", "16/33"], &["--pci", "16/33", "32/33"]),
        (&["limits", "--pcie", "9x8"], &["--pcie", "9x8", "3x8"]),
        (&["limits", "--window", "4"], &["--rtt"]),
        (&["report"], &["<FILE>"]),
        (&["report", "/no/such/file.json"], &["/no/such/file.json", "No such file"]),
        (&["compare", "/no/such/a.json", "/no/such/b.json"], &["/no/such/a.json"]),
        (&["measure"], &["measure", "Usage"]),
    ];
    for (arguments, said) in mistakes {
        let wrong = run(arguments);
        assert_eq!((wrong.status, wrong.stdout.as_str()), (2, ""), "{arguments:?}: {}", wrong.stderr);
        for words in *said {
            assert!(wrong.stderr.contains(words), "{arguments:?} does not say {words}: {}", wrong.stderr);
        }
    }
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
