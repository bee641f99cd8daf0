//! In steady state a session, its driver and the device allocate nothing per access.
#[path = "../../../../crates/measure/tests/counting/mod.rs"]
mod counting;

mod board;

use board::Board;
use counting::allocations_so_far;
use hodo_ipbus::device::Registers;
use hodo_ipbus::wire::Version;
use hodo_ipbus_host::{Access, Files, Session, SessionError, SessionSettings, table};
use hodo_machine::Transport;
use std::sync::Arc;

const ROUNDS: usize = 200;
/// A queue that has not met its longest yet grows now and then.
const HANDFUL: u64 = 16;

/// Words by address, by name and by bits, each by itself and a hundred in one dispatch; and a block into a place that is
/// used again.
fn round(session: &mut Session, block: &mut Vec<u32>) -> Result<(), SessionError> {
    for _ in 0..10 {
        session.call(Access::write(0x1000, 5))?;
        session.call(Access::rmw_sum(0x1000, 2))?;
        assert_eq!(session.call(Access::read(0x1000))?, 7);
        session.call(Access::write("control.mode", 0xA))?;
        assert_eq!(session.call(Access::read("control.mode"))?, 0xA);
    }
    for word in 0..100 {
        session.queue(Access::write(0x2000 + word, word))?;
    }
    session.dispatch()?;
    *block = session.call(Access::read_block(0x2000, 1000).into(std::mem::take(block)))?;
    assert_eq!(block[..100].iter().sum::<u32>(), 4950);
    Ok(())
}

/// Counts the allocations in a single test, because the counter counts everything in this process.
#[test]
fn more_accesses_need_no_more_allocations() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/board.xml");
    let table = Arc::new(table::Table::read(file, &Files, &table::Limits::default()).expect("a good table"));
    for transport in [Transport::Datagram, Transport::Stream] {
        for version in [Version::V2_0, Version::V1_3] {
            let board = Board::start(transport, version, Registers::new([]).expect("there is none"));
            let settings = SessionSettings::default();
            let mut session = Session::open(&board.uri(), &settings).expect("a session").with_table(Arc::clone(&table));
            let mut block = Vec::new();
            let mut rounds = |count: usize| {
                let before = allocations_so_far();
                (0..count).for_each(|_| round(&mut session, &mut block).unwrap_or_else(|why| panic!("{why}")));
                allocations_so_far() - before
            };
            let first = rounds(ROUNDS / 10);
            let found = rounds(ROUNDS);
            assert!(found <= HANDFUL, "{transport:?} {version}: {found} in {ROUNDS} rounds, after {first} at first");
        }
    }
}
