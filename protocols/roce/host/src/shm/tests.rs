//! Two devices on one thread: what one posts is carried out at once, so that every outcome is determined.

mod failures;
mod pair;
mod verbs;
