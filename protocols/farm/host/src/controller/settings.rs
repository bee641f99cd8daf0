use crate::process::ProcessSettings;
use hodo_daemon::{Control, Options};
use hodo_farm::ControllerConfig;
use hodo_farm::emulation::GeneratorConfig;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a controller.
#[derive(Debug, Clone)]
pub struct ControllerSettings {
    /// Where nodes, sources and builders connect; port 0 is any free one.
    pub listen: SocketAddr,
    /// The controller itself. Its instance, its pace and its part for each thread are set when it starts.
    pub config: ControllerConfig,
    /// The store; `None`: nothing is stored, and nothing survives.
    pub store: Option<StoreSettings>,
    /// Events that the controller makes itself.
    pub generator: Option<GeneratorConfig>,
    /// Whether it ends when every event that it was to make has its verdict.
    pub until_done: bool,
    /// Threads that share the nodes; more than one only with a generator.
    pub threads: usize,
    /// Pages, and the file with the process number.
    pub daemon: Options,
    /// The clients that may send orders over HTTP.
    pub control: Control,
    /// How long events in hand may take when the controller is to stop.
    pub drain: Duration,
    /// The process.
    pub process: ProcessSettings,
}

/// Settings of a controller's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// The store itself.
    pub options: hodo_store::Options,
    /// Time between two commits at the least: what comes meanwhile is written together.
    pub commit_every: Duration,
    /// The time after which the disk is asked for what was committed, where a commit does not wait for it.
    pub sync_every: Duration,
    /// The bytes with which the disk is asked for them sooner.
    pub sync_bytes: u64,
    /// Where closed segments are copied to.
    pub upload: Option<UploadTo>,
}

/// Where closed segments of a store are copied to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UploadTo {
    /// A folder, as one of a shared file system.
    Folder(PathBuf),
    /// An object store, as s3://bucket/run7; its keys are in the environment.
    #[cfg(feature = "cloud")]
    Cloud(String),
}

/// The defaults of the command line, but without pages.
impl Default for ControllerSettings {
    fn default() -> Self {
        ControllerSettings {
            listen: (Ipv4Addr::LOCALHOST, hodo_farm::wire::CONTROLLER_PORT).into(),
            config: ControllerConfig {
                sources_max: 8,
                ahead_max: Some(64),
                uncommitted_max: Some(65_536),
                ..ControllerConfig::default()
            },
            store: None,
            generator: None,
            until_done: false,
            threads: 1,
            daemon: Options::default(),
            control: Control::Owner,
            drain: Duration::from_secs(5),
            process: ProcessSettings::default(),
        }
    }
}

impl StoreSettings {
    /// Creates a store in this folder that commits each millisecond, is on the disk after two seconds or 32 MiB, and copies nothing.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        StoreSettings {
            options: hodo_store::Options::new(directory),
            commit_every: Duration::from_millis(1),
            sync_every: Duration::from_secs(2),
            sync_bytes: 32 << 20,
            upload: None,
        }
    }
}
