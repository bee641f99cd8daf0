use super::*;
use crate::{Binding, LimitKind};

const TCP: Transport = Transport::Tcp { timestamps: true };
const TCP_PLAIN: Transport = Transport::Tcp { timestamps: false };

fn path(rate: f64, mtu: u32, ip: Ip, transport: Transport) -> Path {
    Path::new(Line::new(rate, mtu), ip, transport).unwrap()
}

fn gigabit(mtu: u32, ip: Ip, transport: Transport) -> Path {
    path(1e9, mtu, ip, transport)
}

/// Asserts that a value agrees with a published figure, to as many digits as that has.
#[track_caller]
fn assert_rounds_to(value: f64, published: f64, digits: i32) {
    let scale = 10_f64.powi(digits);
    assert_eq!((value * scale).round() / scale, published, "{value}");
}

#[test]
fn frames_have_the_overhead_of_the_standard() {
    let line = Line::new(1e9, 1500);
    assert_eq!(line.frame_bytes(1500), 1518);
    assert_eq!(line.wire_bytes(1500), 1538);
    assert_eq!(line.wire_bytes(46), 84);
    assert_eq!(line.wire_bytes(1), 84);
    assert_eq!(line.wire_bytes(47), 85);
    assert_eq!(Line { vlan_tags: 1, ..line }.frame_bytes(1500), 1522);
    assert_eq!(Line { vlan_tags: 2, ..line }.wire_bytes(1500), 1546);
    assert_eq!(Line { vlan_tags: 1, ..line }.wire_bytes(42), 84);
}

/// Checks the figures that every vendor of switches prints.
#[test]
fn frame_rates_of_gigabit_ethernet() {
    assert_rounds_to(Line::new(1e9, 1500).frames_per_s(46), 1_488_095.0, 0);
    assert_rounds_to(Line::new(1e9, 1500).frames_per_s(1500), 81_274.0, 0);
    assert_rounds_to(Line::new(1e10, 1500).frames_per_s(46), 14_880_952.0, 0);
}

#[test]
fn payload_of_full_packets() {
    let cases = [
        (1500, Ip::V4, TCP, 1448, 941.5),
        (1500, Ip::V4, TCP_PLAIN, 1460, 949.3),
        (1500, Ip::V6, TCP, 1428, 928.5),
        (1500, Ip::V6, TCP_PLAIN, 1440, 936.3),
        (1500, Ip::V4, Transport::Udp, 1472, 957.1),
        (1500, Ip::V6, Transport::Udp, 1452, 944.1),
        (9000, Ip::V4, TCP, 8948, 990.0),
        (9000, Ip::V6, TCP, 8928, 987.8),
        (9000, Ip::V4, Transport::Udp, 8972, 992.7),
    ];
    for (mtu, ip, transport, segment, mbit_per_s) in cases {
        let path = gigabit(mtu, ip, transport);
        assert_eq!(path.segment_bytes(), segment);
        assert_rounds_to(path.payload_bits_per_s() / 1e6, mbit_per_s, 1);
    }
    // The MTU that Linux announces on its loopback interface.
    assert_eq!(gigabit(65_536, Ip::V4, TCP).segment_bytes(), 65_483);
    assert_eq!(gigabit(65_536, Ip::V6, TCP).segment_bytes(), 65_464);
    let tagged = Path::new(Line { vlan_tags: 1, ..Line::new(1e9, 1500) }, Ip::V4, TCP).unwrap();
    assert_rounds_to(tagged.payload_bits_per_s() / 1e6, 939.0, 1);
}

/// Takes the event farm: 32,000 bytes and a header of 12 over gigabit Ethernet.
#[test]
fn events_per_second_of_the_farm() {
    for (mtu, events, mbit) in [(1500, 3676.0, 941.5), (9000, 3866.0, 990.0)] {
        let path = gigabit(mtu, Ip::V4, TCP);
        let cost = path.cost(32_012, 32_012, 0, Packing::Stream);
        let limit = least(LimitKind::Line, vec![Bound::line(&path, &cost)], cost.payload_bytes).unwrap();
        assert_rounds_to(limit.operations_per_s.unwrap(), events, 0);
        assert_rounds_to(limit.payload_bits_per_s.unwrap() / 1e6, mbit, 1);
        assert_eq!((limit.kind, limit.binds), (LimitKind::Line, Binding::Line));
    }
}

#[test]
fn shares_of_the_published_farm_runs() {
    let limit = gigabit(1500, Ip::V4, TCP).payload_bits_per_s();
    assert_rounds_to(891.3e6 / limit, 0.947, 3);
    assert_rounds_to(762.1e6 / limit, 0.81, 2);
    assert_rounds_to(830.6e6 / limit, 0.88, 2);
}

/// Tokens of 28 bytes, every 200th of 65,536: they go the other way and hide behind the events.
#[test]
fn tokens_of_the_farm_do_not_bind() {
    let path = gigabit(1500, Ip::V4, TCP);
    let tokens = WireCost::mean((0..200).map(|i| path.cost(0, 0, if i == 0 { 65_536 } else { 28 }, Packing::Own)));
    let event = path.cost(32_012, 32_012, 0, Packing::Stream);
    let both = WireCost { back_bytes: tokens.unwrap().back_bytes, ..event };
    assert!(both.back_bytes < 0.02 * both.out_bytes);
    assert_eq!(Bound::line(&path, &both), Bound::line(&path, &event));
    assert_rounds_to((28.0 * 199.0 + 65_536.0) / 200.0 / 32_012.0, 0.011, 3);
}

#[test]
fn an_operation_of_its_own_rounds_up_to_segments() {
    let path = gigabit(1500, Ip::V4, TCP);
    assert_eq!(path.wire_bytes(0, Packing::Own), 0.0);
    assert_eq!(path.wire_bytes(1, Packing::Own), 91.0);
    assert_eq!(path.wire_bytes(1448, Packing::Own), 1538.0);
    assert_eq!(path.wire_bytes(1449, Packing::Own), 1538.0 + 91.0);
    assert_eq!(path.wire_bytes(32_012, Packing::Own), 22.0 * 1538.0 + 246.0);
    assert!(path.wire_bytes(32_012, Packing::Own) > path.wire_bytes(32_012, Packing::Stream));
    assert_eq!(path.wire_bytes(1448 * 7, Packing::Own).round(), path.wire_bytes(1448 * 7, Packing::Stream).round());
}

#[test]
fn datagrams_larger_than_the_mtu_go_in_fragments() {
    let v4 = gigabit(1500, Ip::V4, Transport::Udp);
    assert_eq!(v4.wire_bytes(1472, Packing::Own), 1538.0);
    assert_eq!(v4.wire_bytes(1473, Packing::Own), 1538.0 + 84.0);
    assert_eq!(v4.wire_bytes(8192, Packing::Own), 5.0 * 1538.0 + 858.0);
    let v6 = gigabit(1500, Ip::V6, Transport::Udp);
    assert_eq!(v6.wire_bytes(1452, Packing::Own), 1538.0);
    assert_eq!(v6.wire_bytes(1453, Packing::Own), 1534.0 + 99.0);
    let jumbo = gigabit(9000, Ip::V4, Transport::Udp);
    // 8,980 bytes of room, of which 8,976 are usable but for the last fragment.
    assert_eq!(jumbo.wire_bytes(8976 + 8980 - 8, Packing::Own), 9034.0 + 9038.0);
    assert_eq!(jumbo.wire_bytes(8976 + 8981 - 8, Packing::Own), 2.0 * 9034.0 + 84.0);
    assert_eq!(v4.datagram_bytes_max(), Some(65_507));
    assert_eq!(v6.datagram_bytes_max(), Some(65_527));
    assert_eq!(gigabit(1500, Ip::V4, TCP).datagram_bytes_max(), None);
    assert_eq!(v4.wire_bytes(65_508, Packing::Own), v4.wire_bytes(65_507, Packing::Own) + 84.0);
}

#[test]
fn small_datagrams_are_padded() {
    let v4 = gigabit(1500, Ip::V4, Transport::Udp);
    assert_eq!(v4.wire_bytes(1, Packing::Own), 84.0);
    assert_eq!(v4.wire_bytes(18, Packing::Own), 84.0);
    assert_eq!(v4.wire_bytes(19, Packing::Own), 85.0);
    assert_eq!(gigabit(1500, Ip::V6, Transport::Udp).wire_bytes(1, Packing::Own), 87.0);
}

/// IPbus 2.0 over UDP: packets of 1,400 bytes with 347 words read or 345 written.
#[test]
fn ipbus_blocks_on_gigabit_ethernet() {
    let path = gigabit(1500, Ip::V4, Transport::Udp);
    let read = path.cost(1388, 20, 1400, Packing::Own);
    let write = path.cost(1380, 1400, 12, Packing::Own);
    assert_eq!((read.back_bytes, write.out_bytes), (1466.0, 1466.0));
    for (cost, share) in [(read, 0.947), (write, 0.941)] {
        let limit = least(LimitKind::Line, vec![Bound::line(&path, &cost)], cost.payload_bytes).unwrap();
        assert_rounds_to(limit.payload_bits_per_s.unwrap() / 1e9, share, 3);
    }
}

/// Expects that sixteen packets in flight fill the line up to a round-trip of 187 us.
#[test]
fn ipbus_window_fills_the_line_until_187_us() {
    let path = gigabit(1500, Ip::V4, Transport::Udp);
    let cost = path.cost(1388, 20, 1400, Packing::Own);
    let at = |round_trip_us: f64| {
        let bounds = vec![Bound::window(16, round_trip_us * 1e3), Bound::line(&path, &cost)];
        least(LimitKind::Line, bounds, cost.payload_bytes).unwrap()
    };
    assert_eq!(at(187.0).binds, Binding::Line);
    assert_eq!(at(188.0).binds, Binding::Window);
    assert_eq!(at(188.0).source(), "window", "the least of several bounds");
    assert!(at(188.0).formula.starts_with("window: 16 in flight / 188.00 us round-trip = 85106/s <= line: 1 Gbit/s"));
}

#[test]
fn a_formula_says_nothing_twice_and_counts_packets_as_they_are() {
    let bounds = vec![Bound::cpu(1, 303e3), Bound::packets(16, 1515.0, 10_400.0), Bound::cpu(1, 303e3)];
    let formula = least(LimitKind::Model, bounds, 1.0).unwrap().formula;
    let (window, cpu) = formula.split_once(" <= ").unwrap();
    assert_eq!(window, "window: 16 packets in flight / (1515 an operation x 10.40 us round-trip) = 1015/s");
    assert_eq!(cpu.matches("cpu").count(), 1, "{formula}");
    assert!(Bound::packets(16, 0.01, 10_400.0).formula.contains("(0.01 an operation"));
    assert!(Bound::packets(16, 1.0 / 173.0, 10_400.0).formula.contains("(0.0058 an operation"));
}

#[test]
fn copies_are_part_of_what_the_processors_do() {
    let bound = Bound::copies(2, 4000.0, 2, 32_000.0, 128e9);
    assert_eq!((bound.binds, bound.operations_per_s), (Binding::Cpu, 2e9 / 8000.0));
    let told = "2 cores / 8.00 us per operation = 250000/s, of which 2 copies of 32000 B at 128 Gbit/s take 4.00 us";
    assert_eq!(bound.formula, told);
    assert_eq!(Bound::copies(1, 0.0, 1, 1000.0, 8e9).operations_per_s, 1e6, "they alone");
}

#[test]
fn one_in_flight_is_bound_by_the_round_trip() {
    let bound = Bound::window(1, 6_000.0);
    assert_eq!(bound.binds, Binding::RoundTrip);
    assert_rounds_to(bound.operations_per_s, 166_667.0, 0);
}

#[test]
fn the_least_bound_binds_and_names_the_others() {
    let bounds = vec![Bound::cpu(1, 500.0), Bound::schedule(1000.0), Bound::window(64, 0.0)];
    let limit = least(LimitKind::PlainLoop, bounds, 100.0).unwrap();
    assert_eq!(limit.binds, Binding::Schedule);
    assert_eq!(limit.payload_bits_per_s, Some(800_000.0));
    assert_eq!(limit.formula, "schedule: 1000/s asked for <= cpu: 1 core / 500 ns per operation = 2000000/s");
    assert_eq!(least(LimitKind::Line, vec![], 1.0), None);
    assert_eq!(least(LimitKind::Line, vec![Bound::window(64, 0.0)], 1.0), None);
}

#[test]
fn the_line_formula_has_the_numbers_put_in() {
    let path = gigabit(1500, Ip::V4, TCP);
    let bound = Bound::line(&path, &path.cost(1448, 1448, 0, Packing::Stream));
    assert_eq!(bound.formula, "1 Gbit/s / (8 x 1538 B on the line for 1448 B of payload, share 0.9415) = 81274/s");
    assert_eq!(bound.assumes, "TCP with timestamps over IPv4, full-duplex Ethernet, MTU 1500");
}

#[test]
fn a_full_duplex_line_carries_both_directions_at_once() {
    let path = gigabit(1500, Ip::V4, TCP);
    let one_way = Bound::line(&path, &path.cost(1 << 20, 1 << 20, 0, Packing::Stream));
    let both = Bound::line(&path, &path.cost(2 << 20, 1 << 20, 1 << 20, Packing::Stream));
    assert_eq!(both.operations_per_s, one_way.operations_per_s);
    assert!(both.formula.contains("for 2097152 B of payload) = "));
    assert_rounds_to(path.acknowledgement_share(), 0.0293, 4);
    assert_eq!(gigabit(1500, Ip::V4, Transport::Udp).acknowledgement_share(), 0.0);
}

#[test]
fn leaves_behind_a_trunk() {
    let leaf = path(1e8, 1500, Ip::V4, TCP);
    let trunk = gigabit(1500, Ip::V4, TCP);
    let cost = trunk.cost(32_012, 32_012, 0, Packing::Stream);
    let total = |leaves| Fan { leaves, leaf, trunk }.bound(&cost, &cost);
    assert_rounds_to(total(8).operations_per_s, 2941.0, 0);
    assert!(total(8).formula.starts_with("8 leaves x ["));
    assert_rounds_to(total(20).operations_per_s, 3676.0, 0);
    assert!(total(20).formula.starts_with("trunk 1 Gbit/s"));
    assert_rounds_to(Fan { leaves: 20, leaf, trunk }.leaves_to_fill_the_trunk(), 10.0, 6);
    assert_rounds_to(total(20).shared_by(20).operations_per_s * 32_012.0 * 8.0 / 1e6, 47.1, 1);
}

#[test]
fn pci_in_the_usual_sizes() {
    let rate = |width, clock| Pci::new(width, clock).unwrap().nominal_bits_per_s() / 1e6;
    assert_eq!(rate(32, 33e6), 1056.0);
    assert_eq!(rate(64, 33e6), 2112.0);
    assert_eq!(rate(64, 66e6), 4224.0);
    let bursts = Pci::new(32, 33e6).unwrap().payload_bits_per_s(64, 3);
    assert_rounds_to(bursts / 1e6, 889.3, 1);
    assert_eq!(Pci::new(16, 33e6), Err(LimitError::Width(16)));
    assert_eq!(Pci::new(32, f64::NAN).map_err(|e| matches!(e, LimitError::Rate(_))), Err(true));
}

#[test]
fn both_directions_share_a_pci_bus_but_not_pci_express() {
    let pci = Pci::new(32, 33e6).unwrap();
    assert_eq!(pci.bound(1000.0, 1000.0).operations_per_s, 66_000.0);
    let pcie = Pcie::new(PcieGeneration::Gen1, 1, 128).unwrap();
    assert_eq!(pcie.bound(1000.0, 1000.0).operations_per_s, pcie.bound(1000.0, 0.0).operations_per_s);
    assert_eq!(pcie.bound(1.0, 0.0).binds, Binding::Bus);
}

#[test]
fn pci_express_in_every_generation() {
    let gigabytes = |generation: u8, lanes| {
        let link = Pcie::new(generation.try_into().unwrap(), lanes, 256).unwrap();
        link.nominal_bits_per_s() / 8e9
    };
    assert_rounds_to(gigabytes(1, 1), 0.25, 3);
    assert_rounds_to(gigabytes(2, 8), 4.0, 3);
    assert_rounds_to(gigabytes(3, 1), 0.985, 3);
    assert_rounds_to(gigabytes(3, 16), 15.754, 3);
    assert_rounds_to(gigabytes(4, 16), 31.508, 3);
    assert_rounds_to(gigabytes(5, 16), 63.015, 3);
    assert_rounds_to(gigabytes(6, 16), 121.0, 3);
    assert_eq!(PcieGeneration::try_from(7), Err(LimitError::Generation(7)));
    assert_eq!(Pcie::new(PcieGeneration::Gen3, 3, 256), Err(LimitError::Lanes(3)));
    assert_eq!(Pcie::new(PcieGeneration::Gen3, 8, 200), Err(LimitError::MaxPayload(200)));
}

#[test]
fn pci_express_payload_depends_on_the_packet() {
    let payload =
        |generation, lanes, max_payload| Pcie::new(generation, lanes, max_payload).unwrap().payload_bits_per_s() / 1e9;
    assert_rounds_to(payload(PcieGeneration::Gen3, 8, 128), 53.07, 2);
    assert_rounds_to(payload(PcieGeneration::Gen3, 8, 256), 57.61, 2);
    assert_rounds_to(payload(PcieGeneration::Gen6, 16, 4096) / 8.0, 117.5, 1);
}

/// Takes 64 bytes each way at 1 Gbit/s: 142 + 12 byte times for each, of which the last gap does not count.
#[test]
fn latency_of_a_small_exchange() {
    let path = gigabit(1500, Ip::V4, TCP);
    assert_rounds_to(path.latency_ns(64, 64, 0.0), 2.0 * 142.0 * 8.0, 6);
    assert_rounds_to(path.latency_ns(64, 0, 0.0), 142.0 * 8.0, 6);
    assert_rounds_to(FIBRE_NS_PER_KM, 4897.0, 0);
    let limit = path.latency_limit(64, 64, 64, 10.0);
    assert_eq!(limit.binds, Binding::RoundTrip);
    assert_rounds_to(limit.latency_ns.unwrap(), 100_206.0, 0);
    assert_eq!(limit.formula, "1.14 us out + 1.14 us back at 1 Gbit/s + 2 x 10 km = 100.21 us");
}

/// Allows for `tbf`, which counts 1,514 of a frame's 1,538 bytes.
#[test]
fn a_shaper_that_stands_for_a_gigabit_line() {
    let line = Line::new(1e9, 1500);
    let shaper = line.rate_bits_per_s * f64::from(line.host_bytes(1500)) / f64::from(line.wire_bytes(1500));
    assert_rounds_to(shaper / 1e3, 984_395.0, 0);
    assert_rounds_to(1e3 * 1448.0 / f64::from(line.host_bytes(1500)), 956.4, 1);
}

#[test]
fn what_is_impossible_is_refused() {
    let refused = |line, ip| Path::new(line, ip, TCP).unwrap_err();
    assert_eq!(refused(Line::new(1e9, 67), Ip::V4), LimitError::Mtu { mtu: 67, min: 68, max: 65_536 });
    assert_eq!(refused(Line::new(1e9, 1279), Ip::V6), LimitError::Mtu { mtu: 1279, min: 1280, max: 65_536 });
    assert_eq!(refused(Line::new(0.0, 1500), Ip::V4), LimitError::Rate(0.0));
    assert_eq!(refused(Line { vlan_tags: 3, ..Line::new(1e9, 1500) }, Ip::V4), LimitError::VlanTags(3));
    assert_eq!(
        LimitError::UnreadableRate("fast".into()).to_string(),
        "\"fast\" is not a rate; write bits per second as 1G, 100M, 2.5Gbit or 984395kbit"
    );
}

#[test]
fn rates_are_read_and_written_as_people_do() {
    for (text, rate) in [
        ("1G", 1e9),
        ("100M", 1e8),
        ("10Gbit", 1e10),
        ("2.5Gbit/s", 2.5e9),
        ("984395kbit", 984_395e3),
        ("100 Mbit/s", 1e8),
        ("1g", 1e9),
        ("1.6T", 1.6e12),
        ("9600", 9600.0),
    ] {
        assert_eq!(parse_rate(text), Ok(rate), "{text}");
    }
    for text in ["", "G", "fast", "-1G", "0", "1bps", "1GB", "inf", "NaN", "1e400", "µ", "1Gi", "1Gbitbit"] {
        assert_eq!(parse_rate(text), Err(LimitError::UnreadableRate(text.into())), "{text}");
    }
    for (rate, text) in [
        (1e9, "1 Gbit/s"),
        (941_482_444.7, "941.5 Mbit/s"),
        (2.5e9, "2.5 Gbit/s"),
        (1e8, "100 Mbit/s"),
        (512.0, "512 bit/s"),
        (984_395e3, "984.4 Mbit/s"),
        (99_999_900.0, "100 Mbit/s"),
    ] {
        assert_eq!(format_rate(rate), text);
    }
}

/// A small generator of its own: the properties need spread, not quality (Marsaglia's xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn path(&mut self) -> Path {
        let ip = if self.below(2) == 0 { Ip::V4 } else { Ip::V6 };
        let transport = [TCP, TCP_PLAIN, Transport::Udp][self.below(3) as usize];
        let mtu = ip.min_mtu() + self.below(u64::from(65_537 - ip.min_mtu())) as u32;
        let line = Line { rate_bits_per_s: 1e9, mtu, vlan_tags: self.below(3) as u8 };
        Path::new(line, ip, transport).unwrap()
    }
}

#[test]
fn larger_operations_never_cost_less() {
    let mut draw = Draw(1);
    for _ in 0..20_000 {
        let path = draw.path();
        let size = draw.below(200_000);
        let step = draw.below(64);
        for packing in [Packing::Stream, Packing::Own] {
            assert!(path.wire_bytes(size, packing) <= path.wire_bytes(size + step, packing), "{path:?} {size}+{step}");
        }
    }
}

#[test]
fn payload_never_passes_the_line() {
    let mut draw = Draw(2);
    for _ in 0..20_000 {
        let path = draw.path();
        let size = 1 + draw.below(200_000);
        for packing in [Packing::Stream, Packing::Own] {
            let cost = path.cost(size, size, 0, packing);
            assert!(cost.out_bytes > cost.payload_bytes, "{path:?} {size}");
            assert!(Bound::line(&path, &cost).operations_per_s * cost.payload_bytes * 8.0 < 1e9);
        }
        let own = path.wire_bytes(size, Packing::Own);
        let stream = path.wire_bytes(size, Packing::Stream);
        assert!(own >= stream * (1.0 - 1e-12), "{path:?} {size}: {own} < {stream}");
    }
}

#[test]
fn more_bounds_never_raise_the_limit() {
    let mut draw = Draw(3);
    for _ in 0..1_000 {
        let mut bounds = vec![];
        let mut last = f64::INFINITY;
        for _ in 0..5 {
            bounds.push(Bound::window(1 + draw.below(100), 1.0 + draw.below(1_000_000) as f64));
            let limit = least(LimitKind::Model, bounds.clone(), 64.0).unwrap().operations_per_s.unwrap();
            assert!(limit <= last);
            last = limit;
        }
    }
}
