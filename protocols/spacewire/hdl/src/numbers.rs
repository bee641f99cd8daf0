//! The numbers of the header, and what they stand for.
use hodo_spacewire::bits::BitEnd;
use hodo_spacewire::character::Code;
use hodo_spacewire::end::{Edition, Fault, LinkError, State};

/// No end is open under a number.
pub(crate) const NO_END: i32 = -2;
/// Nothing waits, or an argument is out of range.
pub(crate) const NONE: i32 = -1;
const EOP: i32 = 256;
const EEP: i32 = 257;

/// The counts in the order of their numbers.
pub(crate) const COUNTS: [fn(&BitEnd) -> u64; 20] = [
    |end| end.statistics().sent.nulls,
    |end| end.statistics().sent.fcts,
    |end| end.statistics().sent.data,
    |end| end.statistics().sent.eops,
    |end| end.statistics().sent.eeps,
    |end| end.statistics().sent.time_codes,
    |end| end.statistics().received.nulls,
    |end| end.statistics().received.fcts,
    |end| end.statistics().received.data,
    |end| end.statistics().received.eops,
    |end| end.statistics().received.eeps,
    |end| end.statistics().received.time_codes,
    |end| end.statistics().errors.disconnect,
    |end| end.statistics().errors.parity,
    |end| end.statistics().errors.escape,
    |end| end.statistics().errors.credit,
    |end| end.statistics().errors.sequence,
    |end| end.statistics().starts,
    |end| end.recovered().discarded,
    |end| end.recovered().eeps,
];

pub(crate) fn nchar(number: i32) -> Option<Code> {
    match number {
        EOP => Some(Code::Eop),
        EEP => Some(Code::Eep),
        _ => u8::try_from(number).ok().map(Code::Data),
    }
}

pub(crate) fn number_of_nchar(nchar: Code) -> i32 {
    match nchar {
        Code::Data(byte) => i32::from(byte),
        Code::Eop => EOP,
        Code::Eep => EEP,
        Code::Null | Code::Fct | Code::TimeCode(_) => NONE,
    }
}

pub(crate) fn edition(number: i32) -> Option<Edition> {
    [Edition::Of2008, Edition::Rev1].get(usize::try_from(number).ok()?).copied()
}

pub(crate) fn fault(number: i32) -> Option<Fault> {
    let faults = [Fault::Parity, Fault::Escape, Fault::Fct, Fault::WithoutCredit, Fault::Disconnect];
    faults.get(usize::try_from(number).ok()?).copied()
}

pub(crate) fn number_of_state(state: State) -> i32 {
    match state {
        State::ErrorReset => 0,
        State::ErrorWait => 1,
        State::Ready => 2,
        State::Started => 3,
        State::Connecting => 4,
        State::Run => 5,
    }
}

pub(crate) fn number_of_error(error: LinkError) -> i32 {
    match error {
        LinkError::Disconnect => 1,
        LinkError::Parity => 2,
        LinkError::Escape => 3,
        LinkError::Credit => 4,
        LinkError::Sequence => 5,
        LinkError::Timeout => 6,
        LinkError::Disabled => 7,
        // A cause without a number of its own.
        _ => 0,
    }
}
