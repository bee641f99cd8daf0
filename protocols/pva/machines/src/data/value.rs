use crate::data::{Array, BitSet, Item, Plan, Scalar, Step, Text, Type};
use crate::wire::SHARE_FROM;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// A value of a type, and which of its fields have changed.
///
/// Numbers and bools are in one run of words; texts keep their room and arrays are shared, so that a value that is read again and
/// again allocates nothing for them.
#[derive(Clone)]
pub struct Value {
    pub(crate) plan: Arc<Plan>,
    pub(crate) words: Box<[u64]>,
    pub(crate) objects: Box<[Object]>,
    pub(crate) changed: BitSet,
}

/// A leaf of a value that is not a word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Object {
    Text(Text),
    Array(Array),
    /// The chosen member of a union, and its value.
    Union(Option<(u32, Box<Value>)>),
    Any(Option<Box<Value>>),
    Elements(Vec<Option<Box<Value>>>),
}

impl Value {
    /// Creates a value whose numbers are 0, and whose other fields are empty. Nothing of it has changed.
    #[must_use]
    pub fn new(plan: &Arc<Plan>) -> Self {
        let objects = plan.leaves().iter().filter_map(|leaf| {
            Some(match &leaf.step {
                Step::Word(_) => return None,
                Step::Text => Object::Text(Text::default()),
                Step::Array(scalar, _) => Object::Array(Array::empty(*scalar)),
                Step::Union(_) => Object::Union(None),
                Step::Any => Object::Any(None),
                Step::Elements(_) => Object::Elements(Vec::new()),
            })
        });
        Value {
            words: core::iter::repeat_n(0, plan.words()).collect(),
            objects: objects.collect(),
            changed: BitSet::new(),
            plan: plan.clone(),
        }
    }

    /// Creates a value of a type.
    #[must_use]
    pub fn of(of: Type) -> Self {
        Value::new(&Plan::new(of))
    }

    /// Returns the plan of the type.
    #[must_use]
    pub const fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns the bytes of memory that a new value of this plan takes.
    pub(crate) fn memory(plan: &Plan) -> usize {
        size_of::<Value>() + size_of::<u64>() * plan.words() + size_of::<Object>() * plan.objects()
    }

    /// Returns the numbers of the fields that have changed. A structure's number stands for all that it contains.
    #[must_use]
    pub const fn changed(&self) -> &BitSet {
        &self.changed
    }

    /// Says that a field has changed, with all that it contains.
    pub fn mark(&mut self, number: usize) {
        if number < self.plan.len() {
            self.changed.insert(number);
        }
    }

    /// Says that all fields have changed.
    pub fn mark_all(&mut self) {
        self.changed.clear();
        self.changed.insert(0);
    }

    /// Says that no field has changed.
    pub fn unmark(&mut self) {
        self.changed.clear();
    }

    /// Tells whether a field has changed: itself, one that contains it, or one in it.
    #[must_use]
    pub fn has_changed(&self, number: usize) -> bool {
        let mut at = 0;
        while let Some(found) = self.changed.next(at) {
            if found >= self.plan.end(number) {
                return false;
            }
            if self.plan.end(found) > number {
                return true;
            }
            at = self.plan.end(found);
        }
        false
    }

    /// Returns a field by its number.
    #[must_use]
    pub fn at(&self, number: usize) -> Option<Item<'_>> {
        let of = self.plan.field(number)?;
        let Some(leaf) = self.plan.leaf(number) else { return Some(Item::Structure(self, number)) };
        let place = leaf.place as usize;
        if let Step::Word(scalar) = leaf.step {
            return Some(Item::of_word(scalar, self.words[place]));
        }
        Some(match (&self.objects[place], of) {
            (Object::Text(text), _) => Item::Text(text),
            (Object::Array(array), _) => Item::Array(array),
            (Object::Any(value), _) => Item::Any(value.as_deref()),
            (Object::Elements(elements), _) => Item::Elements(elements),
            (Object::Union(Some((selector, value))), Type::Union(members)) => {
                let name = members.fields().get(*selector as usize).map_or("", |field| &field.name);
                Item::Union(Some((name, value)))
            }
            (Object::Union(_), _) => Item::Union(None),
        })
    }

    /// Returns a field by its path, as `alarm.severity`. A path goes on through what a union or an any-field holds.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Item<'_>> {
        let mut number = 0;
        let mut rest = path;
        while !rest.is_empty() {
            let (name, behind) = rest.split_once('.').unwrap_or((rest, ""));
            match self.plan.child(number, name) {
                Some(child) => number = child,
                None => {
                    return match self.at(number)? {
                        Item::Union(Some((selected, value))) if selected == name => value.get(behind),
                        Item::Any(Some(value)) | Item::Union(Some((_, value))) => value.get(rest),
                        _ => None,
                    };
                }
            }
            rest = behind;
        }
        self.at(number)
    }

    /// Takes over the fields of another value of the same type that a set names, and marks them as changed.
    ///
    /// Fields that had been marked already are put into `overrun`: who has not read their former content never will. Nothing
    /// is allocated once the sets have grown. Returns `false` if the other value has another type, which changes nothing.
    pub fn merge(&mut self, from: &Value, set: &BitSet, overrun: &mut BitSet) -> bool {
        let Value { plan, words, objects, changed } = self;
        if !is_same(plan, &from.plan) {
            return false;
        }
        plan.expand(changed);
        let mut at = 0;
        while let Some(number) = set.next(at) {
            for leaf in plan.leaves_of(number) {
                let (node, place) = (leaf.node as usize, leaf.place as usize);
                match leaf.step {
                    Step::Word(_) => words[place] = from.words[place],
                    _ => objects[place].clone_from(&from.objects[place]),
                }
                if changed.has(node) {
                    overrun.insert(node);
                }
                changed.insert(node);
            }
            at = plan.end(number);
        }
        true
    }

    /// Takes over the changed fields of another value of the same plan, and which they are. The other one gets the former contents of
    /// the small ones, so that neither allocates anything; large ones are dropped.
    pub(crate) fn take_changed(&mut self, from: &mut Value) {
        let Value { plan, words, objects, changed } = self;
        let mut at = 0;
        while let Some(number) = from.changed.next(at) {
            for leaf in plan.leaves_of(number) {
                let place = leaf.place as usize;
                if let Step::Word(_) = leaf.step {
                    words[place] = from.words[place];
                    continue;
                }
                core::mem::swap(&mut objects[place], &mut from.objects[place]);
                if from.objects[place].is_large() {
                    from.objects[place] = from.objects[place].empty();
                }
            }
            at = plan.end(number);
        }
        core::mem::swap(changed, &mut from.changed);
    }
}

impl Object {
    /// Tells whether it holds much memory that others may share.
    fn is_large(&self) -> bool {
        match self {
            Object::Text(text) => text.as_bytes().len() >= SHARE_FROM,
            Object::Array(array) => array.bytes().len() >= SHARE_FROM,
            Object::Union(Some((_, value))) | Object::Any(Some(value)) => value.objects.iter().any(Object::is_large),
            Object::Union(None) | Object::Any(None) => false,
            Object::Elements(elements) => !elements.is_empty(),
        }
    }

    fn empty(&self) -> Object {
        match self {
            Object::Text(_) => Object::Text(Text::default()),
            Object::Array(array) => Object::Array(Array::empty(array.scalar())),
            Object::Union(_) => Object::Union(None),
            Object::Any(_) => Object::Any(None),
            Object::Elements(_) => Object::Elements(Vec::new()),
        }
    }
}

/// Tells whether values of two plans have the same type.
#[inline]
pub(crate) fn is_same(one: &Arc<Plan>, other: &Arc<Plan>) -> bool {
    Arc::ptr_eq(one, other) || one.of() == other.of()
}

impl Value {
    /// Exchanges the fields that a set of leaves names with those of another value of the same type, and marks nothing. Returns `false` if
    /// the other value has another type, which changes nothing.
    pub(crate) fn exchange(&mut self, from: &mut Value, leaves: &BitSet) -> bool {
        let Value { plan, words, objects, .. } = self;
        if !is_same(plan, &from.plan) {
            return false;
        }
        let swap_word = |place: usize| core::mem::swap(&mut words[place], &mut from.words[place]);
        let swap_object = |place: usize| core::mem::swap(&mut objects[place], &mut from.objects[place]);
        each_place(plan, leaves, swap_word, swap_object);
        true
    }

    /// Returns the bytes of memory of a value in which only a set of fields has texts, arrays and elements.
    pub(crate) fn bytes(&self, set: &BitSet) -> usize {
        let (mut bytes, mut at) = (Value::memory(&self.plan), 0);
        while let Some(number) = set.next(at) {
            let objects = self.plan.leaves_of(number).iter().filter(|leaf| !matches!(leaf.step, Step::Word(_)));
            bytes += objects.map(|leaf| self.objects[leaf.place as usize].bytes()).sum::<usize>();
            at = self.plan.end(number);
        }
        bytes
    }

    /// Returns the bytes of a value that another one holds.
    fn held_bytes(&self) -> usize {
        Value::memory(&self.plan) + self.objects.iter().map(Object::bytes).sum::<usize>()
    }

    /// Takes over the fields of another value that a set of leaves names, and marks nothing. Returns `false` if the other value has
    /// another type, which changes nothing.
    pub fn take(&mut self, from: &Value, leaves: &BitSet) -> bool {
        let Value { plan, words, objects, .. } = self;
        if !is_same(plan, &from.plan) {
            return false;
        }
        let take_word = |place: usize| words[place] = from.words[place];
        let take_object = |place: usize| objects[place].clone_from(&from.objects[place]);
        each_place(plan, leaves, take_word, take_object);
        true
    }
}

/// Hands on the places of those leaves that a set names: of words, and of what is not a word.
#[inline]
fn each_place(plan: &Plan, leaves: &BitSet, mut word: impl FnMut(usize), mut object: impl FnMut(usize)) {
    let mut at = 0;
    while let Some(number) = leaves.next(at) {
        match plan.leaf(number) {
            Some(leaf) if matches!(leaf.step, Step::Word(_)) => word(leaf.place as usize),
            Some(leaf) => object(leaf.place as usize),
            None => {}
        }
        at = number + 1;
    }
}

impl Object {
    /// Returns the bytes of memory that it refers to.
    fn bytes(&self) -> usize {
        match self {
            Object::Text(text) => text.as_bytes().len(),
            Object::Array(array) => array.bytes().len(),
            Object::Union(held) => held.as_ref().map_or(0, |(_, value)| value.held_bytes()),
            Object::Any(held) => held.as_ref().map_or(0, |value| value.held_bytes()),
            Object::Elements(elements) => {
                let held = elements.iter().flatten().map(|value| value.held_bytes()).sum::<usize>();
                held + size_of::<Option<Box<Value>>>() * elements.len()
            }
        }
    }
}

impl fmt::Debug for Value {
    /// Shows the identifier of the type, and each leaf with its path; `*` marks those that have changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.plan.of().id())?;
        let mut fields = f.debug_map();
        for leaf in self.plan.leaves() {
            let number = leaf.node as usize;
            let mark = if self.has_changed(number) { "*" } else { "" };
            fields.entry(&format_args!("{}{mark}", self.plan.path(number)), &self.at(number).ok_or(fmt::Error)?);
        }
        fields.finish()
    }
}

impl PartialEq for Value {
    /// Compares types and contents. Bools and numbers are equal if their bits are.
    fn eq(&self, other: &Self) -> bool {
        is_same(&self.plan, &other.plan) && self.words == other.words && self.objects == other.objects
    }
}

impl Item<'_> {
    fn of_word(scalar: Scalar, word: u64) -> Item<'static> {
        match scalar {
            Scalar::Bool => Item::Bool(word != 0),
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Item::Int(word as i64),
            Scalar::F32 => Item::Float(f32::from_bits(word as u32).into()),
            Scalar::F64 => Item::Float(f64::from_bits(word)),
            _ => Item::Uint(word),
        }
    }
}
