//! From a path to its node, and from a pattern to all that fit.

use super::Node;
use crate::pattern::Pattern;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A path that leads to no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoNode {
    /// The path.
    pub path: String,
    /// How far it leads; `""` where already its first name is unknown.
    pub known: String,
    /// The names there, or the first of them.
    pub there: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// How many names an error tells.
const NAMES: usize = 8;

impl<'t> Node<'t> {
    /// Returns the node of a path that begins below this one; this one for `""`.
    ///
    /// # Errors
    /// Where there is none: how far the path leads, and what is there.
    pub fn node(self, path: &str) -> Result<Node<'t>, NoNode> {
        if path.is_empty() {
            return Ok(self);
        }
        let mut node = self;
        let mut known = 0;
        for name in path.split('.') {
            let Some(child) = node.child(name) else { return Err(node.lacks(path, known)) };
            node = child;
            known += name.len() + 1;
        }
        Ok(node)
    }

    /// Tells whether a path leads from here to a node.
    #[must_use]
    pub fn has_node(self, path: &str) -> bool {
        self.node(path).is_ok()
    }

    /// Returns the nodes below this one whose whole path from here on fits, by path.
    #[must_use]
    pub fn nodes(self, pattern: &Pattern) -> Vec<Node<'t>> {
        let mut found: Vec<(String, Node<'t>)> = Vec::new();
        let mut path = String::new();
        // The ends of the nodes around, and the lengths of their paths.
        let mut around: Vec<(u32, usize)> = Vec::new();
        for node in self.iter() {
            while around.last().is_some_and(|(end, _)| *end <= node.index()) {
                around.pop();
            }
            path.truncate(around.last().map_or(0, |(_, length)| *length));
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(node.id());
            around.push((node.entry().end, path.len()));
            if pattern.fits(&path) {
                found.push((path.clone(), node));
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found.into_iter().map(|(_, node)| node).collect()
    }

    /// Returns the child of a name; of several the one with the lowest address, as in uHAL.
    fn child(self, name: &str) -> Option<Node<'t>> {
        let by_name = &self.table().by_name;
        let place = by_name.partition_point(|index| {
            let node = Node::at(self.table(), *index);
            (node.entry().parent, node.id()) < (self.index(), name)
        });
        let found = Node::at(self.table(), *by_name.get(place)?);
        (found.parent() == Some(self) && found.id() == name).then_some(found)
    }

    fn lacks(self, path: &str, known: usize) -> NoNode {
        let there = self.children().take(NAMES).map(|child| child.id().to_owned()).collect();
        let more = self.children().count().saturating_sub(NAMES);
        NoNode { path: path.to_owned(), known: path[..known.saturating_sub(1)].to_owned(), there, more }
    }
}

impl core::error::Error for NoNode {}

impl fmt::Display for NoNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no node `{}`: ", self.path)?;
        match self.known.as_str() {
            "" => f.write_str("the table")?,
            known => write!(f, "`{known}`")?,
        }
        if self.there.is_empty() {
            return f.write_str(" has no nodes");
        }
        write!(f, " has {}", self.there.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}
