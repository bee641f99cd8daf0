//! Where a run takes place: facts of the host and the interface, as the document has them.

use hodo_io::host::{self, HostFacts};
use hodo_io::nic::Nic;
use hodo_io::scheduling;
use hodo_measure::{Clock, Environment, FarEndFacts};

/// Returns the part of the environment that is known before a link is open.
pub fn of_host(arguments: Vec<String>) -> Environment {
    let facts = HostFacts::collect();
    Environment {
        host: facts.host,
        kernel: facts.kernel,
        cpu: facts.cpu,
        cores: facts.cores,
        memory_bytes: facts.memory_bytes,
        congestion_control: facts.congestion_control,
        mtu: None,
        nic: None,
        placement: None,
        scheduling: scheduling::class(),
        clock: facts.clock_source.map(|source| Clock { source, cost_ns: host::clock_cost_ns() }),
        hypervisor: facts.hypervisor,
        governor: facts.governor,
        started: Some(host::utc_now()),
        arguments,
        far_end: None,
    }
}

/// Adds where the two sides ran, beside what other steps have noted.
pub fn add_placement(environment: &mut Environment, text: &str) {
    add(&mut environment.placement, Some(text.to_owned()));
}

/// Adds the far end's report of its side, beside what other steps have noted.
pub fn add_far_end(environment: &mut Environment, facts: FarEndFacts) {
    let known = environment.far_end.get_or_insert_default();
    add(&mut known.wait, facts.wait);
    add(&mut known.placement, facts.placement);
    add(&mut known.scheduling, facts.scheduling);
    add(&mut known.kernel, facts.kernel);
    add(&mut known.congestion_control, facts.congestion_control);
    known.line_bits_per_s = facts.line_bits_per_s.or(known.line_bits_per_s);
}

/// Adds a fact to those of other steps, once.
fn add(known: &mut Option<String>, fact: Option<String>) {
    match (known, fact) {
        (_, None) => {}
        (known @ None, fact) => *known = fact,
        (Some(known), Some(fact)) if known.split("; ").any(|part| part == fact) => {}
        (Some(known), Some(fact)) => known.push_str(&format!("; {fact}")),
    }
}

/// Sets the interface that the link leaves by.
pub fn set_interface(environment: &mut Environment, facts: Nic) {
    environment.mtu = facts.mtu;
    environment.nic = Some(facts);
}

/// Returns the clock in a few words, for people.
pub fn clock_text(environment: &Environment) -> String {
    match &environment.clock {
        Some(clock) => format!("clock {} at {:.0} ns a reading", clock.source, clock.cost_ns),
        None => "clock unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_each_placement_once() {
        let mut environment = Environment::default();
        for text in ["here cpu 0", "here cpu 0,1", "here cpu 0"] {
            add_placement(&mut environment, text);
        }
        assert_eq!(environment.placement.as_deref(), Some("here cpu 0; here cpu 0,1"));
    }

    #[test]
    fn the_far_ends_of_several_steps_stand_side_by_side() {
        let mut environment = Environment::default();
        let facts = |placement: &str| FarEndFacts {
            placement: Some(placement.into()),
            kernel: Some("6.1".into()),
            ..FarEndFacts::default()
        };
        for placement in ["cpu 1", "cpu 0,1", "cpu 1"] {
            add_far_end(&mut environment, facts(placement));
        }
        assert_eq!(environment.far_end, Some(facts("cpu 1; cpu 0,1")));
    }
}
