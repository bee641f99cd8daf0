//! pvget, pvput, pvinfo and pvcall of pvAccessCPP.

use super::settings::Settings;
use super::{complain, is_timeout, open};
use crate::pva::options::failed;
use crate::{Error, terminal};
use hodo_pva_host::client::ClientError;
use hodo_pva_host::machines::{BitSet, Value};
use hodo_pva_host::show::{PvDataForm, pvdata_text, pvdata_type};
use hodo_pva_host::{Client, parse};
use std::io::{IsTerminal, stdout};

/// Returns the form of values: raw where `-v` is there.
pub(super) fn form(settings: &Settings) -> PvDataForm {
    if settings.verbosity > 0 && settings.form == PvDataForm::Nt { PvDataForm::Raw } else { settings.form }
}

/// Returns names in columns as wide as the longest.
pub(super) fn width(names: &[String]) -> usize {
    names.iter().map(String::len).max().unwrap_or(0)
}

/// Reads PVs, and prints each behind its name; those that fail come last.
pub fn get(settings: &Settings, names: &[String]) -> Result<u8, Error> {
    let request = settings.request()?;
    let (form, width) = (form(settings), width(names));
    let mut client = open(settings)?;
    let (mut troubles, mut written) = (Vec::new(), Ok(()));
    let done = client.read_each(names, &request, |at, value| match value {
        Ok(value) => {
            let changed = value.changed();
            let is_terminal = stdout().is_terminal();
            let text = if settings.verbosity > 1 {
                pvdata_text(value, form, None, Some(changed).filter(|_| is_terminal))
            } else {
                pvdata_text(value, form, Some(changed), None)
            };
            let line = terminal::print(&format!("{:width$} {text}", names[at]));
            written = std::mem::replace(&mut written, Ok(())).and(line);
        }
        Err(why) => troubles.push((at, why)),
    });
    done.map_err(failed)?;
    written?;
    if troubles.iter().any(|(_, why)| is_timeout(why)) {
        terminal::complain("Timeout");
    }
    for (at, why) in &troubles {
        terminal::print(&format!("{:width$} ", names[*at]))?;
        if is_timeout(why) {
            terminal::remark(&why.to_string());
        } else {
            terminal::complain(&format!("Error {why}"));
        }
    }
    Ok(u8::from(!troubles.is_empty()))
}

/// Reads one PV with the fields of a request.
fn read(client: &mut Client, settings: &Settings, name: &str) -> Result<Result<Value, ClientError>, Error> {
    let mut values = client.read_many(&[name], &settings.request()?).map_err(failed)?;
    values.pop().ok_or_else(|| Error::Failed(format!("{name}: no value")))
}

/// Writes a PV, and prints it before and after.
pub fn put(settings: &Settings, operands: &[String]) -> Result<u8, Error> {
    let Some((name, words)) = operands.split_first() else {
        terminal::complain("No pv name specified. ('pvput -h' for help.)");
        return Ok(1);
    };
    if words.is_empty() {
        terminal::complain("No value(s) specified. ('pvput -h' for help.)");
        return Ok(1);
    }
    let request = settings.request()?;
    let mut client = open(settings)?;
    let shown = |client: &mut Client, what: &str| -> Result<bool, Error> {
        terminal::print(what)?;
        match read(client, settings, name)? {
            Ok(value) => terminal::print(&pvdata_text(&value, settings.form, None, None)).map(|()| true),
            Err(why) => {
                terminal::complain(&format!(
                    "Error: {}",
                    if is_timeout(&why) { "Timeout".to_owned() } else { why.to_string() }
                ));
                terminal::remark(&why.to_string());
                Ok(false)
            }
        }
    };
    if !settings.quiet && !shown(&mut client, "Old : ")? {
        return Ok(1);
    }
    let done = client.put_with(name, &request, true, |value| {
        parse::pvput(value, words).map(|warnings| warnings.iter().for_each(|warning| terminal::complain(warning)))
    });
    match &done {
        Err(why) if is_timeout(why) => {
            terminal::complain("Put timeout");
            terminal::remark(&why.to_string());
            return Ok(1);
        }
        Err(why) => terminal::complain(&format!("Error: {why}")),
        Ok(()) => {}
    }
    let is_shown = shown(&mut client, if settings.quiet { "" } else { "New : " })?;
    Ok(u8::from(done.is_err() || !is_shown))
}

/// Prints servers and types.
pub fn info(settings: &Settings, names: &[String]) -> Result<u8, Error> {
    if names.is_empty() {
        terminal::complain("No pv name(s) specified. ('pvinfo -h' for help.)");
        return Ok(1);
    }
    let mut client = open(settings)?;
    for name in names {
        // A mistake in a name is reported when it is its turn.
        let _ = client.channel(name);
    }
    let mut status = 0;
    for name in names {
        let of = client.info(name, "").and_then(|of| Ok((of, client.channel(name)?)));
        match of {
            Ok((of, channel)) => {
                let server = client.server(channel).map_or_else(String::new, |server| server.to_string());
                terminal::print(&format!("{name}\nServer: {server}\nType:\n{}\n", pvdata_type(&of, 1)))?;
            }
            Err(why) => {
                complain(&why);
                status = 1;
            }
        }
    }
    Ok(status)
}

/// Calls a PV with texts, and prints what it returns.
pub fn call(settings: &Settings, operands: &[String]) -> Result<u8, Error> {
    let (name, words) = match operands.split_first() {
        _ if !settings.service.is_empty() => (&settings.service, operands),
        Some((name, words)) => (name, words),
        None => {
            terminal::complain("No pv name specified. ('pvput -h' for help.)");
            return Ok(1);
        }
    };
    let mut arguments = Vec::new();
    for word in settings.arguments.iter().chain(words) {
        let Some((argument, text)) = word.split_once('=') else {
            terminal::complain(&format!("Error parsing argument '{word}'"));
            return Ok(1);
        };
        arguments.push((argument.to_owned(), text.to_owned()));
    }
    settings.request()?;
    let argument = parse::call_of_texts("pva", name, &arguments, true).map_err(failed)?;
    let is_verbose = settings.verbosity > 0;
    if is_verbose {
        terminal::print(&format!("# Argument\n{}", text(&argument, settings)))?;
    }
    match open(settings)?.call(name, Some(argument)) {
        Ok(value) => {
            let result = value.map_or_else(String::new, |value| text(&value, settings));
            terminal::print(&format!("{}{result}", if is_verbose { "# Result\n" } else { "" }))?;
            Ok(0)
        }
        Err(why) => {
            complain(&why);
            Ok(1)
        }
    }
}

fn text(value: &Value, settings: &Settings) -> String {
    pvdata_text(value, settings.form, None, None)
}

/// The fields that a monitor of pvAccessCPP has had so far.
#[derive(Debug, Default)]
pub(super) struct Valid(pub BitSet);

impl Valid {
    /// Returns an update as pvmonitor prints it.
    pub fn text(&mut self, settings: &Settings, value: &Value) -> String {
        let changed = value.changed();
        self.0.unite(changed);
        let bold = Some(changed).filter(|_| stdout().is_terminal());
        match settings.verbosity {
            0 | 1 => pvdata_text(value, form(settings), Some(changed), None),
            2 => pvdata_text(value, form(settings), Some(&self.0), bold),
            _ => pvdata_text(value, form(settings), None, bold),
        }
    }
}
