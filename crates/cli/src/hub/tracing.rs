use hodo_io::{Trace, TraceCounters};
use std::sync::Arc;

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
