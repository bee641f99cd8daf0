//! The harness notices a machine that costs too much, or lets others wait.

use crate::counting;
use crate::sinner;

use hodo_fuzz::{Accepts, drive};
use hodo_machine::Transport;
use sinner::{Sinner, Vice};
use std::panic::catch_unwind;

/// Returns the complaint about a machine with this vice, if there is one.
fn complaint(transport: Transport, vice: Vice) -> Option<String> {
    // One peer connects, and sends 250 bytes for 16 times.
    let message: Vec<u8> = [&[1, 250][..], &[1; 250]].concat();
    let script: Vec<u8> = [&[0, 0][..], &message.repeat(16)].concat();
    let accepts = Accepts::new(transport, vec![1], 1);
    let cause = catch_unwind(move || drive(Sinner::new(vice), &script, Some(&accepts), |_| None)).err()?;
    cause.downcast_ref::<String>().cloned()
}

#[test]
fn memory_work_amplification_and_waiting_have_bounds() {
    hodo_sim::cost::measure_by(counting::bytes_here);
    assert_eq!(complaint(Transport::Stream, Vice::None), None);
    for (transport, vice, what) in [
        (Transport::Stream, Vice::Hoards, "bytes of memory"),
        (Transport::Stream, Vice::Welcomes, "bytes of memory"),
        (Transport::Stream, Vice::Chatters, "outputs"),
        (Transport::Stream, Vice::Copies, "bytes allocated in all"),
        (Transport::Datagram, Vice::Amplifies, "a stranger sent 250 bytes and gets 258"),
        (Transport::Datagram, Vice::Trusts, "bytes to a stranger"),
        (Transport::Stream, Vice::Starves, "a newcomer that keeps the rules is not answered"),
    ] {
        let text = complaint(transport, vice).unwrap_or_default();
        assert!(text.contains(what), "{vice:?}: {text}");
    }
}
