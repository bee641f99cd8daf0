//! `hodo ipbus devices`: which devices do connection files have?

use super::board::{self, FilterOptions};
use super::forms::{FormOptions, Forms};
use super::grid::Grid;
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_ipbus_host::connections::Connection;
use hodo_ipbus_host::registers;
use serde_json::{Value, json};

/// Lists them with their URIs and address tables.
pub fn run(options: &DevicesOptions) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&options.forms)?;
    let all = registers::connections(&options.connections).map_err(|why| Error::Usage(why.to_string()))?;
    let patterns = board::filter(&options.filter).patterns()?;
    let fits = |id: &str| patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(id));
    let devices: Vec<&Connection> = all.iter().filter(|connection| fits(&connection.id)).collect();
    if devices.is_empty() && !patterns.is_empty() {
        let all = board::counted(all.iter().count(), "device", "devices");
        return Err(Error::Usage(format!(
            "none of {all} matches `{}`; without a pattern all are listed",
            options.filter.patterns.join("`, `")
        )));
    }
    let mut grid = Grid::new(&["device", "uri", "address_table", "file", "line"]);
    for Connection { id, uri, address_table, place } in &devices {
        grid.row([id.clone(), uri.clone(), address_table.clone(), place.file.clone(), place.line.to_string()]);
    }
    let listed = || devices.iter().map(|device| document(device)).collect::<Vec<Value>>();
    forms.write(|| grid.tsv(), || json!({ "schema": "hodo.ipbus-devices/1", "devices": listed() }))?;
    terminal::tell(&grid.table(), forms.take_stdout())?;
    Ok(Outcome::Done)
}

fn document(Connection { id, uri, address_table, place }: &Connection) -> Value {
    json!({
        "device": id, "uri": uri, "address_table": address_table,
        "file": place.file, "line": place.line, "column": place.column,
    })
}

/// Which devices are listed.
#[derive(Debug, Args)]
pub struct DevicesOptions {
    /// Connection file, as a path or an expression of uHAL's: 'file://$BOARDS/*.xml'.
    #[arg(short, long, value_name = "FILE", required = true)]
    pub connections: Vec<String>,
    /// The devices, by their ids.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// Where the list goes.
    #[command(flatten)]
    pub forms: FormOptions,
}
