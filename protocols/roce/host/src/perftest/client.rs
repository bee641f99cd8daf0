//! The end that asks for a test, and measures.

use super::rows::{Bandwidth, Latency, PEAK_MAX, Row};
use super::{Atomic, Bench, Perftest, Test, count_byte};
use crate::device::{Device, Reliability};
use crate::exchange::{Exchange, Request};
use crate::pingpong::PingPongError;
use crate::session::{Progress, SessionError};
use hodo_machine::{Instant, Wait};
use hodo_roce::{Completed, Operation, ReceiveRequest};

/// The number of receive requests; send requests count from 0.
const RECEIVE: u64 = u64::MAX;

impl Perftest {
    /// Requests the test of a server, and measures every size.
    pub(crate) fn ask<D: Device>(
        &self,
        device: &mut D,
        exchange: &mut Exchange,
        reliability: &Reliability,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), SessionError> {
        exchange.request(&self.to_request().with("mtu", &reliability.mtu))?;
        exchange.answer()?;
        let mut bench = Bench::new(device, self)?;
        told(Progress::Local(&bench.local));
        exchange.tell(&bench.local)?;
        let remote = exchange.hear()?;
        told(Progress::Remote(&remote));
        bench.device.connect(&bench.local, &remote, &Self::reliability(reliability))?;
        bench.tell_region(exchange)?;
        bench.hear_region(exchange)?;
        for size in self.sizes.clone() {
            let row = bench.measure(size, exchange)?;
            told(Progress::Row(&row));
        }
        exchange.done()?;
        Ok(())
    }
}

impl<D: Device> Bench<'_, D> {
    /// Measures one size.
    fn measure(&mut self, size: u32, exchange: &mut Exchange) -> Result<Row, SessionError> {
        self.fill(size)?;
        self.clear(size)?;
        if self.plan.test == Test::SendLatency {
            self.post_receive(size)?;
        }
        exchange.request(&Request::default().with("size", &size))?;
        exchange.answer()?;
        let row = if self.plan.test.is_latency() { self.latency(size)? } else { self.bandwidth(size)? };
        exchange.request(&Request::default().with("over", &size))?;
        if self.plan.checks && matches!(self.plan.test, Test::ReadLatency | Test::ReadBandwidth) {
            self.verify(size, 0)?;
        }
        self.attend(exchange)?;
        exchange.answer()?;
        Ok(row)
    }

    /// Keeps the device going until the server has answered: an acknowledgement may still be asked for.
    fn attend(&mut self, exchange: &Exchange) -> Result<(), SessionError> {
        let give_up = self.device.now() + self.plan.patience;
        while !exchange.has_come()? {
            self.take(Wait::Block, super::server::LOOK_AFTER)?;
            if self.device.now() > give_up {
                return Err(PingPongError::Stalled(self.plan.patience).into());
            }
        }
        Ok(())
    }

    fn operation(&self, number: u64) -> Operation {
        match self.plan.test {
            Test::SendLatency | Test::SendBandwidth => Operation::Send,
            Test::WriteLatency | Test::WriteBandwidth => Operation::Write(self.far(true, 0)),
            Test::ReadLatency | Test::ReadBandwidth => Operation::Read(self.far(false, 0)),
            Test::AtomicLatency | Test::AtomicBandwidth => match self.plan.atomic {
                Atomic::FetchAdd => Operation::FetchAdd { remote: self.far(true, 0), add: 1 },
                Atomic::CompareSwap => {
                    Operation::CompareSwap { remote: self.far(true, 0), compare: number, swap: number + 1 }
                }
            },
        }
    }

    fn post_receive(&mut self, size: u32) -> Result<(), PingPongError> {
        let entries = [self.near(true, size)];
        Ok(self.device.post_receive(self.local.number, &ReceiveRequest { id: RECEIVE, entries: &entries })?)
    }

    fn latency(&mut self, size: u32) -> Result<Row, PingPongError> {
        let mut samples = Vec::with_capacity(self.plan.iterations as usize);
        for number in 0..self.plan.iterations {
            let began = match self.plan.test {
                Test::SendLatency => self.send_and_receive(number, size)?,
                Test::WriteLatency => self.write_and_see(number, size)?,
                _ => self.one(number, size)?,
            };
            samples.push(self.device.now().nanos_since(began));
        }
        let parts = if matches!(self.plan.test, Test::SendLatency | Test::WriteLatency) { 2 } else { 1 };
        Ok(Row::Latency(Latency::of(size, &mut samples, parts)))
    }

    /// Sends a message, and waits for the server's. Returns when it began.
    fn send_and_receive(&mut self, number: u64, size: u32) -> Result<Instant, PingPongError> {
        let began = self.device.now();
        self.post(number, Operation::Send, size)?;
        let (mut sent, mut received) = (false, false);
        while !(sent && received) {
            self.wait()?;
            sent |= self.completions.iter().any(|completion| completion.kind == Completed::Send);
            received |= self.completions.iter().any(|completion| completion.id == RECEIVE);
        }
        if number + 1 < self.plan.iterations {
            self.post_receive(size)?;
        }
        Ok(began)
    }

    /// Writes to the server's memory, and looks at this end's until the server has written there.
    fn write_and_see(&mut self, number: u64, size: u32) -> Result<Instant, PingPongError> {
        let last = size as usize - 1;
        self.device.write(self.region, last, &[count_byte(number)])?;
        let began = self.device.now();
        self.post(number, Operation::Write(self.far(true, 0)), size)?;
        let mut written = false;
        let give_up = began + self.plan.patience;
        while !written || self.byte(self.half + last)? != count_byte(number) {
            self.take(Wait::Never, self.plan.patience)?;
            written |= !self.completions.is_empty();
            if self.device.now() > give_up {
                return Err(PingPongError::Stalled(self.plan.patience));
            }
        }
        Ok(began)
    }

    /// Carries out one operation. Returns when it began.
    fn one(&mut self, number: u64, size: u32) -> Result<Instant, PingPongError> {
        let began = self.device.now();
        self.post(number, self.operation(number), size)?;
        self.wait()?;
        self.check_atomic(number)?;
        Ok(began)
    }

    /// Checks that an atomic operation returned what was there before it.
    fn check_atomic(&self, number: u64) -> Result<(), PingPongError> {
        if !self.plan.test.is_atomic() || !self.plan.checks {
            return Ok(());
        }
        let found = self.word(self.half)?;
        if found == number {
            return Ok(());
        }
        Err(PingPongError::WrongAtomic { number, found, expected: number })
    }

    fn wait(&mut self) -> Result<(), PingPongError> {
        self.take(self.plan.wait.wait(), self.plan.patience)?;
        if self.completions.is_empty() { Err(PingPongError::Stalled(self.plan.patience)) } else { Ok(()) }
    }

    fn bandwidth(&mut self, size: u32) -> Result<Row, PingPongError> {
        let (iterations, depth) = (self.plan.iterations, u64::from(self.plan.send_depth));
        let stamps = if iterations <= PEAK_MAX { iterations as usize } else { 0 };
        let (mut posted_at, mut completed_at) = (Vec::with_capacity(stamps), Vec::with_capacity(stamps));
        let (mut posted, mut completed) = (0, 0);
        let began = self.device.now();
        while completed < iterations {
            while posted < iterations && posted - completed < depth {
                if stamps > 0 {
                    posted_at.push(self.device.now().nanos_since(began));
                }
                self.post(posted, self.operation(posted), size)?;
                posted += 1;
            }
            self.wait()?;
            let came = self.completions.len() as u64;
            if stamps > 0 {
                let now = self.device.now().nanos_since(began);
                completed_at.extend((0..came).map(|_| now));
            }
            completed += came;
        }
        let span = self.device.now() - began;
        Ok(Row::Bandwidth(Bandwidth::of(size, iterations, span, &posted_at, &completed_at)))
    }
}
