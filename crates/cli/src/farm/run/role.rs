//! A role of a farm: the command that is it, and its options, which the file has as keys.

use super::table::{Entry, integer};
use clap::{Arg, ArgAction, Command};
use std::fmt;
use toml::de::DeValue;

/// What a process of a farm is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Hands each event to one node.
    Controller,
    /// Assembles events from fragments.
    Builder,
    /// Has the events.
    Source,
    /// Decides.
    Node,
}

impl Role {
    /// All of them, as they are started.
    pub const ALL: [Role; 4] = [Role::Controller, Role::Builder, Role::Node, Role::Source];

    /// As the command line has it.
    pub fn word(self) -> &'static str {
        match self {
            Role::Controller => "controller",
            Role::Builder => "builder",
            Role::Source => "source",
            Role::Node => "node",
        }
    }

    /// As the file has it.
    pub fn title(self) -> &'static str {
        match self {
            Role::Controller => "[controller]",
            Role::Builder => "[builder]",
            Role::Source => "[[source]]",
            Role::Node => "[[node]]",
        }
    }

    /// Whether there may be several.
    pub fn is_many(self) -> bool {
        matches!(self, Role::Source | Role::Node)
    }

    /// Whether others connect to it.
    pub fn listens(self) -> bool {
        matches!(self, Role::Controller | Role::Builder)
    }

    /// Options that are not the role's table's to say, and from what they follow.
    pub fn elsewhere(self) -> &'static [(&'static str, &'static str)] {
        const TIED: (&str, &str) = ("until-stdin-closes", "every role is ended so");
        const TO: (&str, &str) = ("to", "it connects to the builder, or else to the controller, of this file");
        const RUN: (&str, &str) = ("run", "it is `number` in [run]");
        const EVENTS: (&str, &str) = ("events", "it is `events` in [run]");
        const NUMBER: (&str, &str) = ("number", "they are numbered from 0 as they stand");
        const STORE: (&str, &str) = ("store", "it is `store` in [run]");
        const UDP: &str = "it is `udp` in [builder]";
        const FOLLOWS: &str = "it follows from the number of sources";
        const HELP: (&str, &str) = ("help", "it is for the command line");
        match self {
            Role::Controller => &[TIED, RUN, EVENTS, HELP, STORE, ("until-done", "a run ends when it is done")],
            Role::Builder => &[TIED, TO, HELP, ("sources", "they are the [[source]] tables")],
            Role::Source => &[TIED, TO, RUN, EVENTS, HELP, NUMBER, ("first", FOLLOWS), ("step", FOLLOWS), ("udp", UDP)],
            Role::Node => &[TIED, TO, HELP, NUMBER],
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The options of a role's command that are the file's to say.
pub fn options(role: Role, command: &Command) -> Vec<&str> {
    let long = command.get_arguments().filter_map(Arg::get_long);
    // `count` is how many processes there are; how many nodes each of them is, is `per_process`.
    long.filter(|long| *long != "count" && !role.elsewhere().iter().any(|(key, _)| key == long)).collect()
}

/// An option in words of the command line, and whether it takes all words after it.
pub fn words(command: &Command, entry: &Entry<'_>) -> Result<(Vec<String>, bool), String> {
    let key = &entry.key;
    let option = command.get_arguments().find(|option| option.get_long() == Some(key)).expect("the key is known");
    if matches!(option.get_action(), ArgAction::SetTrue) {
        let flag = entry.value.as_bool().ok_or("write true or false")?;
        return Ok((flag.then(|| format!("--{key}")).into_iter().collect(), false));
    }
    let takes_more = option.get_num_args().is_some_and(|range| range.max_values() > 1);
    if takes_more && option.get_value_delimiter().is_none() {
        let mut words = vec![format!("--{key}")];
        match entry.value.as_array() {
            Some(list) => {
                for value in list {
                    words.push(text(value.get_ref())?);
                }
            }
            None => words.push(text(entry.value)?),
        }
        return Ok((words, true));
    }
    let value = match entry.value.as_array() {
        Some(list) => {
            let texts = list.iter().map(|value| text(value.get_ref()));
            texts.collect::<Result<Vec<_>, _>>()?.join(",")
        }
        None => text(entry.value)?,
    };
    Ok((vec![format!("--{key}={value}")], false))
}

/// A value as the command line takes it.
fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(_) => integer(value).map(|number| number.to_string()).ok_or("a number too large".to_owned()),
        DeValue::Float(float) => Ok(float.as_str().replace('_', "")),
        DeValue::Boolean(_) => Err("it takes a value, not true or false".to_owned()),
        _ => Err("write a number, or a text in quotes".to_owned()),
    }
}
