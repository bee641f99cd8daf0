//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

#[cfg(feature = "cloud")]
mod cloud;
mod failing_disk;
mod golden;
mod reading;
mod recovery;
mod scratch;
mod uploading;
