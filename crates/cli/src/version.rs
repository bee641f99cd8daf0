//! The text of `hodo -V`: which sources, which of their features, and which C library.

use std::sync::LazyLock;

/// The last commit that changed what this program is built of, `-dirty` behind it where there were further changes; `None` where it was
/// built without git.
pub const COMMIT: Option<&str> = option_env!("HODO_COMMIT");

const FEATURES: &[(&str, bool)] = &[
    ("raw", cfg!(feature = "raw")),
    ("ipbus", cfg!(feature = "ipbus")),
    ("farm", cfg!(feature = "farm")),
    ("pva", cfg!(feature = "pva")),
    ("roce", cfg!(feature = "roce")),
    ("spacewire", cfg!(feature = "spacewire")),
    ("cloud", cfg!(feature = "cloud")),
];

/// Returns what stands behind the name of the program.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(compose);
    &TEXT
}

fn compose() -> String {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
    format!(
        "{}\ncommit: {}\nfeatures: {}\nlibc: {}",
        env!("CARGO_PKG_VERSION"),
        COMMIT.unwrap_or("not known: built without git"),
        features.join(", "),
        hodo_io::host::c_library()
    )
}
