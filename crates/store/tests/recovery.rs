//! Events are found again, wherever the files were cut or changed.

use crate::scratch;

use hodo_store::{Checksums, Durability, Options, Put, Record, Recovered, Repair, Store, Verdict, repair, verify};
use scratch::Scratch;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn record(run: u32, event: u64, verdict: Verdict, data: &[u8]) -> Record<'_> {
    Record { node: 3, attempts: 1, time_ns: 1_000 + event, ..Record::new(run, event, verdict, data) }
}

fn options(scratch: &Scratch) -> Options {
    Options { segment_bytes: 4096, ..Options::new(scratch.path()) }
}

fn open(scratch: &Scratch) -> (Store, Recovered) {
    Store::open(options(scratch)).expect("the folder can be opened")
}

fn verdict_of(event: u64) -> Verdict {
    match event % 10 {
        3 | 8 => Verdict::Accepted,
        5 => Verdict::Quarantined,
        7 => Verdict::Incomplete,
        _ => Verdict::Rejected,
    }
}

fn put_all(store: &mut Store, run: u32, events: std::ops::Range<u64>) {
    let data = [0x5A; 200];
    for event in events {
        let put = store.put(&record(run, event, verdict_of(event), &data[..(event % 200) as usize]));
        assert_eq!(put.expect("the disk has room"), Put::Taken);
    }
}

#[track_caller]
fn expect(recovered: &Recovered, run: u32, events: std::ops::Range<u64>) {
    let ledger = &recovered.runs[&run];
    for event in events.clone() {
        assert_eq!(ledger.verdict(event), Some(verdict_of(event)), "event {event}");
    }
    let all: u64 = Verdict::ALL.iter().map(|verdict| ledger.of(*verdict).len()).sum();
    assert_eq!(all, events.end - events.start);
    assert_eq!(recovered.damaged, []);
}

fn last_segment(scratch: &Scratch) -> PathBuf {
    let mut all = scratch.files("segment-");
    all.pop().expect("there is a segment")
}

#[test]
fn finds_every_verdict_again() {
    let scratch = Scratch::new("again");
    for step in 0..20 {
        let (mut store, recovered) = open(&scratch);
        if step > 0 {
            expect(&recovered, 1, 0..step * 37);
        }
        put_all(&mut store, 1, step * 37..(step + 1) * 37);
        let committed = store.commit().expect("the disk has room");
        assert_eq!(committed.taken, 37);
    }
    assert!(scratch.files("segment-").len() > 5, "no segment was closed");
}

#[test]
fn an_event_is_decided_once() {
    let scratch = Scratch::new("once");
    let (mut store, _) = open(&scratch);
    put_all(&mut store, 1, 0..50);
    assert_eq!(store.put(&record(1, 3, Verdict::Rejected, b"")).ok(), Some(Put::AlreadyDecided));
    store.commit().expect("the disk has room");
    drop(store);
    let (mut store, _) = open(&scratch);
    assert_eq!(store.put(&record(1, 4, Verdict::Accepted, b"again")).ok(), Some(Put::AlreadyDecided));
    assert_eq!(store.put(&record(2, 4, Verdict::Accepted, b"another run")).ok(), Some(Put::Taken));
    assert_eq!(store.already_decided(), 1);
}

#[test]
fn what_is_not_committed_is_not_there() {
    let scratch = Scratch::new("uncommitted");
    let (mut store, _) = open(&scratch);
    put_all(&mut store, 1, 0..30);
    store.commit().expect("the disk has room");
    put_all(&mut store, 1, 30..60);
    drop(store);
    expect(&open(&scratch).1, 1, 0..30);
}

#[test]
fn a_second_writer_is_refused() {
    let scratch = Scratch::new("locked");
    let (store, _) = open(&scratch);
    let error = Store::open(options(&scratch)).expect_err("there is a writer");
    assert!(error.to_string().contains("another process writes"), "{error}");
    drop(store);
    open(&scratch);
}

/// The last commit is cut at each of its bytes: the commits before are whole, and the store goes on.
#[test]
fn a_torn_commit_is_cut_off() {
    let scratch = Scratch::new("torn");
    let (mut store, _) = Store::open(Options::new(scratch.path())).expect("the folder can be opened");
    put_all(&mut store, 1, 0..20);
    let before = store.commit().expect("the disk has room").segment_bytes;
    put_all(&mut store, 1, 20..40);
    let after = store.commit().expect("the disk has room").segment_bytes;
    drop(store);
    let path = last_segment(&scratch);
    let whole = fs::read(&path).expect("it was written");
    assert_eq!(whole.len() as u64, after);
    for cut in before..after {
        fs::write(&path, &whole[..cut as usize]).expect("the disk has room");
        let (mut store, recovered) = Store::open(Options::new(scratch.path())).expect("a torn tail is no error");
        assert_eq!(recovered.damaged, []);
        let ledger = &recovered.runs[&1];
        (0..20).for_each(|event| assert_eq!(ledger.verdict(event), Some(verdict_of(event))));
        // Of the last commit whole events may be left, and nothing that was not put.
        (20..40).for_each(|event| assert!([None, Some(verdict_of(event))].contains(&ledger.verdict(event))));
        for event in (20..40).filter(|event| ledger.verdict(*event).is_none()) {
            store.put(&record(1, event, verdict_of(event), b"once more")).expect("the disk has room");
        }
        store.commit().expect("the disk has room");
        drop(store);
        let (_, recovered) = Store::open(Options::new(scratch.path())).expect("it was closed well");
        assert_eq!(recovered.cut_bytes, 0);
        expect(&recovered, 1, 0..40);
    }
}

/// A changed byte before the end is told, and costs the events of one block at most.
#[test]
fn damage_in_the_middle_is_told() {
    let scratch = Scratch::new("damage");
    let (mut store, _) = Store::open(Options::new(scratch.path())).expect("the folder can be opened");
    put_all(&mut store, 1, 0..40);
    let bytes = store.commit().expect("the disk has room").segment_bytes;
    store.put(&record(1, 43, Verdict::Accepted, b"the last")).expect("the disk has room");
    store.commit().expect("the disk has room");
    drop(store);
    let path = last_segment(&scratch);
    let whole = fs::read(&path).expect("it was written");
    for place in (0..bytes as usize).step_by(3) {
        let mut changed = whole.clone();
        changed[place] ^= 1 << (place % 8);
        let _ = fs::remove_file(scratch.path().join("ledger.hodo"));
        let _ = fs::remove_file(scratch.path().join("segment-00000002.hodo"));
        fs::write(&path, &changed).expect("the disk has room");
        let (mut store, recovered) = match Store::open(Options::new(scratch.path())) {
            Ok(opened) => opened,
            Err(error) => panic!("byte {place}: {error}"),
        };
        let [damage] = &recovered.damaged[..] else { panic!("byte {place}: {:?}", recovered.damaged) };
        assert!((damage.offset..damage.offset + damage.bytes).contains(&(place as u64)), "byte {place}: {damage:?}");
        let ledger = &recovered.runs[&1];
        assert_eq!(ledger.verdict(43), Some(Verdict::Accepted));
        let lost = (0..40).filter(|event| ledger.verdict(*event).is_none()).count();
        // A commit block has the verdicts of all that have no data.
        assert!(lost <= 1 || lost == 28, "byte {place}: {lost} events lost");
        // The damaged segment is left as it is.
        store.put(&record(1, 99, Verdict::Accepted, b"new")).expect("the disk has room");
        store.commit().expect("the disk has room");
        assert_eq!(fs::read(&path).expect("it is there"), changed);
    }
}

#[test]
fn segments_may_be_taken_away() {
    let scratch = Scratch::new("away");
    let (mut store, _) = open(&scratch);
    for step in 0..30 {
        put_all(&mut store, 1, step * 20..(step + 1) * 20);
        store.commit().expect("the disk has room");
    }
    store.close_segment().expect("the disk has room");
    drop(store);
    for path in scratch.files("segment-") {
        fs::remove_file(path).expect("it is there");
    }
    let (mut store, recovered) = open(&scratch);
    expect(&recovered, 1, 0..600);
    put_all(&mut store, 1, 600..700);
    store.commit().expect("the disk has room");
    drop(store);
    expect(&open(&scratch).1, 1, 0..700);
}

#[test]
fn a_lost_ledger_is_made_again_or_refused() {
    let scratch = Scratch::new("ledger");
    let (mut store, _) = open(&scratch);
    for step in 0..30 {
        put_all(&mut store, 1, step * 20..(step + 1) * 20);
        store.commit().expect("the disk has room");
    }
    store.close_segment().expect("the disk has room");
    drop(store);
    let path = scratch.path().join("ledger.hodo");
    let whole = fs::read(&path).expect("it was written");
    for place in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[place] ^= 0x10;
        fs::write(&path, &changed).expect("the disk has room");
        let (_, recovered) = open(&scratch);
        expect(&recovered, 1, 0..600);
        fs::write(&path, &whole[..place]).expect("the disk has room");
        expect(&open(&scratch).1, 1, 0..600);
    }
    fs::remove_file(&path).expect("it is there");
    expect(&open(&scratch).1, 1, 0..600);
    fs::remove_file(&path).expect("it is there");
    fs::remove_file(scratch.path().join("segment-00000002.hodo")).expect("it is there");
    let error = Store::open(options(&scratch)).expect_err("nobody knows what segment 2 had");
    assert!(error.to_string().contains("segment 2"), "{error}");
}

#[test]
fn a_ledger_of_many_segments_is_written_anew() {
    let scratch = Scratch::new("anew");
    for step in 0..60 {
        let (mut store, _) = Store::open(Options { durability: Durability::Disk, ..options(&scratch) }).expect("opens");
        store.put(&record(1, step, Verdict::Rejected, b"")).expect("the disk has room");
        store.close_segment().expect("the disk has room");
    }
    let bytes = fs::metadata(scratch.path().join("ledger.hodo")).expect("it is there").len();
    assert!(bytes <= 20 * 4096, "{bytes} bytes for one range");
    assert!(open(&scratch).1.runs[&1].rejected.iter().eq(std::iter::once(0..60)));
}

/// Returns the checksums that were recovered, by run and event; a later one takes the place of an earlier one.
fn given(recovered: &Recovered) -> BTreeMap<(u32, u64), u32> {
    let of = |range: &Checksums| range.iter().map(|(event, sum)| ((range.run, event), sum)).collect::<Vec<_>>();
    recovered.given.iter().flat_map(of).collect()
}

#[test]
fn checksums_of_what_was_given_are_found_again_and_other_data_decide_nothing() {
    let scratch = Scratch::new("given");
    let data = [0x5A; 200];
    let given_of = |event: u64| if event.is_multiple_of(50) { 0 } else { 1000 + event as u32 };
    for part in 0..4 {
        let (mut store, recovered) = open(&scratch);
        let expected: BTreeMap<_, _> =
            (0..part * 100).filter(|event| given_of(*event) > 0).map(|event| ((1, event), given_of(event))).collect();
        assert_eq!(given(&recovered), expected, "of closed segments and of the open one");
        for event in part * 100..(part + 1) * 100 {
            let whole = Record { given: given_of(event), ..record(1, event, verdict_of(event), &data) };
            assert_eq!(store.put(&whole).expect("there is room"), Put::Taken);
            if event.is_multiple_of(30) {
                // Before it, behind it, or under a number that is not there.
                let conflict =
                    Record { conflict: true, given: 5, ..record(1, event / 2, Verdict::Quarantined, b"other") };
                assert_eq!(store.put(&conflict).expect("there is room"), Put::Taken);
            }
            if event % 7 == 0 {
                store.commit().expect("the disk has room");
            }
        }
        store.finish().expect("the disk has room");
    }
    assert!(scratch.files("segment-").len() > 3);
    let (_, recovered) = open(&scratch);
    expect(&recovered, 1, 0..400);
    let verified = verify(scratch.path()).expect("it can be read");
    assert!(verified.is_good(), "{:?}", verified.findings);
    assert_eq!((verified.events, verified.conflicts.get(&1)), (120, Some(&14)));
    let new = Scratch::new("given-repaired");
    let nothing = Repair { again: [1].into(), ..Repair::default() };
    repair(scratch.path(), new.path(), &nothing).expect("it can be copied");
    let (_, copied) = open(&new);
    let kept = given(&recovered).into_iter().filter(|((_, event), _)| verdict_of(*event) != Verdict::Incomplete);
    assert_eq!(given(&copied), kept.collect(), "a copy has them, too");
    assert_eq!(verify(new.path()).expect("it can be read").conflicts, verified.conflicts);
}

#[test]
fn the_checksum_of_any_event_is_found_in_its_segment() {
    let scratch = Scratch::new("given-any");
    let data = [0x5A; 200];
    // Two sources that count in ranges of their own, and rejected events that are far apart.
    let number = |event: u64| if event.is_multiple_of(2) { event } else { (1 << 40) + 1000 * event };
    let sum_of = |run: u32, event: u64| 100 * run + event as u32;
    let mut written = 0;
    for _ in 0..3 {
        let (mut store, _) = open(&scratch);
        for event in written..written + 100 {
            for run in [1, 7] {
                let whole = record(run, number(event), verdict_of(event), &data);
                store.put(&Record { given: sum_of(run, event), ..whole }).expect("there is room");
            }
            if event % 5 == 4 {
                store.commit().expect("there is room");
                for known in 0..event {
                    let found = [1, 7].map(|run| store.given(run, number(known)).expect("it can be read"));
                    assert_eq!(found, [1, 7].map(|run| Some(sum_of(run, known))), "event {known} of {event}");
                }
            }
        }
        for (run, event) in [(1, 9999), (2, 0), (1, u64::MAX - 1), (1, u64::MAX)] {
            assert_eq!(store.given(run, event).expect("there is nothing to read"), None);
        }
        written += 100;
        store.finish().expect("there is room");
    }
    let segments = scratch.files("segment-");
    assert!(segments.len() > 6, "{segments:?}");
    let (mut store, _) = open(&scratch);
    // One that is damaged at its end has its events, and of one that was taken away nothing is known.
    let bytes = fs::read(&segments[1]).expect("it is there");
    fs::write(&segments[1], &bytes[..bytes.len() - 100]).expect("there is room");
    assert_eq!(store.given(7, number(299)).expect("it can be read"), Some(sum_of(7, 299)));
    let mut found = |run, event| store.given(run, number(event)).expect("it can be read");
    let before: Vec<u64> = (0..300).filter(|event| found(1, *event) != Some(sum_of(1, *event))).collect();
    assert_eq!(before, []);
    drop(store);
    fs::remove_file(&segments[0]).expect("it is there");
    let (mut store, _) = open(&scratch);
    let mut found = |run, event| store.given(run, number(event)).expect("it can be read");
    let unknown: Vec<u64> = (0..300).filter(|event| found(1, *event) != Some(sum_of(1, *event))).collect();
    assert!(!unknown.is_empty() && unknown.len() < 60 && unknown.iter().all(|event| found(1, *event).is_none()));
}

#[test]
fn the_highest_number_is_found_again() {
    for verdict in [Verdict::Accepted, Verdict::Rejected] {
        let scratch = Scratch::new("highest");
        for _ in 0..3 {
            let (mut store, _) = open(&scratch);
            for event in [u64::MAX - 2, u64::MAX - 1] {
                store.put(&Record { given: 9, ..Record::new(1, event, verdict, b"") }).expect("there is room");
            }
            store.close_segment().expect("there is room");
        }
        let (_, recovered) = open(&scratch);
        assert_eq!(given(&recovered), [u64::MAX - 2, u64::MAX - 1].map(|event| ((1, event), 9)).into());
    }
}

#[test]
fn a_store_without_checksums_goes_on_with_them() {
    let scratch = Scratch::new("before");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for file in fs::read_dir(golden).expect("it is there").map(|file| file.expect("it can be read")) {
        fs::copy(file.path(), scratch.path().join(file.file_name())).expect("there is room");
    }
    let (mut store, recovered) = open(&scratch);
    assert_eq!((recovered.runs[&7].accepted.len() + recovered.runs[&8].accepted.len(), recovered.given.len()), (10, 0));
    for event in 30..200 {
        let whole = Record { given: 9, ..record(7, event, verdict_of(event), &[1; 100]) };
        assert_eq!(store.put(&whole).expect("there is room"), Put::Taken);
        store.commit().expect("the disk has room");
    }
    drop(store);
    let (_, recovered) = open(&scratch);
    assert_eq!(given(&recovered), (30..200).map(|event| ((7, event), 9)).collect());
    let verified = verify(scratch.path()).expect("it can be read");
    assert!(verified.is_good(), "{:?}", verified.findings);
}
