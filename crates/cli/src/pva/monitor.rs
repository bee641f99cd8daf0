//! `hodo pva monitor`: each update of PVs as it comes.

use super::options::{ConnectOptions, NameOptions, RequestOptions, ShowOptions, failed, seconds};
use super::plot;
use super::writer::Writer;
use crate::{Error, Outcome, interrupt, terminal};
use clap::Args;
use hodo_io::Clock;
use hodo_pva_host::Client;
use hodo_pva_host::client::{Channel, ClientError, Notice, Operation};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one wait lasts at most: then signals and output are looked after.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of text that are gathered before they are written.
const AT_ONCE: usize = 64 << 10;

/// Watches until the end of the time, the number of updates, or a signal.
pub fn run(options: &MonitorOptions) -> Result<Outcome, Error> {
    if options.plot {
        return plot::run(options);
    }
    let names = options.names.all()?;
    let stop = interrupt::flag()?;
    let mut client = options.connect.open_to_stay()?;
    let mut watch = Watch { options, left: options.count.unwrap_or(u64::MAX), ..Watch::new(options)? };
    for name in &names {
        watch.begin(&mut client, name);
    }
    let clock = Clock::start();
    let until = options.span.map(|span| clock.now() + span);
    let quiet_at = clock.now() + options.connect.timeout;
    while !stop.load(Ordering::Relaxed) && !watch.is_over() && until.is_none_or(|until| clock.now() < until) {
        watch.turn(&mut client)?;
        if clock.now() >= quiet_at {
            watch.tell_absent(&mut client);
        }
    }
    watch.finish(&mut client)
}

/// A monitor, and what was said of it.
struct Watched {
    name: String,
    channel: Channel,
    updates: u64,
    overruns: u64,
    is_over: bool,
}

/// All monitors of the command.
struct Watch<'a> {
    options: &'a MonitorOptions,
    monitors: BTreeMap<Operation, Watched>,
    /// Monitors with updates that have not been taken.
    waiting: VecDeque<Operation>,
    writer: Writer,
    text: String,
    outcome: Outcome,
    left: u64,
    can_write: bool,
    has_told_absent: bool,
}

impl<'a> Watch<'a> {
    fn new(options: &'a MonitorOptions) -> Result<Self, Error> {
        Ok(Watch {
            options,
            monitors: BTreeMap::new(),
            waiting: VecDeque::new(),
            writer: Writer::start()?,
            text: String::new(),
            outcome: Outcome::Done,
            left: u64::MAX,
            can_write: true,
            has_told_absent: false,
        })
    }

    fn begin(&mut self, client: &mut Client, name: &str) {
        match client.monitor(name, &self.options.request.request) {
            Ok(monitor) => {
                let channel = client.channel_of(monitor);
                let watched = Watched { name: name.into(), channel, updates: 0, overruns: 0, is_over: false };
                self.monitors.insert(monitor, watched);
            }
            Err(why) => self.fail(&why),
        }
    }

    fn fail(&mut self, why: &ClientError) {
        self.outcome = Outcome::Failed;
        terminal::remark(&why.to_string());
    }

    fn is_over(&self) -> bool {
        self.left == 0 || !self.can_write || self.monitors.values().all(|watched| watched.is_over)
    }

    /// Waits a moment for news, and shows them. While the output does not keep up, updates are left to the client, which merges them.
    fn turn(&mut self, client: &mut Client) -> Result<(), Error> {
        self.can_write = self.writer.offer(&mut self.text);
        let within = if self.waiting.is_empty() || self.text.len() >= AT_ONCE { LOOK } else { Duration::ZERO };
        let mut notice = client.next_notice(within).map_err(failed)?;
        while let Some(one) = notice {
            self.note(client, one);
            notice = client.next_notice(Duration::ZERO).map_err(failed)?;
        }
        for _ in 0..self.waiting.len() {
            let Some(monitor) = self.waiting.pop_front() else { break };
            self.take(client, monitor);
        }
        // Acknowledgements leave before what was taken is shown: who acts on that may post again, and a pvxs server whose window is
        // used up then keeps the update until a later post.
        if !self.text.is_empty() {
            client.poll().map_err(failed)?;
        }
        self.can_write = self.writer.offer(&mut self.text) && self.can_write;
        Ok(())
    }

    fn note(&mut self, client: &mut Client, notice: Notice) {
        match notice {
            Notice::Monitor(monitor) => self.waiting.push_back(monitor),
            Notice::Channel(channel) => {
                if let Some(why) = client.trouble(channel) {
                    terminal::remark(&format!("{}: {why}", client.name(channel)));
                }
            }
            Notice::Message(operation, text) => {
                let channel = client.channel_of(operation);
                terminal::remark(&format!("{}: {text}", client.name(channel)));
            }
            Notice::Twice(channel, server) => {
                terminal::remark(&format!(
                    "{}: {server} has it, too; the first that answered is used",
                    client.name(channel)
                ));
            }
            _ => {}
        }
    }

    /// Shows the updates of a monitor that wait, as far as there is room.
    fn take(&mut self, client: &mut Client, monitor: Operation) {
        let Some(watched) = self.monitors.get_mut(&monitor) else { return };
        while self.left > 0 {
            if self.text.len() >= AT_ONCE {
                self.can_write = self.writer.offer(&mut self.text);
                if !self.text.is_empty() {
                    return self.waiting.push_back(monitor);
                }
            }
            let Some(update) = client.take_update(monitor) else { break };
            watched.updates += 1;
            watched.overruns += u64::from(!update.overrun.is_empty());
            self.options.show.write(&watched.name, update.value, &mut self.text);
            self.left -= 1;
        }
        if let Some(outcome) = client.outcome(monitor) {
            watched.is_over = true;
            match outcome {
                Ok(()) => terminal::remark(&format!("{}: the server has ended the monitor", watched.name)),
                Err(why) => self.fail(&why),
            }
        }
    }

    /// Says once which PVs have not been found: they are still waited for.
    fn tell_absent(&mut self, client: &mut Client) {
        if std::mem::replace(&mut self.has_told_absent, true) {
            return;
        }
        for watched in self.monitors.values().filter(|watched| watched.updates == 0) {
            let why =
                why_silent(client, watched.channel, "connected, and no update yet", "not connected yet: still trying");
            terminal::remark(&format!("{}: {why}", watched.name));
        }
    }

    fn finish(mut self, client: &mut Client) -> Result<Outcome, Error> {
        // Where the output is read again just now, the text may have gone, and what is to follow it waits.
        let is_behind = self.left > 0 && !(self.text.is_empty() && self.waiting.is_empty());
        for (monitor, watched) in &mut self.monitors {
            let mut unshown = 0_u64;
            // What those that nobody will see had overwritten is lost as well.
            while is_behind && let Some(update) = client.take_update(*monitor) {
                unshown += 1;
                watched.overruns += u64::from(!update.overrun.is_empty());
            }
            client.finish(*monitor);
            if unshown > 0 {
                terminal::remark(&format!(
                    "{}: {unshown} more updates had come and were not shown: the output was not read",
                    watched.name
                ));
            }
            if watched.overruns > 0 {
                terminal::remark(&format!(
                    "{}: {} of {} updates had overwritten others: a longer queue, as -r 'record[queueSize=100]', loses fewer",
                    watched.name,
                    watched.overruns,
                    watched.updates + unshown
                ));
            }
            if watched.updates == 0 {
                self.outcome = Outcome::Failed;
                if !self.has_told_absent && !watched.is_over {
                    let connected = "no update was shown: none has come, or the output was not read";
                    let absent = "not found until the end: no server has answered";
                    let why = why_silent(client, watched.channel, connected, absent);
                    terminal::remark(&format!("{}: {why}", watched.name));
                }
            }
        }
        client.poll().map_err(failed)?;
        self.writer.finish(self.text)?;
        Ok(self.outcome)
    }
}

/// Returns why a PV has sent nothing: its trouble, or else one of these words, by whether it is connected.
fn why_silent(client: &Client, channel: Channel, connected: &str, absent: &str) -> String {
    match client.trouble(channel) {
        Some(why) => why.to_string(),
        None if client.is_open(channel) => connected.to_owned(),
        None => absent.to_owned(),
    }
}

/// PVs to watch.
#[derive(Debug, Args)]
pub struct MonitorOptions {
    /// The names.
    #[command(flatten)]
    pub names: NameOptions,
    /// End after so many updates.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub span: Option<Duration>,
    /// Draw numbers over time, and arrays over their elements, in the terminal.
    #[arg(long)]
    pub plot: bool,
    /// The time that a plot shows.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds, requires = "plot")]
    pub window: Duration,
    /// The fields.
    #[command(flatten)]
    pub request: RequestOptions,
    /// The way to the servers.
    #[command(flatten)]
    pub connect: ConnectOptions,
    /// How the values are shown.
    #[command(flatten)]
    pub show: ShowOptions,
}
