//! Copies a store without what should not have come into it.

use crate::directory::{self, Lock};
use crate::error::Error;
use crate::files::System;
use crate::given::Checksums;
use crate::reader::{Item, Reader};
use crate::record::{Record, Verdict};
use crate::store::{Options, Put, Store};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The records that a repaired store does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repair {
    /// Runs that are left out.
    pub without: BTreeSet<u32>,
    /// Runs whose events are to be given again if they were incomplete.
    pub again: BTreeSet<u32>,
}

/// The contents of a repaired store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Verdicts that were copied, those of events with data included.
    pub copied: u64,
    /// Verdicts that were left out.
    pub left_out: u64,
    /// Other data under the numbers of events, which were copied.
    pub conflicts: u64,
}

impl Repair {
    fn leaves_out(&self, run: u32, verdict: Verdict) -> bool {
        self.without.contains(&run) || verdict == Verdict::Incomplete && self.again.contains(&run)
    }
}

/// Copies a store to a new folder, and leaves the old one as it is. No writer may be at work.
///
/// # Errors
/// [`Error::Locked`] if another process writes to either folder, [`Error::NotEmpty`] if the new one has events, and
/// [`Error::Damaged`] if anything of the old one is damaged; [`Error::Io`] also if a segment was taken away.
pub fn repair(from: &Path, to: &Path, repair: &Repair) -> Result<Repaired, Error> {
    let _lock = Lock::take(&System, from)?;
    // What the ledger alone knows of segments that are gone cannot be copied.
    let segments = directory::segments(&System, from)?;
    for (expected, (number, _)) in (1..).zip(&segments) {
        if *number != expected {
            let missing = directory::segment(from, expected);
            return Err(Error::io("open", missing)(std::io::ErrorKind::NotFound.into()));
        }
    }
    let (mut store, recovered) = Store::open(Options::new(to))?;
    if !recovered.runs.is_empty() {
        return Err(Error::NotEmpty { path: to.to_owned() });
    }
    let mut reader = Reader::open(from)?;
    let mut done = Repaired::default();
    let mut put = |store: &mut Store, record: Record<'_>| -> Result<(), Error> {
        let is_copied = !repair.leaves_out(record.run, record.verdict) && store.put(&record)? == Put::Taken;
        *match (is_copied, record.conflict) {
            (true, true) => &mut done.conflicts,
            (true, false) => &mut done.copied,
            (false, _) => &mut done.left_out,
        } += 1;
        Ok(())
    };
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(record) => put(&mut store, record)?,
            Item::Verdicts(all, given) => {
                let of =
                    |range: &Checksums| range.iter().map(|(event, sum)| ((range.run, event), sum)).collect::<Vec<_>>();
                let sums: HashMap<_, _> = given.iter().flat_map(of).collect();
                for (run, verdict, events) in all {
                    for event in events {
                        let given = sums.get(&(run, event)).copied().unwrap_or(0);
                        put(&mut store, Record { given, ..Record::new(run, event, verdict, &[]) })?;
                    }
                }
            }
            Item::Damaged(damage) => return Err(Error::Damaged { path: damage.path, offset: damage.offset }),
            // A commit that was never finished, of which nobody was told.
            Item::Torn(_) => {}
        }
    }
    store.finish()?;
    Ok(done)
}
