//! Programs that are given bytes and answer with some, over pipes that are never waited for beyond the end of the program.
//!
//! A program may leave a child behind that holds its pipes open, for ever. So a pipe is not read to its end: what counts is that the program
//! has ended, which its descriptor tells.
#![allow(unsafe_code)]

use crate::sys;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The longest sleep, after which a program looks whether it is still needed.
const LOOK: Duration = Duration::from_millis(50);
/// The sleep where the kernel has no descriptor of a process, which it has since Linux 5.3.
const LOOK_BLINDLY: Duration = Duration::from_millis(1);
/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// A running program, which leads a group of processes, and ends with all of it.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// The descriptor of the process, readable once it has ended.
    process: Option<OwnedFd>,
    input: Option<File>,
    output: Option<File>,
    complaint: Option<File>,
    /// The place that is read into.
    room: Vec<u8>,
    is_collected: bool,
}

/// The reason why a sleep has ended.
#[derive(Default)]
struct Woken {
    /// There is output, or it is closed.
    can_read: bool,
    has_ended: bool,
}

/// One exchange with a program.
pub struct Talk<'a> {
    /// The bytes for its standard input, one part after the other.
    pub input: &'a [&'a [u8]],
    /// Whether its standard input is closed behind them.
    pub closes_input: bool,
    /// The bytes that it has printed on standard output, to which more are added.
    pub output: &'a mut Vec<u8>,
    /// Returns `true` once the output so far is all that is needed.
    pub is_enough: &'a dyn Fn(&[u8]) -> bool,
    /// Whether the end of the program is waited for, also where it has closed its output.
    pub awaits_end: bool,
    /// The longest time.
    pub within: Duration,
    /// Returns `false` once nobody needs the outcome.
    pub is_needed: &'a dyn Fn() -> bool,
}

/// How an exchange has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talked {
    /// The output is all that is needed.
    Enough,
    /// The program has ended.
    Ended,
    /// The program goes on, but has closed its standard input or output.
    Closed,
    /// The time is over.
    Late,
    /// Nobody needs the outcome any more.
    Dropped,
}

impl Program {
    /// Starts a program with its standard input and output as pipes, and its standard error too if `complains`.
    ///
    /// # Errors
    /// The system's error if it cannot be started.
    pub fn start(command: &mut Command, complains: bool) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        if complains {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let input = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let output = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let complaint = child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let process = descriptor(child.id());
        let program = Program { child, process, input, output, complaint, room: vec![0; CHUNK], is_collected: false };
        for pipe in [&program.input, &program.output, &program.complaint].into_iter().flatten() {
            // Otherwise it is ended as it is dropped.
            sys::set_nonblocking(std::os::fd::AsFd::as_fd(pipe), true)?;
        }
        Ok(program)
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Writes and reads until one of the conditions of the exchange is met.
    ///
    /// # Errors
    /// The system's error if a pipe cannot be read.
    pub fn talk(&mut self, talk: &mut Talk<'_>) -> io::Result<Talked> {
        let until = Instant::now() + talk.within;
        let mut left = talk.input.iter().map(|part| part.len()).sum();
        let mut woken = Woken::default();
        loop {
            self.write(talk, &mut left);
            if woken.can_read || woken.has_ended {
                // What it has printed before it has ended is in the pipe by now.
                self.read(talk)?;
            }
            if (talk.is_enough)(talk.output) {
                return Ok(Talked::Enough);
            }
            if woken.has_ended {
                return Ok(Talked::Ended);
            }
            if !talk.awaits_end && (self.output.is_none() || (left > 0 && self.input.is_none())) {
                return Ok(Talked::Closed);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(Talked::Late);
            }
            if !(talk.is_needed)() {
                return Ok(Talked::Dropped);
            }
            woken = self.wait(left > 0, (until - now).min(if self.process.is_some() { LOOK } else { LOOK_BLINDLY }))?;
        }
    }

    /// Returns what the program has printed on standard error and nobody has read, up to `most` bytes.
    pub fn complaint(&mut self, most: usize) -> Vec<u8> {
        let mut said = Vec::new();
        if let Some(pipe) = &mut self.complaint {
            // Does not block: it ends where the pipe is empty.
            let _ = pipe.take(most as u64).read_to_end(&mut said);
        }
        said
    }

    /// Kills the program and all of its group. Returns how it has ended.
    ///
    /// # Errors
    /// The system's error if it cannot be waited for.
    pub fn end(mut self) -> io::Result<ExitStatus> {
        self.collect()
    }

    fn collect(&mut self) -> io::Result<ExitStatus> {
        self.is_collected = true;
        // All of it may have ended by itself; what it has left behind ends too.
        let _ = crate::process::kill_group(self.child.id());
        self.child.wait()
    }

    fn write(&mut self, talk: &Talk<'_>, left: &mut usize) {
        while let Some(input) = self.input.as_mut().filter(|_| *left > 0) {
            let mut behind = *left;
            let mut parts = talk.input.iter().rev();
            let part = loop {
                let part = parts.next().expect("what is left is a part of it");
                if behind <= part.len() {
                    break &part[part.len() - behind..];
                }
                behind -= part.len();
            };
            match input.write(part) {
                Ok(0) => self.input = None,
                Ok(length) => *left -= length,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => return,
                // It need not read everything.
                Err(_) => self.input = None,
            }
        }
        if *left == 0 && talk.closes_input {
            self.input = None;
        }
    }

    fn read(&mut self, talk: &mut Talk<'_>) -> io::Result<()> {
        while let Some(output) = self.output.as_mut().filter(|_| !(talk.is_enough)(talk.output)) {
            match output.read(&mut self.room) {
                Ok(0) => self.output = None,
                Ok(length) => talk.output.extend_from_slice(&self.room[..length]),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Sleeps until a pipe is ready, the program has ended, or the span is over.
    fn wait(&self, writes: bool, span: Duration) -> io::Result<Woken> {
        let input = self.input.as_ref().filter(|_| writes).map(AsRawFd::as_raw_fd);
        let output = self.output.as_ref().map(AsRawFd::as_raw_fd);
        let process = self.process.as_ref().map(AsRawFd::as_raw_fd);
        let poll = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
        let mut polls = [
            // Negative ones are passed over.
            poll(input.unwrap_or(-1), libc::POLLOUT),
            poll(output.unwrap_or(-1), libc::POLLIN),
            poll(process.unwrap_or(-1), libc::POLLIN),
        ];
        // At least a millisecond, lest it spin in the last one.
        let span = i32::try_from(span.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: pointer and length are those of live pollfds.
        match sys::check(unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, span) }) {
            Err(why) if why.kind() != ErrorKind::Interrupted => Err(why),
            Err(_) => Ok(Woken::default()),
            Ok(_) => {
                let [_, output, process] = polls.map(|poll| poll.revents != 0);
                Ok(Woken {
                    can_read: output,
                    has_ended: if self.process.is_some() { process } else { self.has_ended()? },
                })
            }
        }
    }

    /// Returns whether the program has ended, where it has no descriptor. It is not collected, so that its number stays its own.
    fn has_ended(&self) -> io::Result<bool> {
        let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        // SAFETY: the pointer is to a live siginfo_t, of which all zeroes are one; its number is read where the call has set it or left 0.
        unsafe {
            let mut ended: libc::siginfo_t = std::mem::zeroed();
            sys::check(libc::waitid(libc::P_PID, self.child.id(), &raw mut ended, options))?;
            Ok(ended.si_pid() != 0)
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.is_collected {
            let _ = self.collect();
        }
    }
}

/// Returns the descriptor of a child, or `None` where the kernel has none.
fn descriptor(child: u32) -> Option<OwnedFd> {
    // SAFETY: takes no pointers; a non-negative answer is a descriptor that nobody else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(child), 0 as libc::c_long);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as RawFd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Program {
        Program::start(Command::new("sh").args(["-c", script]), true).expect("`sh` is everywhere")
    }

    fn talked(program: &mut Program, input: &[&[u8]], within: Duration) -> (Talked, Vec<u8>) {
        let mut output = Vec::new();
        let mut talk = Talk {
            input,
            closes_input: true,
            output: &mut output,
            is_enough: &|_| false,
            awaits_end: true,
            within,
            is_needed: &|| true,
        };
        let how = program.talk(&mut talk).expect("the pipes are there");
        (how, output)
    }

    #[test]
    fn it_is_given_everything_and_all_that_it_prints_is_taken() {
        let (first, second) = (vec![b'x'; 1 << 20], vec![b'y'; 3]);
        let mut program = shell("cat; echo gone >&2; exit 3");
        let (how, output) = talked(&mut program, &[&first, &second], LONG);
        assert_eq!((how, output.len(), &output[1 << 20..]), (Talked::Ended, (1 << 20) + 3, &b"yyy"[..]));
        assert_eq!(program.complaint(100), b"gone\n");
        assert_eq!(program.end().expect("it is ours").code(), Some(3));
    }

    #[test]
    fn a_child_that_it_leaves_behind_with_its_pipes_is_not_waited_for() {
        for left in ["sleep 60 & echo done", "setsid sleep 60 & echo done"] {
            let begun_at = Instant::now();
            let mut program = shell(left);
            assert_eq!(talked(&mut program, &[], LONG), (Talked::Ended, b"done\n".to_vec()), "{left}");
            assert!(program.end().expect("it is ours").success() && begun_at.elapsed() < LONG);
        }
    }

    #[test]
    fn one_that_takes_too_long_or_is_not_needed_ends_with_all_that_it_started() {
        let mut program = shell("sleep 60 & wait");
        assert_eq!(talked(&mut program, &[], Duration::from_millis(20)).0, Talked::Late);
        let mut output = Vec::new();
        let mut talk = Talk {
            input: &[],
            closes_input: false,
            output: &mut output,
            is_enough: &|_| false,
            awaits_end: true,
            within: LONG,
            is_needed: &|| false,
        };
        assert_eq!(program.talk(&mut talk).expect("the pipes are there"), Talked::Dropped);
        assert!(!program.end().expect("it is ours").success());
    }

    #[test]
    fn one_that_closes_its_output_is_told_of_at_once() {
        let mut program = shell("exec >&-; cat >/dev/null");
        let mut output = Vec::new();
        let mut talk = Talk {
            input: &[b"question"],
            closes_input: false,
            output: &mut output,
            is_enough: &|said| said.len() > 3,
            awaits_end: false,
            within: LONG,
            is_needed: &|| true,
        };
        assert_eq!(program.talk(&mut talk).expect("the pipes are there"), Talked::Closed);
    }
}
