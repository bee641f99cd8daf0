use crate::server::operation::Operation;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The least number of places.
const PLACES_MIN: usize = 8;

/// The operations of a client by the numbers that it has chosen.
///
/// Clients count them up, so that the last bits of a number are its place in a table at most half full. Numbers that meet there, which only a
/// client that wants to sets up, are found in a tree.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// A power of two of places, or none.
    table: Vec<Option<Box<(u32, Operation)>>>,
    others: BTreeMap<u32, Operation>,
    count: usize,
}

impl Operations {
    #[inline]
    fn place(&self, ioid: u32) -> usize {
        ioid as usize & self.table.len().wrapping_sub(1)
    }

    #[inline]
    pub(crate) fn get(&self, ioid: u32) -> Option<&Operation> {
        match self.table.get(self.place(ioid)) {
            Some(Some(known)) if known.0 == ioid => Some(&known.1),
            _ => self.others.get(&ioid),
        }
    }

    #[inline]
    pub(crate) fn at(&mut self, ioid: u32) -> Option<&mut Operation> {
        let place = self.place(ioid);
        match self.table.get_mut(place) {
            Some(Some(known)) if known.0 == ioid => Some(&mut known.1),
            _ => self.others.get_mut(&ioid),
        }
    }

    /// Adds an operation whose number no other one has.
    pub(crate) fn insert(&mut self, ioid: u32, operation: Operation) {
        self.count += 1;
        if 2 * self.count > self.table.len() {
            self.grow();
        }
        let place = self.place(ioid);
        match &mut self.table[place] {
            free @ None => *free = Some(Box::new((ioid, operation))),
            Some(_) => _ = self.others.insert(ioid, operation),
        }
    }

    /// Doubles the places; operations that met before may find places of their own.
    fn grow(&mut self) {
        let places = (2 * self.table.len()).max(PLACES_MIN);
        let mut table = Vec::new();
        table.resize_with(places, || None);
        let old = core::mem::replace(&mut self.table, table);
        for known in old.into_iter().flatten() {
            let place = self.place(known.0);
            // Those that had different places still have.
            self.table[place] = Some(known);
        }
        for (ioid, operation) in core::mem::take(&mut self.others) {
            let place = self.place(ioid);
            match &mut self.table[place] {
                free @ None => *free = Some(Box::new((ioid, operation))),
                Some(_) => _ = self.others.insert(ioid, operation),
            }
        }
    }

    pub(crate) fn remove(&mut self, ioid: u32) -> Option<Operation> {
        let place = self.place(ioid);
        let found = match self.table.get_mut(place) {
            Some(known) if known.as_ref().is_some_and(|known| known.0 == ioid) => known.take().map(|known| known.1),
            _ => self.others.remove(&ioid),
        };
        self.count -= usize::from(found.is_some());
        found
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Iterates over the operations with their numbers, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Operation)> {
        let at_places = self.table.iter().flatten().map(|known| (known.0, &known.1));
        at_places.chain(self.others.iter().map(|(ioid, operation)| (*ioid, operation)))
    }

    /// Takes all operations out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, Operation)> + use<> {
        let all = core::mem::take(self);
        all.table.into_iter().flatten().map(|known| *known).chain(all.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Random;

    #[test]
    fn operations_are_found_whatever_numbers_a_client_chooses() {
        let mut random = Random::new(4);
        for shift in [0, 12, 20] {
            let mut operations = Operations::default();
            let mut known: BTreeMap<u32, u32> = BTreeMap::new();
            for round in 0..4000_u32 {
                let ioid = 0x1000_2000_u32.wrapping_add((random.below(500) as u32) << shift);
                let is_known = known.contains_key(&ioid);
                if is_known && random.chance(0.7) {
                    assert_eq!(operations.remove(ioid).map(|operation| operation.sid), known.remove(&ioid));
                } else if !is_known {
                    operations.insert(ioid, Operation::sample(round));
                    known.insert(ioid, round);
                }
                assert_eq!(operations.get(ioid).map(|operation| operation.sid), known.get(&ioid).copied());
                assert_eq!(operations.at(ioid).map(|operation| operation.sid), known.get(&ioid).copied());
            }
            assert_eq!(operations.len(), known.len());
            let all: BTreeMap<u32, u32> = operations.iter().map(|(ioid, operation)| (ioid, operation.sid)).collect();
            assert_eq!(all, known);
            assert_eq!((operations.drain().count(), operations.len()), (known.len(), 0));
            assert!(operations.remove(7).is_none() && operations.get(7).is_none());
        }
    }
}
