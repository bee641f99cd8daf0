//! The rules of every change, in one program.

mod arrows;
mod crates;
mod links;
mod no_std;
mod programs;
mod style;
