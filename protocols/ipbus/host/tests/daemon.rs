//! The example of a hub that a program runs.

use crate::board;
#[allow(dead_code)]
#[path = "../examples/hub.rs"]
mod hub;

use board::Board;
use hodo_ipbus::device::Registers;
use hodo_ipbus::wire::Version;
use hodo_machine::Transport;

#[test]
fn a_program_runs_a_hub() {
    let board = Board::start(Transport::Datagram, Version::V2_0, Registers::default());
    let uri = board.uri().to_string();
    let at = uri.rsplit('/').next().expect("it has an address");
    assert_eq!(hub::read_through_hub(at, 0).expect("the board answers through the hub"), 0);
}
