//! A far end that was started here: a process of its own, or a thread of this one.

use crate::placement::Placement;
use crate::private_dir::PrivateDir;
use crate::process::{FarEndProcess, Launch, Process, no_thread};
use crate::{Conditions, Error, FarEnd, Host, ServeSettings, Timing, Uri};
use hodo_io::PathOptions;
use hodo_machine::Address;
use hodo_measure::FarEndFacts;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// The most peers at once of a far end in a thread.
const PEERS_MAX: usize = 20_000;

/// A running far end. Dropped, it is stopped.
pub(crate) struct Running {
    place: Place,
    uri: Uri,
    placement: Placement,
    /// The facts of its side, for a protocol that has no words for them.
    facts: FarEndFacts,
    /// The address of its pages.
    pages: Option<SocketAddr>,
    /// The far end behind it, as a device behind a hub.
    behind: Option<Box<Running>>,
    /// The folder of its socket: the far end removes it, unless it is killed.
    _dir: Option<PrivateDir>,
}

enum Place {
    Process(Process),
    Thread(Thread),
}

struct Thread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Running {
    /// Starts the far end of a link that names none, and waits until it listens.
    pub(crate) fn start(
        link: &Uri,
        timing: &Timing,
        conditions: &Conditions,
        placement: &Placement,
    ) -> Result<Running, Error> {
        let far_end = link.protocol.far_end(link, timing.stages);
        let behind = far_end.behind.as_ref().map(|behind| Running::start(behind, timing, conditions, placement));
        let behind = behind.transpose()?.map(Box::new);
        let launch = Launch {
            wait: timing.wait,
            cpus: placement.far.clone(),
            congestion: conditions.congestion.clone(),
            path: far_path(&conditions.path),
            socket_buffer: placement.socket_buffer,
            payload: conditions.content.file.clone(),
            timeout: timing.timeout,
        };
        let (place, said, dir) = match &conditions.far_end {
            Host::Program(program) => {
                let (process, said) = Process::start(program, &far_end, &launch)?;
                (Place::Process(process), said, None)
            }
            Host::Thread => {
                let (thread, said, dir) = Thread::start(&far_end, &launch)?;
                (Place::Thread(thread), vec![said], dir)
            }
        };
        let uri = link.protocol.link_to(link, &said, behind.as_deref().map(Running::link))?;
        let pages = said.get(1).and_then(|pages| pages.parse().ok());
        let is_at_path = link.protocol.description().is_at_path;
        let dir = dir.or_else(|| is_at_path.then(|| Path::new(&uri.path).parent().map(PrivateDir::adopt)).flatten());
        let facts = launch.serve_settings(&uri).facts(&Address::Path(uri.path.clone()));
        Ok(Running { place, uri, placement: placement.clone(), facts, pages, behind, _dir: dir })
    }

    /// Returns the link to the far end.
    pub(crate) fn link(&self) -> &Uri {
        &self.uri
    }

    /// Returns the address of the far end's pages, if it has any.
    pub(crate) fn pages(&self) -> Option<SocketAddr> {
        self.pages
    }

    /// Returns the far end's process, if it is not this one.
    pub(crate) fn process(&self) -> Option<&FarEndProcess> {
        match &self.place {
            Place::Process(process) => Some(process.far_end()),
            Place::Thread(_) => None,
        }
    }

    /// Returns the processes of the far ends behind it.
    pub(crate) fn processes_behind(&self) -> Vec<u32> {
        let behind = self
            .behind
            .iter()
            .flat_map(|behind| behind.process().map(FarEndProcess::id).into_iter().chain(behind.processes_behind()));
        behind.collect()
    }

    /// Returns the facts of the far end's side.
    pub(crate) fn facts(&self) -> &FarEndFacts {
        &self.facts
    }

    /// Returns the placement of the far end.
    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Returns the reason why the far end has ended; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Option<String> {
        if let Some(ended) = self.behind.as_mut().and_then(|behind| behind.ended()) {
            return Some(ended);
        }
        match &mut self.place {
            Place::Process(process) => process.ended(),
            Place::Thread(thread) => {
                let is_over = thread.thread.as_ref().is_none_or(JoinHandle::is_finished);
                is_over.then(|| "the far end has ended".to_owned())
            }
        }
    }
}

/// Returns the options of the sockets of a far end that is started here: those of the link, and its version of IP.
fn far_path(path: &PathOptions) -> PathOptions {
    PathOptions { local: None, version: path.ip_version(), ..path.clone() }
}

impl Launch {
    /// Returns the settings of a server that is started so.
    fn serve_settings(&self, uri: &Uri) -> ServeSettings {
        ServeSettings {
            threads: usize::from(self.cpus.is_empty()),
            cpus: self.cpus.clone(),
            wait: self.wait,
            congestion: self.congestion.clone(),
            path: self.path.clone(),
            socket_buffer: self.socket_buffer,
            payload: self.payload.clone(),
            size_max: uri.protocol.description().size_max,
            peers_max: PEERS_MAX,
        }
    }
}

impl Thread {
    fn start(far_end: &FarEnd, launch: &Launch) -> Result<(Thread, String, Option<PrivateDir>), Error> {
        let Some(served) = &far_end.served else {
            let words = far_end.words.join(" ");
            return Err(Error::Usage(format!("`hodo {words}` cannot run in a thread; name the program to start")));
        };
        let (mut uri, mut dir) = (served.clone(), None);
        if uri.protocol.description().is_at_path && uri.wants_far_end() {
            let made = PrivateDir::make()?;
            uri.path = made.socket();
            dir = Some(made);
        }
        let server = crate::serve(&uri, &launch.serve_settings(&uri))?;
        let listening = server.uri().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Builder::new()
            .name("far end".to_owned())
            .spawn(move || server.run(&stopped))
            .map_err(|why| no_thread(&why))?;
        Ok((Thread { stop, thread: Some(thread) }, listening, dir))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // How it ended has been asked before, where anybody wanted to know.
            let _ = thread.join();
        }
    }
}
