//! A controller with a store that a program runs: it makes 1,000 events, a node accepts every tenth, and the program reads
//! the status until everything is committed.
//!
//!     cargo run -p hodo-farm-host --example controller -- /tmp/run1

use hodo_farm_host::controller::{ControllerDaemon, ControllerSettings, Status, StoreSettings};
use hodo_farm_host::machines::NodeConfig;
use hodo_farm_host::machines::emulation::{Accept, Decisions, GeneratorConfig, Spread};
use hodo_farm_host::machines::node::Decide;
use hodo_farm_host::node::{self, NodeSettings};
use hodo_farm_host::process::ProcessSettings;
use hodo_farm_host::{Address, Deciding, Stop};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Events that the controller makes.
const EVENTS: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("say in which folder the events are to be stored")?;
    print!("{}", run(Path::new(&directory))?.text());
    Ok(())
}

/// Runs a farm until all events are decided and committed, and returns its last status.
///
/// # Errors
/// The error of the daemon, if it cannot be started or fails.
pub fn run(directory: &Path) -> Result<Status, Box<dyn Error>> {
    let controller = ControllerDaemon::start(ControllerSettings {
        listen: ([127, 0, 0, 1], 0).into(),
        store: Some(StoreSettings::new(directory)),
        generator: Some(generator()),
        ..ControllerSettings::default()
    })?;
    let node = node(controller.address().clone());
    let (status, stop_controller, stop_node) =
        (controller.status(), Arc::clone(controller.daemon().stop()), Stop::new(false));
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || controller.run());
        let deciding = scope.spawn(|| node::run(&node, &stop_node));
        let last = loop {
            let now = status.read().ok_or("the controller does not answer")?;
            if now.events.decided() == EVENTS && now.events.uncommitted == 0 {
                break now;
            }
        };
        stop_controller.store(true, Ordering::Relaxed);
        serving.join().expect("the controller does not panic")?;
        stop_node.store(true, Ordering::Relaxed);
        deciding.join().expect("the node does not panic")?;
        Ok(last)
    })
}

fn generator() -> GeneratorConfig {
    GeneratorConfig {
        first: 0,
        step: 1,
        count: Some(EVENTS),
        size: Spread::Fixed(1000),
        rate: None,
        poisson: false,
        pool: 4,
        numbered: true,
        seed: 1,
    }
}

fn node(controller: Address) -> NodeSettings {
    let decisions = Decisions { accept: Accept::Every(10), output: Vec::new().into(), time: Spread::Fixed(0), seed: 1 };
    NodeSettings {
        config: NodeConfig { decide: Decide::Emulated(decisions), ..Deciding::new(vec![controller], 1).node },
        programs: None,
        drain: Duration::from_secs(5),
        process: ProcessSettings::default(),
    }
}
