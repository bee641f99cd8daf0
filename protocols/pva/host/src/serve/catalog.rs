//! The PVs that are served, and how they become those of another file: what is the same stays as it is, with its value and subscribers.

use super::ServeError;
use super::access::AccessTable;
use super::file::Puts;
use super::plan::{Plan, PlannedCall, PlannedPv};
use super::players::Players;
use super::puts::PutLog;
use super::recordings::Play;
use super::rules::{Beyond, FIXED, Rules, is_same};
use super::sources::Sources;
use super::types;
use crate::machines::{BitSet, Value};
use crate::server::{ClientName, Pv, Pvs};
use hodo_machine::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Keys whose change gives a PV the value of the file again.
const INITIAL: [&str; 3] = ["value", "fields", "choices"];
/// Fields beside the [`FIXED`] ones that follow the file.
const DESCRIBED: [&str; 2] = ["descriptor", "labels"];

/// The treatment of puts to a PV.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub puts: Puts,
    pub rules: Rules,
}

/// The PVs that are served.
pub struct Catalog {
    pvs: Pvs,
    log: Arc<PutLog>,
    served: BTreeMap<String, Entry>,
    access: Vec<AccessTable>,
    /// The sources of the PVs.
    pub sources: Sources,
    players: Players,
}

/// A PV.
struct Entry {
    pv: Pv,
    /// The keys of its table.
    keys: Arc<toml::Table>,
    /// The treatment of puts, which may change; none for a PV that is called.
    terms: Option<Arc<Mutex<Terms>>>,
    /// The number of its source.
    source: Option<u64>,
    /// The part of a recording that it plays.
    play: Option<Play>,
}

/// How many PVs another file has changed.
#[derive(Debug, Default)]
pub struct Changes {
    added: usize,
    changed: usize,
    removed: usize,
    same: usize,
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Changes { added, changed, removed, same } = self;
        write!(f, "{added} PVs are new, {changed} changed, {removed} removed, {same} as before")
    }
}

impl Catalog {
    /// Creates a catalog without PVs.
    pub fn new(pvs: Pvs, log: Arc<PutLog>) -> Self {
        Catalog {
            pvs,
            log,
            served: BTreeMap::new(),
            access: Vec::new(),
            sources: Sources::default(),
            players: Players::default(),
        }
    }

    /// Serves what a plan says, and nothing else. New sources are due at `now`.
    ///
    /// # Errors
    /// [`ServeError::Source`] if a value does not fit into its PV.
    pub fn become_as(&mut self, plan: &Plan, now: Instant) -> Result<Changes, ServeError> {
        if plan.access != self.access {
            self.pvs.rule(plan.rules.clone());
            self.access.clone_from(&plan.access);
        }
        let mut before = std::mem::take(&mut self.served);
        let mut changes = Changes::default();
        for planned in &plan.pvs {
            for name in &planned.names {
                let entry = match before.remove(name) {
                    None => self.add(name, planned, now, &mut changes.added),
                    Some(entry) if self.is_same(&entry, planned) => {
                        changes.same += 1;
                        entry
                    }
                    Some(entry) => self.change(name, entry, planned, now, &mut changes)?,
                };
                self.served.insert(name.clone(), entry);
            }
        }
        for planned in &plan.calls {
            for name in &planned.names {
                let entry = match before.remove(name) {
                    Some(entry) if entry.terms.is_none() && entry.keys == planned.keys => {
                        changes.same += 1;
                        entry
                    }
                    other => {
                        *(if other.is_some() { &mut changes.changed } else { &mut changes.added }) += 1;
                        other.iter().for_each(|entry| self.end_source(entry));
                        self.add_call(name, planned)
                    }
                };
                self.served.insert(name.clone(), entry);
            }
        }
        for entry in before.values() {
            changes.removed += 1;
            self.end_source(entry);
            entry.pv.remove();
        }
        let play = |entry: &Entry| Some((entry.play.clone()?, entry.pv.clone()));
        self.players.become_as(self.served.values().filter_map(play).collect())?;
        Ok(changes)
    }

    fn is_same(&self, entry: &Entry, planned: &PlannedPv) -> bool {
        let plays_the_same = match (entry.source, &planned.recipe) {
            (Some(source), Some(recipe)) => self.sources.is_same(source, recipe),
            (source, recipe) => source.is_none() && recipe.is_none(),
        };
        let plays_alike = match (&entry.play, &planned.play) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        entry.terms.is_some() && entry.keys == planned.keys && plays_the_same && plays_alike
    }

    fn end_source(&mut self, entry: &Entry) {
        if let Some(source) = entry.source {
            self.sources.remove(source);
        }
        if entry.play.is_some() {
            self.players.end(&entry.pv);
        }
    }

    /// Serves a PV, in place of one that there may be.
    fn add(&mut self, name: &str, planned: &PlannedPv, now: Instant, count: &mut usize) -> Entry {
        *count += 1;
        let terms = Arc::new(Mutex::new(planned.terms));
        let (asked, log, known) = (Arc::clone(&terms), Arc::clone(&self.log), name.to_owned());
        let check = move |latest: &Value, put: &mut Value, client: &ClientName| {
            let Terms { puts, rules } = *asked.lock().unwrap_or_else(PoisonError::into_inner);
            if puts == Puts::Refuse {
                return Err("the PV can only be read".to_owned());
            }
            rules.check(latest, put)?;
            if puts == Puts::Log {
                log.add(&known, client, put);
            }
            rules.judge(put, Beyond::of(latest)).map_err(|why| why.to_string())
        };
        let pv = self.pvs.pv(name, planned.value.clone()).check_puts(check).serve();
        let source = self.start(&pv, planned, now);
        Entry { pv, keys: Arc::clone(&planned.keys), terms: Some(terms), source, play: planned.play.clone() }
    }

    fn add_call(&mut self, name: &str, planned: &PlannedCall) -> Entry {
        let program = Arc::clone(&planned.program);
        let pv = self.pvs.pv(name, types::called()).on_call(move |call| program.answer(call));
        let pv = pv.concurrent(planned.concurrent).serve();
        Entry { pv, keys: Arc::clone(&planned.keys), terms: None, source: None, play: None }
    }

    fn start(&mut self, pv: &Pv, planned: &PlannedPv, now: Instant) -> Option<u64> {
        let recipe = planned.recipe.as_ref()?;
        Some(self.sources.add(recipe.source(pv.clone(), planned.terms.rules), now))
    }

    /// Changes a PV whose table has changed. It keeps its subscribers if its type is the same, and its value unless the file says another
    /// one than before.
    fn change(
        &mut self,
        name: &str,
        entry: Entry,
        planned: &PlannedPv,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<Entry, ServeError> {
        self.end_source(&entry);
        let Some(terms) = entry.terms.filter(|_| entry.pv.value().plan() == planned.value.plan()) else {
            return Ok(self.add(name, planned, now, &mut changes.changed));
        };
        changes.changed += 1;
        *terms.lock().unwrap_or_else(PoisonError::into_inner) = planned.terms;
        let keeps = INITIAL.iter().all(|key| entry.keys.get(*key) == planned.keys.get(*key));
        let difference = difference(&entry.pv.value(), &planned.value, keeps);
        if !difference.is_empty() {
            let update = entry.pv.update(|value| {
                value.merge(&planned.value, &difference, &mut BitSet::new());
                planned.terms.rules.judge(value, Beyond::of(value))
            });
            update.map_err(|why| ServeError::Source(format!("{name}: {why}")))?;
        }
        let source = self.start(&entry.pv, planned, now);
        let (keys, play) = (Arc::clone(&planned.keys), planned.play.clone());
        Ok(Entry { pv: entry.pv, keys, terms: Some(terms), source, play })
    }
}

/// Returns the fields in which a value differs from the file's: all, or only those that say what it means.
fn difference(value: &Value, planned: &Value, only_meaning: bool) -> BitSet {
    let plan = value.plan();
    let mut leaves = BitSet::new();
    if only_meaning {
        FIXED.iter().chain(&DESCRIBED).filter_map(|path| plan.number(path)).for_each(|number| leaves.insert(number));
    } else {
        leaves.insert(0);
    }
    plan.expand(&mut leaves);
    let mut differing = BitSet::new();
    leaves.iter().filter(|leaf| !is_same(value.at(*leaf), planned.at(*leaf))).for_each(|leaf| differing.insert(leaf));
    differing
}
