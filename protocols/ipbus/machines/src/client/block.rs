use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;

/// Words to be written, which any number of operations may share without a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    words: Arc<[u32]>,
    length: usize,
}

impl Block {
    /// Returns the first `words` words, or all of them if there are fewer.
    #[must_use]
    pub fn first(&self, words: usize) -> Block {
        Block { words: Arc::clone(&self.words), length: words.min(self.length) }
    }
}

impl From<Arc<[u32]>> for Block {
    fn from(words: Arc<[u32]>) -> Block {
        Block { length: words.len(), words }
    }
}

impl From<Vec<u32>> for Block {
    fn from(words: Vec<u32>) -> Block {
        Arc::<[u32]>::from(words).into()
    }
}

impl FromIterator<u32> for Block {
    fn from_iter<I: IntoIterator<Item = u32>>(words: I) -> Block {
        words.into_iter().collect::<Arc<[u32]>>().into()
    }
}

impl Deref for Block {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.words[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_part_shares_the_words_of_the_whole() {
        let whole = Block::from(vec![1, 2, 3]);
        assert_eq!(whole.first(2)[..], [1, 2]);
        assert_eq!(whole.first(2).first(9)[..], [1, 2]);
        assert_eq!(whole.first(0).len(), 0);
        assert_eq!((1..4).collect::<Block>(), whole);
    }
}
