//! The connection is lost at every byte, either way: each execution ends once, updates keep their order, and everything works afterwards.

use crate::rig;

use hodo_pva::client::{Command, Event, Failure, Kind};
use hodo_pva::server::{Command as Ask, Event as Asked};
use rig::{Served, sample};
use std::time::Duration;

const MONITOR: u32 = 9;
const EXECUTED: [(u32, u32, Kind); 5] =
    [(0, 0, Kind::Get), (1, 0, Kind::Put), (2, 1, Kind::Call), (3, 0, Kind::PutGet), (4, 0, Kind::Process)];

/// The course of a run: the ends of executions, and the updates.
#[derive(Default)]
struct Course {
    rig: Option<Served>,
    done: [u32; 5],
    failed: [u32; 5],
    updates: Vec<(f64, bool)>,
    beginnings: usize,
}

impl Course {
    fn rig(&mut self) -> &mut Served {
        self.rig.get_or_insert_with(Served::pair)
    }

    /// Lets time pass, answers calls, takes updates.
    fn go_on(&mut self) {
        for _ in 0..3 {
            self.rig().pass(Duration::from_millis(200));
            while let Some(event) = self.rig().far[0].1.pop() {
                let (Asked::Put { call, .. } | Asked::Call { call, .. }) = event else { continue };
                self.rig().ask(1, Ask::Answer { call, result: Ok(None) });
            }
            let updates = self.rig().updates(MONITOR);
            self.updates.extend(updates);
        }
        for event in self.rig().told() {
            match event {
                Event::Ready { operation: MONITOR } => self.beginnings += 1,
                Event::Done { operation } => self.done[operation as usize] += 1,
                Event::Failed { operation, why: Failure::Disconnected } => self.failed[operation as usize] += 1,
                Event::Failed { .. } | Event::Refused { .. } => panic!("{event:?}"),
                _ => {}
            }
        }
    }

    fn execute(&mut self) {
        for (operation, _, kind) in EXECUTED {
            let value = Box::new(sample(4.0));
            self.rig().command(match kind {
                Kind::Put | Kind::PutGet => Command::Put { operation, value },
                Kind::Call => Command::Call { operation, argument: Some(value) },
                _ => Command::Execute { operation },
            });
        }
    }

    /// Runs with a cut after so many bytes one way.
    fn run(way: usize, at: Option<usize>) -> Course {
        let mut course = Course::default();
        let rig = course.rig();
        rig.cut_after[way] = at;
        rig.open(0, "box", 1);
        rig.open(1, "asked", 1);
        for (operation, channel, kind) in EXECUTED {
            rig.prepare(operation, channel, kind, "");
        }
        rig.prepare(MONITOR, 0, Kind::Monitor, "record[queueSize=2,pipeline=true]");
        rig.command(Command::Execute { operation: MONITOR });
        course.execute();
        course.go_on();
        for number in 10..14 {
            course.rig().post("box", number.into());
            course.go_on();
        }
        course
    }

    fn check(mut self, what: &str) {
        let ends: Vec<u32> = self.done.iter().zip(&self.failed).map(|(done, failed)| done + failed).collect();
        assert_eq!(ends, [1; 5], "{what}: done {:?}, failed {:?}", self.done, self.failed);
        let posted: Vec<_> = self.updates.iter().filter(|(number, _)| *number >= 10.0).collect();
        assert!(posted.is_sorted_by(|one, next| one.0 <= next.0), "{what}: {:?}", self.updates);
        assert_eq!(posted.last(), Some(&&(13.0, false)), "{what}: {:?}", self.updates);
        assert!(posted.iter().all(|(_, overrun)| !overrun), "{what}: none is merged: {:?}", self.updates);
        assert!((1..=2).contains(&self.beginnings), "{what}: {} beginnings", self.beginnings);
        (self.done, self.failed) = ([0; 5], [0; 5]);
        self.execute();
        self.go_on();
        assert_eq!((self.done, self.failed), ([1; 5], [0; 5]), "{what}: all is well afterwards");
    }
}

#[test]
fn the_connection_may_be_lost_at_every_byte() {
    let whole = Course::run(0, None);
    let carried = whole.rig.as_ref().expect("it ran").carried;
    whole.check("nothing is cut");
    assert!(carried.iter().all(|bytes| (500..3000).contains(bytes)), "{carried:?}");
    for (way, bytes) in carried.into_iter().enumerate() {
        for at in 0..bytes {
            Course::run(way, Some(at)).check(&format!("way {way}, after {at} bytes"));
        }
    }
}
