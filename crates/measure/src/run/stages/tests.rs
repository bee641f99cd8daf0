use crate::run::fake_link::FakeLink;
use crate::{Mode, Plan, Repeats, Run, Side, Size, Stage, Test, Until, Unwatched, run};
use hodo_machine::Wait;
use std::time::Duration;

const DELAY_NS: u64 = 10_000;
const BUSY_NS: u64 = 1_000;

fn plan(window: u32) -> Plan {
    Plan {
        test: Test::Rate,
        mode: Mode::Both,
        size: Size::Fixed(64),
        window,
        unbounded: false,
        channels: 1,
        batch: 1,
        rounds: false,
        rate: None,
        pace: None,
        until: Until::Count(20_000),
        warmup: Duration::from_millis(1),
        repeats: Repeats::Fixed(2),
        wait: Wait::Block,
        seed: 1,
        stages: true,
        stall: Duration::from_secs(1),
    }
}

fn over(links: Vec<FakeLink>, plan: &Plan) -> Run {
    let mut links: Vec<_> = links.into_iter().map(|link| Box::new(link) as Box<dyn crate::Link + Send>).collect();
    run(&mut links, plan, &Unwatched)
}

fn steady() -> FakeLink {
    FakeLink::steady(DELAY_NS, BUSY_NS).stamping()
}

fn means(stages: &[Stage]) -> Vec<(&str, Side, f64)> {
    stages.iter().map(|stage| (stage.name.as_str(), stage.side, stage.mean_ns)).collect()
}

/// Returns the sums of the mean times and of the shares of this side's stages.
fn local_sums(stages: &[Stage]) -> (f64, f64) {
    let local = stages.iter().filter(|stage| stage.side == Side::Local);
    local.fold((0.0, 0.0), |sum, stage| (sum.0 + stage.mean_ns, sum.1 + stage.share))
}

#[test]
fn stages_are_the_links_own_to_the_nanosecond_and_stand_in_their_order() {
    let found = over(vec![steady().telling()], &plan(1));
    let local = |name, mean| (name, Side::Local, mean);
    let (service, travel) = (BUSY_NS as f64, DELAY_NS as f64);
    assert_eq!(
        means(&found.stages),
        [
            local("queue", 0.0),
            local("service", service),
            local("travel", travel),
            ("service", Side::Remote, service),
            ("network, waking", Side::Remote, travel - service),
            local("completion", 0.0),
        ]
    );
    assert_eq!(found.stages[1].share, service / (service + travel));
    assert_eq!(found.stages[3].share, found.stages[1].share);
    // To the three digits of a histogram, and to the sixteenth that a far end tells.
    assert_eq!((found.stages[1].p50_ns, found.stages[1].p99_ns), (Some(1000), Some(1000)));
    assert!(found.stages[3].p50_ns.expect("it is stamped").abs_diff(1000) <= 1000 / 16);
    assert_eq!((found.stages[4].p50_ns, found.stages[4].p99_ns), (None, None));
    let count = found.latency.expect("twenty thousand operations").count;
    assert!(found.stages.iter().filter(|stage| stage.side == Side::Local).all(|stage| stage.count == count));
    // Only those of the counted time; one more or less may be under way at each end of it.
    assert!(found.stages[3].count.abs_diff(count) <= 2, "{} of {count}", found.stages[3].count);
}

#[test]
fn stages_add_up_to_the_time_of_an_operation_whatever_waits() {
    for window in [1, 2, 7, 64, 1000] {
        let found = over(vec![steady()], &plan(window));
        let latency = found.latency.expect("twenty thousand operations");
        let (mean_ns, whole) = local_sums(&found.stages);
        assert!((mean_ns / latency.mean - 1.0).abs() < 1e-3, "window {window}: {mean_ns} of {}", latency.mean);
        assert!((whole - 1.0).abs() < 1e-9, "window {window}: {whole}");
        assert_eq!(found.stages.last().map(|stage| stage.count), Some(latency.count), "window {window}");
    }
}

#[test]
fn of_many_operations_in_flight_some_are_followed() {
    let found = over(vec![steady()], &plan(5000));
    // 5,000 slots, of which each eighth is followed.
    let (count, all) = (found.stages[0].count, found.latency.expect("operations").count);
    assert!(count.abs_diff(all / 8) <= all / 100, "{count} of {all}");
    let (_, whole) = local_sums(&found.stages);
    assert!((whole - 1.0).abs() < 1e-9, "{whole}");
}

#[test]
fn what_is_lost_has_no_stages() {
    let found = over(vec![FakeLink::lossy(DELAY_NS, BUSY_NS, 0.1, 3).stamping()], &plan(10));
    let count = found.latency.expect("most are not lost").count;
    assert!(count < 40_000 && found.stages.iter().all(|stage| stage.count == count), "{:?}", found.stages);
    assert_eq!(found.stages[1].mean_ns, BUSY_NS as f64);
}

#[test]
fn stages_of_several_links_are_one_list() {
    let slower = FakeLink::steady(3 * DELAY_NS, BUSY_NS).stamping();
    let two = Plan { channels: 2, ..plan(1) };
    let found = over(vec![steady().telling(), slower.telling()], &two);
    let names: Vec<&str> = found.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["queue", "service", "travel", "service", "network, waking", "completion"]);
    // Each link does half of the operations.
    assert_eq!((found.stages[1].mean_ns, found.stages[2].mean_ns), (1000.0, 20_000.0));
}

#[test]
fn the_far_end_is_within_the_stage_that_the_link_names() {
    let mut link = steady().telling();
    link.around = Some("service");
    let found = over(vec![link], &plan(1));
    let names: Vec<&str> = found.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["queue", "service", "service", "network, waking", "travel", "completion"]);
    assert_eq!((found.stages[2].side, found.stages[3].mean_ns), (Side::Remote, 0.0));
}

#[test]
fn a_stage_shorter_than_what_is_within_it_is_joined_to_the_one_before() {
    let stage = |name: &str, side, mean_ns: f64| Stage {
        name: name.into(),
        side,
        count: 10,
        mean_ns,
        p50_ns: Some(mean_ns as u64),
        p99_ns: Some(mean_ns as u64),
        share: mean_ns / 100.0,
    };
    let mut stages = vec![stage("send", Side::Local, 90.0), stage("wire", Side::Local, 5.0)];
    super::add_far_end(&mut stages, vec![stage("work", Side::Remote, 60.0)]);
    assert_eq!(
        means(&stages),
        [("send, wire", Side::Local, 95.0), ("work", Side::Remote, 60.0), ("network, waking", Side::Remote, 35.0)]
    );
    assert!(stages[0].p50_ns.is_none() && (stages[0].share - 0.95).abs() < 1e-9);
    // Where even both are too short, the far end counted others: nothing is said of what is left.
    let mut stages = vec![stage("send", Side::Local, 9.0), stage("wire", Side::Local, 5.0)];
    super::add_far_end(&mut stages, vec![stage("work", Side::Remote, 60.0)]);
    assert_eq!(means(&stages), [("send, wire", Side::Local, 14.0), ("work", Side::Remote, 60.0)]);
}

#[test]
fn nothing_is_stamped_unless_asked_for_and_where_a_link_cannot() {
    let found = over(vec![steady().telling()], &Plan { stages: false, ..plan(1) });
    assert_eq!(found.stages, []);
    let found = over(vec![FakeLink::steady(DELAY_NS, BUSY_NS)], &plan(1));
    assert_eq!(found.stages, []);
}
