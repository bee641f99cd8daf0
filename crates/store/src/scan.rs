//! Reads a file block by block, and checks every checksum.

use crate::block::{FILE_HEADER, FileKind, HEADER, Header, HeaderFault, decode_file_header};
use crate::files::OpenFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read at any place.
#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
pub trait Source {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// As the system says.
    fn len(&self) -> io::Result<u64>;
    /// Reads some bytes; none at the end.
    ///
    /// # Errors
    /// As the system says.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Source for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
}

impl Source for Box<dyn OpenFile> {
    fn len(&self) -> io::Result<u64> {
        (**self).len()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(into, offset)
    }
}

impl Source for &[u8] {
    fn len(&self) -> io::Result<u64> {
        Ok((**self).len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// The next piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A block that is as it was written; [`Scan::data`] are its data.
    Block { header: Header, offset: u64 },
    /// Bytes that are not as they were written, with good blocks behind them.
    Damage { offset: u64, bytes: u64 },
    /// Bytes at the end that are no block: what a crash leaves, or damage at the end.
    Torn { offset: u64, bytes: u64 },
}

/// The number of bytes that are read at once.
const WINDOW: usize = 1 << 20;

/// A pass through a file.
#[derive(Debug)]
pub struct Scan<S> {
    source: S,
    segment: u64,
    length: u64,
    offset: u64,
    window: Vec<u8>,
    window_start: u64,
    /// The place of the found block's data in the window.
    data: std::ops::Range<usize>,
}

impl<S: Source> Scan<S> {
    /// Begins behind the file header.
    pub fn new(source: S, segment: u64) -> io::Result<Self> {
        let length = source.len()?;
        let offset = FILE_HEADER as u64;
        Ok(Scan { source, segment, length, offset, window: Vec::new(), window_start: 0, data: 0..0 })
    }

    /// Decodes the file's header; `None` if the file is shorter.
    pub fn file_header(&mut self, kind: FileKind) -> io::Result<Option<Result<u64, HeaderFault>>> {
        let bytes = self.view(0, FILE_HEADER)?;
        Ok(bytes.map(|bytes| decode_file_header(kind, bytes.try_into().expect("as many as asked for"))))
    }

    /// Sets the segment's number, if it was not known before.
    pub fn set_segment(&mut self, segment: u64) {
        self.segment = segment;
    }

    /// Returns the file's length when the scan began.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the data of the block that [`Scan::next`] found last.
    pub fn data(&self) -> &[u8] {
        &self.window[self.data.clone()]
    }

    /// Goes to this place.
    pub fn seek(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Returns the next piece; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Step>> {
        let offset = self.offset;
        if offset >= self.length {
            return Ok(None);
        }
        if let Some(header) = self.block_at(offset)? {
            self.offset = offset + header.block_length();
            return Ok(Some(Step::Block { header, offset }));
        }
        // A header that is right tells where the next block is, so that nothing inside the data is taken for one.
        let first = self.header_at(offset)?.map_or(offset + 8, |header| offset + header.block_length());
        let found = self.search(first.next_multiple_of(8))?;
        self.offset = found.unwrap_or(self.length);
        let bytes = self.offset - offset;
        Ok(Some(if found.is_some() { Step::Damage { offset, bytes } } else { Step::Torn { offset, bytes } }))
    }

    /// Finds the first block from this place on.
    fn search(&mut self, mut offset: u64) -> io::Result<Option<u64>> {
        while offset < self.length {
            match self.header_at(offset)? {
                Some(_) if self.block_at(offset)?.is_some() => return Ok(Some(offset)),
                Some(header) => offset += header.block_length(),
                None => offset += 8,
            }
        }
        Ok(None)
    }

    fn header_at(&mut self, offset: u64) -> io::Result<Option<Header>> {
        let (segment, length) = (self.segment, self.length);
        let Some(bytes) = self.view(offset, HEADER)? else { return Ok(None) };
        let header = Header::decode(bytes.try_into().expect("as many as asked for"), segment, offset);
        Ok(header.filter(|header| header.block_length() <= length - offset))
    }

    /// Returns the header of the block here, if all of it is valid, and keeps the place of the data.
    fn block_at(&mut self, offset: u64) -> io::Result<Option<Header>> {
        let Some(header) = self.header_at(offset)? else { return Ok(None) };
        let (start, length) = (offset + HEADER as u64, header.length as usize);
        let Some(bytes) = self.view(start, (header.block_length() - HEADER as u64) as usize)? else { return Ok(None) };
        let (data, padding) = bytes.split_at(length);
        if crc32c::crc32c(data) != header.data_sum || padding.iter().any(|byte| *byte != 0) {
            return Ok(None);
        }
        let at = (start - self.window_start) as usize;
        self.data = at..at + length;
        Ok(Some(header))
    }

    /// Returns bytes of the file; `None` if it ends before.
    fn view(&mut self, offset: u64, count: usize) -> io::Result<Option<&[u8]>> {
        if offset > self.length || count as u64 > self.length - offset {
            return Ok(None);
        }
        let end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || offset + count as u64 > end {
            let size = (count.max(WINDOW) as u64).min(self.length - offset) as usize;
            self.fill(offset, size)?;
            if self.window.len() < count {
                return Ok(None);
            }
        }
        let at = (offset - self.window_start) as usize;
        Ok(Some(&self.window[at..at + count]))
    }

    /// Reads a window, shorter if the file has become shorter.
    fn fill(&mut self, offset: u64, size: usize) -> io::Result<()> {
        self.window.resize(size, 0);
        self.window_start = offset;
        let mut have = 0;
        while have < size {
            match self.source.read_at(&mut self.window[have..], offset + have as u64) {
                Ok(0) => break,
                Ok(count) => have += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.window.clear();
                    return Err(error);
                }
            }
        }
        self.window.truncate(have);
        Ok(())
    }
}
