//! The ways from the gates of a bridge to the memories behind it, as the options of `hodo spacewire read` that take them.

use crate::Names;
use crate::network::Plan;
use hodo_spacewire::bridge::{Device, GateProtocol};
use hodo_spacewire::network::{NodeId, Place, RouterId};
use hodo_spacewire::rmap::packet::DEFAULT_LOGICAL_ADDRESS;
use hodo_spacewire::rmap::{Crc, TargetSettings};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

/// Path of the page.
pub const PATHS: &str = "/paths";

/// Ports of the longest path of a reply: the bytes of the reply address of a command.
const REPLY_MAX: usize = 12;

/// Returns a line for each gate and memory between which there is a way: the gate's TCP port, the options, and the memory.
pub fn text(plan: &Plan) -> String {
    let mut text = String::from("port\toptions\tmemory\n");
    let links = Links::of(&plan.names);
    let name_of: BTreeMap<NodeId, &str> = plan.names.nodes.iter().map(|(name, node)| (*node, name.as_str())).collect();
    for (_, gate) in &plan.gates {
        let (GateProtocol::Ssdtp2 { port, .. } | GateProtocol::Gresb { to_bridge: port, .. }) = gate.protocol;
        let ways = links.ways(gate.node);
        for (node, device) in &plan.devices {
            if let (Device::Memory(target, _), Some(way)) = (device, ways.get(node)) {
                let name = name_of.get(node).unwrap_or(&"");
                let _ = writeln!(text, "{port}\t{}\t{name}", options(way, target));
            }
        }
    }
    text
}

/// A way through routers: the ports by which packets leave them, and those by which they have come in.
#[derive(Debug, Clone, Default)]
struct Way {
    out: Vec<u8>,
    back: Vec<u8>,
}

/// The far end of each link, by its near one: of a node, and of each port of a router.
#[derive(Default)]
struct Links {
    of_nodes: BTreeMap<NodeId, Place>,
    of_routers: BTreeMap<RouterId, Vec<(u8, Place)>>,
}

impl Links {
    fn of(names: &Names) -> Links {
        let mut links = Links::default();
        for [(_, one), (_, other)] in &names.links {
            for (near, far) in [(*one, *other), (*other, *one)] {
                match near {
                    Place::Node(node) => _ = links.of_nodes.insert(node, far),
                    Place::Router(router, port) => links.of_routers.entry(router).or_default().push((port, far)),
                }
            }
        }
        links
    }

    /// Returns a shortest way from a node to each other one that it reaches.
    fn ways(&self, from: NodeId) -> BTreeMap<NodeId, Way> {
        let mut found = BTreeMap::new();
        let mut seen: BTreeSet<RouterId> = BTreeSet::new();
        let mut next: VecDeque<(Place, Way)> =
            self.of_nodes.get(&from).map(|far| (*far, Way::default())).into_iter().collect();
        while let Some((place, way)) = next.pop_front() {
            let (router, entered) = match place {
                Place::Node(node) => {
                    found.entry(node).or_insert(way);
                    continue;
                }
                Place::Router(router, entered) => (router, entered),
            };
            if !seen.insert(router) || way.out.len() == REPLY_MAX {
                continue;
            }
            let ports = self.of_routers.get(&router).map_or(&[][..], Vec::as_slice);
            for (port, far) in ports.iter().filter(|(port, _)| *port != entered) {
                let mut way = way.clone();
                way.out.push(*port);
                way.back.insert(0, entered);
                next.push_back((*far, way));
            }
        }
        found
    }
}

fn options(way: &Way, target: &TargetSettings) -> String {
    let ports = |ports: &[u8]| ports.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    let mut options = Vec::new();
    if !way.out.is_empty() {
        options.push(format!("--path {} --reply-path {}", ports(&way.out), ports(&way.back)));
    }
    let is_other = |value: Option<u8>, usual: u8| value.filter(|value| *value != usual);
    options.extend(
        is_other(target.logical_address, DEFAULT_LOGICAL_ADDRESS).map(|address| format!("--target {address:#X}")),
    );
    options.extend(is_other(target.key, 0).map(|key| format!("--key {key:#X}")));
    if target.crc == Crc::DraftE {
        options.push("--crc draft-e".to_owned());
    }
    options.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(network: &str) -> String {
        text(&Plan::parse("network.toml", network, std::path::Path::new(".")).unwrap())
    }

    #[test]
    fn each_gate_has_its_own_way() {
        let lab = text(&Plan::preset("lab").unwrap());
        let memory = |port: u16, back: u8| format!("{port}\t--path 4 --reply-path {back}\tmemory\n");
        assert_eq!(lab, format!("port\toptions\tmemory\n{}{}{}", memory(10030, 1), memory(10031, 2), memory(3000, 3)));
        assert_eq!(text(&Plan::preset("cable").unwrap()).lines().count(), 1);
    }

    #[test]
    fn ways_lead_through_routers_and_name_what_is_unusual() {
        let gate = "[[node]]\nname = \"host\"\nssdtp2 = { port = 7 }\n";
        let memory = "[[node]]\nname = \"m\"\nmemory = [{ address = 0, size = \"1K\" }]\n";
        let link = |one: &str, other: &str| format!("[[link]]\nbetween = [\"{one}\", \"{other}\"]\n");
        assert_eq!(of(&[gate, memory, &link("host", "m")].concat()), "port\toptions\tmemory\n7\t\tm\n");
        let rmap = "rmap = { key = 0x20, logical_address = 0x42 }\n";
        let routers = "[[router]]\nname = \"a\"\n[[router]]\nname = \"b\"\n";
        // Two ways from a to b: one of them is enough.
        let links =
            [("host", "a:1"), ("a:3", "b:5"), ("a:2", "b:6"), ("b:7", "m")].map(|(one, other)| link(one, other));
        let said = of(&[gate, memory, rmap, routers, &links.concat()].concat());
        let options = said.lines().nth(1).unwrap();
        assert_eq!(options, "7\t--path 3,7 --reply-path 5,1 --target 0x42 --key 0x20\tm");
        assert_eq!(of(&[gate, memory, routers, &link("host", "a:1"), &link("b:1", "m")].concat()).lines().count(), 1);
    }
}
