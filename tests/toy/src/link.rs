//! A client on any driver as a link.

use crate::machines::{Client, Event, Request};
use hodo_machine::{Instant, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Loss, Operation, Outcome};
use hodo_tester::{Settings, TransportCounters, ended, until_ready};
use std::sync::atomic::AtomicBool;

/// One connection, with one channel.
pub(crate) struct ToyLink<D> {
    driver: D,
    is_ready: bool,
    failed: Option<LinkError>,
}

impl<D: TransportCounters<Machine = Client>> ToyLink<D> {
    pub(crate) fn open(driver: D, settings: &Settings, stop: &AtomicBool) -> Result<Self, LinkError> {
        let mut link = ToyLink { driver, is_ready: false, failed: None };
        until_ready(&mut link, settings.timeout, stop, |link| link.is_ready)?;
        Ok(link)
    }

    pub(crate) fn driver(&self) -> &D {
        &self.driver
    }
}

impl<D: TransportCounters<Machine = Client>> Link for ToyLink<D> {
    fn start(&mut self, operation: Operation) {
        self.driver.command(Request { tag: operation.tag, size: operation.size });
    }

    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let ToyLink { driver, is_ready, failed } = self;
        let outcome = driver.turn(wait, until, &mut |event| match event {
            Event::Ready => *is_ready = true,
            Event::Done(tag) => done.push(Completion { tag, outcome: Outcome::Done }),
            Event::Closed(why) => *failed = Some(LinkError::Closed { channel: 0, why }),
        });
        ended(outcome, self.failed.as_ref())
    }

    fn now(&self) -> Instant {
        self.driver.now()
    }

    fn far_end(&mut self, _until: Instant, _done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        Ok(None)
    }

    fn losses(&self) -> Loss {
        self.driver.transport_losses()
    }
}
