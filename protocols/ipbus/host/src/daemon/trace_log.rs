use hodo_io::{Trace, TraceCounters};
use std::sync::Arc;

/// The remarks in a hub's trace, and the lines about it in the log.
pub struct TraceLog {
    trace: Option<Arc<Trace>>,
    lost_is_told: bool,
    failure_is_told: bool,
}

impl TraceLog {
    /// Follows a trace, if there is one.
    pub fn new(trace: Option<Arc<Trace>>) -> Self {
        TraceLog { trace, lost_is_told: false, failure_is_told: false }
    }

    /// Adds a remark to the next packet.
    pub fn note(&self, remark: &str) {
        if let Some(trace) = &self.trace {
            trace.note(remark);
        }
    }

    /// Returns the counters of the trace, if there is one.
    pub fn counters(&self) -> Option<TraceCounters> {
        self.trace.as_ref().map(|trace| trace.counters())
    }

    /// Pauses or resumes the trace if that was asked for. Returns a line for the log if there is news.
    pub fn look_in(&mut self, is_switched: bool) -> Option<String> {
        if is_switched {
            return Some(match &self.trace {
                None => "SIGUSR1 pauses a trace, and there is none; start the hub with --trace".to_owned(),
                Some(trace) if trace.switch() => "the trace is resumed".to_owned(),
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
