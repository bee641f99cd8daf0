//! Help by size: `-h` fits one screen of 80 columns and 24 lines, and `--help` has everything.

use crate::command_line::Cli;
use crate::terminal;
use clap::builder::{StyledStr, Styles};
use clap::error::{Error, ErrorKind};
use clap::{Arg, Command, CommandFactory};
use std::ffi::OsString;

/// The options that `-h` shows of commands with many. Of all others it shows every one that is not in [`RARE`].
const SHOWN: &[(&str, &[&str])] = &[
    ("hodo", &[]),
    (
        "hodo bench",
        &["test", "mode", "sizes", "window", "channels", "rate", "duration", "repeat", "cpu", "json", "out"],
    ),
    ("hodo why", &["test", "sizes", "window", "channels", "rate", "duration", "cpu", "out"]),
    ("hodo watch", &["every", "count", "history", "metrics", "test", "sizes", "repeat"]),
    ("hodo serve", &["threads", "cpu", "wait", "size-max", "trace", "log"]),
    ("hodo hub", &["listen", "allow", "metrics", "pid-file", "log"]),
    ("hodo limits", &["line-rate", "mtu", "transport", "sizes", "window", "rtt", "cpu-cost", "json"]),
    ("hodo report", &["tsv", "html", "plot", "out"]),
    ("hodo pingpong", &["port", "listen", "size", "mtu", "iters", "events", "backend", "ib-dev", "test"]),
    ("hodo ipbus block read", &["connections", "table", "words", "offset", "output", "form", "tsv", "json", "timeout"]),
    (
        "hodo pva monitor",
        &["file", "count", "for", "plot", "request", "server", "timeout", "mode", "elements", "terse"],
    ),
    ("hodo pva serve", &["check", "listen", "tcp-only", "metrics", "pid-file", "log"]),
    ("hodo pva record", &["file", "output", "every", "for", "request", "server", "timeout"]),
    ("hodo spacewire bridge", &["preset", "show", "check", "listen", "pace", "metrics", "record"]),
    ("hodo spacewire read", &["output", "path", "reply-path", "target", "key", "fixed", "timeout"]),
    ("hodo spacewire write", &["input", "verify", "no-reply", "path", "reply-path", "target", "key"]),
    ("hodo farm controller", &["listen", "store", "durability", "policy", "run", "metrics", "events", "log"]),
    ("hodo farm builder", &["listen", "udp", "to", "sources", "patience", "incomplete", "metrics"]),
    ("hodo farm source", &["to", "udp", "number", "run", "replay", "events", "size", "rate"]),
    ("hodo farm node", &["to", "count", "credits", "accept", "command", "exec", "workers"]),
    ("hodo farm bench", &["preset", "nodes", "credits", "size", "seconds", "threads", "out"]),
];

/// The options that `-h` shows of no command that is not in [`SHOWN`].
const RARE: &[&str] =
    &["crc", "initiator", "pages", "log-format", "log-level", "numbers", "record-size", "reliable", "wait"];

/// Columns where there is no terminal to ask, and the most, as the library of the command line has them.
const WIDTH: usize = 100;
/// Columns that a remark needs beside an example.
const ROOM: usize = 30;

/// Returns an answer to a command line by size, if it is a help.
pub fn by_size(said: Error, arguments: &[OsString]) -> Error {
    if !matches!(said.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return said;
    }
    let is_long = arguments.iter().any(|word| word == "--help" || word == "help");
    let width = width();
    let command = if is_long { full(Cli::command(), width) } else { compact(summed_up("hodo", Cli::command()), width) };
    command.try_get_matches_from(arguments).err().unwrap_or(said)
}

/// Gives each argument a short help beside its long one, and hides options that `-h` does not show.
pub fn summed_up(path: &str, command: Command) -> Command {
    let shown = SHOWN.iter().find(|(of, _)| *of == path).map(|(_, shown)| *shown);
    let is_hidden = |option: &Arg| {
        let Some(long) = option.get_long() else { return false };
        shown.map_or(RARE.contains(&long), |shown| !shown.contains(&long))
    };
    command
        .mut_args(|argument| {
            let is_hidden = is_hidden(&argument);
            with_summary(argument).hide_short_help(is_hidden)
        })
        .mut_subcommands(|sub| summed_up(&format!("{path} {}", sub.get_name()), sub))
}

/// Returns an argument with the beginning of its help as its short help: up to the first semicolon, or the end of the first sentence.
fn with_summary(argument: Arg) -> Arg {
    let Some(help) = argument.get_help().map(ToString::to_string) else { return argument };
    let Some(end) = ["; ", ". "].iter().filter_map(|end| help.find(end)).min() else { return argument };
    // Not within what is in brackets.
    let end = help[..end].rfind(" [").filter(|bracket| !help[*bracket..end].contains(']')).unwrap_or(end);
    argument.help(help[..end].to_owned()).long_help(help)
}

/// Returns the columns that help is printed in.
fn width() -> usize {
    let given = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal::columns(false).or_else(given).unwrap_or(WIDTH).min(WIDTH)
}

/// Returns a command whose short help has no line to spare: no headings of options, and of the commands of a group only their list.
fn compact(command: Command, width: usize) -> Command {
    let has_options =
        command.get_arguments().any(|argument| !argument.is_hide_set() && !argument.is_hide_short_help_set());
    let remarks = command.get_after_help().map(|text| fitted(text, width));
    let command = with_remarks(command, remarks)
        .disable_help_subcommand(true)
        .mut_args(|argument| argument.help_heading(None))
        .mut_subcommands(|sub| compact(sub, width));
    if has_options || !command.has_subcommands() {
        return command;
    }
    let header = Styles::styled().get_header().to_owned();
    command.help_template(format!("{ABOVE}{header}Commands{header:#} {BELOW}"))
}

const ABOVE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n";
const BELOW: &str = "(each has -h, and --help for more):\n{subcommands}{after-help}\n";

/// Returns a command whose long help is as compact as its options let it be.
fn full(command: Command, width: usize) -> Command {
    let remarks = remarks(&command, width);
    with_remarks(command, remarks).after_long_help(None).mut_subcommands(|sub| full(sub, width))
}

fn with_remarks(command: Command, remarks: Option<String>) -> Command {
    match remarks {
        Some(remarks) => command.after_help(remarks),
        None => command,
    }
}

/// Returns all that stands below the options of a command, in this width.
pub fn remarks(command: &Command, width: usize) -> Option<String> {
    command.get_after_long_help().or(command.get_after_help()).map(|text| fitted(text, width))
}

/// Returns remarks of this width: sentences are filled, and what is indented (examples, tables) keeps its lines, the end of one that is too long
/// below its column, or below the line.
fn fitted(text: &StyledStr, width: usize) -> String {
    let is_sentence = |line: &str| line.starts_with(|first: char| first != ' ');
    let text = text.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let blocks = lines.chunk_by(|a, b| is_sentence(a) && is_sentence(b));
    let fitted = blocks.flat_map(|block| {
        if is_sentence(block[0]) {
            hodo_report::wrap(&block.join(" "), width)
        } else {
            vec![fitted_line(block[0], width)]
        }
    });
    fitted.collect::<Vec<_>>().join("\n")
}

fn fitted_line(line: &str, width: usize) -> String {
    let indent = line.len() - line.trim_start().len();
    let gap = line[indent..].find("  ").map(|at| indent + at);
    let Some(gap) = gap.filter(|_| indent > 0 && line.chars().count() > width) else { return line.to_owned() };
    let (begin, remark) = (&line[..gap], line[gap..].trim_start());
    let column = line.len() - remark.len();
    let room = width.saturating_sub(column);
    let fits = room >= ROOM && remark.split(' ').all(|word| word.chars().count() <= room);
    let fitted = if fits {
        terminal::paragraph(&line[..column], remark, width)
    } else {
        format!("{begin}\n{}", terminal::paragraph("      ", remark, width))
    };
    fitted.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_fitted_to_a_width() {
        let text =
            "One sentence that\nis filled:\n  a      what it is, and more of it than fits\n  short  fits\n\nEnd.";
        let narrow = "One sentence that is filled:\n  a      what it is, and more of it than\n         fits\n  short  fits\n\nEnd.";
        assert_eq!(fitted(&text.into(), 40), narrow);
        assert_eq!(fitted(&"  a long command     what it does".into(), 32), "  a long command\n      what it does");
    }

    #[cfg(all(feature = "ipbus", feature = "farm", feature = "pva", feature = "roce", feature = "spacewire"))]
    #[test]
    fn every_option_that_is_shown_exists() {
        for (path, shown) in SHOWN {
            let mut command = Cli::command();
            for name in path.split(' ').skip(1) {
                command = command.find_subcommand(name).unwrap_or_else(|| panic!("{path}")).clone();
            }
            let options: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
            for option in *shown {
                assert!(options.contains(option), "{path} has no --{option}");
            }
        }
    }
}
