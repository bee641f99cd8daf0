//! Structured values: their types, their encoding, and what of them has changed.
//!
//! A type is described by one byte, and for what is composed by more:
//!
//! | byte | type | behind it |
//! |---|---|---|
//! | 00; 20 to 23; 24 to 27; 42, 43; 60 | bool; i8 to i64; u8 to u64; f32, f64; text | |
//! | +08, +10, +18 | variable, bounded, fixed array of it | size, unless variable |
//! | 83 | bounded text | size |
//! | 80, 81 | structure, union | text id, size fields, of each text name and type |
//! | 82 | any | |
//! | 88, 89, 8A | array of structures, of unions, of any | the type of the elements, but for any |
//! | FD | a type to be remembered | u16 number, the type |
//! | FE | a remembered type | u16 number |
//! | FF | no type | |
//!
//! | value | as |
//! |---|---|
//! | bool | one byte |
//! | text | size, bytes |
//! | structure | its fields |
//! | union | size: which member, or null; the member |
//! | any | type, value; or FF |
//! | array | size, unless fixed; elements, of which those that are structures, unions or any have u8 1 before them, or are u8 0 |
//! | bits | size, and bytes with the lowest bits first; eight bytes together are a number in the order of the message |

mod array;
mod bits;
mod cache;
mod encoding;
mod item;
mod packed;
mod plan;
mod text;
mod types;
mod value;

pub use array::{Array, Element, Elements, Texts};
pub use bits::BitSet;
pub use cache::TypeCache;
pub use item::{Datum, Item, SetError};
pub(crate) use packed::Packed;
pub use plan::{Plan, Step};
pub use text::Text;
pub use types::{Field, Length, Members, Scalar, Type};
pub use value::Value;
pub(crate) use value::is_same;
