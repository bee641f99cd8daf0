//! Slips on the command line: what people type who come from another tool or another field, and the command that they mean.

mod foreign;

use crate::command_line::Cli;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory};
use hodo_daemon::launch::quoted;
use std::ffi::OsString;

/// The command in front of the slip, the words that are one, and what is said.
type Slip = (&'static str, &'static [&'static str], &'static str);

/// Commands that there are under another name.
const COMMANDS: &[Slip] = &[
    ("hodo", &["version"], "type `hodo -V`"),
    ("hodo", &["demo", "demonstration", "start"], "`hodo` alone runs the demonstration"),
    (
        "hodo",
        &["client", "connect", "measure", "speed", "test"],
        "`hodo bench tcp://HOST:4242` measures a link; `hodo serve tcp://:4242` is its far end on HOST",
    ),
    ("hodo", &["server", "listen", "daemon"], "`hodo serve tcp://:4242` is the far end of a link"),
    (
        "hodo",
        &["ping"],
        "`hodo bench tcp://HOST:4242 --test latency` measures round trips; `hodo pingpong HOST` does over RDMA",
    ),
    (
        "hodo",
        &["ibv_rc_pingpong", "ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw", "ib_read_lat", "ib_read_bw"],
        "`hodo pingpong HOST` exchanges messages over RDMA, with --test write-bw and the like as perftest",
    ),
    (
        "hodo",
        &["caget", "caput", "camonitor"],
        "Channel Access is not among its protocols; `hodo pva` has the commands of pvAccess",
    ),
    (
        "hodo ipbus",
        &["list", "ls", "show"],
        "`hodo ipbus nodes TABLE.xml` lists nodes; `hodo ipbus devices -c CONNECTIONS.xml` lists devices",
    ),
    ("hodo ipbus", &["get"], "type `hodo ipbus read DEVICE NODE`"),
    ("hodo ipbus", &["set", "put"], "type `hodo ipbus write DEVICE NODE VALUE`"),
    ("hodo ipbus", &["ping"], "`hodo bench ipbusudp-2.0://BOARD:50001 --test latency` measures round trips"),
    (
        "hodo farm",
        &["show", "get", "list", "ls", "events"],
        "`hodo farm verify DIR` counts the events of a store; `hodo farm export DIR OUT.parquet` writes each with its \
         number and data",
    ),
    ("hodo farm", &["start"], "`hodo farm run FARM.toml` runs a farm; `hodo farm resume` starts one that is paused"),
    ("hodo farm", &["dispatcher", "server"], "type `hodo farm controller`"),
    ("hodo pva", &["caget", "read"], "type `hodo pva get PV`"),
    ("hodo pva", &["caput", "write", "set"], "type `hodo pva put PV VALUE`"),
    ("hodo pva", &["camonitor", "watch"], "type `hodo pva monitor PV`"),
    ("hodo pva", &["rpc"], "type `hodo pva call PV NAME=VALUE`"),
    ("hodo pva", &["type", "struct"], "type `hodo pva info PV`"),
    ("hodo pva", &["servers"], "type `hodo pva list`"),
    (
        "hodo spacewire",
        &["list", "ls", "paths", "network"],
        "http://HOST:9209/paths, a page of `hodo spacewire bridge`, lists the paths to its memories",
    ),
    ("hodo spacewire", &["dump", "capture"], "type `hodo spacewire sniff ssdtp2://HOST:10030`"),
    ("hodo hub", &["start", "run", "serve"], "`hodo hub` alone starts it"),
    ("hodo hub", &["list", "ls", "top", "clients", "boards"], "type `hodo hub stats`"),
];

/// Options that there are under another name.
const OPTIONS: &[Slip] = &[
    ("hodo bench", HOSTS, "the link names host and port: `hodo bench tcp://HOST:4242`"),
    ("hodo why", HOSTS, "the link names host and port: `hodo why tcp://HOST:4242`"),
    ("hodo serve", HOSTS, "the URI names address and port: `hodo serve tcp://:4242` takes every address of this host"),
    ("hodo serve", &["--listen", "--bind"], "the URI names address and port: `hodo serve tcp://:4242`"),
    ("hodo hub", HOSTS, "`hodo hub --listen :10203` takes every address of this host"),
    ("hodo pva serve", HOSTS, "`hodo pva serve PVS.toml --listen :5075` takes every address of this host"),
    ("hodo farm controller", HOSTS, "`hodo farm controller --listen :5500` takes every address of this host"),
    (
        "hodo bench",
        &["-o", "--output", "--csv", "--format"],
        "results go to --json FILE, --tsv FILE, or --out DIR with all forms",
    ),
    ("hodo bench", &["--streams", "--connections", "--flows"], "write --channels N"),
    ("hodo report", &["--csv", "--text"], "write --tsv FILE"),
    ("hodo bench", &["--threads", "-j"], "threads follow channels and processors: --channels N and --cpu LIST"),
    ("hodo pva", &["--json"], "write -M json"),
    ("hodo pva", &["-V", "--version"], "type `hodo -V`"),
    (
        "hodo ipbus",
        &["--address", "-a"],
        "an address stands for a node: `hodo ipbus read ipbusudp-2.0://BOARD:50001 0x1000`",
    ),
    ("hodo farm node", HOSTS, "`hodo farm node --to HOST:5500` takes events of that controller"),
    ("hodo farm source", HOSTS, "`hodo farm source --to HOST:5500` sends events to that controller"),
];

const HOSTS: &[&str] = &["--controller", "--host", "--hostname", "--server", "--connect", "--port", "-p", "--address"];

/// The usual form of commands that lack what they are about, or have it in the wrong place.
const USUAL: &[(&str, &str)] = &[
    ("hodo bench", "`hodo bench tcp` measures TCP on this host, `hodo bench tcp://HOST:4242` to another one"),
    ("hodo why", "`hodo why tcp` examines TCP on this host, `hodo why tcp://HOST:4242` to another one"),
    ("hodo watch", "`hodo watch tcp://HOST:4242 --every 5m` measures a link again and again"),
    ("hodo serve", "`hodo serve tcp://:4242` listens at every address of this host, `hodo serve tcp` on loopback"),
    ("hodo limits", "`hodo limits --line-rate 1G --mtu 1500` calculates what a line can carry"),
    ("hodo report", "`hodo report RESULT.json --html REPORT.html` rebuilds outputs from a result"),
    ("hodo compare", "`hodo compare BEFORE.json AFTER.json` compares two results"),
    ("hodo pva serve", "`hodo pva serve PVS.toml` serves the PVs of a file"),
    ("hodo pva put", "`hodo pva put PV VALUE` writes a value"),
    ("hodo ipbus read", "`hodo ipbus read ipbusudp-2.0://BOARD:50001 0x1000` reads an address without a table"),
    ("hodo spacewire read", "`hodo spacewire read ssdtp2://HOST:10030 0x0 --path 4 --reply-path 1` reads 4 bytes"),
];

/// Returns the error for a command line that cannot be parsed, with the command to type where it is known.
pub fn answered(mut said: Error, arguments: &[OsString]) -> Error {
    let words: Vec<String> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let (path, rest) = path_of(&words);
    let tips = tips(&said, &path, rest);
    if tips.is_empty() {
        if !is_negative(&said) {
            // Hardly anybody means an option as a value.
            said.remove(ContextKind::Suggested);
        }
        return said;
    }
    // What only looks alike is no help beside it.
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::Usage] {
        said.remove(kind);
    }
    let tips = tips.into_iter().map(StyledStr::from).collect();
    said.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    said
}

/// Returns whether the argument that is not known is a negative number.
fn is_negative(said: &Error) -> bool {
    let Some(ContextValue::String(argument)) = said.get(ContextKind::InvalidArg) else { return false };
    argument.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns what to do instead.
fn tips(said: &Error, path: &str, rest: &[String]) -> Vec<String> {
    if !said.use_stderr() {
        return Vec::new();
    }
    if let Some(tips) = foreign::translated(path, rest) {
        return tips;
    }
    let text = |kind| match said.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let usual = || USUAL.iter().filter(|(of, _)| *of == path).map(|(_, tip)| (*tip).to_owned()).collect();
    match said.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand);
            tip_for(COMMANDS, word, |of| path == of)
                .unwrap_or_else(|| if path == "hodo" { elsewhere(rest) } else { Vec::new() })
        }
        ErrorKind::UnknownArgument => {
            let option = text(ContextKind::InvalidArg);
            let name = option.split('=').next().unwrap_or_default();
            tip_for(OPTIONS, name, |of| path.starts_with(of))
                .unwrap_or_else(|| if path == "hodo limits" { usual() } else { Vec::new() })
        }
        ErrorKind::MissingRequiredArgument if lacks_positional(said) => usual(),
        _ => Vec::new(),
    }
}

/// Returns the tip of a table for a word behind a command that `is_of` accepts.
fn tip_for(table: &[Slip], word: &str, is_of: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let found = table.iter().find(|(of, words, _)| words.contains(&word) && is_of(of));
    found.map(|(_, _, tip)| vec![(*tip).to_owned()])
}

/// Returns whether an argument without a name is missing, and not only an option.
fn lacks_positional(said: &Error) -> bool {
    let Some(ContextValue::Strings(missing)) = said.get(ContextKind::InvalidArg) else { return false };
    missing.iter().any(|argument| argument.starts_with('<'))
}

/// Returns the path of the command that the words begin with, and the words behind it.
fn path_of(words: &[String]) -> (String, &[String]) {
    let (mut path, mut command, mut rest) = ("hodo".to_owned(), &Cli::command(), words);
    while let Some(sub) = rest.first().and_then(|word| command.find_subcommand(word)) {
        path = format!("{path} {}", sub.get_name());
        (command, rest) = (sub, &rest[1..]);
    }
    (path, rest)
}

/// Returns the commands that a line means whose first word is a link, a command of a group, or a tool of the field.
fn elsewhere(words: &[String]) -> Vec<String> {
    let [first, rest @ ..] = words else { return Vec::new() };
    let typed = |command: &str| vec![format!("type `hodo {command} {}`", quoted(words))];
    let cli = Cli::command();
    let has =
        |group: &str, word: &str| cli.find_subcommand(group).is_some_and(|group| group.find_subcommand(word).is_some());
    if let Ok(link) = hodo_catalog::uri(first) {
        let group = link.protocol.name();
        return match rest.first() {
            Some(word) if has(group, word) => vec![format!("type `hodo {group} {}`", quoted(rest))],
            Some(word) if !word.starts_with('-') => Vec::new(),
            _ => typed("bench"),
        };
    }
    #[cfg(feature = "pva")]
    if let command @ [_, _, ..] = &crate::pva::arguments(words.iter().map(OsString::from))[..]
        && first.starts_with("pv")
    {
        let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        return vec![format!("type `{}`", quoted(&command))];
    }
    if first.contains(['.', ':']) || first == "localhost" {
        let command = [&[format!("tcp://{first}")], rest].concat();
        return vec![format!("type `hodo bench {}`", quoted(&command))];
    }
    let groups: Vec<&str> = cli.get_subcommands().map(Command::get_name).filter(|group| has(group, first)).collect();
    match groups[..] {
        [group] => typed(group),
        _ => groups.iter().map(|group| format!("there is `hodo {group} {first}`")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Returns the commands that stand between backquotes.
    fn commands(tip: &str) -> impl Iterator<Item = &str> {
        tip.split('`').skip(1).step_by(2).filter(|code| code.starts_with("hodo"))
    }

    #[cfg(all(feature = "ipbus", feature = "farm", feature = "pva", feature = "roce", feature = "spacewire"))]
    #[test]
    fn every_command_that_is_named_exists() {
        let tables = COMMANDS.iter().chain(OPTIONS).map(|(_, _, tip)| *tip);
        for tip in tables.chain(USUAL.iter().map(|(_, tip)| *tip)) {
            for command in commands(tip) {
                // The far end of a farm is looked up already here.
                let command = command.replace("HOST:5500", "127.0.0.1:5500");
                if let Err(said) = Cli::try_parse_from(command.split(' ')) {
                    assert!(!said.use_stderr() || command == "hodo pva", "{command}: {said}");
                }
            }
        }
        for (path, ..) in COMMANDS.iter().chain(OPTIONS) {
            let words: Vec<String> = path.split(' ').skip(1).map(str::to_owned).collect();
            assert_eq!(path_of(&words), ((*path).to_owned(), &[][..]), "there is no such command");
        }
    }

    #[test]
    fn nothing_that_exists_has_another_name() {
        for (path, words, _) in COMMANDS {
            let words_of_path: Vec<&str> = path.split(' ').skip(1).collect();
            let cli = Cli::command();
            let command = words_of_path.iter().try_fold(&cli, |command, word| command.find_subcommand(word));
            let exists = |word: &&&str| command.is_some_and(|command| command.find_subcommand(**word).is_some());
            assert_eq!(words.iter().find(exists), None, "{path}");
        }
    }
}
