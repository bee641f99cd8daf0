use super::carrier::{Move, OnReply, clear};
use super::plain::Plain;
use crate::window::{Cause, Heard, Step, Window, WindowConfig, WindowCounters};
use crate::wire::packet::Header;
use crate::wire::status::Status;
use alloc::vec::Vec;
use hodo_machine::{Instant, Outbox};

/// Packets over UDP to a device that others may be using, a hub above all.
///
/// A device counts ids for all its clients, so a packet with an id disturbs each client that has ids too. Harmless reads
/// need none: they are sent again when they are late. Before anything else is sent, the status of the device is asked
/// for. If nobody has sent it an id since it was reset, all packets have ids from then on, and what is lost is recovered.
/// Otherwise none has, and what is lost fails.
#[derive(Debug)]
pub(super) struct Shared {
    state: State,
    plain: Plain,
    window: Window,
    /// A packet that waits until it is known how it is to be sent, or until the reads before it are answered.
    held: Option<(u64, Vec<u8>)>,
    /// Whether somebody else was found to send packets with ids since ours have them.
    contended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but harmless reads has been asked for.
    Undecided,
    /// The window asks for the status, which decides.
    Asking,
    /// The device is not used by others.
    Numbered,
    /// Others have sent packets with ids.
    Unnumbered,
}

impl Shared {
    pub(super) fn new(config: WindowConfig) -> Self {
        Shared {
            state: State::Undecided,
            plain: Plain::new(config.in_flight, config.patience).repeating(config.late_max()),
            window: Window::new(config),
            held: None,
            contended: false,
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

    pub(super) fn push(&mut self, now: Instant, key: u64, packet: &mut Vec<u8>, is_harmless: bool) {
        match self.state {
            State::Numbered => {
                self.window.push(now, key, |buffer| core::mem::swap(buffer, packet));
            }
            State::Undecided | State::Unnumbered if is_harmless => self.plain.push(key, packet, true),
            _ => self.held = Some((key, core::mem::take(packet))),
        }
    }

    pub(super) fn received(&mut self, now: Instant, bytes: &[u8], told: OnReply<'_>) {
        match self.state {
            State::Numbered => {
                self.window.received(now, bytes, |answer| told(answer.key, Ok(answer)));
            }
            State::Undecided | State::Unnumbered => {
                self.plain.received(bytes, &mut |answer| told(answer.key, Ok(answer)));
            }
            State::Asking => {
                if self.window.received(now, bytes, |_| false) != Heard::Status {
                    return;
                }
                if is_unused(self.window.device()) {
                    self.state = State::Numbered;
                } else {
                    self.close_window(now);
                    self.state = State::Unnumbered;
                }
            }
        }
    }

    pub(super) fn poll(&mut self, now: Instant, out: &mut Outbox) -> Move {
        loop {
            match self.state {
                // A read that is sent again must not find what a later packet wrote.
                State::Undecided | State::Unnumbered if self.held.is_none() || !self.plain.is_empty() => {
                    return self.plain.poll(now, out);
                }
                State::Undecided => {
                    self.window.open(now);
                    self.state = State::Asking;
                }
                State::Unnumbered => {
                    if let Some((key, mut packet)) = self.held.take() {
                        self.plain.push(key, &mut packet, false);
                    }
                }
                State::Numbered if self.contended && self.window.is_empty() => {
                    self.close_window(now);
                    self.state = State::Unnumbered;
                }
                State::Asking | State::Numbered => return self.poll_window(now, out),
            }
        }
    }

    fn poll_window(&mut self, now: Instant, out: &mut Outbox) -> Move {
        if self.window.room() > 0
            && let Some((key, mut packet)) = self.held.take()
        {
            self.window.push(now, key, |buffer| core::mem::swap(buffer, &mut packet));
        }
        let step = self.window.poll(now);
        self.contended |= matches!(step, Step::Failed { cause: Cause::Contended, .. });
        Move::of(&step, out)
    }

    /// Forgets what is in flight; the device may have been reset, and is asked again.
    pub(super) fn reset(&mut self, now: Instant) {
        self.held = None;
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
