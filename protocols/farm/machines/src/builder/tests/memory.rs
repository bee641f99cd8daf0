//! Memory that sources make a builder retain: it is charged to them, and whoever has most of too much goes.

use super::*;
use crate::wire::{SEGMENT, Segment};
use hodo_machine::Allowance;

const MIB: usize = 1 << 20;

/// Creates a builder of ten sources that may retain 8 MiB.
fn small(datagrams: bool) -> Rig<Builder> {
    let ten = BuilderConfig { sources: 10, fragment_max: 2 << 20, pool_bytes: 20 << 20, ..config() };
    builder(BuilderConfig { allowance: Allowance::of_bytes(8 << 20), datagrams, ..ten })
}

fn charged(rig: &Rig<Builder>) -> u64 {
    rig.machine.charges().expect("it charges").bytes()
}

#[test]
fn fragments_that_do_not_end_are_charged_and_whole_ones_stay() {
    let mut rig = small(false);
    let peers: Vec<Peer> = (0..10).map(|number| source_at(&mut rig, number, number)).collect();
    for peer in &peers {
        rig.say(*peer, &event(0, b"whole"));
        rig.say(*peer, &message(Kind::Event, 1, &[7; 2 * MIB])[..2 * MIB - 1000]);
        assert!(charged(&rig) <= 8 << 20, "{} bytes", charged(&rig));
    }
    assert_eq!(rig.closed.len(), 7, "there is room for three");
    let counters = rig.machine.counters();
    assert_eq!((counters.closed_for_memory, counters.misbehaved), (7, 0));
    assert!(errors(&mut rig).iter().all(|error| matches!(error, Error::TooMuchMemory(_))));
    assert!(matches!(built(&mut rig)[..], [(Kind::Event, 0, _)]), "it has all its fragments");
}

#[test]
fn fragments_whose_segments_do_not_come_are_charged() {
    let mut rig = small(true);
    for number in 0..10 {
        let peer = source_at(&mut rig, number, number);
        let segment =
            Segment { event: 1, run: 1, source: number, kind: Kind::Event, offset: 0, total: 2 << 20, length: 10 };
        let head: [u8; SEGMENT] = segment.encode();
        rig.say(peer, &[&head[..], &[7; 10]].concat());
        assert!(charged(&rig) <= 8 << 20, "{} bytes", charged(&rig));
    }
    assert!(rig.machine.counters().closed_for_memory >= 6);
}
