use super::blocks::Blocks;
use super::pcapng::{self, About};
use super::{BLOCK, Direction, Shared, Trace, TraceOptions};
use hodo_machine::Instant;
use std::io;

/// The room that a packet needs besides its bytes: a block of 32, flags and the number of those that are missing.
const ROOM: usize = 96;
/// Bytes of a packet that are kept. Of a longer one the file tells the length.
const KEPT: usize = BLOCK / 2;

/// The end of a recording at which packets come in, of another protocol than that of the Internet.
///
/// The [`Trace`] that comes with it counts, and has written everything when it is dropped after this end.
pub struct Recorder {
    blocks: Blocks,
    /// Packets lost since the last one that was recorded, for each interface.
    dropped: Vec<u64>,
}

/// Where and when a packet was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The interface, by its place among those that the recording began with.
    pub interface: usize,
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
    /// The direction.
    pub direction: Direction,
}

impl Recorder {
    /// Begins a recording of packets with this link type (as registered for pcap files) at the interfaces of these names.
    ///
    /// # Errors
    /// Returns the operating system's error if the file cannot be created or the thread cannot be started.
    pub fn start(options: &TraceOptions, link_type: u16, interfaces: &[String]) -> io::Result<(Trace, Recorder)> {
        let names: Vec<&str> = interfaces.iter().map(String::as_str).collect();
        let (trace, blocks) = Trace::open(options, link_type, &names)?;
        Ok((trace, Recorder { blocks, dropped: vec![0; interfaces.len()] }))
    }

    /// Records a packet that lies in pieces. `now` is the time of the caller's clock, after which the packet is soon in the file.
    pub fn packet(&mut self, now: Instant, seen: Sighting, pieces: &[&[u8]]) {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let Some(dropped) = self.dropped.get_mut(seen.interface) else { return };
        let about = About {
            interface: seen.interface as u32,
            unix_ns: seen.unix_ns,
            direction: seen.direction,
            missing: length.saturating_sub(KEPT) as u32,
            dropped: *dropped,
            comment: "",
        };
        let fill = |_: &Shared, out: &mut Vec<u8>| {
            pcapng::packet(&about, out, |out| {
                let mut room = KEPT;
                for piece in pieces {
                    let kept = piece.len().min(room);
                    out.extend_from_slice(&piece[..kept]);
                    room -= kept;
                }
            });
        };
        *dropped = if self.blocks.add(now, length.min(KEPT) + ROOM, fill) { 0 } else { *dropped + 1 };
    }

    /// Passes on what has waited long enough.
    pub fn look_in(&mut self, now: Instant) {
        self.blocks.hand_over_old(now);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("dropped", &self.dropped).finish_non_exhaustive()
    }
}
