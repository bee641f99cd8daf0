use crate::data::{BitSet, Length, Members, Scalar, Type};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How values of one type are kept, read and written: a list of its fields, and one of those that hold something.
///
/// Fields are numbered from the outside in and in order: the whole is 0. The fields of a union's members, of elements and of what
/// an any-field holds have plans of their own.
#[derive(Debug, PartialEq)]
pub struct Plan {
    of: Type,
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    words: usize,
    objects: usize,
    /// The structures among the first 64 fields.
    structures: u64,
}

/// A field: a structure, or a leaf.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    of: Type,
    /// The field that contains this one; itself for the whole.
    parent: u32,
    /// Index in the parent.
    index: u32,
    /// Number behind the last field that this one contains.
    end: u32,
    /// The leaves that it contains, or is.
    leaves: (u32, u32),
}

/// A field that holds something.
#[derive(Debug, PartialEq)]
pub(crate) struct Leaf {
    /// Number of the field.
    pub(crate) node: u32,
    pub(crate) step: Step,
    /// Place among the words or the objects of a value.
    pub(crate) place: u32,
}

/// How one field is kept, read and written.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// A number or a bool, in a word.
    Word(Scalar),
    /// A text.
    Text,
    /// An array of scalars; the fixed number of its elements if it has one.
    Array(Scalar, Option<u64>),
    /// One of several members, each with its plan.
    Union(Arc<[Arc<Plan>]>),
    /// A value of any type.
    Any,
    /// An array of structures, unions or any, with the plan of an element.
    Elements(Arc<Plan>),
}

impl Plan {
    /// Compiles a type.
    #[must_use]
    pub fn new(of: Type) -> Arc<Plan> {
        let mut plan =
            Plan { of: Type::Any, nodes: Vec::new(), leaves: Vec::new(), words: 0, objects: 0, structures: 0 };
        plan.add(&of, 0, 0);
        let structures = plan.nodes.iter().take(64).enumerate();
        let structures = structures.filter(|(_, node)| matches!(node.of, Type::Structure(_)));
        plan.structures = structures.fold(0, |all, (number, _)| all | 1 << number);
        Arc::new(Plan { of, ..plan })
    }

    /// Returns the type.
    #[must_use]
    pub const fn of(&self) -> &Type {
        &self.of
    }

    /// Returns the number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns `false`: the whole is a field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the type of a field.
    #[must_use]
    pub fn field(&self, number: usize) -> Option<&Type> {
        self.nodes.get(number).map(|node| &node.of)
    }

    /// Returns the name of a field; empty for the whole.
    #[must_use]
    pub fn name(&self, number: usize) -> &str {
        let parent = |node: &Node| self.nodes.get(node.parent as usize);
        let named = |node: &Node| {
            let members = parent(node).filter(|_| number > 0)?.of.members()?;
            members.fields().get(node.index as usize).map(|field| &*field.name)
        };
        self.nodes.get(number).and_then(named).unwrap_or_default()
    }

    /// Returns the path of a field, as `alarm.severity`; empty for the whole.
    #[must_use]
    pub fn path(&self, number: usize) -> String {
        let parent = self.nodes.get(number).map_or(0, |node| node.parent as usize);
        let name = self.name(number);
        if parent == 0 { name.into() } else { alloc::format!("{}.{name}", self.path(parent)) }
    }

    /// Returns the number behind the last field that a field contains.
    #[must_use]
    pub fn end(&self, number: usize) -> usize {
        self.nodes.get(number).map_or(number + 1, |node| node.end as usize)
    }

    /// Returns the number of a field by its path, as `alarm.severity`. The empty path is the whole.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<usize> {
        let mut number = 0;
        for name in path.split('.').filter(|_| !path.is_empty()) {
            number = self.child(number, name)?;
        }
        Some(number)
    }

    /// Returns the number of a field of a structure by its name.
    #[must_use]
    pub fn child(&self, number: usize, name: &str) -> Option<usize> {
        self.children(number).find(|child| self.name(*child) == name)
    }

    /// Iterates over the numbers of the fields directly in a structure.
    pub fn children(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let mut child = number + 1;
        core::iter::from_fn(move || {
            let this = (child < self.end(number)).then_some(child)?;
            child = self.end(this);
            Some(this)
        })
    }

    /// Puts in place of each structure in a set the leaves that it contains.
    pub fn expand(&self, set: &mut BitSet) {
        if let [] | [_] = set.words()
            && set.words().iter().all(|word| word & self.structures == 0)
        {
            return;
        }
        let mut from = 0;
        while let Some(number) = set.next(from) {
            let Some(node) = self.nodes.get(number) else { return };
            if matches!(node.of, Type::Structure(_)) {
                set.remove(number);
                for leaf in &self.leaves[node.leaves.0 as usize..node.leaves.1 as usize] {
                    set.insert(leaf.node as usize);
                }
            }
            from = number + 1;
        }
    }

    /// Returns the set of all leaves.
    #[must_use]
    pub fn all(&self) -> BitSet {
        self.leaves.iter().map(|leaf| leaf.node as usize).collect()
    }

    #[inline]
    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Returns the leaves that a field contains, or is.
    #[inline]
    pub(crate) fn leaves_of(&self, number: usize) -> &[Leaf] {
        self.nodes.get(number).map_or(&[], |node| &self.leaves[node.leaves.0 as usize..node.leaves.1 as usize])
    }

    /// Returns the leaf that a field is.
    pub(crate) fn leaf(&self, number: usize) -> Option<&Leaf> {
        self.leaves_of(number).first().filter(|leaf| leaf.node as usize == number)
    }

    pub(crate) const fn words(&self) -> usize {
        self.words
    }

    pub(crate) const fn objects(&self) -> usize {
        self.objects
    }

    fn add(&mut self, of: &Type, parent: u32, index: u32) {
        let number = self.nodes.len() as u32;
        let first = self.leaves.len() as u32;
        self.nodes.push(Node { of: of.clone(), parent, index, end: number + 1, leaves: (first, first) });
        if let Type::Structure(members) = of {
            for (index, field) in (0..).zip(members.fields()) {
                self.add(&field.of, number, index);
            }
        } else {
            let step = Step::of(of);
            let places = if matches!(step, Step::Word(_)) { &mut self.words } else { &mut self.objects };
            let place = *places as u32;
            *places += 1;
            self.leaves.push(Leaf { node: number, step, place });
        }
        let (end, last) = (self.nodes.len() as u32, self.leaves.len() as u32);
        let node = &mut self.nodes[number as usize];
        node.end = end;
        node.leaves.1 = last;
    }
}

impl Step {
    /// Returns the step of a leaf.
    fn of(of: &Type) -> Step {
        let plan = |of: Type| Plan::new(of);
        let members = |members: &Members| members.fields().iter().map(|field| plan(field.of.clone())).collect();
        match of {
            Type::Scalar(Scalar::Text) | Type::BoundedText(_) => Step::Text,
            Type::Scalar(scalar) => Step::Word(*scalar),
            Type::Array(scalar, Length::Fixed(count)) => Step::Array(*scalar, Some(*count)),
            Type::Array(scalar, _) => Step::Array(*scalar, None),
            Type::Union(union) => Step::Union(members(union)),
            Type::StructureArray(of) => Step::Elements(plan(Type::Structure(of.clone()))),
            Type::UnionArray(of) => Step::Elements(plan(Type::Union(of.clone()))),
            Type::AnyArray => Step::Elements(plan(Type::Any)),
            // A structure is no leaf.
            Type::Any | Type::Structure(_) => Step::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Arc<Plan> {
        let inner = Type::structure("", [("x", Scalar::I32.into()), ("y", Scalar::Text.into())]);
        let of = Type::structure(
            "top",
            [("a", inner.clone()), ("b", Type::structure("", [("c", inner)])), ("d", Type::Any)],
        );
        Plan::new(of)
    }

    #[test]
    fn fields_are_numbered_from_the_outside_in() {
        let plan = plan();
        let names: Vec<_> = (0..plan.len()).map(|number| (plan.name(number), plan.end(number))).collect();
        assert_eq!(names, [("", 9), ("a", 4), ("x", 3), ("y", 4), ("b", 8), ("c", 8), ("x", 7), ("y", 8), ("d", 9)]);
        assert_eq!(plan.number("b.c.y"), Some(7));
        assert!((0..plan.len()).all(|number| plan.number(&plan.path(number)) == Some(number)));
        assert_eq!((plan.number(""), plan.number("b.y"), plan.number("d.x")), (Some(0), None, None));
        assert_eq!(plan.children(0).collect::<Vec<_>>(), [1, 4, 8]);
        assert_eq!(plan.leaves().iter().map(|leaf| leaf.node).collect::<Vec<_>>(), [2, 3, 6, 7, 8]);
    }

    #[test]
    fn a_structure_in_a_set_stands_for_its_leaves() {
        let plan = plan();
        let mut set = BitSet::from_iter([2, 4]);
        plan.expand(&mut set);
        assert_eq!(set, BitSet::from_iter([2, 6, 7]));
        let mut whole = BitSet::from_iter([0, 70]);
        plan.expand(&mut whole);
        whole.remove(70);
        assert_eq!(whole, plan.all());
    }

    #[test]
    fn a_plan_of_a_single_value_has_one_field() {
        let plan = Plan::new(Scalar::F64.into());
        assert_eq!((plan.len(), plan.words(), plan.objects(), plan.name(0)), (1, 1, 0, ""));
    }
}
