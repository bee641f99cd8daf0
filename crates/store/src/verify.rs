//! Checks that everything in a folder is as it was written, and that each event has one verdict.

use crate::block::Kind;
use crate::directory;
use crate::error::Error;
use crate::files::System;
use crate::given::{self, Checksum};
use crate::index::{self, Entry};
use crate::ledger::{self, Contents};
use crate::ranges::Ranges;
use crate::record::Verdict;
use crate::recovery::{Damage, add, add_given, merge};
use crate::scan::Step;
use crate::verdicts::{self, Verdicts};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The contents of a folder, and its faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Segments in the folder.
    pub segments: u64,
    /// Bytes of those segments.
    pub bytes: u64,
    /// Events with data.
    pub events: u64,
    /// Bytes of these data.
    pub data_bytes: u64,
    /// The number of events by run and verdict, including those of segments that were taken away.
    pub runs: BTreeMap<u32, BTreeMap<Verdict, u64>>,
    /// The number of events with data that lack fragments, by run.
    pub partial: BTreeMap<u32, u64>,
    /// The number of other data that came under the numbers of events, by run; they are not among the events.
    pub conflicts: BTreeMap<u32, u64>,
    /// Faults, and other findings.
    pub findings: Vec<Finding>,
}

impl Verified {
    /// Returns whether everything is as it was written.
    #[must_use]
    pub fn is_good(&self) -> bool {
        !self.findings.iter().any(Finding::is_failure)
    }
}

/// A fault of a file, or a fact worth reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// Bytes are not as they were written.
    Damaged(Damage),
    /// The last segment ends in a commit that is being written, or was never finished: no fault.
    Unfinished(Damage),
    /// A segment has no end, and others follow.
    NotClosed(PathBuf),
    /// A segment's index or its verdicts are not those of its events.
    IndexWrong(PathBuf),
    /// An event has a second verdict.
    Twice {
        /// The file with the second verdict.
        path: PathBuf,
        /// The run of the event.
        run: u32,
        /// The event's number.
        event: u64,
    },
    /// A segment is missing, and the ledger does not cover it.
    Missing {
        /// The segment's number.
        segment: u64,
    },
    /// The ledger is not what the segments say.
    LedgerWrong(PathBuf),
}

impl Finding {
    /// Returns whether the finding is a fault.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        !matches!(self, Finding::Unfinished(_))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Damaged(Damage { path, offset, bytes }) => {
                write!(f, "{}: {bytes} bytes from byte {offset} are not as they were written", path.display())
            }
            Finding::Unfinished(Damage { path, offset, bytes }) => write!(
                f,
                "{}: {bytes} bytes from byte {offset} belong to a commit that is not finished; nobody was told that they \
                 are stored",
                path.display()
            ),
            Finding::NotClosed(path) => write!(f, "{}: its end is missing, and other segments follow", path.display()),
            Finding::IndexWrong(path) => write!(f, "{}: its index is not that of its events", path.display()),
            Finding::Twice { path, run, event } => {
                write!(f, "{}: event {event} of run {run} has a second verdict", path.display())
            }
            Finding::Missing { segment } => write!(f, "segment {segment} is missing, and the ledger does not have it"),
            Finding::LedgerWrong(path) => write!(f, "{}: it does not say what the segments say", path.display()),
        }
    }
}

/// Reads every byte of a folder. A writer should not be at work: what it is writing looks unfinished.
///
/// # Errors
/// [`Error::Io`] if a file cannot be read, [`Error::Foreign`] if it was not written by a store.
pub fn verify(folder: impl AsRef<Path>) -> Result<Verified, Error> {
    let folder = folder.as_ref();
    let segments = directory::segments(&System, folder)?;
    let path = directory::ledger(folder);
    let contents = ledger::read(&System, &path)?;
    let mut check = Check::default();
    let last = segments.last().map_or(0, |(number, _)| *number);
    let covered = contents.as_ref().map_or(0, |contents| contents.last);
    let mut expected = 1;
    let mut gaps = false;
    for (number, path) in &segments {
        gaps |= *number != expected;
        check
            .verified
            .findings
            .extend((expected.max(covered + 1)..*number).map(|segment| Finding::Missing { segment }));
        expected = number + 1;
        check.segment(path, *number == last, *number <= covered)?;
    }
    let gaps = gaps || covered >= expected;
    if let Some(contents) = contents {
        check.ledger(path, &contents, gaps);
    }
    for ((run, verdict), ranges) in &check.all {
        *check.verified.runs.entry(*run).or_default().entry(*verdict).or_default() += ranges.len();
    }
    Ok(check.verified)
}

#[derive(Debug, Default)]
struct Check {
    verified: Verified,
    decided: BTreeMap<u32, Ranges>,
    /// The verdicts of segments that the ledger covers.
    covered: Verdicts,
    all: Verdicts,
}

impl Check {
    fn segment(&mut self, path: &Path, is_last: bool, covered: bool) -> Result<(), Error> {
        let (mut scan, damage) = crate::reader::begin(path)?;
        self.verified.segments += 1;
        self.verified.bytes += scan.length();
        self.verified.findings.extend(damage.map(Finding::Damaged));
        let mut seen = Contained::default();
        let mut torn = None;
        while let Some(step) = scan.next().map_err(Error::io("read", path))? {
            match step {
                Step::Block { header, offset } => {
                    if header.is_conflict() {
                        *self.verified.conflicts.entry(header.run).or_default() += 1;
                    } else if header.kind == Kind::Event {
                        self.verified.events += 1;
                        self.verified.data_bytes += u64::from(header.length);
                        if header.is_partial() {
                            *self.verified.partial.entry(header.run).or_default() += 1;
                        }
                    }
                    seen.block(&header, offset, scan.data());
                }
                Step::Damage { offset, bytes } => {
                    seen.damaged = true;
                    self.verified.findings.push(Finding::Damaged(Damage { path: path.to_owned(), offset, bytes }));
                }
                Step::Torn { offset, bytes } => torn = Some(Damage { path: path.to_owned(), offset, bytes }),
            }
        }
        let unfinished = is_last && !seen.closed && !covered;
        let word = if unfinished { Finding::Unfinished } else { Finding::Damaged };
        let whole = torn.is_none() && !seen.damaged;
        self.verified.findings.extend(torn.map(word));
        if whole && !seen.closed && !unfinished {
            self.verified.findings.push(Finding::NotClosed(path.to_owned()));
        }
        if whole && seen.footer_wrong {
            self.verified.findings.push(Finding::IndexWrong(path.to_owned()));
        }
        self.once(path, &seen);
        merge(&seen.verdicts, &mut self.all);
        if covered {
            merge(&seen.verdicts, &mut self.covered);
        }
        Ok(())
    }

    /// Checks that no event has two verdicts.
    fn once(&mut self, path: &Path, seen: &Contained) {
        let mut twice: Vec<(u32, u64)> = seen.twice.clone();
        for ((run, _), ranges) in &seen.verdicts {
            let decided = self.decided.entry(*run).or_default();
            for range in ranges.iter() {
                if decided.insert_range(range.clone()) == range.end - range.start {
                    continue;
                }
                twice.push((*run, range.start));
            }
        }
        let found = twice.into_iter().map(|(run, event)| Finding::Twice { path: path.to_owned(), run, event });
        self.verified.findings.extend(found);
    }

    fn ledger(&mut self, path: PathBuf, contents: &Contents, gaps: bool) {
        let before: u64 = contents.verdicts.values().map(Ranges::len).sum();
        let mut both = contents.verdicts.clone();
        merge(&self.covered, &mut both);
        let after: u64 = both.values().map(Ranges::len).sum();
        let there: u64 = self.covered.values().map(Ranges::len).sum();
        if !contents.whole || after != before || (!gaps && there != before) {
            self.verified.findings.push(Finding::LedgerWrong(path));
        }
        merge(&contents.verdicts, &mut self.all);
    }
}

/// The contents of a segment, as its blocks say.
#[derive(Debug, Default)]
struct Contained {
    entries: Vec<Entry>,
    verdicts: Verdicts,
    given: Vec<Checksum>,
    twice: Vec<(u32, u64)>,
    closed: bool,
    damaged: bool,
    footer_wrong: bool,
}

impl Contained {
    fn block(&mut self, header: &crate::block::Header, offset: u64, data: &[u8]) {
        add_given(header, data, &mut self.given);
        match header.kind {
            Kind::Event => {
                self.entries.push(Entry::of(header, offset));
                if !add(header, data, &mut self.verdicts) {
                    self.twice.push((header.run, header.a));
                }
            }
            Kind::Commit => {
                self.footer_wrong |= !add(header, data, &mut self.verdicts);
            }
            Kind::Index => self.footer_wrong |= index::encode(&mut self.entries) != data,
            Kind::Ledger => {
                let mut expected = Vec::new();
                verdicts::encode_all(&self.verdicts, &mut expected);
                given::encode(&mut self.given, &mut expected);
                self.footer_wrong |= expected != data;
            }
            Kind::End => self.closed = true,
        }
    }
}
