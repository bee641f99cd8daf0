//! Options that the commands for channels share: the connection, the names, and how values are shown.

use crate::address::without_scheme;
use crate::{Error, input};
use clap::Args;
use hodo_pva_host::machines::{Request, Value};
use hodo_pva_host::show::{ELEMENTS, Form, Show};
use hodo_pva_host::{Client, ClientOptions};
use std::path::PathBuf;
use std::time::Duration;

/// The way to the servers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectOptions {
    /// The server of all names that are no URI; without it they are searched for.
    #[arg(short = 'S', long, value_name = "HOST[:PORT]", value_parser = server)]
    pub server: Option<String>,
    /// Longest wait for connection and reply.
    #[arg(short = 'w', long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub timeout: Duration,
    /// The provider: there is only pva.
    #[arg(short = 'p', long, value_name = "NAME", hide = true, value_parser = ["pva"])]
    pub provider: Option<String>,
}

impl ConnectOptions {
    /// Creates a client.
    pub fn open(&self) -> Result<Client, Error> {
        Client::open(&self.options(false)?).map_err(failed)
    }

    /// Creates a client that hears of servers that have started.
    pub fn open_to_stay(&self) -> Result<Client, Error> {
        Client::open(&self.options(true)?).map_err(failed)
    }

    /// Returns the options of a client.
    pub fn options(&self, hears_beacons: bool) -> Result<ClientOptions, Error> {
        let options = ClientOptions::from_environment().map_err(|why| Error::Usage(why.to_string()))?;
        Ok(ClientOptions { server: self.server.clone(), timeout: self.timeout, hears_beacons, ..options })
    }
}

/// Returns an error of the client as one of the program.
pub fn failed(error: impl std::fmt::Display) -> Error {
    Error::Failed(error.to_string())
}

/// The fields and options that servers are asked for.
#[derive(Debug, Clone, Args)]
pub struct RequestOptions {
    /// Fields and options, as 'value,alarm' or 'field(value)record[queueSize=100]'.
    #[arg(short = 'r', long, value_name = "REQUEST", default_value = "", hide_default_value = true)]
    pub request: Request,
}

/// The names of the PVs.
#[derive(Debug, Clone, Args)]
pub struct NameOptions {
    /// Names, or pva://HOST:PORT/NAME.
    #[arg(value_name = "PV", required_unless_present = "file")]
    pub names: Vec<String>,
    /// Read further names from a file, separated by blanks; '#' begins a comment; `-` is standard input.
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl NameOptions {
    /// Returns all names.
    pub fn all(&self) -> Result<Vec<String>, Error> {
        let mut names = self.names.clone();
        if let Some(file) = &self.file {
            let cannot = |why: std::io::Error| Error::Usage(format!("--file {} cannot be read: {why}", file.display()));
            let text = input::read_text(file).map_err(cannot)?;
            let lines = text.lines().map(|line| line.split_once('#').map_or(line, |(line, _)| line));
            names.extend(lines.flat_map(str::split_whitespace).map(str::to_owned));
        }
        if names.is_empty() { Err(Error::Usage("no PV is named".into())) } else { Ok(names) }
    }
}

/// How values are shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct ShowOptions {
    /// Form of values: nt, raw, json, tree or delta; nt is one line, or a table; raw goes field by field; tree and delta are as of pvxget.
    #[arg(short = 'M', long, value_name = "FORM", default_value = "nt")]
    pub mode: Form,
    /// Form of values as pvxget names it: tree or delta.
    #[arg(short = 'F', long, value_name = "FORM", conflicts_with = "mode", hide = true)]
    pub format: Option<Form>,
    /// Most elements to show of an array; 0 for all.
    #[arg(short = '#', long, value_name = "N", default_value_t = ELEMENTS)]
    pub elements: usize,
    /// Show only the values; no names, times and alarms.
    #[arg(short, long)]
    pub terse: bool,
    /// Show choices by their numbers.
    #[arg(long)]
    pub numbers: bool,
    /// Show the whole structure; twice, also what servers have not sent.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl ShowOptions {
    /// Appends a value with its name.
    pub fn write(&self, name: &str, value: &Value, into: &mut String) {
        let form = self.format.unwrap_or(if self.verbose > 0 && self.mode == Form::Nt { Form::Raw } else { self.mode });
        // What a call returns has no changed fields: it is whole.
        let only_changed = self.verbose < 2 && !value.changed().is_empty();
        let show = Show { form, elements: self.elements, only_changed, numbers: self.numbers };
        if self.terse {
            into.push_str(&if form == Form::Nt { show.terse(value) } else { show.text(value) });
        } else {
            let text = show.text(value);
            let is_block = text.contains('\n') && form != Form::Raw;
            into.extend([name, if is_block { "\n" } else { " " }, &text]);
        }
        into.push('\n');
    }
}

/// Takes the host of a server, and perhaps its port.
pub fn server(text: &str) -> Result<String, String> {
    without_scheme(text).map(|()| text.to_owned())
}

/// Reads a span in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds, as 5 or 0.1".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(span) if !span.is_zero() && seconds <= 1e9 => Ok(span),
        _ => Err("a number of seconds above 0".into()),
    }
}
