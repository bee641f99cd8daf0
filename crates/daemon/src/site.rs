use crate::exposition::CONTENT_TYPE;
use crate::http::{Answer, Asked, Http, Reply};
use crate::{Error, Health, Registry};
use hodo_io::{ServeOptions, SocketSettings, Stop, StreamServer, affinity};
use hodo_machine::{Address, Wait};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

/// Where a daemon says how it does.
pub const HEALTH: &str = "/health";
/// Connections at once. Each may keep one page waiting.
const PEERS_MAX: usize = 16;

/// Pages by their paths. They are made on the thread that answers, which has no descriptors but its own.
#[derive(Default)]
pub struct Pages {
    pages: Vec<(&'static str, Box<Page>)>,
}

type Page = dyn Fn() -> Reply + Send + Sync;

impl Pages {
    /// `/metrics` for Prometheus, and `/health`: 200 while the daemon serves, else 503.
    #[must_use]
    pub fn new(registry: Arc<Registry>, health: Arc<Health>) -> Self {
        let metrics = move || Reply { status: 200, content_type: CONTENT_TYPE, body: registry.text() };
        let health = move || match health.word() {
            Ok(word) => Reply::text(200, format!("{word}\n")),
            Err(why) => Reply::text(503, format!("{why}\n")),
        };
        Pages::default().with("/metrics", metrics).with(HEALTH, health)
    }

    /// With one more page.
    #[must_use]
    pub fn with(mut self, path: &'static str, page: impl Fn() -> Reply + Send + Sync + 'static) -> Self {
        self.pages.push((path, Box::new(page)));
        self
    }

    fn reply(&self, path: &str) -> Reply {
        if let Some((_, page)) = self.pages.iter().find(|(known, _)| *known == path) {
            return page();
        }
        let paths: Vec<&str> = self.pages.iter().map(|(path, _)| *path).collect();
        let status = if path == "/" { 200 } else { 404 };
        Reply::text(status, format!("There is: {}\n", paths.join(" ")))
    }
}

/// Answers requests for pages over HTTP/1.1 on a thread of its own, until it is dropped.
pub struct Site {
    address: SocketAddr,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// Answers at an address; port 0 is any free one.
    pub fn open(address: SocketAddr, pages: Pages) -> Result<Self, Error> {
        let failed =
            |why: &dyn fmt::Display| Error::Listen { address: format!("http://{address}"), why: why.to_string() };
        let stop = Arc::new(Stop::new(false));
        let (told, bound) = mpsc::channel();
        let until = Arc::clone(&stop);
        let thread = Builder::new().name("http".to_owned()).spawn(move || {
            // Those who serve would pay for sharing theirs.
            affinity::leave_descriptors();
            let server = match StreamServer::bind(&Address::Socket(address), options()) {
                Ok(server) => server,
                Err(error) => return drop(told.send(Err(error))),
            };
            // Whoever opens the site waits for this.
            let _ = told.send(Ok(server.address().clone()));
            let answer = |Asked { tag, peer, path }| Some(Answer { tag, peer, reply: pages.reply(&path) });
            // Where the poller itself fails there are no pages any more; what the daemon is there for goes on.
            let _ = server.run(Http::default, answer, &until);
        });
        let thread = thread.map_err(|error| failed(&error))?;
        match bound.recv() {
            Ok(Ok(Address::Socket(address))) => Ok(Site { address, stop, thread: Some(thread) }),
            Ok(Err(error)) => Err(failed(&error)),
            _ => Err(failed(&"its thread has ended")),
        }
    }

    /// Where it answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has said all that it had to say.
            let _ = thread.join();
        }
    }
}

fn options() -> ServeOptions {
    let settings = SocketSettings { peers_max: PEERS_MAX, ..SocketSettings::default() };
    ServeOptions { threads: 1, cpus: Vec::new(), wait: Wait::Block, settings }
}
