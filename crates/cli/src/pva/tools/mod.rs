//! The programs of pvAccessCPP and pvxs, under their names: what they write, print and return.
//!
//! Options, what is written, standard output and exit status are theirs. Standard error has their words and, behind them, ours.

mod getopt;
mod list;
mod pvdata;
mod pvxs;
mod settings;
mod watch;

use crate::pva::options::failed;
use crate::{Error, terminal};
use hodo_pva_host::client::{ClientError, Trouble};
use settings::{Line, Settings, TOOLS, Tool};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the tool by whose name the process was started. Returns `None` under any other name, or with a long option, which is ours.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let (program, arguments) = arguments.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    let tool = TOOLS.iter().find(|tool| tool.name == name)?;
    let arguments: Vec<String> = arguments.iter().map(|one| one.to_string_lossy().into_owned()).collect();
    if matches!(arguments.first().map(String::as_str), Some("--help" | "--version")) {
        return None;
    }
    let status = started(tool, &arguments).unwrap_or_else(|why| {
        terminal::complain(&format!("Error: {why}"));
        1
    });
    Some(status.into())
}

fn started(tool: &Tool, arguments: &[String]) -> Result<u8, Error> {
    let tool = if tool.name == "eget" { eget(arguments) } else { *tool };
    let is_help_of_eget = tool.letters.is_empty();
    let tool = if is_help_of_eget { TOOLS[6] } else { tool };
    match settings::read(&tool, arguments) {
        Line::Print(text) => terminal::print(&text).map(|()| 0),
        Line::End(text, status) => {
            terminal::complain(&text);
            Ok(if is_help_of_eget { 1 } else { status })
        }
        Line::Run(settings, operands) => run_tool(&tool, &settings, &operands),
    }
}

/// Returns the tool that eget is: pvcall with `-s`, else pvget; with `-h`, which it looks for first, one without options.
fn eget(arguments: &[String]) -> Tool {
    let letter = arguments
        .iter()
        .filter_map(|one| one.strip_prefix('-')?.chars().next())
        .find(|letter| matches!(letter, 's' | 'h'));
    let letters = |name: &str| TOOLS.iter().find(|tool| tool.name == name).map_or("", |tool| tool.letters);
    match letter {
        Some('h') => Tool { name: "eget", letters: "", is_posix: false },
        Some(_) => Tool { name: "pvcall", letters: letters("pvcall"), is_posix: false },
        None => Tool { name: "pvget", letters: letters("pvget"), is_posix: false },
    }
}

fn run_tool(tool: &Tool, settings: &Settings, operands: &[String]) -> Result<u8, Error> {
    match tool.name {
        "pvget" | "pvmonitor" if settings.monitors => watch::pvmonitor(settings, operands),
        "pvget" => pvdata::get(settings, operands),
        "pvput" => pvdata::put(settings, operands),
        "pvinfo" => pvdata::info(settings, operands),
        "pvcall" => pvdata::call(settings, operands),
        "pvlist" => list::pvlist(settings, operands),
        "pvxget" => pvxs::get(settings, operands),
        "pvxput" => pvxs::put(settings, operands),
        "pvxmonitor" => watch::pvxmonitor(settings, operands),
        "pvxinfo" => pvxs::info(settings, operands),
        "pvxlist" => list::pvxlist(settings, operands),
        _ => pvxs::call(settings, operands),
    }
}

/// Tells whether an operation has only not come to an end: then a tool says `Timeout`.
fn is_timeout(why: &ClientError) -> bool {
    let why = why.trouble();
    matches!(
        why,
        Some(
            Trouble::NotFound { .. }
                | Trouble::NotConnected { .. }
                | Trouble::NoReply { .. }
                | Trouble::Unreachable { .. }
        )
    )
}

/// Prints the words of a tool for an error, and ours where they say more.
fn complain(why: &ClientError) {
    if is_timeout(why) {
        terminal::complain("Timeout");
        terminal::remark(&why.to_string());
    } else {
        terminal::complain(&format!("Error: {why}"));
    }
}

/// Returns an error of reading a name as the program's.
fn open(settings: &Settings) -> Result<hodo_pva_host::Client, Error> {
    settings.connect().open().map_err(failed)
}

/// Returns text with each line indented by four.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
