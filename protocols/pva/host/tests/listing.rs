//! The PV `server`, by which a server is asked for its PVs.

use hodo_pva_host::client::{Client, ClientError, ClientOptions};
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::server::{AccessList, AccessRule, Rights};
use hodo_pva_host::machines::{Scalar, Type, Value};
use hodo_pva_host::parse;
use hodo_pva_host::server::{Call, Server, ServerOptions};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn server(rules: Option<AccessList>) -> Server {
    let mut options = ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into());
    if let Some(rules) = rules {
        options.config.rules = rules.into();
    }
    Server::start(options).expect("loopback has a free port")
}

fn double() -> Value {
    Value::of(Normative::scalar(Scalar::F64).build())
}

fn ask(server: &Server, op: &str) -> Result<Value, ClientError> {
    let server = Some(server.address().to_string());
    let mut client = Client::open(&ClientOptions { server, timeout: SOON, ..ClientOptions::default() })?;
    let question = parse::uri("server", [("op", op)]).expect("it is a text");
    client.call("server", Some(question)).map(|value| value.expect("it replies with something"))
}

fn names(server: &Server) -> Vec<String> {
    let reply = ask(server, "channels").expect("it lists them");
    let names = reply.get("value").and_then(|item| item.as_array()?.iter_texts()).expect("they are texts");
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn a_server_lists_what_it_serves_and_says_what_it_is() {
    let server = server(None);
    let pvs = ["C", "A", "B"].map(|name| server.pv(name, double()).serve());
    assert_eq!(names(&server), ["A", "B", "C"]);
    pvs[1].remove();
    server.pv("D", double()).serve();
    assert_eq!(names(&server), ["B", "C", "D"]);
    assert_eq!(server.state(SOON).unwrap().pvs, 3, "itself is not counted");
    let info = ask(&server, "info").unwrap();
    let version = info.get("version").and_then(|item| Some(item.as_text()?.to_string())).unwrap();
    assert!(version.starts_with("hodoscope "), "{version}");
    assert!(ask(&server, "help").is_ok());
    assert!(ask(&server, "shutdown").unwrap_err().to_string().contains("op=channels"));
    // A plain structure is a question as well.
    let mut client = Client::open(&ClientOptions {
        server: Some(server.address().to_string()),
        timeout: SOON,
        ..ClientOptions::default()
    })
    .unwrap();
    let mut plain = Value::of(Type::structure("", [("op", Type::Scalar(Scalar::Text))]));
    plain.set("op", "channels").unwrap();
    assert!(client.call("server", Some(plain)).unwrap().is_some());
    assert!(client.call("server", None).is_err());
}

#[test]
fn only_what_the_client_may_read_is_listed() {
    let rule = |channels: &[&str], rights| AccessRule {
        users: vec![],
        hosts: vec![],
        subnets: vec![],
        channels: channels.iter().map(ToString::to_string).collect(),
        rights,
    };
    let call = Rights { call: true, ..Rights::NONE };
    let put = Rights { put: true, ..Rights::NONE };
    let server = server(Some(AccessList(vec![rule(&["server"], call), rule(&["W"], put), rule(&["R"], Rights::READ)])));
    let _pvs = ["R", "W", "X"].map(|name| server.pv(name, double()).accept_puts().serve());
    assert_eq!(names(&server), ["R"]);
}

#[test]
fn a_pv_of_that_name_takes_its_place() {
    let server = server(None);
    let reply = |call: Call| call.reply(Some(double()));
    server.pv("server", double()).on_call(reply).serve();
    assert!(ask(&server, "channels").unwrap().get("value").unwrap().as_f64().is_some());
}
