use super::nodes::Member;
use super::{Controller, Event, State};
use crate::Error;
use crate::lines::Silence;
use crate::supply::Supply;
use hodo_machine::{Instant, Peer};

impl<S: Supply> Controller<S> {
    /// Sends a peer away; what it had is given to others.
    pub(super) fn end(&mut self, now: Instant, peer: Peer, error: Error) {
        let Some(member) = self.lines.end(peer, &error) else { return };
        self.gone(peer, member, error);
        self.dials.again(now, peer);
    }

    pub(super) fn gone(&mut self, peer: Peer, member: Member, error: Error) {
        if let Some(count) = self.counters.ended.get_mut(error.code() as usize) {
            *count += 1;
        }
        if error.is_misbehaviour() {
            self.counters.misbehaved += 1;
        }
        let (hello, taken_back, share) = match member {
            Member::Greeting { host } => {
                if peer.is_accepted() {
                    self.greetings.over(host, peer);
                }
                self.counters.refused += 1;
                return self.events.push_back(Event::Refused(peer, error));
            }
            Member::Giver(giver) => {
                self.accounts.givers -= 1;
                self.accounts.granted -= giver.window;
                self.accounts.orphaned += giver.in_hand;
                self.ledger.left(giver.hello.number);
                (giver.hello, 0, None)
            }
            Member::Node(node) => {
                self.queue.leave(&mut self.lines, peer);
                self.even.forget(peer);
                self.counters.nodes_lost += 1;
                let taken_back = node.given.len() as u32;
                self.take_back(node.given, &node.hello);
                self.suspects.extend(node.reserved);
                self.suspects_due = true;
                (node.hello, taken_back, Some(node.share))
            }
        };
        self.events.push_back(Event::Left { peer, hello, error, taken_back, share });
    }

    /// Ends a peer that has not greeted in time, was silent for too long, or took too long for an event.
    pub(super) fn look_at(&mut self, now: Instant, peer: Peer) {
        let Some(line) = self.lines.at(peer) else { return };
        let mut next = None;
        let wrong = match &mut line.state {
            Member::Greeting { .. } => Some(Error::NoGreeting),
            Member::Giver(giver) if self.state == State::Draining => {
                // One that does not answer to it has what is in hand of it, and gives no more.
                let until = self.draining_since.max(giver.active) + self.config.silence;
                giver.drained |= until <= now;
                next = (!giver.drained).then_some(until);
                None
            }
            Member::Giver(_) => None,
            Member::Node(node) => self.config.deadline.and_then(|deadline| {
                // It takes one after the other.
                let given = node.given.front();
                let until = given.map_or(now, |given| given.at.max(node.answered_at)) + deadline;
                next = Some(until);
                given.filter(|_| until <= now).map(|given| Error::Overdue { event: given.held.event })
            }),
        };
        let silent = || (self.lines.silence(now, peer, self.config.silence) == Silence::Long).then_some(Error::Silent);
        match (wrong.or_else(silent), next) {
            (Some(error), _) => self.end(now, peer, error),
            (None, Some(at)) => self.lines.look_by(peer, at),
            (None, None) => {}
        }
    }
}
