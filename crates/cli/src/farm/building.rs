//! What a builder's page tells, for those who read it.

use super::builder::page::{PATH, names};
use super::operate::PATIENCE;
use super::reading::time;
use crate::Error;
use hodo_daemon::fetch;
use serde_json::Value;
use std::fmt::Write;
use std::net::SocketAddr;

/// A builder at one moment.
#[derive(Debug, Clone, Default)]
pub struct Building {
    pub state: String,
    pub uptime_s: f64,
    pub complete: u64,
    pub incomplete: u64,
    pub open: u64,
    pub waiting: u64,
    pub fragments: u64,
    pub lost: u64,
    pub late: u64,
    pub duplicate: u64,
    pub unexpected: u64,
    pub bad_datagrams: u64,
    pub sources: u64,
    pub absent: Vec<u32>,
    pub dead_time_s: f64,
}

impl Building {
    /// What a builder tells of itself.
    pub fn read(pages: SocketAddr) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Failed(format!("http://{pages}{PATH}: {why}"));
        let page: Value = serde_json::from_str(&fetch(pages, PATH, PATIENCE)?)
            .map_err(|why| wrong(&format!("that is no JSON: {why}")))?;
        Building::of(&page).ok_or_else(|| wrong("that is not what a builder of a farm tells"))
    }

    fn of(page: &Value) -> Option<Self> {
        let count = |path: &str| page.pointer(path)?.as_u64();
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        Some(Building {
            state: page.get("state")?.as_str()?.to_owned(),
            uptime_s: page.get("uptime_s")?.as_f64()?,
            complete: count("/events/complete")?,
            incomplete: count("/events/incomplete")?,
            open: count("/events/open")?,
            waiting: count("/events/waiting")?,
            fragments: count("/fragments/taken_in")?,
            lost: count("/fragments/lost")?,
            late: count("/fragments/late")?,
            duplicate: count("/fragments/duplicate")?,
            unexpected: count("/fragments/unexpected")?,
            bad_datagrams: count("/datagrams/bad")?,
            sources: count("/connections/sources")?,
            absent: page.pointer("/connections/absent")?.as_array()?.iter().map(number).collect::<Option<_>>()?,
            dead_time_s: page.get("dead_time_s")?.as_f64()?,
        })
    }

    /// Its lines for people.
    pub fn text(&self) -> String {
        let Building { complete, incomplete, open, waiting, lost, late, duplicate, unexpected, .. } = self;
        let mut text = format!("builder: {}, up {}\n", self.state, time(self.uptime_s));
        let _ = writeln!(
            text,
            "{} fragments in, {lost} lost, {late} late, {duplicate} duplicate, {unexpected} unexpected, {} bad datagrams",
            self.fragments, self.bad_datagrams
        );
        let _ = writeln!(text, "{complete} events complete, {incomplete} incomplete, {open} open, {waiting} waiting");
        let dead = 100.0 * self.dead_time_s / self.uptime_s.max(1e-9);
        let (sources, absent) = (self.sources, names(&self.absent));
        let _ = writeln!(text, "{sources} sources{absent}; dead time {} ({dead:.2} %)", time(self.dead_time_s));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm::builder::page::{Seen, page};
    use hodo_catalog::farm::builder::Counters;
    use hodo_machine::Instant;

    #[test]
    fn reads_what_the_page_tells() {
        let counters = Counters {
            complete: 5,
            incomplete: 2,
            lost_fragments: 3,
            bad_datagrams: 7,
            sources: 1,
            ..Counters::default()
        };
        let seen = Seen { now: Instant::ZERO, counters, absent: vec![1, 4], turned_away: 0 };
        let building = Building::of(&page(&seen, ([127, 0, 0, 1], 1).into())).expect("it is a page");
        let text = building.text();
        for line in ["builder: building, up 0.0 s", ", 3 lost, ", "7 bad datagrams", "5 events complete, 2 incomplete"]
        {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("1 sources; not there is source 1, 4; dead time"), "{text}");
        assert!(Building::of(&serde_json::json!({})).is_none());
    }
}
