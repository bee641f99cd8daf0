//! Simulated networks that a file describes.

mod file;
mod plan;
#[cfg(test)]
mod tests;
mod values;

use crate::Names;
use hodo_spacewire::bridge::{Device, Gate};
use hodo_spacewire::network::{Network, NodeId};
use std::io::ErrorKind;
use std::path::Path;

pub use plan::PRESETS;

/// Bytes of the largest file of a network.
const FILE_MAX: u64 = 16 << 20;

/// A network, with what is at its nodes.
pub struct Plan {
    /// The network, whose time has not begun.
    pub network: Network,
    /// The nodes that hosts reach, and their names.
    pub gates: Vec<(String, Gate)>,
    /// The nodes with an application of their own.
    pub devices: Vec<(NodeId, Device)>,
    /// The names of all nodes, routers and links, for reports.
    pub names: Names,
}

/// Why a network cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl Plan {
    /// Reads the file of a network.
    ///
    /// # Errors
    /// [`PlanError`] with the line, the mistake and what to write instead.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let name = path.display().to_string();
        let wrong = |why: String| PlanError(format!("{name}: cannot be read: {why}"));
        let bytes = hodo_io::files::read(path, FILE_MAX).map_err(|why| match why.kind() {
            ErrorKind::FileTooLarge => wrong(format!("{why}, which is no network")),
            _ => wrong(why.to_string()),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8; save it as that".to_owned()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Plan::parse(&name, &text, folder)
    }

    /// Makes the network of a preset: one of [`PRESETS`].
    ///
    /// # Errors
    /// [`PlanError`] with the presets that there are.
    pub fn preset(name: &str) -> Result<Self, PlanError> {
        let Some((_, text)) = PRESETS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = PRESETS.iter().map(|(known, _)| *known).collect();
            return Err(PlanError(format!("there is no preset `{name}`; choose one of {}", known.join(", "))));
        };
        Plan::parse(name, text, Path::new("."))
    }

    /// Makes the network that a text describes. Paths in it are relative to `folder`.
    ///
    /// # Errors
    /// [`PlanError`] with the line, the mistake and what to write instead.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, PlanError> {
        plan::plan(&plan::Place { name, text, folder })
    }
}
