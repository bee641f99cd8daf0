//! A server with one PV that counts: `cargo run --example serve_one`, and then `pvget DEMO:COUNT`, or p4p, from the same host.

use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::{Scalar, Value};
use hodo_pva_host::server::{Server, ServerOptions};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(ServerOptions::from_environment()?)?;
    let value = Value::of(Normative::scalar(Scalar::I64).alarm().time_stamp().build());
    let pv = server.pv("DEMO:COUNT", value).accept_puts().serve();
    println!("listening on {}", server.address());
    for count in 0_i64.. {
        pv.update(|value| value.set("value", count))?;
        hodo_io::sleep(Duration::from_millis(100));
    }
    Ok(())
}
