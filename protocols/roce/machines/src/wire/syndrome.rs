//! Syndromes of acknowledgements (9.7.5.2, tables 45 to 47).

use core::time::Duration;

/// The credit count that says nothing: "credits invalid".
const NO_CREDITS: u8 = 0x1F;

/// The meaning of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syndrome {
    /// Everything up to the sequence number has arrived. Holds the five bits of the credit count.
    Ack(u8),
    /// The receiver has no receive request; holds the five bits of the time to wait.
    ReceiverNotReady(u8),
    /// The packet was not accepted.
    Nak(NakCode),
    /// A code that is not assigned.
    Reserved(u8),
}

hodo_machine::codes! {
    /// Why a packet was not accepted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum NakCode: u8 {
        /// A packet before this one is missing.
        SequenceError = 0x60,
        /// The request is invalid.
        InvalidRequest = 0x61,
        /// The remote key, the address or the rights are wrong.
        RemoteAccess = 0x62,
        /// The responder could not carry the request out.
        RemoteOperation = 0x63,
        /// The reliable datagram domain is wrong.
        InvalidDomain = 0x64,
    }
}

impl Syndrome {
    /// A positive acknowledgement without a credit count.
    pub const ACK: Syndrome = Syndrome::Ack(NO_CREDITS);

    /// Parses the byte.
    #[must_use]
    #[inline]
    pub const fn decode(byte: u8) -> Syndrome {
        match byte >> 5 {
            0 => Syndrome::Ack(byte & 0x1F),
            1 => Syndrome::ReceiverNotReady(byte & 0x1F),
            _ => match NakCode::from_code(byte) {
                Some(code) => Syndrome::Nak(code),
                None => Syndrome::Reserved(byte),
            },
        }
    }

    /// Returns the byte.
    #[must_use]
    #[inline]
    pub const fn encode(self) -> u8 {
        match self {
            Syndrome::Ack(credits) => credits & 0x1F,
            Syndrome::ReceiverNotReady(timer) => 0x20 | (timer & 0x1F),
            Syndrome::Nak(code) => code.code(),
            Syndrome::Reserved(byte) => byte,
        }
    }
}

/// The times of the codes 0 to 31 in units of 10 us (table 46).
const RNR_TENS_OF_US: [u32; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
    6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

/// Returns the time that a sender waits after a "receiver not ready" with this code.
#[must_use]
pub const fn rnr_span(code: u8) -> Duration {
    Duration::from_micros(RNR_TENS_OF_US[(code & 0x1F) as usize] as u64 * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_decodes_and_encodes_to_itself() {
        for byte in 0..=u8::MAX {
            assert_eq!(Syndrome::decode(byte).encode(), byte);
        }
        assert_eq!(Syndrome::decode(0x60), Syndrome::Nak(NakCode::SequenceError));
        assert_eq!(Syndrome::decode(0x2C), Syndrome::ReceiverNotReady(12));
        assert_eq!(Syndrome::ACK.encode(), 0x1F);
    }

    #[test]
    fn timers_are_those_of_the_table() {
        assert_eq!(rnr_span(12), Duration::from_micros(640));
        assert_eq!(rnr_span(0), Duration::from_micros(655_360));
        assert_eq!(rnr_span(31), Duration::from_micros(491_520));
    }
}
