//! A source whose events this program reads out, here of a detector that counts: `readout HOST:PORT [events] [threads]`.

use hodo_farm_host::{Address, Bytes, ReadingOut, Readout};
use std::time::Duration;

/// Returns the bytes that one channel of the detector recorded in an event.
fn read_out(event: u64) -> Bytes {
    let length = event % 4096;
    (0..length).map(|place| (place ^ event) as u8).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let to = arguments.next().ok_or("where is the controller, or the builder? give HOST:PORT")?;
    let events: u64 = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let threads: u64 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let readout = Readout::start(ReadingOut { memory: 1 << 20, ..ReadingOut::new(Address::Tcp(to.parse()?)) })?;
    std::thread::scope(|scope| {
        let give =
            |first: u64| (first..events).step_by(threads as usize).try_for_each(|n| readout.give(n, read_out(n)));
        let readers: Vec<_> = (0..threads).map(|first| scope.spawn(move || give(first))).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("it does not panic"))
    })?;
    let given = readout.finish(Duration::from_secs(10))?;
    println!(
        "{} accepted, {} rejected, {} too late, {} without a verdict{}",
        given.accepted,
        given.rejected,
        given.late,
        given.kept,
        given.away.map(|why| format!(": {why}")).unwrap_or_default()
    );
    if given.kept > 0 { Err("not every event has its verdict".into()) } else { Ok(()) }
}
