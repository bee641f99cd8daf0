//! The nodes of one file, as it declares them.

use super::attribute::{self, ATTRIBUTES, Mode, Pairs, Permission};
use super::{Limits, MASK_ALL};
use crate::finding::{FileProblem, Finding, NodeProblem, Place, Problem, Remark, Severity, ValueProblem};
use crate::xml::{self, Text};
use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use roxmltree::Document;

/// A file's nodes; the first is its outermost one.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) file: Box<str>,
    pub(super) nodes: Vec<DraftNode>,
}

/// A node as its element declares it.
#[derive(Debug)]
pub(super) struct DraftNode {
    pub(super) line: u32,
    pub(super) column: u32,
    /// Nothing on the outermost node of a file, mostly.
    pub(super) id: Option<Box<str>>,
    pub(super) address: u32,
    pub(super) mask: u32,
    pub(super) size: u32,
    pub(super) mode: Option<Mode>,
    pub(super) permission: Permission,
    pub(super) class: Box<str>,
    pub(super) tags: Box<str>,
    pub(super) description: Box<str>,
    pub(super) parameters: Pairs,
    pub(super) firmware_info: Pairs,
    pub(super) module: Option<Include>,
    /// The children, in the order of the file; those with errors are left out.
    pub(super) children: Vec<usize>,
    /// How many levels down from the outermost node, which is 1.
    pub(super) depth: usize,
}

/// Another file's nodes in the place of own ones.
#[derive(Debug)]
pub(super) struct Include {
    pub(super) expression: Box<str>,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// The findings so far, in all files.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Finding>,
    /// Errors, kept or not.
    pub(super) errors: usize,
    warnings: usize,
}

/// The most errors, and the most warnings, that are kept.
const FINDINGS_MAX: usize = 1000;

impl Findings {
    pub(super) fn add(&mut self, file: &str, (line, column): (u32, u32), problem: impl Into<Problem>) {
        let mut problem = problem.into();
        let number = match problem.severity() {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *number += 1;
        if *number == FINDINGS_MAX + 1 {
            problem = Remark::More { max: FINDINGS_MAX }.into();
        }
        if *number <= FINDINGS_MAX + 1 {
            self.list.push(Finding { place: Place { file: file.to_owned(), line, column }, problem });
        }
    }
}

/// Reads a file's nodes; nothing where its outermost one cannot be used.
pub(super) fn draft(file: &str, bytes: &[u8], limits: &Limits, findings: &mut Findings) -> Option<Draft> {
    let text = Text::decode(bytes);
    for (remark, place) in text.remarks() {
        findings.add(file, *place, remark.clone());
    }
    let document = match text.parse() {
        Ok(document) => document,
        Err((problem, line, column)) => {
            findings.add(file, (line, column), problem);
            return None;
        }
    };
    let root = root(file, &text, &document, findings)?;
    let at = text.position(root.range().start);
    let mut reader = Reader { file, text: &text, limits, findings, nodes: Vec::new(), classes: BTreeSet::new() };
    if root.namespaces().any(|space| space.name() != Some("xml")) {
        reader.findings.add(file, at, ValueProblem::Unknown { name: "xmlns".to_owned(), known: ATTRIBUTES });
    }
    let sound = reader.node(root, 1).is_some();
    sound.then_some(Draft { file: file.into(), nodes: reader.nodes })
}

/// Finds the element that is the table: the first outermost `node`, whatever lies beside it.
fn root<'a>(file: &str, text: &Text, document: &'a Document<'a>, findings: &mut Findings) -> Option<Element<'a>> {
    let root = xml::outermost(document).find(|element| element.has_tag_name("node"));
    for element in xml::outermost(document).filter(|element| Some(*element) != root) {
        let (at, name) = (text.position(element.range().start), xml::plain(element.tag_name().name()).into_owned());
        if root.is_none() {
            findings.add(file, at, FileProblem::WrongRoot { found: name });
            return None;
        }
        findings.add(file, at, Remark::ElementOutside { name });
    }
    root
}

/// Attributes, and those that cannot stand beside them.
const EXCLUDES: &[(&str, &[&str])] =
    &[("mask", &["mode", "size", "class", "module"]), ("module", &["mode", "size", "permission"])];

type Element<'a> = roxmltree::Node<'a, 'a>;

struct Reader<'a> {
    file: &'a str,
    text: &'a Text,
    limits: &'a Limits,
    findings: &'a mut Findings,
    nodes: Vec<DraftNode>,
    classes: BTreeSet<Box<str>>,
}

impl<'a> Reader<'a> {
    /// Reads a node and those below it; nothing where it has errors of its own.
    fn node(&mut self, element: Element<'a>, depth: usize) -> Option<usize> {
        if depth > self.limits.depth {
            self.add(&element, NodeProblem::TooDeep { max: self.limits.depth });
            return None;
        }
        let errors = self.findings.errors;
        let node = self.attributes(element, depth);
        let holds = self.holds_nodes(&element, &node);
        let sound = self.findings.errors == errors;
        let index = self.nodes.len();
        self.nodes.push(node);
        if holds {
            let mut children = Vec::new();
            for child in element.children().filter(Element::is_element) {
                let name = child.tag_name().name();
                if name == "node" {
                    children.extend(self.node(child, depth + 1));
                } else {
                    self.add(&child, Remark::UnknownElement { name: xml::plain(name).into_owned() });
                }
            }
            self.nodes[index].children = children;
        }
        sound.then_some(index)
    }

    /// Tells whether the nodes below are part of the tree.
    fn holds_nodes(&mut self, element: &Element<'a>, node: &DraftNode) -> bool {
        let Some(child) = element.children().find(|child| child.has_tag_name("node")) else { return true };
        if node.module.is_some() {
            self.add(&child, Remark::BesideModule);
            return false;
        }
        if element.has_attribute("mask") {
            self.add(element, NodeProblem::Childless { because: "a mask" });
        } else if node.mode == Some(Mode::NonIncremental) {
            self.add(element, NodeProblem::Childless { because: "a port's mode" });
        }
        true
    }

    fn attributes(&mut self, element: Element<'a>, depth: usize) -> DraftNode {
        for attribute in element.attributes() {
            if attribute.namespace().is_some() || !ATTRIBUTES.contains(&attribute.name()) {
                let name = xml::plain(attribute.name()).into_owned();
                self.add_at(attribute.range().start, ValueProblem::Unknown { name, known: ATTRIBUTES });
            }
        }
        for (name, others) in EXCLUDES.iter().filter(|(name, _)| element.has_attribute(*name)) {
            for other in others.iter().filter_map(|other| element.attribute_node(*other).map(|found| (*other, found))) {
                self.add_at(other.1.range().start, ValueProblem::Forbidden { name: other.0, beside: name });
            }
        }
        if depth > 1 && !element.has_attribute("id") {
            self.add(&element, ValueProblem::Missing { name: "id" });
        }
        let (line, column) = self.text.position(element.range().start);
        let (mode, size) = self.mode_and_size(element);
        DraftNode {
            line,
            column,
            id: self.value(element, "id", attribute::id),
            address: self.number(element, "address").unwrap_or(0),
            mask: self.mask(element),
            size,
            mode,
            permission: self.value(element, "permission", Permission::parse).unwrap_or_default(),
            class: self.class(element),
            tags: text(element, "tags"),
            description: text(element, "description"),
            parameters: self.pairs(element, "parameters", |value| Ok(attribute::parameters(value))),
            firmware_info: self.pairs(element, "fwinfo", attribute::firmware_info),
            module: element.attribute_node("module").map(|module| {
                let (line, column) = self.text.position(module.range().start);
                Include { expression: xml::plain(module.value()).into(), line, column }
            }),
            children: Vec::new(),
            depth,
        }
    }

    fn mask(&mut self, element: Element<'a>) -> u32 {
        let mask = self.number(element, "mask").unwrap_or(MASK_ALL);
        if mask == 0 {
            self.add_to(element, "mask", Remark::EmptyMask);
        }
        mask
    }

    fn mode_and_size(&mut self, element: Element<'a>) -> (Option<Mode>, u32) {
        let mode = self.value(element, "mode", Mode::parse);
        if !matches!(mode, Some(Mode::Incremental | Mode::NonIncremental)) {
            if !element.has_attribute("mode") && !element.has_attribute("mask") && !element.has_attribute("module") {
                self.add_to(element, "size", Remark::SizeAlone);
            }
            return (mode, 1);
        }
        let size = self.number(element, "size");
        match (mode, size) {
            (Some(Mode::Incremental), None) if !element.has_attribute("size") => {
                self.add(&element, NodeProblem::NoSize);
            }
            (_, Some(0)) => self.add_to(element, "size", Remark::NoWords),
            _ => {}
        }
        (mode, size.unwrap_or(1))
    }

    /// Returns the class; remarked on the first time in a file.
    fn class(&mut self, element: Element<'a>) -> Box<str> {
        let class = text(element, "class");
        if !class.is_empty() && self.classes.insert(class.clone()) {
            self.add_to(element, "class", Remark::Class { class: class.clone().into() });
        }
        class
    }

    fn pairs(
        &mut self,
        element: Element<'a>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<(Pairs, Option<Remark>), ValueProblem>,
    ) -> Pairs {
        let (pairs, remark) = self.value(element, name, parse).unwrap_or_default();
        if let Some(remark) = remark {
            self.add_to(element, name, remark);
        }
        pairs
    }

    fn number(&mut self, element: Element<'a>, name: &'static str) -> Option<u32> {
        self.value(element, name, |value| attribute::number(name, value))
    }

    /// Returns the meaning of an attribute; `None` if it is absent, or wrong.
    fn value<T>(
        &mut self,
        element: Element<'a>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, ValueProblem>,
    ) -> Option<T> {
        let attribute = element.attribute_node(name)?;
        parse(&xml::plain(attribute.value())).map_err(|problem| self.add_at(attribute.range().start, problem)).ok()
    }

    fn add(&mut self, element: &Element<'a>, problem: impl Into<Problem>) {
        self.add_at(element.range().start, problem);
    }

    /// Adds a finding at an attribute, if the element has it.
    fn add_to(&mut self, element: Element<'a>, name: &str, problem: impl Into<Problem>) {
        if let Some(attribute) = element.attribute_node(name) {
            self.add_at(attribute.range().start, problem);
        }
    }

    fn add_at(&mut self, byte: usize, problem: impl Into<Problem>) {
        self.findings.add(self.file, self.text.position(byte), problem);
    }
}

fn text(element: Element<'_>, name: &str) -> Box<str> {
    element.attribute(name).map_or(Cow::Borrowed(""), xml::plain).into()
}
