//! How two queue pairs find each other: each connects to the listener of the other's device, and introduces itself there.
//!
//! A listener's name follows from the device's GID, which is in what the ends tell each other out of band. The channel that an end
//! has opened carries only what that end says, so neither waits for the other, and both may connect in any order.

use super::far::Inbox;
use super::messages::{Hello, Message};
use crate::device::{AddressOfQueuePair, DeviceError, Gid};
use hodo_io::shared_memory::{Channel, ChannelListener, ChannelSet, Received};
use hodo_io::{host, process, random_bits};
use std::io;
use std::os::fd::OwnedFd;

/// Connections at most that have not said for which queue pair they are, or whose queue pair is yet to connect.
const NEWCOMERS_MAX: usize = 128;

/// The tokens of the listener, of newcomers, and of queue pairs' channels that this end and the far end have opened.
pub(super) const LISTENER: u64 = u64::MAX;
const NEWCOMERS: u64 = 1 << 62;
const OUTGOING: u64 = 1 << 61;

/// The origin of a message, or of a channel's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Listener,
    Newcomer(u64),
    /// The far end of the queue pair with this index.
    Far(usize),
    /// The channel that this end has opened for it, on which nothing comes but its end.
    Outgoing(usize),
}

impl Origin {
    pub(super) const fn token(self) -> u64 {
        match self {
            Origin::Listener => LISTENER,
            Origin::Newcomer(number) => NEWCOMERS | number,
            Origin::Far(index) => index as u64,
            Origin::Outgoing(index) => OUTGOING | index as u64,
        }
    }

    pub(super) const fn of(token: u64) -> Self {
        match token {
            LISTENER => Origin::Listener,
            token if token & NEWCOMERS != 0 => Origin::Newcomer(token & !NEWCOMERS),
            token if token & OUTGOING != 0 => Origin::Outgoing((token & !OUTGOING) as usize),
            token => Origin::Far(token as usize),
        }
    }
}

/// A connection that is not a queue pair's yet.
#[derive(Debug)]
pub(super) struct Newcomer {
    number: u64,
    pub(super) channel: Channel,
    /// The introduction, and the files that came with that.
    pub(super) hello: Option<(Hello, Vec<OwnedFd>)>,
}

/// The listener of a device, and the connections that have come there.
#[derive(Debug)]
pub(super) struct Rendezvous {
    pub(super) gid: Gid,
    pub(super) set: ChannelSet,
    listener: ChannelListener,
    newcomers: Vec<Newcomer>,
    next_newcomer: u64,
    accepts_other_users: bool,
}

impl Rendezvous {
    /// Listens at an address that no other device has.
    pub(super) fn open(accepts_other_users: bool) -> io::Result<Self> {
        let gid = new_gid();
        let listener = ChannelListener::bind(&path_of(gid))?;
        let set = ChannelSet::new()?;
        set.add_listener(&listener, Origin::Listener.token())?;
        Ok(Rendezvous { gid, set, listener, newcomers: Vec::new(), next_newcomer: 0, accepts_other_users })
    }

    /// Connects to the device of a far end.
    pub(super) fn call(&self, remote: &AddressOfQueuePair) -> Result<Channel, DeviceError> {
        if remote.gid.0[..HOST_BYTES] != self.gid.0[..HOST_BYTES] {
            return Err(DeviceError::Missing(format!(
                "the far end's GID {} is not one of shared memory on this host: run both ends here and both with shared memory, \
                 or choose another backend",
                remote.gid
            )));
        }
        let missing = |error: io::Error| {
            DeviceError::Missing(format!(
                "no shared memory at {}: {error}; is the far end's process running, in the same network namespace?",
                remote.gid
            ))
        };
        let channel = Channel::connect(&path_of(remote.gid)).map_err(missing)?;
        if !self.is_welcome(&channel) {
            return Err(DeviceError::Missing(
                "the far end is another user's: run both ends as one user, or allow other users at both".into(),
            ));
        }
        Ok(channel)
    }

    fn is_welcome(&self, channel: &Channel) -> bool {
        self.accepts_other_users || channel.user().is_ok_and(|user| user == process::user())
    }

    /// Accepts the connections that wait. Those of other users are closed, and so is the oldest that says nothing if there are
    /// too many.
    pub(super) fn accept(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        while let Some(channel) = self.listener.accept()? {
            if !self.is_welcome(&channel) {
                continue;
            }
            if self.newcomers.len() >= NEWCOMERS_MAX {
                let Some(silent) = self.newcomers.iter().position(|newcomer| newcomer.hello.is_none()) else {
                    continue;
                };
                self.newcomers.remove(silent);
            }
            let number = self.next_newcomer;
            self.next_newcomer += 1;
            self.set.add(&channel, Origin::Newcomer(number).token())?;
            self.newcomers.push(Newcomer { number, channel, hello: None });
            self.hear(number, inbox);
        }
        Ok(())
    }

    /// Reads what a newcomer says. One that does not introduce itself is forgotten.
    pub(super) fn hear(&mut self, number: u64, inbox: &mut Inbox) {
        let Some(at) = self.newcomers.iter().position(|newcomer| newcomer.number == number) else { return };
        let newcomer = &mut self.newcomers[at];
        let message = match inbox.receive(&newcomer.channel) {
            Ok(Received::Nothing) => return,
            Ok(Received::Message(length)) => Message::decode(&inbox.bytes[..length]).ok(),
            _ => None,
        };
        if let Some(Message::Hello(hello)) = message {
            // What it says next waits until its queue pair reads it.
            self.set.remove(&newcomer.channel, Origin::Newcomer(number).token());
            newcomer.hello = Some((hello, std::mem::take(&mut inbox.files)));
        } else {
            self.newcomers.remove(at);
        }
    }

    /// Takes out a newcomer that has introduced itself and fulfills a condition.
    pub(super) fn claim(&mut self, is_right: impl Fn(&Hello) -> bool) -> Option<(Newcomer, Hello, Vec<OwnedFd>)> {
        let is_it = |newcomer: &Newcomer| newcomer.hello.as_ref().is_some_and(|(hello, _)| is_right(hello));
        let at = self.newcomers.iter().position(is_it)?;
        let mut newcomer = self.newcomers.remove(at);
        let (hello, files) = newcomer.hello.take()?;
        Some((newcomer, hello, files))
    }

    /// Forgets the newcomers that have introduced themselves and fulfill no condition.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&Hello) -> bool) {
        self.newcomers.retain(|newcomer| newcomer.hello.as_ref().is_none_or(|(hello, _)| is_kept(hello)));
    }
}

/// The bytes of a GID that say on which host it is.
const HOST_BYTES: usize = 8;

/// Returns a GID of this host that nobody can guess: `fd`, as private addresses begin, 7 bytes of the boot's number, and 8
/// random ones.
fn new_gid() -> Gid {
    let mut bytes = [0; 16];
    bytes[0] = 0xFD;
    let boot = host::boot_id().unwrap_or_default().replace('-', "");
    let boot = boot.get(..14).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    bytes[1..HOST_BYTES].copy_from_slice(&boot.to_be_bytes()[1..]);
    bytes[HOST_BYTES..].copy_from_slice(&random_bits().to_be_bytes());
    Gid(bytes)
}

/// Returns the name where the device of a GID listens: no file, and gone with its process.
pub(super) fn path_of(gid: Gid) -> String {
    let digits: String = gid.0.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("@hodo-roce-{digits}")
}
