//! The signals of a process belong to its program: a daemon that is started as a part of it leaves them alone.

use hodo_daemon::{Daemon, Options};

/// SIGHUP, SIGINT, SIGUSR1 and SIGTERM in the mask of caught signals, in which signal 1 is bit 0.
const OURS: u64 = 1 << 0 | 1 << 1 | 1 << 9 | 1 << 14;

fn caught() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("the mask of caught signals");
    u64::from_str_radix(mask.trim(), 16).expect("it is hexadecimal") & OURS
}

#[test]
fn are_caught_only_on_request() {
    assert_eq!(caught(), 0, "this test is alone in its process");
    let daemon = Daemon::start(&Options::default(), |pages| pages).expect("it starts");
    assert_eq!(caught(), 0);
    drop(daemon);
    let options = Options { catches_signals: true, ..Options::default() };
    let _daemon = Daemon::start(&options, |pages| pages).expect("it starts");
    assert_eq!(caught(), OURS);
}
