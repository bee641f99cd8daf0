use super::settings::UploadTo;
use crate::Error;
use hodo_daemon::{Health, Pulse};
use hodo_store::{Destination, Folder, Pace, Uploader};
use std::fs;
use std::path::Path;

/// Starts to copy the closed segments of a store.
pub fn start(store: &Path, to: &UploadTo, health: &Health) -> Result<Uploader, Error> {
    match to {
        UploadTo::Folder(folder) => {
            if fs::canonicalize(folder).is_ok_and(|folder| fs::canonicalize(store).is_ok_and(|store| store == folder)) {
                return Err(Error::Settings("--upload: this is the store itself; give another folder".to_owned()));
            }
            begin("--upload", store, Folder(folder.clone()), health)
        }
        #[cfg(feature = "cloud")]
        UploadTo::Cloud(url) => {
            let text = |(name, value): (std::ffi::OsString, _)| Some((name.into_string().ok()?, value));
            let options = std::env::vars_os().filter_map(text);
            let options = options.filter_map(|(name, value)| Some((name, value.into_string().ok()?)));
            let cloud = hodo_store::Cloud::open(url, options);
            begin("--upload-to", store, cloud.map_err(|error| Error::Upload(format!("--upload-to: {error}")))?, health)
        }
    }
}

fn begin(option: &str, store: &Path, to: impl Destination + 'static, health: &Health) -> Result<Uploader, Error> {
    let pulse = health.pulse("upload");
    // An upload may take long; only the end of the thread, which drops this, is noticed.
    pulse.rest();
    let to = Logged { to, failed: false, _pulse: pulse };
    Uploader::start(store.to_owned(), to, Pace::default()).map_err(|error| Error::Upload(format!("{option}: {error}")))
}

/// A destination that logs when uploads begin to fail, and when they succeed again.
struct Logged<D> {
    to: D,
    failed: bool,
    _pulse: Pulse,
}

impl<D: Destination> Destination for Logged<D> {
    fn put(&mut self, name: &str, file: &Path) -> Result<(), String> {
        let put = self.to.put(name, file);
        match &put {
            Err(why) if !self.failed => tracing::warn!("{why}; retrying, and the farm goes on"),
            Ok(()) if self.failed => tracing::info!("uploads work again"),
            _ => {}
        }
        self.failed = put.is_err();
        put
    }
}
