//! Searches with libFuzzer in one of `hodo_fuzz::TARGETS`: the one that `HODO_FUZZ_TARGET` names.
#![no_main]

use hodo_fuzz::{TARGETS, Target};
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("HODO_FUZZ_TARGET").unwrap_or_default();
    hodo_fuzz::target(&name).unwrap_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("HODO_FUZZ_TARGET={name}: there is no such target; choose one of {}", names.join(", "));
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(
    init: {
        LazyLock::force(&TARGET);
    },
    |input: &[u8]| (TARGET.run)(input)
);
