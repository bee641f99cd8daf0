//! The option that runs a command's threads before those of other programs.

use crate::Error;
use clap::Args;
use hodo_io::scheduling::{self, PRIORITY};
use hodo_machine::Wait;
use std::io::ErrorKind;

/// The scheduling class of a command's threads.
#[derive(Debug, Clone, Args)]
pub struct RealtimeOptions {
    /// Run in the scheduling class SCHED_FIFO, with priority 10: before every usual thread of this host. Needs the capability
    /// CAP_SYS_NICE, or a limit on real-time priority of at least 10.
    #[arg(long)]
    pub realtime: bool,
}

impl RealtimeOptions {
    /// Puts this thread into the class like [`Self::begin`], in a daemon of so many serving threads; 0 is one per processor. They may not poll
    /// on all processors: what writes the log and the pages would never run.
    ///
    /// # Errors
    /// [`Error::Usage`] with the remedy if they would, or this process may not.
    pub fn begin_serving(&self, wait: Wait, threads: usize) -> Result<(), Error> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let pollers = if threads == 0 { processors } else { threads };
        if self.realtime && wait == Wait::Spin && pollers >= processors {
            return Err(Error::Usage(format!(
                "--realtime --wait spin: {pollers} serving threads would poll on all {processors} processors of this process, and never let its \
                 log and pages run; leave one free (fewer threads, or more processors), or take --wait adaptive"
            )));
        }
        self.begin()
    }

    /// Puts this thread into the class, and all that it starts from now on.
    ///
    /// # Errors
    /// [`Error::Usage`] with the remedy if this process may not.
    pub fn begin(&self) -> Result<(), Error> {
        if !self.realtime {
            return Ok(());
        }
        scheduling::set_realtime().map_err(|why| {
            let remedy = match (why.kind(), scheduling::priority_limit()) {
                (ErrorKind::PermissionDenied, Some(limit)) => format!(
                    "it needs CAP_SYS_NICE, or a limit on real-time priority of at least {PRIORITY}, and that is {limit}: run as root, \
                     `setcap cap_sys_nice+ep` the program, or raise `rtprio` in /etc/security/limits.conf (`ulimit -r`)"
                ),
                _ => "leave it out, or run outside of a control group without real-time threads".to_owned(),
            };
            Error::Usage(format!("--realtime: the class SCHED_FIFO is refused ({why}); {remedy}"))
        })
    }
}
