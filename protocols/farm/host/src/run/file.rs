//! The file that says what a farm consists of.

use super::Launch;
use super::role::{self, CommandLine, Role};
use super::table::{Source, Table, unknown};
use super::values::{flag, hosts, launch, span, text, texts, whole};
use crate::Error;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// More processes than a farm has in one table.
const COUNT_END: u64 = 10_001;

const TABLES: &[&str] = &["run", "ssh", "slurm", "controller", "builder", "source", "node"];
const RUN_KEYS: &[&str] =
    &["number", "events", "time", "store", "launch", "hosts", "program", "start-within", "end-within"];
const SSH_KEYS: &[&str] = &["options"];
const SLURM_KEYS: &[&str] = &["nodes", "options", "step-options"];
/// Keys that every role may have.
const ROLE_KEYS: &[&str] = &["count", "hosts", "restart", "per-process"];
/// Keys that are no words of a role's command; only roles that listen have the option `listen`.
const PLACING_KEYS: &[&str] = &["count", "hosts", "restart", "per-process", "listen"];

/// A farm.
#[derive(Debug)]
pub struct Farm {
    /// The run.
    pub run: Run,
    /// The settings of ssh.
    pub ssh: Ssh,
    /// The settings of Slurm.
    pub slurm: Slurm,
    /// The roles, in the order in which they are started.
    pub groups: Vec<Group>,
}

/// `[run]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Run {
    /// The run's number.
    #[serde(default, deserialize_with = "whole::<_, _, 0, 0x1_0000_0000>")]
    pub number: Option<u64>,
    /// The number of events.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 0x8000_0000_0000_0000>")]
    pub events: Option<u64>,
    /// The longest time that the run lasts.
    #[serde(default, deserialize_with = "span")]
    pub time: Option<Duration>,
    /// The folder of accepted events.
    #[serde(default, deserialize_with = "text")]
    pub store: Option<String>,
    /// The means by which the roles are started.
    #[serde(default, deserialize_with = "launch")]
    pub launch: Option<Launch>,
    /// The hosts of roles that name none.
    #[serde(default, deserialize_with = "hosts")]
    pub hosts: Vec<String>,
    /// The program `hodo` at the hosts.
    #[serde(default, deserialize_with = "text")]
    pub program: Option<String>,
    /// The time that a role has to say where it listens.
    #[serde(default = "patience", deserialize_with = "span")]
    pub start_within: Duration,
    /// The time that a role has to end when it is asked to.
    #[serde(default = "patience", deserialize_with = "span")]
    pub end_within: Duration,
}

const fn patience() -> Duration {
    Duration::from_secs(30)
}

/// `[ssh]`.
#[derive(Debug, Deserialize)]
pub struct Ssh {
    /// Words for `ssh`.
    #[serde(default, deserialize_with = "texts")]
    pub options: Vec<String>,
}

/// `[slurm]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Slurm {
    /// The number of nodes.
    #[serde(default, deserialize_with = "whole::<_, _, 1, COUNT_END>")]
    pub nodes: Option<u64>,
    /// Words for `salloc` and `sbatch`: whole nodes, because one processor of each would be the default.
    #[serde(default = "exclusive", deserialize_with = "texts")]
    pub options: Vec<String>,
    /// Words for `srun`: processes choose their processors themselves.
    #[serde(default = "unbound", deserialize_with = "texts")]
    pub step_options: Vec<String>,
}

fn exclusive() -> Vec<String> {
    vec!["--exclusive".to_owned()]
}

fn unbound() -> Vec<String> {
    vec!["--cpu-bind=none".to_owned()]
}

/// Keys of a role beside its options.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Placing {
    #[serde(default = "one", deserialize_with = "whole::<_, _, 1, COUNT_END>")]
    count: u64,
    #[serde(default = "one", deserialize_with = "whole::<_, _, 1, COUNT_END>")]
    per_process: u64,
    #[serde(default, deserialize_with = "hosts")]
    hosts: Vec<String>,
    #[serde(default, deserialize_with = "flag")]
    restart: bool,
    #[serde(default, deserialize_with = "text")]
    listen: Option<String>,
}

const fn one() -> u64 {
    1
}

/// The table of a role: processes that differ in nothing but their number and host.
#[derive(Debug)]
pub struct Group {
    /// The role.
    pub role: Role,
    /// How many processes.
    pub count: usize,
    /// How many nodes each of them is.
    pub per_process: u64,
    /// Where; empty: where there is room.
    pub hosts: Vec<String>,
    /// Whether one that dies is started again.
    pub restart: bool,
    /// Where it listens, where the file says so.
    pub listen: Option<String>,
    /// The options of the role, as words of the command line.
    pub words: Vec<String>,
    /// File and line, for messages.
    pub place: String,
}

/// Reads a file. `commands` has the options of the roles.
pub fn read(path: &Path, commands: &dyn CommandLine) -> Result<Farm, Error> {
    let name = path.display().to_string();
    let text =
        hodo_io::files::read_text(path).map_err(|why| Error::Settings(format!("{name}: cannot be read: {why}")))?;
    parse(Source { name: &name, text: &text }, commands)
}

/// Reads the text of a file.
pub fn parse(source: Source<'_>, commands: &dyn CommandLine) -> Result<Farm, Error> {
    let tables = source.parse()?;
    for key in tables.keys() {
        if !TABLES.contains(&key.get_ref().as_ref()) {
            return Err(source.wrong(&key.span(), &unknown("there is no table", key.get_ref(), TABLES)));
        }
    }
    let mut groups = Vec::new();
    for role in Role::ALL {
        for table in of_role(source, &tables, role)? {
            groups.push(group(source, role, commands, table)?);
        }
    }
    let farm = Farm {
        run: optional(source, &tables, "[run]", RUN_KEYS)?,
        ssh: optional(source, &tables, "[ssh]", SSH_KEYS)?,
        slurm: optional(source, &tables, "[slurm]", SLURM_KEYS)?,
        groups,
    };
    check(source, &farm)?;
    Ok(farm)
}

/// Checks what no table alone can show.
fn check(source: Source<'_>, farm: &Farm) -> Result<(), Error> {
    let count = |role| farm.count(role);
    let wrong = |why: &str| Err(Error::Settings(format!("{}: {why}", source.name)));
    if count(Role::Controller) == 0 {
        return wrong("there is no [controller]; add one, if only the line [controller]");
    }
    if count(Role::Node) == 0 {
        return wrong("there is no [[node]] to decide on events; add one");
    }
    if count(Role::Builder) > 0 && count(Role::Source) == 0 {
        return wrong("there is a [builder] but no [[source]] to build from");
    }
    if count(Role::Source) == 0 && farm.run.events.is_none() {
        return wrong(
            "there is no source of events; add a [[source]], or `events` to [run] for the controller's own generator",
        );
    }
    Ok(())
}

impl Farm {
    /// Returns how many processes have a role.
    pub fn count(&self, role: Role) -> usize {
        self.groups.iter().filter(|group| group.role == role).map(|group| group.count).sum()
    }
}

/// Returns the tables of a role: one, or several where there may be.
fn of_role<'a>(
    source: Source<'_>,
    tables: &'a DeTable<'a>,
    role: Role,
) -> Result<Vec<&'a Spanned<DeValue<'a>>>, Error> {
    let Some(value) = tables.get(role.word()) else { return Ok(Vec::new()) };
    match value.get_ref().as_array() {
        Some(list) if role.is_many() => Ok(list.iter().collect()),
        Some(_) => Err(source.wrong(&value.span(), &format!("there is one {}; write {}", role, role.title()))),
        // [node] for [[node]] is plain enough.
        None => Ok(vec![value]),
    }
}

fn group<'a>(
    source: Source<'a>,
    role: Role,
    commands: &dyn CommandLine,
    table: &'a Spanned<DeValue<'a>>,
) -> Result<Group, Error> {
    let options = commands.options(role);
    let mut known = role::keys(role, &options);
    known.extend(ROLE_KEYS.iter().filter(|key| match **key {
        "count" => role.is_many(),
        "per-process" => role == Role::Node,
        _ => true,
    }));
    let table = Table::new(source, role.title(), table, &known, role.elsewhere())?;
    let placing: Placing = table.read(PLACING_KEYS)?;
    let (mut words, mut last) = (Vec::new(), Vec::new());
    for entry in table.beside(PLACING_KEYS) {
        let (option, takes_all) = role::words(&options, entry).map_err(|why| table.wrong(entry, &why))?;
        if takes_all && !last.is_empty() {
            return Err(table.wrong(entry, "only one key may take all the words that follow"));
        }
        if takes_all { last = option } else { words.extend(option) }
    }
    words.extend(last);
    let group = Group {
        role,
        count: usize::try_from(placing.count).expect("bounded above"),
        per_process: placing.per_process,
        hosts: placing.hosts,
        restart: placing.restart,
        listen: placing.listen,
        words,
        place: format!("{}:{}: {}", source.name, source.line(&table.at), role.title()),
    };
    if role.listens() && group.hosts.len() > 1 {
        return Err(table.wrong(table.entry("hosts").expect("it has hosts"), "it is one process: write one host"));
    }
    Ok(group)
}

/// Reads a table that need not be there.
fn optional<'a, T: Deserialize<'a>>(
    source: Source<'a>,
    tables: &'a DeTable<'a>,
    title: &'a str,
    known: &[&str],
) -> Result<T, Error> {
    match tables.get(title.trim_matches(['[', ']'])) {
        Some(table) => Table::new(source, title, table, known, &[])?.read(known),
        None => Table::empty(source, title).read(known),
    }
}
