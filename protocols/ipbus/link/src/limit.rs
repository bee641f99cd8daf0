//! The packets that an operation of an IPbus link puts on the wire, from which its limits are computed.

use crate::boards::Boards;
use crate::link::words;
use hodo_ipbus::Path as Way;
use hodo_ipbus::client::{Room, packets};
use hodo_ipbus::wire::operation::Mode as Access;
use hodo_ipbus::wire::transaction::Kind;
use hodo_ipbus::wire::{chunk, hub};
use hodo_measure::limits::{Carrier, Hop, Messages, OnTheWire};
use hodo_measure::{Mode, Plan};
use hodo_tester::{Error, Uri};

/// Returns the packets of operations that are flushed together, and their replies, with the headers of a stream.
///
/// # Errors
/// [`Error::Usage`] if the URI is wrong.
pub(crate) fn on_the_wire(uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error> {
    let boards = if uri.simulated { Boards::simulated(uri, 1)?.0 } else { Boards::of(uri)? };
    let (config, access) = (boards.typical(), boards.access());
    let (carrier, out, back) = match config.path {
        Way::Udp { .. } | Way::SharedUdp => (Carrier::Udp, 0, 0),
        Way::Tcp => (Carrier::Tcp, chunk::HEADER, chunk::HEADER),
        Way::Hub(_) => (Carrier::Tcp, hub::REQUEST_HEADER, hub::REPLY_HEADER),
    };
    let (read, write) = match access {
        Access::Fifo => (Kind::FifoRead, Kind::FifoWrite),
        _ => (Kind::Read, Kind::Write),
    };
    let operations = plan.batch.max(1);
    Ok(OnTheWire::over_sizes(plan.size, |size| {
        let write = (plan.mode != Mode::Receive).then_some((write, words(size)));
        let read = (plan.mode != Mode::Send).then_some((read, words(size)));
        let transactions = (0..operations).flat_map(move |_| write.into_iter().chain(read));
        let packets: Vec<Room> = packets(config.version, config.room(), transactions).collect();
        let behind = matches!(config.path, Way::Hub(_)).then(|| Hop {
            carrier: Carrier::Udp,
            messages: messages(&packets, 0, 0),
            name: "by UDP from the hub to the board".into(),
        });
        OnTheWire {
            operations,
            // Each channel is a client of its own, to a device or to the hub.
            sockets: plan.channels,
            messages: messages(&packets, out, back),
            in_flight_max: Some(config.in_flight as u64),
            behind,
            ..OnTheWire::single(carrier, u64::from(size), 0, 0)
        }
    }))
}

/// Returns the packets with `out` and `back` bytes of a stream in front of each; consecutive equal packets are one
/// entry.
fn messages(packets: &[Room], out: usize, back: usize) -> Vec<Messages> {
    packets
        .chunk_by(|a, b| (a.request, a.reply) == (b.request, b.reply))
        .map(|equal| Messages {
            count: equal.len() as u64,
            out_bytes: (equal[0].request + out) as u64,
            back_bytes: (equal[0].reply + back) as u64,
        })
        .collect()
}
