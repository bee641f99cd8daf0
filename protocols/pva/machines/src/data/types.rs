use alloc::boxed::Box;
use alloc::sync::Arc;

hodo_machine::codes! {
    /// A type of a single value that is not composed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Scalar: u8 {
        /// True or false.
        Bool = 0x00 => "boolean",
        /// A signed number of 8 bits.
        I8 = 0x20 => "byte",
        /// A signed number of 16 bits.
        I16 = 0x21 => "short",
        /// A signed number of 32 bits.
        I32 = 0x22 => "int",
        /// A signed number of 64 bits.
        I64 = 0x23 => "long",
        /// An unsigned number of 8 bits.
        U8 = 0x24 => "ubyte",
        /// An unsigned number of 16 bits.
        U16 = 0x25 => "ushort",
        /// An unsigned number of 32 bits.
        U32 = 0x26 => "uint",
        /// An unsigned number of 64 bits.
        U64 = 0x27 => "ulong",
        /// A floating-point number of 32 bits.
        F32 = 0x42 => "float",
        /// A floating-point number of 64 bits.
        F64 = 0x43 => "double",
        /// A text.
        Text = 0x60 => "string",
    }
}

impl Scalar {
    /// Returns the bytes of a value on the wire; `None` for texts, which differ.
    #[must_use]
    #[inline]
    pub const fn width(self) -> Option<usize> {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => Some(1),
            Scalar::I16 | Scalar::U16 => Some(2),
            Scalar::I32 | Scalar::U32 | Scalar::F32 => Some(4),
            Scalar::I64 | Scalar::U64 | Scalar::F64 => Some(8),
            Scalar::Text => None,
        }
    }

    /// Returns the bytes that a value takes on the wire at least.
    #[must_use]
    #[inline]
    pub const fn least_width(self) -> usize {
        match self.width() {
            Some(width) => width,
            None => 1,
        }
    }
}

/// The number of elements that an array may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// Any number.
    Variable,
    /// At most this many. Only older servers send it.
    Bounded(u64),
    /// Exactly this many. Only older servers send it.
    Fixed(u64),
}

/// The type of a value. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// A number, a bool, a text.
    Scalar(Scalar),
    /// A text of at most this many bytes. Only older servers send it.
    BoundedText(u64),
    /// An array of them.
    Array(Scalar, Length),
    /// Fields together.
    Structure(Arc<Members>),
    /// One of several members, or none.
    Union(Arc<Members>),
    /// A value that brings its own type, or nothing.
    Any,
    /// An array of structures.
    StructureArray(Arc<Members>),
    /// An array of unions.
    UnionArray(Arc<Members>),
    /// An array of values that bring their own types.
    AnyArray,
}

/// The fields of a structure, or the members of a union.
#[derive(Debug, PartialEq, Eq)]
pub struct Members {
    id: Box<str>,
    fields: Box<[Field]>,
    weight: usize,
    depth: usize,
}

/// A named field of a structure, or member of a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: Box<str>,
    /// Type of the field.
    pub of: Type,
}

impl Type {
    /// Creates an array of any number of elements.
    #[must_use]
    pub const fn array(of: Scalar) -> Type {
        Type::Array(of, Length::Variable)
    }

    /// Creates a structure of named fields, with an identifier or an empty one.
    #[must_use]
    pub fn structure<N: AsRef<str>>(id: &str, fields: impl IntoIterator<Item = (N, Type)>) -> Type {
        Type::Structure(Members::new(id, fields))
    }

    /// Creates a union of named members, with an identifier or an empty one.
    #[must_use]
    pub fn union<N: AsRef<str>>(id: &str, members: impl IntoIterator<Item = (N, Type)>) -> Type {
        Type::Union(Members::new(id, members))
    }

    /// Returns the array of this type: of scalars, structures, unions or any. `None` for an array, and for a bounded text.
    #[must_use]
    pub fn into_array(self) -> Option<Type> {
        Some(match self {
            Type::Scalar(scalar) => Type::array(scalar),
            Type::Structure(members) => Type::StructureArray(members),
            Type::Union(members) => Type::UnionArray(members),
            Type::Any => Type::AnyArray,
            _ => return None,
        })
    }

    /// Returns the type of the elements of an array.
    #[must_use]
    pub fn element(&self) -> Option<Type> {
        Some(match self {
            Type::Array(scalar, _) => Type::Scalar(*scalar),
            Type::StructureArray(members) => Type::Structure(members.clone()),
            Type::UnionArray(members) => Type::Union(members.clone()),
            Type::AnyArray => Type::Any,
            _ => return None,
        })
    }

    /// Returns the fields or members of what is composed, and of an array of it.
    #[must_use]
    pub const fn members(&self) -> Option<&Arc<Members>> {
        match self {
            Type::Structure(members)
            | Type::Union(members)
            | Type::StructureArray(members)
            | Type::UnionArray(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the identifier of what is composed; empty if it has none.
    #[must_use]
    pub fn id(&self) -> &str {
        self.members().map_or("", |members| &members.id)
    }

    /// Returns the number of fields with all that they contain, this one included.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.members().map_or(1, |members| members.weight)
    }

    /// Returns the levels of what is composed.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.members().map_or(0, |members| members.depth)
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Self {
        Type::Scalar(scalar)
    }
}

impl Members {
    /// Creates the fields of a structure, or the members of a union.
    #[must_use]
    pub fn new<N: AsRef<str>>(id: &str, fields: impl IntoIterator<Item = (N, Type)>) -> Arc<Members> {
        let field = |(name, of): (N, Type)| Field { name: name.as_ref().into(), of };
        Arc::new(Members::of(id.into(), fields.into_iter().map(field).collect()))
    }

    /// Creates them from the fields themselves.
    pub(crate) fn of(id: Box<str>, fields: Box<[Field]>) -> Members {
        let weight = fields.iter().fold(1, |sum: usize, field| sum.saturating_add(field.of.weight()));
        let depth = 1 + fields.iter().map(|field| field.of.depth()).max().unwrap_or(0);
        Members { id, fields, weight, depth }
    }

    /// Returns the identifier; empty if there is none.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the fields, in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| &*field.name == name)
    }
}
