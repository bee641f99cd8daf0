//! `hodo serve`: the far end of a link.

use crate::args::{self, units::Cpus};
use crate::bench::LISTENING_ON;
use crate::{Error, Outcome, congestion, interrupt, terminal};
use hodo_catalog::{ServeSettings, Uri};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serves until a signal comes.
pub fn run(serve: &args::Serve) -> Result<Outcome, Error> {
    congestion::check(serve.congestion.as_deref())?;
    let stop = interrupt::flag()?;
    if serve.until_stdin_closes {
        stop_at_the_end_of_stdin(&stop);
    }
    // Each peer takes a descriptor; where that is not allowed, fewer peers are served.
    let _ = hodo_io::host::raise_descriptor_limit();
    let server = hodo_catalog::serve(&serve.uri, &settings(serve)?)?;
    terminal::print(&format!("{LISTENING_ON}{}\n", server.uri()))?;
    server.run(&stop)?;
    Ok(Outcome::Done)
}

fn settings(serve: &args::Serve) -> Result<ServeSettings, Error> {
    let cpus = serve.cpu.as_ref().map_or(&[][..], |Cpus(cpus)| cpus);
    Ok(ServeSettings {
        threads: usize::from(serve.threads),
        cpus: cpus.to_vec(),
        wait: serve.wait,
        congestion: serve.congestion.clone(),
        socket_buffer: serve.socket_buffer,
        size_max: size_max(&serve.uri, serve.size_max)?,
        peers_max: serve.peers_max as usize,
    })
}

fn size_max(uri: &Uri, asked: Option<u32>) -> Result<u32, Error> {
    let protocol = hodo_catalog::protocols().iter().find(|protocol| protocol.name == uri.scheme);
    let max = protocol.map_or(u32::MAX, |protocol| protocol.size_max);
    match asked {
        Some(size) if size > max => Err(Error::Usage(format!(
            "--size-max {size}: an operation of {} has a size in 1..={max} bytes",
            uri.scheme
        ))),
        Some(size) => Ok(size),
        None => Ok(max),
    }
}

fn stop_at_the_end_of_stdin(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut ignored = [0; 64];
        loop {
            match io::stdin().read(&mut ignored) {
                Ok(1..) => {}
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                _ => return stop.store(true, Ordering::Relaxed),
            }
        }
    });
}
