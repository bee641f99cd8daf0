use crate::wire::{Order, WORD, Words};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Words of a page: 10 bits of an address.
const PAGE: usize = 1 << 10;
/// Pages of a table: the next 11 bits.
const TABLE: usize = 1 << 11;
/// Tables of the whole space: the other 11 bits.
const TABLES: usize = 1 << 11;

type Page = [u32; PAGE];
type Table = [Option<Box<Page>>; TABLE];

/// Words at any 32-bit address: all 0 until they are written, and only what was written takes memory, page by page.
#[derive(Debug)]
pub(crate) struct Memory {
    tables: Vec<Option<Box<Table>>>,
    bytes: usize,
    bytes_max: usize,
}

impl Memory {
    /// Creates memory that grows to this many bytes at most.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Memory { tables: empty(), bytes: 0, bytes_max }
    }

    /// Makes all words 0 again.
    pub(crate) fn clear(&mut self) {
        self.tables = empty();
        self.bytes = 0;
    }

    /// Appends words from successive addresses to a packet, going round at the end of the space.
    #[inline]
    pub(crate) fn read(&self, address: u32, words: usize, order: Order, out: &mut Vec<u8>) {
        let mut done = 0;
        while done < words {
            let at = address.wrapping_add(done as u32);
            let here = (words - done).min(PAGE - offset(at));
            match self.page(at) {
                Some(page) => order.append(&page[offset(at)..offset(at) + here], out),
                None => out.resize(out.len() + here * WORD, 0),
            }
            done += here;
        }
    }

    /// Writes words to successive addresses, going round; answers how many there was memory for.
    #[inline]
    pub(crate) fn write(&mut self, address: u32, words: Words<'_>) -> usize {
        let mut done = 0;
        while done < words.len() {
            let at = address.wrapping_add(done as u32);
            let Some(page) = self.page_mut(at) else { break };
            let rest = &words.bytes()[done * WORD..];
            done += words.order().read(rest, &mut page[offset(at)..]);
        }
        done
    }

    /// Returns the word at an address.
    #[inline]
    pub(crate) fn word(&self, address: u32) -> u32 {
        self.page(address).map_or(0, |page| page[offset(address)])
    }

    /// Changes one word; answers whether there was memory for it.
    #[inline]
    pub(crate) fn set(&mut self, address: u32, word: u32) -> bool {
        let page = self.page_mut(address);
        page.map(|page| page[offset(address)] = word).is_some()
    }

    /// Takes so many bytes of the bound for something else; answers whether they are left.
    pub(crate) fn reserve(&mut self, bytes: usize) -> bool {
        let fits = self.bytes_max - self.bytes >= bytes;
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Gives bytes back that were reserved.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    #[inline]
    fn page(&self, address: u32) -> Option<&Page> {
        let (table, page) = place(address);
        self.tables[table].as_ref()?[page].as_deref()
    }

    #[inline]
    fn page_mut(&mut self, address: u32) -> Option<&mut Page> {
        let (table, page) = place(address);
        let (bytes, bytes_max) = (&mut self.bytes, self.bytes_max);
        let table = grown(&mut self.tables[table], bytes, bytes_max, || Box::new([const { None }; TABLE]))?;
        grown(&mut table[page], bytes, bytes_max, || Box::new([0; PAGE])).map(Box::as_mut)
    }
}

fn empty() -> Vec<Option<Box<Table>>> {
    core::iter::repeat_with(|| None).take(TABLES).collect()
}

/// Returns the entry that is there, or a new one if the bound allows it.
#[inline]
fn grown<'a, T>(
    slot: &'a mut Option<Box<T>>,
    bytes: &mut usize,
    bytes_max: usize,
    new: impl FnOnce() -> Box<T>,
) -> Option<&'a mut Box<T>> {
    if slot.is_none() {
        if *bytes + size_of::<T>() > bytes_max {
            return None;
        }
        *bytes += size_of::<T>();
        *slot = Some(new());
    }
    slot.as_mut()
}

/// Returns the table and the page of an address.
const fn place(address: u32) -> (usize, usize) {
    let page = address as usize / PAGE;
    (page / TABLE, page % TABLE)
}

const fn offset(address: u32) -> usize {
    address as usize % PAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    const ONE: usize = size_of::<Table>() + size_of::<Page>();

    #[test]
    fn only_what_is_written_takes_memory() {
        let mut memory = Memory::new(ONE);
        let mut out = Vec::new();
        memory.read(0xFFFF_FF00, 1000, Order::Big, &mut out);
        assert_eq!((out.len(), memory.bytes), (4000, 0));
        assert!(memory.set(5, 7) && memory.set(1023, 9));
        assert_eq!(memory.bytes, ONE);
        assert!(!memory.set(1024, 1), "there is no memory for a second page");
        assert_eq!((memory.word(5), memory.word(1023), memory.word(1024)), (7, 9, 0));
        memory.clear();
        assert_eq!((memory.word(5), memory.bytes), (0, 0));
        assert!(memory.set(0x8000_0000, 1));
    }

    #[test]
    fn a_block_that_does_not_fit_is_written_as_far_as_there_is_memory() {
        let mut memory = Memory::new(ONE);
        let bytes = [1; 40];
        assert_eq!(memory.write(1020, Words::new(&bytes, Order::Big)), 4);
        assert_eq!((memory.word(1023), memory.word(1024)), (0x0101_0101, 0));
    }

    /// Compares with a map of words, over the edges of pages, tables and the whole space.
    #[test]
    fn blocks_of_either_order_are_the_words_that_were_written() {
        let mut random = hodo_machine::Random::new(1);
        let mut memory = Memory::new(64 << 20);
        let mut truth: BTreeMap<u32, u32> = BTreeMap::new();
        for round in 0..2_000 {
            let edge: u32 = [0, 1 << 10, 1 << 21, 0xFFFF_FE00][random.below(4) as usize];
            let address = edge.wrapping_add(random.below(2048) as u32).wrapping_sub(700);
            let count = random.below(1500) as usize;
            let order = Order::BOTH[round % 2];
            let mut bytes = Vec::new();
            let words: Vec<u32> = (0..count).map(|_| random.bits() as u32).collect();
            order.append(&words, &mut bytes);
            assert_eq!(memory.write(address, Words::new(&bytes, order)), count);
            truth.extend((0..).zip(&words).map(|(index, word)| (address.wrapping_add(index), *word)));
            let from = address.wrapping_sub(random.below(300) as u32);
            let mut out = Vec::new();
            memory.read(from, count, order, &mut out);
            let expected = (0..count as u32).map(|index| truth.get(&from.wrapping_add(index)).copied().unwrap_or(0));
            assert!(Words::new(&out, order).iter().eq(expected), "{count} words at {address:08X}");
        }
    }
}
