//! The bytes of a store never change unnoticed: `golden/` and `golden-given/` were written by this test, and others read the
//! first.

use crate::scratch;

use hodo_store::{Options, Record, Store, Verdict};
use scratch::Scratch;
use std::fs;
use std::path::Path;

/// Writes the events: event n of run 7 has 13 n bytes of the value n; every third is accepted, 7 and 21 are quarantined, 8
/// is incomplete. With checksums, every second event has one, and other data came under the number 5.
fn write(folder: &Path, given: bool) {
    let (mut store, _) = Store::open(Options { segment_bytes: 1200, ..Options::new(folder) }).expect("it is new");
    for event in 0..30_u8 {
        let verdict = match event {
            7 | 21 => Verdict::Quarantined,
            8 => Verdict::Incomplete,
            _ if event.is_multiple_of(3) => Verdict::Accepted,
            _ => Verdict::Rejected,
        };
        store
            .put(&Record {
                node: 100 + u32::from(event) % 4,
                attempts: if verdict == Verdict::Quarantined { 3 } else { 1 },
                partial: event == 9,
                given: if given && event.is_multiple_of(2) { 0x1000 + u32::from(event) } else { 0 },
                time_ns: 1_700_000_000_000_000_000 + u64::from(event),
                ..Record::new(7, event.into(), verdict, &vec![event; 13 * usize::from(event)])
            })
            .expect("the disk has room");
        if given && event == 5 {
            let record = Record { conflict: true, node: 2, ..Record::new(7, 5, Verdict::Quarantined, b"other") };
            store.put(&record).expect("the disk has room");
        }
        if event % 7 == 6 {
            store.commit().expect("the disk has room");
        }
    }
    store.put(&record_of_another_run()).expect("the disk has room");
    store.finish().expect("the disk has room");
}

fn record_of_another_run() -> Record<'static> {
    Record { node: 1, attempts: 1, ..Record::new(8, 1 << 40, Verdict::Accepted, b"") }
}

#[test]
fn a_store_is_these_bytes() {
    check("golden", false);
}

#[test]
fn a_store_with_checksums_of_what_was_given_is_these_bytes() {
    check("golden-given", true);
}

fn check(name: &str, given: bool) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let _ = fs::remove_dir_all(&golden);
        write(&golden, given);
        fs::remove_file(golden.join("lock")).expect("it is there");
    }
    let scratch = Scratch::new(name);
    write(scratch.path(), given);
    let files = [scratch.files("segment-"), scratch.files("ledger")].concat();
    assert!(files.len() > 2);
    for file in &files {
        let name = file.file_name().expect("a file has a name");
        let accepted = fs::read(golden.join(name)).unwrap_or_default();
        assert!(accepted == fs::read(file).expect("it was written"), "{name:?} is not as accepted: a new version?");
    }
    assert_eq!(fs::read_dir(golden).expect("it is there").count(), files.len());
}
