use crate::Error;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

/// Bytes of a line at most; a longer one comes as several.
const LINE_MAX: u64 = 4096;
/// Lines in the queue; a child that prints more waits.
const LINES_WAITING: usize = 1024;
/// Looks at a child that has ended while another process holds its output, before its end is reported.
const LOOKS: u32 = 4;
/// The stack of a thread that copies lines.
const STACK: usize = 128 << 10;

/// News of a child. Children are numbered in the order of their start, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A line of standard output.
    Said(usize, String),
    /// A line of standard error.
    Complained(usize, String),
    /// The end of the child; no more lines follow.
    Ended(usize, ExitStatus),
}

/// Children of this process, each tied to it by its standard input. They are killed when this is dropped.
#[derive(Debug)]
pub struct Crew {
    members: Vec<Option<Member>>,
    send: SyncSender<Line>,
    receive: Receiver<Line>,
}

#[derive(Debug)]
struct Member {
    child: Child,
    stdin: Option<ChildStdin>,
    /// The open ones of its standard output and standard error.
    open: u32,
    status: Option<ExitStatus>,
    looks: u32,
}

/// A message of a reader thread.
#[derive(Debug)]
enum Line {
    News(News),
    Closed(usize),
}

impl Default for Crew {
    fn default() -> Self {
        let (send, receive) = mpsc::sync_channel(LINES_WAITING);
        Crew { members: Vec::new(), send, receive }
    }
}

impl Crew {
    /// Starts a child: a program and its arguments. Returns the number of the child.
    ///
    /// # Errors
    /// [`Error::Start`] if the program cannot be started.
    pub fn start(&mut self, words: &[String]) -> Result<usize, Error> {
        let (program, words) = words.split_first().expect("a command has a program");
        let cannot = |why: &std::io::Error| Error::Start { what: program.clone(), why: why.to_string() };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is for this process, which ends its children in order.
        command.process_group(0);
        let mut child = command.spawn().map_err(|why| cannot(&why))?;
        let number = self.members.len();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("standard output is piped");
        let stderr = child.stderr.take().expect("standard error is piped");
        self.members.push(Some(Member { child, stdin, open: 2, status: None, looks: 0 }));
        self.read(number, stdout, News::Said).map_err(|why| cannot(&why))?;
        self.read(number, stderr, News::Complained).map_err(|why| cannot(&why))?;
        Ok(number)
    }

    fn read(
        &self,
        number: usize,
        from: impl Read + Send + 'static,
        news: fn(usize, String) -> News,
    ) -> std::io::Result<()> {
        let send = self.send.clone();
        let thread = std::thread::Builder::new().name(format!("child {number}")).stack_size(STACK);
        thread.spawn(move || lines(number, BufReader::new(from), news, &send)).map(drop)
    }

    /// Returns the next news, or `None` if there are none within this time.
    pub fn next(&mut self, within: Duration) -> Option<News> {
        if let Some(ended) = self.ended() {
            return Some(ended);
        }
        match self.receive.recv_timeout(within).ok()? {
            Line::News(news) => Some(news),
            Line::Closed(number) => {
                if let Some(member) = self.members[number].as_mut() {
                    member.open -= 1;
                }
                None
            }
        }
    }

    /// Returns the end of a child whose output is closed, or that was looked at often enough.
    fn ended(&mut self) -> Option<News> {
        for (number, place) in self.members.iter_mut().enumerate() {
            let Some(member) = place else { continue };
            if member.open > 0 && member.looks < LOOKS {
                continue;
            }
            if let Some(status) = member.look() {
                *place = None;
                return Some(News::Ended(number, status));
            }
        }
        None
    }

    /// Finds children that have ended while their output is still open in another process. Has to be called now and then.
    pub fn look(&mut self) {
        for member in self.members.iter_mut().flatten() {
            if member.look().is_some() {
                member.looks += 1;
            }
        }
    }

    /// Closes a child's standard input, which asks it to end.
    pub fn end(&mut self, number: usize) {
        if let Some(member) = self.members[number].as_mut() {
            member.stdin = None;
        }
    }

    /// Kills a child.
    pub fn kill(&mut self, number: usize) {
        if let Some(member) = self.members[number].as_mut() {
            member.stdin = None;
            // It may have ended since; then there is nothing to kill.
            let _ = member.child.kill();
        }
    }

    /// Returns `true` unless the end of the child was reported.
    #[must_use]
    pub fn runs(&self, number: usize) -> bool {
        self.members[number].is_some()
    }
}

impl Member {
    fn look(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in self.members.iter_mut().flatten() {
            member.stdin = None;
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

/// Passes on the lines of a child until its output or the queue ends.
fn lines(number: usize, mut from: impl BufRead, news: fn(usize, String) -> News, send: &SyncSender<Line>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        if send.send(Line::News(news(number, text.trim_end().to_owned()))).is_err() {
            return;
        }
    }
    let _ = send.send(Line::Closed(number));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(crew: &mut Crew, script: &str) -> usize {
        crew.start(&["sh", "-c", script].map(str::to_owned)).expect("`sh` is everywhere")
    }

    fn next(crew: &mut Crew) -> News {
        // Short turns: a child whose output is closed may not have ended yet, and nothing comes when it has.
        (0..20_000).find_map(|_| crew.next(Duration::from_millis(1))).expect("there are news")
    }

    #[test]
    fn a_child_is_heard_to_its_end() {
        let mut crew = Crew::default();
        let child = start(&mut crew, "echo here; cat; echo there >&2; exit 3");
        assert_eq!(next(&mut crew), News::Said(child, "here".to_owned()));
        crew.end(child);
        assert_eq!(next(&mut crew), News::Complained(child, "there".to_owned()));
        let News::Ended(0, status) = next(&mut crew) else { panic!("it has ended") };
        assert_eq!(status.code(), Some(3));
        assert!(!crew.runs(child));
    }

    #[test]
    fn an_end_is_told_although_a_program_of_the_child_has_its_output() {
        let mut crew = Crew::default();
        let child = start(&mut crew, "sleep 1000 & echo $!; kill -9 $$");
        let News::Said(_, sleeper) = next(&mut crew) else { panic!("it says whom it started") };
        let ended = (0..10_000).find_map(|_| {
            crew.look();
            crew.next(Duration::from_millis(1))
        });
        assert!(matches!(ended, Some(News::Ended(number, _)) if number == child), "{ended:?}");
        hodo_io::process::terminate(sleeper.parse().expect("a process number")).expect("it is ours");
    }

    #[test]
    fn a_line_without_end_comes_in_parts() {
        let mut crew = Crew::default();
        let child = start(&mut crew, "head -c 10000 /dev/zero | tr '\\0' x");
        let mut lengths = Vec::new();
        while let News::Said(_, line) = next(&mut crew) {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [4096, 4096, 10000 - 2 * 4096], "of child {child}");
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let error = Crew::default().start(&["/no/such/program".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
