//! The recordings that are being played, each by a thread of its own for all its PVs, so that they stay in step.

use super::ServeError;
use super::recordings::Play;
use crate::machines::normative::Alarm;
use crate::replay::Player;
use crate::server::Pv;
use hodo_io::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The severity of a value that is no longer that of its source, and the status that blames the source.
const INVALID: i32 = 3;
const DRIVER: i32 = 2;

/// The players of a server.
#[derive(Default)]
pub struct Players(Vec<Playing>);

/// PVs that are played together, each with its name in the recording, and how the first of them is.
type Group = (Play, Vec<(String, Pv)>);

/// A player.
struct Playing {
    play: Play,
    served: Vec<(String, Pv)>,
    stop: Arc<Stop>,
    has_failed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Players {
    /// Plays these PVs, and nothing else. A player whose PVs are all the same goes on unless it has failed; others begin again.
    ///
    /// # Errors
    /// [`ServeError::Source`] if there can be no thread.
    pub fn become_as(&mut self, plays: Vec<(Play, Pv)>) -> Result<(), ServeError> {
        let mut groups: Vec<Group> = Vec::new();
        for (play, pv) in plays {
            let served = (play.name.clone(), pv);
            match groups.iter_mut().find(|(first, _)| first.is_with(&play)) {
                Some((_, group)) => group.push(served),
                None => groups.push((play, vec![served])),
            }
        }
        let before = std::mem::take(&mut self.0);
        let (same, others) = before.into_iter().partition(|one| groups.iter().any(|group| one.is_same(group)));
        self.0 = same;
        end(others);
        for group in groups {
            if !self.0.iter().any(|one| one.is_same(&group)) {
                self.0.push(Playing::start(group)?);
            }
        }
        Ok(())
    }

    /// Ends the player of a PV, and with it that of others which are played together.
    pub fn end(&mut self, pv: &Pv) {
        let before = std::mem::take(&mut self.0);
        let has_pv = |one: &Playing| one.served.iter().any(|(_, served)| served.is(pv));
        let (ending, others) = before.into_iter().partition(has_pv);
        self.0 = others;
        end(ending);
    }
}

impl Drop for Players {
    fn drop(&mut self) {
        end(std::mem::take(&mut self.0));
    }
}

impl Playing {
    fn start((play, served): Group) -> Result<Self, ServeError> {
        let stop = Arc::new(Stop::default());
        let has_failed = Arc::new(AtomicBool::new(false));
        let (playing, pvs) = (play.clone(), served.clone());
        let (ending, failed) = (Arc::clone(&stop), Arc::clone(&has_failed));
        let run = move || run(&playing, pvs, &ending, &failed);
        let made = std::thread::Builder::new().name("pva player".to_owned()).spawn(run);
        let thread = made.map_err(|why| ServeError::Source(format!("a thread cannot be started: {why}")))?;
        Ok(Playing { play, served, stop, has_failed, thread })
    }

    fn is_same(&self, (play, served): &Group) -> bool {
        let mut pairs = self.served.iter().zip(served);
        let is_same = pairs.all(|(one, other)| one.0 == other.0 && one.1.is(&other.1));
        let is_well = !self.has_failed.load(Ordering::Relaxed);
        is_same && is_well && self.served.len() == served.len() && self.play.is_same(play)
    }
}

/// Ends players; nothing is posted by them any more.
fn end(players: Vec<Playing>) {
    players.iter().for_each(|one| one.stop.store(true, Ordering::Relaxed));
    for one in players {
        // One that has panicked has said so.
        let _ = one.thread.join();
    }
}

/// Plays PVs. If the recording cannot be read on, they are marked as invalid, and the log tells why.
fn run(play: &Play, served: Vec<(String, Pv)>, stop: &Stop, has_failed: &AtomicBool) {
    let pvs: Vec<Pv> = served.iter().map(|(_, pv)| pv.clone()).collect();
    let Err(why) = Player::of(Arc::clone(&play.recording), served).run(&play.options, stop) else { return };
    has_failed.store(true, Ordering::Relaxed);
    tracing::error!("{why}; PVs that are played from it stay as they are: SIGHUP has it read again");
    for pv in pvs {
        // One without an alarm cannot say it.
        let message = "the recording cannot be read".to_owned();
        let _ = pv.update(|value| value.set_alarm(&Alarm { severity: INVALID, status: DRIVER, message }));
    }
}
