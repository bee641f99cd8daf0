//! The course of a run: its processes are started in order, watched, started again, and ended in order.

use super::file::Farm;
use super::plan::Process;
use super::role::Role;
use super::signals::Signals;
use super::site::Site;
use crate::Error;
use crate::controller::DECIDED;
use hodo_daemon::launch::{Crew, News};
use hodo_io::Clock;
use hodo_io::LISTENING_ON;
use hodo_machine::Instant;
use std::collections::VecDeque;
use std::process::ExitStatus;
use std::time::Duration;

/// Between two looks at what has to be done.
const TICK: Duration = Duration::from_millis(50);
/// How long after its death a process is started again: at first, and at most; what ran for longer than that begins anew.
const BACK_OFF: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// The time in which a process has to end when its controller is gone; a source waits half as long for its verdicts.
const ABANDONED: Duration = Duration::from_secs(10);
/// Lines of a process that are shown where it fails.
const LAST_LINES: usize = 5;

/// The outcome of a run.
#[derive(Debug)]
pub struct Course {
    /// Failures, each with its reason.
    pub failures: Vec<String>,
    /// Times that a process was started again.
    pub restarts: u32,
    /// The time that it took.
    pub took: Duration,
    /// The time that its events took, from the start of the first process that has any to the end of the last; `None` if
    /// the run did not end by itself.
    pub events_took: Option<Duration>,
    /// Events of the run that have a verdict, as the controller has said at its end.
    pub decided: Option<u64>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// A line about a run, as it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLine<'a> {
    /// A process printed a line.
    Printed(&'a str, &'a str),
    /// A process complained: a line on its standard error.
    Complained(&'a str, &'a str),
}

/// A run under way.
struct Conduct<'a> {
    farm: &'a Farm,
    site: &'a Site,
    signals: &'a Signals,
    clock: Clock,
    say: &'a mut dyn FnMut(OutputLine<'_>),
    crew: Crew,
    posts: Vec<Post>,
    /// Which post a child has, by its number.
    post_of: Vec<usize>,
    is_ending: bool,
    looked: Instant,
    course: Course,
}

/// The place of one process in the farm, which several processes may fill after each other.
struct Post {
    process: Process,
    child: Option<usize>,
    started: Instant,
    /// Whether it has yet to reach its host.
    is_on_its_way: bool,
    /// How others reach it.
    address: Option<String>,
    wait: Duration,
    again_at: Option<Instant>,
    was_asked: bool,
    was_killed: bool,
    said: VecDeque<String>,
}

impl Post {
    /// Returns whether it runs, or is to run again.
    fn is_there(&self) -> bool {
        self.child.is_some() || self.again_at.is_some()
    }
}

/// Runs a farm to its end.
pub fn run(
    farm: &Farm,
    site: &Site,
    processes: Vec<Process>,
    signals: &Signals,
    say: &mut dyn FnMut(OutputLine<'_>),
) -> Result<Course, Error> {
    let clock = Clock::start();
    let begun = clock.now();
    let course = Course {
        failures: Vec::new(),
        restarts: 0,
        took: Duration::ZERO,
        events_took: None,
        decided: None,
        interrupted: false,
    };
    let posts = processes.into_iter().map(|process| Post {
        process,
        child: None,
        started: begun,
        is_on_its_way: false,
        address: None,
        wait: BACK_OFF,
        again_at: None,
        was_asked: false,
        was_killed: false,
        said: VecDeque::new(),
    });
    let mut conduct = Conduct {
        farm,
        site,
        signals,
        clock,
        say,
        crew: Crew::default(),
        posts: posts.collect(),
        post_of: Vec::new(),
        is_ending: false,
        looked: begun,
        course,
    };
    // Those that run are ended in order, whatever went wrong.
    let started = conduct.start_all();
    let ran = started.and_then(|all| if all { conduct.watch(begun) } else { Ok(()) });
    let ended = conduct.end_all();
    conduct.course.took = clock.now() - begun;
    ran.and(ended)?;
    conduct.check_events();
    Ok(conduct.course)
}

impl Conduct<'_> {
    /// Notes it as a failure if a run that came to its end has not decided all its events.
    fn check_events(&mut self) {
        let Course { events_took: Some(_), decided: Some(decided), .. } = self.course else { return };
        if let Some(events) = self.farm.run.events.filter(|events| decided < *events) {
            self.course.failures.push(format!(
                "only {decided} of {events} events have a verdict: were some too large, or have two sources the same events?"
            ));
        }
    }

    /// Starts all processes, those that listen first. Returns whether they run.
    fn start_all(&mut self) -> Result<bool, Error> {
        for role in Role::ALL {
            for post in self.posts_of(role) {
                if !self.has_way(post)? {
                    return Ok(false);
                }
                self.start(post)?;
                if role.listens() && !self.wait_for(post)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Waits until not too many others are on their way to a host. Returns `false` if a signal came first.
    fn has_way(&mut self, post: usize) -> Result<bool, Error> {
        let Some((most, _)) = self.site.launcher.on_their_way() else { return Ok(true) };
        let host = self.posts[post].process.host.clone();
        let others = |post: &&Post| post.is_on_its_way && post.process.host == host;
        while self.posts.iter().filter(others).count() >= most {
            self.turn()?;
            if self.signals.is_stopped() {
                self.course.interrupted = true;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether any process of a role runs, or is to run again.
    fn is_there(&self, role: Role) -> bool {
        self.posts.iter().any(|post| post.process.role == role && post.is_there())
    }

    fn posts_of(&self, role: Role) -> Vec<usize> {
        (0..self.posts.len()).filter(|post| self.posts[*post].process.role == role).collect()
    }

    fn start(&mut self, post: usize) -> Result<(), Error> {
        let process = &self.posts[post].process;
        let to = self.upstream(process.role);
        let words = self.site.launcher.words(&process.task(&self.site.program, to.as_deref()));
        let child = self.crew.start(&words)?;
        self.post_of.push(post);
        let post = &mut self.posts[post];
        (post.child, post.started, post.again_at) = (Some(child), self.clock.now(), None);
        post.is_on_its_way = self.site.launcher.on_their_way().is_some();
        post.said.clear();
        Ok(())
    }

    /// Returns the address to which a role connects.
    fn upstream(&self, role: Role) -> Option<String> {
        let address = |role| self.posts_of(role).first().and_then(|post| self.posts[*post].address.clone());
        match role {
            Role::Controller => None,
            Role::Source => address(Role::Builder).or_else(|| address(Role::Controller)),
            Role::Builder | Role::Node => address(Role::Controller),
        }
    }

    /// Waits until a role says where it listens. Returns whether it did.
    fn wait_for(&mut self, post: usize) -> Result<bool, Error> {
        let until = self.clock.now() + self.farm.run.start_within;
        while self.posts[post].address.is_none() {
            self.turn()?;
            if self.signals.is_stopped() {
                self.course.interrupted = true;
                return Ok(false);
            }
            let Post { process, child, said, .. } = &self.posts[post];
            if child.is_none() {
                return Ok(false);
            }
            if self.clock.now() > until {
                let within = self.farm.run.start_within;
                let why = format!("did not report its address within {within:?}; see `start_within` in [run]");
                self.course.failures.push(failure(process, &why, said));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs until there is a reason to end.
    fn watch(&mut self, begun: Instant) -> Result<(), Error> {
        loop {
            self.turn()?;
            if self.signals.is_stopped() {
                self.course.interrupted = true;
                return Ok(());
            }
            let is_there = |role| self.is_there(role);
            if !is_there(Role::Node) {
                self.course.failures.push("no node is left".to_owned());
                return Ok(());
            }
            let sources_are_done = !self.posts_of(Role::Source).is_empty() && !is_there(Role::Source);
            let builder_is_gone = !self.posts_of(Role::Builder).is_empty() && !is_there(Role::Builder);
            let is_over = self.farm.run.time.is_some_and(|time| self.clock.now() - begun >= time);
            let controller_is_gone = !is_there(Role::Controller);
            if sources_are_done || builder_is_gone || is_over || controller_is_gone {
                let events_are_done = sources_are_done || controller_is_gone && self.posts_of(Role::Source).is_empty();
                self.course.events_took =
                    self.first_event().filter(|_| events_are_done).map(|first| self.clock.now() - first);
                return Ok(());
            }
        }
    }

    /// Returns when there could be an event first: when its source was started, or the first node.
    fn first_event(&self) -> Option<Instant> {
        let role = if self.posts_of(Role::Source).is_empty() { Role::Node } else { Role::Source };
        self.posts_of(role).iter().map(|post| self.posts[*post].started).min()
    }

    /// Ends one role after the other, in the direction of the events, and kills the processes that do not end.
    fn end_all(&mut self) -> Result<(), Error> {
        self.is_ending = true;
        for post in &mut self.posts {
            post.again_at = None;
        }
        for role in [Role::Source, Role::Builder, Role::Controller, Role::Node] {
            let posts = self.posts_of(role);
            for post in &posts {
                if let Some(child) = self.posts[*post].child {
                    self.posts[*post].was_asked = true;
                    self.crew.end(child);
                }
            }
            let has_controller = self.posts_of(Role::Controller).iter().any(|post| self.posts[*post].child.is_some());
            let within = self.farm.run.end_within;
            let within = if has_controller || role == Role::Controller { within } else { within.min(ABANDONED) };
            let until = self.clock.now() + within;
            while posts.iter().any(|post| self.posts[*post].child.is_some()) {
                self.turn()?;
                if self.clock.now() > until || self.signals.is_killed() {
                    self.kill(&posts, within);
                }
            }
        }
        Ok(())
    }

    fn kill(&mut self, posts: &[usize], within: Duration) {
        for post in posts {
            let Post { process, child: Some(child), was_killed, said, .. } = &mut self.posts[*post] else { continue };
            self.crew.kill(*child);
            if !*was_killed && !self.signals.is_killed() {
                let why = format!("was killed: it did not end within {within:?}");
                self.course.failures.push(failure(process, &why, said));
            }
            *was_killed = true;
        }
    }

    /// Takes what happened, and does what is due.
    fn turn(&mut self) -> Result<(), Error> {
        match self.crew.next(TICK) {
            Some(News::Said(child, line)) => self.said(self.post_of[child], &line),
            Some(News::Complained(child, line)) => {
                let is_expected = self.is_ending || !self.is_there(Role::Controller);
                let post = &mut self.posts[self.post_of[child]];
                // Of a controller that ends in order nodes complain; that is told of those which fail over it.
                if !(is_expected && post.process.role == Role::Node) {
                    (self.say)(OutputLine::Complained(&post.process.name, &line));
                }
                if post.said.len() == LAST_LINES {
                    post.said.pop_front();
                }
                post.said.push_back(line);
            }
            Some(News::Ended(child, status)) => self.ended(self.post_of[child], status),
            None => {}
        }
        if self.clock.now() - self.looked < TICK {
            return Ok(());
        }
        self.looked = self.clock.now();
        self.crew.look();
        let due = |post: &Post| post.again_at.is_some_and(|at| at <= self.clock.now());
        for post in (0..self.posts.len()).filter(|post| due(&self.posts[*post])).collect::<Vec<_>>() {
            self.course.restarts += 1;
            self.start(post)?;
        }
        Ok(())
    }

    fn said(&mut self, post: usize, line: &str) {
        let post = &mut self.posts[post];
        if self.site.launcher.on_their_way().is_some_and(|(_, there)| line == there) {
            post.is_on_its_way = false;
            return;
        }
        if let Some(at) = line.strip_prefix(LISTENING_ON)
            && post.process.role.listens()
        {
            post.address = Some(self.site.reached(&post.process.host, at));
            // Should it be started again, the others find it where it was.
            post.process.listen = Some(at.to_owned());
        }
        if post.process.role == Role::Controller
            && let Some(decided) = line.strip_prefix(DECIDED)
        {
            self.course.decided = decided.split(',').next().and_then(|events| events.parse().ok());
        }
        (self.say)(OutputLine::Printed(&post.process.name, line));
    }

    fn ended(&mut self, post: usize, status: ExitStatus) {
        let now = self.clock.now();
        let post = &mut self.posts[post];
        post.child = None;
        post.is_on_its_way = false;
        if post.was_killed || status.success() {
            return;
        }
        // A controller that has said its last line has come to its end, and not well.
        let has_come_to_its_end = post.process.role == Role::Controller && self.course.decided.is_some();
        if self.is_ending || !post.process.restart || has_come_to_its_end {
            self.course.failures.push(failure(&post.process, &format!("ended ({status})"), &post.said));
            return;
        }
        if now - post.started > BACK_OFF_MAX {
            post.wait = BACK_OFF;
        }
        let Process { name, host, .. } = &post.process;
        let wait = post.wait;
        tracing::warn!("{name} on {host} ended ({status}); restarting it in {wait:?}");
        post.again_at = Some(now + wait);
        post.wait = (post.wait * 2).min(BACK_OFF_MAX);
    }
}

/// Says what became of a process, with its last lines.
fn failure(process: &Process, what: &str, said: &VecDeque<String>) -> String {
    let Process { name, host, .. } = process;
    let mut text = format!("{name} on {host} {what}");
    for line in said {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}
