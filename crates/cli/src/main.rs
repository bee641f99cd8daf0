//! The command `hodo`.

fn main() {}
