//! Raw links: how an [`Operation`] becomes a command of the client machine, and its events become completions.

use hodo_machine::{Address, Driver, Instant, Sampling, Stamp, Wait};
use hodo_measure::{
    ClockDifference, Completion, FarEnd, Link, LinkError, Loss, Mode, Operation, Outcome, ReportWait, Subscription,
    TcpTimes, Usage,
};
use hodo_raw::wire::HEADER;
use hodo_raw::wire::updates::STAMP;
use hodo_raw::{
    Client, ClientConfig, Command, Counters, Direction, Event, ServerCommand, ServerConfig, ServerEvent, Transport,
};
use hodo_tester::{ServeSettings, Settings, TransportCounters, ended, until_ready};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A raw client on any driver, as the tester sees it.
pub(crate) struct RawLink<D: Driver<Machine = Client>> {
    driver: D,
    channels: u32,
    ready: u32,
    size_max: u32,
    is_checked: bool,
    reports: u32,
    /// The operations that each channel's far end has received, as the last reports say.
    received: Vec<(u32, u64)>,
    far_end: FarEnd,
    failed: Option<LinkError>,
}

/// Returns after how many operations an acknowledgement is asked for: four times a window.
pub(crate) fn acknowledge_every(window: u32) -> u32 {
    (window / 4).clamp(1, 1024)
}

/// Bytes of the smallest update, whose message has its stamp whatever was asked for.
const LEAST: u32 = (HEADER + STAMP) as u32;

/// Returns the configuration of the client for these settings.
pub(crate) fn client_config(
    settings: &Settings,
    transport: Transport,
    address: Address,
    channels: u32,
) -> ClientConfig {
    let is_group = address.group().is_some();
    ClientConfig {
        transport,
        is_group,
        address,
        channels,
        size_max: settings.size_max.max(LEAST),
        acknowledge_every: acknowledge_every(settings.window),
        unbounded: settings.unbounded,
        // Who waits for a group is to hear how many of it are missing.
        greeting_timeout: if is_group { settings.timeout / 8 * 7 } else { settings.timeout },
        timeout: settings.timeout / DATAGRAM_PATIENCE,
        reconnect: settings.reconnect,
        check: settings.content.is_checked,
        payload: settings.content.bytes(),
    }
}

/// Returns the configuration of a server for these settings.
pub(crate) fn server_config(settings: &ServeSettings, transport: Transport, secret: [u64; 2]) -> ServerConfig {
    ServerConfig {
        transport,
        size_max: settings.size_max.max(LEAST),
        pending_max: 1 << 20,
        greeting_timeout: Duration::from_secs(5),
        silence_timeout: Duration::from_secs(60),
        lease: Duration::from_secs(1),
        secret,
    }
}

/// Returns the command that answers an event of a server: a request for a report gets the usage of its process.
pub(crate) fn answer(event: ServerEvent) -> Option<ServerCommand> {
    match event {
        ServerEvent::ReportAsked(peer) => Some(ServerCommand::Report { peer, process: own_counters() }),
        ServerEvent::Misbehaved(..) => None,
    }
}

impl<D: TransportCounters<Machine = Client>> RawLink<D> {
    /// Waits until each of the settings' channels that this part has is greeted, and no longer than until `stop` is set.
    pub(crate) fn open(
        driver: D,
        channels: u32,
        settings: &Settings,
        stop: &AtomicBool,
    ) -> Result<RawLink<D>, LinkError> {
        let mut link = RawLink {
            driver,
            channels,
            ready: 0,
            size_max: u32::MAX,
            is_checked: settings.content.is_checked,
            reports: 0,
            received: Vec::new(),
            far_end: FarEnd::default(),
            failed: None,
        };
        until_ready(&mut link, settings.timeout, stop, |link| link.ready >= channels)?;
        Ok(link)
    }

    /// Passes on the count of each receiver of a group; the far end's own is then what all of them have received.
    fn tell_receivers(&mut self) {
        self.received.sort_unstable();
        let addresses = self.driver.machine().receivers();
        let told = addresses.zip(&self.received).map(|(address, (_, count))| (address.to_string(), *count));
        self.far_end.receivers = told.collect();
        if let Some(least) = self.far_end.receivers.iter().map(|(_, count)| *count).min() {
            self.far_end.received = least;
        }
    }

    /// Returns the receivers of a group that have not reported in this time, as an error.
    fn unreported(&self, waited_ns: u64) -> Option<LinkError> {
        let has_reported = |number: usize| self.received.iter().any(|(channel, _)| *channel as usize == number);
        let each = self.driver.machine().receivers().enumerate();
        let missing: Vec<String> =
            each.filter(|(number, _)| !has_reported(*number)).map(|(_, address)| address.to_string()).collect();
        let (who, millis) = (format!("{} of the group", missing.join(", ")), waited_ns.div_ceil(1_000_000));
        (!missing.is_empty()).then_some(LinkError::Unreported { who, millis })
    }

    /// Returns the driver.
    pub(crate) fn driver(&self) -> &D {
        &self.driver
    }

    /// Returns the far end's largest operation in bytes.
    pub(crate) fn size_max(&self) -> u32 {
        self.size_max
    }

    #[inline]
    fn turn(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let RawLink { driver, ready, size_max, reports, received, far_end, failed, channels, .. } = self;
        let outcome = driver.turn(wait, until, &mut |event| match event {
            Event::Done(tag) => done.push(Completion { tag, outcome: Outcome::Done }),
            Event::Lost(tag) => done.push(Completion { tag, outcome: Outcome::Lost }),
            Event::Recovered(tag) => done.push(Completion { tag, outcome: Outcome::Recovered }),
            Event::Sent(tag) => done.push(Completion { tag, outcome: Outcome::Sent }),
            Event::Arrived { channel, count } => {
                done.push(Completion { tag: u64::from(channel), outcome: Outcome::Arrived { count } });
            }
            Event::Withdrawn(tag) => done.push(Completion { tag, outcome: Outcome::Withdrawn }),
            Event::Update { channel, took_ns } => {
                done.push(Completion { tag: u64::from(channel), outcome: Outcome::Update { took_ns } });
            }
            Event::Unsubscribed { channel } => {
                done.push(Completion { tag: u64::from(channel), outcome: Outcome::Unsubscribed });
            }
            Event::Ready { size_max: theirs, .. } => {
                *ready += 1;
                *size_max = theirs.min(*size_max);
            }
            Event::Report { channel, counters, damaged } => {
                *reports += 1;
                add(far_end, &counters);
                received.push((channel, counters.received));
                far_end.loss.damaged = damaged.map(|more| more + far_end.loss.damaged.unwrap_or(0));
            }
            Event::Failed { channel, error } => {
                failed.get_or_insert_with(|| link_error(channel % (*channels).max(1), error));
            }
        });
        ended(outcome, self.failed.as_ref())
    }
}

impl<D: Driver<Machine = Client>> Drop for RawLink<D> {
    fn drop(&mut self) {
        self.driver.command(Command::Leave);
        let now = self.driver.now();
        // A far end that is gone needs no goodbye.
        let _ = self.driver.turn(Wait::Never, now, &mut |_| {});
    }
}

impl<D: TransportCounters<Machine = Client>> Link for RawLink<D> {
    #[inline]
    fn start(&mut self, operation: Operation) {
        let Operation { tag, channel, size, mode } = operation;
        let direction = match mode {
            Mode::Both => Direction::Both,
            Mode::Send => Direction::Send,
            Mode::Receive => Direction::Receive,
        };
        self.driver.command(Command::Operation { tag, channel, size, direction });
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.turn(wait, until, done)
    }

    #[inline]
    fn now(&self) -> Instant {
        self.driver.now()
    }

    fn opens_window(&self) -> bool {
        self.driver.machine().transport() == Transport::Datagram
    }

    fn progress(&self) -> Instant {
        self.driver.machine().progress()
    }

    fn withdraw(&mut self) {
        self.driver.command(Command::Withdraw);
    }

    fn flush(&mut self) {
        self.driver.command(Command::Flush);
    }

    fn subscribe(&mut self, subscription: Subscription) -> Result<(), LinkError> {
        let Subscription { channel, size, rate, first_after, queue } = subscription;
        // A rate is never 0, which means as fast as the server can.
        let rate_micro = rate.map_or(0, |rate| ((rate * 1e6) as u64).max(1));
        self.driver.command(Command::Subscribe { channel, size, rate_micro, first_after, queue });
        Ok(())
    }

    fn unsubscribe(&mut self) {
        self.driver.command(Command::Unsubscribe);
    }

    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        self.reports = 0;
        self.far_end = FarEnd::default();
        self.received.clear();
        let asked = self.now();
        let mut wait = ReportWait::begin(asked, until, done);
        self.driver.command(Command::Report);
        while self.reports < self.channels {
            let Some(wait_until) = wait.until(self.now(), self.progress(), done) else {
                return self.unreported(until.nanos_since(asked)).map_or(Ok(None), Err);
            };
            self.turn(Wait::Block, wait_until, done)?;
        }
        self.tell_receivers();
        let stages = self.driver.machine_mut().far_stages().iter();
        self.far_end.stages = stages.map(|(name, spans)| (name, spans.clone())).collect();
        let clock = self.driver.machine().far_clock();
        self.far_end.clock = clock.map(|(ahead_ns, error_ns)| ClockDifference { ahead_ns, error_ns });
        Ok(Some(self.far_end.clone()))
    }

    fn tcp(&self) -> Option<TcpTimes> {
        self.driver.tcp()
    }

    fn losses(&self) -> Loss {
        let noticed = self.driver.machine().noticed();
        Loss {
            lost: noticed.lost,
            duplicated: noticed.duplicated,
            reordered: noticed.reordered,
            overrun: noticed.overrun,
            damaged: self.is_checked.then_some(noticed.damaged),
            ..self.driver.transport_losses()
        }
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.driver.machine_mut().stamps().sampling = taken;
        true
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        self.driver.machine_mut().stamps().hand_over(stamps);
    }
}

fn add(far_end: &mut FarEnd, counters: &Counters) {
    far_end.received += counters.received;
    far_end.loss.duplicated += counters.duplicated;
    far_end.loss.reordered += counters.reordered;
    if counters.usage_known {
        far_end.usage = Some(Usage {
            user_s: counters.user_ns as f64 * 1e-9,
            system_s: counters.system_ns as f64 * 1e-9,
            voluntary_switches: counters.voluntary_switches,
            involuntary_switches: counters.involuntary_switches,
            max_rss_bytes: counters.max_rss_bytes,
            polling_s: counters.polling_us.map(|micros| micros as f64 * 1e-6),
        });
    }
}

fn own_counters() -> Counters {
    let used = Usage::of_process();
    Counters {
        user_ns: (used.user_s * 1e9) as u64,
        system_ns: (used.system_s * 1e9) as u64,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        max_rss_bytes: used.max_rss_bytes,
        usage_known: true,
        polling_us: used.polling_s.map(|seconds| (seconds * 1e6) as u64),
        ..Counters::default()
    }
}

fn link_error(channel: u32, error: hodo_raw::Error) -> LinkError {
    match error {
        hodo_raw::Error::Closed(why) => LinkError::Closed { channel, why },
        other => LinkError::PeerMisbehaved { channel, what: other.to_string() },
    }
}

/// A datagram counts as lost after this fraction of the time in which a link counts as stalled: 250 ms of 5 s.
const DATAGRAM_PATIENCE: u32 = 20;
