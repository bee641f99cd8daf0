use crate::Peer;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A table with one value for each peer that is there, opened or accepted, found by the peer's number.
#[derive(Debug)]
pub struct Peers<T> {
    opened: Vec<Option<Box<T>>>,
    accepted: Vec<Option<Box<T>>>,
    count: usize,
}

impl<T> Default for Peers<T> {
    fn default() -> Self {
        Peers { opened: Vec::new(), accepted: Vec::new(), count: 0 }
    }
}

impl<T> Peers<T> {
    /// Returns how many peers are there.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Tells whether no peer is there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the value of a peer, if it is there.
    #[must_use]
    #[inline]
    pub fn get(&self, peer: Peer) -> Option<&T> {
        let list = if peer.is_accepted() { &self.accepted } else { &self.opened };
        list.get(peer.index())?.as_deref()
    }

    /// Returns the value of a peer to be changed, if it is there.
    #[inline]
    pub fn at(&mut self, peer: Peer) -> Option<&mut T> {
        self.list(peer).get_mut(peer.index())?.as_deref_mut()
    }

    /// Adds a peer, and returns the value that it had before.
    pub fn insert(&mut self, peer: Peer, value: T) -> Option<Box<T>> {
        let (list, index) = (self.list(peer), peer.index());
        if list.len() <= index {
            list.resize_with(index + 1, || None);
        }
        let before = list[index].replace(Box::new(value));
        self.count += usize::from(before.is_none());
        before
    }

    /// Removes a peer, and returns its value.
    pub fn remove(&mut self, peer: Peer) -> Option<Box<T>> {
        let value = self.list(peer).get_mut(peer.index())?.take()?;
        self.count -= 1;
        Some(value)
    }

    /// Iterates over the peers that are there by number, those that were opened first.
    pub fn iter(&self) -> impl Iterator<Item = (Peer, &T)> {
        let opened = (0..).zip(&self.opened);
        let accepted = (Peer::FIRST_ACCEPTED..).zip(&self.accepted);
        opened.chain(accepted).filter_map(|(number, value)| Some((Peer(number), value.as_deref()?)))
    }

    /// Iterates over the peers that are there by number, those that were opened first, with values to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Peer, &mut T)> {
        let opened = (0..).zip(&mut self.opened);
        let accepted = (Peer::FIRST_ACCEPTED..).zip(&mut self.accepted);
        opened.chain(accepted).filter_map(|(number, value)| Some((Peer(number), value.as_deref_mut()?)))
    }

    fn list(&mut self, peer: Peer) -> &mut Vec<Option<Box<T>>> {
        if peer.is_accepted() { &mut self.accepted } else { &mut self.opened }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opened_and_accepted_peers_are_in_one_table() {
        let mut peers = Peers::default();
        let (opened, accepted) = (Peer(3), Peer(Peer::FIRST_ACCEPTED + 3));
        assert_eq!(peers.insert(opened, 'o'), None);
        assert_eq!(peers.insert(accepted, 'a'), None);
        assert_eq!(peers.insert(accepted, 'b').as_deref(), Some(&'a'));
        assert_eq!((peers.len(), peers.get(Peer(2)), peers.get(opened)), (2, None, Some(&'o')));
        peers.iter_mut().for_each(|(_, value)| value.make_ascii_uppercase());
        assert_eq!(peers.iter().collect::<Vec<_>>(), [(opened, &'O'), (accepted, &'B')]);
        assert_eq!(peers.remove(opened).as_deref(), Some(&'O'));
        assert_eq!((peers.remove(opened), peers.remove(Peer(9)), peers.len()), (None, None, 1));
    }
}
