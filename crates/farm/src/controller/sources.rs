use crate::Error;
use crate::wire::Hello;

/// A source or a builder, as the controller sees it.
#[derive(Debug)]
pub(crate) struct Giver {
    pub(crate) hello: Hello,
    /// Differs for each connection.
    pub(crate) serial: u64,
    /// The run that its next event belongs to.
    pub(crate) run: u32,
    /// What it was granted.
    pub(crate) credits: u32,
    pub(crate) window: u64,
    /// Events and bytes without a token.
    pub(crate) outstanding: u32,
    pub(crate) bytes: u64,
}

impl Giver {
    /// Enters an event that has come.
    #[inline]
    pub(crate) fn enter(&mut self, length: u32) -> Result<(), Error> {
        self.outstanding += 1;
        self.bytes += u64::from(length);
        if self.outstanding > self.credits {
            return Err(Error::OverCredit { max: u64::from(self.credits) });
        }
        if self.bytes > self.window {
            return Err(Error::OverCredit { max: self.window });
        }
        Ok(())
    }

    /// An event of this length has its token.
    #[inline]
    pub(crate) fn answered(&mut self, length: u32) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(length));
    }
}
