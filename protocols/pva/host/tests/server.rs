//! A server that a program embeds serves, asks its handlers, and says what it merged.

use crate::talk;

use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::wire::Command;
use hodo_pva_host::machines::{Item, Scalar, Value};
use hodo_pva_host::server::{Call, PostError, Posted, Put, Pv, Server, ServerOptions};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;
use talk::Talk;

const LONG: Duration = Duration::from_secs(20);

fn options() -> ServerOptions {
    ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into())
}

fn server() -> Server {
    Server::start(options()).expect("loopback has a free port")
}

fn number(to: f64) -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::F64).time_stamp().build());
    value.set("value", to).expect("it has one");
    value
}

fn posted(pv: &Pv) -> f64 {
    pv.value().get("value").and_then(Item::as_f64).expect("it has one")
}

#[test]
fn a_pv_is_read_updated_and_subscribed_to() {
    let server = server();
    let pv = server.pv("A", number(1.5)).serve();
    assert_eq!(Talk::begin(server.address(), "A", Command::Get, "").execute(None).number(), Some(1.5));
    let mut monitor = Talk::begin(server.address(), "A", Command::Monitor, "record[queueSize=100]");
    assert_eq!(monitor.execute(None).number(), Some(1.5));
    for to in 2..50 {
        pv.update(|value| value.set("value", to)).expect("it fits");
        let update = monitor.next();
        assert_eq!(update.number(), Some(f64::from(to)));
        assert!(update.value.expect("one").time_stamp().expect("it has one").seconds > 1_700_000_000);
    }
    let said = Talk::begin(server.address(), "A", Command::Put, "").put(3.0);
    assert_eq!(said.status.message(), "the channel can only be read");
    assert_eq!(
        pv.update(|value| value.set("absent", 1)).map_err(|why| why.to_string()),
        Err("there is no such field".into())
    );
    assert_eq!(server.state(LONG).expect("it turns").clients.iter().map(|one| one.subscriptions).sum::<usize>(), 1);
}

#[test]
fn puts_are_checked_accepted_and_handled() {
    let server = server();
    let check = |_: &Value, value: &mut Value, _: &_| match value.get("value").and_then(Item::as_f64) {
        Some(to) if to <= 10.0 => Ok(()),
        _ => Err("not above 10".to_owned()),
    };
    let pv = server.pv("CHECKED", number(0.0)).check_puts(check).serve();
    let mut put = Talk::begin(server.address(), "CHECKED", Command::Put, "");
    assert!(put.put(4.0).status.is_success());
    assert_eq!(posted(&pv), 4.0);
    assert_eq!(put.put(11.0).status.message(), "not above 10");
    assert_eq!(Talk::begin(server.address(), "CHECKED", Command::Get, "").execute(None).number(), Some(4.0));
    let handler = |mut put: Put| match put.value.get("value").and_then(Item::as_f64) {
        Some(to) if to < 0.0 => put.refuse("not below 0"),
        Some(to) if to > 100.0 => panic!("a handler's mistake"),
        Some(to) if to > 50.0 => drop(put),
        Some(to) => {
            put.value.set("value", 2.0 * to).expect("it fits");
            put.accept().expect("it fits");
        }
        None => put.done(),
    };
    let pv = server.pv("HANDLED", number(0.0)).on_put(handler).serve();
    let mut put = Talk::begin(server.address(), "HANDLED", Command::Put, "");
    assert!(put.put(4.0).status.is_success());
    assert_eq!(posted(&pv), 8.0);
    assert_eq!(put.put(-1.0).status.message(), "not below 0");
    for to in [60.0, 101.0] {
        assert!(put.put(to).status.message().starts_with("the server's handler has ended without an answer"));
    }
    assert!(put.put(5.0).status.is_success(), "the worker goes on");
    assert_eq!(Talk::begin(server.address(), "HANDLED", Command::Get, "").execute(None).number(), Some(10.0));
}

#[test]
fn calls_run_at_once_and_what_is_too_much_is_refused() {
    let server = Server::start(ServerOptions { workers: 3, waiting_max: 1, ..options() }).expect("a free port");
    let (begun, has_begun) = channel();
    let (go, went) = channel::<()>();
    let went = std::sync::Mutex::new(went);
    let handler = move |call: Call| {
        begun.send(()).expect("the test waits");
        went.lock().expect("it is whole").recv_timeout(LONG).expect("the test goes on");
        let argument = call.argument.as_deref().cloned();
        call.reply(argument);
    };
    let _pv = server.pv("ECHO", number(0.0)).on_call(handler).concurrent(2).serve();
    let at = server.address();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..3)
            .map(|to| {
                let call = scope
                    .spawn(move || Talk::begin(at, "ECHO", Command::Rpc, "").execute(Some(&number(f64::from(to)))));
                if to < 2 {
                    has_begun.recv_timeout(LONG).expect("two run at once");
                }
                call
            })
            .collect();
        // The third one waits, and there is room for no other.
        while server.state(LONG).expect("it turns").waiting == 0 {}
        let refused = Talk::begin(at, "ECHO", Command::Rpc, "").execute(None).status;
        assert!(refused.message().starts_with("too many requests are waiting"), "{refused}");
        (0..3).for_each(|_| go.send(()).expect("it waits"));
        let replies: Vec<_> = calls.into_iter().map(|call| call.join().expect("it is answered").number()).collect();
        assert_eq!(replies, [0.0, 1.0, 2.0].map(Some));
    });
    let said = Talk::begin(at, "ECHO", Command::Put, "").put(1.0);
    assert_eq!(said.status.message(), "the PV can be called, not put");
}

#[test]
fn a_million_updates_arrive_or_are_told_as_merged() {
    let server = server();
    let pv = server.pv("FAST", number(0.0)).serve();
    let mut monitor = Talk::begin(server.address(), "FAST", Command::Monitor, "field(value)record[queueSize=1000]");
    assert_eq!(monitor.execute(None).number(), Some(0.0));
    const UPDATES: u32 = 300_000;
    let poster = pv.clone();
    let thread = std::thread::spawn(move || {
        let mut value = number(0.0);
        value.unmark();
        let merged = (1..=UPDATES).filter(|to| {
            value.set("value", *to).expect("it fits");
            poster.post(&value) == Ok(Posted::Merged)
        });
        merged.count()
    });
    let (mut last, mut updates, mut silent_gaps) = (0.0, 0_u32, 0);
    while last < f64::from(UPDATES) {
        let update = monitor.next();
        let now = update.number().expect("it has one");
        assert!(now > last, "in order");
        silent_gaps += u32::from(now > last + 1.0 && update.overrun.is_empty());
        (last, updates) = (now, updates + 1);
    }
    let merged = thread.join().expect("it posts");
    assert_eq!(silent_gaps, 0, "{updates} updates, {merged} merged by the source");
    assert_eq!(posted(&pv), f64::from(UPDATES));
}

#[test]
fn who_may_not_lose_an_update_waits_for_room() {
    let server = Server::start(ServerOptions { posts_max: 2, ..options() }).expect("a free port");
    let pv = server.pv("EACH", number(0.0)).serve();
    let request = "field(value)record[queueSize=1000,pipeline=false]";
    let mut monitor = Talk::begin(server.address(), "EACH", Command::Monitor, request);
    monitor.execute(None);
    let mut value = number(0.0);
    for batch in 0..100 {
        for to in batch * 10 + 1..=batch * 10 + 10 {
            value.unmark();
            value.set("value", to).expect("it fits");
            pv.post_within(&value, LONG).expect("room in time");
        }
        for to in batch * 10 + 1..=batch * 10 + 10 {
            let update = monitor.next();
            assert_eq!((update.number(), update.overrun.is_empty()), (Some(f64::from(to)), true));
        }
    }
    server.stop().expect("it ends in order");
    // Nobody takes updates any more.
    let ends = (0..4).map(|_| pv.post_within(&value, Duration::from_millis(1))).collect::<Vec<_>>();
    assert_eq!(ends, [Ok(()), Ok(()), Err(PostError::Full), Err(PostError::Full)]);
    assert_eq!(pv.post(&value), Ok(Posted::Merged), "it does not wait");
}

#[test]
fn a_removed_pv_is_gone_and_its_name_is_free() {
    let server = server();
    let first = server.pv("NAME", number(1.0)).serve();
    let mut read = Talk::begin(server.address(), "NAME", Command::Get, "");
    assert_eq!(read.execute(None).number(), Some(1.0));
    let second = server.pv("NAME", number(2.0)).serve();
    first.update(|value| value.set("value", 9)).expect("it fits");
    first.remove();
    second.update(|value| value.set("value", 3)).expect("it fits");
    while server.state(LONG).expect("it turns").pvs != 1 {}
    assert_eq!(Talk::begin(server.address(), "NAME", Command::Get, "").execute(None).number(), Some(3.0));
    second.remove();
    while server.state(LONG).expect("it turns").pvs != 0 {}
}

#[test]
fn the_smallest_example_serves() {
    let example = std::env::current_exe().expect("a test").with_file_name("../examples/serve_one");
    let mut process = std::process::Command::new(example)
        .env("EPICS_PVAS_SERVER_PORT", "0")
        .env("EPICS_PVAS_BROADCAST_PORT", "0")
        .stdout(Stdio::piped())
        .spawn()
        .expect("tests build examples");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says where it listens");
    let at = line.trim().rsplit(' ').next().expect("an address").parse().expect("an address");
    let mut monitor = Talk::begin(at, "DEMO:COUNT", Command::Monitor, "");
    let first = monitor.execute(None).number().expect("a count");
    // The first post of the example may come after the subscription, with the value that is there already.
    let second = monitor.next().number().expect("a count");
    let third = monitor.next().number().expect("a count");
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    assert!(second >= first && third > second, "{first} {second} {third}");
}
