//! `hodo pva put`: write a PV.

use super::options::{ConnectOptions, RequestOptions, ShowOptions, failed};
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_pva_host::parse;

/// Writes the fields that the words name, and shows the value before and after.
pub fn run(options: &PutOptions) -> Result<Outcome, Error> {
    let mut client = options.connect.open()?;
    let (name, request) = (&options.name, &options.request.request);
    let is_shown = !options.quiet && !options.blind;
    let mut text = String::new();
    let mut show = |what: &str, value: &_| {
        text.push_str(if options.show.terse { "" } else { what });
        options.show.write(name, value, &mut text);
    };
    if is_shown {
        show("Old : ", &client.get(name).map_err(failed)?);
    }
    client.put_with(name, request, !options.blind, |value| parse::words(value, &options.words)).map_err(failed)?;
    if is_shown {
        show("New : ", &client.get(name).map_err(failed)?);
    }
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// A PV to write, and what.
#[derive(Debug, Args)]
pub struct PutOptions {
    /// Name, or pva://HOST:PORT/NAME.
    #[arg(value_name = "PV")]
    pub name: String,
    /// A value, the elements of an array, FIELD=VALUE for each field, or JSON.
    #[arg(value_name = "VALUE", required = true, allow_negative_numbers = true)]
    pub words: Vec<String>,
    /// Show nothing.
    #[arg(short, long)]
    pub quiet: bool,
    /// Do not read the PV, before or after, as for one that can only be written; choices then need their numbers.
    #[arg(long)]
    pub blind: bool,
    /// The options of the put.
    #[command(flatten)]
    pub request: RequestOptions,
    /// The way to the server.
    #[command(flatten)]
    pub connect: ConnectOptions,
    /// How the values are shown.
    #[command(flatten)]
    pub show: ShowOptions,
}
