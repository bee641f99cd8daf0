use hodo_machine::Instant;
use std::time::Duration;

/// The time that a machine has to close peers for new ones, once it has been told of all. Those who come meanwhile wait in the
/// kernel's queue.
const PATIENCE: Duration = Duration::from_millis(50);

/// The room for new connections below the bound on peers.
#[derive(Debug, Default)]
pub(crate) struct Room {
    full_since: Option<Instant>,
}

/// The fate of the next connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is accepted.
    Accepted,
    /// It stays in the kernel's queue, at most until then.
    Waits(Instant),
    /// It is closed: the machine keeps those that it has.
    TurnedAway,
}

impl Room {
    /// Returns the fate of a connection that comes now. A machine that has not been told of all its peers yet may still
    /// close others for them.
    pub(crate) fn next(&mut self, now: Instant, is_full: bool, all_told: bool) -> Next {
        if !is_full {
            self.full_since = None;
            return Next::Accepted;
        }
        if !all_told {
            self.full_since = Some(now);
        }
        let until = *self.full_since.get_or_insert(now) + PATIENCE;
        if now < until { Next::Waits(until) } else { Next::TurnedAway }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_machine_has_a_while_to_make_room() {
        let mut room = Room::default();
        assert_eq!(room.next(at(0), false, true), Next::Accepted);
        assert_eq!(room.next(at(10), true, false), Next::Waits(at(60)));
        assert_eq!(room.next(at(70), true, false), Next::Waits(at(120)), "it has not been told of all");
        assert_eq!(room.next(at(119), true, true), Next::Waits(at(120)));
        assert_eq!(room.next(at(120), true, true), Next::TurnedAway);
        assert_eq!(room.next(at(500), true, true), Next::TurnedAway, "it keeps those that it has");
        assert_eq!(room.next(at(501), false, true), Next::Accepted);
        assert_eq!(room.next(at(502), true, true), Next::Waits(at(552)));
    }
}
