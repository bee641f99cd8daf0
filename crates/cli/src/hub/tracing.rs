use crate::{Error, args};
use hodo_io::{Trace, TraceCounters, TraceOptions};
use std::sync::Arc;

/// The trace of a hub's packets, where one is wanted.
pub fn start(serve: &args::HubServe) -> Result<Option<Arc<Trace>>, Error> {
    let Some(file) = &serve.trace else { return Ok(None) };
    let size_max = serve.trace_size;
    if size_max < TraceOptions::SIZE_MIN {
        let least = TraceOptions::SIZE_MIN >> 20;
        return Err(Error::Usage(format!("--trace-size {size_max}: a trace takes {least}M at least")));
    }
    let options = TraceOptions { file: file.clone(), size_max, paused: serve.trace_paused };
    let trace = Trace::start(&options)
        .map_err(|why| Error::Usage(format!("--trace {}: this file cannot be written: {why}", file.display())))?;
    Ok(Some(Arc::new(trace)))
}

/// What a hub says of its trace, and in it.
pub struct Tracing {
    trace: Option<Arc<Trace>>,
    lost_is_told: bool,
    failure_is_told: bool,
}

impl Tracing {
    pub fn new(trace: Option<Arc<Trace>>) -> Self {
        Tracing { trace, lost_is_told: false, failure_is_told: false }
    }

    /// A remark on the next packet.
    pub fn note(&self, remark: &str) {
        if let Some(trace) = &self.trace {
            trace.note(remark);
        }
    }

    pub fn counters(&self) -> Option<TraceCounters> {
        self.trace.as_ref().map(|trace| trace.counters())
    }

    /// Pauses or goes on where that is asked for. Answers what there is to be told.
    pub fn look_in(&mut self, is_switched: bool) -> Option<String> {
        if is_switched {
            return Some(match &self.trace {
                None => "SIGUSR1 pauses a trace: there is none without --trace".to_owned(),
                Some(trace) if trace.switch() => "the trace goes on".to_owned(),
                Some(_) => "the trace is paused".to_owned(),
            });
        }
        let TraceCounters { lost, failed, .. } = self.counters()?;
        if let Some(why) = failed.filter(|_| !std::mem::replace(&mut self.failure_is_told, true)) {
            return Some(format!("the trace has ended: {why}"));
        }
        (lost > 0 && !std::mem::replace(&mut self.lost_is_told, true))
            .then(|| "the trace cannot keep up: packets are missing in it, which /stats counts".to_owned())
    }
}
