//! `hodo ipbus dump`: what do all registers hold, or those whose names fit?

use super::board::{DeviceOptions, FilterOptions, counted, filter, open};
use super::forms::Forms;
use super::values::{self, Row, ShowOptions};
use crate::{Error, Outcome};
use clap::Args;
use hodo_ipbus_host::registers::Label;
use hodo_ipbus_host::table::{Mode, Node};
use hodo_ipbus_host::{At, SessionError};

/// Reads each register once, so that its bits are of one moment, and shows every node.
pub fn run(options: &DumpOptions) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&options.show.forms)?;
    let mut board = open(&options.device)?;
    let Some(table) = board.session.table() else {
        return Err(Error::Usage(
            "there is no address table that lists the registers; name one with --table FILE".to_owned(),
        ));
    };
    let nodes = filter(&options.filter).nodes(table)?;
    let (labels, note) = readable(&nodes);
    if labels.is_empty() {
        let nodes = counted(nodes.len(), "node", "nodes");
        let why = format!("none of {nodes} is a readable register; read blocks with `hodo ipbus block read`");
        return Err(Error::Usage(why));
    }
    let mut addresses: Vec<u32> = labels.iter().map(|label| label.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let places: Vec<At<'_>> = addresses.iter().map(|address| At::Address(*address)).collect();
    let found = board.read(&places)?;
    let rows: Vec<Row> = labels
        .into_iter()
        .map(|label| {
            let index = addresses.partition_point(|address| *address < label.address);
            let value = found[index].clone().map(|word| label.mask.value(word));
            Row { value: value.map_err(|error| named(error, &label)), label }
        })
        .collect();
    values::show(&board, &rows, &options.show, &forms, &note)
}

/// Returns the registers among the nodes, and the note about the others.
fn readable(nodes: &[Node<'_>]) -> (Vec<Label>, String) {
    let is_register = |node: &&Node<'_>| node.mode() == Mode::Single;
    let labels: Vec<Label> = nodes
        .iter()
        .filter(is_register)
        .filter(|node| node.permission().reads())
        .map(|node| Label::of(*node))
        .collect();
    let blocks = nodes.iter().filter(|node| matches!(node.mode(), Mode::Incremental | Mode::NonIncremental)).count();
    let write_only = nodes.iter().filter(is_register).count() - labels.len();
    let mut left = Vec::new();
    if blocks > 0 {
        left.push(counted(blocks, "block or port", "blocks and ports"));
    }
    if write_only > 0 {
        left.push(format!("{} that can only be written", counted(write_only, "register", "registers")));
    }
    let note = if left.is_empty() { String::new() } else { format!("not read: {}\n", left.join(", ")) };
    (labels, note)
}

fn named(error: SessionError, label: &Label) -> SessionError {
    match error {
        SessionError::Failed(mut failure) => {
            failure.node = Some(label.node.clone());
            SessionError::Failed(failure)
        }
        other => other,
    }
}

/// Registers to dump: those that are readable, without the words of blocks and ports.
#[derive(Debug, Args)]
pub struct DumpOptions {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// The nodes.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// How the values are shown.
    #[command(flatten)]
    pub show: ShowOptions,
}
