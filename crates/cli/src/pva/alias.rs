//! The names of the field's own tools: a link of that name is the command.

use std::ffi::OsString;
use std::path::Path;

/// Returns the arguments of the process; under a name such as `pvget`, those of `hodo pva get`.
pub fn arguments(given: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut given = given.into_iter();
    let Some(program) = given.next() else { return Vec::new() };
    let name = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let command = ["get", "put", "monitor", "info", "call", "list"]
        .into_iter()
        .find(|command| ["pv", "pvx"].iter().any(|prefix| name.strip_prefix(prefix) == Some(command)));
    match command {
        Some(command) => ["hodo", "pva", command].map(OsString::from).into_iter().chain(given).collect(),
        None => std::iter::once(program).chain(given).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_fields_names_are_commands() {
        let of = |given: &[&str]| -> Vec<String> {
            arguments(given.iter().map(OsString::from)).into_iter().map(|one| one.into_string().unwrap()).collect()
        };
        assert_eq!(of(&["/usr/bin/pvget", "A"]), ["hodo", "pva", "get", "A"]);
        assert_eq!(of(&["pvxmonitor"]), ["hodo", "pva", "monitor"]);
        assert_eq!(of(&["hodo", "pva"]), ["hodo", "pva"]);
        assert_eq!(of(&["get", "A"]), ["get", "A"]);
        assert!(of(&[]).is_empty());
    }
}
