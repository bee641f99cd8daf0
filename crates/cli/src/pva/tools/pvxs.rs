//! pvxget, pvxput, pvxinfo and pvxcall of pvxs.

use super::settings::Settings;
use super::{indented, is_timeout, open};
use crate::pva::options::failed;
use crate::{Error, terminal};
use hodo_pva_host::machines::Value;
use hodo_pva_host::show::pvxs_type;
use hodo_pva_host::{Form, Show, parse};
use std::collections::BTreeMap;

/// Returns a value as pvxget prints it, with its end of line; nothing where there is no field to print.
pub(super) fn text(value: &Value, settings: &Settings, only_changed: bool) -> String {
    let form = if settings.tree { Form::Tree } else { Form::Delta };
    let show = Show { form, elements: settings.elements, only_changed, as_pvxget: true, ..Show::default() };
    let text = show.text(value);
    if text.is_empty() { text } else { text + "\n" }
}

/// Reads PVs, and prints each below its name.
pub fn get(settings: &Settings, names: &[String]) -> Result<u8, Error> {
    let request = match settings.request() {
        Ok(request) => request,
        Err(why) => return error(&why.to_string()),
    };
    let mut client = open(settings)?;
    let (mut troubles, mut written) = (Vec::new(), Ok(()));
    let done = client.read_each(names, &request, |at, value| match value {
        Ok(value) => {
            let lines = indented(&text(value, settings, true));
            let line = terminal::print(&format!("{}\n{lines}", names[at]));
            written = std::mem::replace(&mut written, Ok(())).and(line);
        }
        Err(why) => troubles.push((at, why)),
    });
    done.map_err(failed)?;
    written?;
    for (at, why) in &troubles {
        if !is_timeout(why) {
            terminal::print(&format!("{}\n", names[*at]))?;
        }
        terminal::remark(&why.to_string());
    }
    if names.is_empty() || !troubles.is_empty() {
        terminal::complain(&format!("Timeout with {} outstanding", troubles.len()));
        return Ok(1);
    }
    Ok(0)
}

fn error(why: &str) -> Result<u8, Error> {
    terminal::complain(&format!("ERROR: {why}"));
    Ok(1)
}

/// Writes a PV, and prints nothing without `-v`.
pub fn put(settings: &Settings, operands: &[String]) -> Result<u8, Error> {
    let [name, words @ ..] = operands else { return error("Expected PV name and at least one value") };
    let mut fields = BTreeMap::new();
    match words {
        [] => return error("Expected PV name and at least one value"),
        [word] if !word.contains('=') => _ = fields.insert(if word.starts_with('{') { "" } else { "value" }, &word[..]),
        words => {
            for word in words {
                let Some((field, text)) = word.split_once('=') else {
                    return error(&format!("expected <fld>=<value> not \"{word}\""));
                };
                fields.insert(field, text);
            }
        }
    }
    let request = match settings.request() {
        Ok(request) => request,
        Err(why) => return error(&why.to_string()),
    };
    let done = open(settings)?.put_with(name, &request, true, |value| {
        for (field, text) in &fields {
            parse::pvxput(value, field, text).map_err(|why| why.to_string())?;
        }
        if settings.verbosity > 0 {
            let lines = indented(&text(value, &Settings { tree: false, ..settings.clone() }, true));
            terminal::print(&format!("Writing fields:\n{lines}\n")).map_err(|why| why.to_string())?;
        }
        Ok::<(), String>(())
    });
    match done {
        Ok(()) => Ok(0),
        Err(why) => failed_with(&why),
    }
}

fn failed_with(why: &hodo_pva_host::ClientError) -> Result<u8, Error> {
    if is_timeout(why) {
        terminal::complain("Timeout");
        terminal::remark(&why.to_string());
        return Ok(1);
    }
    error(&why.to_string())
}

/// Prints servers and types.
pub fn info(settings: &Settings, names: &[String]) -> Result<u8, Error> {
    let mut client = open(settings)?;
    for name in names {
        // A mistake in a name is reported when it is its turn.
        let _ = client.channel(name);
    }
    let mut timeouts = Vec::new();
    for name in names {
        match client.info(name, "").and_then(|of| Ok((of, client.channel(name)?))) {
            Ok((of, channel)) => {
                let server = client.server(channel).map_or_else(String::new, |server| server.to_string());
                terminal::print(&format!("{name} from {server}\n{}", pvxs_type(&of)))?;
            }
            Err(why) if is_timeout(&why) => timeouts.push(why),
            Err(why) => terminal::print(&format!("{name} Error: {why}\n"))?,
        }
    }
    timeouts.iter().for_each(|why| terminal::remark(&why.to_string()));
    if names.is_empty() || !timeouts.is_empty() {
        terminal::complain("Timeout");
        return Ok(1);
    }
    Ok(0)
}

/// Calls a PV with texts, and prints what it returns as a tree.
pub fn call(settings: &Settings, operands: &[String]) -> Result<u8, Error> {
    let [name, words @ ..] = operands else { return error("Expected PV name") };
    let mut arguments = Vec::new();
    for word in words {
        let Some((argument, text)) = word.split_once('=') else {
            return error(&format!("expected <fld>=<value> not \"{word}\""));
        };
        arguments.push((argument.to_owned(), text.to_owned()));
    }
    let argument = match parse::call_of_texts("", name, &arguments, false) {
        Ok(argument) => argument,
        Err(why) => return error(&why.to_string()),
    };
    match open(settings)?.call(name, Some(argument)) {
        Ok(value) => {
            let tree = Settings { tree: true, ..settings.clone() };
            terminal::print(&value.map_or_else(String::new, |value| text(&value, &tree, false)))?;
            Ok(0)
        }
        Err(why) => failed_with(&why),
    }
}
