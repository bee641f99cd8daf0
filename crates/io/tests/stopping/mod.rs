use std::sync::atomic::{AtomicBool, Ordering};

/// A guard that stops a server when it is dropped, so that a test that fails ends instead of waiting for its server.
pub struct Stopping<'a>(pub &'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
