//! Storage on files that panic and fail.

use super::*;
use hodo_store::{Files, OpenFile, Options, Source, System};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The system's files, of which one operation panics once this is armed: writes, or syncs.
#[derive(Debug, Clone)]
struct Deadly {
    writes: bool,
    is_armed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct DeadlyFile(Deadly, Box<dyn OpenFile>);

impl Deadly {
    fn strike(&self, is_write: bool) {
        assert!(is_write != self.writes || !self.is_armed.load(Ordering::Relaxed), "as told");
    }

    fn file(&self, file: io::Result<Box<dyn OpenFile>>) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(DeadlyFile(self.clone(), file?)))
    }
}

impl Files for Deadly {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        System.create_folder(folder)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        System.lock(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        System.list(folder)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.file(System.create(path))
    }
    fn read(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.file(System.read(path))
    }
    fn read_disk(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        System.read_disk(path, range)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.file(System.open(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        System.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        System.remove(path)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        System.sync_folder(folder)
    }
}

impl Source for DeadlyFile {
    fn len(&self) -> io::Result<u64> {
        self.1.len()
    }
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.1.read_at(into, offset)
    }
}

impl OpenFile for DeadlyFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.strike(true);
        self.1.write_at(bytes, offset)
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.1.cut(length)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        self.1.sync_data()
    }
    fn sync_all(&mut self) -> io::Result<()> {
        self.0.strike(false);
        self.1.sync_all()
    }
}

/// Queues verdicts until a thread of the storage has died. Returns what the health and the status say, and what the end
/// says.
fn dies(name: &str, writes: bool) -> (String, String, String) {
    let folder = std::env::temp_dir().join(format!("hodo-storage-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let files = Deadly { writes, is_armed: Arc::default() };
    let (store, _) = Store::open_on(Arc::new(files.clone()), Options::new(&folder)).expect("the folder can be made");
    files.is_armed.store(true, Ordering::Relaxed);
    let health = Arc::new(Health::new(Duration::from_secs(3600)));
    let pace = StoragePace { commit_every: Duration::ZERO, sync_every: Duration::ZERO, sync_bytes: 0 };
    let storage = Storage::start(store, 1, pace, None, &health).expect("a thread");
    let queue = storage.queue(0);
    let verdict = |event| Final {
        run: 1,
        event,
        verdict: Verdict::Rejected,
        node: 0,
        attempts: 1,
        partial: false,
        conflict: false,
        content: hodo_farm::Content::Unknown,
        data: Default::default(),
    };
    let mut events = 0;
    while health.dead().is_none() || queue.status().failing.is_none() {
        queue.push(&mut vec![verdict(events)]);
        events += 1;
        std::thread::yield_now();
    }
    queue.push(&mut vec![verdict(events)]);
    let (dead, failing) = (health.word().expect_err("one has died"), queue.status().failing.expect("it was there"));
    let why = storage.finish().expect_err("one has died");
    assert!(queue.committed() <= events, "the last was queued after the death");
    let _ = std::fs::remove_dir_all(&folder);
    (dead, failing, why)
}

#[test]
fn a_writer_that_dies_is_noticed_and_what_it_left_is_no_success() {
    let (dead, failing, why) = dies("writer", true);
    assert!(dead.contains("the thread `store` has died"), "{dead}");
    assert!(failing.contains("the thread `store` has died"), "{failing}");
    assert!(why.contains("verdicts are not stored") && why.contains("`store` has died"), "{why}");
}

#[test]
fn a_syncer_that_dies_is_noticed_and_nothing_more_is_acknowledged() {
    let (dead, failing, why) = dies("syncer", false);
    assert!(dead.contains("the thread `sync` has died"), "{dead}");
    assert!(failing.contains("the thread `sync` has died"), "{failing}");
    assert!(why.contains("verdicts are not stored") && why.contains("`sync` has died"), "{why}");
}
