//! The memory that an adapter retains for hosts is charged to them.

use crate::bare;

use bare::{Bare, CAPACITY, THEIRS, flow, packet};
use hodo_machine::{Address, Closed, Ends, Input, Machine, Outbox, Peer};
use hodo_roce::wire::{BaseHeader, Extended, Opcode};

#[test]
fn queue_pairs_are_charged_to_the_host_that_they_are_connected_to() {
    let mut bare = Bare::new();
    let charges = |bare: &Bare| bare.adapter.charges().expect("it charges").bytes();
    let (one, each) = (charges(&bare), CAPACITY.bytes(bare::connection().reads_served));
    assert_eq!(one, each);
    let far = |host| hodo_roce::Connection { address: Address::Node(host), ..bare::connection() };
    let numbers = [1, 2, 2].map(|host| {
        let number = bare.adapter.create(&CAPACITY).unwrap();
        bare.adapter.connect(number, &far(host)).unwrap();
        number
    });
    let of = |bare: &Bare, host| bare.adapter.charges().expect("it charges").of(Peer(host));
    assert_eq!([of(&bare, 0), of(&bare, 1), charges(&bare)], [2, 2, 4].map(|count| count * each));
    bare.adapter.destroy(numbers[1]);
    assert_eq!((of(&bare, 1), charges(&bare)), (each, 3 * each));
    bare.adapter.destroy(numbers[2]);
    bare.adapter.destroy(numbers[0]);
    bare.adapter.destroy(bare.number);
    assert_eq!(charges(&bare), 0);
}

#[test]
fn sources_are_charged_while_they_are_known() {
    let mut bare = Bare::new();
    let before = bare.adapter.charges().expect("it charges").bytes();
    let base = BaseHeader { asks_ack: true, ..BaseHeader::new(Opcode::SendOnly, bare.number, THEIRS) };
    let datagram = packet(flow(1, 0), &base, &Extended::None, b"abcd");
    assert!(bare.adapter.admits(bare.now, &Ends::nodes(0, 1), &datagram, &mut Outbox::new()));
    let source = Peer::accepted(0);
    bare.adapter.handle(bare.now, Input::Opened(source, &Ends::nodes(0, 1)));
    assert!(bare.adapter.charges().expect("it charges").of(source) > 256);
    bare.adapter.handle(bare.now, Input::Closed(source, Closed::Reset));
    assert_eq!(bare.adapter.charges().expect("it charges").bytes(), before);
    bare.adapter.handle(bare.now, Input::Opened(source, &Ends::nodes(0, 1)));
    bare.adapter.destroy(bare.number);
    assert_eq!(bare.adapter.charges().expect("it charges").bytes(), 0, "its host is gone");
}
