//! Nodes: they take events and decide, by an emulator or by programs of users.

use crate::deciders::process_counters;
use crate::process::ProcessSettings;
use crate::programs::{self, Programs};
use crate::{Deciding, Error};
use hodo_farm::node::{Command, Event};
use hodo_farm::{Node, NodeConfig};
use hodo_io::{Attendant, Server, Stop};
use std::time::Duration;

/// Settings of a process of nodes.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// The nodes, one for each of the controllers in it. Programs go before who decides in it.
    pub config: NodeConfig,
    /// Programs of users that decide.
    pub programs: Option<Programs>,
    /// How long events here may take to be answered when the nodes are to stop.
    pub drain: Duration,
    /// The process.
    pub process: ProcessSettings,
}

/// Decides until `stop` is set.
///
/// # Errors
/// [`Error::Settings`] if there is no such program, [`Error::Run`] if the network fails.
pub fn run(settings: &NodeSettings, stop: &Stop) -> Result<(), Error> {
    let NodeSettings { config, programs, drain, process } = settings;
    let options = process.serve_options(1, config.controllers.len() + 16);
    if let Some(programs) = programs {
        let deciding = Deciding { serve: options, node: config.clone(), drain: *drain };
        return programs::run(programs, deciding, stop);
    }
    let node = Node::new(config.clone());
    let to = config.controllers.first().map(ToString::to_string).unwrap_or_default();
    let thread = NodeThread { to: to.clone(), left: None };
    Server::new(options)
        .with_drain(*drain)
        .attend_here(|| (node, thread), stop)
        .map_err(|why| Error::run(format!("deciding for {to}"), &why))
}

/// The thread of nodes whose decisions are emulated.
struct NodeThread {
    /// The controller.
    to: String,
    /// Why a controller could not be reached the last time.
    left: Option<hodo_farm::Error>,
}

impl Attendant for NodeThread {
    type Machine = Node;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::ReportAsked(peer, value) => Some(Command::Report { peer, value, process: process_counters() }),
            Event::Left(_, error) => {
                // It is tried again and again: once for each reason is enough.
                if self.left.replace(error) != Some(error) {
                    tracing::warn!("{}: {error}; trying again", self.to);
                }
                None
            }
            Event::Joined(..) => {
                self.left = None;
                tracing::debug!("joined the controller");
                None
            }
            Event::Work { .. } | Event::Drained => None,
        }
    }

    fn drain(&mut self) -> Option<Command> {
        Some(Command::Drain)
    }

    fn is_drained(&self, node: &Node) -> bool {
        node.is_drained()
    }
}
