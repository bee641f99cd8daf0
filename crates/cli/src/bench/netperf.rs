//! The text under the help of `hodo bench`: the links and studies of this build, and the tests that netperf's users look for, under the
//! names that they know.

use hodo_catalog::{Protocol, protocols};

/// Returns the text under `hodo bench --help`.
pub fn after_help() -> String {
    let line = |protocol: &'static dyn Protocol| {
        let description = protocol.description();
        let schemes = description.schemes.join(", ");
        let bare = hodo_catalog::uri(description.name).ok();
        let mut studies: Vec<_> =
            bare.iter().flat_map(|link| protocol.presets(link)).map(|preset| preset.name).collect();
        studies.dedup();
        let studies = if studies.is_empty() { String::new() } else { format!("; --preset {}", studies.join(", ")) };
        format!("  {:<11}{}\n             {schemes}{studies}\n", description.name, description.about)
    };
    let links: String = protocols().map(line).collect();
    format!("Protocols, with the schemes of their links and the studies that they repeat:\n{links}\n{NETPERF}")
}

/// The tests of netperf, each with its command.
pub const NETPERF: &str = "\
netperf's tests by name (a URI such as tcp://there:4242 measures another host):
  TCP_STREAM   hodo bench tcp --test rate --mode send --sizes 128K
  TCP_MAERTS   hodo bench tcp --test rate --mode receive --sizes 128K
  TCP_RR       hodo bench tcp --test latency --mode both --sizes 1
  TCP_CRR      hodo bench tcp --test latency --mode both --sizes 1 --reconnect
  UDP_STREAM   hodo bench udp --test rate --mode send --sizes 1472 --window none
  UDP_RR       hodo bench udp --test latency --mode both --sizes 1

  netperf -H there      is  tcp://there:4242, with `hodo serve tcp://:4242` there
  netperf -l 10         is  --duration 10s --repeat 1
  netperf -I 95,5 -i 30 is  --confidence 95 --interval 5% --max-repeats 30
  netperf -T 0,1        is  --cpu 0,1
  netperf -- -m 32K     is  --sizes 32K
  netperf -- -s 1M      is  --socket-buffer 1M
  netperf -- -K cubic   is  --congestion cubic
  netperf -L 10.0.0.2   is  --bind 10.0.0.2

Exit status: 0 success; 1 a measurement failed, was interrupted or does not meet --require,
and completed measurements are written; 2 usage error.";
