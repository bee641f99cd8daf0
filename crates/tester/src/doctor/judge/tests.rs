use super::judge;
use crate::doctor::{
    Basis, Facts, FarProcess, InterfaceFacts, Kind, Operations, PathFacts, Report, TcpRates, Topic, Watched,
};
use hodo_io::host::{Busy, HostFacts, Idle, IdleState, SocketLimits, Softnet, Throttling};
use hodo_io::nic::{Interrupt, Nic, NicCounters, QueueDiscipline, QueueLimit, ReceiveQueues, Rings};
use hodo_io::probe::{Occupancy, PacketCost, WakeUp};
use hodo_io::{PathProbe, Route, TcpPath};
use hodo_measure::limits::Carrier;
use std::time::Duration;

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Returns a card of 10 Gbit/s at its defaults.
fn interface() -> InterfaceFacts {
    let interrupt = |number: u32| Interrupt {
        number,
        name: format!("eth0-TxRx-{number}"),
        allowed: vec![0, 1, 2, 3],
        ..Interrupt::default()
    };
    let on = ["rx-checksumming", "tx-checksumming", "scatter-gather", "tcp-segmentation-offload"];
    let on = on.into_iter().chain(["generic-segmentation-offload", "generic-receive-offload"]);
    InterfaceFacts {
        nic: Nic {
            name: "eth0".into(),
            mtu: Some(1500),
            driver: Some("ixgbe".into()),
            speed_mbit_per_s: Some(10_000),
            rx_usecs: Some(1),
            rx_adaptive: Some(false),
            offloads: on.map(String::from).collect(),
            ..Nic::default()
        },
        rings: Some(Rings { rx: 512, rx_max: 4096, tx: 512, tx_max: 4096 }),
        queues: Some(ReceiveQueues { count: 4, max: 63, has_packet_steering: Some(false) }),
        interrupts: vec![interrupt(40), interrupt(41)],
        dormant: vec!["tx-nocache-copy".into(), "rx-gro-list".into()],
        counters: Some((NicCounters { rx_packets: 1_000_000, ..NicCounters::default() }, NicCounters::default())),
        disciplines: vec![QueueDiscipline {
            kind: "fq".into(),
            is_root: true,
            sent_packets: 1_000_000,
            ..QueueDiscipline::default()
        }],
        dropped_now: 0,
    }
}

/// Returns a path through one router, over which everything passes.
fn path() -> PathFacts {
    let probe = PathProbe { passed: Some(1500), lost: None, round_trip: Some(us(50)) };
    PathFacts {
        remote: "10.0.1.2:4242".parse().expect("an address"),
        route: Route { interface: "eth0".into(), gateway: Some([10, 0, 0, 1].into()), mtu: None, is_local: false },
        carrier: Some(Carrier::Tcp),
        probe: Ok(probe),
        tcp: Some(Ok(TcpPath { round_trip: us(60), segment: 1448, mtu: 1500 })),
        operations: Some(Ok(Operations { small: us(80), large_bytes: 1300, large: Some(us(90)) })),
        known_mtu: None,
        far_process: None,
    }
}

/// Returns a host of four processors in which nothing costs.
fn facts() -> Facts {
    let occupied = |cpu| Occupancy { cpu, share: 0.99, longest_pause: us(300) };
    Facts {
        host: HostFacts {
            congestion_control: Some("cubic".into()),
            congestion_controls: vec!["reno".into(), "cubic".into(), "bbr".into()],
            clock_source: Some("tsc".into()),
            clock_sources: vec!["tsc".into(), "hpet".into(), "acpi_pm".into()],
            ..HostFacts::default()
        },
        online: vec![0, 1, 2, 3],
        allowed: vec![0, 1, 2, 3],
        idle: Idle { driver: Some("intel_idle".into()), ..Idle::default() },
        slow_start: None,
        clock_cost_ns: 25.0,
        watched: Watched {
            span_s: 0.7,
            others: Some(0.02),
            busiest: Vec::new(),
            pressure: Some(0.001),
            stolen: Some(0.0),
            throttling: Some(Throttling::default()),
            softnet: Some((Softnet { processed: 1_000_000, ..Softnet::default() }, Softnet::default())),
        },
        wake_up: Some(WakeUp { sleeping: us(8), polling: us(4) }),
        occupancy: (0..4).map(occupied).collect(),
        packets: Some(PacketCost { one_by_one: us(220), as_one: us(11) }),
        tcp: TcpRates { system: Some(4e10), large_buffers: Some(4e10), other_control: None, one_processor: None },
        limits: SocketLimits {
            tcp_receive: Some(6 << 20),
            tcp_send: Some(4 << 20),
            receive: Some(212_992),
            send: Some(212_992),
        },
        probes_mtu: Some(false),
        interfaces: vec![interface()],
        path: Some(path()),
    }
}

/// Judges the facts after a change.
fn with(change: impl FnOnce(&mut Facts)) -> Report {
    let mut facts = facts();
    change(&mut facts);
    judge(&facts)
}

/// Checks that the first finding is a fault of this subject, whose evidence and remedy hold these words; returns its share.
fn first(report: &Report, topic: Topic, words: &[&str]) -> f64 {
    let Some((found, _, finding)) = report.findings.first() else { panic!("no finding: {report:?}") };
    assert_eq!((*found, finding.kind), (topic, Kind::Fault), "{report:#?}");
    for word in words {
        assert!([&finding.evidence, &finding.remedy].iter().any(|text| text.contains(word)), "{word}: {finding:#?}");
    }
    finding.price.share()
}

#[test]
fn nothing_is_found_where_nothing_costs() {
    let report = judge(&facts());
    assert!(report.findings.is_empty() && report.unknown.is_empty(), "{report:#?}");
    let without_path = with(|facts| facts.path = None);
    assert!(without_path.findings.is_empty() && without_path.unknown.is_empty(), "{without_path:#?}");
}

#[test]
fn a_path_that_takes_less_costs_packets() {
    let smaller = |passed, known| {
        with(|facts| {
            let path = facts.path.as_mut().expect("there is one");
            path.probe = Ok(PathProbe { passed: Some(passed), lost: Some(passed + 1), round_trip: Some(us(50)) });
            path.known_mtu = known;
        })
    };
    let share = first(&smaller(1400, Some(1400)), Topic::PathMtu, &["1401 B do not pass", "tracepath -n 10.0.1.2"]);
    assert!((share - 0.069).abs() < 0.001, "{share}");
    assert!(smaller(1492, Some(1492)).findings.is_empty(), "PPPoE costs next to nothing");
}

#[test]
fn a_path_that_loses_large_packets_costs_all_of_them() {
    let hole = |carrier, segment| {
        with(|facts| {
            let path = facts.path.as_mut().expect("there is one");
            path.probe = Ok(PathProbe { passed: Some(1400), lost: Some(1401), round_trip: Some(us(50)) });
            path.carrier = Some(carrier);
            path.tcp = Some(Ok(TcpPath { round_trip: us(60), segment, mtu: 1500 }));
        })
    };
    let remedy = "ip route replace 10.0.1.2 via 10.0.0.1 dev eth0 mtu 1400";
    assert_eq!(first(&hole(Carrier::Tcp, 1448), Topic::PathMtu, &["1401 B and more are lost", remedy]), 1.0);
    assert_eq!(first(&hole(Carrier::Udp, 1348), Topic::PathMtu, &[]), 1.0);
    // Both ends of TCP know better.
    assert!(first(&hole(Carrier::Tcp, 1348), Topic::PathMtu, &["TCP agreed on packets of 1400 B"]) < 0.1);
}

#[test]
fn where_no_echo_comes_back_operations_say_what_passes() {
    let silent = |large, probe: Result<PathProbe, String>| {
        with(|facts| {
            let path = facts.path.as_mut().expect("there is one");
            path.probe = probe;
            path.operations = Some(Ok(Operations { small: us(80), large_bytes: 1300, large }));
        })
    };
    assert_eq!(
        first(&silent(None, Ok(PathProbe::default())), Topic::PathMtu, &["none of 1300 B", "tcp_mtu_probing=1"]),
        1.0
    );
    assert!(silent(Some(us(90)), Err("not permitted".into())).findings.is_empty());
    let unknown = with(|facts| {
        let path = facts.path.as_mut().expect("there is one");
        (path.probe, path.operations, path.tcp) = (Err("not permitted".into()), None, None);
    });
    assert_eq!(unknown.unknown.iter().map(|(topic, ..)| *topic).collect::<Vec<_>>(), [Topic::PathMtu]);
}

#[test]
fn offloads_that_could_be_on_are_named() {
    let off = |names: &[&str], features: &[&str], driver: &str| {
        with(|facts| {
            let interface = &mut facts.interfaces[0];
            interface.nic.offloads.retain(|on| !names.contains(&on.as_str()));
            interface.dormant.extend(features.iter().map(|name| (*name).to_owned()));
            interface.nic.driver = Some(driver.to_owned());
        })
    };
    let segmentation = ["tcp-segmentation-offload", "generic-segmentation-offload"];
    let report = off(&segmentation, &["tx-tcp-segmentation", "tx-generic-segmentation"], "ixgbe");
    assert!((first(&report, Topic::Offloads, &["ethtool -K eth0 tso on gso on"]) - 0.95).abs() < 0.001);
    assert!(off(&segmentation[..1], &[], "old").findings.is_empty(), "a driver that has none");
    let receive = ["generic-receive-offload"];
    assert!(off(&receive, &["rx-gro"], "veth").findings.is_empty(), "its default");
    first(&off(&receive, &["rx-gro"], "ixgbe"), Topic::Offloads, &["gro on"]);
}

#[test]
fn small_socket_limits_are_measured_or_derived() {
    let limited = |receive, send, system| {
        with(|facts| {
            (facts.limits.tcp_receive, facts.limits.tcp_send) = (Some(receive), Some(send));
            facts.tcp.system = Some(system);
        })
    };
    // 32 KiB each 80 us are 3.3 of 10 Gbit/s.
    let share =
        first(&limited(65_536, 65_536, 4e10), Topic::SocketLimits, &["window of about 32 KiB", "tcp_rmem='4096"]);
    assert!((share - 0.672).abs() < 0.01, "{share}");
    let share = first(&limited(8192, 8192, 1e8), Topic::SocketLimits, &[]);
    assert!((share - 0.9975).abs() < 0.001, "{share}");
    let requested = with(|facts| facts.limits.receive = Some(53_248));
    assert!((first(&requested, Topic::SocketLimits, &["net.core.rmem_max"]) - 0.75).abs() < 1e-9);
}

#[test]
fn long_paths_need_large_buffers() {
    let long = |micros, line| {
        with(|facts| {
            let path = facts.path.as_mut().expect("there is one");
            path.probe = Ok(PathProbe { passed: Some(1500), lost: None, round_trip: Some(us(micros)) });
            path.operations = Some(Ok(Operations { small: us(micros), large_bytes: 1300, large: Some(us(micros)) }));
            facts.interfaces[0].nic.speed_mbit_per_s = line;
        })
    };
    let report = long(20_000, Some(10_000));
    // 3 MiB each 20 ms are 1.3 of 10 Gbit/s.
    assert!((first(&report, Topic::SocketLimits, &["3 MiB"]) - 0.874).abs() < 0.01);
    // Whether the kernel's own limits bind on a line of unknown rate is not known.
    let unknown = long(100_000, None);
    assert_eq!(
        unknown.findings.first().map(|(topic, _, found)| (*topic, found.kind)),
        Some((Topic::SocketLimits, Kind::Cost))
    );
}

#[test]
fn a_congestion_control_that_does_not_fit_is_a_fault_and_a_slow_one_a_cost() {
    let reno = with(|facts| facts.host.congestion_control = Some("reno".into()));
    first(&reno, Topic::CongestionControl, &["one packet each round-trip", "tcp_congestion_control=cubic"]);
    let bbr = |rate| {
        with(|facts| {
            facts.host.congestion_control = Some("bbr".into());
            facts.tcp.other_control = Some(("cubic".into(), rate));
        })
    };
    let report = bbr(8e10);
    let (topic, _, finding) = &report.findings[0];
    assert_eq!((*topic, finding.kind, finding.price.basis), (Topic::CongestionControl, Kind::Cost, Basis::Measured));
    assert!((finding.price.share() - 0.5).abs() < 1e-9);
    assert!(bbr(4.2e10).findings.is_empty());
    let datagrams = with(|facts| {
        facts.host.congestion_control = Some("reno".into());
        facts.path.as_mut().expect("there is one").carrier = Some(Carrier::Udp);
    });
    assert!(datagrams.findings.is_empty(), "{datagrams:?}");
}

#[test]
fn a_queue_that_drops_is_named_with_its_limit() {
    let dropping = |dropped, now| {
        with(|facts| {
            facts.interfaces[0].disciplines = vec![QueueDiscipline {
                kind: "tbf".into(),
                handle: 0x8003_0000,
                is_root: true,
                sent_packets: 100_000,
                dropped,
                limit: Some(QueueLimit::Bytes(8192)),
                shape: Some((98_439_000, 3072)),
                ..QueueDiscipline::default()
            }];
            facts.interfaces[0].dropped_now = now;
        })
    };
    let words =
        ["takes 8 KiB", "tc qdisc change dev eth0 root handle 8003: tbf rate 98439kbit burst 3072 limit 615243"];
    assert!(first(&dropping(1000, 1000), Topic::QueueDrops, &words) > 0.0);
    assert!((first(&dropping(100_000, 0), Topic::QueueDrops, &[]) - 0.5).abs() < 1e-9);
    assert!(dropping(5, 0).findings.is_empty(), "the odd burst, long ago");
}

#[test]
fn packets_that_card_or_processors_lost_are_counted() {
    let lost =
        |counters: NicCounters| with(|facts| facts.interfaces[0].counters = Some((counters, NicCounters::default())));
    let packets = NicCounters { rx_packets: 99_000, ..NicCounters::default() };
    let missed = lost(NicCounters { rx_missed: 1000, ..packets });
    assert!((first(&missed, Topic::CardDrops, &["ethtool -G eth0 rx 4096"]) - 0.01).abs() < 1e-9);
    assert_eq!(missed.findings[1].0, Topic::Rings);
    first(&lost(NicCounters { errors: 1000, ..packets }), Topic::CardDrops, &["cable"]);
    assert!(lost(NicCounters { rx_dropped: 20, ..packets }).findings.is_empty());
    let backlog = with(|facts| {
        facts.watched.softnet = Some((Softnet { processed: 900, dropped: 100, squeezed: 0 }, Softnet::default()));
    });
    assert!((first(&backlog, Topic::Softnet, &["netdev_max_backlog"]) - 0.1).abs() < 1e-9);
}

#[test]
fn one_receive_queue_costs_where_receiving_is_shared_out() {
    let queues = |queues, change: fn(&mut Nic)| {
        with(|facts| {
            facts.interfaces[0].queues = Some(queues);
            change(&mut facts.interfaces[0].nic);
        })
    };
    let one = ReceiveQueues { count: 1, max: 8, has_packet_steering: Some(false) };
    // One processor moves 46 Gbit/s of full packets.
    assert!(queues(one, |_| {}).findings.is_empty());
    let fast: fn(&mut Nic) = |nic| nic.speed_mbit_per_s = Some(100_000);
    assert!((first(&queues(one, fast), Topic::ReceiveQueues, &["ethtool -L eth0 combined 4"]) - 0.75).abs() < 1e-9);
    assert!(queues(ReceiveQueues { has_packet_steering: Some(true), ..one }, fast).findings.is_empty());
    let built = queues(ReceiveQueues { max: 1, ..one }, fast);
    assert_eq!(
        built.findings.first().map(|(topic, _, found)| (*topic, found.kind)),
        Some((Topic::ReceiveQueues, Kind::Cost))
    );
    let veth: fn(&mut Nic) = |nic| {
        (nic.is_virtual, nic.driver) = (true, Some("veth".into()));
        nic.offloads.retain(|on| on != "generic-receive-offload");
    };
    assert_eq!(first(&queues(ReceiveQueues { max: 1, ..one }, veth), Topic::ReceiveQueues, &["rps_cpus"]), 0.0);
    assert!(queues(one, veth).findings.is_empty(), "a veth as it is made by default");
}

#[test]
fn both_ends_on_one_processor_are_a_fault_and_one_end_is_none() {
    let placed = |far: Option<Vec<usize>>, is_here: bool| {
        with(|facts| {
            facts.allowed = vec![1];
            facts.tcp = TcpRates { one_processor: Some(2e10), ..facts.tcp.clone() };
            let path = facts.path.as_mut().expect("there is one");
            path.route.is_local = is_here;
            path.far_process =
                far.map(|cpus| FarProcess { process: 77, cpus, throttling: Some(Throttling::default()) });
        })
    };
    let share =
        first(&placed(Some(vec![1]), false), Topic::OneProcessor, &["processor 1 alone", "taskset -acp 0,1,2,3 77"]);
    assert!((share - 0.5).abs() < 1e-9);
    for elsewhere in [placed(Some(vec![0, 1]), false), placed(None, false)] {
        assert!(elsewhere.findings.is_empty(), "{elsewhere:?}");
    }
    first(&placed(None, true), Topic::OneProcessor, &["inherits"]);
    let host = with(|facts| (facts.allowed, facts.path) = (vec![1], None));
    first(&host, Topic::OneProcessor, &["taskset -c 0,1,2,3 hodo"]);
}

#[test]
fn a_neighbour_is_named_with_what_it_takes() {
    let beside = |share: f64, others| {
        with(|facts| {
            facts.watched.others = Some(others);
            facts.watched.busiest = vec![Busy { process: 99, name: "loop".into(), cpu_s: 0.7 }];
            facts.occupancy.iter_mut().for_each(|each| each.share = share);
        })
    };
    let share =
        first(&beside(0.5, 4.0), Topic::Neighbour, &["loop (99) 1.0", "renice 19 -p 99", "4.0 of 4 processors"]);
    assert!((share - 0.5).abs() < 1e-9);
    assert!((first(&beside(0.985, 4.0), Topic::Neighbour, &[]) - 0.015).abs() < 1e-9);
    assert!(beside(0.99, 0.3).findings.is_empty(), "it gives way");
    assert!(beside(0.5, 0.01).findings.is_empty(), "interrupts are no neighbour");
}

#[test]
fn a_quota_is_named_with_its_group() {
    let throttling = Throttling {
        processors: Some(0.3),
        period: Duration::from_millis(100),
        group: Some("/sys/fs/cgroup/a/b".into()),
        periods: 40,
        throttled_periods: 30,
        throttled: Duration::from_secs(2),
    };
    let own = with(|facts| facts.watched.throttling = Some(throttling.clone()));
    let share = first(&own, Topic::Quota, &["0.30 of 4", "30 of 40 periods", "echo max >/sys/fs/cgroup/a/b/cpu.max"]);
    assert!((share - 0.925).abs() < 1e-9);
    let old = Throttling { group: Some("/sys/fs/cgroup/cpu,cpuacct/a".into()), ..throttling.clone() };
    let far = with(|facts| {
        let far = FarProcess { process: 77, cpus: vec![0, 1, 2, 3], throttling: Some(old) };
        facts.path.as_mut().expect("there is one").far_process = Some(far);
    });
    first(&far, Topic::Quota, &["process 77", "echo -1 >/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us"]);
    let ample = Throttling { processors: Some(4.0), ..throttling };
    assert!(with(|facts| facts.watched.throttling = Some(ample)).findings.is_empty());
}

#[test]
fn delayed_interrupts_cost_their_delay() {
    let delayed = |rx_usecs, adaptive| {
        with(|facts| {
            (facts.interfaces[0].nic.rx_usecs, facts.interfaces[0].nic.rx_adaptive) = (Some(rx_usecs), Some(adaptive));
        })
    };
    let report = delayed(500, false);
    first(&report, Topic::Coalescence, &["500 µs", "ethtool -C eth0 rx-usecs"]);
    assert_eq!(report.findings[0].2.price.time, Some(us(500)));
    assert!(delayed(500, true).findings.is_empty() && delayed(3, false).findings.is_empty());
}

#[test]
fn a_short_ring_costs_what_a_pause_does_not_bridge() {
    let ring = |rx, pause| {
        with(|facts| {
            facts.interfaces[0].rings = Some(Rings { rx, rx_max: 4096, tx: 256, tx_max: 4096 });
            facts.occupancy[0].longest_pause = pause;
        })
    };
    // 64 of the smallest frames at 10 Gbit/s take 4.3 us.
    let share = first(&ring(64, us(1000)), Topic::Rings, &["64 entries of 4096", "ethtool -G eth0 rx 4096"]);
    assert!((share - 0.9957).abs() < 0.001, "{share}");
    assert!(ring(256, us(1000)).findings.is_empty(), "a driver's default");
    assert!(ring(4096, us(1000)).findings.is_empty());
}

#[test]
fn interrupts_on_one_processor_are_named() {
    let bound = |allowed: &[usize]| {
        with(|facts| facts.interfaces[0].interrupts.iter_mut().for_each(|each| each.allowed = allowed.to_vec()))
    };
    let share =
        first(&bound(&[2]), Topic::Affinity, &["processor 2 alone", "echo 0,1,2,3 >/proc/irq/40/smp_affinity_list"]);
    assert!((share - 0.75).abs() < 1e-9);
    assert!(bound(&[2, 3]).findings.is_empty());
    let unread = bound(&[]);
    assert_eq!(unread.unknown.iter().map(|(topic, ..)| *topic).collect::<Vec<_>>(), [Topic::Affinity]);
}

#[test]
fn a_slow_clock_costs_its_readings() {
    let clock = |source: &str, cost_ns| {
        with(|facts| {
            facts.host.clock_source = Some(source.into());
            facts.clock_cost_ns = cost_ns;
        })
    };
    let report = clock("acpi_pm", 1200.0);
    first(&report, Topic::ClockSource, &["acpi_pm", "echo tsc >/sys/devices/system/clocksource"]);
    assert_eq!(report.findings[0].2.price.time, Some(Duration::from_nanos(2400)));
    assert!(clock("kvm-clock", 30.0).findings.is_empty());
    let emulated = with(|facts| {
        (facts.host.clock_source, facts.host.clock_sources) =
            (Some("hpet".into()), vec!["hpet".into(), "acpi_pm".into()]);
        facts.clock_cost_ns = 2900.0;
    });
    assert_eq!(
        emulated.findings.first().map(|(topic, _, found)| (*topic, found.kind)),
        Some((Topic::ClockSource, Kind::Cost))
    );
}

#[test]
fn what_a_host_costs_as_it_is_comes_after_faults() {
    let report = with(|facts| {
        facts.wake_up = Some(WakeUp { sleeping: us(60), polling: us(10) });
        facts.watched.stolen = Some(0.2);
        facts.idle.states = vec![IdleState { name: "C6".into(), exit_latency: us(133), is_disabled: false }];
        facts.interfaces[0].nic.mtu = Some(1400);
        facts.path = None;
    });
    let names: Vec<&str> = report.findings.iter().map(|(topic, ..)| topic.name()).collect();
    assert_eq!(names, ["path_mtu", "wake_up", "steal"]);
    assert!(report.findings[1].2.remedy.starts_with("cpupower idle-set -D 10"));
}

#[test]
fn an_exchange_that_waited_for_another_program_is_no_wake_up() {
    for found in [None, Some(WakeUp { sleeping: us(21_600), polling: us(18) })] {
        let report = with(|facts| facts.wake_up = found);
        assert!(report.findings.is_empty());
        let why = report.unknown.iter().find(|(topic, ..)| *topic == Topic::WakeUp).map(|(.., why)| why.as_str());
        assert!(why.is_some_and(|why| why.starts_with("other programs had the processors")), "{why:?}");
    }
}

#[test]
fn a_governor_counts_only_where_it_is_measured() {
    let governed = |slow_start| {
        with(|facts| {
            facts.idle.frequency_governor = Some("powersave".into());
            facts.idle.frequency_governors = vec!["performance".into(), "powersave".into()];
            facts.slow_start = slow_start;
        })
    };
    assert!((first(&governed(Some(0.4)), Topic::Governor, &["powersave", "-g performance"]) - 0.4).abs() < 1e-9);
    assert!(governed(Some(0.01)).findings.is_empty());
    assert_eq!(governed(None).unknown.len(), 1);
}
