//! The client of a program, against the server of a program, over sockets.

use hodo_pva_host::client::{Client, ClientError, ClientOptions, Notice, Trouble};
use hodo_pva_host::machines::client::Kind;
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::server::{AccessList, AccessRule, Rights};
use hodo_pva_host::machines::{Item, Request, Scalar, Type, Value};
use hodo_pva_host::server::{Call, ClientName, Server, ServerOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn server() -> Server {
    let options = ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into());
    Server::start(options).unwrap()
}

fn client_of(server: &Server) -> Client {
    client_at(&server.address().to_string())
}

fn client_at(server: &str) -> Client {
    Client::open(&ClientOptions { server: Some(server.into()), timeout: SOON, ..ClientOptions::default() }).unwrap()
}

fn double() -> Value {
    Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build())
}

fn number(value: &Value) -> f64 {
    value.get("value").and_then(Item::as_f64).unwrap()
}

#[test]
fn gets_puts_and_describes_by_name() {
    let server = server();
    let _pv = server.pv("A", double()).accept_puts().serve();
    let mut client = client_of(&server);
    assert_eq!(number(&client.get("A").unwrap()), 0.0);
    client.put("A", |value| value.set("value", 2.5)).unwrap();
    assert_eq!(number(&client.get("A").unwrap()), 2.5);
    assert_eq!(client.info("A", "").unwrap(), *double().plan().of());
    assert_eq!(client.info("A", "alarm.severity").unwrap(), Type::from(Scalar::I32));
    // A URI names the server.
    assert_eq!(number(&client.get(&format!("pva://{}/A", server.address())).unwrap()), 2.5);
}

#[test]
fn a_monitor_goes_on_over_a_restart_of_the_server() {
    let server = server();
    let pv = server.pv("A", double()).serve();
    let mut client = client_of(&server);
    let monitor = client.monitor("A", &Request::default()).unwrap();
    assert_eq!(number(client.next_update(monitor, SOON).unwrap().unwrap().value), 0.0);
    pv.update(|value| value.set("value", 1.0)).unwrap();
    let update = client.next_update(monitor, SOON).unwrap().unwrap();
    assert_eq!((number(update.value), update.overrun.is_empty()), (1.0, true));
    assert!(client.next_update(monitor, Duration::from_millis(10)).unwrap().is_none());
    assert_eq!(client.outcome(monitor), None);
    let (channel, at) = (client.channel_of(monitor), server.address());
    assert!(client.is_open(channel));
    server.stop().unwrap();
    drop((server, pv));
    while client.is_open(channel) {
        client.next_notice(SOON).unwrap();
    }
    assert!(matches!(client.trouble(channel), Some(Trouble::Lost(_))), "{:?}", client.trouble(channel));
    let again = Server::start(ServerOptions { is_found: false, ..ServerOptions::default() }.at(at)).unwrap();
    assert_eq!(again.address(), at);
    let mut value = double();
    value.set("value", 7.0).unwrap();
    let _pv = again.pv("A", value).serve();
    assert_eq!(number(client.next_update(monitor, SOON).unwrap().unwrap().value), 7.0);
    client.finish(monitor);
    assert_eq!(number(&client.get("A").unwrap()), 7.0);
}

#[test]
fn one_wait_serves_many_monitors() {
    let server = server();
    let pvs: Vec<_> = (0..100).map(|at| server.pv(format!("P{at}"), double()).serve()).collect();
    let mut client = client_of(&server);
    let monitors: Vec<_> = (0..100).map(|at| client.monitor(&format!("P{at}"), &Request::default()).unwrap()).collect();
    let mut told = vec![Vec::new(); monitors.len()];
    let mut is_posted = false;
    while told.iter().any(|values: &Vec<f64>| values.last() != Some(&1.0)) {
        let notice = client.next_notice(SOON).unwrap().expect("each has an update");
        if let Notice::Monitor(monitor) = notice {
            let at = monitors.iter().position(|known| *known == monitor).unwrap();
            while let Some(update) = client.take_update(monitor) {
                told[at].push(number(update.value));
            }
        }
        if !is_posted && told.iter().all(|values| !values.is_empty()) {
            is_posted = true;
            pvs.iter().for_each(|pv| _ = pv.update(|value| value.set("value", 1.0)).unwrap());
        }
    }
    assert!(told.iter().all(|values| *values == [0.0, 1.0]));
}

#[test]
fn ten_thousand_names_at_once() {
    let server = server();
    let mut value = double();
    let _pvs: Vec<_> = (0..10_000)
        .map(|at| {
            value.set("value", at).unwrap();
            server.pv(format!("P{at}"), value.clone()).serve()
        })
        .collect();
    let mut client = client_of(&server);
    let mut names: Vec<String> = (0..10_000).map(|at| format!("P{at}")).collect();
    names[17] = "absent".into();
    names[18] = String::new();
    names[19] = "P20".into();
    let values = client.read_many(&names, &"field(value)".parse().unwrap()).unwrap();
    for (at, value) in values.iter().enumerate() {
        match at {
            17 => assert!(matches!(value.as_ref().unwrap_err().trouble(), Some(Trouble::NotOpened(_)))),
            18 => assert!(matches!(value.as_ref().unwrap_err().trouble(), Some(Trouble::Name(_)))),
            at => assert_eq!(number(value.as_ref().unwrap()), if at == 19 { 20 } else { at } as f64),
        }
    }
}

#[test]
fn calls_bring_a_value_nothing_or_a_refusal() {
    let server = server();
    let answer = |call: Call| match call.argument.as_ref().and_then(|argument| argument.get("query.n")?.as_f64()) {
        Some(n) if n < 0.0 => call.refuse("too small"),
        Some(n) => {
            let mut value = double();
            value.set("value", 2.0 * n).unwrap();
            call.reply(Some(value));
        }
        None => call.reply(None),
    };
    let _pv = server.pv("twice", double()).on_call(answer).serve();
    let mut client = client_of(&server);
    let uri = |n: &str| Some(hodo_pva_host::parse::uri("twice", [("n", n)]).unwrap());
    assert_eq!(number(&client.call("twice", uri("21")).unwrap().unwrap()), 42.0);
    assert_eq!(client.call("twice", None).unwrap(), None);
    let why = client.call("twice", uri("-1")).unwrap_err();
    assert!(
        matches!(why.trouble(), Some(Trouble::Refused(_)))
            && why.to_string().contains("twice: ")
            && why.to_string().contains("too small")
    );
}

#[test]
fn a_failure_names_the_channel_and_the_reason() {
    let server = server();
    let _pv = server.pv("A", double()).serve();
    let mut client = client_of(&server);
    let told = |why: Result<(), ClientError>| why.unwrap_err().to_string();
    assert!(told(client.get("B").map(drop)).starts_with("B: the server does not open it"));
    assert_eq!(
        told(client.put("A", |value| value.set("value", true).and(value.set("x", 1)))),
        "A: there is no such field"
    );
    assert_eq!(told(client.put("A", |value| value.set("value", 1.0))), "A: error: the channel can only be read");
    assert!(told(client.info("A", "x").map(drop)).starts_with("A: error"));
    assert!(
        told(client.get("pva://127.0.0.1:x/A").map(drop))
            .starts_with("pva://127.0.0.1:x/A: server 127.0.0.1:x has no address")
    );
    // What has failed leaves nothing behind.
    assert_eq!(number(&client.get("A").unwrap()), 0.0);
    // A port where nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = free.local_addr().unwrap();
    client.timeout = Duration::from_millis(300);
    // One who listens and says nothing.
    let silent = told(client.get(&format!("pva://{at}/A")).map(drop));
    assert!(
        silent.ends_with("not connected within 0.3 s: check the name, and that its server runs and can be reached"),
        "{silent}"
    );
    drop(free);
    let mut other = client_at(&at.to_string());
    other.timeout = Duration::from_millis(300);
    let told = told(other.get("A").map(drop));
    assert!(told.starts_with(&format!("A: server {at} is not reached: ")), "{told}");
}

#[test]
fn prepared_operations_are_executed_together_again_and_again() {
    let server = server();
    let _pvs: Vec<_> = (0..50).map(|at| server.pv(format!("P{at}"), double()).accept_puts().serve()).collect();
    let mut client = client_of(&server);
    let request = "field(value)".parse().unwrap();
    let gets: Vec<_> = (0..50)
        .map(|at| {
            let channel = client.channel(&format!("P{at}")).unwrap();
            client.prepare(channel, Kind::Get, &request)
        })
        .collect();
    for round in 0..5 {
        client.put("P7", |value| value.set("value", round)).unwrap();
        gets.iter().for_each(|get| client.execute(*get));
        assert_eq!(client.outcome(gets[0]), None);
        client.finish_all().unwrap();
        for (at, get) in gets.iter().enumerate() {
            assert_eq!(client.outcome(*get), Some(Ok(())));
            assert_eq!(number(client.value(*get).unwrap()), if at == 7 { f64::from(round) } else { 0.0 });
        }
    }
    let channel = client.channel("P7").unwrap();
    client.close(channel);
    assert_eq!(client.outcome(gets[7]), None);
    assert_eq!(number(&client.get("P7").unwrap()), 4.0);
}

#[test]
fn a_client_moves_to_another_thread_with_its_handles() {
    let server = server();
    let _pv = server.pv("A", double()).serve();
    let mut client = client_of(&server);
    let monitor = client.monitor("A", &Request::default()).unwrap();
    let first = std::thread::spawn(move || number(client.next_update(monitor, SOON).unwrap().unwrap().value));
    assert_eq!(first.join().unwrap(), 0.0);
}

#[test]
fn a_pipeline_goes_on_as_soon_as_updates_are_taken() {
    let server = server();
    let pv = server.pv("A", double()).serve();
    let mut client = client_of(&server);
    let monitor = client.monitor("A", &"field(value)record[queueSize=4,pipeline=true]".parse().unwrap()).unwrap();
    assert_eq!(number(client.next_update(monitor, SOON).unwrap().unwrap().value), 0.0);
    let mut value = double();
    for to in 1..=8 {
        value.unmark();
        value.set("value", to).unwrap();
        pv.post(&value).unwrap();
    }
    // All that may be sent has come before the first one is taken, and nothing more comes by itself.
    while server.state(SOON).unwrap().counters.updates < 4 {
        client.poll().unwrap();
    }
    while client.next_notice(Duration::from_millis(50)).unwrap().is_some() {}
    let mut last = 0.0;
    while last < 8.0 {
        let update = client.next_update(monitor, Duration::from_secs(2)).unwrap().expect("the server was told");
        last = number(update.value);
    }
}

#[test]
fn what_can_only_be_written_is_written_without_being_read() {
    let write = Rights { put: true, ..Rights::NONE };
    let rule = |channels: &[&str], rights| {
        let channels = channels.iter().map(ToString::to_string).collect();
        AccessRule { users: vec![], hosts: vec![], subnets: vec![], channels, rights }
    };
    let mut options = ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into());
    options.config.rules = AccessList(vec![rule(&["W"], write), rule(&["R"], Rights::READ)]).into();
    let server = Server::start(options).unwrap();
    let (put, puts) = std::sync::mpsc::channel();
    let keep =
        move |_: &Value, value: &mut Value, _: &ClientName| put.send(number(value)).map_err(|why| why.to_string());
    let _pvs = [server.pv("W", double()).check_puts(keep).serve(), server.pv("R", double()).accept_puts().serve()];
    let mut client = client_of(&server);
    let blind = |client: &mut Client, name: &str, to: f64| {
        client.put_with(name, &Request::default(), false, |value| value.set("value", to))
    };
    assert!(client.put("W", |value| value.set("value", 1.0)).is_err(), "it cannot be read first");
    for to in [2.0, 3.0] {
        blind(&mut client, "W", to).unwrap();
        assert_eq!(puts.recv_timeout(SOON).unwrap(), to);
    }
    // A refusal is told each time, and at once.
    for _ in 0..2 {
        assert!(matches!(blind(&mut client, "R", 4.0).unwrap_err().trouble(), Some(Trouble::Refused(_))));
    }
}

#[test]
fn what_follows_an_execution_that_was_given_up_is_not_given_up() {
    let server = server();
    let (kept, keeps) = (Mutex::new(Vec::new()), Arc::new(AtomicBool::new(true)));
    let still_keeps = Arc::clone(&keeps);
    let reply_or_keep = move |call: Call| match still_keeps.load(Ordering::SeqCst) {
        true => kept.lock().unwrap().push(call),
        false => call.reply(None),
    };
    let _pv = server.pv("A", double()).on_call(reply_or_keep).serve();
    let mut client = client_of(&server);
    client.get("A").unwrap();
    client.timeout = Duration::from_millis(10);
    let why = client.call("A", None).unwrap_err();
    assert!(matches!(why.trouble(), Some(Trouble::NoReply { .. })), "{why}");
    keeps.store(false, Ordering::SeqCst);
    client.timeout = SOON;
    client.call("A", None).map_err(|why| why.to_string()).unwrap();
    client.call("A", None).map_err(|why| why.to_string()).unwrap();
}
