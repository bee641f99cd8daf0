use super::Malformed;
use hodo_machine::Cursor;

/// Bytes of the primary header.
pub const PRIMARY_HEADER_LENGTH: usize = 6;

/// The largest number of bytes behind a primary header.
const DATA_MAX: usize = 1 << 16;
const TELECOMMAND: u16 = 1 << 12;
const SECONDARY_HEADER: u16 = 1 << 11;
const APPLICATION_PROCESS: u16 = (1 << 11) - 1;
const SEQUENCE_COUNT: u16 = (1 << 14) - 1;

/// The primary header of a space packet (CCSDS 133.0-B-2, 4.1.3), without its length.
///
/// | bits | field |
/// |---|---|
/// | 3 | version, 0 |
/// | 1 | type: 1 telecommand, 0 telemetry |
/// | 1 | secondary header flag |
/// | 11 | application process identifier |
/// | 2 | [`SequenceFlags`] |
/// | 14 | sequence count, or name of a telecommand |
/// | 16 | bytes of data behind the header, less one |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrimaryHeader {
    /// Whether the packet is a telecommand; otherwise it is telemetry.
    pub is_telecommand: bool,
    /// Whether the data begins with a secondary header.
    pub has_secondary_header: bool,
    /// The application process identifier, in 11 bits.
    pub application_process: u16,
    /// The packet's place in a segmented message.
    pub sequence_flags: SequenceFlags,
    /// The sequence count, in 14 bits.
    pub sequence_count: u16,
}

hodo_machine::codes! {
    /// The place of a packet in a segmented message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum SequenceFlags: u8 {
        /// In the middle.
        Continuation = 0b00,
        /// The first.
        First = 0b01,
        /// The last.
        Last = 0b10,
        /// The only one.
        Unsegmented = 0b11,
    }
}

/// A space packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpacePacket<'a> {
    /// The primary header.
    pub header: PrimaryHeader,
    /// The data behind it, 1 to 65536 bytes.
    pub data: &'a [u8],
}

impl<'a> SpacePacket<'a> {
    /// Parses a space packet that fills `bytes`.
    ///
    /// # Errors
    /// Returns the defect of the packet.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(bytes);
        let [high, low, sequence_high, sequence_low, length_high, length_low] = fields.array()?;
        let identification = u16::from_be_bytes([high, low]);
        let sequence = u16::from_be_bytes([sequence_high, sequence_low]);
        let announced = usize::from(u16::from_be_bytes([length_high, length_low])) + 1;
        let data = fields.rest();
        if high >> 5 != 0 {
            return Err(Malformed::Version(high >> 5));
        }
        if data.len() != announced {
            return Err(Malformed::Length { announced, have: data.len() });
        }
        let header = PrimaryHeader {
            is_telecommand: identification & TELECOMMAND != 0,
            has_secondary_header: identification & SECONDARY_HEADER != 0,
            application_process: identification & APPLICATION_PROCESS,
            sequence_flags: SequenceFlags::from_bits(sequence_high >> 6),
            sequence_count: sequence & SEQUENCE_COUNT,
        };
        Ok(SpacePacket { header, data })
    }

    /// Returns the primary header in front of the data; identifier and count modulo what their bits express.
    ///
    /// # Errors
    /// Returns [`Malformed::Length`] if the data is empty or longer than 65536 bytes.
    pub fn header_bytes(&self) -> Result<[u8; PRIMARY_HEADER_LENGTH], Malformed> {
        let have = self.data.len();
        if !(1..=DATA_MAX).contains(&have) {
            return Err(Malformed::Length { announced: have.clamp(1, DATA_MAX), have });
        }
        let header = &self.header;
        let telecommand = if header.is_telecommand { TELECOMMAND } else { 0 };
        let secondary = if header.has_secondary_header { SECONDARY_HEADER } else { 0 };
        let identification = telecommand | secondary | header.application_process & APPLICATION_PROCESS;
        let flags = u16::from(header.sequence_flags.code()) << 14;
        let [high, low] = identification.to_be_bytes();
        let [sequence_high, sequence_low] = (flags | header.sequence_count & SEQUENCE_COUNT).to_be_bytes();
        let [length_high, length_low] = ((have - 1) as u16).to_be_bytes();
        Ok([high, low, sequence_high, sequence_low, length_high, length_low])
    }
}

impl SequenceFlags {
    const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => SequenceFlags::Continuation,
            0b01 => SequenceFlags::First,
            0b10 => SequenceFlags::Last,
            _ => SequenceFlags::Unsegmented,
        }
    }
}
