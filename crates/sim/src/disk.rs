//! A disk that tears, forgets and fails.

use hodo_machine::Random;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// The bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// The faults of a disk while it has power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskFaults {
    /// The probability that a write takes only a part of the bytes.
    pub short: f64,
    /// The probability that a write fails, with nothing or a part of it done.
    pub write: f64,
    /// The probability that a sync fails. The system then holds what was written for clean: what of it has not reached
    /// the disk never does, unless it is written again, and in half of the cases not even then: only in a new file.
    pub sync: f64,
    /// The probability that creating, renaming or removing a name, or syncing a folder, fails.
    pub name: f64,
    /// Bytes that fit.
    pub capacity: u64,
}

impl Default for DiskFaults {
    /// Returns a disk that never fails and is never full.
    fn default() -> Self {
        DiskFaults { short: 0.0, write: 0.0, sync: 0.0, name: 0.0, capacity: u64::MAX }
    }
}

/// A file system in memory, which knows what its disk has.
///
/// Copies of it are the same disk. What is written is seen at once by who reads; after [`Disk::lose_power`] there is only
/// what was synced, and of all else whatever the seed has chosen: some sectors, and some of the newest names.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Mutex<State>>);

/// An open file of a [`Disk`].
#[derive(Debug, Clone)]
pub struct DiskFile {
    disk: Disk,
    node: usize,
    /// The power's count when it was opened: a file does not outlive a loss of power.
    power: u64,
}

#[derive(Debug)]
struct State {
    faults: DiskFaults,
    random: Random,
    files: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// The changes of names since their folder was last synced, in order.
    changes: Vec<Change>,
    power: u64,
    /// Operations until the power goes; `None` for never.
    left: Option<u64>,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// The writes since the last sync.
    dirty: Vec<Write>,
    /// After a sync that failed, later ones succeed and do nothing, as with extents that ext4 could not write at first.
    lies: bool,
}

#[derive(Debug)]
enum Write {
    Bytes(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Name(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Disk {
    /// Creates an empty disk; the seed draws what is lost.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Disk(Arc::new(Mutex::new(State {
            faults: DiskFaults::default(),
            random: Random::new(seed),
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            power: 0,
            left: None,
        })))
    }

    /// Sets what goes wrong from now on.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.state().faults = faults;
    }

    /// Lets the power go after so many operations: every one from then on fails, until [`Disk::lose_power`] or
    /// [`Disk::end_processes`] begins anew.
    pub fn fail_after(&self, operations: u64) {
        self.state().left = Some(operations);
    }

    /// Loses power and starts again: what was not synced is lost, or torn.
    pub fn lose_power(&self) {
        let mut state = self.state();
        let state = &mut *state;
        // Names become durable in the order in which they were changed, up to some point.
        let kept = state.random.below(state.changes.len() as u64 + 1) as usize;
        for change in state.changes.drain(..).take(kept) {
            change.apply(&mut state.durable_names);
        }
        state.names = state.durable_names.clone();
        for file in &mut state.files {
            file.tear(&mut state.random);
        }
        state.restart();
    }

    /// Ends every process that has files open; the system keeps all that was written.
    pub fn end_processes(&self) {
        self.state().restart();
    }

    /// Makes a file, empty, or empties the one that is there.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn create(&self, path: &Path) -> io::Result<DiskFile> {
        let mut state = self.state();
        state.name_operation()?;
        let node = match state.names.get(path) {
            Some(node) => *node,
            None => {
                state.files.push(Content::default());
                let node = state.files.len() - 1;
                state.change(Change::Name(path.to_owned(), node));
                node
            }
        };
        state.files[node].set_length(0);
        Ok(self.file(node, state.power))
    }

    /// Opens a file that is there.
    ///
    /// # Errors
    /// If it is not there, or the disk fails.
    pub fn open(&self, path: &Path) -> io::Result<DiskFile> {
        let mut state = self.state();
        state.operation()?;
        let node = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(self.file(node, state.power))
    }

    /// Lists the files in a folder, in order.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = self.state();
        state.operation()?;
        Ok(state.names.keys().filter(|path| path.parent() == Some(folder)).cloned().collect())
    }

    /// Gives a file another name, in place of the file that has it.
    ///
    /// # Errors
    /// If it is not there, or the disk fails.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.name_operation()?;
        state.names.get(from).ok_or(ErrorKind::NotFound)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Removes a file.
    ///
    /// # Errors
    /// If it is not there, or the disk fails.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.name_operation()?;
        state.names.get(path).ok_or(ErrorKind::NotFound)?;
        state.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.name_operation()?;
        let state = &mut *state;
        let (synced, rest) = state.changes.drain(..).partition(|change| change.path().parent() == Some(folder));
        state.changes = rest;
        let synced: Vec<Change> = synced;
        synced.into_iter().for_each(|change| change.apply(&mut state.durable_names));
        Ok(())
    }

    fn file(&self, node: usize, power: u64) -> DiskFile {
        DiskFile { disk: self.clone(), node, power }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no operation panics")
    }
}

impl DiskFile {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// If the power is gone.
    pub fn length(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        Ok(self.content(&mut state)?.bytes.len() as u64)
    }

    /// Reads some bytes; none at the end.
    ///
    /// # Errors
    /// If the power is gone.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let bytes = &self.content(&mut state)?.bytes;
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    /// Writes bytes, or some of them.
    ///
    /// # Errors
    /// If the disk fails or is full.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let used: u64 = state.names.values().map(|node| state.files[*node].bytes.len() as u64).sum();
        let DiskFaults { short, write, capacity, .. } = state.faults;
        let (fails, is_short) = (state.random.chance(write), state.random.chance(short));
        let part = state.random.below(bytes.len() as u64 + 1) as usize;
        let content = self.content(&mut state)?;
        let again = (content.bytes.len() as u64).saturating_sub(offset);
        let room = capacity.saturating_sub(used).saturating_add(again);
        let fits = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if fits == 0 && !bytes.is_empty() {
            return Err(ErrorKind::StorageFull.into());
        }
        let count = if fails || is_short { fits.min(part.max(1)) } else { fits };
        content.write(&bytes[..count], offset);
        if fails {
            return Err(io::Error::other("the disk cannot write this"));
        }
        Ok(count)
    }

    /// Cuts the file, or fills it up with zeros.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        self.content(&mut state)?.set_length(length);
        Ok(())
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// If the disk fails; what it could not write then never becomes durable unless it is written again.
    pub fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let chance = state.faults.sync;
        let fails = state.random.chance(chance);
        self.content(&mut state)?;
        let state = &mut *state;
        let content = &mut state.files[self.node];
        if content.lies {
            content.dirty.clear();
        }
        if fails {
            content.write_some(&mut state.random);
            content.lies = state.random.chance(0.5);
            return Err(io::Error::other("the disk could not write what was given to it before"));
        }
        for write in content.dirty.drain(..) {
            write.apply(&mut content.durable);
        }
        Ok(())
    }

    /// Drops the bytes before this place from the system's memory, but those that were written since the last sync: from now on
    /// they are as the disk has them.
    pub fn forget(&self, up_to: u64) {
        let mut state = self.disk.state();
        if state.power == self.power {
            state.files[self.node].forget(up_to as usize);
        }
    }

    /// Reads some bytes as the disk has them, whatever the system keeps in memory; none at the end.
    ///
    /// # Errors
    /// If the power is gone.
    pub fn read_disk_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let rest = self.content(&mut state)?.durable.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn content<'a>(&self, state: &'a mut State) -> io::Result<&'a mut Content> {
        if state.power != self.power {
            return Err(io::Error::other("this file was open before the power went"));
        }
        state.operation()?;
        Ok(&mut state.files[self.node])
    }
}

impl State {
    fn restart(&mut self) {
        self.power += 1;
        self.left = None;
    }

    /// Fails once the power is gone.
    fn operation(&mut self) -> io::Result<()> {
        match &mut self.left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the power is gone")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn name_operation(&mut self) -> io::Result<()> {
        self.operation()?;
        if self.random.chance(self.faults.name) {
            return Err(io::Error::other("the disk cannot do this"));
        }
        Ok(())
    }

    fn change(&mut self, change: Change) {
        change.clone().apply(&mut self.names);
        self.changes.push(change);
    }
}

impl Change {
    fn path(&self) -> &Path {
        match self {
            Change::Name(path, _) | Change::Rename(path, _) | Change::Remove(path) => path,
        }
    }

    fn apply(self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Change::Name(path, node) => {
                names.insert(path, node);
            }
            Change::Rename(from, to) => {
                if let Some(node) = names.remove(&from) {
                    names.insert(to, node);
                }
            }
            Change::Remove(path) => {
                names.remove(&path);
            }
        }
    }
}

impl Content {
    fn write(&mut self, bytes: &[u8], offset: u64) {
        let write = Write::Bytes(offset, bytes.to_vec());
        write.apply(&mut self.bytes);
        self.dirty.push(write);
    }

    fn set_length(&mut self, length: u64) {
        Write::Length(length).apply(&mut self.bytes);
        self.dirty.push(Write::Length(length));
    }

    fn forget(&mut self, up_to: usize) {
        let mut kept = self.durable.clone();
        self.dirty.iter().for_each(|write| write.apply(&mut kept));
        let length = self.bytes.len().min(up_to);
        kept.resize(kept.len().max(length), 0);
        self.bytes[..length].copy_from_slice(&kept[..length]);
    }

    /// Lets any sectors of what was written reach the disk; the rest is forgotten there.
    fn write_some(&mut self, random: &mut Random) {
        // Nothing, all, or each by itself: in the order of writing, so that a later one wins.
        let chance = [0.0, 0.5, 1.0][random.below(3) as usize];
        for write in self.dirty.drain(..) {
            match write {
                Write::Length(_) if random.chance(chance) => write.apply(&mut self.durable),
                Write::Length(_) => {}
                Write::Bytes(offset, bytes) => {
                    let mut start = 0;
                    while start < bytes.len() {
                        let end = bytes.len().min(start + SECTOR - (offset as usize + start) % SECTOR);
                        if random.chance(chance) {
                            write_into(&mut self.durable, offset + start as u64, &bytes[start..end]);
                        }
                        start = end;
                    }
                }
            }
        }
    }

    /// Leaves what is there after a loss of power.
    fn tear(&mut self, random: &mut Random) {
        self.write_some(random);
        self.bytes.clone_from(&self.durable);
        self.lies = false;
    }
}

impl Write {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Write::Bytes(offset, bytes) => write_into(content, *offset, bytes),
            Write::Length(length) => content.resize(*length as usize, 0),
        }
    }
}

fn write_into(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "/data";

    fn read(disk: &Disk, name: &str) -> Option<Vec<u8>> {
        let file = disk.open(&Path::new(FOLDER).join(name)).ok()?;
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        Some(bytes)
    }

    #[test]
    fn what_was_synced_survives_and_all_else_may_be_lost_or_torn() {
        let (mut lost, mut torn, mut kept) = (0, 0, 0);
        for seed in 0..200 {
            let disk = Disk::new(seed);
            let path = Path::new(FOLDER).join("file");
            let file = disk.create(&path).unwrap();
            file.write_at(&[1; 1000], 0).unwrap();
            file.sync().unwrap();
            disk.sync_folder(Path::new(FOLDER)).unwrap();
            file.write_at(&[2; 2000], 1000).unwrap();
            assert_eq!(read(&disk, "file").unwrap().len(), 3000);
            disk.lose_power();
            assert!(file.write_at(&[3], 0).is_err(), "it was open before");
            let bytes = read(&disk, "file").expect("its name was synced");
            assert_eq!(bytes[..1000], [1; 1000]);
            let twos = bytes[1000..].iter().filter(|byte| **byte == 2).count();
            lost += u32::from(twos == 0);
            kept += u32::from(twos == 2000);
            torn += u32::from(twos > 0 && twos < 2000);
        }
        assert!(lost > 30 && torn > 30 && kept > 30, "{lost} {torn} {kept}");
    }

    #[test]
    fn names_are_durable_with_their_folder() {
        let mut there = 0;
        for seed in 0..100 {
            let disk = Disk::new(seed);
            let [old, new] = ["old", "new"].map(|name| Path::new(FOLDER).join(name));
            let file = disk.create(&old).unwrap();
            file.write_at(b"whole", 0).unwrap();
            file.sync().unwrap();
            disk.sync_folder(Path::new(FOLDER)).unwrap();
            disk.rename(&old, &new).unwrap();
            disk.lose_power();
            let found = [read(&disk, "old"), read(&disk, "new")];
            assert_eq!(found.iter().flatten().collect::<Vec<_>>(), [b"whole"], "one of them, and whole");
            there += u32::from(found[1].is_some());
        }
        assert!((20..80).contains(&there), "{there}");
    }

    #[test]
    fn a_failed_sync_forgets_and_only_writing_again_helps() {
        let mut forgotten = 0;
        for seed in 0..100 {
            let disk = Disk::new(seed);
            let file = disk.create(&Path::new(FOLDER).join("file")).unwrap();
            disk.sync_folder(Path::new(FOLDER)).unwrap();
            file.write_at(&[1; 700], 0).unwrap();
            disk.set_faults(DiskFaults { sync: 1.0, ..DiskFaults::default() });
            file.sync().unwrap_err();
            disk.set_faults(DiskFaults::default());
            file.sync().unwrap();
            assert_eq!(read(&disk, "file").unwrap(), [1; 700], "the system has it");
            let mut there = [0; 700];
            let count = file.read_disk_at(&mut there, 0).unwrap();
            disk.lose_power();
            assert_eq!(read(&disk, "file").unwrap(), there[..count]);
            forgotten += u32::from(there != [1; 700]);
        }
        assert!(forgotten > 30, "{forgotten}");
    }

    #[test]
    fn what_the_system_forgets_is_as_the_disk_has_it() {
        let disk = Disk::new(1);
        let file = disk.create(&Path::new(FOLDER).join("file")).unwrap();
        file.write_at(&[1; 600], 0).unwrap();
        file.sync().unwrap();
        file.write_at(&[2; 600], 600).unwrap();
        file.forget(1200);
        assert_eq!(
            read(&disk, "file").unwrap(),
            [[1; 600], [2; 600]].concat(),
            "nothing is lost that is to be written"
        );
        disk.set_faults(DiskFaults { sync: 1.0, ..DiskFaults::default() });
        file.sync().unwrap_err();
        let mut there = [0; 1200];
        file.read_disk_at(&mut there, 0).unwrap();
        file.forget(1200);
        assert_eq!(read(&disk, "file").unwrap(), there, "what a sync could not write is");
    }

    #[test]
    fn a_full_disk_takes_what_fits_and_the_power_goes_when_it_is_told() {
        let disk = Disk::new(1);
        disk.set_faults(DiskFaults { capacity: 10, ..DiskFaults::default() });
        let file = disk.create(&Path::new(FOLDER).join("file")).unwrap();
        assert_eq!(file.write_at(&[1; 20], 0).unwrap(), 10);
        assert_eq!(file.write_at(&[1; 20], 10).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.write_at(&[2; 10], 0).unwrap(), 10);
        disk.fail_after(1);
        assert!(file.sync().is_ok() && file.sync().is_err() && disk.list(Path::new(FOLDER)).is_err());
        disk.end_processes();
        assert!(file.sync().is_err() && disk.list(Path::new(FOLDER)).unwrap().len() == 1);
    }
}
