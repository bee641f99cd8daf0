use super::format::{Format, Record};
use super::sink::Sink;
use serde_json::Map;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tracing::Level;

/// Lines that wait for the thread that writes.
const QUEUE: usize = 1024;
/// How often the thread looks whether the file is to be opened again.
const LOOK: Duration = Duration::from_millis(250);

/// A bounded queue to a thread that writes. The thread starts with the first line: a process that says nothing does not
/// pay for having another thread.
pub struct Outlet {
    queue: SyncSender<Line>,
    writer: Mutex<Option<Writer>>,
    started: AtomicBool,
    shared: Arc<Shared>,
}

/// The counts that the outlet shares with its thread.
#[derive(Default)]
struct Shared {
    counts: Counts,
    /// Lines that are queued or being written.
    pending: AtomicUsize,
    turn: Mutex<()>,
    idle: Condvar,
}

/// The lines of an outlet.
#[derive(Default)]
pub struct Counts {
    pub written: AtomicU64,
    pub lost: AtomicU64,
}

struct Line {
    bytes: Vec<u8>,
    /// Receives the result of the write, if the caller waits for it.
    waits: Option<SyncSender<io::Result<()>>>,
}

/// The state of the thread that writes.
struct Writer {
    queue: Receiver<Line>,
    sink: Sink,
    shared: Arc<Shared>,
    /// The name and format of lines about lost lines, if there are any.
    tells: Option<(String, Format)>,
    /// Lost lines that the log has reported.
    told: u64,
}

impl Outlet {
    /// Creates an outlet to a sink. With a name and a format, it writes how many lines were lost as soon as it can write again.
    pub fn new(sink: Sink, tells: Option<(String, Format)>) -> Self {
        let (queue, receiver) = sync_channel(QUEUE);
        let shared = Arc::<Shared>::default();
        let writer = Writer { queue: receiver, sink, shared: Arc::clone(&shared), tells, told: 0 };
        Outlet { queue, writer: Mutex::new(Some(writer)), started: AtomicBool::new(false), shared }
    }

    /// Queues a line, which has its line feed; loses it if the queue is full.
    pub fn send(&self, bytes: Vec<u8>) {
        self.put(Line { bytes, waits: None });
    }

    /// Counts a line as lost.
    pub fn lose(&self) {
        self.shared.counts.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes text and waits for it, but not for longer than `patience`: then it stays in the queue.
    pub fn print(&self, text: &[u8], patience: Duration) -> io::Result<()> {
        let (waits, written) = sync_channel(1);
        self.put(Line { bytes: text.to_owned(), waits: Some(waits) });
        written.recv_timeout(patience).unwrap_or(Ok(()))
    }

    /// Waits until all queued lines are written, but not for longer than `patience`.
    pub fn drain(&self, patience: Duration) {
        let turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = |(): &mut ()| self.shared.pending.load(Ordering::Acquire) > 0;
        drop(self.shared.idle.wait_timeout_while(turn, patience, is_busy));
    }

    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    fn put(&self, line: Line) {
        self.shared.pending.fetch_add(1, Ordering::AcqRel);
        if self.queue.try_send(line).is_err() {
            self.lose();
            self.shared.finish();
        }
        if !self.started.swap(true, Ordering::AcqRel) {
            self.start();
        }
    }

    fn start(&self) {
        let mut place = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let given = Arc::new(Mutex::new(place.take()));
        let taken = Arc::clone(&given);
        let take = |from: &Mutex<Option<Writer>>| from.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread =
            Builder::new().name("log".to_owned()).spawn(move || take(&taken).into_iter().for_each(Writer::run));
        if thread.is_err() {
            // What is queued, the reason for the end among it, is written here. The next line tries again to have a thread.
            *place = take(&given);
            place.iter_mut().for_each(Writer::write_queued);
            self.started.store(false, Ordering::Release);
        }
    }
}

impl Shared {
    /// Counts a line as no longer pending.
    fn finish(&self) {
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.idle.notify_all();
        }
    }
}

impl Writer {
    /// Writes the lines that are queued now.
    fn write_queued(&mut self) {
        while let Ok(line) = self.queue.try_recv() {
            self.write(line);
        }
    }

    fn run(mut self) {
        loop {
            let next = if self.sink.reopens() {
                self.queue.recv_timeout(LOOK)
            } else {
                self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            self.sink.reopen_if_asked();
            match next {
                Ok(line) => self.write(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn write(&mut self, Line { bytes, waits }: Line) {
        self.tell_lost();
        let written = self.sink.write(&bytes);
        let count = if written.is_ok() { &self.shared.counts.written } else { &self.shared.counts.lost };
        count.fetch_add(1, Ordering::Relaxed);
        if let Some(waits) = waits {
            // Whoever waited may have lost patience.
            let _ = waits.try_send(written);
        }
        self.shared.finish();
    }

    /// Writes how many lines were lost since this was last written.
    fn tell_lost(&mut self) {
        let lost = self.shared.counts.lost.load(Ordering::Relaxed);
        if let Some((name, format)) = &self.tells
            && lost > self.told
        {
            let message = &format!("{} lines of this log were lost before this one", lost - self.told);
            let record = Record { name, level: Level::WARN, message, fields: &Map::new() };
            if self.sink.write(&format.line(&record)).is_ok() {
                self.told = lost;
            }
        }
    }
}
