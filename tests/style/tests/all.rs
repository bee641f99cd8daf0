//! The rules of every change, in one program.

mod arrows;
mod links;
mod no_std;
mod programs;
mod style;
