//! The far end that is started for a link.

use crate::Uri;

/// The beginning of a server's first line, behind which its URI stands.
pub const LISTENING_ON: &str = "listening on ";
/// The beginning of a daemon's second line, behind which the address of its pages stands.
pub const PAGES_ON: &str = "pages on http://";

/// A far end to be started, as a command of `hodo`.
#[derive(Debug, Clone)]
pub struct FarEnd {
    /// The subcommand and its words.
    pub words: Vec<String>,
    /// The beginnings of its first lines, behind which its addresses stand.
    pub says: &'static [&'static str],
    /// The URI to serve, where the command is `serve`.
    pub served: Option<Uri>,
    /// The link to another far end that has to run behind this one, as a device behind a hub.
    pub behind: Option<Uri>,
}

impl FarEnd {
    /// Describes `hodo serve` of a URI.
    #[must_use]
    pub fn serve(uri: Uri) -> FarEnd {
        let words = vec!["serve".to_owned(), uri.to_string()];
        FarEnd { words, says: &[LISTENING_ON], served: Some(uri), behind: None }
    }

    /// Describes another daemon of this program.
    #[must_use]
    pub fn daemon(words: &[&str], says: &'static [&'static str], behind: Option<Uri>) -> FarEnd {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        FarEnd { words, says, served: None, behind }
    }
}
