//! pvlist of pvAccessCPP and pvxlist of pvxs.

use super::settings::Settings;
use super::{complain, open};
use crate::pva::find::{Heard, hexadecimal, while_heard};
use crate::pva::options::failed;
use crate::{Error, terminal};
use hodo_machine::harmless;
use hodo_pva_host::client::Lookout;
use hodo_pva_host::machines::discovery::Found;
use hodo_pva_host::machines::{Item, Value};
use hodo_pva_host::show::{PvDataForm, pvdata_text};
use hodo_pva_host::{Client, ClientError, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Servers by their identity in hexadecimal digits, each with its addresses.
type Servers = BTreeMap<String, Vec<String>>;

/// Prints all servers, or the PVs of some, which are named by address or by identity.
pub fn pvlist(settings: &Settings, operands: &[String]) -> Result<u8, Error> {
    let is_guid = |operand: &String| operand.len() == 26 && operand.starts_with("0x");
    let mut servers = Servers::new();
    if operands.is_empty() || operands.iter().any(is_guid) {
        discover(settings, false, |server, guid| {
            let addresses = servers.entry(guid).or_default();
            if !addresses.contains(&server) {
                addresses.push(server);
            }
            Ok(())
        })?;
    }
    if operands.is_empty() {
        let line = |(guid, addresses): (&String, &Vec<String>)| {
            format!("GUID {guid} version 2: tcp@[ {} ]\n", addresses.join(" "))
        };
        terminal::print(&servers.iter().map(line).collect::<String>())?;
        return Ok(0);
    }
    let mut client = open(settings)?;
    let mut status = 0;
    for operand in operands {
        let server = match servers.get(operand).and_then(|addresses| addresses.first()) {
            Some(server) => server,
            None if is_guid(operand) => {
                terminal::complain(&format!("Failed to resolve GUID '{operand}'!"));
                status = 1;
                continue;
            }
            None => operand,
        };
        match ask(&mut client, server, settings) {
            Ok(value) if settings.info => {
                terminal::print(&format!("{}\n", pvdata_text(&value, PvDataForm::Raw, None, None)))?;
            }
            Ok(value) => terminal::print(&names(&value))?,
            Err(why) => {
                complain(&why);
                return Ok(1);
            }
        }
    }
    Ok(status)
}

/// Prints the addresses of servers as they answer, or the PVs of some. Its exit status says nothing.
pub fn pvxlist(settings: &Settings, operands: &[String]) -> Result<u8, Error> {
    if settings.info && operands.is_empty() {
        terminal::complain("Error: -i requires at least one server");
        return Ok(1);
    }
    if operands.is_empty() {
        let mut known = BTreeSet::new();
        discover(settings, settings.passive, |server, guid| {
            let is_new = known.insert(guid.clone());
            match settings.verbosity {
                0 if is_new => terminal::print(&format!("{server}\n")),
                0 => Ok(()),
                _ if is_new => {
                    terminal::print(&format!("ONLINE  guid: {} proto: tcp server: {server}\n", guid.to_lowercase()))
                }
                _ => Ok(()),
            }
        })?;
        return Ok(0);
    }
    let mut client = open(settings)?;
    for server in operands {
        match ask(&mut client, server, settings) {
            Ok(value) if settings.info => {
                let text = |field: &str| {
                    value.get(field).and_then(Item::as_text).map(|text| text.to_str().escape_debug().to_string())
                };
                let version = text("version").map_or_else(String::new, |text| format!(" version=\"{text}\""));
                let language = text("implLang").map_or_else(String::new, |text| format!(" lang=\"{text}\""));
                terminal::print(&format!("{server}{version}{language}\n"))?;
            }
            Ok(value) => {
                let head = if settings.verbosity > 0 { format!("# From {server}\n") } else { String::new() };
                terminal::print(&(head + &names(&value)))?;
            }
            Err(why) => terminal::complain(&format!("From {server} : {why}")),
        }
    }
    Ok(0)
}

/// Hands on the servers that answer, or only those whose beacons are received, for the time of the tool.
fn discover(
    settings: &Settings,
    is_passive: bool,
    mut each: impl FnMut(String, String) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut lookout =
        Lookout::open(&settings.connect().options(is_passive || settings.timeout <= 0.0)?).map_err(failed)?;
    if !is_passive {
        lookout.list();
    }
    let span = (settings.timeout > 0.0).then(|| Duration::from_secs_f64(settings.timeout.min(1e9)));
    while_heard(&mut lookout, span, |found| {
        if let Found::Server { server, guid } | Found::Beacon { server, guid, .. } = found {
            each(server.to_string(), hexadecimal(&guid))?;
        }
        Ok(Heard::NotEnough)
    })
}

fn ask(client: &mut Client, server: &str, settings: &Settings) -> Result<Value, ClientError> {
    let question = [("op".to_owned(), if settings.info { "info" } else { "channels" }.to_owned())];
    let question = parse::call_of_texts("pva", "server", &question, false).ok();
    client.call(&format!("pva://{server}/server"), question).map(|value| value.unwrap_or_else(nothing))
}

/// Returns the value of a server that replied with nothing: it has no names.
fn nothing() -> Value {
    Value::of(hodo_pva_host::machines::Type::structure("", [] as [(&str, hodo_pva_host::machines::Type); 0]))
}

fn names(value: &Value) -> String {
    let names = value.get("value").and_then(|item| item.as_array()?.iter_texts());
    names.into_iter().flatten().map(|name| format!("{}\n", harmless(&String::from_utf8_lossy(name)))).collect()
}
