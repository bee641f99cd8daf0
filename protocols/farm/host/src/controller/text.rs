use super::status::{Answers, Connections, Events, Status, StoreStatus, Tokens};
use hodo_store::Uploads;
use hodo_units::text::seconds;
use std::fmt::Write;

impl Status {
    /// Returns the status in a few lines for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Events { taken_in, accepted, rejected, quarantined, incomplete, in_hand, .. } = self.events;
        let mut text = format!("run {}: {}, {}, up {}\n", self.run, self.state, self.policy, seconds(self.uptime_s));
        let _ = writeln!(
            text,
            "{taken_in} events in = {accepted} accepted + {rejected} rejected + {quarantined} quarantined + {incomplete} \
             incomplete + {in_hand} in hand"
        );
        let Tokens { waiting: tokens_waiting, unasked, received: _ } = self.tokens;
        let Connections { nodes: _, sources, nodes_lost, refused, turned_away, misbehaved, ended: _ } =
            self.connections;
        let _ = writeln!(
            text,
            "{} nodes ({nodes_lost} lost), {sources} sources, {tokens_waiting} tokens waiting, {} events waiting",
            self.nodes.len(),
            self.events.waiting
        );
        let _ = writeln!(
            text,
            "{} events found no token, {} re-dispatched, {} duplicates, dead time {} ({:.2} %)",
            self.events.found_no_token,
            self.events.redispatched,
            self.events.duplicates,
            seconds(self.dead_time_s),
            100.0 * self.dead_time_s / self.uptime_s.max(1e-9)
        );
        let Events { partial, too_large, unchecked, conflicts, .. } = self.events;
        if conflicts > 0 {
            let _ = writeln!(text, "{conflicts} EVENTS CAME UNDER NUMBERS WITH OTHER DATA");
        }
        if unchecked > 0 {
            let _ = writeln!(text, "{unchecked} of the duplicates could not be compared with what was given before");
        }
        if partial > 0 {
            let _ = writeln!(text, "{partial} of the accepted, rejected and quarantined events were partial");
        }
        if too_large > 0 {
            let _ = writeln!(
                text,
                "{too_large} of the quarantined events were larger than any node takes; raise --event-max of the nodes"
            );
        }
        if self.events.not_taken > 0 {
            let _ = writeln!(
                text,
                "{} events of the controller's own were dropped: their run was over, or a source had given their numbers",
                self.events.not_taken
            );
        }
        if unasked > 0 {
            let _ = writeln!(text, "{unasked} tokens came for events that their sender did not have");
        }
        if refused + turned_away + misbehaved > 0 {
            let _ = writeln!(
                text,
                "{refused} connections were refused, {turned_away} found no room, {misbehaved} broke the rules"
            );
        }
        self.answers(&mut text);
        self.stored(&mut text);
        text
    }

    fn answers(&self, text: &mut String) {
        let Answers(spans) = &self.answers;
        if spans.count() == 0 {
            return;
        }
        let [half, most] = [0.5, 0.99].map(|share| self.answers.quantile_us(share));
        let cpu = self.cpu_ns_per_event().map(|ns| format!("; CPU of an event {:.2} us", ns * 1e-3));
        let cpu = cpu.unwrap_or_default();
        let _ = writeln!(text, "half of the tokens came within {half:.1} us, 99 % within {most:.1} us{cpu}");
    }

    fn stored(&self, text: &mut String) {
        let StoreStatus { events, bytes, commits, failing, uploads } = &self.store;
        if *commits > 0 {
            let _ = writeln!(text, "stored {events} events of {bytes} bytes, {} uncommitted", self.events.uncommitted);
        }
        if let Some(uploads) = uploads {
            let _ = writeln!(text, "{}", uploaded(uploads));
        }
        if let Some(why) = failing {
            let _ = writeln!(text, "NOTHING CAN BE STORED: {why}");
        }
    }
}

/// Returns one line about what of the store was copied elsewhere.
#[must_use]
pub fn uploaded(uploads: &Uploads) -> String {
    let Uploads { segments, bytes, waiting, failures, last_failure } = uploads;
    let why = last_failure.as_ref().map_or_else(String::new, |why| format!("; the last: {why}"));
    format!("{segments} segments of {bytes} bytes copied, {waiting} waiting, {failures} failures{why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::status::tests::all_different;
    use hodo_farm::Policy;
    use hodo_io::usage::Usage;

    #[test]
    fn says_what_the_status_has() {
        let (mut snapshot, _) = all_different();
        let last_failure = Some("no route".to_owned());
        snapshot.store.uploads = Some(Uploads { segments: 3, bytes: 768, waiting: 1, failures: 2, last_failure });
        [20_000, 20_000, 90_000].into_iter().for_each(|nanos| snapshot.answers.record(nanos));
        (snapshot.counts.taken_in, snapshot.counts.accepted) = (5000, 1001);
        (snapshot.turned_away, snapshot.counters.refused, snapshot.counters.misbehaved) = (7, 0, 2);
        snapshot.counters.not_taken = 11;
        (snapshot.counts.conflicts, snapshot.counts.unchecked) = (14, 15);
        (snapshot.counters.partial, snapshot.counters.too_large) = (12, 13);
        let mut status = Status::new(&snapshot, Policy::TokenFifo, &[]);
        let decided = status.events.decided() as f64;
        status.cpu = Some(Usage { user_s: 2e-6 * decided, ..Usage::default() });
        let text = status.text();
        for line in [
            "5000 events in = 1001 accepted",
            "tokens came within 20.0 us, 99 % within 88.1 us; CPU of an event 2.00 us\n",
            "\n0 connections were refused, 7 found no room, 2 broke the rules\n",
            "\n3 segments of 768 bytes copied, 1 waiting, 2 failures; the last: no route\n",
            "\n12 of the accepted, rejected and quarantined events were partial\n",
            "\n13 of the quarantined events were larger than any node takes",
            "\n11 events of the controller's own were dropped",
            "\n14 EVENTS CAME UNDER NUMBERS WITH OTHER DATA\n",
            "\n15 of the duplicates could not be compared",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }
}
