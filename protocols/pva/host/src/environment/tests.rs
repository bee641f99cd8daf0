use super::*;
use hodo_machine::Address;
use std::net::{IpAddr, Ipv4Addr};

/// Returns the interfaces of a host: a loopback and two others, one of which has an address of IPv6, too.
fn host() -> Vec<Interface> {
    let one = |name: &str, index, address: &str, prefix, broadcast: Option<&str>| Interface {
        name: name.to_owned(),
        index,
        is_loopback: name == "lo",
        is_up: true,
        has_multicast: true,
        address: Some(ip(address)),
        prefix,
        broadcast: broadcast.map(ip),
    };
    vec![
        one("lo", 1, "127.0.0.1", 8, None),
        one("eth0", 2, "10.0.0.1", 24, Some("10.0.0.255")),
        one("eth1", 3, "10.1.0.1", 16, Some("10.1.255.255")),
        one("eth1", 3, "fe80::1", 64, None),
    ]
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn read(variables: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
    let find = |name: &str| variables.iter().find(|one| one.0 == name).map(|one| one.1.to_owned());
    Environment::from(find, &host())
}

fn entry(address: &str, hops: Option<u8>, interface: Option<u32>) -> AddressEntry {
    AddressEntry { address: address.parse().expect("an address and port"), hops, interface }
}

#[test]
fn addresses_are_written_as_for_pvxs() {
    let parse = |text: &str| AddressEntry::parse(text, 5076, &host());
    for (text, expected) in [
        ("10.1.1.1", entry("10.1.1.1:5076", None, None)),
        ("10.1.1.1:99", entry("10.1.1.1:99", None, None)),
        ("localhost:7", entry("127.0.0.1:7", None, None)),
        ("[2600:1234::42]", entry("[2600:1234::42]:5076", None, None)),
        ("[2600:1234::42]:99", entry("[2600:1234::42]:99", None, None)),
        ("224.0.2.3,255@10.1.0.1", entry("224.0.2.3:5076", Some(255), Some(3))),
        ("224.0.2.3:99,3", entry("224.0.2.3:99", Some(3), None)),
        ("224.0.2.3@eth0", entry("224.0.2.3:5076", None, Some(2))),
        ("[ff02::42:1],1@eth1", entry("[ff02::42:1]:5076", Some(1), Some(3))),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
    for (text, why) in [
        ("224.0.2.3@eth0,3", EntryError::Order),
        ("224.0.2.3,0", EntryError::Hops("0".into())),
        ("224.0.2.3,many", EntryError::Hops("many".into())),
        ("224.0.2.3@eth9", EntryError::Interface("eth9".into())),
    ] {
        assert_eq!(parse(text), Err(why), "{text}");
    }
    assert!(matches!(parse("10.1.1.1:77777"), Err(EntryError::Host(why)) if why.contains("not a port")));
}

#[test]
fn the_default_is_what_no_variables_give() {
    assert_eq!(read(&[]), Ok(Environment::default()));
    let Environment { client, server } = Environment::default();
    assert_eq!((client.broadcast_port, server.broadcast_port, server.port), (5076, 5076, 5075));
    assert_eq!((client.auto_targets, server.auto_beacons), (true, true));
    assert_eq!(server.session().silence_timeout, Duration::from_secs(40));
    assert_eq!(server.session().echo_every, Duration::from_secs(15));
}

#[test]
fn a_server_prefers_its_own_variables_and_falls_back_to_the_clients() {
    let both = [
        ("EPICS_PVA_ADDR_LIST", "10.0.0.7 10.0.0.8:99 10.0.0.7"),
        ("EPICS_PVA_AUTO_ADDR_LIST", "no"),
        ("EPICS_PVA_BROADCAST_PORT", "6000"),
        ("EPICS_PVA_SERVER_PORT", " 6001 "),
        ("EPICS_PVA_NAME_SERVERS", "10.0.0.9"),
        ("EPICS_PVA_CONN_TMO", "3"),
    ];
    let Environment { client, server } = read(&both).expect("they are right");
    let list = [entry("10.0.0.7:6000", None, None), entry("10.0.0.8:99", None, None)];
    assert_eq!((&client.targets[..], client.auto_targets, client.broadcast_port), (&list[..], false, 6000));
    assert_eq!(client.name_servers, ["10.0.0.9:6001".parse().unwrap()]);
    assert_eq!((&server.beacons[..], server.auto_beacons), (&list[..], false));
    assert_eq!((server.broadcast_port, server.port), (6000, 6001));
    assert_eq!(client.session().silence_timeout, Duration::from_secs(4));
    assert_eq!(client.session().echo_every, Duration::from_millis(1500));

    let own = [
        ("EPICS_PVAS_BEACON_ADDR_LIST", ""),
        ("EPICS_PVAS_AUTO_BEACON_ADDR_LIST", "YES"),
        ("EPICS_PVAS_BROADCAST_PORT", "7000"),
        ("EPICS_PVAS_SERVER_PORT", "0"),
        ("EPICS_PVAS_INTF_ADDR_LIST", "10.0.0.1"),
        ("EPICS_PVAS_IGNORE_ADDR_LIST", "10.0.0.66 10.0.0.67:9"),
    ];
    let Environment { client, server } = read(&[&both[..], &own[..]].concat()).expect("they are right");
    assert_eq!((client.broadcast_port, &client.targets[..]), (6000, &list[..]));
    assert_eq!((server.beacons.len(), server.auto_beacons), (0, true));
    assert_eq!((server.broadcast_port, server.port), (7000, 0));
    assert_eq!(server.interfaces, [entry("10.0.0.1:0", None, None)]);
    assert_eq!(server.ignored, ["10.0.0.66:0".parse().unwrap(), "10.0.0.67:9".parse().unwrap()]);
}

#[test]
fn a_wrong_entry_is_named_with_its_variable() {
    for (name, text, said) in [
        (
            "EPICS_PVA_ADDR_LIST",
            "10.0.0.7 224.1.1.1@eth9",
            "EPICS_PVA_ADDR_LIST: `224.1.1.1@eth9`: this host has no interface",
        ),
        ("EPICS_PVAS_BROADCAST_PORT", "udp", "EPICS_PVAS_BROADCAST_PORT: `udp` is not a port"),
        ("EPICS_PVA_AUTO_ADDR_LIST", "maybe", "EPICS_PVA_AUTO_ADDR_LIST: `maybe` is neither YES nor NO"),
        ("EPICS_PVA_CONN_TMO", "-1", "EPICS_PVA_CONN_TMO: `-1` is not a time"),
        ("EPICS_PVA_CONN_TMO", "nan", "EPICS_PVA_CONN_TMO: `nan` is not a time"),
    ] {
        let wrong = read(&[(name, text)]).expect_err(text);
        assert!(wrong.to_string().starts_with(said), "{wrong}");
    }
}

/// Binds nothing, and gives each port a number of its own.
fn bound(network: &ServerNetwork) -> (Vec<(Address, hodo_io::PortOptions)>, hodo_pva::server::DiscoveryConfig) {
    let mut ports = Vec::new();
    let mut bind = |address: &Address, options: &hodo_io::PortOptions| {
        let mut ip = address.ip().expect("it has one");
        ports.push((address.clone(), options.clone()));
        if ip.port() == 0 {
            ip.set_port(40_000 + ports.len() as u16);
        }
        Ok(Address::Udp(ip))
    };
    let config = network.bind(&host(), 5099, &mut bind).expect("nothing can fail");
    (ports, config)
}

#[test]
fn a_server_of_all_interfaces_is_found_by_broadcasts_groups_and_what_is_passed_on() {
    let network = ServerNetwork {
        beacons: vec![entry("239.1.2.3:5076", Some(9), Some(2)), entry("192.0.2.7:5076", None, None)],
        ..Environment::default().server
    };
    let (ports, config) = bound(&network);
    let addresses: Vec<String> = ports.iter().map(|(address, _)| address.to_string()).collect();
    assert_eq!(addresses, ["0.0.0.0:5076", "[::]:5076", "127.0.0.1:0", "0.0.0.0:0"]);
    let local: IpAddr = Ipv4Addr::new(224, 0, 0, 128).into();
    assert_eq!(ports[0].1.groups, [(local, 1)]);
    assert!(ports[0].1.common && ports[1].1.common && ports[1].1.only_ipv6);
    assert_eq!(ports[3].1.multicast, Some(hodo_io::Multicast { interface: 2, hops: 9 }));
    let to = |port, address: &str| Address::UdpFrom(port, address.parse().unwrap());
    assert_eq!(config.group, Some(to(40_003, "224.0.0.128:5076")));
    let broadcasts = [to(5076, "10.0.0.255:5076"), to(5076, "10.1.255.255:5076")];
    let [group, host] = [to(40_004, "239.1.2.3:5076"), to(5076, "192.0.2.7:5076")];
    assert_eq!(config.beacons, [&[group, host][..], &broadcasts[..]].concat());
    assert_eq!((config.port, config.from, config.interfaces.len(), config.near.len()), (5099, 5076, 0, 4));
}

#[test]
fn a_server_of_one_interface_takes_what_comes_there() {
    let with = |interfaces: Vec<AddressEntry>| ServerNetwork { interfaces, ..Environment::default().server };
    let (ports, config) = bound(&with(vec![entry("10.0.0.1:0", None, None), entry("239.9.9.9:0", None, None)]));
    assert_eq!(config.interfaces, ["10.0.0.1", "255.255.255.255", "10.0.0.255", "239.9.9.9"].map(ip));
    assert_eq!(ports[0].1.groups.len(), 3, "the group on either interface, and that of the loopback");
    assert_eq!(config.beacons, [Address::UdpFrom(5076, "10.0.0.255:5076".parse().unwrap())]);

    let network = with(Vec::new()).or_loopback();
    let (ports, config) = bound(&network);
    assert_eq!(config.interfaces, ["127.0.0.1", "127.255.255.255"].map(ip));
    assert_eq!(ports.len(), 2, "no port of IPv6");
    let mut asked = Vec::new();
    let taken = network.listen(&host(), &mut |address| {
        asked.push(address.to_string());
        let mut ip = address.ip().expect("it has one");
        if ip.port() == 5075 {
            return Err(std::io::ErrorKind::AddrInUse.into());
        }
        ip.set_port(41_000);
        Ok(Address::Tcp(ip))
    });
    assert_eq!(taken.expect("another port is free"), [Address::Tcp("127.0.0.1:41000".parse().unwrap())]);
    assert_eq!(asked, ["127.0.0.1:5075", "127.0.0.1:0"]);
    // A port that somebody has named is not another one.
    let named = ServerNetwork { may_move: false, ..network };
    let mut asked = 0;
    let refused = named.listen(&host(), &mut |_| {
        asked += 1;
        Err(std::io::ErrorKind::AddrInUse.into())
    });
    assert_eq!((refused.map_err(|why| why.kind()), asked), (Err(std::io::ErrorKind::AddrInUse), 1));
}

#[test]
fn a_server_listens_at_an_address_of_a_link_with_its_interface() {
    let listened = |interfaces: Vec<AddressEntry>| {
        let network = ServerNetwork { interfaces, ..Environment::default().server };
        network.listen(&host(), &mut |address| Ok(address.clone())).expect("it listens")
    };
    for (listed, expected) in [
        (entry("[fe80::1]:0", None, None), "[fe80::1%3]:5075"),
        (entry("[fe80::1%7]:0", None, None), "[fe80::1%7]:5075"),
        (entry("[fe80::1]:9", None, Some(8)), "[fe80::1%8]:9"),
        (entry("[fd00::1]:0", None, Some(8)), "[fd00::1]:5075"),
    ] {
        assert_eq!(listened(vec![listed]), [Address::Tcp(expected.parse().expect("an address"))]);
    }
}

#[test]
fn a_client_searches_by_broadcast_on_every_interface_and_on_this_host() {
    let client = ClientNetwork {
        targets: vec![entry("192.0.2.7:99", None, None), entry("239.1.2.3:5076", None, Some(3))],
        ..Environment::default().client
    };
    let bound = |client: &ClientNetwork, hears: bool| {
        let mut ports: Vec<(String, hodo_io::PortOptions)> = Vec::new();
        let mut bind = |address: &Address, options: &hodo_io::PortOptions| {
            let mut ip = address.ip().expect("it has one");
            ports.push((address.to_string(), options.clone()));
            if ip.port() == 0 {
                ip.set_port(40_000 + ports.len() as u16);
            }
            Ok(Address::Udp(ip))
        };
        let config = client.bind(&host(), hears, &mut bind).expect("nothing can fail");
        (ports, config)
    };
    let (ports, config) = bound(&client, true);
    let addresses: Vec<&str> = ports.iter().map(|port| port.0.as_str()).collect();
    assert_eq!(addresses, ["0.0.0.0:0", "0.0.0.0:5076", "[::]:5076", "127.0.0.1:0", "0.0.0.0:0"]);
    let groups = [(ip("239.1.2.3"), 3), (ip("224.0.0.128"), 1)];
    assert_eq!(ports[1].1.groups, groups);
    let target = |port, to: &str, is_unicast| hodo_pva::discovery::Target {
        address: Address::UdpFrom(port, to.parse().unwrap()),
        is_unicast,
    };
    let expected = [
        target(40_001, "192.0.2.7:99", true),
        target(40_005, "239.1.2.3:5076", false),
        target(40_001, "10.0.0.255:5076", false),
        target(40_001, "10.1.255.255:5076", false),
        target(40_001, "127.255.255.255:5076", false),
    ];
    assert_eq!(config.targets, expected);
    assert_eq!(
        (config.from, config.group),
        (40_001, Some(Address::UdpFrom(40_004, "224.0.0.128:5076".parse().unwrap())))
    );

    let one = ClientNetwork { interfaces: vec![entry("10.0.0.1:0", None, None)], targets: Vec::new(), ..client };
    let (ports, config) = bound(&one, false);
    assert_eq!(ports.len(), 1, "nobody else's port is shared");
    assert_eq!(config.targets, [target(40_001, "10.0.0.255:5076", false)]);
}
