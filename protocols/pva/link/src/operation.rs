//! The kinds of operations of a link, by the option `operation` of its URI, and the suite of each.

use crate::suite;
use hodo_tester::{Error, TestGroup, Uri};

/// The name of the option.
const OPTION: &str = "operation";

/// The kind of a link's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A get, a put or a put-get.
    Value,
    /// A call, with the payload in the argument, the reply or both.
    Call,
    /// A channel that is opened, and closed once it is open.
    Connect,
}

impl Kind {
    /// Reads the option of a URI, and returns the other options beside it.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such operation.
    pub(crate) fn and_others(uri: &Uri) -> Result<(Kind, Vec<(String, String)>), Error> {
        let kind = match uri.option(OPTION) {
            None | Some("value") => Kind::Value,
            Some("call") => Kind::Call,
            Some("connect") => Kind::Connect,
            Some(other) => {
                let text = format!("`{uri}`: there is no operation `{other}`; it is value, call or connect");
                return Err(Error::Usage(text));
            }
        };
        let others = uri.with_options(|name| name != OPTION).options;
        Ok((kind, others))
    }

    /// Reads the option of a URI that may have no others.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such operation or another option.
    pub(crate) fn of(uri: &Uri) -> Result<Kind, Error> {
        let (kind, others) = Kind::and_others(uri)?;
        match others.first() {
            None => Ok(kind),
            Some((name, _)) => Err(Error::Usage(format!(
                "`{uri}`: a pvAccess link has no option `{name}`; the only one is {OPTION}=value, call or connect"
            ))),
        }
    }

    /// Returns the measurements that are usual for it.
    pub(crate) const fn suite(self) -> &'static [TestGroup] {
        match self {
            Kind::Value => suite::PVA.suite,
            Kind::Call => suite::CALLS,
            Kind::Connect => suite::CONNECTS,
        }
    }
}
