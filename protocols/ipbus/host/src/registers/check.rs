//! Checks address tables and connection files, and says everything that is wrong with its place.

use super::names;
use crate::Files;
use hodo_uhal::connections::Connection;
use hodo_uhal::files::Source;
use hodo_uhal::finding::{FileProblem, Finding, Place, Severity};
use hodo_uhal::table::{self, Limits, Overlap};
use hodo_uhal::uri::Uri;

/// A file, or several connection files together, with what is wrong in it.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The name of the file.
    pub name: String,
    /// The kind of its entries.
    pub entries: Entries,
    /// The number of its entries.
    pub count: usize,
    /// Everything that is wrong.
    pub remarks: Vec<Remark>,
}

/// The entries of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// Devices, in connection files.
    Devices,
    /// Nodes, in an address table.
    Nodes,
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Remark {
    /// Where it is.
    pub place: Place,
    /// How bad it is.
    pub kind: RemarkKind,
    /// The sentence that says it.
    pub text: String,
    /// The nodes that share addresses, if that is what is wrong.
    pub overlap: Option<Overlap>,
}

/// How bad a remark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemarkKind {
    /// The file cannot be used.
    Error,
    /// Something has no effect, or probably another one than was meant.
    Warning,
    /// Two nodes share addresses.
    Overlap,
}

impl RemarkKind {
    /// All kinds.
    pub const ALL: [RemarkKind; 3] = [RemarkKind::Error, RemarkKind::Warning, RemarkKind::Overlap];

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RemarkKind::Error => "error",
            RemarkKind::Warning => "warning",
            RemarkKind::Overlap => "overlap",
        }
    }
}

impl Checked {
    /// Returns the number of remarks of a kind.
    #[must_use]
    pub fn count_of(&self, kind: RemarkKind) -> usize {
        self.remarks.iter().filter(|remark| remark.kind == kind).count()
    }
}

/// Checks address tables, and connection files with the tables that they name. Each file is checked once.
///
/// # Errors
/// The first name of a table that is wrong, or has no file.
pub fn check(tables: &[String], connections: &[String]) -> Result<Vec<Checked>, FileProblem> {
    let mut checked = Vec::new();
    let mut tables = names::tables(tables)?;
    if !connections.is_empty() {
        checked.push(check_connections(connections, &mut tables));
    }
    let mut known: Vec<String> = Vec::new();
    for file in tables {
        let identity = Files.identity(&file);
        if !known.contains(&identity) {
            known.push(identity);
            checked.push(check_table(file));
        }
    }
    Ok(checked)
}

fn check_table(file: String) -> Checked {
    let report = table::check(&file, &Files, &Limits::default());
    let mut remarks: Vec<Remark> = report.findings.iter().map(Remark::from).collect();
    remarks.extend(report.overlaps.into_iter().map(Remark::from));
    Checked { name: file, entries: Entries::Nodes, count: report.nodes, remarks }
}

/// Checks connection files, and adds the tables that they name.
fn check_connections(files: &[String], tables: &mut Vec<String>) -> Checked {
    let mut checked = Checked { name: files.join(" "), entries: Entries::Devices, count: 0, remarks: Vec::new() };
    match names::connections(files) {
        Err(error) => checked.remarks.extend(error.findings.iter().map(Remark::from)),
        Ok(all) => {
            checked.remarks.extend(all.warnings().iter().map(Remark::from));
            for connection in all.iter() {
                checked.count += 1;
                check_device(connection, &mut checked.remarks, tables);
            }
            checked.remarks.sort_by(|one, other| one.place.cmp(&other.place));
        }
    }
    checked
}

fn check_device(connection: &Connection, remarks: &mut Vec<Remark>, tables: &mut Vec<String>) {
    let Connection { id, place, .. } = connection;
    let mut remark = |kind, text| remarks.push(Remark { place: place.clone(), kind, text, overlap: None });
    match connection.uri.parse::<Uri>() {
        Err(error) => remark(RemarkKind::Error, format!("device `{id}`: {error}")),
        Ok(uri) => uri.ignored.iter().for_each(|option| {
            remark(RemarkKind::Warning, format!("device `{id}`: `{option}` in its URI has no effect; remove it"));
        }),
    }
    // A missing table is reported at the place that names it.
    let found = connection.table_file(&Files).and_then(|file| match Files.read(&file, 0) {
        Ok(_) => Ok(file),
        Err(why) => Err(FileProblem::Unreadable { file, why }),
    });
    match found {
        Err(problem) => remark(RemarkKind::Error, format!("device `{id}`: {problem}")),
        Ok(file) => tables.push(file),
    }
}

impl From<&Finding> for Remark {
    fn from(finding: &Finding) -> Self {
        let kind = match finding.problem.severity() {
            Severity::Error => RemarkKind::Error,
            Severity::Warning => RemarkKind::Warning,
        };
        Remark { place: finding.place.clone(), kind, text: finding.problem.to_string(), overlap: None }
    }
}

impl From<Overlap> for Remark {
    fn from(overlap: Overlap) -> Self {
        let place = overlap.first.place.clone();
        let whole = overlap.to_string();
        let text = whole.strip_prefix(&format!("{place}: overlap: ")).unwrap_or(&whole).to_owned();
        Remark { place, kind: RemarkKind::Overlap, text, overlap: Some(overlap) }
    }
}
