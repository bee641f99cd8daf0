#[path = "../../../../../crates/io/tests/verbs/driver.rs"]
mod driver;

use super::opening::open;
use super::{MemoryKind, VerbsDevice, VerbsSettings};
use crate::{AddressOfQueuePair, Device, DeviceError, Gid, Limits, Region, Reliability};
use driver::Driver;
use hodo_io::Clock;
use hodo_machine::Wait;
use hodo_roce::{Access, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest, Status};
use std::time::Duration;

const LIMITS: Limits =
    Limits { send_depth: 8, receive_depth: 8, send_entries: 2, receive_entries: 2, inline_bytes: 16 };

fn named(device: &str) -> VerbsSettings {
    VerbsSettings { device: Some(device.to_owned()), ..VerbsSettings::default() }
}

fn opened(driver: &Driver, settings: &VerbsSettings) -> VerbsDevice {
    open(driver.library(), settings, Clock::start()).expect("it is there")
}

fn missing(library: &str, settings: &VerbsSettings) -> String {
    text(open(library, settings, Clock::start()).map(|device| device.name().to_owned()))
}

fn text<T: std::fmt::Debug>(result: Result<T, DeviceError>) -> String {
    result.expect_err("it is refused").to_string()
}

fn entry(region: Region, offset: u64, length: u32) -> ScatterEntry {
    ScatterEntry { address: region.address + offset, length, key: region.local_key }
}

/// Creates two queue pairs of the device that are connected to each other.
fn connected(device: &mut VerbsDevice) -> (AddressOfQueuePair, AddressOfQueuePair) {
    let (near, far) = (device.create(&LIMITS).expect("a queue pair"), device.create(&LIMITS).expect("a queue pair"));
    device.connect(&near, &far, &Reliability::default()).expect("connected");
    device.connect(&far, &near, &Reliability::default()).expect("connected");
    (near, far)
}

#[test]
fn a_host_without_the_library_is_told_what_to_install() {
    let text = missing("libno-such-verbs.so.1", &VerbsSettings::default());
    assert!(text.starts_with("no RDMA library (libno-such-verbs.so.1) on this host: install"), "{text}");
    assert!(text.contains("libibverbs1 ibverbs-providers"), "{text}");
}

#[test]
fn a_device_that_is_not_there_is_named_with_a_remedy() {
    let text = missing(hodo_io::verbs::LIBRARY, &named("no-such-device"));
    let is_known = text.starts_with("IB device no-such-device not found: this host has")
        || text.starts_with("No IB devices found: the kernel has no RDMA support loaded");
    assert!(is_known, "{text}");
    let driver = Driver::compile("names");
    let text = missing(driver.library(), &named("mlx5_0"));
    assert_eq!(text, "IB device mlx5_0 not found: this host has old0, new0");
    assert_eq!(opened(&driver, &VerbsSettings::default()).name(), "old0", "the first, if no name is set");
}

#[test]
fn a_capability_that_is_not_there_is_named_as_users_of_verbs_know_it() {
    let driver = Driver::compile("capabilities");
    let with = |change: fn(&mut VerbsSettings)| {
        let mut settings = named("old0");
        change(&mut settings);
        missing(driver.library(), &settings)
    };
    let odp = "The device isn't ODP capable or does not support RC send and receive with ODP: ";
    assert!(with(|settings| settings.memory = MemoryKind::OnDemand { prefetch: false }).starts_with(odp));
    assert!(with(|settings| settings.memory = MemoryKind::Implicit { prefetch: true }).starts_with(odp));
    let dm = with(|settings| settings.memory = MemoryKind::Device);
    assert_eq!(dm, "Device doesn't support dm allocation: use the host's memory");
    let stamps = with(|settings| settings.has_timestamps = true);
    assert_eq!(stamps, "The device isn't completion timestamp capable: take the host's times");
    let port = with(|settings| settings.port = 2);
    assert_eq!(port, "Couldn't get port info: old0 has no port 2; choose one from 1 to 1");
    let gid = with(|settings| settings.gid = Some(9));
    let list = "`ibv_devinfo -v -d old0 -i 1` lists them";
    assert_eq!(gid, format!("can't read sgid of index 9: port 1 of old0 has 4 entries; {list}"));
    let gid = with(|settings| settings.gid = Some(3));
    assert_eq!(gid, format!("can't read sgid of index 3: the entry is empty; {list}"));
}

#[test]
fn a_port_on_ethernet_has_the_gid_of_its_ipv4_address() {
    let driver = Driver::compile("gid");
    let ipv4 = Gid::of([10, 9, 0, 1].into());
    // Entry 1 is the address as well, but its packets cannot be routed.
    assert_eq!(opened(&driver, &named("new0")).gid(), Some((ipv4, 2)));
    let first = opened(&driver, &VerbsSettings { gid: Some(0), ..named("new0") }).gid();
    assert_eq!(first.map(|(gid, index)| (gid.to_string(), index)), Some(("fe80::1".to_owned(), 0)));
    // On InfiniBand the local identifier is enough.
    let mut old = opened(&driver, &named("old0"));
    let address = old.create(&LIMITS).expect("a queue pair");
    assert_eq!((old.gid(), address.lid, address.gid), (None, 7, Gid::default()));
}

#[test]
fn attributes_are_checked_and_passed_on() {
    let driver = Driver::compile("connect");
    let mut device = opened(&driver, &named("new0"));
    let local = device.create(&LIMITS).expect("a queue pair");
    let refused = |device: &mut VerbsDevice, change: fn(&mut Reliability)| {
        let mut reliability = Reliability::default();
        change(&mut reliability);
        text(device.connect(&local, &local, &reliability))
    };
    assert!(refused(&mut device, |reliability| reliability.mtu = 1500).starts_with("a path MTU of 1500: choose 256"));
    assert_eq!(refused(&mut device, |reliability| reliability.retries = 8), "the retries: 8, at most 7 on new0");
    assert_eq!(
        refused(&mut device, |reliability| reliability.reads = 17),
        "the reads in flight: 17, at most 16 on new0"
    );
    let nowhere = AddressOfQueuePair { gid: Gid::default(), ..local };
    let no_gid = text(device.connect(&local, &nowhere, &Reliability::default()));
    assert!(no_gid.starts_with("the far end has no GID"), "{no_gid}");
    let remote = AddressOfQueuePair { psn: 0xabcdef, ..local };
    device
        .connect(&local, &remote, &Reliability { mtu: 4096, service_level: 5, ..Reliability::default() })
        .expect("RTS");
    let log = driver.log();
    let lines: Vec<&str> = log.lines().skip(1).collect();
    let rtr = "rtr mtu 5 psn abcdef reads 1 timer 12 port 1 sl 5 lid 0 global 1 sgid 2 hops 64 last 1";
    let rts = format!("rts psn {:x} timeout 14 retries 7 rnr 7 reads 1", local.psn);
    assert_eq!(lines, ["init port 1 access 0xe", rtr, &rts]);
}

#[test]
fn completions_have_the_timestamps_of_the_device() {
    let driver = Driver::compile("timestamps");
    let mut device = opened(&driver, &VerbsSettings { has_timestamps: true, ..named("new0") });
    let (near, far) = connected(&mut device);
    let region = device.register(64, Access::ALL).expect("a region");
    for wait in [Wait::Spin, Wait::Block, Wait::SpinThenBlock(Duration::from_micros(1)), Wait::Never] {
        device.write(region, 0, b"ping").expect("it is inside");
        let to = [entry(region, 32, 32)];
        device.post_receive(far.number, &ReceiveRequest { id: 1, entries: &to }).expect("there is room");
        let from = [entry(region, 0, 4)];
        let inline = SendRequest { is_inline: true, ..SendRequest::new(2, Operation::Send, &from) };
        device.post_send(near.number, &inline).expect("short enough");
        let (mut found, until) = (Vec::new(), device.now() + Duration::from_secs(10));
        device.poll(wait, until, &mut found).expect("it answers");
        assert_eq!(found.iter().map(|found| (found.id, found.length)).collect::<Vec<_>>(), [(1, 4), (2, 0)]);
        assert_eq!(device.timestamps().len(), 2);
        assert_eq!(device.timestamps()[1] - device.timestamps()[0], 1);
        let mut bytes = [0; 4];
        device.read(region, 32, &mut bytes).expect("it is inside");
        assert_eq!(&bytes, b"ping");
    }
    assert_eq!((device.facts().timestamp_mask, device.facts().core_clock_khz), (u64::MAX >> 16, 156_250));
    let (mut found, until) = (Vec::new(), device.now() + Duration::from_millis(2));
    for wait in [Wait::Spin, Wait::Block, Wait::SpinThenBlock(Duration::from_millis(1)), Wait::Never] {
        device.poll(wait, until, &mut found).expect("it answers");
        assert!(found.is_empty() && device.timestamps().is_empty());
        assert!(wait == Wait::Never || device.now() >= until);
    }
}

#[test]
fn inline_payloads_come_from_regions_only() {
    let driver = Driver::compile("inline");
    let mut device = opened(&driver, &named("new0"));
    let (near, _) = connected(&mut device);
    let region = device.register(16, Access::LOCAL).expect("a region");
    let mut post = |entries: &[ScatterEntry]| {
        let request = SendRequest { is_inline: true, ..SendRequest::new(1, Operation::Send, entries) };
        device.post_send(near.number, &request).map_err(|error| error.to_string())
    };
    let outside = "9 bytes from 8 on are outside of a region of 16 bytes".to_owned();
    assert_eq!(post(&[entry(region, 8, 9)]), Err(outside));
    let other = Err("that is no region of this device".to_owned());
    assert_eq!(post(&[ScatterEntry { key: 1, ..entry(region, 0, 1) }]), other);
    assert_eq!(post(&[ScatterEntry { address: region.address - 1, ..entry(region, 0, 1) }]), other);
}

#[test]
fn memory_on_demand_is_registered_so_and_prefetched() {
    let driver = Driver::compile("on_demand");
    for memory in [MemoryKind::OnDemand { prefetch: true }, MemoryKind::Implicit { prefetch: true }] {
        let mut device = opened(&driver, &VerbsSettings { memory, ..named("new0") });
        device.register(5000, Access::LOCAL).expect("a region");
        let read = text(device.register(5000, Access { remote_read: true, ..Access::LOCAL }));
        assert!(read.starts_with("The device isn't ODP capable for RDMA read"), "{read}");
    }
    let lines = driver.log();
    let calls: Vec<&str> = lines.lines().filter(|line| line.contains("_mr") && *line != "dereg_mr").collect();
    let advice = "advise_mr 1 flags 1, 1 of 5000 bytes";
    assert_eq!(calls, ["reg_mr access 0x41", advice, "reg_mr whole access 0x41", advice]);
}

#[test]
fn device_memory_is_zeroed_and_bounded() {
    let driver = Driver::compile("device_memory");
    let mut device = opened(&driver, &VerbsSettings { memory: MemoryKind::Device, ..named("new0") });
    let (near, _) = connected(&mut device);
    let (first, second) = (device.register(10, Access::ALL), device.register(10, Access::ALL));
    let (first, second) = (first.expect("a region"), second.expect("a region"));
    assert_eq!((first.address, second.address), (0, 0));
    device.write(first, 3, b"abc").expect("it is inside");
    let place = Remote { address: 5, key: second.remote_key };
    let from = [entry(first, 2, 4)];
    device.post_send(near.number, &SendRequest::new(1, Operation::Write(place), &from)).expect("there is room");
    let (mut found, until) = (Vec::new(), device.now() + Duration::from_secs(10));
    device.poll(Wait::Spin, until, &mut found).expect("it answers");
    assert_eq!(found[0].status, Status::Success);
    let mut bytes = [9; 10];
    device.read(second, 0, &mut bytes).expect("it is inside");
    assert_eq!(&bytes, b"\0\0\0\0\0\0abc\0");
    let size = text(device.register(1 << 20, Access::LOCAL));
    assert_eq!(size, "Device memory is insufficient: 1048576 bytes asked for, new0 has 65536");
}

#[test]
fn the_completion_queue_grows_with_the_queue_pairs() {
    let driver = Driver::compile("grows");
    let mut device = opened(&driver, &VerbsSettings { completions: 20, ..named("new0") });
    for _ in 0..2 {
        device.create(&LIMITS).expect("a queue pair");
    }
    assert!(
        driver.log().contains("create_cq 20 with events\ninit port 1 access 0xe\nresize_cq 32\n"),
        "{}",
        driver.log()
    );
    let deep = Limits { receive_depth: 1024, send_depth: 1024, ..LIMITS };
    device.create(&deep).expect("a queue pair");
    let full = text(device.create(&Limits { receive_depth: 1024, ..deep }));
    assert_eq!(full, "4128 outstanding requests: new0 has completion queues of at most 4096; choose smaller depths");
    let deeper = text(device.create(&Limits { send_depth: 1025, ..LIMITS }));
    assert_eq!(deeper, "1025 send requests: new0 has at most 1024");
}

#[test]
fn a_device_that_has_failed_ends_a_wait() {
    let driver = Driver::compile("failed");
    let mut device = opened(&driver, &named("new0"));
    let (near, _) = connected(&mut device);
    device.post_send(near.number, &SendRequest::new(0xDEAD, Operation::Send, &[])).expect("there is room");
    let until = device.now() + Duration::from_secs(10);
    let failed = text(device.poll(Wait::Block, until, &mut Vec::new()));
    assert_eq!(failed, "CQ error of new0: open the device again");
}

#[test]
fn a_device_without_events_can_be_polled_only() {
    let driver = Driver::compile("no_events");
    let mut device = opened(&driver, &VerbsSettings { has_events: false, ..named("new0") });
    let soon = device.now() + Duration::from_millis(1);
    device.poll(Wait::Spin, soon, &mut Vec::new()).expect("it answers");
    let refused = text(device.poll(Wait::Block, soon + Duration::from_millis(1), &mut Vec::new()));
    assert!(refused.contains("opened without events"), "{refused}");
}
