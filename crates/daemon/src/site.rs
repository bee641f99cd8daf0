use crate::exposition::CONTENT_TYPE;
use crate::http::{Answer, Http, PageRequest, Reply, TO_ACT, TO_READ};
use crate::{Error, Health, Registry};
use hodo_io::{Bell, ServeOptions, Server, SocketSettings, Stop};
use hodo_machine::{Address, Wait};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

/// The path of a daemon's health.
pub const HEALTH: &str = "/health";
/// Connections at once. Each can have one page under way.
const PEERS_MAX: usize = 16;

/// The clients that may request actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// Programs and people of this host.
    #[default]
    Local,
    /// Whoever can reach the pages.
    Everybody,
    /// Nobody.
    Nobody,
}

/// Pages and actions by their paths. They run on the thread that answers.
#[derive(Default)]
pub struct Pages {
    pages: Vec<(&'static str, Box<Page>)>,
    actions: Vec<(&'static str, Box<Action>)>,
    control: Control,
}

type Page = dyn Fn() -> Reply + Send + Sync;
type Action = dyn Fn(&str) -> Reply + Send + Sync;

impl Pages {
    /// Creates `/metrics` for Prometheus, and `/health`: 200 while the daemon serves, else 503.
    #[must_use]
    pub fn new(registry: Arc<Registry>, health: Arc<Health>) -> Self {
        let metrics = move || Reply { content_type: CONTENT_TYPE, ..Reply::text(200, registry.text()) };
        let health = move || match health.word() {
            Ok(word) => Reply::text(200, format!("{word}\n")),
            Err(why) => Reply::text(503, format!("{why}\n")),
        };
        Pages::default().with("/metrics", metrics).with(HEALTH, health)
    }

    /// Adds a page.
    #[must_use]
    pub fn with(mut self, path: &'static str, page: impl Fn() -> Reply + Send + Sync + 'static) -> Self {
        self.pages.push((path, Box::new(page)));
        self
    }

    /// Adds an action, which a POST without a body requests; it receives the query. Requests of pages in browsers are refused,
    /// so that no web site can act through the browser of a person who may.
    #[must_use]
    pub fn with_action(mut self, path: &'static str, act: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        self.actions.push((path, Box::new(act)));
        self
    }

    /// Sets the clients that may request actions; without this, those of this host.
    #[must_use]
    pub fn controlled_by(self, control: Control) -> Self {
        Pages { control, ..self }
    }

    fn reply(&self, asked: &PageRequest) -> Reply {
        let page = self.pages.iter().find(|(known, _)| *known == asked.path);
        let action = self.actions.iter().find(|(known, _)| *known == asked.path);
        match (page, action) {
            (Some((_, page)), _) if !asked.acts => page(),
            (None, Some((_, act))) if asked.acts => self.refusal(asked).unwrap_or_else(|| act(&asked.query)),
            (Some(_), _) => Reply::not_allowed(TO_READ),
            (None, Some(_)) => Reply::not_allowed(TO_ACT),
            (None, None) => {
                let paths: Vec<&str> = self.pages.iter().map(|(path, _)| *path).collect();
                let mut text = format!("Pages: {}\n", paths.join(" "));
                if !self.actions.is_empty() && self.control != Control::Nobody {
                    let paths: Vec<&str> = self.actions.iter().map(|(path, _)| *path).collect();
                    text += &format!("Actions, with POST: {}\n", paths.join(" "));
                }
                Reply::text(if asked.path == "/" && !asked.acts { 200 } else { 404 }, text)
            }
        }
    }

    /// Returns the refusal of an action, or `None` if the client may request it.
    fn refusal(&self, asked: &PageRequest) -> Option<Reply> {
        let why = match self.control {
            Control::Nobody => "actions are disabled",
            _ if asked.from_page => "actions are refused to pages in browsers",
            Control::Local if !asked.is_local => "actions are allowed to programs on the same host only",
            Control::Local | Control::Everybody => return None,
        };
        Some(Reply::text(403, format!("{why}\n")))
    }
}

/// A thread that answers requests over HTTP/1.1 until this is dropped.
pub struct Site {
    address: SocketAddr,
    stop: Arc<Stop>,
    bell: Bell,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// Serves pages at an address; port 0 is any free one.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address cannot be bound or no thread can be started.
    pub fn open(address: SocketAddr, pages: Pages) -> Result<Self, Error> {
        let failed =
            |why: &dyn fmt::Display| Error::Listen { address: format!("http://{address}"), why: why.to_string() };
        let stop = Arc::new(Stop::new(false));
        let (told, bound) = mpsc::channel();
        let (until, bell) = (Arc::clone(&stop), Bell::default());
        let called = bell.clone();
        let thread = Builder::new().name("http".to_owned()).spawn(move || {
            let server = match Server::bind(&Address::Tcp(address), options()) {
                Ok(server) => server.with_bell(&called),
                Err(error) => return drop(told.send(Err(error))),
            };
            // The caller waits for this.
            let _ = told.send(Ok(server.address().clone()));
            let answer = |asked: PageRequest| {
                let reply = pages.reply(&asked);
                Some(Answer { tag: asked.tag, peer: asked.peer, reply })
            };
            // If the poller itself fails there are no more pages; the daemon goes on.
            let _ = server.run(Http::default, answer, &until);
        });
        let thread = thread.map_err(|error| failed(&error))?;
        match bound.recv() {
            Ok(Ok(Address::Tcp(address))) => Ok(Site { address, stop, bell, thread: Some(thread) }),
            Ok(Err(error)) => Err(failed(&error)),
            _ => Err(failed(&"its thread has ended")),
        }
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic on that thread is in the log already.
            let _ = thread.join();
        }
    }
}

fn options() -> ServeOptions {
    let settings = SocketSettings { peers_max: PEERS_MAX, ..SocketSettings::default() };
    ServeOptions { threads: 1, cpus: Vec::new(), wait: Wait::Block, settings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Peer;

    #[test]
    fn something_is_done_only_for_those_who_may() {
        let pages = |control| Pages::default().with_action("/stop", |_| Reply::text(200, "")).controlled_by(control);
        let status = |control, is_local, from_page| {
            let (path, query) = ("/stop".to_owned(), String::new());
            pages(control)
                .reply(&PageRequest { tag: 0, peer: Peer(0), path, query, acts: true, is_local, from_page })
                .status
        };
        for (control, is_local, from_page, expected) in [
            (Control::Local, true, false, 200),
            (Control::Local, false, false, 403),
            (Control::Local, true, true, 403),
            (Control::Everybody, false, false, 200),
            (Control::Everybody, false, true, 403),
            (Control::Nobody, true, false, 403),
        ] {
            assert_eq!(status(control, is_local, from_page), expected, "{control:?} {is_local} {from_page}");
        }
    }
}
