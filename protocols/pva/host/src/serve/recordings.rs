//! Recordings that PVs of the file are played from.

use super::file::PvTable;
use super::names;
use crate::machines::Value;
use crate::replay::{Recording, ReplayOptions};
use crate::server::now;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Players that a file may have: each has two threads, and two batches of rows in memory.
const PLAYERS_MAX: usize = 32;
/// Names of PVs that an error tells.
const NAMES_TOLD: usize = 10;
/// The keys that PVs of a recording have: everything else is as it was recorded.
const KEYS: [&str; 7] = ["put", "source", "file", "recorded", "every", "repeat", "stamps"];

/// A PV of a recording, and how it is played.
#[derive(Clone)]
pub struct Play {
    pub recording: Arc<Recording>,
    /// The name in the recording.
    pub name: String,
    pub options: ReplayOptions,
}

impl Play {
    /// Tells whether another one is of the same recording, as it was read then, and played alike.
    #[must_use]
    pub fn is_same(&self, other: &Play) -> bool {
        self.name == other.name && self.is_beside(other)
    }

    /// Tells whether another one is played by the same player. PVs with a pace of their own are played alone.
    #[must_use]
    pub fn is_with(&self, other: &Play) -> bool {
        self.options.every.is_none() && self.is_beside(other)
    }

    fn is_beside(&self, other: &Play) -> bool {
        Arc::ptr_eq(&self.recording, &other.recording) && self.options == other.options
    }
}

/// Returns the recording that a table names: a folder, or a file whose name ends in `.parquet`.
pub fn path(table: &PvTable, folder: &Path) -> Option<PathBuf> {
    let path = folder.join(table.file.as_ref()?);
    let is_recording = path.is_dir() || path.extension().is_some_and(|end| end == "parquet");
    is_recording.then_some(path)
}

/// The recordings of a file, and the players that they need.
#[derive(Default)]
pub struct Recordings {
    known: HashMap<PathBuf, Arc<Recording>>,
    players: Vec<Play>,
}

impl Recordings {
    /// Returns what each PV of a table plays, and its first value. A recording that was open before and has not changed is not read again.
    ///
    /// # Errors
    /// A sentence with the key and what to write instead.
    pub fn plays(
        &mut self,
        path: &Path,
        table: &PvTable,
        keys: &toml::Table,
        before: &Recordings,
    ) -> Result<Vec<(String, Value, Play)>, String> {
        if let Some(key) = keys.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!(
                "{key}: a PV of a recording has the type and the fields that were recorded; leave it out"
            ));
        }
        let options = ReplayOptions {
            every: table.every,
            repeats: table.repeat.unwrap_or(true),
            keeps_stamps: table.stamps.keeps(),
            ..ReplayOptions::default()
        };
        if options.every.is_some_and(|every| every.is_zero()) {
            return Err("every: write a time above 0, as \"100ms\"".to_owned());
        }
        let served = names::names(table.name.get_ref())?;
        let recorded = match &table.recorded {
            None => served.clone(),
            Some(family) => names::names(family).map_err(|why| format!("recorded: {why}"))?,
        };
        if recorded.len() != served.len() {
            let (recorded, served) = (recorded.len(), served.len());
            return Err(format!("recorded: {recorded} names for {served} PVs; write one for each"));
        }
        let recording = self.open(path, before).map_err(|why| format!("file: {why}"))?;
        let play = |(served, name)| {
            let play = Play { recording: Arc::clone(&recording), name, options };
            let value = play.first_value()?;
            self.count(&play)?;
            Ok((served, value, play))
        };
        served.into_iter().zip(recorded).map(play).collect()
    }

    fn open(&mut self, path: &Path, before: &Recordings) -> Result<Arc<Recording>, String> {
        if let Some(known) = self.known.get(path) {
            return Ok(Arc::clone(known));
        }
        let kept = before.known.get(path).filter(|known| known.check_is_unchanged().is_ok());
        let recording = kept.map_or_else(|| Recording::open(path).map(Arc::new), |kept| Ok(Arc::clone(kept)))?;
        self.known.insert(path.to_owned(), Arc::clone(&recording));
        Ok(recording)
    }

    fn count(&mut self, play: &Play) -> Result<(), String> {
        if self.players.iter().any(|other| other.is_with(play)) {
            return Ok(());
        }
        if self.players.len() == PLAYERS_MAX {
            return Err(format!(
                "file: more than {PLAYERS_MAX} recordings would be read at once; leave out `every`: PVs without it share what is \
                 read"
            ));
        }
        self.players.push(play.clone());
        Ok(())
    }
}

impl Play {
    /// Returns the first value of the PV.
    fn first_value(&self) -> Result<Value, String> {
        let Play { recording, name, options } = self;
        let path = recording.path().display();
        let Some(recorded) = recording.pvs().get(name) else {
            return Err(format!(
                "file: {path} has no updates of {name}; write recorded = \"NAME\" with one of: {}",
                told(recording)
            ));
        };
        if let Some(update) = recorded.changes_type_at {
            return Err(format!(
                "file: in {path} {name} changes its type at its update {update}, which a PV here cannot; play it with `hodo pva replay`"
            ));
        }
        let mut value = recorded.first.clone();
        if value.time_stamp().is_some() && !options.keeps_stamps {
            value.set_time_stamp(now()).map_err(|why| why.to_string())?;
        }
        value.unmark();
        Ok(value)
    }
}

/// Returns names of a recording, as many as a message may have.
fn told(recording: &Recording) -> String {
    let names: Vec<&str> = recording.pvs().keys().map(String::as_str).take(NAMES_TOLD).collect();
    let more = recording.pvs().len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
