//! The stages of the hub that a link goes through, from the hub's pages: its clients' protocol has no word for them.

use hodo_ipbus::hub::HubStages;
use hodo_ipbus_host::daemon::{PAGES_PORT, STAGES_PATH};
use hodo_machine::{Instant, Sampling, Stamp, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Loss, Operation};
use hodo_tester::Opened;
use std::net::SocketAddr;
use std::sync::mpsc::{self, TryRecvError};
use std::time::Duration;

/// How long the hub may take to tell.
const PATIENCE: Duration = Duration::from_secs(2);
/// How soon its answer is noticed, while the link is served.
const NOTICE: Duration = Duration::from_millis(1);

/// Adds the stages of its hub to a link. The hub's pages are at `pages`, or at their usual port of where the link leads.
pub(crate) fn add(opened: &mut Opened, pages: Option<SocketAddr>) -> Result<(), String> {
    let Some(pages) = pages.or(opened.remote.map(|hub| SocketAddr::new(hub.ip(), PAGES_PORT))) else { return Ok(()) };
    ask(pages).map_err(|why| {
        format!("the hub's stages are not known: {why}; start `hodo hub --stages`, and name its pages with --hub-pages")
    })?;
    // One link asks for all: it is one hub.
    if !opened.links.is_empty() {
        let link = opened.links.remove(0);
        opened.links.insert(0, Box::new(ThroughHub { link, pages }));
    }
    Ok(())
}

fn ask(pages: SocketAddr) -> Result<HubStages, String> {
    let text = hodo_daemon::fetch(pages, STAGES_PATH, PATIENCE).map_err(|why| why.to_string())?;
    HubStages::of_text(&text).ok_or_else(|| format!("http://{pages}{STAGES_PATH} is not a page of stages"))
}

/// A link, and the hub that it goes through.
struct ThroughHub {
    link: Box<dyn Link + Send>,
    pages: SocketAddr,
}

impl Link for ThroughHub {
    fn start(&mut self, operation: Operation) {
        self.link.start(operation);
    }

    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.link.poll(wait, until, done)
    }

    fn now(&self) -> Instant {
        self.link.now()
    }

    fn flush(&mut self) {
        self.link.flush();
    }

    /// Returns the counters of the far end, with the stages that the hub reports in its next turn. Operations that are
    /// under way go on meanwhile.
    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        let far_end = self.link.far_end(until, done)?;
        let (tell, told) = mpsc::channel();
        let pages = self.pages;
        // Nobody waits for it any more where the link has failed. Without a thread there are no stages.
        drop(std::thread::Builder::new().spawn(move || drop(tell.send(ask(pages)))));
        let stages = loop {
            match told.try_recv() {
                Ok(stages) => break stages.ok(),
                Err(TryRecvError::Disconnected) => break None,
                Err(TryRecvError::Empty) => self.link.poll(Wait::Block, self.link.now() + NOTICE, done)?,
            }
        };
        let stages = stages.iter().flat_map(HubStages::iter).map(|(name, spans)| (name, spans.clone())).collect();
        Ok(Some(FarEnd { stages, ..far_end.unwrap_or_default() }))
    }

    fn losses(&self) -> Loss {
        self.link.losses()
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.link.sample_stages(taken)
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        self.link.stamps(stamps);
    }
}
