//! Files and what they become, with roles whose options are made for the test.

use super::file::{self, Farm};
use super::plan::{self, Process};
use super::role::{CommandLine, Role, RoleOption, Takes};
use super::table::Source;

/// Roles that take a few options of each kind.
struct FewOptions;

impl CommandLine for FewOptions {
    fn options(&self, role: Role) -> Vec<RoleOption> {
        let of = |names: &[&str], takes| -> Vec<RoleOption> {
            let option = |name: &&str| RoleOption { name: (*name).to_owned(), takes, default: None };
            names.iter().map(option).collect()
        };
        match role {
            Role::Controller => of(&["listen", "run", "store", "events", "cpu", "until-done"], Takes::Value),
            Role::Builder => [of(&["listen", "to", "sources"], Takes::Value), of(&["udp"], Takes::Nothing)].concat(),
            Role::Source => of(&["to", "number", "run", "first", "step", "events", "size"], Takes::Value),
            Role::Node => [
                of(&["to", "number", "count", "credits", "accept"], Takes::Value),
                of(&["no-metrics"], Takes::Nothing),
                of(&["command"], Takes::Words),
            ]
            .concat(),
        }
    }

    fn check(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

fn read(text: &str) -> Result<Farm, String> {
    file::parse(Source { name: "farm.toml", text }, &FewOptions).map_err(|error| error.to_string())
}

fn placed(text: &str, hosts: &[&str]) -> Vec<Process> {
    let pool: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    plan::place(&read(text).unwrap(), &pool, hosts == ["localhost"])
}

fn words(process: &Process, to: Option<&str>) -> String {
    process.task("hodo", to).words.join(" ")
}

#[test]
fn a_file_becomes_commands() {
    let text = "
        [run]
        number = 7
        events = 1_001
        store = 'data'
        [controller]
        cpu = [0, 1]
        [[source]]
        count = 2
        size = 'uniform:1000..64000'
        [[node]]
        accept = 0.005
        per_process = 4
        no-metrics = true
        command = ['python3', 'a b.py', '--fast']
    ";
    let processes = placed(text, &["localhost"]);
    let commands: Vec<String> = processes.iter().map(|process| words(process, Some("A:1"))).collect();
    assert_eq!(
        commands,
        [
            "hodo farm controller --until-stdin-closes --listen=127.0.0.1:0 --to=A:1 --run=7 --store=data --cpu=0,1",
            "hodo farm node --until-stdin-closes --to=A:1 --number=0 --count=4 --accept=0.005 --no-metrics --command python3 a \
             b.py --fast",
            "hodo farm source --until-stdin-closes --to=A:1 --number=0 --run=7 --first=0 --step=2 --events=501 --size=uniform:1000..64000",
            "hodo farm source --until-stdin-closes --to=A:1 --number=1 --run=7 --first=1 --step=2 --events=500 --size=uniform:1000..64000",
        ]
    );
}

#[test]
fn fragments_of_every_event_come_from_every_source() {
    let text = "run = { events = 9 }\ncontroller = {}\nbuilder = {}\nnode = {}\nsource = { count = 3 }";
    let processes = placed(text, &["localhost"]);
    let of = |role| processes.iter().filter(move |process: &&Process| process.role == role);
    assert!(of(Role::Source).all(|source| words(source, None).ends_with("--events=9")));
    assert!(of(Role::Builder).all(|builder| words(builder, None).ends_with("--sources=3")));
    let processes = placed(&text.replace("builder = {}", "builder = { udp = true }"), &["localhost"]);
    let is_udp = |process: &&Process| words(process, None).ends_with(" --udp");
    let roles: Vec<Role> = processes.iter().filter(is_udp).map(|process| process.role).collect();
    assert_eq!(roles, [Role::Builder, Role::Source, Role::Source, Role::Source]);
}

#[test]
fn a_controller_without_sources_makes_the_events() {
    let processes = placed("run = { events = 9 }\ncontroller = {}\nnode = {}", &["localhost"]);
    assert!(words(&processes[0], None).ends_with("--events=9 --until-done"));
}

#[test]
fn the_controller_has_its_host_alone_where_there_are_others() {
    let text = "
        [run]
        events = 1
        [controller]
        hosts = 'sfc'
        [[node]]
        count = 3
        [[node]]
        count = 2
        hosts = 'sfc,n2'
    ";
    let hosts: Vec<String> = placed(text, &["n1", "n2", "sfc"]).into_iter().map(|process| process.host).collect();
    assert_eq!(hosts, ["sfc", "n1", "n2", "n1", "sfc", "n2"]);
    let names: Vec<String> = placed(text, &["one"]).into_iter().map(|process| process.name).collect();
    assert_eq!(names, ["controller", "node.0", "node.1", "node.2", "node.3", "node.4"]);
}

#[test]
fn who_is_reached_from_elsewhere_listens_everywhere() {
    let text = "run = { events = 9 }\ncontroller = {}\nnode = {}";
    assert_eq!(placed(text, &["n1", "n2"])[0].listen.as_deref(), Some("0.0.0.0:0"));
    let text = "run = { events = 9 }\ncontroller = { listen = '10.0.0.1:5500' }\nnode = {}";
    assert_eq!(placed(text, &["n1", "n2"])[0].listen.as_deref(), Some("10.0.0.1:5500"));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_there_is() {
    let rest = "[run]\nevents = 1\n[controller]\n[[node]]\n";
    for (text, says) in [
        ("", "farm.toml: there is no [controller]"),
        ("[controller]\n", "farm.toml: there is no [[node]]"),
        ("[controller]\n[[node]]\n", "farm.toml: there is no source of events; add a [[source]], or `events`"),
        ("[run]\n[nodes]\n", "farm.toml:2: there is no table `nodes`; did you mean `node`?"),
        ("a b", "farm.toml:1: "),
        (
            &format!("{rest}credit = 2\n"),
            "farm.toml:5: [[node]] has no key `credit`; did you mean `credits`? There is: accept, command, count, ",
        ),
        (&format!("{rest}colour = 2\n"), "farm.toml:5: [[node]] has no key `colour`; there is: accept, "),
        (&format!("{rest}to = 'a:1'\n"), "farm.toml:5: [[node]] has no key `to`: it connects to"),
        ("[controller]\nstore = 'a'\n", "farm.toml:2: [controller] has no key `store`: it is `store` in [run]"),
        ("[controller]\ncount = 2\n", "farm.toml:2: [controller] has no key `count`; there is: cpu, hosts"),
        ("[controller]\nhosts = 'n[1-2]'\n", "`hosts`: it is one process"),
        ("[controller]\nhosts = 'n[1-'\n", "farm.toml:2: [controller]: `hosts`: `n[1-` is not a list of hosts"),
        ("[[controller]]\n", "farm.toml:1: there is one controller; write [controller]"),
        (&format!("{rest}count = 0\n"), "farm.toml:5: [[node]]: `count`: write a whole number in 1..10001"),
        (&format!("{rest}restart = 1\n"), "farm.toml:5: [[node]]: `restart`: write true or false"),
        (&format!("{rest}credits = true\n"), "`credits`: it takes a value, not true or false"),
        (&format!("{rest}no_metrics = 1\n"), "`no-metrics`: write true or false"),
        (&format!("{rest}no_metrics = true\nno-metrics = true\n"), "[[node]]: `no-metrics` appears twice"),
        ("[run]\ntime = 60\n", "farm.toml:2: [run]: `time`: write a span of time, as \"60s\""),
        ("[run]\ntime = '60sec'\n", "is not a duration"),
        ("[run]\nlaunch = 'mpi'\n", "farm.toml:2: [run]: `launch`: write local, ssh or slurm"),
        ("[run]\nevents = -1\n", "`events`: write a whole number"),
    ] {
        let why = read(text).unwrap_err();
        assert!(why.contains(says), "{text}\n  {why}\n  {says}");
    }
}
