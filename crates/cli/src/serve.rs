//! `hodo serve`: the far end of a link.

use crate::args::{self, units::Cpus};
use crate::{Error, Outcome, interrupt};
use hodo_catalog::{ServeSettings, Uri};
use hodo_tester::{LISTENING_ON, PrivateDir};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serves until a signal comes.
pub fn run(serve: &args::Serve) -> Result<Outcome, Error> {
    serve.log.open("hodo serve", false)?;
    hodo_tester::check_congestion(serve.congestion.as_deref())?;
    let stop = interrupt::flag_of_daemon(&serve.log)?;
    if serve.until_stdin_closes {
        at_the_end_of_stdin(&stop);
    }
    // Each peer takes a descriptor; where that is not allowed, fewer peers are served.
    let _ = hodo_io::host::raise_descriptor_limit();
    let mut uri = serve.uri.clone();
    let dir = private_dir(&mut uri)?;
    if serve.traced.trace.is_some() && uri.protocol.description().is_at_path {
        return Err(Error::Usage("--trace is of packets; Unix sockets have none, take tcp or udp".to_owned()));
    }
    if serve.traced.trace.is_some() && !uri.protocol.description().has_one_thread && serve.threads != 1 {
        return Err(Error::Usage("--trace follows one thread; add --threads 1".to_owned()));
    }
    let mut server = hodo_catalog::serve(&uri, &settings(serve)?)?;
    if serve.traced.trace.is_some() && server.uris().len() > 1 {
        return Err(Error::Usage("--trace follows one board; leave out boards=".to_owned()));
    }
    let trace = crate::trace::start(&serve.traced)?;
    if let Some(trace) = &trace {
        server = server.traced(Arc::clone(trace));
    }
    let lines: String = server.uris().iter().map(|uri| format!("{LISTENING_ON}{uri}\n")).collect();
    tracing::debug!("serves {}", serve.uri);
    hodo_daemon::log::announce(&lines);
    let ran = server.run(&stop);
    drop(dir);
    if let Some(missing) = trace.as_deref().and_then(crate::trace::missing) {
        tracing::warn!("{missing}");
    }
    ran?;
    Ok(Outcome::Done)
}

/// Creates a folder for a Unix socket without a name, which only this user can enter, as a TCP server without a port
/// gets a free one.
fn private_dir(uri: &mut Uri) -> Result<Option<PrivateDir>, Error> {
    if uri.simulated || !uri.protocol.description().is_at_path || !uri.wants_far_end() {
        return Ok(None);
    }
    let dir = PrivateDir::make()?;
    uri.path = dir.socket();
    Ok(Some(dir))
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
    let max = uri.protocol.description().size_max;
    match asked {
        Some(size) if size > max => Err(Error::Usage(format!(
            "--size-max {size}: an operation of {} has a size in 1..={max} bytes",
            uri.scheme
        ))),
        Some(size) => Ok(size),
        None => Ok(max),
    }
}

/// Sets the flag when standard input ends.
pub fn at_the_end_of_stdin(stop: &Arc<AtomicBool>) {
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
