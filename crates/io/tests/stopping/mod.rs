use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a server when it goes, so that a test that fails ends instead of waiting for its server.
pub struct Stopping<'a>(pub &'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
