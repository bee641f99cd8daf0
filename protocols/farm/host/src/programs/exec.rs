use super::watch::{Watch, Watching};
use crate::{Decider, Decision, Undecided};
use hodo_io::process::await_end;
use hodo_machine::Bytes;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::Builder;
use std::time::Duration;

/// Decides with a command of its own for each event: the event is its standard input, its exit status is the verdict,
/// and what it prints is stored in place of the event.
pub struct Exec {
    command: Vec<OsString>,
    worker: usize,
    within: Duration,
    output_max: u32,
    watching: Watching,
}

impl Exec {
    /// Creates a command for the events of this worker.
    pub fn new(command: &[OsString], worker: usize, within: Duration, output_max: u32, watch: &Watch) -> Self {
        Exec { command: command.to_vec(), worker, within, output_max, watching: watch.place() }
    }

    fn start(&self, event: &Undecided) -> io::Result<Child> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        command.env("HODO_EVENT", event.event.to_string()).env("HODO_RUN", event.run.to_string());
        command.env("HODO_PARTIAL", u8::from(event.partial).to_string());
        command.env("HODO_WORKER", self.worker.to_string()).spawn()
    }

    /// Gives a command its event. Returns what it prints, as far as that may be stored, and how it has ended.
    fn run(&self, child: &mut Child, event: &Undecided) -> io::Result<(Vec<u8>, ExitStatus)> {
        let mut stdin = child.stdin.take().expect("standard input is piped");
        let stdout = child.stdout.take().expect("standard output is piped");
        let mut output = Vec::new();
        let read = std::thread::scope(|scope| {
            // It may print before it has read everything, and need not read everything.
            let fed = Builder::new().spawn_scoped(scope, move || drop(stdin.write_all(&event.bytes)));
            if fed.is_err() {
                // Without the event it would decide on nothing.
                self.watching.kill();
            }
            let read = stdout.take(u64::from(self.output_max) + 1).read_to_end(&mut output);
            if read.is_err() || output.len() > self.output_max as usize {
                self.watching.kill();
            }
            fed.and(read)
        });
        // Its number is to be its own until nobody kills it any more.
        let awaited = await_end(child.id());
        self.watching.kill();
        let status = child.wait()?;
        read.and(awaited.map(|()| 0))?;
        Ok((output, status))
    }
}

impl Decider for Exec {
    fn decide(&mut self, event: &Undecided) -> Decision {
        let program = self.command[0].display();
        let mut child = match self.start(event) {
            Ok(child) => child,
            Err(why) => return Decision::Failed(format!("{program} cannot be started: {why}")),
        };
        self.watching.begin(child.id(), self.within);
        let ended = self.run(&mut child, event);
        if self.watching.end() {
            return Decision::Failed(format!("{program} took longer than {:?}", self.within));
        }
        match ended {
            Err(why) => Decision::Failed(format!("{program}: {why}")),
            Ok((output, _)) if output.len() > self.output_max as usize => {
                Decision::Failed(format!("{program} printed more than --event-max, which is {}", self.output_max))
            }
            Ok((output, status)) => match status.code() {
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
        Exec::new(&command, 0, within, 1 << 20, &Watch::start().expect("a thread")).decide(&event)
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
}
