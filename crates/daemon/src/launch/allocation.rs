use super::expand;
use crate::Error;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// The script that the job runs: it prints the allocation and keeps it until its input ends.
const KEEP: &str = r#"echo "$SLURM_JOB_ID $SLURM_JOB_NODELIST"; exec cat >/dev/null"#;

/// A job of Slurm and its nodes.
#[derive(Debug)]
pub struct Allocation {
    /// The number of the job.
    pub job: String,
    /// The nodes of the job.
    pub hosts: Vec<String>,
    /// The process that keeps the job, if it is our own.
    _keeper: Option<Keeper>,
}

impl Allocation {
    /// Returns the allocation in which this process runs, or `None` outside a job.
    ///
    /// # Errors
    /// [`Error::Hosts`] if Slurm's list of nodes cannot be parsed.
    pub fn current() -> Result<Option<Self>, Error> {
        let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match (of("SLURM_JOB_ID"), of("SLURM_JOB_NODELIST")) {
            (Some(job), Some(nodes)) => Ok(Some(Allocation { job, hosts: expand(&nodes)?, _keeper: None })),
            _ => Ok(None),
        }
    }

    /// Requests an allocation with `salloc` and these options. It is released when it is dropped or this process ends.
    ///
    /// # Errors
    /// [`Error::Start`] if `salloc` cannot be started.
    pub fn ask(options: &[String]) -> Result<PendingAllocation, Error> {
        let mut command = Command::new("salloc");
        command.args(options).args(["sh", "-c", KEEP]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A group of its own: Ctrl-C is for this process, which gives the nodes back once they are free.
        command.process_group(0);
        let mut child = command.spawn().map_err(|why| {
            let why = format!("{why}; is Slurm installed here?");
            Error::Start { what: "salloc".to_owned(), why }
        })?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("standard output is piped"));
        let keeper = Keeper { child, stdin, has_nodes: false };
        let (send, receive) = mpsc::channel();
        let thread = std::thread::Builder::new().spawn(move || {
            let mut line = String::new();
            // What it got, or nothing: the reader of the channel then finds that it has ended.
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = send.send(line);
        });
        thread.map_err(|why| Error::Start { what: "a thread for salloc".to_owned(), why: why.to_string() })?;
        Ok(PendingAllocation { keeper: Some(keeper), receive })
    }
}

/// A job that may still be waiting for its nodes.
#[derive(Debug)]
pub struct PendingAllocation {
    keeper: Option<Keeper>,
    receive: Receiver<String>,
}

impl PendingAllocation {
    /// Returns the allocation, or `None` if Slurm has not made it within this time.
    ///
    /// # Errors
    /// [`Error::Start`] if Slurm refuses it, [`Error::Hosts`] if its list of nodes cannot be parsed.
    pub fn wait(&mut self, within: Duration) -> Result<Option<Allocation>, Error> {
        let line = match self.receive.recv_timeout(within) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => String::new(),
        };
        match (line.split_once(' '), self.keeper.take()) {
            (Some((job, nodes)), Some(mut keeper)) => {
                keeper.has_nodes = true;
                Ok(Some(Allocation { job: job.to_owned(), hosts: expand(nodes.trim())?, _keeper: Some(keeper) }))
            }
            _ => {
                let why = "it gave no nodes; it has said why above".to_owned();
                Err(Error::Start { what: "salloc".to_owned(), why })
            }
        }
    }
}

/// Keeps a job until it is dropped.
#[derive(Debug)]
struct Keeper {
    child: Child,
    stdin: Option<ChildStdin>,
    has_nodes: bool,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if !self.has_nodes {
            // It reads no input yet; SIGTERM ends its waiting.
            let _ = hodo_io::process::terminate(self.child.id());
        }
        let _ = self.child.wait();
    }
}
