//! Measures the simulation: N-characters in a second of one core, and how many times as fast as the simulated links that is.
//!
//! The time is that of the processor, from `/proc/self/schedstat`: the measure needs Linux, and no quiet machine.
//!
//! `cargo bench -p hodo-spacewire --bench link [-- simulated milliseconds [link|router]]`
use hodo_spacewire::EndOfPacket;
use hodo_spacewire::Picos;
use hodo_spacewire::network::{Builder, Engine, LinkSettings, Network, NodeId, NodeSettings, RouterSettings};

/// How much the host lets happen between two looks at its queues.
const STEP: Picos = Picos::from_nanos(100_000);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds a word of its own.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let millis: u64 = words.next().map_or(Ok(2_000), |text| text.parse())?;
    let only = words.next();
    let wanted = |network: &str| only.as_ref().is_none_or(|only| only == network);
    println!("engine\tnetwork\tbytes\tdirections\tmillion N-chars/s\ttimes real time");
    for (engine, millis) in [(Engine::Fast, millis), (Engine::Reference, millis / 10)] {
        if !wanted("link") {
            continue;
        }
        for directions in [1, 2] {
            for length in [1, 60, 1024, 16_384] {
                let (mut network, nodes) = link(engine)?;
                measure(&mut network, &nodes[..directions], &nodes, length, millis, &[], "link", engine)?;
            }
        }
    }
    for (engine, millis) in [(Engine::Fast, millis / 4), (Engine::Reference, millis / 20)] {
        if !wanted("router") {
            continue;
        }
        for directions in [1, 2] {
            for length in [2, 60, 1024] {
                let (mut network, nodes) = routed(engine)?;
                measure(&mut network, &nodes[..directions], &nodes, length, millis, &[2, 1], "router", engine)?;
            }
        }
    }
    Ok(())
}

fn link(engine: Engine) -> Result<(Network, Vec<NodeId>), Box<dyn std::error::Error>> {
    let mut builder = Builder::new();
    builder.engine(engine);
    let one = builder.node("one", NodeSettings::default())?;
    let other = builder.node("other", NodeSettings::default())?;
    builder.link(one, other, &LinkSettings::default())?;
    Ok((builder.build()?, vec![one, other]))
}

fn routed(engine: Engine) -> Result<(Network, Vec<NodeId>), Box<dyn std::error::Error>> {
    let mut builder = Builder::new();
    builder.engine(engine);
    let router = builder.router("router", RouterSettings::default())?;
    let mut nodes = Vec::new();
    for port in 1..=2 {
        nodes.push(builder.node(&format!("node {port}"), NodeSettings::default())?);
        builder.link(nodes[nodes.len() - 1], (router, port), &LinkSettings::default())?;
    }
    Ok((builder.build()?, nodes))
}

/// Keeps the senders' queues full, and takes everything that arrives.
#[allow(clippy::too_many_arguments, reason = "one line of a table")]
fn measure(
    network: &mut Network,
    senders: &[NodeId],
    nodes: &[NodeId],
    length: usize,
    millis: u64,
    path: &[u8],
    name: &str,
    engine: Engine,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = vec![0x5A; length];
    let end = Picos::from_nanos(millis * 1_000_000);
    let started = processor_seconds()?;
    let mut received = Vec::new();
    while network.now() < end {
        for (at, node) in senders.iter().enumerate() {
            if let Some(port) = path.get(at) {
                bytes[0] = *port;
            }
            while network.queued(*node).1 < 4_000 + 2 * length {
                network.send(*node, &bytes, EndOfPacket::Eop)?;
            }
        }
        network.run_until(network.now() + STEP);
        for node in nodes {
            received.clear();
            while network.receive_into(*node, &mut received).is_some() {}
        }
    }
    let seconds = processor_seconds()? - started;
    let nchars: u64 =
        nodes.iter().map(|node| network.statistics(*node).map_or(0, |counts| counts.received.nchars())).sum();
    let (rate, times) = (nchars as f64 / seconds / 1e6, millis as f64 / 1e3 / seconds);
    let directions = senders.len();
    println!("{engine:?}\t{name}\t{length}\t{directions}\t{rate:.1}\t{times:.2}");
    Ok(())
}

fn processor_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let counts = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos: u64 = counts.split_whitespace().next().ok_or("/proc/self/schedstat is empty")?.parse()?;
    Ok(nanos as f64 / 1e9)
}
