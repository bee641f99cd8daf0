//! Which registers does an address table describe?
//!
//! | node | register |
//! |---|---|
//! | register, block | keeps what is written; its permission and mask say what a host may read and write |
//! | port, `rw` | FIFO, as deep as its size |
//! | port, `r` | counter: a source of words that can be told apart |
//! | port, `w` | takes everything, keeps the last |
//! | `parameters="device=…"` | `memory`, `fifo`, `counter`, or a bus that fails: `error`, `timeout` |
//! | `parameters="device_value=…"` | what it holds after a reset, as the node's value: a mask shifts it |
//!
//! Where several nodes share an address, it has the bits of all of them, and does the first of what they do: fail, be a
//! FIFO, count, keep.

use crate::finding::{FileError, Finding, Problem, ValueProblem};
use crate::table::{self, Mode, Node, Permission, Table};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use hodo_ipbus::device::{Behaviour, Failure, Register, Registers};

/// The depth of a FIFO whose node has no size.
const FIFO_DEPTH: u32 = 1 << 16;
/// The values of the parameter `device`.
const BEHAVIOURS: &[&str] = &["memory", "fifo", "counter", "error", "timeout"];

/// The registers that a table describes. Addresses without a node are memory.
impl TryFrom<&Table> for Registers {
    type Error = FileError;

    fn try_from(table: &Table) -> Result<Self, FileError> {
        let mut edges = Vec::new();
        for node in table.iter() {
            let wrong = |problem| Finding { place: node.place(), problem: Problem::Value(problem) };
            let layer = Layer::of(node).map_err(|problem| FileError { findings: vec![wrong(problem)] })?;
            let Some(layer) = layer else { continue };
            let (first, last) = (node.address(), node.last_address());
            if first <= last {
                edges.extend(layer.edges(first, last));
            } else {
                // It goes on at the start of the space.
                edges.extend(layer.edges(first, u32::MAX).into_iter().chain(layer.edges(0, last)));
            }
        }
        edges.sort_by_key(|edge| edge.at);
        Ok(Registers::new(united(&edges)).expect("runs between neighbouring edges do not overlap"))
    }
}

/// One node's part in the registers at its addresses.
#[derive(Debug, Clone, Copy)]
struct Layer {
    readable: u32,
    writable: u32,
    value: u32,
    behaviour: Behaviour,
}

/// Where a layer begins or ends.
#[derive(Debug, Clone, Copy)]
struct Edge {
    at: u64,
    begins: bool,
    layer: Layer,
}

impl Layer {
    /// Returns the layer of a node, or `None` if it has no register.
    fn of(node: Node<'_>) -> Result<Option<Layer>, ValueProblem> {
        let (mode, permission, mask) = (node.mode(), node.permission(), node.mask());
        if mode == Mode::Hierarchical || mode == Mode::Incremental && node.size() == 0 {
            return Ok(None);
        }
        let mut behaviour = match (mode, permission) {
            (Mode::NonIncremental, Permission::ReadWrite) => fifo(node),
            (Mode::NonIncremental, Permission::Read) => Behaviour::Count,
            _ => Behaviour::Keep,
        };
        let mut value = 0;
        for (name, text) in node.parameters() {
            match name {
                "device" => behaviour = named(text, node)?,
                "device_value" => value = table::number("device_value", text)? << mask.shift() & mask.0,
                _ => {}
            }
        }
        let bits = |allowed| if allowed { mask.0 } else { 0 };
        Ok(Some(Layer { readable: bits(permission.reads()), writable: bits(permission.writes()), value, behaviour }))
    }

    fn edges(self, first: u32, last: u32) -> [Edge; 2] {
        [(u64::from(first), true), (u64::from(last) + 1, false)].map(|(at, begins)| Edge { at, begins, layer: self })
    }
}

fn fifo(node: Node<'_>) -> Behaviour {
    Behaviour::Fifo { depth: if node.size() > 1 { node.size() } else { FIFO_DEPTH } }
}

fn named(text: &str, node: Node<'_>) -> Result<Behaviour, ValueProblem> {
    Ok(match text {
        "memory" => Behaviour::Keep,
        // A block has one word at each of its addresses.
        "fifo" if node.mode() == Mode::Incremental => {
            return Err(ValueProblem::Forbidden { name: "device=fifo", beside: "mode=block" });
        }
        "fifo" => fifo(node),
        "counter" => Behaviour::Count,
        "error" => Behaviour::Fail(Failure::Error),
        "timeout" => Behaviour::Fail(Failure::Timeout),
        _ => return Err(ValueProblem::NotAWord { name: "device", value: text.to_owned(), known: BEHAVIOURS }),
    })
}

/// Returns the runs between neighbouring edges, each with all the layers over it.
fn united(edges: &[Edge]) -> Vec<Register> {
    let mut registers = Vec::new();
    let mut over = Over::default();
    let mut rest = edges;
    while let Some(first) = rest.first() {
        let here = rest.iter().take_while(|edge| edge.at == first.at).count();
        rest[..here].iter().for_each(|edge| over.change(edge));
        rest = &rest[here..];
        if let (Some(next), Some(behaviour)) = (rest.first(), over.behaviour()) {
            let words = (next.at - first.at) as u32;
            let [readable, writable, value] = [&over.readable, &over.writable, &over.value].map(Bits::any);
            registers.push(Register { first: first.at as u32, words, readable, writable, value, behaviour });
        }
    }
    registers
}

/// The layers over an address: how many have each bit, and how many do what.
#[derive(Default)]
struct Over {
    readable: Bits,
    writable: Bits,
    value: Bits,
    behaviours: BTreeMap<Behaviour, u32>,
}

impl Over {
    fn change(&mut self, edge: &Edge) {
        let Edge { begins, layer, .. } = *edge;
        self.readable.change(layer.readable, begins);
        self.writable.change(layer.writable, begins);
        self.value.change(layer.value, begins);
        let count = self.behaviours.entry(layer.behaviour).or_insert(0);
        *count = if begins { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.behaviours.remove(&layer.behaviour);
        }
    }

    /// Returns the strongest behaviour of the layers, or `None` if there is no layer.
    fn behaviour(&self) -> Option<Behaviour> {
        self.behaviours.keys().next_back().copied()
    }
}

/// How many layers have each bit.
#[derive(Default)]
struct Bits([u32; 32]);

impl Bits {
    fn change(&mut self, mask: u32, begins: bool) {
        for bit in (0..32).filter(|bit| mask >> bit & 1 == 1) {
            self.0[bit] = if begins { self.0[bit] + 1 } else { self.0[bit] - 1 };
        }
    }

    fn any(&self) -> u32 {
        (0..32).filter(|bit| self.0[*bit] > 0).fold(0, |mask, bit| mask | 1 << bit)
    }
}

#[cfg(test)]
mod tests;
