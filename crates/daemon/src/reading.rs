use hodo_io::scheduling;
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::Builder;

/// A configuration that is read again, on a thread of its own: a serving thread never waits for a file system.
#[derive(Debug)]
pub struct Reading<T> {
    under_way: Option<Receiver<T>>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading { under_way: None }
    }
}

impl<T: Send + 'static> Reading<T> {
    /// Returns `true` if the last read has not been taken yet.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Starts to read. Another read that is under way is forgotten.
    ///
    /// # Errors
    /// The system's error if no thread can be started.
    pub fn start(&mut self, read: impl FnOnce() -> T + Send + 'static) -> io::Result<()> {
        let (done, is_done) = sync_channel(1);
        Builder::new().name("reader".to_owned()).spawn(move || {
            scheduling::set_before_realtime();
            // Whoever asked may have ended.
            let _ = done.send(read());
        })?;
        self.under_way = Some(is_done);
        Ok(())
    }

    /// Takes what was read, once it was.
    pub fn outcome(&mut self) -> Option<T> {
        let outcome = self.under_way.as_ref()?.try_recv();
        if !matches!(outcome, Err(TryRecvError::Empty)) {
            self.under_way = None;
        }
        outcome.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_outcome_is_there_once_the_reader_has_it() {
        let mut reading = Reading::default();
        let (go, goes) = channel::<u32>();
        assert!(reading.outcome().is_none() && !reading.is_under_way());
        reading.start(move || goes.recv().expect("it is sent")).expect("a thread");
        assert!(reading.outcome().is_none() && reading.is_under_way());
        go.send(7).expect("it is waited for");
        let outcome = loop {
            match reading.outcome() {
                None => std::thread::yield_now(),
                some => break some,
            }
        };
        assert_eq!((outcome, reading.is_under_way()), (Some(7), false));
    }
}
