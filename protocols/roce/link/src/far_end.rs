//! The far end of links: one device on one thread, for many clients at the same time.

use crate::backend::{Backend, Surroundings};
use crate::greeting::{self, Greeting, Welcome, Wish};
use crate::options::Place;
use crate::served::{Served, Why};
use hodo_io::{Clock, PathOptions};
use hodo_machine::{Instant, Wait};
use hodo_measure::FarEndFacts;
use hodo_roce::Completion;
use hodo_roce_host::DeviceError;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at the TCP connections, and at the flag that stops it.
const LOOK: Duration = Duration::from_millis(20);
/// The time between two looks while a client is being greeted.
const LOOK_GREETING: Duration = Duration::from_millis(1);
/// The time that a greeting may take.
const GREETING: Duration = Duration::from_secs(5);
/// Greetings at the same time; one more is closed.
const GREETINGS_MAX: usize = 256;
/// The time that a client may take to take its welcome.
const WELCOME: Duration = Duration::from_secs(5);
/// Bytes of memory of all clients together.
const MEMORY_MAX: u64 = 4 << 30;
/// Receives that are posted for all clients together.
const RECEIVES_MAX: u64 = 1 << 22;

/// How a far end runs.
#[derive(Debug, Clone)]
pub(crate) struct FarEndSettings {
    pub(crate) place: Place,
    pub(crate) wait: Wait,
    pub(crate) socket_buffer: Option<usize>,
    pub(crate) path: PathOptions,
    pub(crate) size_max: u32,
    /// Channels of all clients together.
    pub(crate) channels_max: usize,
    pub(crate) facts: FarEndFacts,
}

/// The far end of links.
pub(crate) struct FarEnd<B> {
    settings: FarEndSettings,
    listener: TcpListener,
    /// The device, once it is known where it is to be: a listener at any address has it where the first client comes.
    device: Option<B>,
    greeted: Vec<Greeted>,
    clients: Vec<Option<Served>>,
    completions: Vec<Completion>,
    channels: usize,
    clock: Clock,
}

/// A client that is being greeted.
#[derive(Debug)]
struct Greeted {
    stream: TcpStream,
    greeting: Greeting,
    until: Instant,
}

impl<B: Backend> FarEnd<B> {
    /// Opens the device, unless the listener is at any address.
    ///
    /// # Errors
    /// [`DeviceError`] if the device cannot be opened.
    pub(crate) fn new(listener: TcpListener, settings: FarEndSettings) -> Result<Self, DeviceError> {
        let refused = |error: io::Error| DeviceError::Missing(format!("the listener has failed: {error}"));
        listener.set_nonblocking(true).map_err(refused)?;
        let at = listener.local_addr().map_err(refused)?.ip();
        let mut far_end = FarEnd {
            settings,
            listener,
            device: None,
            greeted: Vec::new(),
            clients: Vec::new(),
            completions: Vec::with_capacity(256),
            channels: 0,
            clock: Clock::start(),
        };
        if !at.is_unspecified() || far_end.settings.place.address.is_some() {
            far_end.open_device(at)?;
        }
        Ok(far_end)
    }

    fn open_device(&mut self, here: IpAddr) -> Result<&mut B, DeviceError> {
        let (socket_buffer, path) = (self.settings.socket_buffer, self.settings.path.clone());
        let surroundings = Surroundings { here, clock: self.clock, socket_buffer, path, pairs: 1 };
        if self.device.is_none() {
            self.device = Some(B::open(&self.settings.place, &surroundings)?);
        }
        Ok(self.device.as_mut().expect("it was opened above"))
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// [`DeviceError`] if the device has failed as a whole.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<(), DeviceError> {
        let mut look = self.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            if now >= look {
                self.look(now);
                let is_busy = !self.greeted.is_empty() || self.clients.iter().flatten().any(Served::is_being_welcomed);
                look = now + if is_busy { LOOK_GREETING } else { LOOK };
            }
            let due = self.feed(now);
            let until = due.map_or(look, |due| due.min(look));
            match &mut self.device {
                Some(device) => device.poll(self.settings.wait, until, &mut self.completions)?,
                None => hodo_io::sleep(until - now),
            }
            self.take_completions();
        }
        self.clients.iter().flatten().for_each(|client| dismiss(&client.stream, "the far end is stopped"));
        Ok(())
    }

    #[inline]
    fn take_completions(&mut self) {
        let Some(device) = &mut self.device else { return };
        let mut completions = std::mem::take(&mut self.completions);
        for completion in &completions {
            let place = (completion.id >> 32 & 0x3FFF_FFFF) as usize;
            let Some(Some(client)) = self.clients.get_mut(place) else { continue };
            if let Err(why) = client.completed(device, completion) {
                self.channels -= client.channel_count();
                leave(&mut self.clients[place], device, &why);
            }
        }
        completions.clear();
        self.completions = completions;
    }

    /// Sends the updates that are due, and returns when the next one is.
    #[inline]
    fn feed(&mut self, now: Instant) -> Option<Instant> {
        let device = self.device.as_mut()?;
        let mut next: Option<Instant> = None;
        for place in &mut self.clients {
            let Some(client) = place else { continue };
            match client.feed(device, now) {
                Ok(due) => next = next.into_iter().chain(due).min(),
                Err(why) => {
                    self.channels -= client.channel_count();
                    leave(place, device, &why);
                }
            }
        }
        next
    }

    /// Takes new clients, goes on with those that are being greeted, and lets those go that are gone.
    fn look(&mut self, now: Instant) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.greeted.len() < GREETINGS_MAX && stream.set_nonblocking(true).is_ok() {
                self.greeted.push(Greeted { stream, greeting: Greeting::default(), until: now + GREETING });
            }
        }
        let mut greeted = std::mem::take(&mut self.greeted);
        greeted.retain_mut(|client| self.greet(client, now));
        self.greeted = greeted;
        let Some(device) = &mut self.device else { return };
        for place in &mut self.clients {
            let Some(client) = place else { continue };
            if client.go_on_welcoming(now).is_err() || is_gone(&client.stream) {
                self.channels -= client.channel_count();
                leave(place, device, "");
            }
        }
    }

    /// Takes more of a greeting. Returns whether it goes on.
    fn greet(&mut self, client: &mut Greeted, now: Instant) -> bool {
        let mut bytes = [0; 16 << 10];
        loop {
            match client.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => client.greeting.take(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
            match self.admit(client, now) {
                Ok(true) => return false,
                Ok(false) => {}
                Err(why) => {
                    dismiss(&client.stream, &why);
                    return false;
                }
            }
        }
        now < client.until
    }

    /// Makes a client of a peer whose greeting is whole. Returns whether it is.
    fn admit(&mut self, client: &Greeted, now: Instant) -> Result<bool, Why> {
        let Some((line, end)) = client.greeting.line()? else { return Ok(false) };
        let wish = Wish::of(&line)?;
        self.check_room(&wish)?;
        let Some(addresses) = client.greeting.addresses(end, wish.channels as usize + 1)? else { return Ok(false) };
        let from = client.stream.peer_addr().map_err(|error| error.to_string())?.ip().to_canonical();
        if let Some(other) = addresses.iter().find(|address| !B::proves(from, address.gid)) {
            return Err(format!(
                "queue pairs are at {}, and the connection comes from {from}: connect over the network of the adapter",
                other.gid
            ));
        }
        let stream = client.stream.try_clone().map_err(|error| error.to_string())?;
        let here = stream.local_addr().map_err(|error| error.to_string())?.ip();
        let place = self.clients.iter().position(Option::is_none).unwrap_or(self.clients.len());
        let device = self.open_device(here).map_err(|error| error.to_string())?;
        let mut served =
            Served::new(device, stream, wish, place as u32, &addresses).map_err(|error| error.to_string())?;
        let welcome =
            Welcome { udp_port: device.udp_port(), memory: served.memory(), facts: self.settings.facts.clone() };
        let text = greeting::line(&welcome.request()) + &greeting::addresses(served.addresses());
        served.welcome(text.into_bytes(), now + WELCOME);
        self.channels += served.channel_count();
        if place == self.clients.len() {
            self.clients.push(None);
        }
        self.clients[place] = Some(served);
        Ok(true)
    }

    /// Checks that there is room for a client.
    fn check_room(&self, wish: &Wish) -> Result<(), Why> {
        let (size, size_max) = (wish.size, self.settings.size_max);
        if size > size_max.max(16) {
            return Err(format!("operations here have at most {size_max} bytes, {size} are asked for; lower --sizes"));
        }
        if self.channels + wish.channels as usize > self.settings.channels_max {
            return Err(format!("no room for {} more channels; raise --peers-max", wish.channels));
        }
        let memory: u64 = self.clients.iter().flatten().map(Served::memory_bytes).sum();
        if memory + u64::from(size) > MEMORY_MAX {
            return Err(format!(
                "no memory for operations of {size} bytes beside those of other clients; lower --sizes"
            ));
        }
        let receives: u64 = self.clients.iter().flatten().map(Served::receives).sum();
        if receives + u64::from(wish.channels) * u64::from(wish.receive_depth) > RECEIVES_MAX {
            return Err(format!(
                "{} receives for each of {} channels are too many; lower receive-depth",
                wish.receive_depth, wish.channels
            ));
        }
        Ok(())
    }
}

/// Lets a client go, and tells it why.
fn leave<B: Backend>(place: &mut Option<Served>, device: &mut B, why: &str) {
    if let Some(client) = place.take() {
        dismiss(&client.stream, why);
        client.leave(device);
    }
}

/// Tells a peer why it is let go, as far as it takes that at once.
fn dismiss(mut stream: &TcpStream, why: &str) {
    if !why.is_empty() {
        // A peer that is gone need not be told.
        let _ = stream.write(greeting::line(&greeting::refused(why)).as_bytes());
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Returns whether the far side of a connection is gone: a client sends nothing after its greeting.
pub(crate) fn is_gone(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}
