//! The earliest of many times: a tournament, in which a change costs the height of the tree at the most.
use alloc::vec;
use alloc::vec::Vec;

use super::port::NEVER;

/// The earliest time of each of `n` players, and who has it.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The winner of each pair at `tree[1]` and below, the players behind.
    tree: Vec<u64>,
    players: usize,
    /// Players whose times have changed since.
    changed: Vec<u32>,
}

impl Schedule {
    pub(super) fn new(players: usize) -> Self {
        let players = players.next_power_of_two();
        Schedule { tree: vec![NEVER; 2 * players], players, changed: Vec::with_capacity(64) }
    }

    /// Returns for how many players there is room.
    pub(super) fn players(&self) -> usize {
        self.players
    }

    /// Takes note that the time of a player has changed.
    pub(super) fn touch(&mut self, player: usize) {
        self.changed.push(player as u32);
    }

    pub(super) fn changed(&mut self) -> Option<usize> {
        self.changed.pop().map(|player| player as usize)
    }

    pub(super) fn set(&mut self, player: usize, key: u64) {
        let mut at = self.players + player;
        if self.tree[at] == key {
            return;
        }
        self.tree[at] = key;
        while at > 1 {
            at /= 2;
            let winner = self.tree[2 * at].min(self.tree[2 * at + 1]);
            if self.tree[at] == winner {
                return;
            }
            self.tree[at] = winner;
        }
    }

    /// Returns the earliest time and the first of those who have it.
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        let key = *self.tree.get(1)?;
        if key == NEVER {
            return None;
        }
        let mut at = 1;
        while at < self.players {
            at *= 2;
            at += usize::from(self.tree[at] != key);
        }
        Some((key, at - self.players))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_earliest_wins() {
        let mut schedule = Schedule::new(5);
        assert_eq!(schedule.first(), None);
        for (player, key) in [(4, 7), (2, 9), (3, 7)] {
            schedule.set(player, key);
        }
        assert_eq!(schedule.first(), Some((7, 3)));
        schedule.set(3, 8);
        assert_eq!(schedule.first(), Some((7, 4)));
        schedule.set(4, NEVER);
        assert_eq!(schedule.first(), Some((8, 3)));
    }
}
