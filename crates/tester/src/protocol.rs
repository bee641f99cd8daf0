//! The interface between a protocol and the tester, and a list of protocols.

use crate::{Error, FarEnd, Opened, ServeSettings, Server, Settings, Uri};
use hodo_machine::Wait;
use hodo_measure::limits::OnTheWire;
use hodo_measure::{Mode, Plan, Published, PublishedFigure, Size, Test};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// One protocol: its links, its servers, and what its operations are on the wire.
pub trait Protocol: Sync {
    /// Returns its name, schemes and suite.
    fn description(&self) -> &'static Description;

    /// Opens the link that a URI names. The settings have been checked by [`crate::open()`].
    ///
    /// # Errors
    /// [`Error::Usage`] if the URI or a setting is wrong, [`Error::Failed`] if the far end cannot be reached.
    fn open(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error>;

    /// Opens the same link over the simulated network that the URI's options describe.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    fn simulate(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error>;

    /// Binds the server that a URI names. Without a host it listens on loopback; without a port on any free one.
    ///
    /// # Errors
    /// [`Error::Usage`] if the URI or a setting is wrong, [`Error::Failed`] if the address cannot be listened on.
    fn serve(&self, uri: &Uri, settings: &ServeSettings) -> Result<Server, Error>;

    /// Returns what the operations of a plan put on the wire: the ground of their limits and of their baseline.
    ///
    /// # Errors
    /// [`Error::Usage`] if the URI is wrong.
    fn on_the_wire(&self, uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error>;

    /// Returns the short standard suite of a link.
    fn suite(&self, _link: &Uri) -> &'static [TestGroup] {
        self.description().suite
    }

    /// Returns the directions that the payload of a link's operations may take, the most usual one first.
    fn modes(&self, _link: &Uri) -> &'static [Mode] {
        self.description().modes
    }

    /// Returns whether a link can send operations without waiting for any, because its far end counts those that arrive.
    fn has_unbounded(&self, _link: &Uri) -> bool {
        false
    }

    /// Returns whether the bytes that operations carry can be chosen and checked.
    fn has_content(&self) -> bool {
        false
    }

    /// Checks that a link can do what a plan asks, before anything is opened.
    ///
    /// # Errors
    /// [`Error::Usage`] with the option to change.
    fn check(&self, _link: &Uri, _plan: &Plan) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the port of a URI that names none; `None` if there is no usual one.
    fn port(&self, uri: &Uri) -> Option<u16>;

    /// Returns what to do where nothing listens at a URI, which has its port.
    fn remedy(&self, uri: &Uri) -> String {
        format!("start `hodo serve {uri}` there")
    }

    /// Returns the URI without the options that describe a far end started for the link.
    fn of_link(&self, uri: &Uri) -> Uri {
        uri.clone()
    }

    /// Returns the far end to start for a link that names none; with `stages` it reports where the time goes.
    fn far_end(&self, link: &Uri, _stages: bool) -> FarEnd {
        FarEnd::serve(link.clone())
    }

    /// Returns the URI of the link to a far end that was started: `said` holds what its first lines say, `behind` the
    /// far end behind it.
    ///
    /// # Errors
    /// [`Error::Failed`] if a line is no URI of this protocol.
    fn link_to(&self, named: &Uri, said: &[String], _behind: Option<&Uri>) -> Result<Uri, Error> {
        let listening = named.sibling(said.first().map_or("", String::as_str))?;
        Ok(Uri { options: self.of_link(named).options, ..listening })
    }

    /// Returns the measurements of the demonstration beside the suite, as over a path that the suite does not take.
    fn demonstration(&self) -> &'static [Scenario] {
        &[]
    }

    /// Returns the published studies that a link of this protocol can repeat.
    fn presets(&self, link: &Uri) -> &'static [Preset] {
        let _ = link;
        &[]
    }

    /// Returns the options of the URIs that can be served, for the help of `serve`; empty if there are none.
    fn served_options(&self) -> &'static str {
        ""
    }

    /// Returns which options of sockets a link can have.
    fn path_support(&self, _link: &Uri) -> PathSupport {
        PathSupport::All
    }

    /// Returns how many far ends a URI names.
    fn far_ends(&self, _uri: &Uri) -> u32 {
        1
    }

    /// Returns the socket buffers that suit this many channels to a far end on the same host; `None` leaves the
    /// system's.
    fn socket_buffer(&self, _channels: u32) -> Option<usize> {
        None
    }

    /// Adds the stages of a daemon between the two ends, where a link goes through one. `pages` is where it serves its
    /// pages, if that is known.
    ///
    /// # Errors
    /// The reason why the daemon does not report its stages, and the remedy.
    fn add_stages(&self, _uri: &Uri, _opened: &mut Opened, _pages: Option<SocketAddr>) -> Result<(), String> {
        Ok(())
    }
}

impl dyn Protocol + '_ {
    /// Returns the protocol's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.description().name
    }
}

impl fmt::Debug for dyn Protocol + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for dyn Protocol + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Protocol + '_ {}

/// The options of sockets that a link can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathSupport {
    /// All of them: its packets go through sockets that connect.
    All,
    /// The marks of packets and the version of IP: its packets go through the socket of an adapter, which has an address of its own.
    Marks,
    /// None of them: its packets are not made by this program.
    None,
}

/// The constants of a protocol.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Name; alone it stands for a link over the first scheme.
    pub name: &'static str,
    /// The schemes of its URIs.
    pub schemes: &'static [&'static str],
    /// Other names that its field has for it; each stands for the first scheme, too.
    pub known_as: &'static [&'static str],
    /// One line for people.
    pub about: &'static str,
    /// The directions that the payload of an operation may take, the most usual one first.
    pub modes: &'static [Mode],
    /// The short standard suite: tests, modes, sizes; [`Protocol::suite`] may have another one for a link.
    pub suite: &'static [TestGroup],
    /// The largest size of an operation in bytes.
    pub size_max: u32,
    /// The most channels of a link.
    pub channels_max: u32,
    /// Whether the channels of a thread share a connection; otherwise each has one of its own.
    pub shares_connections: bool,
    /// The most operations in a packet.
    pub batch_max: u32,
    /// Whether both ends are this program's: they greet, and the far end reports its counters, CPU and stages.
    pub own: bool,
    /// Whether a server listens at a path of the file system instead of a port.
    pub is_at_path: bool,
    /// Whether a server runs on one thread, however many channels there are.
    pub has_one_thread: bool,
    /// Whether the far end sends updates to subscriptions.
    pub has_updates: bool,
}

/// One group of tests in a protocol's standard suite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestGroup {
    /// The test.
    pub test: Test,
    /// The direction of the payload.
    pub mode: Mode,
    /// The sizes, in turn.
    pub sizes: &'static [u32],
    /// Operations in flight per channel.
    pub window: u32,
    /// Channels.
    pub channels: u32,
    /// Whether the channels go round by round, as [`Plan::rounds`] says.
    pub rounds: bool,
}

/// A published study that a link can repeat, or the part of it that has one setting of the link: a study of several settings is several
/// presets of one name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Name, as `epics-get`.
    pub name: &'static str,
    /// The measurements.
    pub groups: &'static [TestGroup],
    /// The study's own figures.
    pub figures: &'static [Figures],
    /// The options that the link has in this part, instead of its own.
    pub options: &'static [(&'static str, &'static str)],
    /// How both sides wait; `None` for the usual way.
    pub wait: Option<Wait>,
    /// Whether the stages of operations are stamped.
    pub stages: bool,
    /// The warm-up and the length of one repeat, unless others are asked for; `None` for the usual ones.
    pub timing: Option<(Duration, Duration)>,
}

/// Figures of a study in one setting.
#[derive(Debug, PartialEq)]
pub struct Figures {
    /// The setting, as the machine and the network.
    pub setting: &'static str,
    /// Channels.
    pub channels: u32,
    /// The sizes, and the operations per second of each.
    pub operations_per_s: &'static [(u32, f64)],
    /// Figures that hold for many sizes.
    pub facts: &'static [Fact],
}

/// A figure of a study that holds for a range of sizes.
#[derive(Debug, PartialEq)]
pub struct Fact {
    /// The smallest and the largest size.
    pub sizes: (u32, u32),
    /// The figure.
    pub figure: PublishedFigure,
    /// The study's words about it.
    pub remark: &'static str,
}

impl Preset {
    /// Creates the preset of a study that has one setting of the link.
    #[must_use]
    pub const fn new(name: &'static str, groups: &'static [TestGroup], figures: &'static [Figures]) -> Preset {
        Preset { name, groups, figures, options: &[], wait: None, stages: false, timing: None }
    }

    /// Returns the link with the options of this part.
    #[must_use]
    pub fn link(&self, link: &Uri) -> Uri {
        let mut link = link.with_options(|name| self.options.iter().all(|(other, _)| *other != name));
        link.options.extend(self.options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        link
    }

    /// Returns what the study published for a plan; nothing for one that it did not measure, as in another direction.
    #[must_use]
    pub fn published(&self, plan: &Plan) -> Vec<Published> {
        let is_of_study = self.groups.iter().any(|group| {
            (group.test, group.mode, group.window, group.channels, group.rounds)
                == (plan.test, plan.mode, plan.window, plan.channels, plan.rounds)
        });
        let Size::Fixed(size) = plan.size else { return Vec::new() };
        let like = self.figures.iter().filter(|figures| is_of_study && figures.channels == plan.channels);
        like.flat_map(|figures| figures.of(size)).collect()
    }
}

impl Figures {
    /// Returns what was published for a size.
    fn of(&self, size: u32) -> impl Iterator<Item = Published> {
        let published =
            |figure, remark: &str| Published { setting: self.setting.to_owned(), figure, remark: remark.to_owned() };
        let rates = self.operations_per_s.iter().filter(move |(of, _)| *of == size);
        let facts = self.facts.iter().filter(move |fact| (fact.sizes.0..=fact.sizes.1).contains(&size));
        rates
            .map(move |(_, rate)| published(PublishedFigure::OperationsPerS(*rate), ""))
            .chain(facts.map(move |fact| published(fact.figure, fact.remark)))
    }
}

/// Measurements of one link in the demonstration.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The URI of the link.
    pub link: &'static str,
    /// The measurements.
    pub group: TestGroup,
    /// Whether the stages of an operation are measured.
    pub stages: bool,
}

impl TestGroup {
    /// Creates a group of tests.
    #[must_use]
    pub const fn new(test: Test, mode: Mode, sizes: &'static [u32], window: u32, channels: u32) -> TestGroup {
        TestGroup { test, mode, sizes, window, channels, rounds: false }
    }

    /// Returns the group with its channels going round by round, as [`Plan::rounds`] says.
    #[must_use]
    pub const fn in_rounds(self) -> TestGroup {
        TestGroup { rounds: true, ..self }
    }
}

/// A list of protocols, in which the schemes of URIs are looked up.
#[derive(Debug, Clone, Copy)]
pub struct Catalog(&'static [&'static dyn Protocol]);

impl Catalog {
    /// Creates a catalog of these protocols. No two of them may share a scheme.
    #[must_use]
    pub const fn new(protocols: &'static [&'static dyn Protocol]) -> Catalog {
        Catalog(protocols)
    }

    /// Returns the protocols.
    pub fn protocols(self) -> impl Iterator<Item = &'static dyn Protocol> {
        self.0.iter().copied()
    }

    /// Returns the protocol with this name.
    #[must_use]
    pub fn named(self, name: &str) -> Option<&'static dyn Protocol> {
        self.protocols().find(|protocol| protocol.name() == name)
    }

    /// Parses a URI, or the bare name of a protocol or a scheme.
    ///
    /// # Errors
    /// [`Error::Usage`] if no protocol has the scheme, or an option has no value.
    pub fn uri(self, text: &str) -> Result<Uri, Error> {
        Uri::parse(self.0, text)
    }
}
