//! The trace of a server's packets.

use crate::{Error, args};
use hodo_io::{Trace, TraceCounters, TraceOptions};
use std::sync::Arc;

/// Starts the trace, where one is wanted.
pub fn start(traced: &args::Traced, paused: bool) -> Result<Option<Arc<Trace>>, Error> {
    let Some(file) = &traced.trace else { return Ok(None) };
    let size_max = traced.trace_size;
    if size_max < TraceOptions::SIZE_MIN {
        let least = TraceOptions::SIZE_MIN >> 20;
        return Err(Error::Usage(format!("--trace-size {size_max}: a trace takes {least}M at least")));
    }
    let options = TraceOptions { file: file.clone(), size_max, paused };
    let trace = Trace::start(&options)
        .map_err(|why| Error::Usage(format!("--trace {}: this file cannot be written: {why}", file.display())))?;
    Ok(Some(Arc::new(trace)))
}

/// What is missing in a trace that has ended, where anything is.
pub fn missing(trace: &Trace) -> Option<String> {
    let TraceCounters { lost, failed, .. } = trace.counters();
    let why = failed.map(|why| format!(": {why}")).unwrap_or_default();
    (lost > 0).then(|| format!("{lost} packets are missing in the trace{why}"))
}
