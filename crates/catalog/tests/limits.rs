//! Tests of the bound that limits a measurement over a line.
mod plans;

use hodo_catalog::{Opened, limit, protocols};
use hodo_measure::limits::Baseline;
use hodo_measure::{Binding, Limit, LimitKind, Measurement, Mode, Plan, Test, Unwatched, run};
use plans::served::{Served, serve_settings};
use plans::{opened, plan};

/// An open link and a measurement over it, for which only the line is made up.
struct Case {
    served: Served,
    opened: Opened,
    found: Measurement,
    plan: Plan,
}

impl Case {
    fn of(plan: &Plan) -> Case {
        let tcp = protocols().find(|protocol| protocol.name() == "tcp").expect("it is in the catalog");
        let served = Served::start(tcp, &serve_settings());
        let mut opened = opened(&served.uri, plan);
        let found = run(&mut opened.links, plan, &Unwatched).into_measurement("tcp", "tcp://", plan);
        Case { served, opened, found, plan: plan.clone() }
    }

    fn limit(&self, line_rate: f64, cost_ns: Option<f64>) -> Limit {
        let baseline =
            Baseline { operations_per_s: 1.0, latency_ns: None, cost_ns, spread: 0.0, shape: "made up".into() };
        let (uri, line) = (&self.served.uri, Some((line_rate, 1500)));
        let wire = uri.protocol.on_the_wire(uri, &self.plan).expect("a plan of this protocol");
        limit(&wire, &self.opened, line, Some(&baseline), None, &self.found).expect("a line has a limit")
    }
}

#[test]
fn one_core_binds_where_the_line_is_faster() {
    let case = Case::of(&Plan { window: 16, ..plan(Test::Rate, Mode::Send, 1448) });
    let slow = case.limit(1e9, Some(1_000.0));
    assert_eq!(slow.kind, LimitKind::Line);
    assert!(slow.formula.starts_with("line: "), "{}", slow.formula);
    assert!(slow.formula.ends_with(" <= cpu: 1 core / 1.00 us per operation = 1000000/s"), "{}", slow.formula);
    let fast = case.limit(1e11, Some(1_000.0));
    assert_eq!((fast.kind, fast.operations_per_s), (LimitKind::Line, Some(1e6)));
    assert!(fast.assumes.contains("bare sockets"), "{}", fast.assumes);
    assert_ne!(fast.binds, Binding::Cpu, "nobody has seen a processor full");
    assert!(case.limit(1e11, None).formula.starts_with("line: "));
}

/// Holds because the operation waits for its bits, and each core for the other.
#[test]
fn one_operation_at_a_time_is_not_bound_by_a_core() {
    for test in [Test::Latency, Test::Rate] {
        let limit = Case::of(&plan(test, Mode::Both, 64)).limit(1e9, Some(1e9));
        assert_ne!(limit.binds, Binding::Cpu);
        assert!(!limit.formula.contains("cpu"), "{}", limit.formula);
    }
}
