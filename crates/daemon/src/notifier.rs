use hodo_io::notify;
use std::env;
use std::ffi::OsString;
use std::time::Duration;

/// Tells systemd how the daemon does, where it was started by it; else nothing is told.
///
/// What cannot be sent is lost: a manager that does not listen is no reason to stop serving.
#[derive(Debug, Clone, Default)]
pub struct Notifier {
    socket: Option<OsString>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// As the environment says: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` where `WATCHDOG_PID` is absent or this process.
    #[must_use]
    pub fn from_environment() -> Self {
        let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let is_ours =
            env::var_os("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(std::process::id().into());
        let watchdog = number("WATCHDOG_USEC").filter(|span| is_ours && *span > 0).map(Duration::from_micros);
        Notifier::new(env::var_os("NOTIFY_SOCKET"), watchdog)
    }

    /// Tells this socket: a path, or an abstract name behind an `@`. `watchdog` is how long the manager waits for a sign
    /// of life.
    #[must_use]
    pub fn new(socket: Option<OsString>, watchdog: Option<Duration>) -> Self {
        Notifier { watchdog: watchdog.filter(|_| socket.is_some()), socket }
    }

    /// How often a sign of life is to be given, where one is wanted: twice in the time that the manager waits.
    #[must_use]
    pub fn watchdog_every(&self) -> Option<Duration> {
        self.watchdog.map(|span| span / 2)
    }

    /// It serves. The status is one line for people.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\n{}", line(status)));
    }

    /// It reads its configuration again; [`Notifier::ready`] says when that is done.
    pub fn reloading(&self) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", notify::monotonic_us()));
    }

    /// It comes to its end.
    pub fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\n{}", line(status)));
    }

    /// One line for people.
    pub fn status(&self, status: &str) {
        self.send(&line(status));
    }

    /// A sign of life.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket {
            // Nobody else could be told.
            let _ = notify::notify(socket, message);
        }
    }
}

fn line(status: &str) -> String {
    format!("STATUS={}", status.replace('\n', " "))
}
