//! A process that decides on one event after the other, over its standard input and output.
//!
//! All numbers are little-endian. To it, for each event:
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0..8 | event | the event's number |
//! | 8..12 | run | its run |
//! | 12..16 | flags | bit 0: fragments of it are missing |
//! | 16..20 | length | bytes of the event, which follow |
//!
//! From it, before it gets the next one:
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0..8 | event | the number of the event that it got |
//! | 8..12 | verdict | 0 accept, 1 reject, 2 failed |
//! | 12..16 | length | bytes that are stored in place of the event, which follow; 0 for the event itself |

use super::watch::{Watch, Watching};
use crate::{Decider, Decision, Undecided};
use hodo_io::Clock;
use hodo_io::process::await_end;
use hodo_machine::{Bytes, Instant};
use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

const QUESTION: usize = 20;
const ANSWER: usize = 16;
const FLAG_PARTIAL: u32 = 1;
/// A process that fails again and again is started after this, doubled each time.
const AGAIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(5);
/// How long a process may take to end when its input has.
const GRACE: Duration = Duration::from_secs(1);

/// Decides by asking a process, which is started again when it ends.
pub struct Process {
    command: Vec<OsString>,
    worker: usize,
    within: Duration,
    output_max: u32,
    watching: Watching,
    clock: Clock,
    running: Option<Running>,
    /// Times in a row that it could not be started, or gave no answer.
    failures: u32,
    again_at: Option<Instant>,
}

struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Creates a process for this worker, which is not started yet.
    pub fn new(command: &[OsString], worker: usize, within: Duration, output_max: u32, watch: &Watch) -> Self {
        Process {
            command: command.to_vec(),
            worker,
            within,
            output_max,
            watching: watch.place(),
            clock: Clock::start(),
            running: None,
            failures: 0,
            again_at: None,
        }
    }

    fn start(&self) -> io::Result<Running> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).env("HODO_WORKER", self.worker.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A group of its own: Ctrl-C is for the node, and whatever it starts ends with it.
        let mut child = command.process_group(0).spawn()?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Ok(Running { child, stdin, stdout })
    }

    /// Notes a failure, and when the process may be started again: after the first one, at once.
    fn fail(&mut self) {
        let rest = match self.failures {
            0 => Duration::ZERO,
            times => (AGAIN * 2_u32.saturating_pow(times.min(16) - 1)).min(AGAIN_MAX),
        };
        self.failures += 1;
        self.again_at = Some(self.clock.now() + rest);
    }

    /// Ends the process. Returns how it has ended.
    fn end(&mut self, grace: Duration) -> String {
        let Some(mut running) = self.running.take() else { return "is not there".to_owned() };
        drop(running.stdin.take());
        if !grace.is_zero() {
            self.watching.begin(running.child.id(), grace);
            // Where it cannot be awaited, it is killed next.
            let _ = await_end(running.child.id());
            self.watching.end();
        }
        self.watching.kill();
        running.child.wait().map_or_else(|why| why.to_string(), |status| format!("has ended ({status})"))
    }
}

impl Running {
    fn ask(&mut self, event: &Undecided, output_max: u32) -> Result<Decision, Wrong> {
        let stdin = self.stdin.as_mut().ok_or(Wrong::Ended)?;
        let written = stdin.write_all(&question(event)).and_then(|()| stdin.write_all(&event.bytes));
        written.and_then(|()| stdin.flush()).map_err(|_| Wrong::Ended)?;
        let mut head = [0; ANSWER];
        self.stdout.read_exact(&mut head).map_err(|_| Wrong::Ended)?;
        let (verdict, length) = answer(&head, event.event, output_max).map_err(Wrong::Garbage)?;
        let mut output = vec![0; length as usize];
        self.stdout.read_exact(&mut output).map_err(|_| Wrong::Ended)?;
        Ok(match verdict {
            Verdict::Accept if output.is_empty() => Decision::Accept,
            Verdict::Accept => Decision::AcceptAs(Bytes::from(output)),
            Verdict::Reject => Decision::Reject,
            Verdict::Failed => Decision::Failed("the decider could not".to_owned()),
        })
    }
}

enum Wrong {
    /// The process no longer reads or writes.
    Ended,
    /// The answer of the process is malformed; the text says how.
    Garbage(String),
}

impl Decider for Process {
    fn rests(&mut self) -> Option<Duration> {
        if let Some(at) = self.again_at {
            let rest = at - self.clock.now();
            if !rest.is_zero() {
                return Some(rest);
            }
        }
        if self.running.is_none() {
            match self.start() {
                Ok(running) => (self.running, self.again_at) = (Some(running), None),
                Err(why) => {
                    tracing::warn!("{} cannot be started: {why}", self.command[0].display());
                    self.failures = self.failures.max(1);
                    self.fail();
                    return self.rests();
                }
            }
        }
        None
    }

    fn decide(&mut self, event: &Undecided) -> Decision {
        let Some(running) = &mut self.running else { return Decision::Failed("the decider is not there".to_owned()) };
        self.watching.begin(running.child.id(), self.within);
        let asked = running.ask(event, self.output_max);
        let was_late = self.watching.end();
        let wrong = match asked {
            Ok(decision) if !was_late => {
                self.failures = 0;
                return decision;
            }
            Ok(_) => Wrong::Ended,
            Err(wrong) => wrong,
        };
        // One that has closed its output may be about to end, and then says more with its status.
        let grace = if matches!(wrong, Wrong::Ended) && !was_late { GRACE } else { Duration::ZERO };
        let ended = self.end(grace);
        self.fail();
        Decision::Failed(match wrong {
            _ if was_late => format!("the decider took longer than {:?}; restarting it", self.within),
            Wrong::Ended => format!("the decider {ended}; restarting it"),
            Wrong::Garbage(why) => format!("{why}; restarting the decider"),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(GRACE);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Accept,
    Reject,
    Failed,
}

fn question(event: &Undecided) -> [u8; QUESTION] {
    let mut bytes = [0; QUESTION];
    bytes[..8].copy_from_slice(&event.event.to_le_bytes());
    bytes[8..12].copy_from_slice(&event.run.to_le_bytes());
    bytes[12..16].copy_from_slice(&(if event.partial { FLAG_PARTIAL } else { 0 }).to_le_bytes());
    bytes[16..].copy_from_slice(&(event.bytes.len() as u32).to_le_bytes());
    bytes
}

/// Returns the verdict on this event and the length of what is stored, or what is wrong with the answer.
fn answer(bytes: &[u8; ANSWER], event: u64, output_max: u32) -> Result<(Verdict, u32), String> {
    let [e0, e1, e2, e3, e4, e5, e6, e7, v0, v1, v2, v3, length @ ..] = *bytes;
    let answered = u64::from_le_bytes([e0, e1, e2, e3, e4, e5, e6, e7]);
    if answered != event {
        return Err(format!(
            "the decider answers for event {answered}, and not for the one it has; does it print to its standard output?"
        ));
    }
    let verdict = match u32::from_le_bytes([v0, v1, v2, v3]) {
        0 => Verdict::Accept,
        1 => Verdict::Reject,
        2 => Verdict::Failed,
        other => {
            return Err(format!("verdict {other} does not exist: write 0 to accept, 1 to reject, 2 for a failure"));
        }
    };
    let length = u32::from_le_bytes(length);
    if length > output_max {
        return Err(format!("an output of {length} bytes exceeds --event-max, which is {output_max}"));
    }
    Ok((verdict, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: u64) -> Undecided {
        Undecided { run: 7, event, partial: true, bytes: Bytes::from_static(b"ab") }
    }

    /// Bytes worked out by hand from the tables above.
    #[test]
    fn literal_bytes() {
        assert_eq!(question(&event(0x0102)), *b"\x02\x01\0\0\0\0\0\0\x07\0\0\0\x01\0\0\0\x02\0\0\0");
        let bytes = b"\x02\x01\0\0\0\0\0\0\x01\0\0\0\x05\0\0\0";
        assert_eq!(answer(bytes, 0x0102, 5), Ok((Verdict::Reject, 5)));
        assert!(answer(bytes, 0x0103, 5).is_err_and(|why| why.contains("event 258")));
        assert!(answer(bytes, 0x0102, 4).is_err_and(|why| why.contains("--event-max")));
        let bytes = b"\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
        assert!(answer(bytes, 0x0102, 4).is_err_and(|why| why.contains("verdict 3")));
    }

    fn shell(script: &str, within: Duration) -> Process {
        let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
        Process::new(&command, 0, within, 100, &Watch::start().expect("a thread"))
    }

    fn why(process: &mut Process, number: u64) -> String {
        assert_eq!(process.rests(), None);
        match process.decide(&event(number)) {
            Decision::Failed(why) => why,
            decision => format!("{decision:?}"),
        }
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn a_process_that_ends_is_told_of_and_started_again() {
        let mut process = shell("exit 3", LONG);
        let said = why(&mut process, 1);
        assert!(said.contains("exit status: 3"), "{said}");
        assert!(process.running.is_none() && process.rests().is_none() && process.running.is_some());
        why(&mut process, 1);
        assert!(process.rests().is_some_and(|rest| rest <= AGAIN), "the second time it waits");
    }

    #[test]
    fn garbage_and_long_decisions_fail() {
        let said = why(&mut shell("echo this is no answer; cat", LONG), 1);
        assert!(said.contains("print to its standard output"), "{said}");
        let said = why(&mut shell("sleep 60 & wait", Duration::from_millis(50)), 1);
        assert!(said.contains("longer than 50ms"), "{said}");
    }

    #[test]
    fn an_answer_is_taken() {
        let answer = r"head -c 22 >/dev/null; printf '\001\0\0\0\0\0\0\0\0\0\0\0\003\0\0\0xyz'; cat >/dev/null";
        let said = why(&mut shell(answer, LONG), 1);
        assert_eq!(said, format!("{:?}", Decision::AcceptAs(Bytes::from_static(b"xyz"))));
    }

    #[test]
    fn a_program_that_is_not_there_is_waited_for() {
        let watch = Watch::start().expect("a thread");
        let mut process = Process::new(&["/there/is/none".into()], 0, LONG, 100, &watch);
        let (first, second) = (process.rests(), process.failures);
        assert!(first.is_some_and(|rest| rest <= AGAIN) && second == 2);
    }
}
