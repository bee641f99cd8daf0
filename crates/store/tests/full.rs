//! A disk that is full, for real: a tmpfs of this test's own, in a namespace of its own.

mod pattern;
mod scratch;

use hodo_store::{Options, Put, Record, Store, verify};
use scratch::Scratch;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Set for the process that writes: the file system.
const FOLDER: &str = "HODO_STORE_FULL_FOLDER";

#[test]
fn a_full_disk_costs_nothing_but_time() {
    let scratch = Scratch::new("tmpfs");
    let test = std::env::current_exe().expect("this test has a path");
    let script = "mount -t tmpfs -o size=2m tmpfs \"$1\" && exec \"$2\" --exact the_process_on_a_full_disk --nocapture";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(scratch.path()).arg(test);
    let out = command.env(FOLDER, scratch.path()).output().expect("unshare is there: util-linux");
    let (said, complaint) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}{complaint}");
    let times = said.lines().find_map(|line| line.strip_prefix("full: ")?.parse::<u64>().ok());
    assert!(times.expect("it says how often") > 100, "{said}");
}

/// Fills the disk: a ballast of another size each time moves the end of the disk through all writes of a commit; a test only
/// for those who start it so.
#[test]
fn the_process_on_a_full_disk() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let full: u64 = (0..60).map(|step| fill(Path::new(&folder), step).expect("only the disk is full")).sum();
    println!("\nfull: {full}");
}

type Failure = Box<dyn std::error::Error>;

/// Returns how often the disk was full.
fn fill(folder: &Path, step: usize) -> Result<u64, Failure> {
    let ballast = folder.join("ballast");
    let store_folder = folder.join("store");
    fs::write(&ballast, vec![1; 1_500_000 - step * 4096])?;
    let options = Options { segment_bytes: 300_000, waiting_bytes: 200_000, ..Options::new(&store_folder) };
    let (mut store, _) = Store::open(options.clone())?;
    let (bytes, mut event, mut full, mut refused) = (pattern::bytes(), 0, 0, 0);
    while ballast.exists() || event < 300 {
        let record = pattern::record(event, &bytes);
        match store.put(&Record { data: &record.data[..record.data.len() / 10], ..record }) {
            Ok(Put::Taken) => event += 1,
            Ok(Put::AlreadyDecided) => return Err(format!("event {event} was taken, and called refused").into()),
            // All that may wait waits: nothing was taken, so it is put once more after there is room.
            Err(error) if error.is_full() => {
                refused += 1;
                fs::remove_file(&ballast)?;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        if event % 5 != 0 {
            continue;
        }
        match store.commit() {
            Ok(done) if done.taken == event => {}
            Ok(done) => return Err(format!("{} records are durable, {event} were put", done.taken).into()),
            Err(error) if error.is_full() => full += 1,
            Err(error) => return Err(error.into()),
        }
        if full >= 3 && ballast.exists() {
            fs::remove_file(&ballast)?;
        }
    }
    store.commit()?;
    drop(store);
    let verified = verify(&store_folder)?;
    let decided: u64 = verified.runs[&1].values().sum();
    if !verified.findings.is_empty() || decided != event {
        return Err(format!("{decided} of {event} events, {:?}", verified.findings).into());
    }
    let (_, recovered) = Store::open(options)?;
    for event in 0..event {
        if recovered.runs[&1].verdict(event) != Some(pattern::verdict(event)) {
            return Err(format!("event {event} is lost").into());
        }
    }
    fs::remove_dir_all(&store_folder)?;
    Ok(full + refused)
}
