//! The files of IPbus's users, as uHAL reads them.
//!
//! [`table`] reads address tables, [`connections`] the files that say which device is where, and [`uri`] the URI of one
//! device. A [`Table`](table::Table) describes the [`Registers`](hodo_ipbus::device::Registers) of a device in software.
//! Nothing here does I/O: a [`files::Source`] brings the files.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod connections;
pub mod files;
pub mod finding;
pub mod pattern;
mod registers;
pub mod table;
pub mod uri;
mod xml;
