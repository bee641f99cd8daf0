//! `hodo pva list`, `find` and `beacons`: which servers are there, who has a name, who starts and ends?

use super::options::{ConnectOptions, NameOptions, failed, seconds, server};
use crate::{Error, Outcome, interrupt, terminal};
use clap::Args;
use hodo_io::Clock;
use hodo_pva_host::client::Lookout;
use hodo_pva_host::machines::discovery::Found;
use hodo_pva_host::machines::wire::discovery::Guid;
use hodo_pva_host::parse;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one wait lasts at most: then signals are looked after.
const LOOK: Duration = Duration::from_millis(100);

/// How long `list` and `find` wait for a further answer, once everything that was asked for has one.
const QUIET: Duration = Duration::from_secs(1);

/// Lists the servers that answer, or the PVs of the servers that are named.
pub fn list(options: &ListOptions) -> Result<Outcome, Error> {
    if !options.servers.is_empty() {
        return list_pvs(options);
    }
    let mut lookout = Lookout::open(&options.connect.options(false)?).map_err(failed)?;
    lookout.list();
    let mut known = BTreeSet::new();
    while_heard(&mut lookout, Some(options.connect.timeout), |found| {
        if let Found::Server { server, guid } = found
            && known.insert((server.to_string(), guid))
        {
            terminal::print(&format!("{server} {}\n", hexadecimal(&guid)))?;
            return Ok(Heard::Enough);
        }
        Ok(Heard::NotEnough)
    })?;
    if known.is_empty() {
        terminal::remark("no server has answered: check EPICS_PVA_ADDR_LIST, and that one runs");
    }
    Ok(if known.is_empty() { Outcome::Failed } else { Outcome::Done })
}

/// Queries servers for the names of their PVs, as pvlist does.
fn list_pvs(options: &ListOptions) -> Result<Outcome, Error> {
    let mut client = options.connect.open()?;
    let mut outcome = Outcome::Done;
    for server in &options.servers {
        let question = parse::uri("server", [("op", "channels")]).map_err(failed)?;
        let names = match client.call(&format!("pva://{server}/server"), Some(question)) {
            Ok(value) => value.ok_or_else(|| "it has replied with nothing".to_owned()),
            Err(why) => Err(why.to_string()),
        };
        let lines = names.and_then(|value| {
            let names = value.get("value").and_then(|item| item.as_array()?.iter_texts());
            let names = names.ok_or("it has replied with no list of names")?;
            Ok(names.map(|name| format!("{}\n", String::from_utf8_lossy(name).escape_debug())).collect::<String>())
        });
        match lines {
            Ok(lines) => terminal::print(&lines)?,
            Err(why) => {
                outcome = Outcome::Failed;
                terminal::remark(&format!("{server} does not list its PVs: {why}"));
            }
        }
    }
    Ok(outcome)
}

/// Says which servers have names: all that answer.
pub fn find(options: &FindOptions) -> Result<Outcome, Error> {
    let names = options.names.all()?;
    let mut lookout = Lookout::open(&options.connect.options(false)?).map_err(failed)?;
    for (number, name) in (0..).zip(&names) {
        lookout.search(number, name);
    }
    let mut known = BTreeSet::new();
    let mut found_names = vec![false; names.len()];
    let mut left = names.len();
    while_heard(&mut lookout, Some(options.connect.timeout), |found| {
        if let Found::Name { number, server, guid } = found
            && known.insert((number, server.to_string()))
            && let Some(name) = names.get(number as usize)
        {
            left -= usize::from(!std::mem::replace(&mut found_names[number as usize], true));
            terminal::print(&format!("{name} {server} {}\n", hexadecimal(&guid)))?;
            return Ok(if left == 0 { Heard::Enough } else { Heard::NotEnough });
        }
        Ok(Heard::NotEnough)
    })?;
    let absent: Vec<&String> = names.iter().zip(&found_names).filter(|(_, is)| !**is).map(|(name, _)| name).collect();
    for name in &absent {
        terminal::remark(&format!("{name}: no server has answered for it"));
    }
    Ok(if absent.is_empty() { Outcome::Done } else { Outcome::Failed })
}

/// Shows beacons as they come.
pub fn beacons(options: &BeaconsOptions) -> Result<Outcome, Error> {
    let mut lookout = Lookout::open(&options.connect.options(true)?).map_err(failed)?;
    while_heard(&mut lookout, options.span, |found| {
        let line = match found {
            Found::Beacon { is_new: false, .. } if options.new => String::new(),
            Found::Beacon { server, guid, sequence, changes, is_new } => {
                let new = if is_new { " new" } else { "" };
                format!("{server} {} beacon {sequence}, changes {changes}{new}\n", hexadecimal(&guid))
            }
            Found::Gone { server, guid } => format!("{server} {} gone\n", hexadecimal(&guid)),
            _ => String::new(),
        };
        terminal::print(&line).map(|()| Heard::NotEnough)
    })?;
    Ok(Outcome::Done)
}

/// The state of a search after an answer.
enum Heard {
    /// Something that was asked for has no answer, or nothing was asked for, or the answer was known.
    NotEnough,
    /// Only further answers, which come within [`QUIET`] or not at all.
    Enough,
}

/// Hands on what is heard, until the time is over, nothing more is to be expected, or a signal comes.
fn while_heard(
    lookout: &mut Lookout,
    span: Option<Duration>,
    mut told: impl FnMut(Found) -> Result<Heard, Error>,
) -> Result<(), Error> {
    let stop = interrupt::flag()?;
    let clock = Clock::start();
    let until = span.map(|span| clock.now() + span);
    let mut quiet_at = None;
    while !stop.load(Ordering::Relaxed) {
        let end = until.into_iter().chain(quiet_at).min();
        let left = end.map_or(LOOK, |end| Duration::from_nanos(end.nanos_since(clock.now())));
        if left.is_zero() {
            break;
        }
        if let Some(found) = lookout.next(left.min(LOOK)).map_err(failed)?
            && let Heard::Enough = told(found)?
        {
            quiet_at = Some(clock.now() + QUIET);
        }
    }
    Ok(())
}

fn hexadecimal(guid: &Guid) -> String {
    let digits: String = guid.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("0x{digits}")
}

/// Which servers are there.
#[derive(Debug, Args)]
pub struct ListOptions {
    /// Servers whose PVs are listed, instead of the servers.
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    pub servers: Vec<String>,
    /// The way to the servers.
    #[command(flatten)]
    pub connect: ConnectOptions,
}

/// Which servers have a name.
#[derive(Debug, Args)]
pub struct FindOptions {
    /// The names.
    #[command(flatten)]
    pub names: NameOptions,
    /// The way to the servers.
    #[command(flatten)]
    pub connect: ConnectOptions,
}

/// Which beacons are heard.
#[derive(Debug, Args)]
pub struct BeaconsOptions {
    /// End after this time.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub span: Option<Duration>,
    /// Show only those of servers that are new, and servers that are gone.
    #[arg(long)]
    pub new: bool,
    /// The way to the servers.
    #[command(flatten)]
    pub connect: ConnectOptions,
}
