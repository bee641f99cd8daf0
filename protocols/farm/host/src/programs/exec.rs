use super::{KILLED, Needed};
use crate::{Decider, Decision, Undecided};
use hodo_io::program::{Program, Talk, Talked};
use hodo_machine::Bytes;
use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Decides with a command of its own for each event: the event is its standard input, its exit status is the verdict,
/// and what it prints is stored in place of the event.
pub struct Exec {
    command: Vec<OsString>,
    worker: usize,
    within: Duration,
    output_max: u32,
    needed: Needed,
}

impl Exec {
    /// Creates a command for the events of this worker.
    pub fn new(command: &[OsString], worker: usize, within: Duration, output_max: u32, needed: &Needed) -> Self {
        Exec { command: command.to_vec(), worker, within, output_max, needed: needed.clone() }
    }

    fn start(&self, event: &Undecided) -> io::Result<Program> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command.env("HODO_EVENT", event.event.to_string()).env("HODO_RUN", event.run.to_string());
        command.env("HODO_PARTIAL", u8::from(event.partial).to_string());
        Program::start(command.env("HODO_WORKER", self.worker.to_string()), false)
    }

    /// Gives a command its event. Returns what it prints, as far as that may be stored, and how it has ended.
    fn run(&self, mut program: Program, event: &Undecided) -> io::Result<(Vec<u8>, Talked, ExitStatus)> {
        let mut output = Vec::new();
        let max = self.output_max as usize;
        let talked = program.talk(&mut Talk {
            input: &[&event.bytes],
            closes_input: true,
            output: &mut output,
            is_enough: &|output| output.len() > max,
            awaits_end: true,
            within: self.within,
            is_needed: &|| (self.needed)(),
        });
        let status = program.end();
        Ok((output, talked?, status?))
    }
}

impl Decider for Exec {
    fn decide(&mut self, event: &Undecided) -> Decision {
        let program = self.command[0].display();
        let started = match self.start(event) {
            Ok(started) => started,
            Err(why) => return Decision::Failed(format!("{program} cannot be started: {why}")),
        };
        match self.run(started, event) {
            Err(why) => Decision::Failed(format!("{program}: {why}")),
            Ok((_, Talked::Late, _)) => Decision::Failed(format!("{program} took longer than {:?}", self.within)),
            Ok((_, Talked::Dropped, _)) => Decision::Failed(KILLED.to_owned()),
            Ok((_, Talked::Enough, _)) => {
                Decision::Failed(format!("{program} printed more than --event-max, which is {}", self.output_max))
            }
            Ok((output, _, status)) => match status.code() {
                Some(0) if output.is_empty() => Decision::Accept,
                Some(0) => Decision::AcceptAs(Bytes::from(output)),
                Some(1) => Decision::Reject,
                _ => Decision::Failed(format!("{program} has ended ({status})")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(script: &str, within: Duration, size: usize) -> Decision {
        let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
        let event = Undecided { run: 3, event: 9, partial: false, bytes: Bytes::from(vec![b'x'; size]) };
        Exec::new(&command, 0, within, 1 << 20, &super::super::always()).decide(&event)
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn the_exit_status_is_the_verdict() {
        assert_eq!(decide("exit 0", LONG, 1 << 20), Decision::Accept);
        assert_eq!(decide("cat >/dev/null; exit 1", LONG, 1 << 20), Decision::Reject);
        let says = |script: &str, word: &str| match decide(script, LONG, 10) {
            Decision::Failed(why) => assert!(why.contains(word), "{why}"),
            decision => panic!("{script}: {decision:?}"),
        };
        says("exit 2", "exit status: 2");
        says("kill -9 $$", "signal: 9");
        says("head -c 2000000 /dev/zero", "--event-max");
    }

    #[test]
    fn what_it_prints_is_stored() {
        assert_eq!(decide("cat", LONG, 1 << 20), Decision::AcceptAs(Bytes::from(vec![b'x'; 1 << 20])));
        let said = decide("printf $HODO_RUN.$HODO_EVENT.$HODO_PARTIAL", LONG, 0);
        assert_eq!(said, Decision::AcceptAs(Bytes::from_static(b"3.9.0")));
    }

    #[test]
    fn one_that_takes_too_long_fails_with_all_that_it_started() {
        let decision = decide("sleep 60 & wait", Duration::from_millis(50), 10);
        assert!(matches!(decision, Decision::Failed(why) if why.contains("longer than 50ms")));
    }

    #[test]
    fn a_child_that_it_leaves_behind_takes_no_time_of_the_next_event() {
        for left in ["sleep 60 & exit 1", "setsid sleep 60 & exit 1"] {
            assert_eq!(decide(left, LONG, 10), Decision::Reject, "{left}");
        }
    }
}
