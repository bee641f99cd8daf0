//! The tests that need no process of their own, in one program: that is built in a fraction of the time.

mod bare;
mod captures;
mod errors;
mod pair;
mod requester;
mod responder;
mod scenarios;
mod strangers;
