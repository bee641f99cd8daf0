//! `hodo ipbus nodes`: which nodes does an address table have?

use super::board::{self, FilterOptions};
use super::forms::{FormOptions, Forms};
use super::grid::Grid;
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_ipbus_host::registers;
use hodo_ipbus_host::table::{Mask, Mode, Node};
use serde_json::{Value, json};

/// Lists them with all that the table says of each.
pub fn run(options: &NodesOptions) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&options.forms)?;
    let table = if options.connections.is_empty() {
        registers::table(&options.table)?
    } else {
        registers::table_of(&registers::connection(&options.table, &options.connections)?)?
    };
    let nodes = board::filter(&options.filter).nodes(&table)?;
    let grid = grid(&nodes);
    let listed = || nodes.iter().map(document).collect::<Vec<_>>();
    forms.write(|| grid.tsv(), || json!({ "schema": "hodo.ipbus-nodes/1", "nodes": listed() }))?;
    terminal::tell(&grid.table(), forms.take_stdout())?;
    Ok(Outcome::Done)
}

const COLUMNS: &[&str] = &[
    "node",
    "address",
    "last_address",
    "mask",
    "mode",
    "size",
    "permission",
    "tags",
    "parameters",
    "fwinfo",
    "class",
    "description",
];

fn grid(nodes: &[Node<'_>]) -> Grid {
    let mut grid = Grid::new(COLUMNS);
    for node in nodes {
        let block = node.mode() == Mode::Incremental;
        let sized = block || node.mode() == Mode::NonIncremental;
        grid.row([
            node.path(),
            format!("0x{:08X}", node.address()),
            if block { format!("0x{:08X}", node.last_address()) } else { String::new() },
            if node.mask() == Mask::ALL { String::new() } else { node.mask().to_string() },
            node.mode().to_string(),
            if sized { node.size().to_string() } else { String::new() },
            if node.mode() == Mode::Hierarchical { String::new() } else { node.permission().to_string() },
            node.tags().to_owned(),
            pairs(node.parameters()),
            pairs(node.firmware_info()),
            node.class().to_owned(),
            node.description().to_owned(),
        ]);
    }
    grid
}

fn pairs<'n>(pairs: impl Iterator<Item = (&'n str, &'n str)>) -> String {
    pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
}

fn document(node: &Node<'_>) -> Value {
    let object = |pairs: &mut dyn Iterator<Item = (&str, &str)>| -> Value {
        pairs.map(|(name, value)| (name.to_owned(), Value::from(value))).collect::<serde_json::Map<_, _>>().into()
    };
    let place = node.place();
    json!({
        "node": node.path(),
        "address": node.address(),
        "last_address": node.last_address(),
        "mask": node.mask().0,
        "mode": node.mode().to_string(),
        "size": node.size(),
        "permission": node.permission().to_string(),
        "tags": node.tags(),
        "parameters": object(&mut node.parameters()),
        "fwinfo": object(&mut node.firmware_info()),
        "class": node.class(),
        "description": node.description(),
        "file": place.file,
        "line": place.line,
        "column": place.column,
    })
}

/// Which nodes are listed.
#[derive(Debug, Args)]
pub struct NodesOptions {
    /// Address table, or with --connections the id of a device in those files.
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Connection file, as a path or an expression of uHAL's: 'file://$BOARDS/*.xml'.
    #[arg(short, long, value_name = "FILE")]
    pub connections: Vec<String>,
    /// The nodes.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// Where the list goes.
    #[command(flatten)]
    pub forms: FormOptions,
}
