//! `hodo pva record`: monitors written to Parquet.

use super::options::{ConnectOptions, NameOptions, RequestOptions, failed, seconds};
use crate::{Error, Outcome, interrupt, terminal};
use clap::Args;
use hodo_io::Clock;
use hodo_measure::units;
use hodo_pva_host::machines::Request;
use hodo_pva_host::record::{Output, RecordOptions, Recorded, Recorder};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one wait lasts at most: then signals and the disk are looked after.
const LOOK: Duration = Duration::from_millis(100);
/// PVs that a message names.
const NAMED: usize = 10;

/// Records until the end of the time or a signal.
pub fn run(options: &RecordArgs) -> Result<Outcome, Error> {
    let names = options.names.all()?;
    let stop = interrupt::flag()?;
    let client = options.connect.open_to_stay()?;
    let settings = RecordOptions { output: options.output(), flush: options.flush };
    let mut recorder = Recorder::start(client, &settings).map_err(Error::Failed)?;
    let request = options.request();
    let mut outcome = Outcome::Done;
    for name in &names {
        if let Err(why) = recorder.add(name, &request) {
            outcome = Outcome::Failed;
            terminal::remark(&why.to_string());
        }
    }
    let clock = Clock::start();
    let until = options.span.map(|span| clock.now() + span);
    let quiet_at = clock.now() + options.connect.timeout;
    let (mut has_told_silent, mut trouble) = (false, None);
    while !stop.load(Ordering::Relaxed) && !recorder.is_over() && until.is_none_or(|until| clock.now() < until) {
        recorder.turn(LOOK).map_err(failed)?;
        let now = recorder.trouble();
        match (&trouble, &now) {
            (None, Some(why)) => terminal::remark(&format!("{why}; it is tried again until there is room")),
            (Some(_), None) => terminal::remark("the disk takes rows again"),
            _ => {}
        }
        trouble = now;
        if !has_told_silent && clock.now() >= quiet_at {
            has_told_silent = true;
            tell_silent(&mut recorder);
        }
    }
    let recorded = recorder.finish().map_err(Error::Failed)?;
    terminal::print(&summary(&recorded))?;
    let is_whole = recorded.unwritten == 0 && recorded.silent.is_empty();
    Ok(if is_whole { outcome } else { Outcome::Failed })
}

/// Says which PVs have sent nothing yet: they are still waited for.
fn tell_silent(recorder: &mut Recorder) {
    let silent = recorder.silent();
    for (name, why) in silent.iter().take(NAMED) {
        let why = why.as_ref().map_or_else(|| "no update yet: still trying".to_owned(), ToString::to_string);
        terminal::remark(&format!("{name}: {why}"));
    }
    if silent.len() > NAMED {
        terminal::remark(&format!("{} further PVs have sent no update yet: still trying", silent.len() - NAMED));
    }
}

fn summary(recorded: &Recorded) -> String {
    let Recorded { updates, overruns, disconnects, silent, flawed, written, unwritten } = recorded;
    let mut text = format!(
        "{updates} updates, {} rows in {} files, {} bytes\n{overruns} updates had overwritten others, \
         {disconnects} connections were lost\n",
        written.rows, written.files, written.bytes
    );
    for (name, overruns, disconnects) in flawed.iter().take(NAMED) {
        text += &format!("{name}: {overruns} updates had overwritten others, {disconnects} connections were lost\n");
    }
    if flawed.len() > NAMED {
        text += &format!("{} further PVs have such gaps: see the columns overrun and event\n", flawed.len() - NAMED);
    }
    for name in silent.iter().take(NAMED) {
        text += &format!("{name}: no update has come\n");
    }
    if silent.len() > NAMED {
        text += &format!("{} further PVs: no update has come\n", silent.len() - NAMED);
    }
    if *unwritten > 0 {
        text += &format!("LOST: {unwritten} rows, which the disk did not take\n");
    }
    text
}

/// The part of a queue after which the server of a pipeline is told that there is room. A pvxs server whose queue was used up waits for the next post, so that the
/// end of a burst would come late; after a sixteenth only a burst longer than the rest is.
const ACKNOWLEDGED: u32 = 16;

/// PVs to record.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct RecordArgs {
    /// The names.
    #[command(flatten)]
    pub names: NameOptions,
    /// A file that does not exist, or a folder for files that are named by their time; what ends in '/' is a folder, and what is one.
    #[arg(short = 'o', long, value_name = "FILE|DIR/")]
    pub output: PathBuf,
    /// Size from which on a file in a folder is followed by the next, as 100M.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = units::bytes)]
    pub size: u64,
    /// Time after which a file in a folder is followed by the next.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub every: Option<Duration>,
    /// How long updates wait in memory before they are written; it grows by 1 % with each time that a file was added to.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub flush: Duration,
    /// Updates of a PV that may wait at the server and here, unless -r says it; memory is bounded by this times their size.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub queue: u32,
    /// End after this time.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub span: Option<Duration>,
    /// The fields.
    #[command(flatten)]
    pub request: RequestOptions,
    /// The way to the servers.
    #[command(flatten)]
    pub connect: ConnectOptions,
}

impl RecordArgs {
    fn output(&self) -> Output {
        let is_folder = self.output.as_os_str().as_encoded_bytes().ends_with(b"/") || self.output.is_dir();
        if is_folder {
            Output::Folder { path: self.output.clone(), size: self.size, span: self.every }
        } else {
            Output::File(self.output.clone())
        }
    }

    /// Returns the request with a queue, unless it says something else. A pipeline is the user's choice: a server of pvAccessCPP that keeps four
    /// updates stands still in one whose client acknowledges later.
    fn request(&self) -> Request {
        let mut request = self.request.request.clone();
        let acknowledged = (self.queue / ACKNOWLEDGED).max(1);
        for (option, value) in [("queueSize", self.queue.to_string()), ("ackAny", acknowledged.to_string())] {
            if request.option(option).is_none() {
                request.options.push((option.to_owned(), value));
            }
        }
        request
    }
}

const EXAMPLES: &str = "\
Examples:
  hodo pva record -o run7.parquet TEMPERATURE PRESSURE --for 3600
  hodo pva record -o archive/ --every 3600 --size 500M -f names.txt
  python3 -c 'import pandas; print(pandas.read_parquet(\"run7.parquet\"))'

Each update is a row, and so is each connection that is made or lost. A file is complete after each time that it
was added to. If the disk is full, updates wait and are merged, which the column overrun says, until there is
room. Ctrl-C ends the recording in order.

Exit status: 0 success; 1 a PV sent nothing, or rows were lost, and the message says which; 2 usage error.";
