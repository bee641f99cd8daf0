//! The settings of an end.
use super::CREDIT_MAX;

/// The edition of the standard, where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Edition {
    /// ECSS-E-ST-50-12C, 31 July 2008.
    #[default]
    Of2008,
    /// ECSS-E-ST-50-12C Rev.1, 15 May 2019: an end must also have sent a NULL before Connecting, and an FCT before Run.
    Rev1,
}

/// The behaviour of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The edition of the standard.
    pub edition: Edition,
    /// Never starts. It goes before the other two.
    pub disabled: bool,
    /// Starts by itself.
    pub link_start: bool,
    /// Starts when the far end does.
    pub auto_start: bool,
    /// N-chars that the receive buffer holds. At least 8; credit uses up to 56 of them.
    pub buffer: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            edition: Edition::default(),
            disabled: false,
            link_start: true,
            auto_start: true,
            buffer: CREDIT_MAX,
        }
    }
}
