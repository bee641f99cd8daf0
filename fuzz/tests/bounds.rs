//! The harness notices a machine that costs too much.

#[path = "../../crates/measure/tests/counting/mod.rs"]
mod counting;

use hodo_fuzz::drive;
use hodo_machine::{Input, Instant, Machine, Outbox, Output, Peer};
use std::panic::catch_unwind;

/// A misuse of the bytes that come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Vice {
    None,
    /// A kibibyte is kept for each byte.
    Hoards,
    /// A mebibyte is kept for whoever comes.
    Welcomes,
    /// Each byte is answered with ten messages.
    Chatters,
    /// All that came so far is copied with every byte.
    Copies,
    /// Strangers are answered with more than they sent.
    Amplifies,
}

struct Sinner {
    vice: Vice,
    kept: Vec<Vec<u8>>,
    all: Vec<u8>,
    owed: usize,
    peer: Option<Peer>,
}

impl Machine for Sinner {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => {
                self.peer = Some(peer);
                self.kept.extend((self.vice == Vice::Welcomes).then(|| vec![0; 1 << 20]));
            }
            Input::Received(_, bytes) => match self.vice {
                Vice::Hoards => self.kept.push(vec![0; bytes.len() << 10]),
                Vice::Chatters => self.owed += 10 * bytes.len(),
                Vice::Copies => {
                    for byte in bytes {
                        self.all = [&self.all[..], &[*byte; 16]].concat();
                    }
                }
                _ => self.owed += 1,
            },
            Input::Closed(..) => self.peer = None,
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<()> {
        let (Some(peer), Some(left)) = (self.peer, self.owed.checked_sub(1)) else { return Output::Idle(None) };
        self.owed = left;
        out.copy(b"x");
        Output::Send(peer)
    }

    fn admits(&mut self, _now: Instant, _ends: &hodo_machine::Ends, bytes: &[u8], out: &mut Outbox) -> bool {
        if self.vice == Vice::Amplifies {
            out.copy(bytes);
            out.copy(b"and more");
        }
        false
    }
}

fn is_caught(vice: Vice) -> bool {
    // One peer connects, and sends 250 bytes for 16 times.
    let message: Vec<u8> = [&[1, 250][..], &[7; 250]].concat();
    let script: Vec<u8> = [&[0, 0][..], &message.repeat(16)].concat();
    let sinner = Sinner { vice, kept: Vec::new(), all: Vec::new(), owed: 0, peer: None };
    catch_unwind(move || drive(sinner, &script, true, |_| None)).is_err()
}

#[test]
fn memory_work_and_amplification_have_bounds() {
    hodo_fuzz::cost::measure_by(counting::bytes_here);
    assert!(!is_caught(Vice::None));
    for vice in [Vice::Hoards, Vice::Welcomes, Vice::Chatters, Vice::Copies, Vice::Amplifies] {
        assert!(is_caught(vice), "{vice:?}");
    }
}
