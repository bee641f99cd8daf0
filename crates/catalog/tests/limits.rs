//! Tests of the bound that limits a measurement over a line.
use crate::plans;

use hodo_catalog::{Line, Opened, limit, protocols};
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

    fn limit(&self, line_rate: f64) -> Limit {
        let (uri, line) = (&self.served.uri, Line { rate: Some(line_rate), mtu: 1500 });
        let wire = uri.protocol.on_the_wire(uri, &self.plan).expect("a plan of this protocol");
        limit(&wire, &self.opened, line, None, None, &self.found).expect("a line has a limit")
    }
}

#[test]
fn the_line_is_the_bound_whatever_bare_sockets_cost() {
    let case = Case::of(&Plan { window: 16, ..plan(Test::Rate, Mode::Send, 1448) });
    for line_rate in [1e9, 1e11] {
        let limit = case.limit(line_rate);
        assert_eq!(limit.kind, LimitKind::Line);
        assert!(limit.formula.starts_with("line: ") && !limit.formula.contains("cpu"), "{}", limit.formula);
    }
    assert_ne!(case.limit(1e11).binds, Binding::Cpu, "no processor was full");
}

#[test]
fn one_operation_at_a_time_is_not_bound_by_a_core() {
    for test in [Test::Latency, Test::Rate] {
        let limit = Case::of(&plan(test, Mode::Both, 64)).limit(1e9);
        assert_ne!(limit.binds, Binding::Cpu);
        assert!(!limit.formula.contains("cpu"), "{}", limit.formula);
    }
}
