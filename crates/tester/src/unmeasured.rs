use hodo_measure::{Cpu, Loss, Measurement, Plan, Rate, Run, State, Verdict};

/// Returns a measurement that did not come about: its plan, no figures, and why.
pub fn unmeasured(protocol: &str, link: &str, plan: &Plan, state: State, why: &str) -> Measurement {
    let run = Run {
        operations: 0,
        payload_bytes: 0,
        elapsed_s: 0.0,
        repeats: 0,
        rate: Rate::default(),
        latency: None,
        cpu: Cpu::default(),
        host_s: None,
        shortfall_s: None,
        tcp: None,
        loss: Loss::default(),
        stages: Vec::new(),
        clock_difference: None,
        nodes: Vec::new(),
        verdict: Verdict { state, text: format!("{}: {why}", state.word()) },
        intervals: Vec::new(),
        error: None,
    };
    run.into_measurement(protocol, link, plan)
}
