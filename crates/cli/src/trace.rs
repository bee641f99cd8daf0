//! The trace of a server's packets.

use crate::Error;
use clap::Args;
use hodo_io::{Trace, TraceCounters};
use hodo_measure::units;
use std::path::PathBuf;
use std::sync::Arc;

/// Returns the options of the trace, if one is wanted.
pub fn options(traced: &TraceOptions, paused: bool) -> Result<Option<hodo_io::TraceOptions>, Error> {
    let Some(file) = &traced.trace else { return Ok(None) };
    let size_max = traced.trace_size;
    if size_max < hodo_io::TraceOptions::SIZE_MIN {
        let least = hodo_io::TraceOptions::SIZE_MIN >> 20;
        return Err(Error::Usage(format!("--trace-size {size_max}: a trace takes at least {least}M")));
    }
    Ok(Some(hodo_io::TraceOptions { file: file.clone(), size_max, paused }))
}

/// Starts the trace, if one is wanted.
pub fn start(traced: &TraceOptions) -> Result<Option<Arc<Trace>>, Error> {
    let Some(options) = options(traced, false)? else { return Ok(None) };
    let wrong = |why| Error::Usage(format!("--trace {}: this file cannot be written: {why}", options.file.display()));
    Ok(Some(Arc::new(Trace::start(&options).map_err(wrong)?)))
}

/// Says what is missing in a trace that has ended, if anything is.
pub fn missing(trace: &Trace) -> Option<String> {
    let TraceCounters { lost, failed, .. } = trace.counters();
    let why = failed.map(|why| format!(": {why}")).unwrap_or_default();
    (lost > 0).then(|| format!("{lost} packets are missing in the trace{why}"))
}

/// A trace of the packets of whoever serves.
#[derive(Debug, Clone, Args)]
pub struct TraceOptions {
    /// Record received and sent packets in this file, for Wireshark (pcapng).
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Largest size of the trace in bytes: at half of it FILE is renamed to FILE.1 and a new one begins.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = units::bytes, requires = "trace")]
    pub trace_size: u64,
}
