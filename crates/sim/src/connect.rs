use crate::connection::End;
use crate::fabric::{Fabric, Notice};
use crate::host::Power;
use crate::schedule::Happening;
use crate::sender::Sender;
use crate::wire::Handshake;
use crate::{Congestion, Transport};
use hodo_machine::Closed;
use std::time::Duration;

impl Fabric {
    /// Sends the request for a connection to the far node.
    pub(crate) fn connect(&mut self, end: End) {
        let Some(wire) = self.wire_of(end) else { return };
        let give_up = self.now + self.wires[wire].network.connect_timeout;
        if let Some(connection) = self.connections.at(end) {
            (connection.asked, connection.give_up) = (self.now, give_up);
        }
        match self.wires[wire].handshake(self.now, give_up) {
            Handshake::Arrives(at) => self.schedule.at(at, Happening::Asked(end)),
            Handshake::GivenUp(at) => self.schedule.at(at, Happening::Failed(end, Closed::TimedOut)),
        }
    }

    /// Handles the request to connect, which has arrived at the far node.
    pub(crate) fn asked(&mut self, end: End) {
        let (Some(wire), Some(back)) = (self.wire_of(end), self.wire_of(end.far())) else { return };
        self.wires[wire].counters.delivered += 1;
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        let node = connection.nodes[end.far().index()];
        let host = &self.hosts[node as usize];
        if host.power == Power::Off {
            let at = connection.give_up.max(self.now);
            return self.schedule.at(at, Happening::Failed(end, Closed::TimedOut));
        }
        if host.power == Power::Idle || !host.listening {
            let at = self.now + self.wires[back].network.delay;
            return self.schedule.at(at, Happening::Failed(end, Closed::Refused));
        }
        connection.flows[end.far().index()].open = true;
        self.control(end);
        self.control(end.far());
        self.accept(end.far());
        self.post(node, Notice::Opened(end.far()));
        let give_up = self.now + self.wires[back].network.connect_timeout;
        match self.wires[back].handshake(self.now, give_up) {
            Handshake::Arrives(at) => {
                if let Some(connection) = self.connections.at(end) {
                    connection.flows[end.far().index()].last_arrival = at;
                }
                self.schedule.at(at, Happening::Answered(end));
            }
            Handshake::GivenUp(at) => self.schedule.at(at, Happening::Failed(end, Closed::TimedOut)),
        }
    }

    /// Gives what this end sends its congestion control.
    fn control(&mut self, end: End) {
        let (Some(wire), now) = (self.wire_of(end), self.now) else { return };
        let wire = &self.wires[wire];
        let (congestion, bytes) = (wire.network.congestion, wire.model(Transport::Stream).payload_max as usize);
        if let Some(connection) = self.connections.at(end) {
            let sender = || Box::new(Sender::new(congestion, bytes, now));
            connection.flows[end.index()].sender = (congestion != Congestion::None).then(sender);
        }
    }

    /// Handles the answer to the request to connect, which has arrived back.
    pub(crate) fn answered(&mut self, end: End) {
        let (Some(wire), now) = (self.wire_of(end.far()), self.now) else { return };
        self.wires[wire].counters.delivered += 1;
        let Some(connection) = self.connections.at(end).filter(|connection| !connection.dead) else { return };
        if connection.gone[end.far().index()] {
            let at = connection.give_up.max(self.now);
            return self.schedule.at(at, Happening::Failed(end, Closed::TimedOut));
        }
        connection.flows[end.index()].open = true;
        let round_trip = Duration::from_nanos(now.nanos_since(connection.asked));
        for end in [end, end.far()] {
            if let Some(sender) = &mut connection.flows[end.index()].sender {
                sender.connected(round_trip);
            }
        }
        let node = connection.nodes[end.index()];
        self.post(node, Notice::Opened(end));
        self.pump(end);
    }
}
