use super::lines::Lines;
use crate::Error;
use crate::args::FarmUpload;
use hodo_store::{Destination, Folder, Pace, Uploader};
use std::fs;
use std::path::Path;

/// Starts to copy the closed segments of a store to where that was asked for.
pub fn start(store: &Path, asked: &FarmUpload) -> Result<Option<Uploader>, Error> {
    if let Some(folder) = &asked.upload {
        if fs::canonicalize(folder).is_ok_and(|folder| fs::canonicalize(store).is_ok_and(|store| store == folder)) {
            return Err(Error::Usage("--upload: this is the store itself; give another folder".to_owned()));
        }
        return begin("--upload", store, Folder(folder.clone())).map(Some);
    }
    #[cfg(feature = "cloud")]
    if let Some(url) = &asked.upload_to {
        let text = |(name, value): (std::ffi::OsString, _)| Some((name.into_string().ok()?, value));
        let options = std::env::vars_os().filter_map(text);
        let options = options.filter_map(|(name, value)| Some((name, value.into_string().ok()?)));
        let cloud = hodo_store::Cloud::open(url, options);
        let cloud = cloud.map_err(|error| Error::Failed(format!("--upload-to: {error}")))?;
        return begin("--upload-to", store, cloud).map(Some);
    }
    Ok(None)
}

fn begin(option: &str, store: &Path, to: impl Destination + 'static) -> Result<Uploader, Error> {
    let to = Telling { to, lines: Lines::of("controller"), failed: false };
    Uploader::start(store.to_owned(), to, Pace::default()).map_err(|error| Error::Failed(format!("{option}: {error}")))
}

/// Says when uploads fail, and when they go on.
struct Telling<D> {
    to: D,
    lines: Lines,
    failed: bool,
}

impl<D: Destination> Destination for Telling<D> {
    fn put(&mut self, name: &str, file: &Path) -> Result<(), String> {
        let put = self.to.put(name, file);
        match &put {
            Err(why) if !self.failed => self.lines.say(&format!("{why}; it is tried again, and the farm goes on")),
            Ok(()) if self.failed => self.lines.say("segments are uploaded again"),
            _ => {}
        }
        self.failed = put.is_err();
        self.lines.look_in();
        put
    }
}
