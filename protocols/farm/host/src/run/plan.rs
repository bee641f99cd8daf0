//! Which processes a farm is, and where each of them runs.

use super::file::{Farm, Group};
use super::role::{CommandLine, Role};
use crate::Error;
use hodo_daemon::launch::Task;
use hodo_farm::builder::FRAGMENT;
use hodo_units::bytes;

/// Where a role listens that others reach over the network, and where only those of this machine do.
const LISTEN_ANYWHERE: &str = "0.0.0.0:0";
const LISTEN_HERE: &str = "127.0.0.1:0";

/// A process of a farm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The role.
    pub role: Role,
    /// The name: the role, and a number where there may be several.
    pub name: String,
    /// The host.
    pub host: String,
    /// Whether it is started again where it dies.
    pub restart: bool,
    /// The address on which it listens, if it does.
    pub listen: Option<String>,
    /// The options.
    words: Vec<String>,
}

impl Process {
    /// Returns how it is started: by which program, and connected to whom.
    pub fn task(&self, program: &str, to: Option<&str>) -> Task {
        let mut words = [program, "farm", self.role.word(), "--until-stdin-closes"].map(str::to_owned).to_vec();
        words.extend(self.listen.as_ref().map(|listen| format!("--listen={listen}")));
        words.extend(to.map(|to| format!("--to={to}")));
        words.extend(self.words.iter().cloned());
        Task { name: self.name.clone(), host: self.host.clone(), words }
    }
}

/// Places the processes of a farm on these hosts, in the order of their start. `here`: all hosts are this machine.
pub fn place(farm: &Farm, pool: &[String], here: bool) -> Vec<Process> {
    let own = farm.groups.iter().find(|group| group.role == Role::Controller).and_then(|group| group.hosts.first());
    let first = own.unwrap_or(&pool[0]);
    // The controller's host has enough to do, where there is another one.
    let others: Vec<&String> = pool.iter().filter(|host| *host != first).collect();
    let others = if others.is_empty() { pool.iter().collect() } else { others };
    let mut placed = Vec::new();
    let mut dealt = 0;
    for role in Role::ALL {
        let (mut number, mut first_node) = (0, 0);
        for group in farm.groups.iter().filter(|group| group.role == role) {
            for index in 0..group.count {
                let host = if here {
                    &pool[0]
                } else if !group.hosts.is_empty() {
                    &group.hosts[index % group.hosts.len()]
                } else if role.listens() {
                    first
                } else {
                    dealt += 1;
                    others[(dealt - 1) % others.len()]
                };
                placed.push(process(farm, group, number, first_node, host, here));
                number += 1;
                first_node += group.per_process;
            }
        }
    }
    placed
}

fn process(farm: &Farm, group: &Group, number: usize, first_node: u64, host: &str, here: bool) -> Process {
    let role = group.role;
    let name = if role.is_many() { format!("{role}.{number}") } else { role.to_string() };
    let listen = || if here { LISTEN_HERE } else { LISTEN_ANYWHERE }.to_owned();
    let listen = role.listens().then(|| group.listen.clone().unwrap_or_else(listen));
    let mut words = follows(farm, role, number);
    if role == Role::Node {
        words.extend([format!("--number={first_node}"), format!("--count={}", group.per_process)]);
    }
    words.extend(group.words.iter().cloned());
    Process { role, name, host: host.to_owned(), restart: group.restart, listen, words }
}

/// Returns the options that follow from the rest of the file.
fn follows(farm: &Farm, role: Role, number: usize) -> Vec<String> {
    let run = farm.run.number.map(|run| format!("--run={run}"));
    let sources = farm.count(Role::Source);
    let mut words = Vec::new();
    match role {
        Role::Controller => {
            words.extend(run);
            words.extend(farm.run.store.as_ref().map(|store| format!("--store={store}")));
            let events = farm.run.events.filter(|_| sources == 0);
            if let Some(events) = events {
                words.extend([format!("--events={events}"), "--until-done".to_owned()]);
            }
        }
        Role::Builder => words.push(format!("--sources={sources}")),
        Role::Source => {
            words.push(format!("--number={number}"));
            words.extend(run);
            // To a builder each gives a fragment of every event, else they share the events.
            let share_them = farm.count(Role::Builder) == 0;
            if share_them {
                words.extend([format!("--first={number}"), format!("--step={sources}")]);
            }
            let events = farm.run.events.map(|events| if share_them { share(events, number, sources) } else { events });
            words.extend(events.map(|events| format!("--events={events}")));
            let udp = "--udp".to_owned();
            let builders = farm.groups.iter().filter(|group| group.role == Role::Builder);
            words.extend(builders.flat_map(|group| &group.words).find(|word| **word == udp).cloned());
        }
        Role::Node => {}
    }
    words
}

/// Returns how many of the events are one source's.
fn share(events: u64, number: usize, sources: usize) -> u64 {
    let (number, sources) = (number as u64, sources as u64);
    events / sources + u64::from(number < events % sources)
}

/// Checks that every role takes the options that it is given, as its command line would.
pub fn check(farm: &Farm, commands: &dyn CommandLine) -> Result<(), Error> {
    for (group, number) in farm.groups.iter().zip(0..) {
        let process = process(farm, group, number, 0, "", true);
        let to = (group.role != Role::Controller).then_some("127.0.0.1:1");
        let checked = commands.check(&process.task("hodo", to).words);
        checked.map_err(|why| Error::Settings(format!("{}: {why}", group.place)))?;
    }
    check_sizes(farm, commands)
}

/// Checks that what sources give is taken by everybody behind them, as far as the file shows it.
fn check_sizes(farm: &Farm, commands: &dyn CommandLine) -> Result<(), Error> {
    let groups = |role| farm.groups.iter().filter(move |group: &&Group| group.role == role);
    let largest = |group: &Group, key: &str| {
        let given = group.words.iter().find_map(|word| word.strip_prefix(&format!("--{key}=")).map(str::to_owned));
        let default = || commands.options(group.role).into_iter().find(|option| option.name == key)?.default;
        largest_in(&given.or_else(default)?)
    };
    let sources = groups(Role::Source).filter(|group| !group.words.iter().any(|word| word.starts_with("--replay=")));
    let given: Vec<(&Group, u64)> = sources.filter_map(|group| Some((group, largest(group, "size")?))).collect();
    // The largest event that is given to the controller, and whose table says so.
    let event = match groups(Role::Builder).next() {
        None => given.iter().copied().max_by_key(|(_, size)| *size),
        Some(builder) => {
            let fragments = given.iter().map(|(group, size)| group.count as u64 * (size + FRAGMENT as u64));
            given.iter().try_for_each(|(group, size)| fits(group, *size, (builder, largest(builder, "event-max"))))?;
            Some((builder, fragments.sum()))
        }
    };
    let Some((giver, size)) = event else { return Ok(()) };
    let mut takers = groups(Role::Controller).chain(groups(Role::Node));
    takers.try_for_each(|group| fits(giver, size, (group, largest(group, "event-max"))))
}

fn fits(giver: &Group, size: u64, (taker, max): (&Group, Option<u64>)) -> Result<(), Error> {
    match max {
        Some(max) if size > max => Err(Error::Settings(format!(
            "{}: events of {size} bytes, of which [{}] takes at most {max}; raise its event-max",
            giver.place, taker.role
        ))),
        _ => Ok(()),
    }
}

/// Returns the largest number of bytes in the text of an option, as of `uniform:1K..8K`.
fn largest_in(text: &str) -> Option<u64> {
    text.split([':', ',']).flat_map(|part| part.split("..")).filter_map(|part| bytes(part).ok()).max()
}
