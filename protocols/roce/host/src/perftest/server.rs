//! The end that a test is carried out with.

use super::{Bench, Perftest, Test, count_byte};
use crate::device::{Device, Reliability, WaitMode};
use crate::exchange::{Exchange, Request};
use crate::pingpong::PingPongError;
use crate::session::{Progress, SessionError};
use hodo_machine::Wait;
use hodo_roce::{Completed, Operation, ReceiveRequest};
use std::time::Duration;

/// The time between two looks at the TCP connection.
pub(super) const LOOK_AFTER: Duration = Duration::from_millis(2);
/// Turns between two looks, where turns do not wait.
const TURNS_PER_LOOK: u32 = 4096;
/// The number of receive requests.
const RECEIVE: u64 = 1;
/// The number of send requests.
const SEND: u64 = 2;

impl Perftest {
    /// Carries out what a client asks for.
    pub(crate) fn serve<D: Device>(
        asked: &Request,
        own: (WaitMode, Duration),
        device: &mut D,
        exchange: &mut Exchange,
        reliability: &Reliability,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), SessionError> {
        let plan = Perftest::of(asked, own.0, own.1).ok_or_else(|| format!("`{asked}` is no test of this version"));
        let mtu = asked.get("mtu").unwrap_or(reliability.mtu);
        let prepared = plan.and_then(|plan| plan.check().map(|()| plan)).map_err(SessionError::Usage);
        let prepared = prepared.and_then(|plan| Ok((Bench::new(device, &plan)?, plan)));
        let (mut bench, plan) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                exchange.refuse(&error)?;
                return Err(error);
            }
        };
        exchange.request(&Request::default().with("test", &plan.test.name()))?;
        told(Progress::Local(&bench.local));
        let remote = exchange.hear()?;
        told(Progress::Remote(&remote));
        bench.device.connect(&bench.local, &remote, &Self::reliability(&Reliability { mtu, ..*reliability }))?;
        exchange.tell(&bench.local)?;
        bench.hear_region(exchange)?;
        bench.tell_region(exchange)?;
        for size in plan.sizes.clone() {
            bench.serve_size(size, exchange)?;
        }
        exchange.wait_done()?;
        Ok(())
    }
}

impl<D: Device> Bench<'_, D> {
    /// Serves one size, from the client's line to the next.
    fn serve_size(&mut self, size: u32, exchange: &mut Exchange) -> Result<(), SessionError> {
        exchange.answer()?;
        self.fill(size)?;
        self.clear(size)?;
        let ahead =
            if self.plan.test.is_send() { u64::from(self.plan.receive_depth).min(self.plan.iterations) } else { 0 };
        for _ in 0..ahead {
            self.receive(size)?;
        }
        exchange.request(&Request::default().with("ready", &size))?;
        let came = match self.plan.test {
            Test::WriteLatency => self.write_back(size, exchange),
            _ => self.drive(size, ahead, exchange),
        };
        let checks = self.plan.checks;
        let checked = came.and_then(|()| if checks { Ok(self.check_size(size)?) } else { Ok(()) });
        exchange.answer()?;
        match checked {
            Ok(()) => Ok(exchange.request(&Request::default().with("right", &size))?),
            Err(error) => {
                exchange.refuse(&error)?;
                Err(error)
            }
        }
    }

    fn receive(&mut self, size: u32) -> Result<(), PingPongError> {
        let entries = [self.near(true, size)];
        Ok(self.device.post_receive(self.local.number, &ReceiveRequest { id: RECEIVE, entries: &entries })?)
    }

    /// Keeps the device going until the client says that it is over; sends back what comes in tests of latency.
    fn drive(&mut self, size: u32, ahead: u64, exchange: &Exchange) -> Result<(), SessionError> {
        let (mut received, mut posted) = (0, ahead);
        let mut turns = 0;
        loop {
            self.take(self.plan.wait.wait(), LOOK_AFTER)?;
            turns += 1;
            if (self.completions.is_empty() || turns % TURNS_PER_LOOK == 0) && exchange.has_come()? {
                return Ok(());
            }
            let came = self.completions.iter().filter(|completion| completion.kind == Completed::Receive).count();
            for _ in 0..came {
                received += 1;
                if posted < self.plan.iterations {
                    self.receive(size)?;
                    posted += 1;
                }
                if self.plan.test == Test::SendLatency && received <= self.plan.iterations {
                    self.post(SEND, Operation::Send, size)?;
                }
            }
        }
    }

    /// Looks at the memory, and writes back whatever has come.
    fn write_back(&mut self, size: u32, exchange: &Exchange) -> Result<(), SessionError> {
        let last = size as usize - 1;
        let (mut number, mut turns, mut outstanding) = (0, 0, 0);
        loop {
            self.take(Wait::Never, LOOK_AFTER)?;
            outstanding -= self.completions.len();
            turns += 1;
            if turns % TURNS_PER_LOOK == 0 && exchange.has_come()? {
                return Ok(());
            }
            // The far end is ahead by at most one, so that one write is outstanding.
            if number < self.plan.iterations && outstanding == 0 && self.byte(self.half + last)? == count_byte(number) {
                self.device.write(self.region, last, &[count_byte(number)])?;
                self.post(SEND, Operation::Write(self.far(true, 0)), size)?;
                outstanding += 1;
                number += 1;
            }
        }
    }

    /// Checks what the client has left in this end's memory.
    fn check_size(&mut self, size: u32) -> Result<(), PingPongError> {
        match self.plan.test {
            Test::ReadLatency | Test::ReadBandwidth => Ok(()),
            Test::AtomicLatency | Test::AtomicBandwidth => {
                let (found, expected) = (self.word(self.half)?, self.plan.iterations);
                // A queue pair carries its operations out in order, so that every comparison holds and both kinds count.
                let number = expected - 1;
                if found == expected { Ok(()) } else { Err(PingPongError::WrongAtomic { number, found, expected }) }
            }
            Test::WriteLatency => self.verify(size, 1),
            _ => self.verify(size, 0),
        }
    }
}
