use crate::wire::{Role, VERSION};
use hodo_machine::Closed;
use thiserror::Error;

/// An error of one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are of another protocol.
    #[error("another protocol: it begins with \"{}\"; is this the farm's port?", first.escape_ascii())]
    NotFarm {
        /// The bytes, as far as they came.
        first: [u8; 4],
    },
    /// The peer speaks another version.
    #[error(
        "it speaks version {theirs} of the protocol, and this program version {VERSION}; use the same hodo on both sides"
    )]
    Version {
        /// Which.
        theirs: u16,
    },
    /// A body that is shorter than its kind needs.
    #[error("a message is too short for its kind")]
    Truncated,
    /// A role that there is none of.
    #[error("role {code} does not exist")]
    NoRole {
        /// Code on the wire.
        code: u8,
    },
    /// A verdict that there is none of.
    #[error("verdict {code} does not exist")]
    NoVerdict {
        /// Code on the wire.
        code: u8,
    },
    /// A peer of this role has no business here.
    #[error("a {} cannot connect here; check its --to address", role.name())]
    WrongRole {
        /// The role that the peer claims.
        role: Role,
    },
    /// A message that is not allowed there.
    #[error("unexpected message of kind {kind}")]
    Unexpected {
        /// Kind of the message on the wire.
        kind: u8,
    },
    /// An event or a message over the bound.
    #[error("{size} bytes exceed the limit of {max}; raise --event-max there")]
    TooLarge {
        /// Size in bytes.
        size: u32,
        /// The bound in bytes.
        max: u32,
    },
    /// More events, or more bytes of them, than there was credit for.
    #[error("it sent more than its credit of {max}")]
    OverCredit {
        /// The bound that was passed.
        max: u64,
    },
    /// A token for an event that this peer was not given, or has answered.
    #[error("a token for event {event}, which it did not have")]
    Unasked {
        /// The event that it names.
        event: u64,
    },
    /// The events of the run have more gaps than can be remembered.
    #[error("the event numbers have more than {max} gaps; number events consecutively")]
    TooManyGaps {
        /// The bound.
        max: usize,
    },
    /// A run that is over, or that nobody has opened.
    #[error("run {run} is not open here; open it with `hodo farm set-run {run}`, or give its events another run")]
    NoSuchRun {
        /// Number of the run.
        run: u32,
    },
    /// One more peer of its kind than there may be.
    #[error("the limit of {max} such connections is reached")]
    Full {
        /// The bound.
        max: u32,
    },
    /// Another connection has the same source's number.
    #[error("another connection has number {number}; give each its own number")]
    Replaced {
        /// The number.
        number: u32,
    },
    /// No greeting in time.
    #[error("no greeting in time")]
    NoGreeting,
    /// Nothing was heard for too long.
    #[error("silent for too long")]
    Silent,
    /// An event was not answered in time.
    #[error("event {event} was not answered in time")]
    Overdue {
        /// The event.
        event: u64,
    },
    /// The peer has refused us with this code.
    #[error("the far end refused this connection (code {code})")]
    RefusedBy {
        /// A code of the peer's errors.
        code: u64,
    },
    /// The connection is gone.
    #[error("{0}")]
    Closed(Closed),
    /// An event with the number 2^64 - 1, which is reserved.
    #[error("an event has the number 2^64 - 1, which is reserved")]
    NoNumber,
    /// A source that is not expected.
    #[error("source {number} is not one of the {sources} expected; number them from 0")]
    NoSuchSource {
        /// Number of the source.
        number: u32,
        /// Sources that are expected.
        sources: u32,
    },
    /// A node that sends no tokens, where they are wanted.
    #[error("nodes without tokens are only for measurements; start it without --no-tokens")]
    NoTokens,
    /// More data behind tokens is arriving at once, from all nodes, than there is memory for.
    #[error("more than {max} bytes of output are arriving from all nodes; raise --output-bytes at the controller")]
    OverData {
        /// The bound in bytes.
        max: u64,
    },
    /// It gave nothing, and another took its place.
    #[error(
        "it gave nothing for long, and another source needed one of the {max} places; raise --sources at the controller"
    )]
    Idle {
        /// The bound.
        max: u32,
    },
    /// A node that can never take an event, whose place another took.
    #[error(
        "it had no event and no credit left to take one, and another node needed one of the {max} places; give it credits"
    )]
    NoCredits {
        /// The bound.
        max: u32,
    },
    /// A source that is there, and gave nothing although others waited for it.
    #[error(
        "it gave nothing for long although events waited for it, which went on without it; --behind at the builder"
    )]
    Behind,
}

impl Error {
    /// Returns the code on the wire, in REFUSED.
    #[must_use]
    pub const fn code(&self) -> u64 {
        match self {
            Error::NotFarm { .. } => 1,
            Error::Version { .. } => 2,
            Error::Truncated => 3,
            Error::NoRole { .. } => 4,
            Error::NoVerdict { .. } => 5,
            Error::WrongRole { .. } => 6,
            Error::Unexpected { .. } => 7,
            Error::TooLarge { .. } => 8,
            Error::OverCredit { .. } => 9,
            Error::Unasked { .. } => 10,
            Error::TooManyGaps { .. } => 11,
            Error::NoSuchRun { .. } => 12,
            Error::Full { .. } => 13,
            Error::Replaced { .. } => 14,
            Error::NoGreeting => 15,
            Error::Silent => 16,
            Error::Overdue { .. } => 17,
            Error::RefusedBy { .. } => 18,
            Error::Closed(_) => 19,
            Error::NoNumber => 20,
            Error::NoSuchSource { .. } => 21,
            Error::NoTokens => 22,
            Error::OverData { .. } => 23,
            Error::Idle { .. } => 24,
            Error::NoCredits { .. } => 25,
            Error::Behind => 26,
        }
    }

    /// The name of each code in counters; there is none with the code 0.
    pub const REASONS: [&'static str; 27] = [
        "none",
        "another-protocol",
        "version",
        "truncated",
        "no-role",
        "no-verdict",
        "wrong-role",
        "unexpected",
        "too-large",
        "over-credit",
        "unasked-token",
        "too-many-gaps",
        "no-such-run",
        "full",
        "replaced",
        "no-greeting",
        "silent",
        "overdue",
        "refused-by-it",
        "closed",
        "no-number",
        "no-such-source",
        "no-tokens",
        "over-data",
        "idle",
        "no-credits",
        "behind",
    ];

    /// Turns the error of a peer that has not greeted into [`Error::NotFarm`] if the first bytes are text.
    pub(crate) fn of_stranger(self, bytes: &[u8]) -> Error {
        match bytes.first_chunk() {
            Some(first) if !matches!(self, Error::Version { .. }) && first.iter().all(u8::is_ascii_graphic) => {
                Error::NotFarm { first: *first }
            }
            _ => self,
        }
    }

    /// Tells whether the peer broke the rules, rather than being gone or late.
    #[must_use]
    pub const fn is_misbehaviour(&self) -> bool {
        self.code() <= 14
            || matches!(self, Error::NoNumber | Error::NoSuchSource { .. } | Error::NoTokens | Error::OverData { .. })
    }
}
