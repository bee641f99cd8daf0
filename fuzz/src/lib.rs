//! Fuzz targets: plain functions of bytes that panic where a promise is broken.
//!
//! `cargo test -p hodo-fuzz` replays `corpus/<target>/` and then mutates it; `libfuzzer/` searches on with coverage.

mod device_files;
mod drive;
mod farm;
mod http;
mod ipbus;
mod ipbus_client;
mod ipbus_hub;
mod metered;
mod pva;
mod pva_client;
mod pva_datagram;
mod pva_image;
mod raw;
mod roce;
mod shared;
mod spacewire;
mod store;
mod text;

pub use drive::{Accepts, Newcomer, Script, Step, drive, drive_within};

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name, and its corpus's.
    pub name: &'static str,
    /// The function that takes the bytes.
    pub run: fn(&[u8]),
    /// How many times slower one run is than reading a few bytes: mutants are so many times fewer.
    pub slowness: u64,
}

/// Every target. A new one needs a line here, its name in `tests/replay.rs`, and a folder in `corpus/`.
pub const TARGETS: &[Target] = &[
    Target { name: "frames", run: shared::frames, slowness: 1 },
    Target { name: "cursor", run: shared::cursor, slowness: 1 },
    Target { name: "raw_wire", run: raw::wire, slowness: 1 },
    Target { name: "raw_client", run: raw::client, slowness: 10 },
    Target { name: "raw_server", run: raw::server, slowness: 10 },
    Target { name: "ipbus_packet", run: ipbus::packet, slowness: 1 },
    Target { name: "ipbus_legacy", run: ipbus::legacy, slowness: 1 },
    Target { name: "ipbus_hub", run: ipbus::hub, slowness: 1 },
    Target { name: "ipbus_device", run: ipbus::device, slowness: 10 },
    Target { name: "ipbus_client", run: ipbus_client::machine, slowness: 10 },
    Target { name: "ipbus_hub_machine", run: ipbus_hub::machine, slowness: 10 },
    Target { name: "farm_wire", run: farm::wire, slowness: 1 },
    Target { name: "farm_controller", run: farm::controller, slowness: 10 },
    Target { name: "farm_node", run: farm::node, slowness: 10 },
    Target { name: "farm_source", run: farm::source, slowness: 10 },
    Target { name: "farm_builder", run: farm::builder, slowness: 10 },
    Target { name: "pva_value", run: pva::value, slowness: 2 },
    Target { name: "pva_stream", run: pva::stream, slowness: 4 },
    Target { name: "pva_server", run: pva::server, slowness: 10 },
    Target { name: "pva_client", run: pva_client::client, slowness: 10 },
    Target { name: "pva_datagram", run: pva_datagram::datagram, slowness: 4 },
    Target { name: "pva_image", run: pva_image::image, slowness: 4 },
    Target { name: "pva_request", run: pva::request, slowness: 2 },
    Target { name: "roce_wire", run: roce::wire, slowness: 1 },
    Target { name: "roce_adapter", run: roce::adapter, slowness: 10 },
    Target { name: "spacewire_streams", run: spacewire::streams, slowness: 2 },
    Target { name: "spacewire_packets", run: spacewire::packets, slowness: 2 },
    Target { name: "spacewire_client", run: spacewire::client, slowness: 10 },
    Target { name: "spacewire_far_end", run: spacewire::far_end, slowness: 10 },
    Target { name: "spacewire_bridge", run: spacewire::bridge, slowness: 100 },
    Target { name: "spacewire_network", run: spacewire::network, slowness: 10 },
    Target { name: "http", run: http::server, slowness: 2 },
    Target { name: "uri", run: text::uri, slowness: 1 },
    Target { name: "address_table", run: device_files::address_table, slowness: 4 },
    Target { name: "connections", run: device_files::connections, slowness: 2 },
    Target { name: "device_uri", run: device_files::device_uri, slowness: 2 },
    Target { name: "store_segment", run: store::segment, slowness: 2 },
    Target { name: "store_verdicts", run: store::verdicts, slowness: 1 },
    Target { name: "result_json", run: text::result_json, slowness: 1 },
];

/// Returns the target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
