//! The far end that is started here: the same program in a process of its own, which cannot outlive this one. Behind a
//! hub there is a device as well.

use super::placement::Placement;
use crate::Error;
use crate::args::Measure;
use crate::args::units::cpus_text;
use crate::private_dir::PrivateDir;
use hodo_tester::{FarEnd as Described, Uri};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long it may take to come to an end by itself.
const GRACE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A running far end. Dropped, it is stopped.
pub struct FarEnd {
    child: Child,
    /// Open for as long as the far end is to run: it stops at the end of its standard input, however this process ends.
    stdin: Option<ChildStdin>,
    uri: Uri,
    placement: Placement,
    /// Of a Unix socket: the far end removes it, unless it is killed.
    dir: Option<PrivateDir>,
    /// The far end behind it, as a device behind a hub.
    behind: Option<Box<FarEnd>>,
    /// Of a hub: where its pages are.
    pages: Option<SocketAddr>,
    /// Open, lest later output kills the far end.
    _stdout: Option<BufReader<ChildStdout>>,
}

impl FarEnd {
    /// Starts one for a link that names none, so placed, and waits until it listens.
    pub fn start(link: &Uri, measure: &Measure, placement: &Placement) -> Result<Self, Error> {
        let described = link.protocol.far_end(link, measure.stages);
        let behind = described.behind.as_ref().map(|behind| Self::start(behind, measure, placement)).transpose()?;
        let (mut far_end, said) = Self::spawn(&described, link, measure, placement)?;
        far_end.uri = link.protocol.link_to(link, &said, behind.as_ref().map(Self::link))?;
        far_end.pages = said.get(1).and_then(|pages| pages.parse().ok());
        if link.protocol.description().is_at_path {
            far_end.dir = Path::new(&far_end.uri.path).parent().map(PrivateDir::adopt);
        }
        far_end.behind = behind.map(Box::new);
        Ok(far_end)
    }

    /// Starts a process, and waits until it has said where it listens: its lines without what each begins with.
    fn spawn(
        described: &Described,
        link: &Uri,
        measure: &Measure,
        placement: &Placement,
    ) -> Result<(Self, Vec<String>), Error> {
        let child = command(described, measure, placement)?
            .spawn()
            .map_err(|why| Error::Failed(format!("the far end cannot be started: {why}")))?;
        let (uri, placement) = (link.clone(), placement.clone());
        let mut far_end =
            FarEnd { child, stdin: None, uri, placement, dir: None, behind: None, pages: None, _stdout: None };
        far_end.stdin = far_end.child.stdin.take();
        let stdout = far_end.child.stdout.take().expect("standard output is piped");
        let begins = described.says;
        let Some((lines, stdout)) = first_lines(stdout, begins.len(), measure.timeout) else {
            return Err(far_end.did_not_start(measure.timeout));
        };
        let said = lines.lines().zip(begins).map_while(|(line, begin)| Some(line.strip_prefix(begin)?.to_owned()));
        let said: Vec<String> = said.collect();
        if said.len() < begins.len() {
            return Err(far_end.did_not_start(measure.timeout));
        }
        far_end._stdout = Some(stdout);
        Ok((far_end, said))
    }

    /// The link to it.
    pub fn link(&self) -> &Uri {
        &self.uri
    }

    /// Where the pages of a hub are.
    pub fn pages(&self) -> Option<SocketAddr> {
        self.pages
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// How it was placed.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Why it runs no more; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        if let Some(ended) = self.behind.as_mut().and_then(|behind| behind.ended()) {
            return Some(ended);
        }
        self.child.try_wait().ok().flatten().map(|status| format!("the far end has ended ({status})"))
    }

    /// Why it is not listening, in its own words where it has said them.
    fn did_not_start(&mut self, timeout: Duration) -> Error {
        let status = self.stop();
        let mut said = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            // What it says is one line; more would be no use.
            let _ = stderr.take(4096).read_to_string(&mut said);
        }
        let said = said.trim().trim_start_matches("hodo: ");
        match status {
            _ if !said.is_empty() && status.and_then(|status| status.code()) == Some(2) => {
                Error::Usage(said.to_owned())
            }
            _ if !said.is_empty() => Error::Failed(format!("the far end did not start: {said}")),
            Some(status) => Error::Failed(format!("the far end did not start ({status})")),
            None => Error::Failed(format!("the far end was not there after {timeout:?}; try a longer --timeout")),
        }
    }

    /// Asks it to end, and kills it where it does not, as when it is stopped. Tells how it ended by itself.
    fn stop(&mut self) -> Option<ExitStatus> {
        drop(self.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < GRACE {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(LOOK_AGAIN),
                Ok(status) => return status,
                Err(_) => break,
            }
        }
        // It may have ended since; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the command of a far end, tied to this process, and placed.
fn command(described: &Described, measure: &Measure, placement: &Placement) -> Result<Command, Error> {
    let this = std::env::current_exe().map_err(|why| Error::Failed(format!("this program cannot be found: {why}")))?;
    let mut command = Command::new(this);
    command.args(&described.words).arg("--until-stdin-closes").arg("--wait").arg(measure.wait.to_string());
    if !placement.far.is_empty() {
        command.arg("--cpu").arg(cpus_text(&placement.far));
    }
    if described.served.is_some() {
        if let Some(congestion) = &measure.congestion {
            command.arg("--congestion").arg(congestion);
        }
        if let Some(size) = placement.socket_buffer {
            command.arg("--socket-buffer").arg(size.to_string());
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: Ctrl-C is for this process, which still has to ask the far end for its counters.
    command.process_group(0);
    Ok(command)
}

/// The first lines of a child's output, waited for this long, and the rest of the output.
fn first_lines(stdout: ChildStdout, count: usize, timeout: Duration) -> Option<(String, BufReader<ChildStdout>)> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = String::new();
        let mut reader = BufReader::new(stdout);
        // Bounded, because it might be any program.
        let mut bounded = reader.by_ref().take(4096);
        for _ in 0..count {
            let _ = bounded.read_line(&mut lines);
        }
        let _ = send.send((lines, reader));
    });
    receive.recv_timeout(timeout).ok()
}
