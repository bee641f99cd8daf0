//! Links on the command line.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};
use hodo_catalog::{Uri, protocols};
use std::ffi::OsStr;

/// Parses a URI, or the name of a protocol or scheme. Shells complete the names.
#[derive(Debug, Clone, Copy)]
pub struct LinkParser;

impl TypedValueParser for LinkParser {
    type Value = Uri;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<Uri, Error> {
        hodo_catalog::uri.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let mut names = Vec::new();
        for protocol in protocols() {
            let description = protocol.description();
            names.extend([description.name].into_iter().chain(description.schemes.iter().copied()));
        }
        names.sort_unstable();
        names.dedup();
        Some(Box::new(names.into_iter().map(PossibleValue::new)))
    }
}
