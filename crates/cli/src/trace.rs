//! The trace of a server's packets.

use crate::{Error, args};
use hodo_io::{Trace, TraceCounters, TraceOptions};
use std::sync::Arc;

/// Returns the options of the trace, if one is wanted.
pub fn options(traced: &args::Traced, paused: bool) -> Result<Option<TraceOptions>, Error> {
    let Some(file) = &traced.trace else { return Ok(None) };
    let size_max = traced.trace_size;
    if size_max < TraceOptions::SIZE_MIN {
        let least = TraceOptions::SIZE_MIN >> 20;
        return Err(Error::Usage(format!("--trace-size {size_max}: a trace takes {least}M at least")));
    }
    Ok(Some(TraceOptions { file: file.clone(), size_max, paused }))
}

/// Starts the trace, if one is wanted.
pub fn start(traced: &args::Traced) -> Result<Option<Arc<Trace>>, Error> {
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
