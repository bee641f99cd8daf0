//! A file, checked as a whole before anything of it is served.

use super::access::{self, AccessTable};
use super::command::Program;
use super::file::{self, CallTable, Contents, PvTable};
use super::place::Place;
use super::recordings::{self, Play, Recordings};
use super::rules::{Beyond, Rules};
use super::settings::ServerTable;
use super::sources::Recipe;
use super::{ServeError, keys, names, types};
use crate::machines::Value;
use crate::machines::server::Ruled;
use crate::serve::catalog::Terms;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the program of a call may take unless the file says otherwise, and how many run at once.
const TIMEOUT: Duration = Duration::from_secs(10);
const CONCURRENT: usize = 4;

/// The contents of a file, checked.
pub struct Plan {
    pub server: ServerTable,
    pub place: Place,
    pub access: Vec<AccessTable>,
    pub rules: Ruled,
    pub pvs: Vec<PlannedPv>,
    pub calls: Vec<PlannedCall>,
    pub recordings: Recordings,
}

/// `[[pv]]`, checked.
pub struct PlannedPv {
    pub names: Vec<String>,
    /// All keys but the name.
    pub keys: Arc<toml::Table>,
    /// The value at first.
    pub value: Value,
    pub recipe: Option<Recipe>,
    pub play: Option<Play>,
    pub terms: Terms,
}

/// `[[call]]`, checked.
pub struct PlannedCall {
    pub names: Vec<String>,
    /// All keys but the name.
    pub keys: Arc<toml::Table>,
    pub program: Arc<Program>,
    pub concurrent: usize,
}

impl Plan {
    /// Reads a file, and the files that it names. Recordings that were open `before` are not read again unless they have changed.
    ///
    /// # Errors
    /// [`ServeError::File`] with the line, the mistake and what to write instead.
    pub fn read(path: &Path, before: &Recordings) -> Result<Self, ServeError> {
        let Contents { file, keys: [pv_keys, call_keys], place } = file::read(path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let rules = access::rules(&file.access, &place)?;
        let wrong = |title, family| {
            let place = &place;
            move |why: String| place.wrong(title, family, why)
        };
        let (mut pvs, mut recordings) = (Vec::new(), Recordings::default());
        for (table, keys) in file.pv.iter().zip(pv_keys) {
            let planned = match recordings::path(table, folder) {
                Some(path) => PlannedPv::played(table, keys, |keys| recordings.plays(&path, table, keys, before)),
                None => PlannedPv::of(table, keys, folder).map(|pv| vec![pv]),
            };
            pvs.extend(planned.map_err(wrong("[[pv]]", &table.name))?);
        }
        let calls = file.call.iter().zip(call_keys);
        let calls =
            calls.map(|(table, keys)| PlannedCall::of(table, keys, folder).map_err(wrong("[[call]]", &table.name)));
        let calls = calls.collect::<Result<Vec<_>, ServeError>>()?;
        Ok(Plan { server: file.server, access: file.access, rules, pvs, calls, recordings, place })
    }

    /// Returns how many PVs there are.
    pub fn count(&self) -> usize {
        self.pvs.iter().map(|pv| pv.names.len()).chain(self.calls.iter().map(|call| call.names.len())).sum()
    }

    /// Returns the number of threads that programs need, so that one call does not keep another waiting.
    pub fn workers(&self) -> usize {
        self.calls.iter().map(|call| call.concurrent).sum()
    }
}

impl PlannedPv {
    fn of(table: &PvTable, keys: toml::Table, folder: &Path) -> Result<Self, String> {
        keys::check(table, &keys)?;
        let mut value = types::value(table)?;
        let recipe = Recipe::of(table, &value, folder)?;
        let rules = Rules::of(table);
        rules.judge(&mut value, Beyond::None).map_err(|why| format!("alarm: {why}"))?;
        value.unmark();
        let names = names::names(table.name.get_ref())?;
        Ok(PlannedPv {
            names,
            keys: Arc::new(keys),
            value,
            recipe,
            play: None,
            terms: Terms { puts: table.put, rules },
        })
    }

    /// Returns the PVs of a table that are played from a recording, each with a type of its own.
    fn played(
        table: &PvTable,
        keys: toml::Table,
        plays: impl FnOnce(&toml::Table) -> Result<Vec<(String, Value, Play)>, String>,
    ) -> Result<Vec<Self>, String> {
        keys::check(table, &keys)?;
        let keys = Arc::new(keys);
        let terms = Terms { puts: table.put, rules: Rules::default() };
        let planned = |(name, value, play)| {
            let (names, keys, play) = (vec![name], Arc::clone(&keys), Some(play));
            PlannedPv { names, keys, value, recipe: None, play, terms }
        };
        Ok(plays(&keys)?.into_iter().map(planned).collect())
    }
}

impl PlannedCall {
    fn of(table: &CallTable, keys: toml::Table, folder: &Path) -> Result<Self, String> {
        if table.command.is_empty() {
            return Err("command: write a program and its arguments, as [\"python3\", \"add.py\"]".to_owned());
        }
        let timeout = table.timeout.unwrap_or(TIMEOUT);
        let program = Program { command: table.command.clone(), folder: PathBuf::from(folder), timeout };
        let concurrent = table.concurrent.map_or(CONCURRENT, std::num::NonZeroUsize::get);
        let names = names::names(table.name.get_ref())?;
        Ok(PlannedCall { names, keys: Arc::new(keys), program: Arc::new(program), concurrent })
    }
}
