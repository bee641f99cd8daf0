//! The file that says what a farm consists of.

use super::Launch;
use super::role::{self, CommandLine, Role};
use super::table::{Source, Table, unknown};
use crate::Error;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The time that a role has to say where it listens, and to end when it is asked to.
const START_WITHIN: Duration = Duration::from_secs(30);
const END_WITHIN: Duration = Duration::from_secs(30);
/// More processes than a farm has in one table.
const COUNT_MAX: u64 = 10_000;

const TABLES: &[&str] = &["run", "ssh", "slurm", "controller", "builder", "source", "node"];
const RUN_KEYS: &[&str] =
    &["number", "events", "time", "store", "launch", "hosts", "program", "start-within", "end-within"];
const SLURM_KEYS: &[&str] = &["nodes", "options", "step-options"];
/// Keys of a role beside its options.
const ROLE_KEYS: &[&str] = &["count", "hosts", "restart", "per-process"];

/// A farm.
#[derive(Debug)]
pub struct Farm {
    /// The run.
    pub run: Run,
    /// Words for `ssh`.
    pub ssh: Vec<String>,
    /// What Slurm is asked for.
    pub slurm: Slurm,
    /// Its roles, as they are started.
    pub groups: Vec<Group>,
}

/// `[run]`.
#[derive(Debug)]
pub struct Run {
    /// The run's number.
    pub number: Option<u64>,
    /// How many events it has.
    pub events: Option<u64>,
    /// How long it lasts at most.
    pub time: Option<Duration>,
    /// The folder of what was accepted.
    pub store: Option<String>,
    /// By what the roles are started.
    pub launch: Option<Launch>,
    /// Where roles are that name no hosts.
    pub hosts: Vec<String>,
    /// The program `hodo` at the hosts.
    pub program: Option<String>,
    /// How long a role has to say where it listens.
    pub start_within: Duration,
    /// How long a role has to end when it is asked to.
    pub end_within: Duration,
}

/// `[slurm]`.
#[derive(Debug)]
pub struct Slurm {
    /// How many nodes.
    pub nodes: Option<u64>,
    /// Words for `salloc` and `sbatch`.
    pub options: Vec<String>,
    /// Words for `srun`.
    pub step_options: Vec<String>,
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
    /// Its options, as words of the command line.
    pub words: Vec<String>,
    /// File and line, for messages.
    pub place: String,
}

/// Reads a file. `commands` has the options of the roles.
pub fn read(path: &Path, commands: &dyn CommandLine) -> Result<Farm, Error> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|why| Error::Settings(format!("{name}: cannot be read: {why}")))?;
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
    let farm = Farm { run: run(source, &tables)?, ssh: ssh(source, &tables)?, slurm: slurm(source, &tables)?, groups };
    check(source, &farm)?;
    Ok(farm)
}

/// Checks what no table alone can show.
fn check(source: Source<'_>, farm: &Farm) -> Result<(), Error> {
    let count = |role| farm.count(role);
    let wrong = |why: &str| Err(Error::Settings(format!("{}: {why}", source.name)));
    if count(Role::Controller) == 0 {
        return wrong("there is no [controller]; a farm has one, if only with the line [controller]");
    }
    if count(Role::Node) == 0 {
        return wrong("there is no [[node]]; nobody would decide");
    }
    if count(Role::Builder) > 0 && count(Role::Source) == 0 {
        return wrong("there is a [builder] but no [[source]] to build from");
    }
    if count(Role::Source) == 0 && farm.run.events.is_none() {
        return wrong("there is neither a [[source]] nor `events` in [run] for the controller's own generator");
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
    let count = table.number("count", 1..COUNT_MAX + 1)?.unwrap_or(1);
    let (mut words, mut last) = (Vec::new(), Vec::new());
    for entry in table.beside(ROLE_KEYS).filter(|entry| entry.key != "listen") {
        let (option, takes_all) = role::words(&options, entry).map_err(|why| table.wrong(entry, &why))?;
        if takes_all && !last.is_empty() {
            return Err(table.wrong(entry, "only one key may take all the words that follow"));
        }
        if takes_all { last = option } else { words.extend(option) }
    }
    words.extend(last);
    let group = Group {
        role,
        count: usize::try_from(count).expect("bounded above"),
        per_process: table.number("per-process", 1..COUNT_MAX + 1)?.unwrap_or(1),
        hosts: table.hosts("hosts")?.unwrap_or_default(),
        restart: table.flag("restart")?,
        listen: table.text("listen")?,
        words,
        place: format!("{}:{}: {}", source.name, source.line(&table.at), role.title()),
    };
    if role.listens() && group.hosts.len() > 1 {
        return Err(table.wrong(table.entry("hosts").expect("it has hosts"), "it is one process: write one host"));
    }
    Ok(group)
}

/// Reads a table that need not be there.
fn optional<'a>(
    source: Source<'a>,
    tables: &'a DeTable<'a>,
    title: &'a str,
    known: &[&str],
) -> Result<Option<Table<'a>>, Error> {
    let name = title.trim_matches(['[', ']']);
    tables.get(name).map(|table| Table::new(source, title, table, known, &[])).transpose()
}

fn run(source: Source<'_>, tables: &DeTable<'_>) -> Result<Run, Error> {
    let Some(table) = optional(source, tables, "[run]", RUN_KEYS)? else { return Ok(Run::default()) };
    let launch = table.text("launch")?.map(|text| {
        let wrong = || table.wrong(table.entry("launch").expect("it was read"), "write local, ssh or slurm");
        Launch::of_name(&text).ok_or_else(wrong)
    });
    Ok(Run {
        number: table.number("number", 0..1 << 32)?,
        events: table.number("events", 1..1 << 63)?,
        time: table.span("time")?,
        store: table.text("store")?,
        launch: launch.transpose()?,
        hosts: table.hosts("hosts")?.unwrap_or_default(),
        program: table.text("program")?,
        start_within: table.span("start-within")?.unwrap_or(START_WITHIN),
        end_within: table.span("end-within")?.unwrap_or(END_WITHIN),
    })
}

impl Default for Run {
    fn default() -> Self {
        Run {
            number: None,
            events: None,
            time: None,
            store: None,
            launch: None,
            hosts: Vec::new(),
            program: None,
            start_within: START_WITHIN,
            end_within: END_WITHIN,
        }
    }
}

fn ssh(source: Source<'_>, tables: &DeTable<'_>) -> Result<Vec<String>, Error> {
    let table = optional(source, tables, "[ssh]", &["options"])?;
    Ok(table.map(|table| table.texts("options")).transpose()?.flatten().unwrap_or_default())
}

fn slurm(source: Source<'_>, tables: &DeTable<'_>) -> Result<Slurm, Error> {
    // Whole nodes, because one processor of each would be the default; and processes choose their processors themselves.
    let default = |word: &str| vec![word.to_owned()];
    let (options, step_options) = ("--exclusive", "--cpu-bind=none");
    let Some(table) = optional(source, tables, "[slurm]", SLURM_KEYS)? else {
        return Ok(Slurm { nodes: None, options: default(options), step_options: default(step_options) });
    };
    Ok(Slurm {
        nodes: table.number("nodes", 1..COUNT_MAX + 1)?,
        options: table.texts("options")?.unwrap_or_else(|| default(options)),
        step_options: table.texts("step-options")?.unwrap_or_else(|| default(step_options)),
    })
}
