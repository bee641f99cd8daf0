//! `hodo pva call`: call a PV.

use super::options::{ConnectOptions, ShowOptions, failed};
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_pva_host::client::Place;
use hodo_pva_host::parse;

/// Calls a PV with an NTURI, and shows what it returns.
pub fn run(options: &CallOptions) -> Result<Outcome, Error> {
    let pairs = options.arguments.iter().map(|pair| {
        pair.split_once('=').ok_or_else(|| Error::Usage(format!("`{pair}` is no argument: write NAME=VALUE")))
    });
    let pairs: Vec<(&str, &str)> = pairs.collect::<Result<_, _>>()?;
    let place: Place = options.name.parse().map_err(|why| Error::Usage(format!("{}: {why}", options.name)))?;
    let argument = parse::uri(&place.name, pairs).map_err(|why| Error::Usage(why.to_string()))?;
    let mut client = options.connect.open()?;
    let mut text = String::new();
    match client.call(&options.name, Some(argument)).map_err(failed)? {
        Some(value) => options.show.write(&options.name, &value, &mut text),
        None => text.push_str("null\n"),
    }
    terminal::print(&text)?;
    Ok(Outcome::Done)
}

/// A PV to call, and the arguments.
#[derive(Debug, Args)]
pub struct CallOptions {
    /// Name, or pva://HOST:PORT/NAME.
    #[arg(value_name = "PV")]
    pub name: String,
    /// Arguments: numbers, true and false, texts (in double quotes if they look like numbers), and JSON such as `[1,2,3]`.
    #[arg(value_name = "NAME=VALUE")]
    pub arguments: Vec<String>,
    /// The way to the server.
    #[command(flatten)]
    pub connect: ConnectOptions,
    /// How the result is shown.
    #[command(flatten)]
    pub show: ShowOptions,
}
