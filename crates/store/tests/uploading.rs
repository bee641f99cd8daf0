//! Closed segments arrive elsewhere, each once, whatever happens there.

use crate::scratch;

use hodo_store::{Destination, Folder, Options, Pace, Record, Store, Uploader, Uploads, Verdict, verify};
use scratch::Scratch;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const PACE: Pace =
    Pace { look: Duration::from_millis(2), first: Duration::from_millis(1), longest: Duration::from_millis(8) };

/// A folder that fails when it is told to, and says when it is asked.
struct Watched {
    folder: Folder,
    failures: u32,
    asked: Sender<String>,
}

impl Destination for Watched {
    fn put(&mut self, name: &str, file: &Path) -> Result<(), String> {
        let _ = self.asked.send(name.to_owned());
        if self.failures > 0 {
            self.failures -= 1;
            return Err("the network is down".to_owned());
        }
        self.folder.put(name, file)
    }
}

fn start(scratch: &Scratch, failures: u32) -> (Uploader, Receiver<String>) {
    let (asked, names) = channel();
    let to = Watched { folder: Folder(scratch.path().join("there")), failures, asked };
    (Uploader::start(scratch.path().to_owned(), to, PACE).expect("the folder can be written to"), names)
}

/// Waits until `segments` segments are there.
fn wait(uploader: &Uploader, names: &Receiver<String>, segments: u64) -> Uploads {
    loop {
        let uploads = uploader.uploads();
        if uploads.segments >= segments {
            return uploads;
        }
        // Each attempt is told; the time-out is for the look at the counters after the last one.
        let _ = names.recv_timeout(Duration::from_millis(10));
    }
}

fn put(store: &mut Store, events: std::ops::Range<u64>) {
    for event in events {
        let (verdict, data) = (Verdict::Accepted, &[7; 300][..]);
        let record = Record { node: 1, attempts: 1, ..Record::new(1, event, verdict, data) };
        store.put(&record).expect("the disk has room");
        store.commit().expect("the disk has room");
    }
}

fn options(scratch: &Scratch) -> Options {
    Options { segment_bytes: 2000, ..Options::new(scratch.path()) }
}

#[test]
fn closed_segments_arrive_once() {
    let scratch = Scratch::new("once");
    let (mut store, _) = Store::open(options(&scratch)).expect("opens");
    let (uploader, names) = start(&scratch, 0);
    put(&mut store, 0..23);
    let closed = scratch.files("segment-").len() as u64 - 1;
    assert!(closed >= 3);
    wait(&uploader, &names, closed);
    drop(uploader);
    let there = scratch.path().join("there");
    assert_eq!(fs::read_dir(&there).expect("it is there").count() as u64, closed, "the one that grows is not uploaded");

    // After a restart only what is new.
    let (uploader, names) = start(&scratch, 0);
    store.close_segment().expect("the disk has room");
    assert_eq!(wait(&uploader, &names, 1).segments, 1);
    drop(uploader);
    assert_eq!(fs::read_dir(&there).expect("it is there").count() as u64, closed + 1);
    for path in scratch.files("segment-") {
        let name = path.file_name().expect("a file has a name");
        assert!(fs::read(&path).ok() == fs::read(there.join(name)).ok());
    }
    fs::copy(scratch.path().join("ledger.hodo"), there.join("ledger.hodo")).expect("the disk has room");
    assert_eq!(verify(there).expect("it can be read").findings, []);
}

#[test]
fn a_destination_that_fails_is_tried_again() {
    let scratch = Scratch::new("fails");
    let (uploader, names) = start(&scratch, 7);
    let (mut store, _) = Store::open(options(&scratch)).expect("opens");
    put(&mut store, 0..3);
    store.close_segment().expect("the disk has room");
    let uploads = wait(&uploader, &names, 1);
    assert_eq!((uploads.segments, uploads.failures, uploads.waiting), (1, 7, 0));
    assert_eq!(uploads.last_failure, None);
}

#[test]
fn a_line_that_was_not_finished_counts_for_nothing() {
    let scratch = Scratch::new("line");
    let (mut store, _) = Store::open(options(&scratch)).expect("opens");
    put(&mut store, 0..3);
    store.close_segment().expect("the disk has room");
    fs::write(scratch.path().join("uploaded"), "1").expect("the disk has room");
    let (uploader, names) = start(&scratch, 0);
    wait(&uploader, &names, 1);
    drop(uploader);
    assert_eq!(fs::read_to_string(scratch.path().join("uploaded")).ok().as_deref(), Some("1\n"));
}

#[test]
fn what_is_closed_at_the_end_arrives_before_it() {
    let scratch = Scratch::new("end");
    let (mut store, _) = Store::open(options(&scratch)).expect("it is empty");
    let asleep = Pace { look: Duration::from_secs(3600), ..PACE };
    let to = || Folder(scratch.path().join("there"));
    let uploader = Uploader::start(scratch.path().to_owned(), to(), asleep).expect("the folder can be written to");
    put(&mut store, 0..10);
    store.close_segment().expect("the disk has room");
    let uploads = uploader.finish(Duration::from_secs(60));
    assert!(uploads.segments > 0 && uploads.waiting == 0, "{uploads:?}");
    drop(uploader);
    let (uploader, names) = start(&scratch, 0);
    assert_eq!(uploader.finish(Duration::from_secs(60)), Uploads::default(), "nothing is left for the next");
    assert!(names.try_recv().is_err());
}

#[test]
fn an_end_does_not_wait_for_a_destination_that_fails() {
    let scratch = Scratch::new("failing end");
    let (mut store, _) = Store::open(options(&scratch)).expect("it is empty");
    put(&mut store, 0..10);
    store.close_segment().expect("the disk has room");
    let (uploader, _names) = start(&scratch, u32::MAX);
    let uploads = uploader.finish(Duration::from_secs(60));
    assert!(uploads.waiting > 0 && uploads.failures > 0, "{uploads:?}");
}
