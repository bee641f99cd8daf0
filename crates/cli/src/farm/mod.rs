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
    /// Take events in, hand each to one node, store what is accepted.
    Controller(Box<controller::ControllerOptions>),
    /// Make events of the fragments of several sources.
    Builder(Box<builder::BuilderOptions>),
    /// Give events, or fragments of them.
    Source(source::SourceOptions),
    /// Take events and decide.
    Node(node::NodeOptions),
    /// How fast is a farm on this machine?
    Bench(Box<bench::BenchOptions>),
    /// Run a whole farm, as a file says.
    Run(run::RunOptions),
    /// Show the status of a controller, and how events are shared out over its nodes.
    Status(operate::FarmStatus),
    /// Show the status of a controller and its rates, live.
    Top(top::TopOptions),
    /// A run so far as a document of results, with the balance and the nodes.
    Report(report::ReportOptions),
    /// Have no more events given to nodes; what they have they answer.
    Pause(operate::FarmPages),
    /// Begin, or go on after pause or drain.
    Resume(operate::FarmPages),
    /// Take no new events in, and wait until those in hand have their verdicts.
    Drain(operate::FarmEnd),
    /// Drain, then end the controller.
    Stop(operate::FarmEnd),
    /// Give the events that a controller makes another run's number.
    SetRun(operate::FarmSetRun),
    /// Write stored events to a Parquet file.
    Export(files::ExportOptions),
    /// Is every byte of a store as it was written?
    Verify(files::VerifyOptions),
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
    }
}
