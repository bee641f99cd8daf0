//! The far end that is started for a link.

use crate::Uri;
use hodo_io::LISTENING_ON;
use hodo_io::usage::Usage;

/// The beginning of a daemon's second line, behind which the address of its pages stands.
pub const PAGES_ON: &str = "pages on http://";

/// The line on standard input that requests the usage of a far end's process, which comes back as a line on standard output. A program
/// that does not know it passes over it.
pub const USAGE_REQUEST: &str = "usage";

/// Returns the reply to [`USAGE_REQUEST`]: that word, nanoseconds in user mode and in the kernel, voluntary and involuntary switches, the
/// largest resident set in bytes, and nanoseconds of polling.
#[must_use]
pub fn usage_line(usage: &Usage) -> String {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let Usage { user_s, system_s, voluntary_switches, involuntary_switches, max_rss_bytes, polling_s } = *usage;
    let polling = polling_s.map_or_else(|| "-".to_owned(), |seconds| ns(seconds).to_string());
    format!(
        "{USAGE_REQUEST} {} {} {voluntary_switches} {involuntary_switches} {max_rss_bytes} {polling}\n",
        ns(user_s),
        ns(system_s)
    )
}

/// Reads what [`usage_line`] wrote; `None` for any other line.
pub(crate) fn read_usage(line: &str) -> Option<Usage> {
    let mut words = line.trim_end().strip_prefix(USAGE_REQUEST)?.strip_prefix(' ')?.split(' ');
    let mut next = || words.next()?.parse::<u64>().ok();
    let (user_ns, system_ns, voluntary_switches, involuntary_switches) = (next()?, next()?, next()?, next()?);
    Some(Usage {
        user_s: user_ns as f64 * 1e-9,
        system_s: system_ns as f64 * 1e-9,
        voluntary_switches,
        involuntary_switches,
        max_rss_bytes: next()?,
        polling_s: next().map(|ns| ns as f64 * 1e-9),
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_a_far_end_comes_back_as_a_line() {
        let usage = Usage {
            user_s: 0.5,
            system_s: 1.25,
            voluntary_switches: 7,
            involuntary_switches: 3,
            max_rss_bytes: 1 << 20,
            polling_s: Some(0.75),
        };
        assert_eq!(usage_line(&usage), "usage 500000000 1250000000 7 3 1048576 750000000\n");
        for usage in [usage, Usage { polling_s: None, ..usage }] {
            assert_eq!(read_usage(&usage_line(&usage)), Some(usage));
        }
        for other in ["", "usage", "usage 1 2 3", "usages 1 2 3 4 5 6", "listening on tcp://127.0.0.1:1"] {
            assert_eq!(read_usage(other), None, "{other}");
        }
    }
}
