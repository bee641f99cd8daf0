//! A trace of packets, as `tcpdump` would take it, from inside: a pcapng file for Wireshark.
//!
//! The serving thread copies the packets that it receives and sends into a block; a thread of its own writes full
//! blocks. Memory and files are bounded, and packets without room are counted.

mod blocks;
mod headers;
mod pcapng;
mod recorder;
mod tap;
mod writer;

use blocks::Blocks;
pub use pcapng::Direction;
pub use recorder::{Recorder, Sighting};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
pub(crate) use tap::Served;
use tap::Tap;

/// The bytes that are passed to the writer at once.
const BLOCK: usize = 256 << 10;
/// The number of blocks at most.
const BLOCKS: usize = 64;
/// The bytes of remarks that may wait for a packet.
const NOTES_MAX: usize = 1024;

/// The options of a trace.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The file; an existing one becomes `FILE.1`.
    pub file: PathBuf,
    /// The bytes that the file and `FILE.1` take at most, together: at half of them `FILE` becomes `FILE.1` and a new
    /// one is begun. It is at least [`TraceOptions::SIZE_MIN`].
    pub size_max: u64,
    /// Whether the trace starts paused, and waits for [`Trace::switch`].
    pub paused: bool,
}

impl TraceOptions {
    /// The least limit on bytes: two files of two blocks each.
    pub const SIZE_MIN: u64 = 4 * BLOCK as u64;
}

/// A trace of the packets of one serving thread.
pub struct Trace {
    shared: Arc<Shared>,
    tap: Mutex<Option<Tap>>,
    writer: Option<JoinHandle<()>>,
}

/// The state of a trace, shared between the serving thread, the writer and the rest of the program.
#[derive(Default)]
struct Shared {
    paused: AtomicBool,
    packets: AtomicU64,
    lost: AtomicU64,
    noted: AtomicBool,
    notes: Mutex<String>,
    has_failed: AtomicBool,
    failed: Mutex<Option<String>>,
}

/// Packets, ready to be written.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    packets: u64,
}

/// The counters of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceCounters {
    /// The number of packets that were written.
    pub packets: u64,
    /// The number of packets that were lost, because writing was slower or has failed.
    pub lost: u64,
    /// The reason if writing has failed.
    pub failed: Option<String>,
}

impl Trace {
    /// Opens the file, and starts the writer's thread. A server connects to the trace later.
    ///
    /// # Errors
    /// Returns the operating system's error if the file cannot be created or the thread cannot be started.
    pub fn start(options: &TraceOptions) -> io::Result<Self> {
        let (trace, blocks) = Trace::open(options, pcapng::LINK_RAW, &tap::INTERFACES)?;
        *trace.tap.lock().unwrap_or_else(PoisonError::into_inner) = Some(Tap::new(blocks));
        Ok(trace)
    }

    /// Opens the file, and starts the writer's thread, which empties the blocks.
    fn open(options: &TraceOptions, link_type: u16, interfaces: &[&str]) -> io::Result<(Self, Blocks)> {
        let shared = Arc::new(Shared::default());
        shared.paused.store(options.paused, Relaxed);
        let (full, to_write) = mpsc::sync_channel(BLOCKS);
        let (empty, to_fill) = mpsc::sync_channel(BLOCKS);
        let (told, opened) = mpsc::channel();
        let (options, known) = (options.clone(), Arc::clone(&shared));
        let mut begin = Vec::new();
        pcapng::begin(concat!("hodo ", env!("CARGO_PKG_VERSION")), link_type, interfaces, &mut begin);
        let writer = Builder::new().name("trace".to_owned()).spawn(move || {
            match writer::Ring::open(&options, begin) {
                Err(error) => drop(told.send(Err(error))),
                Ok(ring) => {
                    // The caller of `open` waits for this.
                    let _ = told.send(Ok(()));
                    write(ring, &to_write, &empty, &known);
                }
            }
        })?;
        opened.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        let blocks = Blocks::new(Arc::clone(&shared), full, to_fill);
        Ok((Trace { shared, tap: Mutex::new(None), writer: Some(writer) }, blocks))
    }

    /// Takes the serving thread's end, of which there is only one.
    pub(crate) fn tap(&self) -> Option<Tap> {
        self.tap.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Pauses or resumes the trace. Returns whether packets are recorded from now on.
    pub fn switch(&self) -> bool {
        self.shared.paused.fetch_xor(true, Relaxed)
    }

    /// Adds a remark to the next packet; it is dropped if the waiting remarks have no room for it.
    pub fn note(&self, remark: &str) {
        let mut notes = self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() + remark.len() < NOTES_MAX {
            if !notes.is_empty() {
                notes.push_str("; ");
            }
            notes.push_str(remark);
            self.shared.noted.store(true, Relaxed);
        }
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> TraceCounters {
        self.shared.counters()
    }

    /// Waits until everything is written, which it is once the other end has been dropped, and returns the counters.
    #[must_use]
    pub fn finish(mut self) -> TraceCounters {
        self.wait();
        self.counters()
    }

    fn wait(&mut self) {
        drop(self.tap());
        if let Some(writer) = self.writer.take() {
            // It ends when the serving thread has dropped its end.
            let _ = writer.join();
        }
    }
}

impl Shared {
    fn counters(&self) -> TraceCounters {
        TraceCounters {
            packets: self.packets.load(Relaxed),
            lost: self.lost.load(Relaxed),
            failed: self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Writes blocks until the serving thread has dropped its end. After an error it only counts lost packets.
fn write(mut ring: writer::Ring, full: &Receiver<Block>, empty: &SyncSender<Block>, shared: &Shared) {
    for mut block in full {
        let written = if shared.has_failed.load(Relaxed) { Ok(false) } else { ring.write(&block.bytes).map(|()| true) };
        if let Err(error) = &written {
            let why = format!("{}: {error}", ring.path().display());
            *shared.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            shared.has_failed.store(true, Relaxed);
        }
        let count = if matches!(written, Ok(true)) { &shared.packets } else { &shared.lost };
        count.fetch_add(block.packets, Relaxed);
        block.bytes.clear();
        block.packets = 0;
        // There is room for every block.
        let _ = empty.try_send(block);
    }
}

#[cfg(test)]
mod tests;
