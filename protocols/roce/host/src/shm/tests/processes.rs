//! Two processes, one of which is killed.

use super::pair::{End, LIMITS};
use crate::device::{AddressOfQueuePair, Reliability};
use hodo_machine::Wait;
use hodo_roce::{Access, Operation, Remote, Status};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The variable by which the other process learns this one's queue pair.
const FAR: &str = "HODO_SHM_FAR";

/// Sends every message back until it is killed. Does nothing unless another test has started it.
#[test]
fn far_end() {
    let Ok(far) = std::env::var(FAR) else { return };
    let mut end = End::new(Access::ALL, &LIMITS);
    end.receive(0, &[end.entry(0, 64)]);
    end.connect(&far.parse().expect("an address"), &Reliability::default());
    let Remote { address, key } = end.remote(0);
    // A line of its own: the harness has begun one.
    println!("\nfar {} {address} {key}", end.local);
    loop {
        let received = end.waited(Wait::Block).iter().filter(|completion| completion.kind.is_receive()).count();
        for _ in 0..received {
            end.receive(0, &[end.entry(0, 64)]);
            end.send(0, Operation::Send, &[end.entry(0, 64)]);
        }
    }
}

/// Another process, which is killed at the end of a test in any case.
struct Process(Child);

impl Process {
    /// Starts a far end of this queue pair. Returns its own, and its region.
    fn start(near: &AddressOfQueuePair) -> (Process, AddressOfQueuePair, Remote) {
        let mut command = Command::new(std::env::current_exe().expect("this test has a path"));
        command.args(["--exact", "shm::tests::processes::far_end", "--nocapture"]).env(FAR, near.to_string());
        let mut process = Process(command.stdout(Stdio::piped()).spawn().expect("this test starts"));
        let lines = BufReader::new(process.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let line = { lines }.find(|line| line.starts_with("far ")).expect("it tells its address");
        let words: Vec<&str> = line.split(' ').collect();
        let remote = Remote { address: words[2].parse().expect("a number"), key: words[3].parse().expect("a number") };
        (process, words[1].parse().expect("an address"), remote)
    }
}

impl Drop for Process {
    /// Sends SIGKILL: nothing of the process runs any more.
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it has ended");
    }
}

/// Returns an end that has exchanged a message with another process.
fn exchanged() -> (End, Process, Remote) {
    let mut near = End::new(Access::ALL, &LIMITS);
    let (process, far, remote) = Process::start(&near.local);
    near.connect(&far, &Reliability::default());
    near.receive(10, &[near.entry(64, 64)]);
    near.fill(0, b"through");
    near.send(1, Operation::Send, &[near.entry(0, 64)]);
    let mut completions = near.waited(Wait::Block);
    while completions.len() < 2 {
        completions.extend(near.waited(Wait::Block));
    }
    assert!(completions.iter().all(|completion| completion.status == Status::Success));
    assert_eq!(near.bytes(64, 7), b"through");
    (near, process, remote)
}

#[test]
fn a_killed_process_fails_requests_and_flushes_receives() {
    for wait in [Wait::Spin, Wait::Block, Wait::SpinThenBlock(Duration::from_micros(50))] {
        let (mut near, process, remote) = exchanged();
        near.receive(11, &[near.entry(0, 64)]);
        drop(process);
        let [flushed] = near.waited(wait)[..] else { panic!("one completion") };
        assert_eq!((flushed.id, flushed.status), (11, Status::Flushed));
        near.send(2, Operation::Write(remote), &[near.entry(0, 64)]);
        assert_eq!(near.polled()[0].status, Status::Flushed);
    }
}

#[test]
fn a_process_killed_while_a_request_waits_fails_it() {
    for wait in [Wait::Spin, Wait::Block] {
        let (mut near, process, _) = exchanged();
        let entry = near.entry(0, 64);
        // Its answers have no receive here, so it soon posts no more receives itself.
        let posted =
            (0..u64::from(LIMITS.send_depth)).inspect(|id| near.send(100 + id, Operation::Send, &[entry])).count();
        drop(process);
        let mut completions = near.waited(wait);
        while completions.len() < posted {
            completions.extend(near.waited(wait));
        }
        let failed: Vec<Status> = completions
            .iter()
            .map(|completion| completion.status)
            .filter(|status| *status != Status::Success)
            .collect();
        assert!(failed.first().is_none_or(|status| *status == Status::RetryExceeded), "{failed:?}");
        assert!(failed.iter().skip(1).all(|status| *status == Status::Flushed), "{failed:?}");
    }
}

/// Kills a far end that is being written to, at any moment of the exchange.
#[test]
fn a_process_killed_at_any_moment_ends_the_exchange() {
    for delay_us in [0, 50, 200, 1000] {
        let (mut near, process, remote) = exchanged();
        let killer = std::thread::spawn(move || {
            hodo_io::sleep(Duration::from_micros(delay_us));
            drop(process);
        });
        let entry = near.entry(0, 4096);
        let mut last = Status::Success;
        while last == Status::Success {
            near.send(2, Operation::Write(remote), &[entry]);
            near.send(3, Operation::Read(remote), &[entry]);
            last = near
                .polled()
                .iter()
                .map(|completion| completion.status)
                .find(|status| *status != Status::Success)
                .unwrap_or(last);
        }
        assert_eq!(last, Status::Flushed, "operations on memory complete; then the end of the process is noticed");
        killer.join().expect("it ends");
    }
}
