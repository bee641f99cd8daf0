//! The names that are searched for, by the application's numbers.
//!
//! On the wire a name's number has a generation in front, so that an answer which comes late does not find the next name with the number.

use crate::wire::discovery::Guid;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The bits of a number of the application; the rest of a number on the wire is its generation.
const NUMBER_BITS: u32 = 22;
/// The numbers that there are.
pub(crate) const NUMBERS: u32 = 1 << NUMBER_BITS;

/// The names by number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<Name>,
    /// Names that are being searched for.
    pub(crate) searching: usize,
}

#[derive(Debug, Default)]
struct Name {
    generation: u32,
    pub(crate) state: State,
}

/// The state of a number.
#[derive(Debug, Default)]
pub(crate) enum State {
    /// No name has it.
    #[default]
    Free,
    /// The name is searched for.
    Searching(Searching),
    /// The name was found, at this server.
    Found {
        /// Identity of the server.
        guid: Guid,
        /// Whether it was reported that another server has the name, too.
        is_warned: bool,
    },
}

/// A name that is searched for.
#[derive(Debug)]
pub(crate) struct Searching {
    pub(crate) name: Box<str>,
    /// How many times it was asked for; 255 stands for more.
    pub(crate) attempts: u8,
    /// Whether the search goes on after the first answer.
    pub(crate) all: bool,
}

impl Names {
    /// Begins to search for a name; returns its number on the wire, or `None` for a number that there is not.
    pub(crate) fn search(&mut self, number: u32, name: &str, all: bool) -> Option<u32> {
        if number >= NUMBERS {
            return None;
        }
        self.cancel(number);
        let index = number as usize;
        if self.names.len() <= index {
            self.names.resize_with(index + 1, Name::default);
        }
        let known = &mut self.names[index];
        known.generation = known.generation.wrapping_add(1) % (1 << (32 - NUMBER_BITS));
        known.state = State::Searching(Searching { name: name.into(), attempts: 0, all });
        self.searching += 1;
        Some(number | known.generation << NUMBER_BITS)
    }

    /// Frees a number.
    pub(crate) fn cancel(&mut self, number: u32) {
        if let Some(known) = self.names.get_mut(number as usize) {
            let state = core::mem::take(&mut known.state);
            self.searching -= usize::from(matches!(state, State::Searching(_)));
        }
    }

    /// Returns the application's number and the state of a number on the wire, unless the number has been given to another name.
    pub(crate) fn at(&mut self, cid: u32) -> Option<(u32, &mut State)> {
        let number = cid % NUMBERS;
        let known = self.names.get_mut(number as usize)?;
        (known.generation == cid >> NUMBER_BITS).then_some((number, &mut known.state))
    }

    /// Returns the name of a number on the wire that is being searched for.
    pub(crate) fn searching(&mut self, cid: u32) -> Option<&mut Searching> {
        match self.at(cid)?.1 {
            State::Searching(searching) => Some(searching),
            _ => None,
        }
    }

    /// Notes where a name was found, which is not searched for any more.
    pub(crate) fn found(&mut self, number: u32, guid: Guid) {
        self.cancel(number);
        if let Some(known) = self.names.get_mut(number as usize) {
            known.state = State::Found { guid, is_warned: false };
        }
    }

    /// Iterates over the numbers on the wire of the names that are being searched for.
    pub(crate) fn all_searching(&self) -> impl Iterator<Item = u32> {
        let is_it = |(number, name): (u32, &Name)| {
            matches!(name.state, State::Searching(_)).then_some(number | name.generation << NUMBER_BITS)
        };
        (0..).zip(&self.names).filter_map(is_it)
    }
}
