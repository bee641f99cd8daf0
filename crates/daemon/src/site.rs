use crate::callers::{Caller, Names};
use crate::exposition::CONTENT_TYPE;
use crate::http::{Answer, Http, PageRequest, Reply, TO_ACT, TO_READ};
use crate::seat::Seat;
use crate::{Choice, Error, Health, Registry};
use hodo_io::{Bell, ServeOptions, Server, SocketSettings, Stop, host, process};
use hodo_machine::{Address, Wait};
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The path of a daemon's health.
pub const HEALTH: &str = "/health";
/// Connections at once, with those that are closed and have not taken their answer. The machine closes others long before.
const PEERS_MAX: usize = 256;
/// Ports that are tried for pages at a usual address, and how far they are apart: those between are other daemons' usual ones.
const PORTS_MAX: u16 = 100;
const PORT_STEP: u16 = 10;
/// How long a closed connection may take for the rest of its answer.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// The clients that may request actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// The daemon's owner and root, over its Unix socket.
    #[default]
    Owner,
    /// Whoever can reach the pages, over TCP too.
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

    /// Sets the clients that may request actions; without this, the daemon's owner and root.
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
        let owner = process::user();
        let why = match (self.control, asked.caller) {
            (Control::Nobody, _) => "actions are disabled; start the daemon without --control nobody".to_owned(),
            _ if asked.from_page => "actions are refused to pages in browsers".to_owned(),
            (Control::Everybody, _) => return None,
            (Control::Owner, caller) if caller.is_operator(owner) => return None,
            (Control::Owner, Caller::User(user)) => {
                format!("user {user} may not steer this daemon: its owner (user {owner}) and root may")
            }
            (Control::Owner, _) => {
                "actions are refused over TCP: use `hodo farm` on the same host as the daemon's owner, or as root with --user, \
                                    or start the daemon with --control everybody"
                    .to_owned()
            }
        };
        Some(Reply::text(403, format!("{why}\n")))
    }
}

/// Threads that answer requests over HTTP/1.1 until this is dropped: one over TCP, and one over a Unix socket for programs of this
/// host, which nobody elsewhere can keep busy.
pub struct Site {
    address: SocketAddr,
    stop: Arc<Stop>,
    bell: Bell,
    threads: Vec<JoinHandle<()>>,
    /// Free for another once the threads have ended.
    seat: Seat,
}

impl Site {
    /// Serves pages at an address, of which port 0 is any free one, and at a Unix socket of this name. Requests over TCP have to be for
    /// an IP address, this host's name, or one of `names`.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address cannot be bound, [`Error::NoThread`] if no thread can be started, [`Error::Folder`],
    /// [`Error::LongPath`] or [`Error::NameTaken`] if there can be no socket of the name.
    pub fn open(at: &Choice<SocketAddr>, name: &Choice<String>, pages: Pages, names: &[String]) -> Result<Self, Error> {
        fn failed(place: impl Display, why: impl Display) -> Error {
            Error::Listen { address: place.to_string(), why: why.to_string() }
        }
        let mut seat = Seat::take(name)?;
        let (asked, tcp) = bind(at);
        let tcp = tcp.map_err(|why| failed(format_args!("http://{asked}"), why))?;
        let address = tcp.address().ip().unwrap_or(asked);
        seat.set_pages(address)?;
        let at_socket = |why: io::Error| failed(seat.socket.display(), why);
        let unix = Address::Path(seat.socket.to_string_lossy().into_owned());
        let unix = Server::bind(&unix, options()).map_err(at_socket)?;
        seat.close_to_others().map_err(at_socket)?;
        let names = Names::new(host::name().into_iter().chain(names.iter().cloned()));
        let (stop, bell) = (Arc::new(Stop::new(false)), Bell::default());
        let mut site = Site { address, stop, bell, threads: Vec::new(), seat };
        let pages = Arc::new(pages);
        for (name, server) in [("http", tcp), ("operator", unix)] {
            let (server, stop) = (server.with_bell(&site.bell), Arc::clone(&site.stop));
            let (pages, names) = (Arc::clone(&pages), names.clone());
            let thread = Builder::new().name(name.to_owned()).spawn(move || {
                let answer = |asked: PageRequest| {
                    let reply = pages.reply(&asked);
                    Some(Answer { tag: asked.tag, peer: asked.peer, reply })
                };
                // If the poller itself fails there are no more pages; the daemon goes on.
                let _ = server.run(|| Http::new(process::user(), names.clone()), answer, &stop);
            });
            let no_thread =
                |why: io::Error| Error::NoThread { address: format!("http://{address}"), why: why.to_string() };
            site.threads.push(thread.map_err(no_thread)?);
        }
        Ok(site)
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.seat.name
    }

    /// Returns the path of the Unix socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.seat.socket
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.bell.ring();
        for thread in self.threads.drain(..) {
            // A panic on that thread is in the log already.
            let _ = thread.join();
        }
    }
}

/// Binds the pages, at the first free port of those for a usual address, and returns the address that was tried last.
fn bind(at: &Choice<SocketAddr>) -> (SocketAddr, io::Result<Server>) {
    let (Choice::Asked(first) | Choice::Usual(first)) = *at;
    let bind = |address: SocketAddr| (address, Server::bind(&Address::Tcp(address), options()));
    let is_taken = |why: &io::Error| matches!(at, Choice::Usual(_)) && why.kind() == io::ErrorKind::AddrInUse;
    let mut tried = bind(first);
    for step in 1..PORTS_MAX {
        let Some(port) = first.port().checked_add(step * PORT_STEP) else { break };
        if !tried.1.as_ref().is_err_and(is_taken) {
            break;
        }
        tried = bind(SocketAddr::new(first.ip(), port));
    }
    tried
}

fn options() -> ServeOptions {
    let settings = SocketSettings { peers_max: PEERS_MAX, close_within: CLOSE_WITHIN, ..SocketSettings::default() };
    ServeOptions { threads: 1, cpus: Vec::new(), wait: Wait::Block, settings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Peer;

    #[test]
    fn something_is_done_only_for_those_who_may() {
        let pages = |control| Pages::default().with_action("/stop", |_| Reply::text(200, "")).controlled_by(control);
        let status = |control, caller, from_page| {
            let (path, query) = ("/stop".to_owned(), String::new());
            let asked = PageRequest { tag: 0, peer: Peer(0), path, query, acts: true, caller, from_page };
            pages(control).reply(&asked).status
        };
        let (owner, near) = (process::user(), Caller::Host([127, 0, 0, 1].into()));
        for (control, caller, from_page, expected) in [
            (Control::Owner, Caller::User(owner), false, 200),
            (Control::Owner, Caller::User(0), false, 200),
            (Control::Owner, Caller::User(owner + 1), false, 403),
            (Control::Owner, near, false, 403),
            (Control::Owner, Caller::Unknown, false, 403),
            (Control::Owner, Caller::User(owner), true, 403),
            (Control::Everybody, near, false, 200),
            (Control::Everybody, Caller::User(owner + 1), false, 200),
            (Control::Everybody, near, true, 403),
            (Control::Nobody, Caller::User(owner), false, 403),
        ] {
            assert_eq!(status(control, caller, from_page), expected, "{control:?} {caller:?} {from_page}");
        }
    }
}
