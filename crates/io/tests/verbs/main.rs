//! Native verbs on devices of a library that a test has compiled: what the kernel's software device has not, and the order in which
//! handles may be dropped. `driver.c` ends the program if anything is destroyed that is in use.

mod driver;

use driver::Driver;
use hodo_io::verbs::{
    Capacity, CompletionQueue, Context, Domain, Entry, Error, Library, Operation, Paging, Path, Payload, Placement,
    QueuePair, Region, RemotePlace, Rights, SendWork, State, Timing, WorkCompletion,
};
use std::time::Duration;

const CAPACITY: Capacity =
    Capacity { send_depth: 8, receive_depth: 8, send_entries: 2, receive_entries: 2, inline_bytes: 16 };
const LOCAL: Rights = Rights { local_write: true, remote_write: false, remote_read: false, remote_atomic: false };
const ALL: Rights = Rights { local_write: true, remote_write: true, remote_read: true, remote_atomic: true };

fn open(driver: &Driver, name: &str) -> Context {
    let library = Library::open_named(driver.library()).expect("it was compiled");
    assert_eq!(library.devices().expect("two devices"), ["old0", "new0"]);
    library.open_device(name).expect("it is there")
}

/// Creates a queue pair that is connected to itself.
fn pair(domain: &Domain, completions: &CompletionQueue) -> QueuePair {
    let mut pair = domain.queue_pair(completions, CAPACITY).expect("a queue pair");
    assert_eq!(pair.capacity(), Capacity { inline_bytes: 64, ..CAPACITY });
    let path = Path {
        number: pair.number(),
        psn: 0xabc,
        lid: 0,
        global: Some(([1; 16], 2)),
        hop_limit: 64,
        service_level: 3,
        mtu: 1024,
        port: 1,
    };
    let timing = Timing { timeout: 14, retries: 7, receiver_not_ready_retries: 6, reads: 4 };
    pair.initialize(1, ALL).expect("INIT");
    pair.receive_from(&path, 5, 12).expect("RTR");
    pair.send_from(0xdef, timing).expect("RTS");
    assert_eq!(pair.facts().expect("it answers").state, State::ReadyToSend);
    pair
}

fn taken(completions: &mut CompletionQueue) -> Vec<WorkCompletion> {
    let mut found = Vec::new();
    let count = completions.poll(|completion| found.push(*completion)).expect("it answers");
    assert_eq!(count, found.len());
    found
}

fn entry(region: &Region, offset: u64, length: u32) -> Entry {
    Entry { address: region.address() + offset, length, key: region.local_key() }
}

fn send(id: u64, operation: Operation, payload: Payload<'_>) -> SendWork<'_> {
    SendWork { id, operation, payload, is_signaled: true, is_solicited: false, has_fence: false }
}

#[test]
fn attributes_reach_the_library_as_they_were_set() {
    let driver = Driver::compile("attributes");
    let context = open(&driver, "new0");
    let domain = context.domain().expect("a domain");
    let completions = context.completion_queue(16, true, false).expect("a queue");
    drop(pair(&domain, &completions));
    assert_eq!(
        driver.log(),
        "create_cq 16 with events\n\
         init port 1 access 0xe\n\
         rtr mtu 3 psn abc reads 5 timer 12 port 1 sl 3 lid 0 global 1 sgid 2 hops 64 last 1\n\
         rts psn def timeout 14 retries 7 rnr 6 reads 4\n"
    );
}

#[test]
fn an_old_driver_reports_what_it_has() {
    let driver = Driver::compile("old");
    let context = open(&driver, "old0");
    let facts = context.facts().expect("it answers");
    assert_eq!((facts.firmware.as_str(), facts.queue_depth, facts.device_memory), ("old0", 1024, 0));
    assert_eq!((facts.timestamp_mask, facts.on_demand.explicit, facts.has_atomics), (0, false, false));
    let port = context.port(1).expect("a port");
    assert_eq!((port.is_active, port.lid, port.line_rate), (true, 7, Some(103_125_000_000)));
    assert_eq!(context.port(2), Err(Error::Refused { verb: "ibv_query_port", errno: 22 }));
    let domain = context.domain().expect("a domain");
    let on_device = domain.register(64, LOCAL, Placement::Device).err();
    assert_eq!(on_device, Some(Error::Unsupported("ibv_reg_dm_mr")));
    let stamped = context.completion_queue(16, false, true).err();
    assert_eq!(stamped, Some(Error::Unsupported("ibv_create_cq_ex")));
    let region = domain.register(64, LOCAL, Placement::Host(Paging::OnDemand)).expect("it is not refused here");
    assert_eq!(region.prefetch(), Err(Error::Unsupported("ibv_advise_mr")));
}

#[test]
fn messages_arrive_and_events_announce_them() {
    let driver = Driver::compile("messages");
    for (name, has_timestamps) in [("old0", false), ("new0", false), ("new0", true)] {
        let context = open(&driver, name);
        let domain = context.domain().expect("a domain");
        let mut completions = context.completion_queue(16, true, has_timestamps).expect("a queue");
        let pair = pair(&domain, &completions);
        let mut region = domain.register(100, ALL, Placement::Host(Paging::Pinned)).expect("a region");
        region.write(0, b"hello").expect("it is inside");
        assert!(taken(&mut completions).is_empty());
        completions.arm().expect("armed");
        assert_eq!(completions.wait(Duration::from_millis(1)), Ok(false));
        pair.post_receive(1, &[entry(&region, 50, 3), entry(&region, 60, 10)]).expect("there is room");
        let from = [entry(&region, 0, 5)];
        let work = send(2, Operation::SendWithImmediate(0x0102_0304), Payload::Entries(&from));
        pair.post_send(&work).expect("there is room");
        assert_eq!(completions.wait(Duration::from_secs(10)), Ok(true));
        let found = taken(&mut completions);
        let (received, sent) = (found[0], found[1]);
        assert_eq!((received.id, received.status, received.opcode, received.length), (1, 0, 128, 5));
        assert_eq!((received.immediate, received.invalidated), (Some(0x0102_0304), None));
        assert_eq!((sent.id, sent.status, sent.opcode, sent.immediate), (2, 0, 0, None));
        assert_eq!(received.queue_pair, pair.number());
        let stamps = has_timestamps.then_some((1001, 1002));
        assert_eq!(received.timestamp.zip(sent.timestamp), stamps);
        let mut bytes = [0; 13];
        region.read(50, &mut bytes).expect("it is inside");
        assert_eq!(&bytes, b"hel\0\0\0\0\0\0\0lo\0");
        // Inline bytes need no region, and a failure has a status and the driver's code.
        pair.post_receive(3, &[entry(&region, 0, 8)]).expect("there is room");
        pair.post_send(&send(4, Operation::SendWithInvalidate(9), Payload::Inline(b"abc"))).expect("short enough");
        assert_eq!(taken(&mut completions)[0].invalidated, Some(9));
        let nowhere = RemotePlace { address: region.address(), key: 1 };
        pair.post_send(&send(5, Operation::Write(nowhere), Payload::Inline(b"abc"))).expect("there is room");
        let failed = taken(&mut completions)[0];
        assert_eq!((failed.id, failed.status, failed.vendor_error, failed.timestamp), (5, 10, 77, None));
    }
}

#[test]
fn requests_that_are_too_large_are_refused() {
    let driver = Driver::compile("too_large");
    let context = open(&driver, "new0");
    let domain = context.domain().expect("a domain");
    let completions = context.completion_queue(16, false, false).expect("a queue");
    let pair = pair(&domain, &completions);
    let invalid = |verb| Err(Error::Refused { verb, errno: 22 });
    let entries = [Entry::default(); 3];
    assert_eq!(pair.post_receive(1, &entries), invalid("ibv_post_recv"));
    assert_eq!(pair.post_send(&send(1, Operation::Send, Payload::Entries(&entries))), invalid("ibv_post_send"));
    assert_eq!(pair.post_send(&send(1, Operation::Send, Payload::Inline(&[0; 65]))), invalid("ibv_post_send"));
    for id in 0..8 {
        pair.post_receive(id, &entries[..1]).expect("there is room");
    }
    assert_eq!(pair.post_receive(8, &entries[..1]), Err(Error::Refused { verb: "ibv_post_recv", errno: 12 }));
}

#[test]
fn a_key_of_the_whole_address_space_reaches_its_regions_only() {
    let driver = Driver::compile("whole");
    let context = open(&driver, "new0");
    let domain = context.domain().expect("a domain");
    let mut completions = context.completion_queue(16, false, false).expect("a queue");
    let pair = pair(&domain, &completions);
    let implicit = Placement::Host(Paging::Implicit);
    let mut first = domain.register(64, LOCAL, implicit).expect("a region");
    let second = domain.register(64, LOCAL, implicit).expect("a region");
    assert_eq!(first.local_key(), second.local_key());
    second.prefetch().expect("it can");
    // One that the far end may write has a key of its own.
    let remote = domain.register(64, ALL, implicit).expect("a region");
    assert_ne!(remote.local_key(), first.local_key());
    first.write(0, b"one").expect("it is inside");
    pair.post_receive(1, &[entry(&second, 0, 64)]).expect("it is inside");
    pair.post_send(&send(2, Operation::Send, Payload::Entries(&[entry(&first, 0, 3)]))).expect("it is inside");
    assert_eq!(taken(&mut completions).len(), 2);
    let mut bytes = [0; 3];
    second.read(0, &mut bytes).expect("it is inside");
    assert_eq!(&bytes, b"one");
    let other = Box::new([0_u8; 64]);
    let outside = Entry { address: other.as_ptr().addr() as u64, length: 64, key: first.local_key() };
    assert_eq!(pair.post_receive(3, &[outside]), Err(Error::Refused { verb: "ibv_post_recv", errno: 14 }));
    assert_eq!(
        driver.log().lines().filter(|line| line.contains("_mr")).collect::<Vec<_>>(),
        ["reg_mr whole access 0x41", "advise_mr 1 flags 1, 1 of 64 bytes", "reg_mr access 0x4f"]
    );
}

#[test]
fn device_memory_is_reached_from_its_own_beginning() {
    let driver = Driver::compile("device_memory");
    let context = open(&driver, "new0");
    let domain = context.domain().expect("a domain");
    let mut completions = context.completion_queue(16, false, false).expect("a queue");
    let pair = pair(&domain, &completions);
    let mut here = domain.register(30, ALL, Placement::Device).expect("memory on the device");
    let there = domain.register(30, ALL, Placement::Device).expect("memory on the device");
    assert_eq!((here.address(), there.address()), (0, 0));
    here.write(1, b"abcdef").expect("it is inside");
    let place = RemotePlace { address: 20, key: there.remote_key() };
    pair.post_send(&send(1, Operation::Write(place), Payload::Entries(&[entry(&here, 2, 4)]))).expect("there is room");
    assert_eq!(taken(&mut completions)[0].status, 0);
    let mut bytes = [0; 6];
    there.read(19, &mut bytes).expect("it is inside");
    assert_eq!(&bytes, b"\xEEbcde\xEE");
    let outside = Error::OutOfBounds { offset: 28, length: 6, available: 30 };
    assert_eq!(there.read(28, &mut bytes), Err(outside));
    drop((pair, completions, here, there));
    assert!(driver.log().ends_with("dereg_mr\nfree_dm\ndereg_mr\nfree_dm\n"), "{}", driver.log());
}

#[test]
fn an_asynchronous_event_ends_a_wait() {
    let driver = Driver::compile("event");
    let context = open(&driver, "new0");
    let domain = context.domain().expect("a domain");
    let mut completions = context.completion_queue(16, true, false).expect("a queue");
    let pair = pair(&domain, &completions);
    assert_eq!(context.event(), None);
    pair.post_send(&send(0xDEAD, Operation::Send, Payload::Inline(&[]))).expect("there is room");
    completions.arm().expect("armed");
    assert_eq!(completions.wait(Duration::from_secs(10)), Ok(false));
    let event = context.event().expect("it is there");
    assert_eq!((event.text.as_str(), event.is_fatal), ("CQ error", true));
    assert_eq!(context.event(), None);
    assert!(driver.log().ends_with("ack_async_event 0\n"));
}

#[test]
fn handles_keep_alive_what_they_were_made_from() {
    let driver = Driver::compile("order");
    let context = open(&driver, "new0");
    let domain = context.domain().expect("a domain");
    let completions = context.completion_queue(16, true, true).expect("a queue");
    let pair = pair(&domain, &completions);
    let region = domain.register(64, LOCAL, Placement::Host(Paging::Implicit)).expect("a region");
    drop(context);
    drop(domain);
    drop(completions);
    drop(region);
    assert!(!driver.log().contains("dereg_mr"), "the queue pair may still use it");
    drop(pair);
    assert!(driver.log().ends_with("dereg_mr\nclose_device\n"), "{}", driver.log());
}

#[test]
fn a_queue_without_events_cannot_be_waited_for() {
    let driver = Driver::compile("no_events");
    let mut completions = open(&driver, "new0").completion_queue(16, false, false).expect("a queue");
    assert!(matches!(completions.wait(Duration::ZERO), Err(Error::Unsupported(_))));
    completions.resize(100).expect("it can");
    assert_eq!(completions.entries(), 100);
}
