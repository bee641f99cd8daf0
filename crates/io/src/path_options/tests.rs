use super::*;
use crate::connect;
use crate::{Listener, SocketSettings};
use std::net::Ipv4Addr;

/// An address of loopback that no other test binds to, so that its ports are free.
const OWN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 77);

fn tcp(text: &str) -> Address {
    Address::Tcp(text.parse().expect("an address"))
}

fn marked() -> PathOptions {
    PathOptions { dscp: Dscp::new(46), ttl: Some(7), mss: Some(536), ..PathOptions::default() }
}

/// Returns a connection to a listener with these options at both ends, and the accepted end.
fn connected(at: &str, path: &PathOptions) -> (OwnedFd, OwnedFd) {
    let listener = Listener::bind_with(&tcp(at), path).expect("a free port");
    let settings = SocketSettings { path: path.clone(), ..SocketSettings::default() };
    let (near, _) = connect::stream(listener.address(), &settings).expect("it listens");
    sys::wait_ready(near.as_fd(), std::time::Duration::from_secs(5)).expect("it connects");
    let (far, _) = listener.accept().expect("it accepts").expect("one has connected");
    (near, far)
}

fn option(fd: &OwnedFd, level: i32, name: i32) -> i32 {
    sys::option(fd.as_fd(), level, name).expect("the kernel knows it")
}

/// Returns a port of which the next ones are free, too.
fn free_ports() -> u16 {
    let probe = std::net::TcpListener::bind((OWN, 0)).expect("loopback");
    probe.local_addr().expect("it is bound").port().min(60_000)
}

#[test]
fn code_points_have_numbers_and_names() {
    let numbers = ["0", "63", "ef", "EF", "af11", "af23", "af43", "cs0", "cs7", "le"];
    let codes = numbers.map(|text| text.parse::<Dscp>().expect(text).code());
    assert_eq!(codes, [0, 63, 46, 46, 10, 22, 38, 0, 56, 1]);
    for wrong in ["64", "-1", "af44", "af51", "af10", "cs8", "cs", "af1", "best"] {
        assert!(wrong.parse::<Dscp>().expect_err(wrong).contains("0..63"));
    }
}

#[test]
fn local_addresses_have_ports_or_none() {
    for (text, printed) in
        [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("[::1]:5000", "[::1]:5000"), ("127.0.0.1:7", "127.0.0.1:7")]
    {
        assert_eq!(text.parse::<LocalAddress>().expect(text).to_string(), printed);
    }
    assert!("127.0.0.1:99999".parse::<LocalAddress>().expect_err("a port").contains("not a port"));
}

#[test]
fn the_kernel_has_the_options_of_ipv4() {
    let (near, far) = connected("127.0.0.1:0", &marked());
    for end in [&near, &far] {
        assert_eq!(option(end, libc::IPPROTO_IP, libc::IP_TOS) >> 2, 46);
        assert_eq!(option(end, libc::IPPROTO_IP, libc::IP_TTL), 7);
        assert!((400..=536).contains(&option(end, libc::IPPROTO_TCP, libc::TCP_MAXSEG)));
    }
}

#[test]
fn the_kernel_has_the_options_of_ipv6() {
    let (near, far) = connected("[::1]:0", &marked());
    for end in [&near, &far] {
        assert_eq!(option(end, libc::IPPROTO_IPV6, libc::IPV6_TCLASS) >> 2, 46);
        assert_eq!(option(end, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS), 7);
        assert!((400..=536).contains(&option(end, libc::IPPROTO_TCP, libc::TCP_MAXSEG)));
    }
}

#[test]
fn datagrams_have_the_options_to_groups_too() {
    for text in ["127.0.0.1:9", "[::1]:9"] {
        let address = Address::Udp(text.parse().expect("an address"));
        let (fd, _) = socket_for(&address, libc::SOCK_DGRAM).expect("a socket");
        marked().prepare(fd.as_fd(), &address).expect("the kernel takes them");
        assert_eq!(option(&fd, libc::IPPROTO_IP, libc::IP_TOS) >> 2, 46);
        assert_eq!(option(&fd, libc::IPPROTO_IP, libc::IP_MULTICAST_TTL), 7);
        if text.starts_with('[') {
            assert_eq!(option(&fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS), 7);
        }
    }
}

#[test]
fn only_what_is_chosen_is_set() {
    let (near, _far) = connected("127.0.0.1:0", &PathOptions::default());
    assert_eq!(option(&near, libc::IPPROTO_IP, libc::IP_TOS), 0);
    assert!(option(&near, libc::IPPROTO_TCP, libc::TCP_MAXSEG) > 536);
    assert_eq!(sys::text(near.as_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE).expect("a text"), "");
}

#[test]
fn a_device_confines_a_socket() {
    let (near, far) = connected("127.0.0.1:0", &PathOptions { device: Some("lo".into()), ..PathOptions::default() });
    for end in [near, far] {
        assert_eq!(sys::text(end.as_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE).expect("a text"), "lo");
    }
}

#[test]
fn each_socket_has_the_next_port() {
    let first = free_ports();
    let local = LocalAddress::new(SocketAddr::new(OWN.into(), first));
    let path = PathOptions { local: Some(local), ..PathOptions::default() }.for_sockets(3);
    assert_eq!(path.check(Transport::Stream), Ok(()));
    let ports: Vec<u16> = (0..4)
        .map(|_| {
            let (near, _far) = connected("127.0.0.1:0", &path);
            let local = sys::local_address(near.as_fd()).expect("it is bound").to_ip().expect("an address");
            assert_eq!(local.ip(), IpAddr::from(OWN));
            local.port()
        })
        .collect();
    assert_eq!(ports, [first, first + 1, first + 2, first]);
}

#[test]
fn an_address_alone_leaves_the_port_to_the_kernel() {
    let path = PathOptions { local: "127.0.0.78".parse().ok(), ..PathOptions::default() };
    let (near, _far) = connected("127.0.0.1:0", &path);
    let local = sys::local_address(near.as_fd()).expect("it is bound").to_ip().expect("an address");
    assert!(local.to_string().starts_with("127.0.0.78:") && local.port() > 0);
}

#[test]
fn what_cannot_be_had_is_named() {
    let wrong = |path: PathOptions| path.check(Transport::Stream).expect_err("the kernel refuses it");
    let of_device = |name: &str| wrong(PathOptions { device: Some(name.to_owned()), ..PathOptions::default() });
    let of_local = |text: &str| wrong(PathOptions { local: text.parse().ok(), ..PathOptions::default() });
    for name in ["nonesuch0", "a-name-of-more-than-fifteen", ""] {
        assert_eq!(of_device(name), PathError::NoDevice { device: name.to_owned() });
    }
    assert_eq!(of_local("192.0.2.1"), PathError::NotHere { ip: [192, 0, 2, 1].into() });
    let listener = std::net::TcpListener::bind((OWN, 0)).expect("loopback");
    let taken = listener.local_addr().expect("it is bound");
    assert_eq!(of_local(&taken.to_string()), PathError::InUse { address: taken });
    let local = "127.0.0.77:65535".parse().ok();
    let many = PathOptions { local, ..PathOptions::default() }.for_sockets(2);
    assert_eq!(many.check(Transport::Datagram), Err(PathError::PortsEnd { first: 65_535, sockets: 2 }));
    let small = wrong(PathOptions { mss: Some(1), ..PathOptions::default() });
    assert_eq!(small.culprit(), ("mss", "1".to_owned()));
}
