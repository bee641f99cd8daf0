//! A process that is to end at a panic does, in whichever thread it is: this program is started anew as that process.

use hodo_daemon::log::{self, LogOptions};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;

/// Only the process that is started anew has it: whether it has a log.
const LOG: &str = "HODO_TEST_LOG";
const SIGABRT: i32 = 6;

#[test]
fn as_a_process() {
    let Ok(wanted) = std::env::var(LOG) else { return };
    log::end_at_panics();
    if wanted == "yes" {
        log::open("process", &LogOptions::default()).expect("standard error is there");
    }
    let _ = thread::spawn(|| panic!("planted")).join();
}

#[test]
fn a_panic_in_a_thread_that_nobody_asks_about_ends_the_process() {
    for wanted in ["no", "yes"] {
        let mut process = Command::new(std::env::current_exe().expect("it runs"));
        process.args(["--exact", "as_a_process", "--nocapture"]).env(LOG, wanted);
        let ended = process.output().expect("this program can be started");
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(SIGABRT), "log: {wanted}: {text}");
        assert!(text.contains("planted"), "log: {wanted}: {text}");
    }
}
