use crate::connection::End;
use crate::fabric::Fabric;
use crate::schedule::Happening;
use crate::wire::TRIES;
use hodo_machine::Closed;

impl Fabric {
    /// Sends again what this end's sender has found to be lost, as far as its window allows.
    pub(crate) fn send_lost(&mut self, end: End) {
        let now = self.now;
        loop {
            let Some(connection) = self.connections.at(end) else { return };
            let flow = &mut connection.flows[end.index()];
            let Some(sender) = &mut flow.sender else { return };
            sender.look(now);
            let Some(number) = sender.next_lost() else { return };
            let index = number.wrapping_sub(flow.first) as usize;
            match flow.segments.get(index).filter(|segment| !segment.arrived) {
                None => sender.take_lost(),
                Some(segment) if sender.may_send(segment.length as usize) => {
                    sender.take_lost();
                    self.pass(end, number, true);
                }
                Some(_) => {
                    sender.is_limited = true;
                    return;
                }
            }
        }
    }

    /// Acknowledges what this end sent.
    pub(crate) fn acknowledge(&mut self, end: End, transmission: u64) {
        let (Some(back), now) = (self.wire_of(end.far()), self.now) else { return };
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        if let Some(sender) = &mut connection.flows[end.index()].sender {
            sender.arrived(transmission, self.wires[back].acknowledge(now));
            self.await_answers(end);
        }
    }

    /// Puts what this end's sender waits for into the schedule.
    pub(crate) fn await_answers(&mut self, end: End) {
        let Some(connection) = self.connections.at(end) else { return };
        let Some(sender) = &mut connection.flows[end.index()].sender else { return };
        if let Some(at) = sender.awaited_acknowledgement() {
            self.schedule.at(at.max(self.now), Happening::Acknowledged(end));
        }
        if let Some(at) = sender.awaited_timeout() {
            self.schedule.at(at.max(self.now), Happening::Timeout(end));
        }
    }

    /// Handles an acknowledgement that this end waits for.
    pub(crate) fn acknowledged(&mut self, end: End) {
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        if let Some(sender) = &mut connection.flows[end.index()].sender {
            sender.acknowledgement_awaited = false;
            self.pump(end);
        }
    }

    /// Checks whether nothing was acknowledged to this end for too long.
    pub(crate) fn timeout(&mut self, end: End) {
        let now = self.now;
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        let is_gone = connection.gone[end.index()];
        let flow = &mut connection.flows[end.index()];
        let Some(sender) = &mut flow.sender else { return };
        if is_gone {
            return flow.drop_flying();
        }
        sender.look(now);
        match sender.time_out(now) {
            Some(times) if times >= TRIES => self.reset(end, Closed::TimedOut),
            _ => self.pump(end),
        }
    }
}
