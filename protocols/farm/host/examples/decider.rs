//! A node whose decisions are made in this program: `decider HOST:PORT [workers]`. Ends with its standard input.

use hodo_farm_host::{Address, Bytes, Deciding, Decision, Notice, Stop, Undecided, decide};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A histogram of what one worker has seen. Each worker has its own, so that nothing is locked.
#[derive(Default)]
struct Sizes {
    counts: [u64; 32],
}

impl hodo_farm_host::Decider for Sizes {
    fn decide(&mut self, event: &Undecided) -> Decision {
        self.counts[event.bytes.len().checked_ilog2().map_or(0, |power| power.min(31) as usize)] += 1;
        match event.bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>() {
            _ if event.partial => Decision::Reject,
            sum if sum % 10 == 0 => Decision::AcceptAs(Bytes::from(format!("{}: {sum}\n", event.event))),
            _ => Decision::Reject,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let controller = arguments.next().ok_or("where is the controller? give HOST:PORT")?;
    let workers: u32 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let stop = Arc::new(Stop::new(false));
    let until = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        until.store(true, Ordering::Relaxed);
    });
    let deciders = (0..workers).map(|_| Sizes::default()).collect();
    let told = |notice: Notice<'_>| match notice {
        Notice::Left(error) => eprintln!("{error}; trying again"),
        Notice::Failed { event, why } => eprintln!("event {event}: {why}"),
        Notice::Joined(_) | Notice::Passed(_) => {}
    };
    decide(Deciding::new(vec![Address::Tcp(controller.parse()?)], workers), deciders, told, &stop)?;
    Ok(())
}
