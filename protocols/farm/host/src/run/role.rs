//! The roles of a farm, and the options of their commands, which a file has as keys.

use super::table::{Entry, integer};
use std::fmt;
use toml::de::DeValue;

/// The role of a process in a farm.
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
    /// All roles, in the order in which they are started.
    pub const ALL: [Role; 4] = [Role::Controller, Role::Builder, Role::Node, Role::Source];

    /// Returns the word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Role::Controller => "controller",
            Role::Builder => "builder",
            Role::Source => "source",
            Role::Node => "node",
        }
    }

    /// Returns the title of the table in the file.
    pub fn title(self) -> &'static str {
        match self {
            Role::Controller => "[controller]",
            Role::Builder => "[builder]",
            Role::Source => "[[source]]",
            Role::Node => "[[node]]",
        }
    }

    /// Returns whether there may be several.
    pub fn is_many(self) -> bool {
        matches!(self, Role::Source | Role::Node)
    }

    /// Returns whether others connect to it.
    pub fn listens(self) -> bool {
        matches!(self, Role::Controller | Role::Builder)
    }

    /// Returns the options that the role's table may not have, with where they come from.
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

/// An option of a role's command, which a farm's file may have as a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleOption {
    /// The name, without the two dashes.
    pub name: String,
    /// The kind of value that follows the name.
    pub takes: Takes,
    /// The default value.
    pub default: Option<String>,
}

/// The kind of value that follows the name of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No value: the option is a switch.
    Nothing,
    /// A value, or several with commas between them.
    Value,
    /// All remaining words.
    Words,
}

/// The command line of the roles: which options each of them has.
pub trait CommandLine {
    /// Returns the options of a role's command.
    fn options(&self, role: Role) -> Vec<RoleOption>;

    /// Checks the words of a whole command, of which the first is the program.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn check(&self, words: &[String]) -> Result<(), String>;
}

/// Returns the options of a role that its table in the file may have.
pub fn keys(role: Role, options: &[RoleOption]) -> Vec<&str> {
    let names = options.iter().map(|option| option.name.as_str());
    // `count` is how many processes there are; how many nodes each of them is, is `per_process`.
    names.filter(|name| *name != "count" && !role.elsewhere().iter().any(|(key, _)| key == name)).collect()
}

/// Returns an option in words of the command line, and whether it takes all words after it.
pub fn words(options: &[RoleOption], entry: &Entry<'_>) -> Result<(Vec<String>, bool), String> {
    let key = &entry.key;
    let option = options.iter().find(|option| option.name == *key).expect("the key is known");
    match (option.takes, entry.value.as_array()) {
        (Takes::Nothing, _) => {
            let flag = entry.value.as_bool().ok_or("write true or false")?;
            Ok((flag.then(|| format!("--{key}")).into_iter().collect(), false))
        }
        (Takes::Words, list) => {
            let mut words = vec![format!("--{key}")];
            match list {
                Some(list) => {
                    for value in list {
                        words.push(text(value.get_ref())?);
                    }
                }
                None => words.push(text(entry.value)?),
            }
            Ok((words, true))
        }
        (Takes::Value, Some(list)) => {
            let texts = list.iter().map(|value| text(value.get_ref()));
            Ok((vec![format!("--{key}={}", texts.collect::<Result<Vec<_>, _>>()?.join(","))], false))
        }
        (Takes::Value, None) => Ok((vec![format!("--{key}={}", text(entry.value)?)], false)),
    }
}

/// Returns a value as the command line takes it.
fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(_) => integer(value).map(|number| number.to_string()).ok_or("a number too large".to_owned()),
        DeValue::Float(float) => Ok(float.as_str().replace('_', "")),
        DeValue::Boolean(_) => Err("it takes a value, not true or false".to_owned()),
        _ => Err("write a number, or a text in quotes".to_owned()),
    }
}
