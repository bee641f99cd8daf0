use super::{ECHO, number};
use hodo_machine::Instant;
use hodo_spacewire::EndOfPacket;
use hodo_spacewire::client::Receiver;
use hodo_spacewire::far_end::{COUNT, SOURCE};
use hodo_spacewire::rmap::Initiator;

/// Everything that has arrived at a port since it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Packets that came back, or one way, without a number: of these only how many is known.
    pub(super) echoed: Vec<Option<u32>>,
    pub(super) one_way: Vec<Option<u32>>,
    /// Packets that were made at the far end.
    pub(super) made: u64,
    /// The last count of the far end.
    pub(super) counted: Option<u64>,
    /// Packets that are not whole.
    pub(super) cut: u64,
    /// Whether packets for [`ECHO`] are to be sent back from here.
    pub(super) bounces: bool,
    /// The numbers and lengths of these packets.
    pub(super) to_bounce: Vec<(Option<u32>, usize)>,
    pub(super) initiator: Option<Initiator>,
    /// Completions of the initiator: tag, and whether it succeeded.
    pub(super) completed: Vec<(u64, bool)>,
    /// The first refusal.
    pub(super) refusal: Option<String>,
}

impl Arrivals {
    /// Ends transactions whose deadline has passed.
    pub(super) fn expire(&mut self, now: Instant) {
        let Some(initiator) = &mut self.initiator else { return };
        while let Some(late) = initiator.expire(now) {
            self.completed.push((late.tag, false));
        }
    }
}

impl Receiver for Arrivals {
    #[inline]
    fn packet(&mut self, data: &[u8], end: EndOfPacket) {
        if let Some(initiator) = &mut self.initiator {
            if let Ok(completion) = initiator.receive(data, end) {
                if let Err(why) = completion.result
                    && self.refusal.is_none()
                {
                    self.refusal = Some(why.to_string());
                }
                self.completed.push((completion.tag, completion.result.is_ok()));
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
            [super::ONE_WAY, ..] => self.one_way.push(number(data)),
            _ => {}
        }
    }

    fn time_code(&mut self, _code: u8) {}

    #[inline]
    fn has_room(&self) -> bool {
        true
    }
}
