//! A server keeps as many operations as its clients have, in whatever order they come and go.

use crate::rig;

use hodo_machine::Random;
use hodo_pva::client::{Command, Kind};
use rig::Served;
use std::collections::BTreeMap;

#[test]
fn operations_come_and_go_with_their_channels_and_the_others_stay() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let mut rig = Served::pair();
        // The channel of each operation.
        let mut known: BTreeMap<u32, u32> = BTreeMap::new();
        let mut open: Vec<bool> = vec![false; 4];
        for _ in 0..500 {
            let (channel, operation) = (random.below(4) as u32, random.below(40) as u32);
            match random.below(10) {
                0 if open[channel as usize] => {
                    rig.command(Command::Close { channel });
                    known.retain(|_, of| *of != channel);
                    open[channel as usize] = false;
                }
                1..=3 => {
                    rig.command(Command::Finish { operation });
                    known.remove(&operation);
                }
                _ if open[channel as usize] && !known.contains_key(&operation) => {
                    let kind = if random.chance(0.5) { Kind::Monitor } else { Kind::Get };
                    rig.prepare(operation, channel, kind, "");
                    rig.command(Command::Execute { operation });
                    known.insert(operation, channel);
                }
                _ if !open[channel as usize] => {
                    rig.open(channel, "box", 1);
                    open[channel as usize] = true;
                }
                _ => {}
            }
            rig.told();
            let client = rig.far[0].0.clients().next();
            assert_eq!(client.map_or(0, |client| client.operations), known.len(), "seed {seed}");
        }
        rig.post("box", 7.0);
        for operation in known.keys() {
            let updates = rig.updates(*operation);
            assert!(
                updates.is_empty() || updates.last() == Some(&(7.0, false)) || updates.last() == Some(&(7.0, true))
            );
        }
        rig.cut(1);
        assert_eq!(rig.far[0].0.clients().count(), 0);
        rig.post("box", 8.0);
    }
}
