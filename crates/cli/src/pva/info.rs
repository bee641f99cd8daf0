//! `hodo pva info`: which types do PVs have, and who serves them?

use super::options::{ConnectOptions, NameOptions};
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_pva_host::Client;
use hodo_pva_host::show::type_text;

/// Queries the types, one after the other over connections that are made together.
pub fn run(options: &InfoOptions) -> Result<Outcome, Error> {
    let names = options.names.all()?;
    let mut client = options.connect.open()?;
    let mut outcome = Outcome::Done;
    for name in &names {
        // What is wrong with a name is told when it is its turn.
        let _ = client.channel(name);
    }
    for name in &names {
        match described(&mut client, name, &options.field) {
            Ok(text) => terminal::print(&text)?,
            Err(why) => {
                outcome = Outcome::Failed;
                terminal::remark(&why.to_string());
            }
        }
    }
    Ok(outcome)
}

fn described(client: &mut Client, name: &str, field: &str) -> Result<String, hodo_pva_host::ClientError> {
    let of = client.info(name, field)?;
    let channel = client.channel(name)?;
    let server = client.server(channel).map_or_else(|| "unknown".to_owned(), |server| server.to_string());
    let lines: String = type_text(&of).lines().map(|line| format!("    {line}\n")).collect();
    Ok(format!("{name}\nServer: {server}\nType:\n{lines}\n"))
}

/// PVs to describe.
#[derive(Debug, Args)]
pub struct InfoOptions {
    /// The names.
    #[command(flatten)]
    pub names: NameOptions,
    /// Show only this field, as alarm.severity.
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub field: String,
    /// The way to the servers.
    #[command(flatten)]
    pub connect: ConnectOptions,
}
