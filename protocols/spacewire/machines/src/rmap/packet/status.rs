use core::fmt;

hodo_machine::codes! {
    /// The outcome of a command (5.6).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Status: u8 {
        /// The command was carried out.
        Success = 0,
        /// The memory failed, or an error has no code of its own.
        General = 1,
        /// The packet type or the command code has no meaning.
        UnusedCode = 2,
        /// The key is not the one that the target expects.
        InvalidKey = 3,
        /// The CRC of the data is wrong.
        DataCrc = 4,
        /// The packet ended before its data.
        EarlyEop = 5,
        /// The packet went on after its data.
        TooMuchData = 6,
        /// An EEP ended the packet.
        Eep = 7,
        /// The data of a verified write is larger than the target's buffer.
        VerifyBufferOverrun = 9,
        /// The target does not implement the command, or does not allow it there.
        NotAuthorised = 10,
        /// The data length of a read-modify-write is not 0, 2, 4, 6 or 8.
        ModifyLength = 11,
        /// The target does not have this logical address.
        InvalidLogicalAddress = 12,
    } else {
        /// A reserved code.
        Reserved
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Status::Success => "success",
            Status::General => "general error: the memory failed",
            Status::UnusedCode => "unused packet type or command code",
            Status::InvalidKey => "invalid key: ask for the target's key",
            Status::DataCrc => "data CRC wrong on arrival at the target",
            Status::EarlyEop => "packet ended early on arrival at the target",
            Status::TooMuchData => "packet too long on arrival at the target",
            Status::Eep => "packet ended by an EEP on arrival at the target",
            Status::VerifyBufferOverrun => "more data than the target's verify buffer: write less, or without verify",
            Status::NotAuthorised => "not implemented or not authorised: check address, length and alignment",
            Status::ModifyLength => "read-modify-write length not 0, 2, 4, 6 or 8",
            Status::InvalidLogicalAddress => "target does not have this logical address",
            Status::Reserved(code) => return write!(f, "reserved status {code}"),
        };
        f.write_str(text)
    }
}
