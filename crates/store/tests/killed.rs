//! A writing process is killed, many times, wherever it is.

mod pattern;
mod scratch;

use hodo_store::{Item, Options, Reader, Recovered, Store, Verdict, verify};
use scratch::Scratch;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Set for the process that writes: where.
const FOLDER: &str = "HODO_STORE_WRITER_FOLDER";

/// Writes until it is killed, and says after each commit how far it is; a test only for those who start it so.
#[test]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let options = Options { segment_bytes: 20 << 20, ..Options::new(folder) };
    let (mut store, recovered) = Store::open(options).expect("it opens after a kill");
    let bytes = pattern::bytes();
    let mut out = std::io::stdout().lock();
    let undecided = |event: &u64| recovered.runs.get(&1).is_none_or(|ledger| ledger.verdict(*event).is_none());
    for event in (0_u64..).filter(undecided) {
        store.put(&pattern::record(event, &bytes)).expect("the disk has room");
        if event % 400 == 399 {
            store.commit().expect("the disk has room");
            out.write_all(format!("\n{event}\n").as_bytes()).expect("somebody listens");
            out.flush().expect("somebody listens");
        }
    }
}

#[test]
fn what_was_committed_survives_50_kills() {
    let mut state = 11_u64;
    let (mut acknowledged, mut cuts, mut kills) = (0, 0, 0);
    // More than 50 where none of them was amid a write: how often one is depends on the disk.
    while kills < 50 || cuts == 0 && kills < 500 {
        let scratch = Scratch::new(&format!("kills-{kills}"));
        for _ in 0..10 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lines = 1 + (state >> 61) as usize;
            // Every second comes when files have begun to grow; the others anywhere in a commit, after so many rounds of
            // nothing.
            let moment = if kills % 2 == 0 { Moment::Growth } else { Moment::Rounds(state >> 44 & 0x7_FFFF) };
            let last = kill_after(scratch.path(), lines, moment);
            kills += 1;
            let (store, recovered) = Store::open(Options::new(scratch.path())).expect("it opens after a kill");
            drop(store);
            check(&recovered, last);
            cuts += u64::from(recovered.cut_bytes > 0);
            acknowledged = acknowledged.max(last);
        }
        read_back(scratch.path());
    }
    assert!(acknowledged > 0 && cuts > 0, "{cuts} of {kills} kills came while a commit was written: it proves nothing");
}

/// When a writer is killed, after it has said how far it is.
#[derive(Clone, Copy)]
enum Moment {
    Rounds(u64),
    Growth,
}

/// Kills a writer some time after so many commits, and tells the last event that it said was durable.
fn kill_after(folder: &Path, lines: usize, moment: Moment) -> u64 {
    let mut command = Command::new(std::env::current_exe().expect("this test has a path"));
    command.args(["--exact", "the_process_that_is_killed", "--nocapture"]).env(FOLDER, folder);
    let mut writer = command.stdout(Stdio::piped()).spawn().expect("it runs already");
    let output = BufReader::new(writer.stdout.take().expect("it is piped"));
    // The test harness has its own words between the numbers.
    let mut said = output.lines().map_while(Result::ok).filter_map(|line| line.parse().ok());
    let last = said.by_ref().take(lines).last().expect("it commits");
    match moment {
        Moment::Rounds(rounds) => (0..rounds).for_each(|round| {
            std::hint::black_box(round);
        }),
        Moment::Growth => {
            let before = bytes_in(folder);
            while bytes_in(folder) == before {}
        }
    }
    writer.kill().expect("it runs");
    writer.wait().expect("it was started here");
    // What is left in the pipe was said too.
    said.last().unwrap_or(last)
}

fn bytes_in(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("it is there").flatten();
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Checks that all acknowledged events are there, and none that was not put.
fn check(recovered: &Recovered, last: u64) {
    assert_eq!(recovered.damaged, []);
    let ledger = &recovered.runs[&1];
    for event in 0..=last {
        assert_eq!(ledger.verdict(event), Some(pattern::verdict(event)), "event {event} of {last}");
    }
    // The writer was at most one commit further.
    for event in last + 1..last + 800 {
        assert!([None, Some(pattern::verdict(event))].contains(&ledger.verdict(event)));
    }
    let beyond = ledger.of(Verdict::Accepted).iter().last().map_or(0, |range| range.end);
    assert!(beyond <= last + 800, "event {beyond} was never put");
}

/// Checks that each event with data is there once, byte for byte.
fn read_back(folder: &Path) {
    let mut reader = Reader::open(folder).expect("it is there");
    let bytes = pattern::bytes();
    while let Some(item) = reader.next().expect("it can be read") {
        match item {
            Item::Event(record) => assert_eq!(record, pattern::record(record.event, &bytes)),
            Item::Verdicts(..) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(verify(folder).expect("it can be read").findings, []);
}
