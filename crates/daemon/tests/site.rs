//! Pages over real connections.

use hodo_daemon::{Health, Pages, Registry, Reply, Site, State};
use hodo_io::Snapshot;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
const ANYWHERE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

fn connect(site: &Site) -> TcpStream {
    let stream = TcpStream::connect(site.address()).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
    stream
}

/// Requests a page once and returns the status and the body.
fn page(site: &Site, path: &str) -> (u16, String) {
    let mut stream = connect(site);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers and closes");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head ends");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status is told"), body.to_owned())
}

fn open(more: impl FnOnce(Pages) -> Pages) -> (Site, Arc<Registry>, Arc<Health>) {
    let (registry, health) = (Arc::new(Registry::new()), Arc::new(Health::new(TIMEOUT)));
    let pages = more(Pages::new(Arc::clone(&registry), Arc::clone(&health)));
    (Site::open(ANYWHERE.into(), pages, &[]).expect("a free port"), registry, health)
}

#[test]
fn metrics_and_health_are_those_of_now() {
    let (site, registry, health) = open(|pages| pages.with("/stats", || Reply::json("{}")));
    assert_eq!(page(&site, "/health"), (503, "starting\n".to_owned()));
    health.set(State::Ready);
    assert_eq!(page(&site, "/health"), (200, "ready\n".to_owned()));
    let requests = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&requests);
    registry.source(move |exposition| {
        exposition.counter("requests_total", "Requests.", &[], counted.load(Relaxed));
    });
    for count in 1..=3 {
        requests.store(count, Relaxed);
        let (status, text) = page(&site, "/metrics");
        assert!(status == 200 && text.contains(&format!("requests_total {count}\n")), "{text}");
    }
    assert_eq!(page(&site, "/stats?pretty"), (200, "{}".to_owned()));
    assert_eq!(page(&site, "/other").0, 404);
    assert_eq!(page(&site, "/"), (200, "Pages: /metrics /health /stats\n".to_owned()));
}

#[test]
fn a_connection_is_used_again() {
    let (site, _, _) = open(|pages| pages.with("/a", || Reply::text(200, "page a")));
    let mut stream = connect(&site);
    for _ in 0..3 {
        stream.write_all(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\npage a") {
            let mut buffer = [0; 1000];
            let count = stream.read(&mut buffer).expect("it answers");
            assert!(count > 0, "it closed");
            bytes.extend_from_slice(&buffer[..count]);
        }
    }
}

#[test]
fn those_who_hold_connections_keep_nobody_out_for_ever() {
    let (site, _, _) = open(|pages| pages);
    let mut held: Vec<TcpStream> = (0..40).map(|_| connect(&site)).collect();
    held.iter_mut().for_each(|stream| drop(stream.write_all(b"GET /metrics HT")));
    for _ in 0..20 {
        TcpStream::connect(site.address()).and_then(ask).expect("there is room while they are held");
    }
}

/// Connects to the Unix socket beside the pages.
fn connect_as_operator(site: &Site) -> UnixStream {
    let name = UnixAddr::from_abstract_name(format!("hodo/{}", site.address())).expect("a name");
    UnixStream::connect_addr(&name).expect("it listens")
}

#[test]
fn actions_are_requested_over_the_unix_socket_and_not_over_tcp() {
    let (site, _, _) = open(|pages| pages.with_action("/go", |_| Reply::text(200, "gone")));
    let request = "POST /go HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut text = String::new();
    let mut stream = connect(&site);
    stream.write_all(request.as_bytes()).expect("it reads");
    stream.read_to_string(&mut text).expect("it answers");
    assert!(text.starts_with("HTTP/1.1 403 ") && text.contains("--control everybody"), "{text}");
    let mut text = String::new();
    let mut stream = connect_as_operator(&site);
    stream.write_all(request.as_bytes()).expect("it reads");
    stream.read_to_string(&mut text).expect("it answers");
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("gone"), "{text}");
    assert_eq!(hodo_daemon::act(site.address(), "/go", TIMEOUT).as_deref(), Ok("gone"));
}

/// Tries once, and fails if there is no room.
fn ask(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    if text.starts_with("HTTP/1.1 503 ") { Ok(()) } else { Err(std::io::ErrorKind::ConnectionReset.into()) }
}

#[test]
fn a_long_page_arrives_whole() {
    let (site, _, _) = open(|pages| pages.with("/long", || Reply::text(200, "0123456789".repeat(500_000))));
    let (status, text) = page(&site, "/long");
    assert_eq!((status, text.len()), (200, 5_000_000));
    assert!(text.ends_with("0123456789"));
}

#[test]
fn a_page_can_be_made_of_what_a_busy_thread_knows() {
    let (snapshot, ended) = (Arc::new(Snapshot::default()), AtomicBool::new(false));
    let asked = Arc::clone(&snapshot);
    let (site, _, _) = open(|pages| {
        pages.with("/turns", move || match asked.ask(TIMEOUT) {
            Some(turn) => Reply::text(200, format!("{turn}")),
            None => Reply::text(503, "nothing is known yet\n"),
        })
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0_u64.. {
                snapshot.offer(|| turn);
                std::thread::yield_now();
                if ended.load(Relaxed) {
                    break;
                }
            }
        });
        let turns = [(); 3].map(|()| page(&site, "/turns").1.parse::<u64>().expect("a number"));
        ended.store(true, Relaxed);
        assert!(turns[0] < turns[1] && turns[1] < turns[2], "{turns:?}");
    });
}

#[test]
fn an_address_that_is_taken_is_told() {
    let (site, _, _) = open(|pages| pages);
    let taken: SocketAddr = site.address();
    let error = Site::open(taken, Pages::default(), &[]).err().expect("it is taken");
    let text = error.to_string();
    assert!(text.contains(&taken.to_string()) && text.contains("choose another"), "{text}");
}

/// A request to stop is answered although the pages end with it.
#[test]
fn an_action_that_ends_the_pages_is_answered() {
    let (begun, ends) = mpsc::channel();
    let (_never, told) = mpsc::channel::<()>();
    let told = Mutex::new(told);
    let stop = move |_: &str| {
        begun.send(()).expect("the test waits");
        // Longer than it takes to notice the end.
        let _ = told.lock().expect("nobody panics").recv_timeout(Duration::from_millis(50));
        Reply::text(200, "stopping\n")
    };
    let (site, _, _) = open(|pages| pages.with_action("/stop", stop));
    let mut stream = connect_as_operator(&site);
    write!(stream, "POST /stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").expect("it reads");
    ends.recv().expect("the action begins");
    drop(site);
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers and closes");
    assert!(text.ends_with("\r\n\r\nstopping\n"), "{text:?}");
}
