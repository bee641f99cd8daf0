//! `hodo pva replay`: a recording that is served again.

use super::options::seconds;
use crate::address::only_here;
use crate::{Error, Outcome, address, interrupt, terminal};
use clap::{Args, ValueEnum};
use hodo_daemon::log;
use hodo_io::LISTENING_ON;
use hodo_pva_host::replay::{Player, ReplayOptions};
use hodo_pva_host::server::{Bound, Quiet, ServerError, ServerOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one wait lasts at most.
const LOOK: Duration = Duration::from_millis(50);

/// Serves until a signal comes.
pub fn run(args: &ReplayArgs) -> Result<Outcome, Error> {
    let stop = interrupt::flag()?;
    let failed = |why: ServerError| Error::Failed(why.to_string());
    let mut options = ServerOptions { is_found: !args.tcp_only, ..ServerOptions::from_environment().map_err(failed)? };
    if let Some(listen) = args.listen {
        options = options.at(listen);
    }
    let bound = Bound::new(options).map_err(failed)?;
    let (at, pvs) = (bound.address(), bound.pvs());
    let mut player = Player::open(&args.recording, &pvs).map_err(Error::Failed)?;
    let keeps_stamps = args.stamps == Stamps::Recorded;
    let playing = ReplayOptions { speed: args.speed, every: None, repeats: args.repeats, keeps_stamps };
    log::announce(&format!("{LISTENING_ON}{at}\n"));
    if let Some(said) = only_here(&at, "--listen :PORT") {
        terminal::remark(&said);
    }
    let recording = player.recording();
    let (pvs_played, updates, span) = (recording.pv_count(), recording.updates(), recording.span().as_secs_f64());
    terminal::remark(&format!("{pvs_played} PVs with {updates} updates in {span:.3} s"));
    std::thread::scope(|scope| {
        let server_stop = Arc::clone(&stop);
        let served = scope.spawn(move || {
            let ran = bound.run(Quiet, &server_stop);
            server_stop.store(true, Ordering::Relaxed);
            ran
        });
        let played = play(&mut player, args.delay, &playing, &stop);
        if played.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        while !stop.load(Ordering::Relaxed) {
            hodo_io::sleep(LOOK);
        }
        pvs.ring();
        let served = served.join().map_err(|_| Error::Failed("the serving thread panicked".to_owned()))?;
        played.and(served.map_err(failed))
    })?;
    Ok(Outcome::Done)
}

/// Plays the recording after the delay, and says what came of it.
fn play(player: &mut Player, delay: Duration, options: &ReplayOptions, stop: &hodo_io::Stop) -> Result<(), Error> {
    let mut left = delay;
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        let nap = left.min(LOOK);
        hodo_io::sleep(nap);
        left -= nap;
    }
    let replayed = player.run(options, stop).map_err(Error::Failed)?;
    let merged = match replayed.merged {
        0 => String::new(),
        merged => format!(", of which {merged} were merged into others"),
    };
    let stays = if stop.load(Ordering::Relaxed) { "" } else { "; the last values stay served until Ctrl-C" };
    terminal::remark(&format!("{} updates played{merged}{stays}", replayed.updates));
    Ok(())
}

/// A recording to serve.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ReplayArgs {
    /// File of `hodo pva record`, or its folder of files.
    #[arg(value_name = "FILE.parquet|DIR")]
    pub recording: PathBuf,
    /// How much faster than it was recorded.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    pub speed: f64,
    /// Begin again at the end.
    #[arg(long = "loop")]
    pub repeats: bool,
    /// Time stamps: when an update is played, or when it was recorded.
    #[arg(long, value_enum, value_name = "WHICH", default_value = "now")]
    pub stamps: Stamps,
    /// How long the first values are served before the recording is played.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub delay: Duration,
    /// Address for clients [default: what EPICS_PVAS_INTF_ADDR_LIST and EPICS_PVAS_SERVER_PORT say, otherwise 127.0.0.1:5075]; :5075 admits
    /// everybody who can reach this host. If nobody has named a port and the default one is in use, another one is taken.
    #[arg(long, value_name = "ADDR", value_parser = address::listen)]
    pub listen: Option<SocketAddr>,
    /// Answer no searches over UDP and send no beacons: clients name this server in EPICS_PVA_NAME_SERVERS.
    #[arg(long)]
    pub tcp_only: bool,
}

/// The time stamps of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stamps {
    /// The time at which an update is played.
    Now,
    /// The time that was recorded.
    Recorded,
}

fn factor(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0).ok_or("a number above 0".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  hodo pva replay run7.parquet                       on loopback, as fast as it was recorded
  hodo pva replay archive/ --speed 10 --loop         ten times as fast, again and again";
