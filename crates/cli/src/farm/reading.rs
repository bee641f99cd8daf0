use super::timeline::Moment;
use hodo_io::usage::ProcessUsage;
use hodo_machine::Spans;
use hodo_store::Uploads;
use serde_json::Value;
use std::fmt::Write;

/// What a controller's page tells, for those who read it.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub run: u64,
    pub state: String,
    pub policy: String,
    pub uptime_s: f64,
    pub dead_time_s: f64,
    pub events: Events,
    pub bytes_in: u64,
    /// Bytes behind the tokens of nodes, on the average.
    pub token_data: u64,
    pub tokens_waiting: u64,
    pub nodes_lost: u64,
    pub sources: u64,
    /// Connections that were refused, those for which there was no room, and those that broke the rules.
    pub unwelcome: [u64; 3],
    pub stored_events: u64,
    pub stored_bytes: u64,
    pub commits: u64,
    pub uploads: Option<Uploads>,
    /// How long events were away, from when each was given to a node until its token came.
    pub answers: Spans,
    /// What the controller's process has used.
    pub usage: Option<ProcessUsage>,
    /// Why the store takes nothing.
    pub failing: Option<String>,
    /// Nodes that are there.
    pub nodes: Vec<Node>,
    /// Nodes that are gone.
    pub gone: Vec<Node>,
    /// How far it had come when.
    pub timeline: Vec<Moment>,
}

/// The balance of events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Events {
    pub taken_in: u64,
    pub accepted: u64,
    pub rejected: u64,
    pub quarantined: u64,
    pub incomplete: u64,
    pub in_hand: u64,
    pub duplicates: u64,
    pub waiting: u64,
    pub found_no_token: u64,
    pub given: u64,
    pub redispatched: u64,
    pub uncommitted: u64,
    pub uncommitted_bytes: u64,
}

impl Events {
    /// Events with a verdict.
    pub fn decided(&self) -> u64 {
        self.accepted + self.rejected + self.quarantined + self.incomplete
    }
}

/// What of the store was copied elsewhere, in one line.
pub fn uploaded(uploads: &Uploads) -> String {
    let Uploads { segments, bytes, waiting, failures, last_failure } = uploads;
    let why = last_failure.as_ref().map_or_else(String::new, |why| format!("; the last: {why}"));
    format!("{segments} segments of {bytes} bytes copied, {waiting} waiting, {failures} failures{why}")
}

/// A node's part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Node {
    pub number: u64,
    pub given: u64,
    pub answered: u64,
    pub accepted: u64,
    pub failed: u64,
    pub in_flight: u64,
    pub waited_us: f64,
    pub decided_us: f64,
}

impl Reading {
    /// Reads the page's text.
    pub fn parse(text: &str) -> Result<Reading, String> {
        let page: Value = serde_json::from_str(text).map_err(|why| format!("that is no JSON: {why}"))?;
        Reading::of(&page).ok_or_else(|| "that is not what a controller of a farm tells".to_owned())
    }

    /// Reads the page.
    pub fn of(page: &Value) -> Option<Reading> {
        let count = |path: &str| page.pointer(path)?.as_u64();
        let event = |name: &str| page.get("events")?.get(name)?.as_u64();
        let text = |name: &str| page.get(name)?.as_str().map(str::to_owned);
        Some(Reading {
            run: count("/run")?,
            state: text("state")?,
            policy: text("policy")?,
            uptime_s: page.get("uptime_s")?.as_f64()?,
            dead_time_s: page.get("dead_time_s")?.as_f64()?,
            events: Events {
                taken_in: event("taken_in")?,
                accepted: event("accepted")?,
                rejected: event("rejected")?,
                quarantined: event("quarantined")?,
                incomplete: event("incomplete")?,
                in_hand: event("in_hand")?,
                duplicates: event("duplicates")?,
                waiting: event("waiting")?,
                found_no_token: event("found_no_token")?,
                given: event("given")?,
                redispatched: event("redispatched")?,
                uncommitted: event("uncommitted")?,
                // Not in what was kept of a controller before there was it.
                uncommitted_bytes: event("uncommitted_bytes").unwrap_or(0),
            },
            bytes_in: count("/bytes/taken_in")?,
            token_data: count("/bytes/answered")?.div_ceil(count("/tokens/received")?.max(1)),
            tokens_waiting: count("/tokens/waiting")?,
            nodes_lost: count("/connections/nodes_lost")?,
            sources: count("/connections/sources")?,
            unwelcome: ["refused", "turned_away", "misbehaved"]
                .map(|what| count(&format!("/connections/{what}")).unwrap_or(0)),
            stored_events: count("/store/events")?,
            stored_bytes: count("/store/bytes")?,
            commits: count("/store/commits")?,
            answers: page.get("answers").and_then(answers).unwrap_or_default(),
            usage: page.get("cpu").and_then(usage),
            uploads: page.pointer("/store/uploads").and_then(uploads),
            failing: page.pointer("/store/failing").and_then(Value::as_str).map(str::to_owned),
            nodes: nodes(page.get("nodes")?)?,
            gone: nodes(page.get("nodes_gone")?)?,
            timeline: page.get("timeline")?.as_array()?.iter().map(moment).collect::<Option<_>>()?,
        })
    }

    /// CPU of the controller for each event that has its verdict.
    pub fn cpu_ns_per_event(&self) -> Option<f64> {
        let decided = self.events.decided();
        self.usage.filter(|_| decided > 0).map(|usage| usage.cpu_s() * 1e9 / decided as f64)
    }

    /// Its first lines for people: what it does, and the balance.
    pub fn text(&self) -> String {
        let Events { taken_in, accepted, rejected, quarantined, incomplete, in_hand, .. } = self.events;
        let mut text = format!("run {}: {}, {}, up {}\n", self.run, self.state, self.policy, time(self.uptime_s));
        let _ = writeln!(
            text,
            "{taken_in} events in = {accepted} accepted + {rejected} rejected + {quarantined} quarantined + {incomplete} \
             incomplete + {in_hand} in hand"
        );
        let _ = writeln!(
            text,
            "{} nodes ({} lost), {} sources, {} tokens waiting, {} events waiting",
            self.nodes.len(),
            self.nodes_lost,
            self.sources,
            self.tokens_waiting,
            self.events.waiting
        );
        let _ = writeln!(
            text,
            "{} events found no token, {} re-dispatched, {} duplicates, dead time {} ({:.2} %)",
            self.events.found_no_token,
            self.events.redispatched,
            self.events.duplicates,
            time(self.dead_time_s),
            100.0 * self.dead_time_s / self.uptime_s.max(1e-9)
        );
        if let [refused, turned_away, misbehaved] = self.unwelcome
            && self.unwelcome != [0; 3]
        {
            let _ = writeln!(
                text,
                "{refused} connections were refused, {turned_away} found no room, {misbehaved} broke the rules"
            );
        }
        if self.answers.count() > 0 {
            let us = |share| self.answers.quantile_ns(share) as f64 * 1e-3;
            let _ = write!(text, "half of the tokens came within {:.1} us, 99 % within {:.1} us", us(0.5), us(0.99));
            let cpu = self.cpu_ns_per_event().map(|ns| format!("; CPU of an event {:.2} us", ns * 1e-3));
            let _ = writeln!(text, "{}", cpu.unwrap_or_default());
        }
        if self.commits > 0 {
            let (events, bytes) = (self.stored_events, self.stored_bytes);
            let _ = writeln!(text, "stored {events} events of {bytes} bytes, {} uncommitted", self.events.uncommitted);
        }
        if let Some(uploads) = &self.uploads {
            let _ = writeln!(text, "{}", uploaded(uploads));
        }
        if let Some(why) = &self.failing {
            let _ = writeln!(text, "NOTHING CAN BE STORED: {why}");
        }
        text
    }
}

fn uploads(value: &Value) -> Option<Uploads> {
    let count = |name: &str| value.get(name)?.as_u64();
    Some(Uploads {
        segments: count("segments")?,
        bytes: count("bytes")?,
        waiting: count("waiting")?,
        failures: count("failures")?,
        last_failure: value.get("last_failure")?.as_str().map(str::to_owned),
    })
}

fn answers(value: &Value) -> Option<Spans> {
    let mut spans = Spans::new();
    spans.add_sum_ns(value.get("sum_ns")?.as_u64()?);
    for pair in value.get("buckets")?.as_array()? {
        let (bucket, count) = (pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?);
        spans.add_bucket(u16::try_from(bucket).ok()?, u32::try_from(count).ok()?).then_some(())?;
    }
    Some(spans)
}

fn usage(value: &Value) -> Option<ProcessUsage> {
    let count = |name: &str| value.get(name)?.as_u64();
    let seconds = |name: &str| value.get(name)?.as_f64();
    Some(ProcessUsage {
        user_s: seconds("user_s")?,
        system_s: seconds("system_s")?,
        voluntary_switches: count("voluntary_switches")?,
        involuntary_switches: count("involuntary_switches")?,
        max_rss_bytes: count("max_rss_bytes")?,
    })
}

fn moment(value: &Value) -> Option<Moment> {
    let [at_s, decided, bytes_in] = value.as_array()?.as_slice() else { return None };
    Some(Moment { at_s: at_s.as_f64()?, decided: decided.as_u64()?, bytes_in: bytes_in.as_u64()? })
}

fn nodes(list: &Value) -> Option<Vec<Node>> {
    let node = |value: &Value| {
        let count = |name: &str| value.get(name)?.as_u64();
        let measure = |name: &str| value.get(name)?.as_f64();
        Some(Node {
            number: count("number")?,
            given: count("given")?,
            answered: count("answered")?,
            accepted: count("accepted")?,
            failed: count("failed")?,
            in_flight: count("in_flight")?,
            waited_us: measure("waited_us_mean")?,
            decided_us: measure("decided_us_mean")?,
        })
    };
    list.as_array()?.iter().map(node).collect()
}

/// A span of seconds: `12.3 s`, `4 min 05 s`, `3 h 07 min`.
pub fn time(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm::page;
    use crate::farm::seen::Seen;
    use hodo_catalog::farm::controller::NodeShare;

    #[test]
    fn reads_what_the_page_tells() {
        let share = NodeShare { number: 7, given: 5, answered: 4, decided_ns: 8000, ..NodeShare::default() };
        let mut seen = Seen { nodes: vec![share], gone: vec![share, share], ..Seen::default() };
        let last_failure = Some("no route".to_owned());
        let uploads = Uploads { segments: 3, bytes: 768, waiting: 1, failures: 2, last_failure };
        seen.stored.uploads = Some(uploads);
        [20_000, 20_000, 90_000].into_iter().for_each(|nanos| seen.answers.record(nanos));
        seen.usage = Some(ProcessUsage { user_s: 8e-6, ..ProcessUsage::default() });
        (seen.turned_away, seen.counters.misbehaved) = (7, 2);
        (seen.counts.taken_in, seen.counts.accepted, seen.counters.run) = (5, 4, 3);
        let reading = Reading::parse(
            &page::page(&seen, "token-fifo", &[Moment { at_s: 0.5, decided: 4, bytes_in: 9 }]).to_string(),
        )
        .expect("it is a page");
        assert_eq!(
            (reading.run, &*reading.policy, reading.events.in_hand, reading.gone.len()),
            (3, "token-fifo", 1, 2)
        );
        assert!((reading.nodes[0].decided_us - 2.0).abs() < 1e-9);
        assert!(reading.text().contains("5 events in = 4 accepted"), "{}", reading.text());
        assert_eq!(reading.answers, seen.answers);
        let answers = "tokens came within 20.0 us, 99 % within 88.1 us; CPU of an event 2.00 us\n";
        assert!(reading.text().contains(answers), "{}", reading.text());
        let unwelcome = "\n0 connections were refused, 7 found no room, 2 broke the rules\n";
        assert!(reading.text().contains(unwelcome), "{}", reading.text());
        let uploaded = "\n3 segments of 768 bytes copied, 1 waiting, 2 failures; the last: no route\n";
        assert!(reading.text().contains(uploaded), "{}", reading.text());
        assert_eq!(reading.timeline, [Moment { at_s: 0.5, decided: 4, bytes_in: 9 }]);
        assert!(Reading::parse("{}").is_err_and(|why| why.contains("controller")));
    }

    #[test]
    fn times_are_short() {
        let expected = ["0.0 s", "59.9 s", "1 min 00 s", "2 h 05 min"];
        assert_eq!([0.0, 59.9, 60.4, 7505.0].map(time), expected);
    }
}
