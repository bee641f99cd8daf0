use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Address, Outbox, Output, Peer};

/// Datagrams on their way out; more than [`BYTES_MAX`] are not taken.
///
/// Each goes to an address that is a peer only meanwhile, so that what comes from there stays a stranger's, whose arrival the machine is
/// told of.
#[derive(Debug)]
pub(crate) struct Mail {
    peer: Peer,
    waiting: VecDeque<(Address, Vec<u8>)>,
    bytes: usize,
    step: Step,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Open,
    Send,
    Close,
}

/// The bytes that may wait.
const BYTES_MAX: usize = 1 << 20;
/// Buffers that are kept for later datagrams.
const SPARE: usize = 16;

impl Mail {
    /// Creates mail that leaves by a peer of this number.
    pub(crate) fn new(peer: Peer) -> Self {
        Mail { peer, waiting: VecDeque::new(), bytes: 0, step: Step::Open, spare: Vec::new() }
    }

    /// Adds a datagram; returns whether there was room.
    pub(crate) fn post(&mut self, to: Address, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.bytes >= BYTES_MAX {
            return false;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        write(&mut bytes);
        self.bytes += bytes.len();
        self.waiting.push_back((to, bytes));
        true
    }

    /// Returns the next thing to be done for what waits.
    pub(crate) fn poll<E>(&mut self, out: &mut Outbox) -> Option<Output<E>> {
        let (to, bytes) = self.waiting.front_mut()?;
        Some(match self.step {
            Step::Open => {
                self.step = Step::Send;
                Output::Open(self.peer, to.clone())
            }
            Step::Send => {
                self.step = Step::Close;
                out.copy(bytes);
                Output::Send(self.peer)
            }
            Step::Close => {
                self.step = Step::Open;
                self.bytes -= bytes.len();
                let mut bytes = core::mem::take(bytes);
                self.waiting.pop_front();
                if self.spare.len() < SPARE {
                    bytes.clear();
                    self.spare.push(bytes);
                }
                Output::Close(self.peer)
            }
        })
    }
}
