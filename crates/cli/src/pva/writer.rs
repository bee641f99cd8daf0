//! Output that holds nothing up: a thread writes, and whoever has text is told when it does not keep up.

use crate::{Error, terminal};
use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Pieces of text that may wait.
const WAITING_MAX: usize = 16;

/// A thread that writes to standard output.
pub struct Writer {
    pieces: Option<SyncSender<String>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Writer {
    /// Starts the thread.
    pub fn start() -> Result<Self, Error> {
        let (pieces, to_write) = sync_channel::<String>(WAITING_MAX);
        let thread = Builder::new()
            .name("output".into())
            .spawn(move || to_write.into_iter().try_for_each(|piece| write(&piece)));
        let thread = thread.map_err(|why| Error::Failed(format!("no thread can be started: {why}")))?;
        Ok(Writer { pieces: Some(pieces), thread: Some(thread) })
    }

    /// Hands text on, and leaves none; or leaves it as it is if too much waits. Returns `false` if nothing can be written any more.
    pub fn offer(&self, text: &mut String) -> bool {
        let Some(pieces) = self.pieces.as_ref().filter(|_| !text.is_empty()) else { return true };
        match pieces.try_send(std::mem::take(text)) {
            Ok(()) => true,
            Err(TrySendError::Full(back)) => {
                *text = back;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Writes the rest, and waits until it is written.
    pub fn finish(mut self, text: String) -> Result<(), Error> {
        if let Some(pieces) = self.pieces.take().filter(|_| !text.is_empty()) {
            // The error of a thread that has ended is its result.
            let _ = pieces.send(text);
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(why))) if why.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::Failed(format!("standard output cannot be written: {why}")))
            }
            _ => Ok(()),
        }
    }
}

/// Writes one piece. A reader that has gone away is an error here: nothing is to be read for it any more.
fn write(piece: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(terminal::printable(piece).as_bytes())?;
    stdout.flush()
}
