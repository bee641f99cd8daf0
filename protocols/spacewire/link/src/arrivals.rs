use crate::{ECHO, number};
use hodo_machine::Instant;
use hodo_measure::{Completion, Outcome};
use hodo_spacewire::EndOfPacket;
use hodo_spacewire::client::Receiver;
use hodo_spacewire::far_end::{COUNT, SOURCE};
use hodo_spacewire::rmap::Initiator;

/// Everything that has arrived at a port since it was last looked at.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Packets that came back, or one way, without a number: of these only how many is known.
    pub(crate) echoed: Vec<Option<u32>>,
    pub(crate) one_way: Vec<Option<u32>>,
    /// Packets that were made at the far end.
    pub(crate) made: u64,
    /// The last count of the far end.
    pub(crate) counted: Option<u64>,
    /// Packets that are not whole.
    pub(crate) cut: u64,
    /// Whether packets for [`ECHO`] are to be sent back from here.
    pub(crate) bounces: bool,
    /// The numbers and lengths of these packets.
    pub(crate) to_bounce: Vec<(Option<u32>, usize)>,
    pub(crate) initiator: Option<Initiator>,
    /// Completions of the initiator, and the transactions that it gave up.
    pub(crate) completed: Vec<Completion>,
    /// The first refusal.
    pub(crate) refusal: Option<String>,
}

impl Arrivals {
    /// Ends the oldest transaction, as lost, if there is no place for another one. As many operations as there are places are under way
    /// at most: a plan that came to an early end has left it behind.
    pub(crate) fn make_room(&mut self) {
        let Some(initiator) = &mut self.initiator else { return };
        if initiator.outstanding() < initiator.settings().outstanding_max {
            return;
        }
        if let Some(left) = initiator.expire(Instant::MAX) {
            self.completed.push(Completion { tag: left.tag, outcome: Outcome::Lost });
        }
    }

    /// Ends transactions whose deadline has passed, as lost.
    pub(crate) fn expire(&mut self, now: Instant) {
        let Some(initiator) = &mut self.initiator else { return };
        while let Some(late) = initiator.expire(now) {
            self.completed.push(Completion { tag: late.tag, outcome: Outcome::Lost });
        }
    }
}

impl Receiver for Arrivals {
    #[inline]
    fn packet(&mut self, data: &[u8], end: EndOfPacket) {
        if let Some(initiator) = &mut self.initiator {
            if let Ok(completion) = initiator.receive(data, end) {
                let outcome = match completion.result {
                    Ok(_) => Outcome::Done,
                    Err(why) => {
                        self.refusal.get_or_insert_with(|| why.to_string());
                        Outcome::Refused
                    }
                };
                self.completed.push(Completion { tag: completion.tag, outcome });
            }
            return;
        }
        if end == EndOfPacket::Eep {
            self.cut += 1;
            return;
        }
        match *data {
            [ECHO, ..] if self.bounces => self.to_bounce.push((number(data), data.len())),
            [ECHO, ..] => self.echoed.push(number(data)),
            [SOURCE, ..] => self.made += 1,
            [COUNT, a, b, c, d, e, f, g, h] => self.counted = Some(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
            [crate::ONE_WAY, ..] => self.one_way.push(number(data)),
            _ => {}
        }
    }

    fn time_code(&mut self, _code: u8) {}

    #[inline]
    fn has_room(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_spacewire::rmap::{Destination, InitiatorSettings, Request};
    use std::time::Duration;

    #[test]
    fn what_is_never_answered_is_lost_and_not_refused() {
        let mut initiator = Initiator::new(InitiatorSettings { logical_address: 254, outstanding_max: 2 });
        let request = Request::Read { address: 0, length: 4, increment: true };
        let due = Instant::ZERO + Duration::from_secs(1);
        initiator.send(&request, &Destination::default(), 7, due, &mut Vec::new()).unwrap();
        let mut arrivals = Arrivals { initiator: Some(initiator), ..Arrivals::default() };
        arrivals.expire(due);
        assert_eq!(arrivals.completed, [Completion { tag: 7, outcome: Outcome::Lost }]);
        assert_eq!(arrivals.refusal, None);
    }
}
