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
    let fails = |told: &Told| match told.kind {
        Kind::Error => true,
        Kind::Overlap => !asked.allow_overlaps,
        Kind::Warning => asked.strict,
    };
    Ok(if checked.iter().flat_map(|checked| &checked.told).any(fails) { Outcome::Failed } else { Outcome::Done })
}

/// A file, and what there is to say about it.
struct Checked {
    name: String,
    /// What there is in it: devices, or nodes.
    holds: &'static str,
    count: usize,
    told: Vec<Told>,
}

const NODE: &str = "node";

/// One finding.
struct Told {
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
    let mut told: Vec<Told> = report.findings.iter().map(Told::from).collect();
    told.extend(report.overlaps.into_iter().map(Told::from));
    Checked { name: file.to_owned(), holds: NODE, count: report.nodes, told }
}

/// Checks connection files, and adds the tables that they name.
fn connections(names: &[String], tables: &mut Vec<String>) -> Checked {
    let mut checked = Checked { name: names.join(" "), holds: "device", count: 0, told: Vec::new() };
    match registers::connections(names) {
        Err(error) => checked.told.extend(error.findings.iter().map(Told::from)),
        Ok(all) => {
            checked.told.extend(all.warnings().iter().map(Told::from));
            for connection in all.iter() {
                checked.count += 1;
                device(connection, &mut checked.told, tables);
            }
            checked.told.sort_by(|one, other| one.place.cmp(&other.place));
        }
    }
    checked
}

fn device(connection: &Connection, told: &mut Vec<Told>, tables: &mut Vec<String>) {
    let id = &connection.id;
    let mut tell = |kind, text| told.push(Told { place: connection.place.clone(), kind, text, overlap: None });
    match connection.uri.parse::<Uri>() {
        Err(error) => tell(Kind::Error, format!("device `{id}`: {error}")),
        Ok(uri) => uri.ignored.iter().for_each(|option| {
            tell(Kind::Warning, format!("device `{id}`: `{option}` in its URI has no effect; take it out"));
        }),
    }
    // A table that is not there is the fault of who names it.
    let found = connection.table_file(&Files).and_then(|file| match Files.read(&file, 0) {
        Ok(_) => Ok(file),
        Err(why) => Err(FileProblem::Unreadable { file, why }),
    });
    match found {
        Err(problem) => tell(Kind::Error, format!("device `{id}`: {problem}")),
        Ok(file) => tables.push(file),
    }
}

impl From<&Finding> for Told {
    fn from(finding: &Finding) -> Self {
        let kind = match finding.problem.severity() {
            Severity::Error => Kind::Error,
            Severity::Warning => Kind::Warning,
        };
        Told { place: finding.place.clone(), kind, text: finding.problem.to_string(), overlap: None }
    }
}

impl From<Overlap> for Told {
    fn from(overlap: Overlap) -> Self {
        let place = overlap.first.place.clone();
        let whole = overlap.to_string();
        let text = whole.strip_prefix(&format!("{place}: overlap: ")).unwrap_or(&whole).to_owned();
        Told { place, kind: Kind::Overlap, text, overlap: Some(overlap) }
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
        self.told.iter().filter(|told| told.kind == kind).count()
    }

    /// Its findings, a line each, and their number.
    fn text(&self) -> String {
        let mut text = String::new();
        for Told { place, kind, text: what, .. } in &self.told {
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
        let findings: Vec<Value> = self.told.iter().map(Told::document).collect();
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

impl Told {
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
    for Told { place, kind, text, .. } in checked.iter().flat_map(|checked| &checked.told) {
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
