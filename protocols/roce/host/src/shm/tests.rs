//! Two devices on one thread, where what one posts is carried out at once and every outcome is determined; and threads, processes
//! and impostors.

mod exchanges;
mod failures;
mod hostile;
mod pair;
mod processes;
mod verbs;
