use super::{Stage, Window};
use core::time::Duration;
use hodo_machine::Instant;

/// A number is asked for so often in a row because it was told too long ago.
const ASKED_AGAIN_MAX: u32 = 2;
/// No number is old before this: asking costs a round-trip, and only who loses his processor is away for so long.
const OLD_MIN: Duration = Duration::from_millis(2);
/// A number is told by an answer, and used after a pause of up to two round-trips; it is old after twice that.
const ROUND_TRIPS: u32 = 6;

/// The age of the number that a window goes on with, while other hosts number packets, too.
#[derive(Debug, Default)]
pub(super) struct NumberAge {
    /// Whether it has to be asked for whatever its age.
    pub(super) is_forgotten: bool,
    /// When what told it was sent, and how often it was asked for again since a packet was sent.
    told: Instant,
    asked_again: u32,
}

impl NumberAge {
    /// Notes that an answer to what was sent at this instant has told the number.
    #[inline]
    pub(super) fn told(&mut self, sent: Instant) {
        self.told = self.told.max(sent);
    }

    /// Notes that a packet is sent with it.
    #[inline]
    pub(super) fn used(&mut self) {
        self.asked_again = 0;
    }
}

impl Window {
    /// Tells whether the next number is to be asked for before a packet is sent: others may have sent more since it was told than the device
    /// keeps, and then nobody could say whether the packet was done. So it is where this host lost its processor.
    #[inline]
    pub(super) fn is_number_old(&mut self, now: Instant) -> bool {
        let number = &mut self.sharing.number;
        if core::mem::take(&mut number.is_forgotten) {
            return true;
        }
        let is_next = self.sharing.contended > 0 && self.slots.front().is_some_and(|slot| slot.stage == Stage::New);
        let Some(least) = self.round_trip.least().filter(|_| is_next && number.asked_again < ASKED_AGAIN_MAX) else {
            return false;
        };
        let is_old = now >= number.told + least.saturating_mul(ROUND_TRIPS).max(OLD_MIN);
        number.asked_again += u32::from(is_old);
        is_old
    }
}
