//! pvmonitor, `pvget -m` and pvxmonitor.

use super::pvdata::{Valid, width};
use super::settings::Settings;
use super::{indented, pvxs};
use crate::pva::options::failed;
use crate::pva::writer::Writer;
use crate::{Error, interrupt, terminal};
use hodo_pva_host::client::{Channel, Notice, Operation};
use hodo_pva_host::machines::Value;
use hodo_pva_host::{Client, ClientError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one wait lasts at most: then signals and output are served.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of text that are gathered before they are written.
const AT_ONCE: usize = 64 << 10;

/// Prints updates as pvmonitor does, until a signal comes or all monitors have ended.
pub fn pvmonitor(settings: &Settings, names: &[String]) -> Result<u8, Error> {
    let width = width(names);
    let mut valid: BTreeMap<String, Valid> = BTreeMap::new();
    let mut has_failed = false;
    Watch::begin(settings, names)?.run(&mut |event| match event {
        Event::Update(name, value) => {
            let valid = valid.entry(name.to_owned()).or_default();
            format!("{name:width$} {}", valid.text(settings, value))
        }
        Event::Connected(..) | Event::Finished(_) => String::new(),
        Event::Lost(name) => {
            valid.remove(name);
            format!("{name:width$} <Disconnect>\n")
        }
        Event::Failed(name, why) => {
            has_failed = true;
            terminal::complain(&format!("{name:width$} Error {why}"));
            String::new()
        }
    })?;
    Ok(u8::from(has_failed))
}

/// Prints updates as pvxmonitor does: 0 if all monitors have ended, 2 after a signal.
pub fn pvxmonitor(settings: &Settings, names: &[String]) -> Result<u8, Error> {
    let is_over = Watch::begin(settings, names)?.run(&mut |event| {
        match event {
            Event::Update(name, value) => {
                let text = indented(&pvxs::text(value, settings, true));
                return format!("{name}\n{}", terminal::printable(&text));
            }
            Event::Connected(name, server) => terminal::complain(&format!("{name} Connected to {server}")),
            Event::Lost(name) => terminal::complain(&format!("{name} Disconnected")),
            Event::Failed(name, why) => terminal::complain(&format!("{name} Error {why}")),
            Event::Finished(name) if settings.verbosity > 0 => terminal::complain(&format!("{name} Finished")),
            Event::Finished(_) => {}
        }
        String::new()
    })?;
    Ok(if is_over { 0 } else { 2 })
}

/// An event of a monitor, with the name of the PV.
enum Event<'a> {
    Update(&'a str, &'a Value),
    Connected(&'a str, String),
    Lost(&'a str),
    Finished(&'a str),
    Failed(&'a str, ClientError),
}

struct Watched {
    name: String,
    channel: Channel,
    is_open: bool,
    is_over: bool,
}

/// The monitors of a tool.
struct Watch {
    client: Client,
    monitors: BTreeMap<Operation, Watched>,
    waiting: VecDeque<Operation>,
    refused: Vec<(String, ClientError)>,
}

impl Watch {
    fn begin(settings: &Settings, names: &[String]) -> Result<Self, Error> {
        let request = settings.request()?;
        let mut client = settings.connect().open_to_stay()?;
        let (mut monitors, mut refused) = (BTreeMap::new(), Vec::new());
        for name in names {
            match client.monitor(name, &request) {
                Ok(monitor) => {
                    let channel = client.channel_of(monitor);
                    let watched = Watched { name: name.clone(), channel, is_open: false, is_over: false };
                    monitors.insert(monitor, watched);
                }
                Err(why) => refused.push((name.clone(), why)),
            }
        }
        Ok(Watch { client, monitors, waiting: VecDeque::new(), refused })
    }

    /// Runs until all have ended, a signal comes, or nobody reads the output. Returns whether all have ended.
    fn run(mut self, print: &mut dyn FnMut(Event<'_>) -> String) -> Result<bool, Error> {
        let stop = interrupt::flag()?;
        let writer = Writer::start_in_colours()?;
        let mut text = String::new();
        for (name, why) in std::mem::take(&mut self.refused) {
            text.push_str(&print(Event::Failed(&name, why)));
        }
        let mut can_write = true;
        while can_write && !stop.load(Ordering::Relaxed) && self.monitors.values().any(|watched| !watched.is_over) {
            let within = if self.waiting.is_empty() || text.len() >= AT_ONCE { LOOK } else { Duration::ZERO };
            let mut notice = self.client.next_notice(within).map_err(failed)?;
            while let Some(one) = notice {
                if let Notice::Monitor(monitor) = one {
                    self.waiting.push_back(monitor);
                }
                notice = self.client.next_notice(Duration::ZERO).map_err(failed)?;
            }
            self.look(&mut text, print);
            for _ in 0..self.waiting.len() {
                let Some(monitor) = self.waiting.pop_front() else { break };
                self.take(monitor, &mut text, print);
            }
            // Acknowledgements leave before the updates are printed: a server may wait for them.
            self.client.poll().map_err(failed)?;
            can_write = writer.offer(&mut text);
        }
        let is_over = self.monitors.values().all(|watched| watched.is_over);
        writer.finish(text)?;
        Ok(is_over)
    }

    /// Prints which channels were opened or lost.
    fn look(&mut self, text: &mut String, print: &mut dyn FnMut(Event<'_>) -> String) {
        for watched in self.monitors.values_mut().filter(|watched| !watched.is_over) {
            let is_open = self.client.is_open(watched.channel);
            if is_open == std::mem::replace(&mut watched.is_open, is_open) {
                continue;
            }
            let server = || self.client.server(watched.channel).map_or_else(String::new, |server| server.to_string());
            let event = if is_open { Event::Connected(&watched.name, server()) } else { Event::Lost(&watched.name) };
            text.push_str(&print(event));
        }
    }

    /// Prints the updates of a monitor, as far as there is space for them, and its end.
    fn take(&mut self, monitor: Operation, text: &mut String, print: &mut dyn FnMut(Event<'_>) -> String) {
        let Some(watched) = self.monitors.get_mut(&monitor) else { return };
        loop {
            if text.len() >= AT_ONCE {
                return self.waiting.push_back(monitor);
            }
            let Some(update) = self.client.take_update(monitor) else { break };
            text.push_str(&print(Event::Update(&watched.name, update.value)));
        }
        if let Some(outcome) = self.client.outcome(monitor) {
            watched.is_over = true;
            text.push_str(&print(match outcome {
                Ok(()) => Event::Finished(&watched.name),
                Err(why) => Event::Failed(&watched.name, why),
            }));
        }
    }
}
