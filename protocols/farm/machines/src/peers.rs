use alloc::boxed::Box;
use alloc::vec::Vec;
use hodo_machine::Peer;

/// Something for each peer, found by its number.
#[derive(Debug)]
pub(crate) struct Peers<T> {
    opened: Vec<Option<Box<T>>>,
    accepted: Vec<Option<Box<T>>>,
}

impl<T> Default for Peers<T> {
    fn default() -> Self {
        Peers { opened: Vec::new(), accepted: Vec::new() }
    }
}

impl<T> Peers<T> {
    fn list(&mut self, peer: Peer) -> (&mut Vec<Option<Box<T>>>, usize) {
        let index = (peer.0 & !Peer::FIRST_ACCEPTED) as usize;
        if peer.is_accepted() { (&mut self.accepted, index) } else { (&mut self.opened, index) }
    }

    #[inline]
    pub(crate) fn at(&mut self, peer: Peer) -> Option<&mut T> {
        let (list, index) = self.list(peer);
        list.get_mut(index)?.as_deref_mut()
    }

    pub(crate) fn get(&self, peer: Peer) -> Option<&T> {
        let index = (peer.0 & !Peer::FIRST_ACCEPTED) as usize;
        let list = if peer.is_accepted() { &self.accepted } else { &self.opened };
        list.get(index)?.as_deref()
    }

    pub(crate) fn insert(&mut self, peer: Peer, value: T) {
        let (list, index) = self.list(peer);
        if list.len() <= index {
            list.resize_with(index + 1, || None);
        }
        list[index] = Some(Box::new(value));
    }

    pub(crate) fn remove(&mut self, peer: Peer) -> Option<Box<T>> {
        let (list, index) = self.list(peer);
        list.get_mut(index)?.take()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Peer, &mut T)> {
        let opened = (0..).zip(&mut self.opened);
        let accepted = (Peer::FIRST_ACCEPTED..).zip(&mut self.accepted);
        opened.chain(accepted).filter_map(|(number, value)| Some((Peer(number), value.as_deref_mut()?)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Peer, &T)> {
        let opened = (0..).zip(&self.opened);
        let accepted = (Peer::FIRST_ACCEPTED..).zip(&self.accepted);
        opened.chain(accepted).filter_map(|(number, value)| Some((Peer(number), value.as_deref()?)))
    }
}
