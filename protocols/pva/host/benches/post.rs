//! Measures how many updates a second threads post to PVs of a server, with a subscriber of each:
//! `cargo bench -p hodo-pva-host --bench post`.

use hodo_io::Clock;
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::{Request, Scalar, Value};
use hodo_pva_host::server::{Posted, Pv, Server, ServerOptions};
use hodo_pva_host::{ClientOptions, Context, ContextOptions};
use std::time::Duration;

const POSTS: u32 = 2_000_000;
const LONG: Duration = Duration::from_secs(60);

fn double() -> Value {
    Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build())
}

/// Posts from one thread, and returns how many updates were merged.
fn post(pv: &Pv, waits: bool) -> u32 {
    let mut value = double();
    let mut merged = 0;
    for to in 0..POSTS {
        value.unmark();
        value.set("value", to).expect("it fits");
        if waits {
            pv.post_within(&value, LONG).expect("there is room in time");
        } else {
            merged += u32::from(pv.post(&value).expect("it fits") == Posted::Merged);
        }
    }
    merged
}

fn measure(server: &Server, threads: u32, waits: bool) {
    let pvs: Vec<_> = (0..threads).map(|number| server.pv(format!("PV:{number}"), double()).serve()).collect();
    let client = ClientOptions { server: Some(server.address().to_string()), ..ClientOptions::default() };
    let context = Context::open(&ContextOptions::of(client)).expect("sockets");
    let subscribe = |pv: &Pv| context.monitor_with(pv.name(), &Request::default(), |_| {}).expect("a name");
    let monitors: Vec<_> = pvs.iter().map(subscribe).collect();
    let clock = Clock::start();
    let began = clock.now();
    let merged: u32 = std::thread::scope(|scope| {
        let posting: Vec<_> = pvs.iter().map(|pv| scope.spawn(move || post(pv, waits))).collect();
        posting.into_iter().map(|thread| thread.join().expect("it posts")).sum()
    });
    let per_second = f64::from(threads * POSTS) / (clock.now() - began).as_secs_f64();
    let way = if waits { "post_within" } else { "post" };
    println!("{threads} threads, {way:<11} {:6.2} M/s, {merged} of {} merged", per_second / 1e6, threads * POSTS);
    drop(monitors);
    context.close();
}

fn main() {
    let options = ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into());
    let server = Server::start(options).expect("a free port");
    for threads in [1, 4] {
        measure(&server, threads, false);
        measure(&server, threads, true);
    }
}
