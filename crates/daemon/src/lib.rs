//! The parts that every daemon shares: the log, metrics and health over HTTP, systemd, signals, the PID file; and how several
//! daemons are launched together.
//!
//! A daemon opens its log, starts, and serves its machines with `hodo_io`; its threads call [`Rounds::look_in`] now and then:
//!
//! ```no_run
//! use hodo_daemon::log::{self, LogOptions};
//! use hodo_daemon::{Daemon, Options, Rounds};
//! # use hodo_machine::{Input, Instant, Machine, Outbox, Output};
//! # struct Hub;
//! # impl Machine for Hub {
//! #     type Command = ();
//! #     type Event = ();
//! #     fn handle(&mut self, _: Instant, _: Input<'_, ()>) {}
//! #     fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> { Output::Idle(None) }
//! # }
//! struct Attendant(Rounds);
//!
//! impl hodo_io::Attendant for Attendant {
//!     type Machine = Hub;
//!
//!     fn told(&mut self, _: ()) -> Option<()> {
//!         None
//!     }
//!
//!     fn look_in(&mut self, now: Instant, _: &Hub) -> Option<()> {
//!         if self.0.look_in(now) {
//!             // Read the configuration again and pass it to the machine.
//!             self.0.reloaded("serving");
//!         }
//!         None
//!     }
//!
//!     fn drain(&mut self) -> Option<()> {
//!         self.0.draining("answering pending requests");
//!         None
//!     }
//! }
//!
//! fn serve(server: hodo_io::Server) -> Result<(), Box<dyn std::error::Error>> {
//!     log::open("hub", &LogOptions::default())?;
//!     let options = Options { http: Some(([127, 0, 0, 1], 9203).into()), catches_signals: true, ..Options::default() };
//!     let daemon = Daemon::start(&options, |pages| pages)?;
//!     daemon.ready(&format!("listening on {}", server.address()));
//!     server.attend(|index| (Hub, Attendant(daemon.rounds(&format!("hub {index}")))), daemon.stop())?;
//!     log::close();
//!     Ok(())
//! }
//! ```

mod callers;
mod daemon;
mod error;
mod exposition;
mod fetch;
mod health;
mod http;
pub mod launch;
pub mod log;
mod metrics;
mod notifier;
mod pid_file;
mod request;
mod signals;
mod site;

pub use callers::{Caller, Names};
pub use daemon::{Daemon, Options, Rounds};
pub use error::Error;
pub use exposition::{CONTENT_TYPE, Distribution, Exposition, Labels, Value};
pub use fetch::{act, fetch};
pub use health::{Health, Pulse, State};
pub use http::{Answer, Http, PageRequest, Reply};
pub use metrics::Registry;
pub use notifier::Notifier;
pub use pid_file::PidFile;
pub use request::{Method, Refusal, Request, parse};
pub use signals::Signals;
pub use site::{Control, HEALTH, Pages, Site};
