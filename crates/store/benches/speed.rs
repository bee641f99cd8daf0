//! How fast is the store here? `cargo bench -p hodo-store --bench speed -- FOLDER`, on a tmpfs for the cost of the store
//! alone, on a disk for that disk.

use hodo_io::Clock;
use hodo_store::{Durability, Options, Reader, Record, Store, Verdict, verify};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args()
        .nth(1)
        .filter(|word| word != "--bench")
        .ok_or("which folder? It must be empty, and have room for 4 GB")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let clock = Clock::start();
    let seconds = || clock.now().as_nanos() as f64 / 1e9;
    for durability in [Durability::Process, Durability::Disk] {
        let place = folder.join(format!("{durability:?}").to_lowercase());
        let (mut store, recovered) = Store::open(Options { durability, ..Options::new(&place) })?;
        if !recovered.runs.is_empty() {
            return Err(format!("{} is not empty: what is decided is not written again", place.display()).into());
        }
        let data = vec![0x5A; 65_536];
        let count = 30_000;
        let started = seconds();
        for event in 0..count {
            store.put(&record(1, event, Verdict::Accepted, &data))?;
            if event % 16 == 15 {
                store.commit()?;
            }
        }
        store.commit()?;
        let took = seconds() - started;
        println!("{durability:?}: 64 KiB events, 16 a commit: {:.2} GB/s", count as f64 * 65_536.0 / took / 1e9);

        let count = 20_000_000_u64;
        let started = seconds();
        for event in 0..count {
            store.put(&record(2, event, Verdict::Rejected, &[]))?;
            if event % 30_000 == 0 {
                store.commit()?;
            }
        }
        store.commit()?;
        let took = seconds() - started;
        println!("{durability:?}: rejections in order: {:.0} ns each", took * 1e9 / count as f64);

        // As from 20 nodes: each answer up to 64 places from its turn, every 200th accepted with 200 bytes.
        let started = seconds();
        for event in 0..count {
            let verdict = if event % 200 == 7 { Verdict::Accepted } else { Verdict::Rejected };
            store.put(&record(3, (event & !63) | (event.wrapping_mul(37) & 63), verdict, &data[..200]))?;
            if event % 30_000 == 0 {
                store.commit()?;
            }
        }
        store.close_segment()?;
        let took = seconds() - started;
        println!(
            "{durability:?}: verdicts out of order, 0.5 % with 200 bytes: {:.0} ns each",
            took * 1e9 / count as f64
        );
        drop(store);

        let started = seconds();
        let (store, recovered) = Store::open(Options::new(&place))?;
        println!(
            "opened in {:.0} ms: {} events of run 3",
            (seconds() - started) * 1e3,
            recovered.runs[&3].rejected.len()
        );
        drop(store);
        let ledger = std::fs::metadata(place.join("ledger.hodo"))?.len();
        println!("ledger: {:.2} bytes an event of run 3", ledger as f64 / count as f64);
        read(&place, &seconds)?;
        std::fs::remove_dir_all(&place)?;
    }
    Ok(())
}

fn read(place: &Path, seconds: &dyn Fn() -> f64) -> Result<(), Box<dyn std::error::Error>> {
    let started = seconds();
    let mut reader = Reader::open(place)?;
    while reader.next()?.is_some() {}
    let read = seconds() - started;
    let started = seconds();
    let verified = verify(place)?;
    let gigabytes = verified.bytes as f64 / 1e9;
    println!("read: {:.2} GB/s; verified: {:.2} GB/s", gigabytes / read, gigabytes / (seconds() - started));
    Ok(())
}

fn record(run: u32, event: u64, verdict: Verdict, data: &[u8]) -> Record<'_> {
    Record { node: 1, attempts: 1, time_ns: event, ..Record::new(run, event, verdict, data) }
}
