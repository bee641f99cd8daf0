use crate::options::{Far, Options};
use crate::simulated::SimulatedLink;
use crate::theory::theory;
use crate::{Pending, Spacewire};
use hodo_machine::Wait;
use hodo_measure::limits::Theory;
use hodo_measure::{Binding, Completion, Link, Mode, Operation, Outcome, Plan, PublishedFigure, Test};
use hodo_spacewire::formula;
use hodo_tester::{Catalog, Protocol, Uri};
use std::time::Duration;

const CATALOG: Catalog = Catalog::new(&[&crate::SPACEWIRE]);

fn uri(text: &str) -> Uri {
    CATALOG.uri(text).unwrap()
}

fn options(text: &str) -> Options {
    Options::of(&uri(text)).unwrap()
}

fn simulated(text: &str, window: usize, size: usize) -> SimulatedLink {
    let options = options(text);
    SimulatedLink::new(options.line.unwrap(), &options.far, options.bit_errors, 1, (window, size)).unwrap()
}

/// Keeps `window` operations of a size under way for a while. Returns those done and lost, and how long the first took.
fn drive(link: &mut SimulatedLink, mode: Mode, window: u64, size: u32, span: Duration) -> (u64, u64, Duration) {
    let (begin, mut tag, mut done, mut first) = (link.now(), 0, Vec::<Completion>::new(), None);
    let (mut finished, mut lost) = (0, 0);
    while link.now() < begin + span {
        while tag - finished - lost < window {
            link.start(Operation { tag, channel: 0, size, mode });
            tag += 1;
        }
        link.poll(Wait::Block, begin + span, &mut done).unwrap();
        if !done.is_empty() {
            first.get_or_insert(Duration::from_nanos(link.now().nanos_since(begin)));
        }
        for completion in done.drain(..) {
            match completion.outcome {
                Outcome::Done => finished += 1,
                Outcome::Lost => lost += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    (finished, lost, first.unwrap())
}

#[test]
fn a_simulated_link_reaches_its_theory() {
    const SPAN: Duration = Duration::from_millis(20);
    for size in [60, 256, 1024] {
        let link = || simulated("spw+sim://", 64, size as usize);
        for (mode, limit) in [
            (Mode::Send, formula::one_way(200e6, u64::from(size))),
            (Mode::Receive, formula::one_way(200e6, u64::from(size))),
            (Mode::Both, formula::both_ways(200e6, u64::from(size))),
        ] {
            let mut link = link();
            drive(&mut link, mode, 64, size, SPAN / 4);
            // The rest of what was under way is done at the beginning of the next.
            let (done, _, _) = drive(&mut link, mode, 64, size, SPAN);
            let rate = (done as f64) * f64::from(size) * 8.0 / SPAN.as_secs_f64();
            // A whole window more or less at either end.
            let slack = 64.0 * f64::from(size) * 8.0 / SPAN.as_secs_f64();
            assert!((rate - limit).abs() <= limit * 1e-3 + slack, "{mode:?} {size}: {rate} of {limit}");
        }
    }
}

/// Returns operations per second over so many of them, from one arrival to another.
fn rate_of(link: &mut SimulatedLink, mode: Mode, size: u32, count: u64) -> f64 {
    const WINDOW: u64 = 64;
    let (mut tag, mut finished, mut done, mut first) = (0, 0, Vec::<Completion>::new(), None);
    loop {
        while tag - finished < WINDOW {
            link.start(Operation { tag, channel: 0, size, mode });
            tag += 1;
        }
        link.poll(Wait::Block, link.now() + Duration::from_millis(1), &mut done).unwrap();
        assert!(done.iter().all(|completion| completion.outcome == Outcome::Done));
        let arrived = done.drain(..).count() as u64;
        finished += arrived;
        match first {
            // The link is full, and routers have their buffers full, behind a few windows.
            None if finished >= 4 * WINDOW => first = Some((finished, link.now())),
            Some((before, at)) if arrived > 0 && finished - before >= count => {
                return (finished - before) as f64 * 1e9 / link.now().nanos_since(at) as f64;
            }
            _ => {}
        }
    }
}

/// Returns the least bound of a rate.
fn per_s(theory: &Theory) -> f64 {
    theory.bounds.iter().map(|bound| bound.operations_per_s).fold(f64::INFINITY, f64::min)
}

fn share_of_theory(text: &str, mode: Mode, size: u32, count: u64) -> f64 {
    let limit = theory(&options(text).line.unwrap(), &options(text), &Plan::one(mode, size), true);
    rate_of(&mut simulated(text, 64, size as usize), mode, size, count) / per_s(&limit)
}

#[test]
fn packets_through_routers_are_as_many_as_the_theory_says() {
    for (rate, routers) in [("200M", 1), ("200M", 2), ("200M", 3), ("66M", 1), ("66M", 3)] {
        let text = format!("spw+sim://?rate={rate}&routers={routers}");
        for mode in [Mode::Send, Mode::Receive, Mode::Both] {
            let share = share_of_theory(&text, mode, 60, 500);
            assert!((share - 1.0).abs() <= 1e-3, "{text} {mode}: {share}");
        }
    }
}

#[test]
fn long_cables_leave_what_credit_allows() {
    let binds = |text: &str, mode, size| {
        let found = theory(&options(text).line.unwrap(), &options(text), &Plan::one(mode, size), true);
        found.bounds.iter().min_by(|a, b| a.operations_per_s.total_cmp(&b.operations_per_s)).unwrap().binds
    };
    // Up to 2.35 us of loop the line is the limit: 230 m at 200 Mbit/s.
    for (rate, cable, bound) in [
        ("200M", 230, Binding::Line),
        ("200M", 250, Binding::Window),
        ("200M", 300, Binding::Window),
        ("200M", 1000, Binding::Window),
        ("400M", 110, Binding::Line),
        ("400M", 200, Binding::Window),
        ("400M", 700, Binding::Window),
        ("100M", 450, Binding::Line),
        ("100M", 700, Binding::Window),
        ("37M", 1000, Binding::Line),
    ] {
        let text = format!("spw+sim://?rate={rate}&cable={cable}");
        for (mode, size) in
            [(Mode::Send, 60), (Mode::Send, 1024), (Mode::Receive, 1024), (Mode::Both, 60), (Mode::Both, 1024)]
        {
            let share = share_of_theory(&text, mode, size, 800);
            assert!((share - 1.0).abs() <= 5e-3, "{text} {mode} {size}: {share}");
            assert_eq!(binds(&text, mode, size), bound, "{text} {mode} {size}");
        }
    }
    // Routers have packets wait for credit one behind the other, which the bound leaves out.
    for text in ["spw+sim://?cable=1000&far=rmap", "spw+sim://?cable=500&routers=1", "spw+sim://?cable=1000&routers=2"]
    {
        let share = share_of_theory(text, Mode::Send, 1024, 800);
        assert!((0.9..=1.005).contains(&share), "{text}: {share}");
    }
}

#[test]
fn reads_and_writes_are_as_many_as_the_theory_says() {
    for (rate, routers) in [("200M", 0), ("200M", 1), ("200M", 2), ("200M", 3), ("66M", 2)] {
        let text = format!("spw+sim://?far=rmap&rate={rate}&routers={routers}");
        for mode in [Mode::Send, Mode::Receive] {
            let share = share_of_theory(&text, mode, 60, 500);
            assert!((share - 1.0).abs() <= 1e-3, "{text} {mode}: {share}");
        }
    }
}

#[test]
fn time_codes_cost_the_way_out_and_nothing_the_way_back() {
    for (text, mode) in [
        ("spw+sim://?time-codes=20000&routers=1", Mode::Send),
        ("spw+sim://?time-codes=20000&routers=2", Mode::Receive),
        ("spw+sim://?time-codes=20000&routers=3", Mode::Both),
        ("spw+sim://?time-codes=20000&routers=1&far=rmap", Mode::Send),
        ("spw+sim://?time-codes=20000&routers=1&far=rmap", Mode::Receive),
    ] {
        let share = share_of_theory(text, mode, 60, 2000);
        assert!((share - 1.0).abs() <= 1e-3, "{text} {mode}: {share}");
    }
}

/// Both ways at 100 and 400 Mbit/s an FCT may spare a NULL, which depends on the phases of the two directions.
#[test]
fn phases_of_two_directions_are_a_small_part_of_a_packet() {
    for rate in ["100M", "400M"] {
        let share = share_of_theory(&format!("spw+sim://?rate={rate}&routers=2"), Mode::Both, 60, 500);
        assert!((share - 1.0).abs() <= 3e-3, "{rate}: {share}");
    }
}

#[test]
fn a_lone_read_takes_the_time_of_its_two_packets() {
    for (text, size) in
        [("spw+sim://?far=rmap", 4), ("spw+sim://?far=rmap", 4096), ("spw+sim://?far=rmap&routers=1", 60)]
    {
        let limit = theory(&options(text).line.unwrap(), &options(text), &Plan::one(Mode::Receive, size), true);
        let mut link = simulated(text, 1, 4096);
        let (_, _, first) = drive(&mut link, Mode::Receive, 1, size, Duration::from_micros(500));
        let late_ns = first.as_nanos() as f64 - limit.latency_ns;
        assert!((-1.0..=200.0).contains(&late_ns), "{text} {size}: {late_ns} ns late");
    }
}

#[test]
fn a_lone_packet_takes_the_time_of_its_bits() {
    for (text, size, ns) in [("spw+sim://", 8, 420), ("spw+sim://?cable=100", 8, 920), ("spw+sim://?rate=10M", 1, 1400)]
    {
        let mut link = simulated(text, 1, 1024);
        let (_, _, first) = drive(&mut link, Mode::Send, 1, size, Duration::from_micros(50));
        // It waits for the end of the NULL that is on the line.
        let null = 8e9 / options(text).line.unwrap().rate_bps;
        let late = first.as_nanos() as f64 - f64::from(ns);
        assert!((-1.0..=null + 1.0).contains(&late), "{text}: {first:?}");
    }
}

#[test]
fn packets_that_errors_cut_are_lost_and_the_others_are_not() {
    let mut link = simulated("spw+sim://?errors=1e-6", 16, 64);
    let (done, lost, _) = drive(&mut link, Mode::Send, 16, 64, Duration::from_millis(200));
    assert!(lost > 10 && done > 20 * lost, "{done} done, {lost} lost");
}

#[test]
fn the_theory_is_that_of_the_formulas() {
    let plan = |mode, size| Plan::one(mode, size);
    let of = |text: &str, mode, size| {
        theory(&options(text).line.unwrap(), &options(text), &plan(mode, size), uri(text).simulated)
    };
    let bits = |rate: f64, size: u32| rate * f64::from(size) * 8.0;
    for size in [1, 60, 1024] {
        let one = of("ssdtp2://?back=1&rate=200M", Mode::Send, size);
        assert!((bits(per_s(&one), size) - formula::one_way(200e6, u64::from(size))).abs() < 1.0);
        let both = of("spw+sim://", Mode::Both, size);
        assert!((bits(per_s(&both), size) - formula::both_ways(200e6, u64::from(size))).abs() < 1.0);
        assert!(both.is_model && !one.is_model);
    }
    let loaded = formula::Load { reverse_nchars_per_s: 0.0, time_codes_per_s: 1e6 };
    let with = of("spw+sim://?time-codes=1000000", Mode::Send, 60);
    assert!((bits(per_s(&with), 60) - formula::loaded(200e6, 60, loaded)).abs() < 1.0);
    // Behind a router, three NULLs between packets: 84, 94 and 104 bits of a packet with 0, 1 and 2 bytes of path.
    for (routers, mode, expected) in
        [(1, Mode::Send, 84.0 + 24.0), (2, Mode::Send, 94.0 + 24.0), (1, Mode::Both, 84.0 + 24.0 + 5.0)]
    {
        let routed = of(&format!("spw+sim://?routers={routers}"), mode, 8);
        assert!((200e6 / per_s(&routed) - expected).abs() < 1e-6, "{routers} {mode}: {expected}");
    }
    let routed = of("spw+sim://?routers=2&cable=3", Mode::Send, 60);
    let expected = formula::latency_through(200e6, 60, 9.0, 2, &formula::CutThrough::SPW_10X);
    // Two bits confirm a packet.
    assert!((routed.latency_ns - expected * 1e9 - 10.0).abs() < 0.1, "{} {expected}", routed.latency_ns);
    let read = of("ssdtp2://?far=rmap&rate=200M", Mode::Receive, 4);
    assert!((per_s(&read) - formula::Transaction::read(4).pipelined(200e6)).abs() < 1.0);
}

#[test]
fn operations_end_in_their_order_and_gaps_are_lost() {
    let mut pending = Pending::default();
    let numbers: Vec<u32> = (10..15).map(|tag| pending.push(tag)).collect();
    assert_eq!(pending.take(Some(numbers[0]), |_| panic!("none is lost")), Some(10));
    let mut lost = Vec::new();
    assert_eq!(pending.take(Some(numbers[3]), |tag| lost.push(tag)), Some(13));
    assert_eq!(lost, [11, 12]);
    assert_eq!(pending.take(Some(numbers[1]), |_| panic!("it was given up before")), None);
    assert_eq!(pending.take(None, |_| panic!("without a number there are no gaps")), Some(14));
    assert_eq!(pending.take(None, |_| {}), None);
}

#[test]
fn options_are_understood_or_refused() {
    assert_eq!(options("ssdtp2://h").far, Far::Served);
    assert_eq!(options("ssdtp2://h?back=10031&path=2,4&back-path=1").path, [2, 4]);
    let Far::Rmap(target) = options("gresb://h?far=rmap&path=4&back-path=1&key=0x20&address=0x1000").far else {
        panic!()
    };
    assert_eq!((target.to.key, target.address, target.to.reply_address.path()), (0x20, 0x1000, &[1][..]));
    for (text, told) in [
        ("ssdtp2://h?far=none", "far=echo or far=rmap"),
        ("ssdtp2://h?far=echo&back=1", "exclude each other"),
        ("ssdtp2://h?back=99999", "back=99999: a port is 1 to 65535; write back=10031"),
        ("ssdtp2://h?back=0", "a port is 1 to 65535"),
        ("ssdtp2://h?back=h:0", "a port is 1 to 65535"),
        ("ssdtp2://h?back=", "a port is 1 to 65535"),
        ("ssdtp2://h?path=40", "0 to 31"),
        ("ssdtp2://h?routers=1", "rate=200M"),
        ("ssdtp2://h?time-codes=5", "rate=200M"),
        ("ssdtp2://h?rate=200M&time-codes=1e9", "write 0.001 to 7142857 per second"),
        ("spw+sim://?time-codes=1e9", "write 0.001 to 7142857 per second"),
        ("spw+sim://?time-codes=1e-300", "write 0.001 to 7142857 per second"),
        ("ssdtp2://h?rate=200T&time-codes=1e9", "at most rate=10G"),
        ("spw+sim://?rate=1T", "at most rate=10G"),
        ("ssdtp2://h?rate=200M&cable=1e99", "cable=1e99: write the length of a cable in metres, 0 to 1000"),
        ("ssdtp2://h?key=1", "far=rmap"),
        ("ssdtp2://h?errors=1e-9", "`errors` is no option"),
        ("spw+sim://?errors=0.5", "less than 0.1"),
        ("spw+sim://?path=1", "leave back, path"),
        ("spw+sim://?far=echo", "unless it is far=rmap"),
        ("spw+sim://?routers=13", "0 to 12"),
        ("spw+sim://?pages=127.0.0.1:9209", "`pages` is no option"),
        ("spw+sim://?speed=1", "`speed` is no option"),
        ("ssdtp2://h?back=1&rate=200M&back=2", "the option `back` is there twice"),
    ] {
        let error = Options::of(&uri(text)).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn as_many_time_codes_as_are_accepted_leave_room_for_packets() {
    let text = "spw+sim://?time-codes=7142857";
    for mode in [Mode::Send, Mode::Receive, Mode::Both] {
        let share = share_of_theory(text, mode, 60, 500);
        assert!((0.9..=1.001).contains(&share), "{mode}: {share}");
    }
}

#[test]
fn what_a_link_cannot_do_is_told_before_it_is_opened() {
    let plan = Plan::one(Mode::Both, 60);
    let told = |text: &str, plan: &Plan| Spacewire.check(&uri(text), plan).unwrap_err().to_string();
    assert!(told("spw+sim://", &Plan { channels: 2, ..plan.clone() }).contains("--channels 2"));
    assert!(told("ssdtp2://h", &Plan::one(Mode::Send, 0)).contains("--sizes"));
    assert!(told("ssdtp2://h?far=rmap", &Plan { window: 65_536, ..plan.clone() }).contains("--window"));
    assert!(Spacewire.check(&uri("ssdtp2://h"), &Plan { channels: 4, ..plan }).is_ok());
}

#[test]
fn the_published_tests_have_the_modes_of_the_far_end() {
    for (text, modes) in
        [("ssdtp2://h?far=echo", &[Mode::Both][..]), ("gresb://h?far=rmap", &[Mode::Receive, Mode::Send])]
    {
        let link = uri(text);
        let presets = Spacewire.presets(&link);
        assert!(presets.iter().all(|preset| preset.name == "star-tester"), "{text}");
        let mut groups = presets.iter().flat_map(|preset| preset.groups);
        assert!(groups.all(|group| modes.contains(&group.mode)), "{text}");
    }
}

#[test]
fn what_the_published_tester_found_stands_beside_the_same_tests() {
    let found = |test, mode, size| {
        let plan = Plan { test, window: if test == Test::Latency { 1 } else { 64 }, ..Plan::one(mode, size) };
        let presets = Spacewire.presets(&uri("spw+sim://"));
        let published = presets.iter().flat_map(|preset| preset.published(&plan));
        published.map(|one| (one.figure, one.remark)).collect::<Vec<_>>()
    };
    let bits = |rate: f64, remark: &str| vec![(PublishedFigure::PayloadBitsPerS(rate), remark.to_owned())];
    assert_eq!(found(Test::Rate, Mode::Send, 1), bits(200e6 * 8.0 / 14.0, "14 bits for a byte alone"));
    assert_eq!(found(Test::Rate, Mode::Receive, 16), bits(160e6, "at most"));
    assert_eq!(found(Test::Rate, Mode::Send, 60), bits(160e6, "close to that from 60 bytes on"));
    let latency = found(Test::Latency, Mode::Send, 60);
    assert_eq!(latency, [(PublishedFigure::LatencyMaxNs(100_000.0), "one way, port to port".to_owned())]);
    assert_eq!(found(Test::Rate, Mode::Both, 60), []);
}

#[test]
fn a_lone_packet_one_way_takes_what_the_theory_says() {
    for (text, size) in [("spw+sim://", 1), ("spw+sim://", 2), ("spw+sim://", 60), ("spw+sim://?cable=3", 1)] {
        for mode in [Mode::Send, Mode::Receive] {
            let limit = theory(&options(text).line.unwrap(), &options(text), &Plan::one(mode, size), true);
            let mut link = simulated(text, 1, 1024);
            let (done, _, _) = drive(&mut link, mode, 1, size, Duration::from_millis(1));
            let each_ns = 1e6 / done as f64;
            assert!((each_ns / limit.latency_ns - 1.0).abs() < 5e-3, "{text} {mode} {size}: {each_ns} ns, {limit:?}");
        }
    }
}
