use crate::Mailbox;
use std::sync::{Arc, Mutex, PoisonError};

/// A call to all threads of a server: each calls [`Attendant::look_in`](crate::Attendant::look_in) at once, and notices
/// whether it is to stop.
#[derive(Debug, Clone, Default)]
pub struct Bell(Arc<Mutex<Vec<Arc<Mailbox>>>>);

impl Bell {
    /// Calls the threads of the server that has this bell, if it runs.
    pub fn ring(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|mailbox| mailbox.call());
    }

    /// Has this mailbox called, too.
    pub(crate) fn reach(&self, mailbox: &Arc<Mailbox>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(mailbox));
    }
}
