//! A reader and a check of folders, whole and broken.

use crate::scratch;

use hodo_store::{Finding, Item, Options, Reader, Record, Store, Verdict, verify};
use scratch::Scratch;
use std::fs;

/// Writes 60 events in several segments, the last of them not closed; event n of run 1 has n bytes.
fn written(scratch: &Scratch) {
    let options = Options { segment_bytes: 2048, ..Options::new(scratch.path()) };
    let (mut store, _) = Store::open(options).expect("the folder can be opened");
    for event in 0..60_u8 {
        let verdict = Verdict::ALL[usize::from(event % 4)];
        let data = vec![event; usize::from(event)];
        let time_ns = 5_000 + u64::from(event);
        let node = u32::from(event) / 8;
        let (attempts, partial) = (1 + event % 3, event % 2 == 0);
        let record = Record { node, attempts, partial, time_ns, ..Record::new(1, event.into(), verdict, &data) };
        store.put(&record).expect("the disk has room");
        if event % 6 == 5 {
            store.commit().expect("the disk has room");
        }
    }
    store.finish().expect("the disk has room");
    assert!(scratch.files("segment-").len() > 1);
}

#[test]
fn reads_what_was_put() {
    let scratch = Scratch::new("put");
    written(&scratch);
    let mut reader = Reader::open(scratch.path()).expect("it is there");
    let (mut kept, mut others) = (Vec::new(), 0);
    while let Some(item) = reader.next().expect("it can be read") {
        match item {
            Item::Event(record) => {
                let event = record.event as u8;
                assert_eq!(record.data, vec![event; usize::from(event)]);
                assert_eq!((record.node, record.attempts), (u32::from(event) / 8, 1 + event % 3));
                assert_eq!((record.partial, record.time_ns), (event.is_multiple_of(2), 5_000 + u64::from(event)));
                kept.push(record.event);
            }
            Item::Verdicts(all, _) => others += all.iter().map(|(_, _, range)| range.end - range.start).sum::<u64>(),
            other => panic!("{other:?}"),
        }
    }
    assert!(kept.iter().copied().eq((0..60).filter(|event| event % 2 == 0)));
    assert_eq!(others, 30);
    let first = scratch.files("segment-").swap_remove(0);
    let renamed = first.with_file_name("copy");
    fs::copy(first, &renamed).expect("the disk has room");
    let mut alone = Reader::open(renamed).expect("it is there");
    assert!(matches!(alone.next(), Ok(Some(Item::Event(Record { event: 0, .. })))));
}

#[test]
fn a_whole_folder_is_good() {
    let scratch = Scratch::new("whole");
    written(&scratch);
    let verified = verify(scratch.path()).expect("it can be read");
    assert_eq!(verified.findings, []);
    assert_eq!((verified.events, verified.runs[&1][&Verdict::Rejected]), (30, 15));
    for path in scratch.files("segment-00000001") {
        fs::remove_file(path).expect("it is there");
    }
    let less = verify(scratch.path()).expect("it can be read");
    assert_eq!(less.findings, []);
    assert_eq!(less.runs, verified.runs);
}

/// Each byte of each file, one at a time: none is changed unnoticed.
#[test]
fn every_changed_byte_is_found() {
    let scratch = Scratch::new("changed");
    written(&scratch);
    for path in [scratch.files("segment-"), scratch.files("ledger")].concat() {
        let whole = fs::read(&path).expect("it was written");
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            fs::write(&path, &changed).expect("the disk has room");
            let Ok(verified) = verify(scratch.path()) else { continue };
            assert_ne!(verified.findings, [], "{} byte {place}", path.display());
        }
        fs::write(&path, &whole).expect("the disk has room");
    }
}

#[test]
fn what_is_missing_is_named() {
    let scratch = Scratch::new("missing");
    written(&scratch);
    fs::remove_file(scratch.path().join("ledger.hodo")).expect("it is there");
    fs::remove_file(scratch.path().join("segment-00000001.hodo")).expect("it is there");
    let verified = verify(scratch.path()).expect("it can be read");
    assert_eq!(verified.findings, [Finding::Missing { segment: 1 }]);
    assert!(!verified.is_good());
}
