//! A whole daemon as a service manager sees it: this program is started anew as the daemon.

use hodo_daemon::{Daemon, Options, PidFile, Rounds};
use hodo_io::{Attendant, ServeOptions, Server, SocketSettings, process};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Where the daemon is to write its process number: only the one that is started anew has it.
const PID_FILE: &str = "HODO_TEST_PID_FILE";

/// Greets everybody, and owes an answer to those who ask until somebody says `!`.
#[derive(Default)]
struct Keeper {
    greeted: VecDeque<Peer>,
    owed: VecDeque<Peer>,
    released: bool,
}

impl Machine for Keeper {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => self.greeted.push_back(peer),
            Input::Received(_, b"!") => self.released = true,
            Input::Received(peer, _) => self.owed.push_back(peer),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(peer) = self.greeted.pop_front() {
            out.copy(b"hello");
            return Output::Send(peer);
        }
        if !self.released {
            return Output::Idle(None);
        }
        match self.owed.pop_front() {
            Some(peer) => {
                out.copy(b"answer");
                Output::Send(peer)
            }
            None => Output::Idle(None),
        }
    }
}

struct Serving(Rounds);

impl Attendant for Serving {
    type Machine = Keeper;

    fn told(&mut self, (): ()) -> Option<()> {
        None
    }

    fn look_in(&mut self, now: Instant, _: &Keeper) -> Option<()> {
        if self.0.look_in(now) {
            self.0.reloaded("configured anew");
        }
        None
    }

    fn drain(&mut self) -> Option<()> {
        self.0.draining("draining");
        None
    }

    fn is_drained(&self, keeper: &Keeper) -> bool {
        keeper.released && keeper.owed.is_empty()
    }
}

/// Runs the daemon of the tests below; without their environment it does nothing.
#[test]
fn as_daemon() {
    let Some(file) = std::env::var_os(PID_FILE) else { return };
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let pid_file = Some(PathBuf::from(file));
    let options = Options { http: Some(anywhere), pid_file, catches_signals: true, ..Options::default() };
    let daemon = Daemon::start(&options, |pages| pages).unwrap_or_else(|error| panic!("{error}"));
    let settings = SocketSettings::default();
    let options = ServeOptions { settings, ..ServeOptions::default() };
    let server = Server::bind(&Address::Tcp(anywhere), options).expect("a free port").with_drain(TIMEOUT);
    daemon.ready(&format!("{} {}", server.address(), daemon.site().expect("it was asked for")));
    let make = |index| (Keeper::default(), Serving(daemon.rounds(&format!("keeper {index}"))));
    server.attend(make, daemon.stop()).expect("it ends in order");
}

/// The manager's end: its socket, and the daemon.
struct Started {
    manager: UnixDatagram,
    daemon: Child,
    pid_file: PathBuf,
}

impl Started {
    fn new(name: &str) -> Self {
        let name = format!("hodo-daemon-{name}-{}", std::process::id());
        let address = UnixAddress::from_abstract_name(&name).expect("a short name");
        let manager = UnixDatagram::bind_addr(&address).expect("a new name");
        manager.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
        let pid_file = std::env::temp_dir().join(&name);
        let daemon = start(&pid_file)
            .env("NOTIFY_SOCKET", format!("@{name}"))
            .env("WATCHDOG_USEC", "200000")
            .spawn()
            .expect("this program can be started");
        Started { manager, daemon, pid_file }
    }

    /// Returns the next message that is no sign of life.
    fn told(&self) -> String {
        loop {
            let message = self.message();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }

    fn message(&self) -> String {
        let mut buffer = [0; 1000];
        let length = self.manager.recv(&mut buffer).expect("the daemon tells something");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn start(pid_file: &PathBuf) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("it runs"));
    command.args(["--exact", "as_daemon", "--nocapture"]).env(PID_FILE, pid_file);
    command
}

fn page(site: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(site).expect("the pages are there");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

#[test]
fn starts_reloads_drains_and_ends_as_its_manager_is_told() {
    let mut started = Started::new("whole");
    let ready = started.told();
    let addresses = ready.strip_prefix("READY=1\nSTATUS=").unwrap_or_else(|| panic!("{ready}"));
    let (hub, site) = addresses.split_once(' ').expect("two addresses");
    let pid = started.daemon.id();
    assert_eq!(PidFile::holder(&started.pid_file).expect("it is there"), Some(pid));
    assert!(page(site, "/health").ends_with("\r\n\r\nready\n"));
    assert!(page(site, "/metrics").contains("process_cpu_seconds_total "));
    while started.message() != "WATCHDOG=1" {}

    let again = start(&started.pid_file).output().expect("this program can be started");
    let text = String::from_utf8_lossy(&again.stderr).into_owned() + &String::from_utf8_lossy(&again.stdout);
    assert!(!again.status.success() && text.contains(&format!("already running as process {pid}")), "{text}");

    let hangup = Command::new("kill").args(["-HUP", &pid.to_string()]).status().expect("`kill` is everywhere");
    assert!(hangup.success());
    assert!(started.told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(started.told(), "READY=1\nSTATUS=configured anew");

    let [mut waiting, mut other] = [(); 2].map(|()| {
        let mut client = TcpStream::connect(hub).expect("it listens");
        client.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
        client.read_exact(&mut [0; 5]).expect("it greets");
        client
    });
    waiting.write_all(b"?").expect("it reads");
    process::terminate(pid).expect("it is ours");
    assert_eq!(started.told(), "STOPPING=1\nSTATUS=draining");
    assert!(page(site, "/health").ends_with("\r\n\r\ndraining\n"));
    // Nobody new is taken, within a tenth of a second.
    while TcpStream::connect(hub).is_ok() {}
    other.write_all(b"!").expect("it reads");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("it answers before it ends");
    assert_eq!(answer, "answer");
    assert!(started.daemon.wait().expect("it ends").success());
    assert!(!started.pid_file.exists());
}
