use crate::callers::{Caller, Names};
use crate::exposition::CONTENT_TYPE;
use crate::http::{Answer, Http, PageRequest, Reply, TO_ACT, TO_READ};
use crate::{Error, Health, Registry};
use hodo_io::{Bell, ServeOptions, Server, SocketSettings, Stop, host, process};
use hodo_machine::Address;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The path of a daemon's health.
pub const HEALTH: &str = "/health";
/// Connections at once, with those that are closed and have not taken their answer. The machine closes others long before.
const PEERS_MAX: usize = 256;
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
                "actions are refused over TCP: use `hodo farm` on the same host as the daemon's owner or root, \
                                    or start the daemon with --control everybody"
                    .to_owned()
            }
        };
        Some(Reply::text(403, format!("{why}\n")))
    }
}

/// Returns the name of the Unix socket beside the pages at a TCP address: one without a file, in the same network name space
/// as the address.
#[must_use]
pub(crate) fn operators_socket(pages: SocketAddr) -> Address {
    let ip = pages.ip().to_canonical();
    let port = pages.port();
    Address::Path(if ip.is_unspecified() { format!("@hodo/*:{port}") } else { format!("@hodo/{ip}:{port}") })
}

/// Threads that answer requests over HTTP/1.1 until this is dropped: one over TCP, and one over a Unix socket for programs of this
/// host, which nobody elsewhere can keep busy.
pub struct Site {
    address: SocketAddr,
    stop: Arc<Stop>,
    bell: Bell,
    threads: Vec<JoinHandle<()>>,
}

impl Site {
    /// Serves pages at an address; port 0 is any free one. Requests over TCP have to be for an IP address, this host's name,
    /// or one of `names`.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address cannot be bound, [`Error::NoThread`] if no thread can be started.
    pub fn open(address: SocketAddr, pages: Pages, names: &[String]) -> Result<Self, Error> {
        fn failed(place: impl Display, why: impl Display) -> Error {
            Error::Listen { address: place.to_string(), why: why.to_string() }
        }
        let bind = |at: &Address| Server::bind(at, options());
        let tcp = bind(&Address::Tcp(address)).map_err(|why| failed(format_args!("http://{address}"), why))?;
        let address = tcp.address().ip().unwrap_or(address);
        let unix = operators_socket(address);
        let unix = bind(&unix).map_err(|why| failed(&unix, why))?;
        let names = Names::new(host::name().into_iter().chain(names.iter().cloned()));
        let mut site = Site { address, stop: Arc::new(Stop::new(false)), bell: Bell::default(), threads: Vec::new() };
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

fn options() -> ServeOptions {
    let settings = SocketSettings { peers_max: PEERS_MAX, close_within: CLOSE_WITHIN, ..SocketSettings::default() };
    ServeOptions { settings, ..ServeOptions::default() }
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

    #[test]
    fn the_sockets_name_follows_from_the_address_of_the_pages() {
        let name = |address: &str| operators_socket(address.parse().expect("an address")).to_string();
        assert_eq!(name("127.0.0.1:9205"), "@hodo/127.0.0.1:9205");
        assert_eq!(name("[::ffff:10.0.0.1]:80"), "@hodo/10.0.0.1:80");
        assert_eq!(name("[::]:9205"), "@hodo/*:9205");
        assert_eq!(name("0.0.0.0:9205"), "@hodo/*:9205");
    }
}
