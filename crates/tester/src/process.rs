//! A far end in a process of its own, which cannot outlive this one.

use crate::far_end::{USAGE_REQUEST, read_usage};
use crate::{Error, FarEnd, Payload};
use hodo_io::usage::Usage;
use hodo_io::{Clock, IpVersion, PathOptions};
use hodo_machine::Wait;
use hodo_measure::units::cpus_text;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// The time that the process may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// The time that it may take to say what it has used.
const PROMPT: Duration = Duration::from_millis(200);
/// The lines that it may have printed and nobody has read.
const LINES_MAX: usize = 16;

/// A running process. Dropped, it is stopped.
pub(crate) struct Process {
    child: Child,
    far_end: FarEndProcess,
}

/// The process of a far end that was started here, as its links know it.
#[derive(Debug, Clone)]
pub struct FarEndProcess {
    id: u32,
    pipes: Arc<Mutex<Pipes>>,
}

#[derive(Debug)]
struct Pipes {
    /// Standard input, open for as long as the far end is to run: it stops when this is closed, however this process
    /// ends.
    stdin: Option<ChildStdin>,
    /// The lines of standard output.
    lines: Receiver<String>,
}

impl FarEndProcess {
    /// Returns the number of the process.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Returns the usage of the process as it says itself, otherwise as far as the system says.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.said().or_else(|| Usage::of(self.id))
    }

    fn said(&self) -> Option<Usage> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        // Lines that are there already are replies to earlier requests, which came too late.
        pipes.lines.try_iter().for_each(drop);
        pipes.stdin.as_mut()?.write_all(format!("{USAGE_REQUEST}\n").as_bytes()).ok()?;
        read_usage(&pipes.lines.recv_timeout(PROMPT).ok()?)
    }
}

/// The settings of a far end that is started here.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) wait: Wait,
    pub(crate) cpus: Vec<usize>,
    pub(crate) congestion: Option<String>,
    pub(crate) path: PathOptions,
    pub(crate) socket_buffer: Option<usize>,
    pub(crate) payload: Option<Payload>,
    pub(crate) timeout: Duration,
}

impl Process {
    /// Starts a process, and waits until it has printed where it listens. Returns also its lines, without the beginning
    /// of each.
    pub(crate) fn start(program: &Path, far_end: &FarEnd, launch: &Launch) -> Result<(Process, Vec<String>), Error> {
        let mut child = command(program, far_end, launch)
            .spawn()
            .map_err(|why| Error::Failed(format!("the far end cannot be started: {why}")))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("standard output is piped"));
        let lines = lines_of(stdout).map_err(|why| no_thread(&why))?;
        let clock = Clock::start();
        let end = clock.now() + launch.timeout;
        let next = || lines.recv_timeout(end - clock.now()).ok();
        let said = far_end.says.iter().map_while(|begin| Some(next()?.trim_end().strip_prefix(begin)?.to_owned()));
        let said: Vec<String> = said.collect();
        let far_process = FarEndProcess { id: child.id(), pipes: Arc::new(Mutex::new(Pipes { stdin, lines })) };
        let mut process = Process { child, far_end: far_process };
        if said.len() < far_end.says.len() {
            return Err(process.did_not_start(launch.timeout));
        }
        Ok((process, said))
    }

    /// Returns the process as its links know it.
    pub(crate) fn far_end(&self) -> &FarEndProcess {
        &self.far_end
    }

    /// Returns the reason why the process has ended; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| format!("the far end has ended ({status})"))
    }

    /// Returns why the process is not listening, in its own words if it has printed any.
    fn did_not_start(&mut self, timeout: Duration) -> Error {
        let status = self.stop();
        let mut said = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            // The message is one line; more would be no use.
            let _ = stderr.take(4096).read_to_string(&mut said);
        }
        let said = said.trim().trim_start_matches("hodo: ");
        match status {
            _ if !said.is_empty() && status.and_then(|status| status.code()) == Some(2) => {
                Error::Usage(said.to_owned())
            }
            _ if !said.is_empty() => Error::Failed(format!("the far end did not start: {said}")),
            Some(status) => Error::Failed(format!("the far end did not start ({status})")),
            None => Error::Failed(format!("the far end did not start within {timeout:?}; try a longer --timeout")),
        }
    }

    /// Requests the process to end, and kills it if it does not, as when it is stopped. Returns how it ended by itself.
    fn stop(&mut self) -> Option<ExitStatus> {
        drop(self.far_end.pipes.lock().unwrap_or_else(PoisonError::into_inner).stdin.take());
        let (tell, told) = mpsc::channel();
        let child = self.child.id();
        // Nobody listens any more where the child had to be killed; without a thread it is killed at once.
        drop(Builder::new().spawn(move || drop(tell.send(hodo_io::process::await_end(child)))));
        if matches!(told.recv_timeout(GRACE), Ok(Ok(()))) {
            return self.child.try_wait().ok().flatten();
        }
        // It may have ended since; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes the error of a far end for which no thread can be started.
pub(crate) fn no_thread(why: &io::Error) -> Error {
    Error::Failed(format!("no thread can be started for the far end: {why}; raise the limit on threads or memory"))
}

/// Returns the command of a far end, tied to this process, and placed.
fn command(program: &Path, far_end: &FarEnd, launch: &Launch) -> Command {
    let mut command = Command::new(program);
    command.args(&far_end.words).arg("--until-stdin-closes").arg("--wait").arg(launch.wait.to_string());
    if !launch.cpus.is_empty() {
        command.arg("--cpu").arg(cpus_text(&launch.cpus));
    }
    if far_end.served.is_some() {
        if let Some(congestion) = &launch.congestion {
            command.arg("--congestion").arg(congestion);
        }
        if let Some(size) = launch.socket_buffer {
            command.arg("--socket-buffer").arg(size.to_string());
        }
        if let Some(payload) = &launch.payload {
            command.arg("--payload").arg(payload.path());
        }
        let PathOptions { dscp, ttl, mss, local: _, device, version } = &launch.path;
        let numbers = [("--dscp", dscp.map(|dscp| dscp.to_string())), ("--ttl", ttl.map(|ttl| ttl.to_string()))];
        let texts = [("--mss", mss.map(|mss| mss.to_string())), ("--device", device.clone())];
        for (option, value) in numbers.into_iter().chain(texts) {
            command.args(value.map(|value| [option.to_owned(), value]).into_iter().flatten());
        }
        command.args(version.map(|version| if version == IpVersion::V6 { "--ipv6" } else { "--ipv4" }));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: Ctrl-C is for this process, which still has to ask the far end for its counters.
    command.process_group(0);
    command
}

/// Returns the lines of a child's output as they come. They are read to the end, because the child would be killed by writing to a pipe
/// that nobody has, or stand still at one that is full; those that nobody takes are dropped.
fn lines_of(stdout: ChildStdout) -> io::Result<Receiver<String>> {
    let (send, lines) = mpsc::sync_channel(LINES_MAX);
    Builder::new().spawn(move || {
        let mut reader = BufReader::new(stdout);
        loop {
            let mut line = String::new();
            // Bounded, because it might be any program.
            match reader.by_ref().take(4096).read_line(&mut line) {
                Ok(1..) => drop(send.try_send(line)),
                _ => return,
            }
        }
    })?;
    Ok(lines)
}
