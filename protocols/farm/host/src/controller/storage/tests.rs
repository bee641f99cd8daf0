//! Storage on files that panic and fail.

use super::*;
use hodo_farm::Content;
use hodo_farm::controller::Owner;
use hodo_store::{Files, Item, OpenFile, Options, Reader, Source, System};
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

/// Returns the verdict on an event whose data are its number.
fn rejected(event: u64) -> Final {
    let (run, verdict, node, attempts, partial) = (1, Verdict::Rejected, 0, 1, false);
    let (owner, content) = (Owner::Itself, Content::of(&event.to_le_bytes()));
    Final { run, event, verdict, node, attempts, partial, owner, content, data: Default::default() }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("hodo-storage-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn started(store: Store) -> (Storage, Arc<Health>) {
    let health = Arc::new(Health::new(Duration::from_secs(3600)));
    let pace = StoragePace { commit_every: Duration::ZERO, sync_every: Duration::ZERO, sync_bytes: 0 };
    (Storage::start(store, 1, pace, None, &health).expect("a thread"), health)
}

/// Queues verdicts until a thread of the storage has died. Returns what the health and the status say, and what the end
/// says.
fn dies(name: &str, writes: bool) -> (String, String, String) {
    let folder = folder(name);
    let files = Deadly { writes, is_armed: Arc::default() };
    let (store, _) = Store::open_on(Arc::new(files.clone()), Options::new(&folder)).expect("the folder can be made");
    files.is_armed.store(true, Ordering::Relaxed);
    let (storage, health) = started(store);
    let queue = storage.queue(0);
    let mut events = 0;
    while health.dead().is_none() || queue.status().failing.is_none() {
        queue.push(&mut vec![rejected(events)]);
        events += 1;
        std::thread::yield_now();
    }
    queue.push(&mut vec![rejected(events)]);
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

#[test]
fn data_in_doubt_are_compared_with_what_is_stored_and_kept_once_where_they_are_other() {
    use Likeness::{Other, Same, Unknown};
    let folder = folder("doubts");
    let (store, _) = Store::open(Options::new(&folder)).expect("the folder can be made");
    let (storage, _) = started(store);
    let queue = storage.queue(0);
    let doubt = |event: u64, data: &[u8], anew| Final {
        verdict: Verdict::Quarantined,
        owner: Owner::Unknown { anew },
        content: Content::of(data),
        data: data.to_vec().into(),
        ..rejected(event)
    };
    // Those on which nothing is known yet come with what they are compared with.
    let mut first: Vec<Final> = (0..4).map(rejected).collect();
    first.extend([doubt(2, b"other", false), doubt(1, &1_u64.to_le_bytes(), true), doubt(9, b"of none", false)]);
    first.extend([doubt(2, b"other", false), doubt(9, b"of none", true), doubt(0, b"another", false)]);
    queue.push(&mut first);
    while queue.committed() < 10 {
        std::thread::yield_now();
    }
    assert_eq!(queue.compared(), [Other, Same, Unknown, Other, Other, Other]);
    assert_eq!((queue.compared(), queue.status().events), (vec![], 0));
    storage.finish().expect("the disk has room");
    let mut kept = Vec::new();
    let mut reader = Reader::open(&folder).expect("it is there");
    while let Some(item) = reader.next().expect("it can be read") {
        if let Item::Event(record) = item {
            kept.push((record.event, record.data.to_vec(), record.conflict));
        }
    }
    let expected = [(0, &b"another"[..]), (2, b"other"), (9, b"of none")];
    assert_eq!(kept, expected.map(|(event, data)| (event, data.to_vec(), true)));
    let _ = std::fs::remove_dir_all(&folder);
}
