//! `hodo ipbus check`: what is wrong with address tables and connection files?

use super::board::counted;
use super::forms::Forms;
use super::grid::{Grid, plain};
use crate::{Error, Outcome, args, terminal};
use hodo_ipbus_host::Files;
use hodo_ipbus_host::connections::Connection;
use hodo_ipbus_host::files::Source;
use hodo_ipbus_host::finding::{FileProblem, Finding, Place, Severity};
use hodo_ipbus_host::registers;
use hodo_ipbus_host::table::{self, Limits, Occupant, Overlap};
use hodo_ipbus_host::uri::Uri;
use serde_json::{Value, json};

/// Tells everything that is wrong, with its place.
pub fn run(asked: &args::Check) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&asked.forms)?;
    let mut checked: Vec<Checked> = Vec::new();
    let mut tables = registers::tables(&asked.tables).map_err(|problem| Error::Usage(problem.to_string()))?;
    if !asked.connections.is_empty() {
        checked.push(connections(&asked.connections, &mut tables));
    }
    let mut known: Vec<String> = Vec::new();
    for file in tables {
        let identity = Files.identity(&file);
        if !known.contains(&identity) {
            known.push(identity);
            checked.push(table(&file));
        }
    }
    forms.write(|| grid(&checked).tsv(), || document(&checked))?;
    terminal::tell(&checked.iter().map(Checked::text).collect::<String>(), forms.take_stdout())?;
    let fails = |remark: &Remark| match remark.kind {
        Kind::Error => true,
        Kind::Overlap => !asked.allow_overlaps,
        Kind::Warning => asked.strict,
    };
    Ok(if checked.iter().flat_map(|checked| &checked.remarks).any(fails) { Outcome::Failed } else { Outcome::Done })
}

/// A file and its findings.
struct Checked {
    name: String,
    /// The entries of the file: devices, or nodes.
    holds: &'static str,
    count: usize,
    remarks: Vec<Remark>,
}

const NODE: &str = "node";

/// One finding.
struct Remark {
    place: Place,
    kind: Kind,
    text: String,
    overlap: Option<Overlap>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Error,
    Warning,
    Overlap,
}

fn table(file: &str) -> Checked {
    let report = table::check(file, &Files, &Limits::default());
    let mut remarks: Vec<Remark> = report.findings.iter().map(Remark::from).collect();
    remarks.extend(report.overlaps.into_iter().map(Remark::from));
    Checked { name: file.to_owned(), holds: NODE, count: report.nodes, remarks }
}

/// Checks connection files, and adds the tables that they name.
fn connections(names: &[String], tables: &mut Vec<String>) -> Checked {
    let mut checked = Checked { name: names.join(" "), holds: "device", count: 0, remarks: Vec::new() };
    match registers::connections(names) {
        Err(error) => checked.remarks.extend(error.findings.iter().map(Remark::from)),
        Ok(all) => {
            checked.remarks.extend(all.warnings().iter().map(Remark::from));
            for connection in all.iter() {
                checked.count += 1;
                device(connection, &mut checked.remarks, tables);
            }
            checked.remarks.sort_by(|one, other| one.place.cmp(&other.place));
        }
    }
    checked
}

fn device(connection: &Connection, remarks: &mut Vec<Remark>, tables: &mut Vec<String>) {
    let id = &connection.id;
    let mut tell = |kind, text| remarks.push(Remark { place: connection.place.clone(), kind, text, overlap: None });
    match connection.uri.parse::<Uri>() {
        Err(error) => tell(Kind::Error, format!("device `{id}`: {error}")),
        Ok(uri) => uri.ignored.iter().for_each(|option| {
            tell(Kind::Warning, format!("device `{id}`: `{option}` in its URI has no effect; take it out"));
        }),
    }
    // A missing table is reported at the place that names it.
    let found = connection.table_file(&Files).and_then(|file| match Files.read(&file, 0) {
        Ok(_) => Ok(file),
        Err(why) => Err(FileProblem::Unreadable { file, why }),
    });
    match found {
        Err(problem) => tell(Kind::Error, format!("device `{id}`: {problem}")),
        Ok(file) => tables.push(file),
    }
}

impl From<&Finding> for Remark {
    fn from(finding: &Finding) -> Self {
        let kind = match finding.problem.severity() {
            Severity::Error => Kind::Error,
            Severity::Warning => Kind::Warning,
        };
        Remark { place: finding.place.clone(), kind, text: finding.problem.to_string(), overlap: None }
    }
}

impl From<Overlap> for Remark {
    fn from(overlap: Overlap) -> Self {
        let place = overlap.first.place.clone();
        let whole = overlap.to_string();
        let text = whole.strip_prefix(&format!("{place}: overlap: ")).unwrap_or(&whole).to_owned();
        Remark { place, kind: Kind::Overlap, text, overlap: Some(overlap) }
    }
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Error, Kind::Warning, Kind::Overlap];

    fn word(self) -> &'static str {
        match self {
            Kind::Error => "error",
            Kind::Warning => "warning",
            Kind::Overlap => "overlap",
        }
    }
}

impl Checked {
    fn count_of(&self, kind: Kind) -> usize {
        self.remarks.iter().filter(|remark| remark.kind == kind).count()
    }

    /// Returns the findings, a line each, and their number.
    fn text(&self) -> String {
        let mut text = String::new();
        for Remark { place, kind, text: what, .. } in &self.remarks {
            text.push_str(&plain(&format!("{place}: {}: {what}", kind.word())));
            text.push('\n');
        }
        let mut parts = vec![number(self.count, self.holds)];
        let kinds: &[Kind] = if self.holds == NODE { &Kind::ALL } else { &Kind::ALL[..2] };
        parts.extend(kinds.iter().map(|kind| number(self.count_of(*kind), kind.word())));
        text.push_str(&plain(&format!("{}: {}", self.name, parts.join(", "))));
        text.push('\n');
        text
    }

    fn document(&self) -> Value {
        let findings: Vec<Value> = self.remarks.iter().map(Remark::document).collect();
        json!({
            "file": self.name,
            "holds": format!("{}s", self.holds),
            "count": self.count,
            "errors": self.count_of(Kind::Error),
            "warnings": self.count_of(Kind::Warning),
            "overlaps": self.count_of(Kind::Overlap),
            "findings": findings,
        })
    }
}

impl Remark {
    fn document(&self) -> Value {
        let Place { file, line, column } = &self.place;
        let mut value =
            json!({ "severity": self.kind.word(), "file": file, "line": line, "column": column, "text": self.text });
        if let Some(Overlap { first, second }) = &self.overlap {
            value["nodes"] = json!([occupant(first), occupant(second)]);
        }
        value
    }
}

fn occupant(occupant: &Occupant) -> Value {
    let Occupant { path, place, address, last_address, mask } = occupant;
    json!({
        "node": path, "address": address, "last_address": last_address, "mask": mask.0,
        "file": place.file, "line": place.line, "column": place.column,
    })
}

fn grid(checked: &[Checked]) -> Grid {
    let mut grid = Grid::new(&["file", "line", "column", "severity", "text"]);
    for Remark { place, kind, text, .. } in checked.iter().flat_map(|checked| &checked.remarks) {
        let Place { file, line, column } = place;
        grid.row([file.clone(), line.to_string(), column.to_string(), kind.word().to_owned(), text.clone()]);
    }
    grid
}

fn document(checked: &[Checked]) -> Value {
    json!({ "schema": "hodo.ipbus-check/1", "checked": checked.iter().map(Checked::document).collect::<Vec<_>>() })
}

fn number(count: usize, what: &str) -> String {
    if count == 0 { format!("no {what}s") } else { counted(count, what, &format!("{what}s")) }
}
