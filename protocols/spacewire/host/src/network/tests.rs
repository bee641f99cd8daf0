use super::*;
use hodo_spacewire::EndOfPacket::Eop;
use hodo_spacewire::Picos;

fn parse(text: &str) -> Result<Plan, String> {
    Plan::parse("net.toml", text, Path::new(".")).map_err(|why| why.to_string())
}

const PAIR: &str = "\
[[node]]
name = \"a\"
ssdtp2 = { port = 10030 }
[[node]]
name = \"b\"
echo = {}
";

#[test]
fn presets_are_networks() {
    for (name, _) in PRESETS {
        let plan = Plan::preset(name).unwrap();
        assert!(!plan.gates.is_empty(), "{name}");
    }
    assert!(Plan::preset("other").err().unwrap().to_string().contains("lab, cable"));
}

#[test]
fn packets_go_where_a_file_says() {
    let mut plan = Plan::preset("lab").unwrap();
    let node = |name| plan.names.nodes.iter().find(|(known, _)| known == name).unwrap().1;
    let (host, second, gresb) = (node("host"), node("second"), node("gresb"));
    plan.network.run_until(Picos::from_nanos(100_000));
    plan.network.send(host, &[2, 1, 2], Eop).unwrap();
    plan.network.send(host, &[35, 9], Eop).unwrap();
    plan.network.run_until(Picos::from_nanos(200_000));
    assert_eq!(plan.network.receive(second).unwrap().bytes, [1, 2]);
    assert_eq!(plan.network.receive(gresb).unwrap().bytes, [35, 9]);
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, expected) in [
        ("", "net.toml: there is no node"),
        ("[[nodes]]\n", "net.toml:1: unknown field `nodes`"),
        ("[[node]]\nname = \"a\"\n", "net.toml:1: [[node]] a: nothing is at this node; write ssdtp2"),
        ("[[node]]\nname = \"a:1\"\necho = {}\n", "no colon"),
        ("[[node]]\nname = \"a\"\necho = {}\ndiscard = true\n", "exclude each other"),
        ("[[node]]\nname = \"a\"\nmemory = [{ address = 0 }]\n", "a region has a size"),
        (
            "[[node]]\nname = \"a\"\nmemory = [{ address = 0, size = \"2K\" }, { address = 1024, size = \"1K\" }]\n",
            "overlap",
        ),
        ("[[node]]\nname = \"a\"\nmemory = [{ address = 0xffffffffff, size = \"2K\" }]\n", "40 bits"),
        ("[[node]]\nname = \"a\"\nrmap = {}\necho = {}\n", "rmap: this is for a node with a memory"),
        ("[[node]]\nname = \"a\"\ngresb = { port = 65535 }\n", "the port after 65535"),
        ("[[node]]\nname = \"a\"\nssdtp2 = { port = 70000 }\n", "net.toml:3: invalid value: integer `70000`"),
        ("[[node]]\nname = \"a\"\nssdtp2 = { port = 1, packet_max = \"64M\" }\n", "raise queue_bytes"),
        (
            "[[node]]\nname = \"a\"\nqueue_bytes = \"1K\"\nmemory = [{ address = 0, size = \"2K\" }]\nrmap = { length_max = \"1K\" }\n",
            "raise queue_bytes",
        ),
        ("[[node]]\nname = \"a\"\nmemory = [{ address = 0, size = \"4\", file = \"/dev/zero\" }]\n", "raise the size"),
    ] {
        let error = parse(text).err().unwrap_or_default();
        assert!(error.contains(expected), "{text}: {error}");
    }
    for (more, expected) in [
        ("[[node]]\nname = \"a\"\necho = {}\n", "net.toml:7: [[node]] a: `a` exists already"),
        ("[[node]]\nname = \"c\"\nssdtp2 = { port = 10030 }\n", "port 10030 is another node's"),
        ("[[link]]\nbetween = [\"a\", \"c\"]\n", "net.toml:7: [[link]] between a and c: there is no node c"),
        ("[[link]]\nbetween = [\"a\", \"r:1\"]\n", "there is no router r"),
        ("[[router]]\nname = \"r\"\n[[link]]\nbetween = [\"a\", \"r\"]\n", "add the port, as r:1"),
        ("[[router]]\nname = \"r\"\n[[link]]\nbetween = [\"a\", \"r:9\"]\n", "its ports are 1 to 8"),
        ("[[router]]\nname = \"r\"\nports = 32\n", "net.toml:7: [[router]] r:"),
        ("[[router]]\nname = \"r\"\nroutes = [{ address = 31, ports = [1] }]\n", "use 32 to 254"),
        ("[[router]]\nname = \"r\"\nroutes = [{ address = 32, ports = [9] }]\n", "leads to port 9"),
        ("[[router]]\nname = \"r\"\nroutes = [{ address = 32, ports = [] }]\n", "leads nowhere"),
        (
            "[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"500M\"\n",
            "500000000 bit/s at `a`: it has to be 2000000 to 400000000 bit/s",
        ),
        ("[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1.9M\"\n", "2000000 to 400000000 bit/s"),
        ("[[router]]\nname = \"r\"\nwatchdog = \"1ns\"\n", "at r: it has to be a microsecond at least"),
        ("[[link]]\nbetween = [\"a\", \"b\"]\nrate = 200\n", "write a rate in quotes"),
        (
            "[[link]]\nbetween = [\"a\", \"b\"]\nedition = 2019\n",
            "net.toml:9: unknown variant `2019`, expected `2008` or `rev1`",
        ),
        ("[[router]]\nname = \"r\"\nlatency = 5\n", "net.toml:9: unknown variant `5`, expected `spw-10x` or `none`"),
        ("[[router]]\nname = \"r\"\nwhen_down = [1]\n", "expected `spill` or `wait`"),
        ("[[link]]\nbetween = [\"a\", \"b\"]\nmetres = 2000\n", "0 to 1000 m"),
        ("[[link]]\nbetween = [\"a\", \"b\"]\nmetres = nan\n", "0 to 1000 m"),
        ("[[link]]\nbetween = [\"a\", \"b\"]\nfirst = { buffer = 7 }\n", "8 at least"),
        ("[[link]]\nbetween = [\"a\", \"b\"]\nfirst = { bit_error_rate = 2.0 }\n", "not in 0..=1"),
        ("[[link]]\nbetween = [\"a\", \"a\"]\n", "a has a link already"),
        ("[[link]]\nbetween = [\"a\", \"b\", \"c\"]\n", "net.toml:8: a link has two ends, not 3"),
        (
            "[[router]]\nname = \"r\"\nroutes = [{ address = 32, ports = [1] }, { address = 32, ports = [2] }]\n",
            "address 32 is there twice",
        ),
        ("", "node `a` has no link"),
    ] {
        let error = parse(&format!("{PAIR}{more}")).err().unwrap_or_default();
        assert!(error.contains(expected), "{more}: {error}");
    }
    for more in ["", "edition = 2008\n", "edition = \"2008\"\n"] {
        assert!(parse(&format!("{PAIR}[[link]]\nbetween = [\"a\", \"b\"]\n{more}")).is_ok(), "{more}");
    }
}

#[test]
fn a_memory_answers_the_longest_read_of_rmap() {
    let memory = |more: &str| format!("[[node]]\nname = \"a\"\nmemory = [{{ address = 0, size = \"16M\" }}]\n{more}");
    let length_max = |text: &str| match &parse(&format!("{text}{LINKED}")).unwrap().devices[0].1 {
        Device::Memory(target, _) => target.length_max,
        _ => 0,
    };
    assert_eq!(length_max(&memory("")), 0xFF_FFFF);
    assert_eq!(length_max(&memory("queue_bytes = \"4K\"\n")), 4096 - 25);
}

const LINKED: &str = "[[node]]\nname = \"b\"\ndiscard = true\n[[link]]\nbetween = [\"a\", \"b\"]\n";

#[test]
fn the_settings_of_a_link_arrive_there() {
    let text = format!(
        "{PAIR}[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"100M\"\nmetres = 10\nedition = \"rev1\"\n\
         first = {{ rate = \"50M\", link_start = false, auto_start = false }}\n"
    );
    let mut plan = parse(&text).unwrap();
    plan.network.run_until(Picos::from_nanos(100_000));
    let [(_, first), (_, second)] = &plan.names.links[0];
    let end = plan.network.end(*first).unwrap();
    assert_eq!(end.settings().edition, hodo_spacewire::end::Edition::Rev1);
    assert_ne!(end.state(), hodo_spacewire::end::State::Run, "nobody starts it");
    assert!(plan.network.end(*second).unwrap().settings().link_start);
}

#[test]
fn the_example_of_the_documentation_is_a_network() {
    let text = include_str!("../../../../../docs/examples/spacewire.toml");
    assert_eq!(parse(text).unwrap().gates.len(), 2);
}

#[test]
fn faults_come_when_a_file_says() {
    let text = format!(
        "{PAIR}[[link]]\nbetween = [\"a\", \"b\"]\n\
         [[fault]]\nat = \"a\"\nkind = \"parity\"\nfirst = \"1ms\"\nevery = \"200us\"\n\
         [[fault]]\nat = \"b\"\nkind = \"disconnect\"\nfirst = \"500us\"\n"
    );
    let mut plan = parse(&text).unwrap();
    let [(_, a), (_, b)] = plan.names.links[0].clone();
    plan.network.run_until(Picos::from_nanos(900_000));
    let errors = |plan: &Plan, at| plan.network.statistics(at).unwrap().errors;
    assert_eq!((errors(&plan, a).disconnect, errors(&plan, b).parity), (1, 0));
    plan.network.run_until(Picos::from_nanos(1_900_000));
    // At 1.0, 1.2, 1.4, 1.6 and 1.8 ms; the link is up again some 20 us after each.
    assert_eq!(errors(&plan, b).parity, 5);
    assert!(plan.network.statistics(a).unwrap().starts >= 6);
    for (table, expected) in [
        ("at = \"c\"\nkind = \"parity\"\n", "there is no node c"),
        ("at = \"a\"\nkind = \"noise\"\n", "unknown variant `noise`"),
        ("at = \"a\"\nkind = \"parity\"\nevery = \"1ns\"\n", "at least 1us apart"),
    ] {
        let error =
            parse(&format!("{PAIR}[[link]]\nbetween = [\"a\", \"b\"]\n[[fault]]\n{table}")).err().unwrap_or_default();
        assert!(error.contains(expected), "{table}: {error}");
    }
}

#[test]
fn a_babbler_keeps_its_link_busy() {
    use hodo_machine::{Instant, Machine, Outbox, Output};
    use hodo_spacewire::bridge::{Bridge, Pace};
    let text = "[[node]]\nname = \"a\"\nbabble = { packet = [32, 7], size = \"60\" }\n[[node]]\nname = \"b\"\ndiscard = true\n\
                [[link]]\nbetween = [\"a\", \"b\"]\n";
    let plan = parse(text).unwrap();
    let [(_, a), _] = plan.names.links[0].clone();
    let mut bridge = Bridge::new(plan.network, Pace::RealTime, Vec::new(), plan.devices);
    let mut out = Outbox::new();
    for micros in (0..10_000).step_by(100) {
        while !matches!(bridge.poll(Instant::from_nanos(micros * 1000), &mut out), Output::Idle(_)) {}
    }
    // 200 Mbit/s over 604 bits a packet, but for the start.
    let sent = bridge.network().statistics(a).unwrap().sent.eops;
    assert!((3200..3310).contains(&sent), "{sent}");
    for (table, expected) in [
        ("babble = {}", "size is 0"),
        ("babble = { packet = [1, 2], size = \"1\" }", "size is 1"),
        ("babble = { packet = [1] }\necho = {}", "excludes"),
    ] {
        let error = parse(&format!("[[node]]\nname = \"a\"\n{table}\n")).err().unwrap_or_default();
        assert!(error.contains(expected), "{table}: {error}");
    }
}
