use hodo_io::{Clock, process};
use hodo_machine::Instant;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Kills processes that take too long.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

struct Shared {
    clock: Clock,
    watched: Mutex<Watched>,
    /// There is something to watch for.
    some: Condvar,
}

struct Watched {
    places: Vec<Place>,
    /// When the watch looks next; nothing where there is nothing to watch for.
    next: Option<Instant>,
}

#[derive(Default)]
struct Place {
    /// The leader of the group; nothing once it is to be collected.
    leader: Option<u32>,
    until: Option<Instant>,
    killed: bool,
}

/// The place of one process under a watch.
pub struct Watching {
    watch: Watch,
    place: usize,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The operating system's error if no thread can be started.
    pub fn start() -> io::Result<Watch> {
        let watched = Watched { places: Vec::new(), next: None };
        let watch =
            Watch(Arc::new(Shared { clock: Clock::start(), watched: Mutex::new(watched), some: Condvar::new() }));
        let shared = Arc::clone(&watch.0);
        Builder::new().name("watch".to_owned()).spawn(move || shared.look())?;
        Ok(watch)
    }

    /// Makes a place for one process after the other.
    pub fn place(&self) -> Watching {
        let mut watched = self.0.watched();
        watched.places.push(Place::default());
        Watching { watch: self.clone(), place: watched.places.len() - 1 }
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) {
        let mut watched = self.watched();
        loop {
            let now = self.clock.now();
            for place in &mut watched.places {
                if place.until.is_some_and(|until| until <= now)
                    && let Some(leader) = place.leader
                {
                    (place.until, place.killed) = (None, true);
                    // One that has just ended by itself is as dead.
                    let _ = process::kill_group(leader);
                }
            }
            watched.next = watched.places.iter().filter_map(|place| place.until).min();
            watched = match watched.next {
                None => self.some.wait(watched).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let waited = self.some.wait_timeout(watched, at - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Watching {
    fn with<R>(&self, act: impl FnOnce(&mut Place) -> R) -> R {
        act(&mut self.watch.0.watched().places[self.place])
    }

    /// Begins the time of a process that leads a group.
    pub fn begin(&self, leader: u32, within: Duration) {
        let mut watched = self.watch.0.watched();
        let until = self.watch.0.clock.now() + within;
        watched.places[self.place] = Place { leader: Some(leader), until: Some(until), killed: false };
        if watched.next.is_none_or(|next| until < next) {
            self.watch.0.some.notify_one();
        }
    }

    /// Ends the time of a process. Returns whether it had run out, and the group was killed.
    pub fn end(&self) -> bool {
        self.with(|place| {
            place.until = None;
            place.killed
        })
    }

    /// Kills what is left of the group, which is to be collected next.
    pub fn kill(&self) {
        self.with(|place| {
            if let Some(leader) = place.leader.take() {
                // All of it may have ended by itself.
                let _ = process::kill_group(leader);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").process_group(0).spawn().expect("`sleep` is everywhere")
    }

    #[test]
    fn kills_who_takes_too_long_and_nobody_else() {
        let watch = Watch::start().expect("a thread");
        let (slow, quick) = (watch.place(), watch.place());
        let (mut slow_child, mut quick_child) = (sleeper(), sleeper());
        quick.begin(quick_child.id(), Duration::from_secs(60));
        quick.end();
        slow.begin(slow_child.id(), Duration::from_millis(1));
        assert!(!slow_child.wait().expect("it is ours").success());
        assert!(slow.end() && !quick.end());
        assert_eq!(quick_child.try_wait().expect("it is ours"), None);
        quick.kill();
        assert!(!quick_child.wait().expect("it is ours").success());
    }
}
