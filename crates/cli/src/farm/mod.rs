//! `hodo farm`: the parts of an event farm.

mod bench;
mod builder;
mod controller;
mod files;
mod limits;
mod node;
mod operate;
mod options;
mod report;
mod run;
mod source;
mod spread;
mod top;

pub use limits::FarmEvents;

use crate::{Error, Outcome};
use clap::{Args, Subcommand};

/// An event farm: sources, a builder, a controller, nodes.
#[derive(Debug, Args)]
pub struct FarmOptions {
    /// Which part of it.
    #[command(subcommand)]
    pub command: FarmCommand,
}

/// A part of a farm.
#[derive(Debug, Subcommand)]
pub enum FarmCommand {
    /// Take events in, hand each to one node, and store accepted ones.
    Controller(Box<controller::ControllerOptions>),
    /// Build events from the fragments of several sources.
    Builder(Box<builder::BuilderOptions>),
    /// Generate or replay events, or fragments of them.
    Source(source::SourceOptions),
    /// Take events and decide on them.
    Node(node::NodeOptions),
    /// Measure how fast a farm is on this machine.
    Bench(Box<bench::BenchOptions>),
    /// Run a whole farm that a file describes.
    Run(run::RunOptions),
    /// Show a controller's status, and how its nodes share the events.
    Status(operate::FarmStatus),
    /// Show a controller's status and rates, live.
    Top(top::TopOptions),
    /// Write the results of a run so far, with its balance and its nodes.
    Report(report::ReportOptions),
    /// Dispatch no more events to nodes; they finish those that they have.
    Pause(operate::FarmPages),
    /// Start, or resume after pause or drain.
    Resume(operate::FarmPages),
    /// Take no new events, and wait until all others have their verdicts.
    Drain(operate::FarmEnd),
    /// Drain, then end the controller.
    Stop(operate::FarmEnd),
    /// Open a run for sources, and set that of generated events.
    SetRun(operate::FarmSetRun),
    /// Write stored events to a Parquet file.
    Export(files::ExportOptions),
    /// Check that every byte of a store is as it was written.
    Verify(files::VerifyOptions),
    /// Copy a store without what a misconfigured source has put into it.
    Repair(files::RepairOptions),
}

/// Runs a part of a farm, or asks one that runs.
pub fn run(farm: &FarmOptions) -> Result<Outcome, Error> {
    match &farm.command {
        FarmCommand::Controller(controller) => controller::run(controller),
        FarmCommand::Builder(builder) => builder::run(builder),
        FarmCommand::Source(source) => source::run(source),
        FarmCommand::Node(node) => node::run(node),
        FarmCommand::Bench(options) => bench::run(options),
        FarmCommand::Run(options) => run::run(options),
        FarmCommand::Status(of) => operate::status(of),
        FarmCommand::Top(options) => top::run(options),
        FarmCommand::Report(options) => report::run(options),
        FarmCommand::Pause(of) => operate::order(of, "/pause"),
        FarmCommand::Resume(of) => operate::order(of, "/resume"),
        FarmCommand::SetRun(options) => operate::order(&options.of, &format!("/run?number={}", options.number)),
        FarmCommand::Drain(options) => operate::drain(options),
        FarmCommand::Stop(options) => operate::stop(options),
        FarmCommand::Export(options) => files::export(options),
        FarmCommand::Verify(options) => files::verify(options),
        FarmCommand::Repair(options) => files::repair(options),
    }
}
