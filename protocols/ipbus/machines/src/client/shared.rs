use super::carrier::{Fits, Move, OnReply, clear};
use super::plain::{NO_STATUS, Plain};
use crate::Error;
use crate::window::{Cause, Heard, Step, Window, WindowConfig, WindowCounters};
use crate::wire::packet::{Header, has_restarted};
use crate::wire::status::{self, Status};
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{Instant, Outbox};

/// A device that was not heard for this long may have restarted, and is asked again.
const IDLE: Duration = Duration::from_secs(1);
/// Several packets are a call that a restart may cut in two.
const SEVERAL: u32 = 2;

/// Packets over UDP to a device that others may be using, a hub above all.
///
/// A device counts ids for all its clients, so a packet with an id disturbs each client that has ids too. Harmless reads
/// need none: they are sent again when they are late. Before anything else is sent, the status of the device is asked
/// for. If nobody has sent it an id since it was reset, or since we did last, all packets have ids from then on, and what is lost is
/// recovered. Otherwise none has, and what is lost fails; the status is asked for again behind several of them, and the last
/// reply is kept back until it shows that the device has not restarted. One that tells no status is spoken to without ids.
#[derive(Debug)]
pub(super) struct Shared {
    state: State,
    plain: Plain,
    window: Window,
    /// The next id that we left the device with.
    left: Option<u16>,
    /// A packet that waits until it is known how it is to be sent, or until the reads before it are answered.
    held: Option<WaitingPacket>,
    /// Whether somebody else was found to send packets with ids since ours have them.
    contended: bool,
    /// Since when the status is asked for.
    asking: Instant,
    /// The next id at the last status; `None` for a device that tells none.
    told_next: Option<u16>,
    /// Packets without ids since, other than harmless reads.
    unproven: u32,
    /// When the device was heard last.
    heard: Instant,
    /// The last reply to several packets, until the status shows that the device has not restarted.
    kept_back: Option<KeptBack>,
    restarts: u64,
    patience: Duration,
    late: Duration,
}

/// A packet that waits.
#[derive(Debug)]
struct WaitingPacket {
    key: u64,
    packet: Vec<u8>,
    /// Bytes of the packet or its reply, whichever is longer.
    longest: usize,
}

#[derive(Debug)]
struct KeptBack {
    reply: Vec<u8>,
    since: Instant,
    /// When the status was asked for last.
    asked: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but harmless reads has been asked for.
    Undecided,
    /// The window asks for the status, which decides.
    Asking,
    /// The device is not used by others.
    Numbered,
    /// Others have sent packets with ids, or the device tells no status.
    Unnumbered,
}

impl Shared {
    pub(super) fn new(config: WindowConfig, left: Option<u16>) -> Self {
        Shared {
            state: State::Undecided,
            plain: Plain::new(config.in_flight, config.patience).repeating(config.late_max()),
            window: Window::new(config),
            left,
            held: None,
            contended: false,
            asking: Instant::ZERO,
            told_next: None,
            unproven: 0,
            heard: Instant::ZERO,
            kept_back: None,
            restarts: 0,
            patience: config.patience,
            late: config.late_max(),
        }
    }

    /// Begins again, where the device was given up.
    pub(super) fn open(&mut self, now: Instant) {
        if self.state == State::Numbered {
            self.window.open(now);
        }
    }

    /// Returns the window, while packets have ids.
    pub(super) fn window(&self) -> Option<&Window> {
        (self.state == State::Numbered).then_some(&self.window)
    }

    pub(super) fn room(&self) -> usize {
        match self.state {
            _ if self.held.is_some() => 0,
            State::Undecided | State::Unnumbered => self.plain.room(),
            State::Asking => 0,
            State::Numbered => self.window.room(),
        }
    }

    pub(super) fn fits(&mut self, longest: usize) -> Fits {
        match self.state {
            // Where it is asked for its status anyway, it is not asked twice.
            State::Asking => Fits::Yes,
            _ => self.plain.fits(longest),
        }
    }

    pub(super) fn push(&mut self, now: Instant, key: u64, (packet, longest): (&mut Vec<u8>, usize), is_harmless: bool) {
        match self.state {
            State::Numbered => {
                self.window.push(now, key, |buffer| core::mem::swap(buffer, packet));
            }
            State::Undecided | State::Unnumbered if is_harmless => self.plain.push(key, packet, true),
            State::Unnumbered if self.plain.is_empty() && now >= self.heard + IDLE => {
                self.state = State::Undecided;
                self.held = Some(WaitingPacket { key, packet: core::mem::take(packet), longest });
            }
            _ => self.held = Some(WaitingPacket { key, packet: core::mem::take(packet), longest }),
        }
    }

    pub(super) fn received(&mut self, now: Instant, bytes: &[u8], told: OnReply<'_>) {
        match self.state {
            State::Numbered => {
                self.window.received(now, bytes, |answer| told(answer.key, Ok(answer)));
            }
            State::Undecided | State::Unnumbered => self.received_without_id(now, bytes, told),
            State::Asking => match self.window.received(now, bytes, |_| false) {
                Heard::Status => {
                    let status = *self.window.device();
                    self.plain.note_status(Some(&status));
                    (self.told_next, self.unproven, self.heard) = (Some(status.next_id), 0, now);
                    if is_unused(&status) || self.left == Some(status.next_id) {
                        self.state = State::Numbered;
                    } else {
                        self.close_window(now);
                        self.state = State::Unnumbered;
                    }
                }
                Heard::Malformed(_) => self.do_without_status(now),
                _ => {}
            },
        }
    }

    fn received_without_id(&mut self, now: Instant, bytes: &[u8], told: OnReply<'_>) {
        self.heard = now;
        if self.plain.takes_status(bytes) {
            return;
        }
        let Some(kept) = &self.kept_back else {
            let is_last = self.held.is_none() && self.plain.is_last();
            if is_last && self.unproven >= SEVERAL && self.told_next.is_some() {
                self.kept_back = Some(KeptBack { reply: bytes.to_vec(), since: now, asked: None });
            } else {
                self.plain.received(bytes, &mut |answer| told(answer.key, Ok(answer)));
            }
            return;
        };
        let (Ok(status), Some(_)) = (Status::decode(bytes), kept.asked) else { return };
        let has_restarted = self.told_next.is_some_and(|before| has_restarted(before, status.next_id));
        let reply = self.kept_back.take().map(|kept| kept.reply).unwrap_or_default();
        (self.told_next, self.unproven) = (Some(status.next_id), 0);
        if !has_restarted {
            return self.plain.received(&reply, &mut |answer| told(answer.key, Ok(answer)));
        }
        self.restarts += 1;
        self.state = State::Undecided;
        if let Some(key) = self.plain.give_up_first() {
            told(key, Err(Error::Restarted));
        }
    }

    /// Goes on without ids with a device that tells no status, or one that makes no sense.
    fn do_without_status(&mut self, now: Instant) {
        self.close_window(now);
        self.plain.note_status(None);
        (self.state, self.told_next, self.heard) = (State::Unnumbered, None, now);
    }

    /// Tells whether the device answers and tells no status, so that what is lost cannot be recovered, nor a restart be seen.
    pub(super) fn is_without_status(&self) -> bool {
        self.state == State::Unnumbered && self.told_next.is_none() && !self.plain.is_silent()
    }

    /// Has the status asked for behind several packets, and gives up the last of them where it does not come.
    fn poll_kept_back(&mut self, now: Instant, out: &mut Outbox) -> Move {
        let Some(kept) = &mut self.kept_back else { return self.plain.poll(now, out) };
        if now >= kept.since + self.patience {
            self.kept_back = None;
            let key = self.plain.give_up_first();
            return key.map_or(Move::Idle(None), |key| Move::Failed { key, error: Error::Restarted });
        }
        match kept.asked {
            Some(asked) if now < asked + self.late => Move::Idle(Some(asked + self.late)),
            _ => {
                kept.asked = Some(now);
                out.copy(&status::REQUEST);
                Move::Send
            }
        }
    }

    pub(super) fn poll(&mut self, now: Instant, out: &mut Outbox) -> Move {
        loop {
            match self.state {
                // A read that is sent again must not find what a later packet wrote.
                State::Undecided | State::Unnumbered if self.held.is_none() || !self.plain.is_empty() => {
                    return self.poll_kept_back(now, out);
                }
                State::Undecided => {
                    self.asking = now;
                    self.window.open(now);
                    self.state = State::Asking;
                }
                State::Unnumbered => {
                    if let Some(WaitingPacket { key, mut packet, longest }) = self.held.take() {
                        if let Fits::No(error) = self.plain.fits(longest) {
                            return Move::Failed { key, error };
                        }
                        self.unproven += 1;
                        self.plain.push(key, &mut packet, false);
                    }
                }
                State::Numbered if self.contended && self.window.is_empty() && !self.window.has_failures() => {
                    self.close_window(now);
                    self.state = State::Unnumbered;
                    return Move::Resumed;
                }
                State::Asking => {
                    let end = self.asking + self.patience / NO_STATUS;
                    if now >= end {
                        self.do_without_status(now);
                        continue;
                    }
                    return match self.poll_window(now, out) {
                        Move::Idle(deadline) => Move::Idle(Some(deadline.map_or(end, |deadline| deadline.min(end)))),
                        step => step,
                    };
                }
                State::Numbered => return self.poll_window(now, out),
            }
        }
    }

    fn poll_window(&mut self, now: Instant, out: &mut Outbox) -> Move {
        if self.window.room() > 0
            && let Some(WaitingPacket { key, mut packet, longest }) = self.held.take()
        {
            if let Fits::No(error) = self.plain.fits(longest) {
                return Move::Failed { key, error };
            }
            self.window.push(now, key, |buffer| core::mem::swap(buffer, &mut packet));
        }
        let step = self.window.poll(now);
        self.contended |= matches!(step, Step::Failed { cause: Cause::Contended, .. });
        Move::of(&step, out)
    }

    /// Forgets what is in flight; the device may have been reset, and is asked again.
    pub(super) fn reset(&mut self, now: Instant) {
        (self.held, self.kept_back, self.unproven) = (None, None, 0);
        self.state = State::Undecided;
        self.plain.reset();
        self.close_window(now);
    }

    fn close_window(&mut self, now: Instant) {
        self.contended = false;
        clear(&mut self.window, now);
    }

    pub(super) fn counters(&self) -> WindowCounters {
        let mut counters = self.plain.counters();
        counters += self.window.counters();
        counters.restarts += self.restarts;
        counters
    }
}

/// Tells whether nobody has sent packets with ids since the device was reset.
fn is_unused(status: &Status) -> bool {
    let has_id = |header: &u32| Header::decode(*header).is_ok_and(|header| header.id != 0);
    status.next_id == 1 && !status.received.iter().chain(&status.sent).any(has_id)
}

#[cfg(test)]
mod tests;
