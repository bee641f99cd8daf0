//! The client of a program of many threads, against the server of a program, over sockets.

use hodo_pva_host::client::{ClientError, ClientOptions, Trouble};
use hodo_pva_host::context::{ConnectionState, MonitorEvent};
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::server::{AccessList, AccessRule, Rights};
use hodo_pva_host::machines::{Item, Request, Scalar, Type, Value};
use hodo_pva_host::server::{Call, ClientName, Put, Server, ServerOptions};
use hodo_pva_host::{Context, ContextOptions};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(100);

fn server_at(at: SocketAddr) -> Server {
    Server::start(ServerOptions { is_found: false, ..ServerOptions::default() }.at(at)).unwrap()
}

fn server() -> Server {
    server_at(([127, 0, 0, 1], 0).into())
}

fn options(at: SocketAddr) -> ContextOptions {
    let client = ClientOptions { server: Some(at.to_string()), timeout: SOON, ..ClientOptions::default() };
    ContextOptions::of(client)
}

fn context(server: &Server) -> Context {
    Context::open(&options(server.address())).unwrap()
}

fn double() -> Value {
    Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build())
}

fn number(value: &Value) -> f64 {
    value.get("value").and_then(Item::as_f64).unwrap()
}

/// A server in a process of its own, with the PV `DEMO:COUNT`.
struct Process(Child, SocketAddr);

impl Process {
    fn start(port: u16) -> Process {
        let example = std::env::current_exe().unwrap().with_file_name("../examples/serve_one");
        let mut process = std::process::Command::new(example)
            .env("EPICS_PVAS_SERVER_PORT", port.to_string())
            .env("EPICS_PVAS_BROADCAST_PORT", "0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests build examples");
        let mut line = String::new();
        let said = process.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).unwrap();
        let at = line.trim().rsplit(' ').next().unwrap().parse().expect("an address");
        Process(process, at)
    }

    fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        // The signal has come once the kernel says so.
        let stands = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap().contains(") T ");
        while stands() != (signal == "-STOP") {}
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn many_threads_get_put_call_and_describe_at_once() {
    let server = server();
    let _pvs: Vec<_> = (0..16).map(|at| server.pv(format!("P{at}"), double()).accept_puts().serve()).collect();
    let _echo = server
        .pv("echo", double())
        .on_call(|call: Call| {
            let argument = call.argument.as_deref().cloned();
            call.reply(argument);
        })
        .serve();
    let context = context(&server);
    std::thread::scope(|scope| {
        for at in 0..16 {
            let context = context.clone();
            scope.spawn(move || {
                let name = format!("P{at}");
                for round in 0..50 {
                    context.put(&name, |value| value.set("value", round)).unwrap();
                    assert_eq!(number(&context.get(&name).unwrap()), f64::from(round));
                }
                let mut argument = double();
                argument.set("value", at).unwrap();
                assert_eq!(number(&context.call("echo", Some(argument)).unwrap().unwrap()), f64::from(at));
                assert_eq!(context.info(&name, "alarm.severity").unwrap(), Type::from(Scalar::I32));
                // Many executions of one channel at once.
                let gets: Vec<_> =
                    (0..20).map(|_| context.begin_get("P0", &"field(value)".parse().unwrap()).unwrap()).collect();
                gets.into_iter().for_each(|get| assert!(get.wait().is_ok()));
            });
        }
    });
    assert_eq!(server.state(SOON).unwrap().clients.len(), 1, "one connection for all threads");
}

#[test]
fn thousands_of_channels_are_read_and_watched() {
    let server = server();
    let pvs: Vec<_> = (0..3000).map(|at| server.pv(format!("P{at}"), double()).serve()).collect();
    let context = context(&server);
    let mut names: Vec<String> = (0..3000).map(|at| format!("P{at}")).collect();
    let (tell, told) = channel();
    let monitors: Vec<_> = names
        .iter()
        .map(|name| {
            let tell = tell.clone();
            let callback = move |event| {
                if let MonitorEvent::Update(update) = event {
                    let _ = tell.send(number(&update.value));
                }
            };
            context.monitor_with(name, &Request::default(), callback).unwrap()
        })
        .collect();
    (0..3000).for_each(|_| assert_eq!(told.recv_timeout(SOON), Ok(0.0)));
    pvs.iter().for_each(|pv| _ = pv.update(|value| value.set("value", 1.0)).unwrap());
    (0..3000).for_each(|_| assert_eq!(told.recv_timeout(SOON), Ok(1.0)));
    names[7] = "absent".into();
    names[8] = String::new();
    let values = context.read_many(&names, &"field(value)".parse().unwrap());
    for (at, value) in values.iter().enumerate() {
        match at {
            7 => assert!(matches!(value.as_ref().unwrap_err().trouble(), Some(Trouble::NotOpened(_)))),
            8 => assert!(matches!(value.as_ref().unwrap_err().trouble(), Some(Trouble::Name(_)))),
            _ => assert_eq!(number(value.as_ref().unwrap()), 1.0),
        }
    }
    drop(monitors);
    while server.state(SOON).unwrap().clients[0].subscriptions > 0 {}
}

#[test]
fn callbacks_may_call_whatever_waits() {
    let server = server();
    let source = server.pv("SOURCE", double()).serve();
    let _target = server.pv("TARGET", double()).accept_puts().serve();
    // One worker for all callbacks: none of what they wait for needs another.
    let context = Context::open(&ContextOptions { workers: 1, ..options(server.address()) }).unwrap();
    let (tell, told) = channel();
    let own = context.clone();
    let callback = move |event| {
        let MonitorEvent::Update(update) = event else { return };
        own.put("TARGET", |value| value.set("value", number(&update.value))).unwrap();
        own.info("TARGET", "").unwrap();
        let mut inner = own.monitor("TARGET", &Request::default()).unwrap();
        let seen = inner.next_update(SOON).unwrap().unwrap();
        tell.send((number(&own.get("TARGET").unwrap()), number(&seen.value))).unwrap();
        assert!(number(&update.value) < 2.5, "a panic ends nothing but the callback");
    };
    let monitor = context.monitor_with("SOURCE", &Request::default(), callback).unwrap();
    assert_eq!(told.recv_timeout(SOON), Ok((0.0, 0.0)));
    for to in [1.0, 2.0, 3.0, 4.0] {
        source.update(|value| value.set("value", to)).unwrap();
        assert_eq!(told.recv_timeout(SOON), Ok((to, to)));
    }
    let (tell, told) = channel();
    let own = context.clone();
    let then = move |got: Result<Value, ClientError>| {
        tell.send((number(&got.unwrap()), number(&own.get("SOURCE").unwrap()))).unwrap();
    };
    context.begin_get("TARGET", &Request::default()).unwrap().then(then);
    assert_eq!(told.recv_timeout(SOON), Ok((4.0, 4.0)));
    // Neither the callback's clone nor the monitor keeps what is closed alive.
    context.close();
    drop(monitor);
}

#[test]
fn a_pipelined_monitor_loses_nothing_however_slowly_it_is_taken() {
    let server = server();
    let pv = server.pv("EACH", double()).serve();
    let context = Context::open(&ContextOptions { updates_max: 2, ..options(server.address()) }).unwrap();
    let mut monitor =
        context.monitor("EACH", &"field(value)record[queueSize=4,pipeline=true]".parse().unwrap()).unwrap();
    assert_eq!(number(&monitor.next_update(SOON).unwrap().unwrap().value), 0.0);
    let poster = std::thread::spawn(move || {
        let mut value = double();
        for to in 1..=8 {
            value.unmark();
            value.set("value", to).unwrap();
            pv.post(&value).unwrap();
        }
    });
    poster.join().unwrap();
    // The server may send four; two more wait here. Whatever it has sent by now, the rest comes as these are taken.
    let mut last = 0.0;
    while last < 8.0 {
        let update = monitor.next_update(Duration::from_secs(2)).unwrap().expect("the server is told");
        assert!(number(&update.value) == last + 1.0 || !update.overrun.is_empty(), "{last}");
        last = number(&update.value);
    }
}

#[test]
fn what_a_slow_reader_misses_is_told() {
    let server = server();
    let pv = server.pv("FAST", double()).serve();
    let context = Context::open(&ContextOptions { updates_max: 3, ..options(server.address()) }).unwrap();
    let mut monitor = context.monitor("FAST", &"field(value)".parse().unwrap()).unwrap();
    let mut last = number(&monitor.next_update(SOON).unwrap().unwrap().value);
    (1..=500).for_each(|to| _ = pv.update(|value| value.set("value", to)).unwrap());
    let mut updates = 0;
    while last < 500.0 {
        let update = monitor.next_update(SOON).unwrap().unwrap();
        let now = number(&update.value);
        assert!(now == last + 1.0 || (now > last && !update.overrun.is_empty()), "{last} {now}");
        (last, updates) = (now, updates + 1);
    }
    assert!(updates <= 500);
    drop(server);
}

#[test]
fn a_killed_server_is_told_and_monitors_go_on_at_the_next() {
    let first = Process::start(0);
    let context = Context::open(&options(first.1)).unwrap();
    let (tell, states) = channel();
    let _watch = context.watch("DEMO:COUNT", move |state| tell.send(state).unwrap()).unwrap();
    let mut monitor = context.monitor("DEMO:COUNT", &Request::default()).unwrap();
    assert!(number(&monitor.next_update(SOON).unwrap().unwrap().value) >= 0.0);
    let connected = |wanted: bool| {
        while matches!(states.recv_timeout(SOON).unwrap(), ConnectionState::Connected(_)) != wanted {}
    };
    connected(true);
    let at = first.1;
    drop(first);
    connected(false);
    // Nobody is there: a put waits for its timeout, and says why.
    let why = context.within(SHORT).put("DEMO:COUNT", |value| value.set("value", 1)).unwrap_err();
    assert!(matches!(why.trouble(), Some(Trouble::Unreachable { .. } | Trouble::Lost(_))), "{why}");
    let pending = context.begin_get("DEMO:COUNT", &Request::default()).unwrap();
    let second = Process::start(at.port());
    assert!(pending.wait().is_ok(), "a get waits for the server's return");
    connected(true);
    while number(&monitor.next_update(SOON).unwrap().unwrap().value) > 50.0 {}
    drop(second);
}

#[test]
fn a_server_that_stands_still_keeps_nobody_else_waiting() {
    let (still, other) = (Process::start(0), server());
    let _pv = other.pv("A", double()).serve();
    let context = Context::open(&options(still.1)).unwrap();
    context.get("DEMO:COUNT").unwrap();
    still.signal("-STOP");
    let own = context.clone();
    let waiting = std::thread::spawn(move || own.within(Duration::from_secs(1)).get("DEMO:COUNT"));
    let name = format!("pva://{}/A", other.address());
    (0..100).for_each(|_| assert!(context.get(&name).is_ok()));
    let why = waiting.join().unwrap().unwrap_err();
    assert!(matches!(why.trouble(), Some(Trouble::NoReply { .. })), "{why}");
    still.signal("-CONT");
    context.get("DEMO:COUNT").unwrap();
}

#[test]
fn closing_ends_all_who_wait() {
    // It listens, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let context = Context::open(&options(silent.local_addr().unwrap())).unwrap();
    let (tell, told) = channel();
    let mut pending = context.begin_get("A", &Request::default()).unwrap();
    assert!(pending.wait_within(Duration::from_millis(1)).is_none());
    let then = tell.clone();
    context.begin_call("A", None).unwrap().then(move |outcome| then.send(outcome.map(drop)).unwrap());
    let callback = move |event| match event {
        MonitorEvent::Ended(why) => tell.send(why).unwrap(),
        event => panic!("{event:?}"),
    };
    let monitor = context.monitor_with("A", &Request::default(), callback).unwrap();
    let mut iterator = context.monitor("A", &Request::default()).unwrap();
    let own = context.clone();
    let waiting = std::thread::spawn(move || own.get("A"));
    let reading = std::thread::spawn(move || iterator.next().map(|next| next.map(drop)));
    // The thread waits once its connection has come.
    let (_stream, _) = silent.accept().unwrap();
    context.close();
    assert_eq!(waiting.join().unwrap(), Err(ClientError::Closed));
    assert_eq!(reading.join().unwrap(), Some(Err(ClientError::Closed)));
    assert_eq!(pending.wait(), Err(ClientError::Closed));
    assert_eq!(
        [told.recv_timeout(SOON), told.recv_timeout(SOON)],
        [Ok(Err(ClientError::Closed)), Ok(Err(ClientError::Closed))]
    );
    assert_eq!(context.get("A").unwrap_err(), ClientError::Closed);
    assert!(monitor.is_over() || context.monitor("A", &Request::default()).unwrap().next_update(SOON).is_err());
}

#[test]
fn what_comes_while_a_context_closes_ends_too() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for _ in 0..200 {
        let context = Context::open(&options(silent.local_addr().unwrap())).unwrap();
        let (tell, told) = channel();
        // One thread closes, others leave orders: none may take another's with it and keep its end to itself.
        let monitors = std::thread::scope(|scope| {
            scope.spawn(|| context.close());
            let subscribe = || {
                let tell = tell.clone();
                let callback = move |event| tell.send(event).unwrap();
                let monitor = context.monitor_with("A", &Request::default(), callback).unwrap();
                assert_eq!(context.get("A"), Err(ClientError::Closed));
                monitor
            };
            let threads = [scope.spawn(subscribe), scope.spawn(subscribe)];
            threads.map(|thread| thread.join().unwrap())
        });
        (0..2).for_each(|_| assert_eq!(told.recv_timeout(SOON), Ok(MonitorEvent::Ended(Err(ClientError::Closed)))));
        drop(monitors);
    }
}

#[test]
fn the_last_handle_may_be_dropped_in_a_callback() {
    let server = server();
    let _pv = server.pv("A", double()).serve();
    let context = context(&server);
    let (tell, told) = channel();
    let own = std::sync::Mutex::new(Some(context.clone()));
    let then = move |got: Result<Value, ClientError>| {
        drop(own.lock().unwrap().take());
        tell.send(got.is_ok()).unwrap();
    };
    context.begin_get("A", &Request::default()).unwrap().then(then);
    drop(context);
    assert!(told.recv_timeout(SOON).is_ok());
    while !server.state(SOON).unwrap().clients.is_empty() {}
}

#[test]
fn what_is_dropped_is_cancelled_and_too_much_is_refused() {
    let server = server();
    let (go, went) = channel::<()>();
    let went = std::sync::Mutex::new(went);
    let handler = move |put: Put| {
        went.lock().unwrap().recv_timeout(SOON).unwrap();
        put.accept().unwrap();
    };
    let _pv = server.pv("SLOW", double()).on_put(handler).serve();
    let context = Context::open(&ContextOptions { operations_max: 2, ..options(server.address()) }).unwrap();
    let put = || context.draft("SLOW", &Request::default(), true)?.begin_put();
    let (first, second) = (put().unwrap(), put().unwrap());
    assert_eq!(put().map(drop).unwrap_err(), ClientError::Overloaded { max: 2 });
    assert!(!first.is_done());
    drop(first);
    // The place of the cancelled one is free again.
    while matches!(context.get("SLOW"), Err(ClientError::Overloaded { .. })) {}
    go.send(()).unwrap();
    go.send(()).unwrap();
    second.wait().unwrap();
    let why = context.put("SLOW", |value| value.set("absent", 1)).unwrap_err();
    assert_eq!(why.to_string(), "SLOW: there is no such field");
    assert!(context.get("SLOW").is_ok());
}

#[test]
fn channels_that_nobody_uses_are_closed() {
    let server = server();
    let _pvs: Vec<_> = (0..10).map(|at| server.pv(format!("P{at}"), double()).serve()).collect();
    let context = Context::open(&ContextOptions { keep: SHORT, ..options(server.address()) }).unwrap();
    let mut kept = context.monitor("P0", &Request::default()).unwrap();
    kept.next_update(SOON).unwrap().unwrap();
    (0..10).for_each(|at| _ = context.get(&format!("P{at}")).unwrap());
    while server.state(SOON).unwrap().clients[0].channels > 1 {}
    assert!(context.get("P5").is_ok());
}

#[test]
fn what_can_only_be_written_is_drafted_without_being_read() {
    let rule = |channel: &str, rights| AccessRule {
        users: vec![],
        hosts: vec![],
        subnets: vec![],
        channels: vec![channel.into()],
        rights,
    };
    let mut options = ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into());
    let write = Rights { put: true, ..Rights::NONE };
    options.config.rules = AccessList(vec![rule("W", write), rule("R", Rights::READ)]).into();
    let server = Server::start(options).unwrap();
    let (put, puts) = channel();
    let keep =
        move |_: &Value, value: &mut Value, _: &ClientName| put.send(number(value)).map_err(|why| why.to_string());
    let _pvs = [server.pv("W", double()).check_puts(keep).serve(), server.pv("R", double()).accept_puts().serve()];
    let context = context(&server);
    assert!(context.put("W", |value| value.set("value", 1.0)).is_err(), "it cannot be read first");
    for to in [2.0, 3.0] {
        let mut draft = context.draft("W", &Request::default(), false).unwrap();
        draft.value.set("value", to).unwrap();
        draft.begin_put().unwrap().wait().unwrap();
        assert_eq!(puts.recv_timeout(SOON).unwrap(), to);
    }
    // A refusal is told each time, and at once.
    for _ in 0..2 {
        let why = context.draft("R", &Request::default(), false).map(drop).unwrap_err();
        assert!(matches!(why.trouble(), Some(Trouble::Refused(_))), "{why}");
    }
    assert!(context.get("R").is_ok());
}

#[test]
fn a_reply_that_comes_as_its_time_ends_takes_nothing_from_the_calls_after_it() {
    let server = server();
    let _pv = server.pv("A", double()).on_call(|call: Call| call.reply(None)).serve();
    let context = context(&server);
    context.call("A", None).unwrap();
    // About as long as a reply takes, and some are longer and some shorter: now and then both come at once.
    for tries in 0..2_000 {
        let _ = context.within(Duration::from_micros(10 + tries % 200)).call("A", None);
    }
    for _ in 0..3 {
        assert_eq!(context.call("A", None).map_err(|why| why.to_string()), Ok(None));
    }
}
