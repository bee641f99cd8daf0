//! `hodo serve`: the far end of a link.

use crate::link::LinkParser;
use crate::logging::LogOptions;
use crate::realtime::RealtimeOptions;
use crate::sockets::SocketOptions;
use crate::trace::TraceOptions;
use crate::{Error, Outcome, interrupt};
use clap::Args;
use hodo_catalog::{Protocol, ServeSettings, Uri};
use hodo_io::LISTENING_ON;
use hodo_io::usage::Usage;
use hodo_machine::Wait;
use hodo_measure::units::{self, Cpus};
use hodo_tester::{Content, Payload, PrivateDir, USAGE_REQUEST, usage_line};
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a line on standard input that are read together.
const LINE_MAX: u64 = 64;

/// Serves until a signal comes.
pub fn run(serve: &ServeOptions) -> Result<Outcome, Error> {
    serve.log.open("hodo serve", false)?;
    serve.realtime.begin_serving(serve.wait, usize::from(serve.threads))?;
    hodo_tester::check_congestion(serve.congestion.as_deref())?;
    let stop = interrupt::flag_of_daemon(&serve.log)?;
    if serve.until_stdin_closes {
        at_the_end_of_stdin(&stop)?;
    }
    // Each peer takes a descriptor; where that is not allowed, fewer peers are served.
    let _ = hodo_io::host::raise_descriptor_limit();
    let mut uri = serve.uri.clone();
    let dir = private_dir(&mut uri)?;
    if serve.traced.trace.is_some() && uri.protocol.description().is_at_path {
        return Err(Error::Usage("--trace records packets, and Unix sockets have none; use tcp or udp".to_owned()));
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
        server = server.traced(Arc::clone(trace))?;
    }
    let lines: String = server.uris().iter().map(|uri| format!("{LISTENING_ON}{uri}\n")).collect();
    tracing::debug!("serves {}", serve.uri);
    hodo_daemon::log::announce(&lines);
    if let Some(everywhere) = everywhere(&serve.uri, server.uri()).filter(|_| !serve.until_stdin_closes) {
        tracing::info!("only this host reaches it; for others, type: hodo serve {everywhere}");
    }
    let ran = server.run(&stop);
    drop(dir);
    if let Some(missing) = trace.as_deref().and_then(crate::trace::missing) {
        tracing::warn!("{missing}");
    }
    ran?;
    Ok(Outcome::Done)
}

/// Returns what to serve instead, as a shell takes it, so that other hosts reach it; `None` if they do, or never can.
fn everywhere(asked: &Uri, served: &Uri) -> Option<String> {
    let port = hodo_io::port_of_loopback(&served.authority)?;
    // A free port that nobody has chosen may be taken the next time.
    let port = if asked.authority.is_empty() { asked.protocol.port(asked)?.to_string() } else { port.to_owned() };
    let uri = Uri { authority: format!(":{port}"), ..asked.clone() };
    Some(hodo_daemon::launch::quoted(&[uri.to_string()]))
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

fn settings(serve: &ServeOptions) -> Result<ServeSettings, Error> {
    let cpus = serve.cpu.as_ref().map_or(&[][..], |Cpus(cpus)| cpus);
    let content = Content { is_checked: false, file: serve.payload.as_deref().map(Payload::read).transpose()? };
    content.check(&serve.uri)?;
    Ok(ServeSettings {
        threads: usize::from(serve.threads),
        cpus: cpus.to_vec(),
        wait: serve.wait,
        congestion: serve.congestion.clone(),
        path: serve.sockets.path(None),
        socket_buffer: serve.socket_buffer,
        payload: content.file,
        size_max: size_max(&serve.uri, serve.size_max)?,
        peers_max: serve.peers_max as usize,
    })
}

fn size_max(uri: &Uri, options: Option<u32>) -> Result<u32, Error> {
    let max = uri.protocol.description().size_max;
    match options {
        Some(size) if size > max => Err(Error::Usage(format!(
            "--size-max {size}: an operation of {} has a size in 1..={max} bytes",
            uri.scheme
        ))),
        Some(size) => Ok(size),
        None => Ok(max),
    }
}

/// Sets the flag when standard input ends, and replies to requests for the usage of this process until then.
pub fn at_the_end_of_stdin(stop: &Arc<AtomicBool>) -> Result<(), Error> {
    let stop = Arc::clone(stop);
    let thread = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        hodo_io::scheduling::set_before_realtime();
        let mut stdin = io::stdin().lock();
        loop {
            let mut line = String::new();
            // Bounded, because it may be anything.
            match stdin.by_ref().take(LINE_MAX).read_line(&mut line) {
                Ok(1..) if line.trim_end() == USAGE_REQUEST => {
                    // The program that requested it may have ended.
                    let _ = io::stdout().write_all(usage_line(&Usage::of_process()).as_bytes());
                }
                Ok(1..) => {}
                Err(why) if matches!(why.kind(), io::ErrorKind::Interrupted | io::ErrorKind::InvalidData) => {}
                _ => return stop.store(true, Ordering::Relaxed),
            }
        }
    });
    thread.map(drop).map_err(|why| {
        Error::Failed(format!(
            "--until-stdin-closes: no thread can be started: {why}; raise the limit on threads or memory"
        ))
    })
}

/// Options of the far end.
#[derive(Debug, Args)]
#[command(after_long_help = served_options())]
pub struct ServeOptions {
    /// Where to listen, as tcp://:4242, every address of this host, or unix:///path/of/socket. The default port is 4242, 50001 for a device,
    /// 18515 for RDMA and 5502 for the nodes of a farm. A bare protocol name listens on a free port of loopback, or on a Unix socket
    /// in a private folder. The address of a multicast group, as udp://239.7.7.7:4242, is joined.
    #[arg(value_name = "URI", value_parser = LinkParser, hide_possible_values = true)]
    pub uri: Uri,
    /// Processors to run on, one thread each [default: the kernel's choice].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// How to wait: adaptive, block, spin, or spin:50us to spin that long and then block.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait)]
    pub wait: Wait,
    /// The scheduling class.
    #[command(flatten)]
    pub realtime: RealtimeOptions,
    /// Number of threads that share the peers, or 0 for one per processor.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub threads: u16,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Size of the socket buffers in bytes [default: the system's].
    #[arg(long, value_name = "SIZE", value_parser = units::buffer)]
    pub socket_buffer: Option<usize>,
    /// File whose bytes go out in the operations of raw links, one after the other and again from the beginning; at most 256 MiB.
    #[arg(long, value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// The options of the sockets.
    #[command(flatten)]
    pub sockets: SocketOptions,
    /// Largest operation in bytes [default: the protocol's largest].
    #[arg(long, value_name = "SIZE", value_parser = operation_size)]
    pub size_max: Option<u32>,
    /// Largest number of peers; further ones are refused.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub peers_max: u32,
    /// The trace.
    #[command(flatten)]
    pub traced: TraceOptions,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Stop when standard input closes, so that the far end never outlives the program that started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

fn operation_size(text: &str) -> Result<u32, String> {
    let size = u32::try_from(units::bytes(text)?).ok().filter(|size| (1..=1 << 30).contains(size));
    size.ok_or_else(|| format!("{text} is not in 1..=1G"))
}

/// Returns the options of the far ends of every protocol that has any.
fn served_options() -> String {
    let all = hodo_catalog::protocols().map(Protocol::served_options);
    all.filter(|options| !options.is_empty()).collect::<Vec<_>>().join("\n\n")
}
