use hodo_io::notify;
use std::env;
use std::ffi::OsString;
use std::time::Duration;

/// Reports to systemd if it started the daemon; otherwise does nothing.
///
/// A message that cannot be sent is lost: a service manager that does not listen is no reason to stop serving.
#[derive(Debug, Clone, Default)]
pub struct Notifier {
    socket: Option<OsString>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Reads the environment: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` if `WATCHDOG_PID` is absent or this process.
    #[must_use]
    pub fn from_environment() -> Self {
        let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let is_ours =
            env::var_os("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(std::process::id().into());
        let watchdog = number("WATCHDOG_USEC").filter(|span| is_ours && *span > 0).map(Duration::from_micros);
        Notifier::new(env::var_os("NOTIFY_SOCKET"), watchdog)
    }

    /// Creates a notifier for this socket: a path, or an abstract name behind an `@`. `watchdog` is how long the manager
    /// waits for a sign of life.
    #[must_use]
    pub fn new(socket: Option<OsString>, watchdog: Option<Duration>) -> Self {
        Notifier { watchdog: watchdog.filter(|_| socket.is_some()), socket }
    }

    /// Returns the interval of signs of life, half of the manager's timeout; `None` if the manager expects none.
    #[must_use]
    pub fn watchdog_every(&self) -> Option<Duration> {
        self.watchdog.map(|span| span / 2)
    }

    /// Reports that the daemon serves, with a status of one line.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\n{}", line(status)));
    }

    /// Reports that the configuration is being read again; [`Notifier::ready`] reports the end of it.
    pub fn reloading(&self) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", notify::monotonic_us()));
    }

    /// Reports that the daemon stops.
    pub fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\n{}", line(status)));
    }

    /// Reports a status of one line.
    pub fn status(&self, status: &str) {
        self.send(&line(status));
    }

    /// Sends a sign of life.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket {
            // There is nobody else to report to.
            let _ = notify::notify(socket, message);
        }
    }
}

fn line(status: &str) -> String {
    format!("STATUS={}", status.replace('\n', " "))
}
