use super::units;
use clap::Args;
use std::path::PathBuf;

/// A trace of the packets of whoever serves.
#[derive(Debug, Clone, Args)]
pub struct Traced {
    /// Write what is received and sent here, for Wireshark (pcapng).
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Bytes of the trace at most: at half of them FILE becomes FILE.1, and a new one is begun.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = units::bytes, requires = "trace")]
    pub trace_size: u64,
}
